//! `start --import` in the real Claude Code, with the Stop hook of the official plugin still installed.

use std::fs;

use serde_json::json;

use crate::messages_api::{Api, Reply};
use crate::ralph::{replies, session, the_loop, working};

const FILE: &str = ".claude/ralph-loop.local.md";

/// A Stop hook that depends on the official plugin's file, as the plugin does.
fn rival(root: &std::path::Path) -> std::path::PathBuf {
    let plugin = root.join("rival");
    let say = format!(
        r#"test -f {FILE} && echo '{{"decision": "block", "reason": "THE OLD PROMPT AGAIN"}}' || true"#
    );
    let hooks = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": say}]}]}});
    for (file, content) in
        [(".claude-plugin/plugin.json", json!({"name": "rival"})), ("hooks/hooks.json", hooks)]
    {
        let file = plugin.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content.to_string()).unwrap();
    }
    plugin
}

#[test]
fn a_loop_of_the_official_plugin_is_taken_over() {
    let mut script = replies([working("one"), working("two")]);
    script.push(Reply::text("All of it.\n\n<promise>IT'S \"REALLY\" DONE</promise>"));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };
    let rival = rival(session.root());
    let session = session.plugin(&rival);
    let file = session.project().join(FILE);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = "---\nactive: true\niteration: 4\nsession_id: \nmax_iterations: 20\n\
                completion_promise: \"IT'S \"REALLY\" DONE\"\nstarted_at: \"2026-01-31T08:00:00Z\"\n---\n\n\
                Build the API $(touch pwned).\n";
    fs::write(&file, text).unwrap();

    let output = session.print("/ralph:start --import");

    let told = output.system_messages().join("\n");
    for line in [
        "Ralph imported: Build the API $(touch pwned).",
        "Ends at 20 iterations or 9h runtime, or when the agent promises \"IT'S \"REALLY\" DONE\"",
        "3 iterations done, limit 20",
        "the old loop is disabled",
        "Ralph 4/20",
        "Ralph 5/20",
        "Ralph ended (complete)",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    let first = api.requests()[0].text();
    assert!(
        first.contains("Build the API $(touch pwned).") && first.contains("iteration 4 of 20"),
        "{first}"
    );
    assert_eq!(api.requests().len(), 5, "two turns of two requests, and the last one");
    assert!(api.requests().iter().all(|request| !request.text().contains("THE OLD PROMPT AGAIN")));
    assert!(!file.exists() && !session.project().join("pwned").exists());
    let kept = fs::read_dir(session.project().join(".claude")).unwrap().flatten();
    let kept =
        kept.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("ralph-loop.imported-"));
    assert_eq!(fs::read_to_string(kept.unwrap()).unwrap(), text);
    let record = the_loop(&session);
    assert_eq!((&record["outcome"], &record["iteration"]), (&json!("complete"), &json!(6)));
}

#[test]
fn an_invalid_file_is_reported_without_a_model_call() {
    let api = Api::start(vec![Reply::text("never")]);
    let Some(session) = session(&api) else { return };
    let file = session.project().join(FILE);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "---\niteration: seven\nmax_iterations: 0\n---\n\nBuild it.\n").unwrap();

    let output = session.print("/ralph:start --import");

    assert!(api.requests().is_empty());
    assert!(output.stdout.contains("line 2: iteration is"), "{}", output.stdout);
    assert!(file.exists());
}

//! `docs/files.md` against the files that Ralph really writes.

use super::{page, quoted, rows};
use crate::env::{Env, OTHER, Program, SESSION, wait_until};
use crate::setup::install::Home;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;

/// The agent of a run: it ends its turn with a damaged task list, as Claude Code would, then repairs it and completes.
const AGENT: &str = r#"mv ralph/tasks.json ../tasks.json; echo '{' > ralph/tasks.json
printf '{"hook_event_name":"Stop","session_id":"agent","cwd":"%s"}' "$PWD" | "$HOOK" > /dev/null
find . "$RALPH_DATA_DIR" -type f >> ../during
mv ../tasks.json ralph/tasks.json
echo '<promise>COMPLETE</promise>'"#;

/// Uses every feature that writes a file.
fn tour(home: &Home) {
    let env = &home.env;
    env.git_init(&env.project);
    env.write(".git/refs/heads/main", "a".repeat(40));
    env.var("HOOK", Program::StopHook.path());
    home.install(&["--settings", "--yes"]);
    env.ralph(&["init"]).ok();
    env.ralph(&["config", "--user", "loop_limits.max_hours", "6"]).ok();
    env.ralph(&["config", "notify.command", "true"]).ok();
    env.ralph(&["trust"]).ok();
    questions(env);
    env.write(
        ".claude/ralph-loop.local.md",
        "---\nactive: true\niteration: 1\nmax_iterations: 20\ncompletion_promise: null\n---\n\nBuild it.\n",
    );
    env.ralph(&["start", "--session", OTHER, "--import"]).ok();
    env.write(".claude/ralph-state.json", "{");
    env.ralph(&["status"]).ok();
    env.write("ralph/tasks.json", r#"{"userStories": [{"id": "US-1", "passes": true}]}"#);
    for _ in 0..2 {
        env.ralph(&["run", "--skip-review", "--agent-command", AGENT, "do it"]).ok();
    }
    env.fake_docker();
    env.ralph(&["run", "--skip-review", "--container", "box", "--agent-command", AGENT, "do it"]).ok();
    env.ralph(&["archive", "--include-logs"]).ok();
    env.start("go", &[]);
    env.ralph(&["stop", "--all"]).ok();
    env.ralph(&["report"]).ok();
    env.ralph(&["report", "--all"]).ok();
    note(env);
}

fn questions(env: &Env) {
    // Nothing listens there.
    let nowhere = "http://127.0.0.1:9/topic";
    env.var("RALPH_NOTIFY_URL", nowhere).var("RALPH_NOTIFY_ANSWERS", nowhere);
    env.types(SESSION, "start", "ask me");
    env.guidance(&["forbid", "the microwave"]).ok();
    env.turn(SESSION, "<promise>DECIDE:which?</promise>");
    env.without("RALPH_NOTIFY_URL").without("RALPH_NOTIFY_ANSWERS");
    wait_until("the request failed", || env.data().join("last-notification.json").exists());
    note(env);
    env.ralph(&["answer", "the first"]).ok();
    status_line(env, 0.0);
    env.start("go", &[]);
    status_line(env, 0.5);
    env.turn(SESSION, "<promise>BLOCKED:no key</promise>");
    note(env);
    env.ralph(&["answer", "here it is"]).ok();
    env.start("go", &[]);
    env.ralph(&["stop"]).ok();
}

/// Calls the status line of a session that has cost so much.
fn status_line(env: &Env, usd: f64) {
    let input = json!({"session_id": SESSION, "cost": {"total_cost_usd": usd}}).to_string();
    env.call(Program::Ralph).args(&["statusline"]).stdin(input).run().ok();
}

/// Keeps the names of the files that exist now; some are gone at the end.
fn note(env: &Env) {
    let mut during = fs::OpenOptions::new().append(true).create(true).open(env.base.join("during")).unwrap();
    for path in env.snapshot().into_keys().filter(|path| path.is_file()) {
        writeln!(during, "{}", path.display()).unwrap();
    }
}

/// Whether a file's name, below the folder of its table, is what a row names: a folder, a file, or one with a `*`.
fn is_named(file: &str, row: &str) -> bool {
    match row.split_once('*') {
        _ if row.ends_with('/') => file.starts_with(row),
        Some((start, end)) => file.starts_with(start) && file.ends_with(end),
        None => file == row,
    }
}

/// Compares the files below a folder with the table of one section. A row whose file others write may be without one.
fn assert_same(section: &str, files: &BTreeSet<String>) {
    let text = page("docs/files.md");
    let section = text.split("\n## ").find(|part| part.starts_with(section)).expect(section);
    let rows = rows(section);
    let names: Vec<String> = rows.iter().flat_map(|row| quoted(&row[0])).collect();
    let missing: Vec<_> =
        files.iter().filter(|file| !names.iter().any(|name| is_named(file, name))).collect();
    assert!(missing.is_empty(), "not in docs/files.md: {missing:#?}");
    let others = ["you", "the agent", "the official ralph-loop plugin"];
    for row in rows.iter().filter(|row| !others.contains(&row[1].as_str())) {
        for name in quoted(&row[0]) {
            assert!(files.iter().any(|file| is_named(file, &name)), "docs/files.md: Ralph wrote no {name}");
        }
    }
}

/// Returns the files that were seen below a folder.
fn files(env: &Env, folder: &Path) -> BTreeSet<String> {
    let during = fs::read_to_string(env.base.join("during")).unwrap();
    let during = during.lines().map(|line| match line.strip_prefix("./") {
        Some(file) => env.path(file),
        None => line.into(),
    });
    let now = env.snapshot().into_keys().filter(|path| path.is_file());
    let below =
        during.chain(now).filter_map(|path| Some(path.strip_prefix(folder).ok()?.display().to_string()));
    below.collect()
}

#[test]
fn every_file_that_ralph_writes_is_in_the_reference() {
    let home = Home::new();
    tour(&home);
    let env = &home.env;
    let mut project = files(env, &env.project);
    project.retain(|file| !file.starts_with(".git/") || file == ".git/info/exclude");
    assert_same("In the project", &project);
    assert_same("In your data folder", &files(env, &env.data()));
    assert!(env.base.join("config/config.json").exists() && home.settings().exists());
}

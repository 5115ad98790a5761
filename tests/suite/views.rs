//! What people and scripts read.

use crate::env::{DONE, Env, HOUR, OTHER, Program, SESSION};
use serde_json::{Value, json};

/// Columns a terminal needs: wide characters take two.
fn columns(line: &str) -> usize {
    let wide = |c: char| {
        matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}')
    };
    line.chars().map(|c| if wide(c) { 2 } else { 1 }).sum()
}

fn fits(what: &str, text: &str) {
    let wrong = |line: &&str| columns(line) > 80 || line.chars().any(|c| c.is_control());
    let wrong: Vec<_> =
        text.lines().filter(wrong).map(|line| format!("{}: {line:?}", columns(line))).collect();
    assert!(wrong.is_empty(), "{what}: more than 80 columns\n{}", wrong.join("\n"));
}

#[test]
fn status_json_has_the_fields_of_the_contract() {
    let env = Env::new();
    env.start("the task", &["--max-iterations", "9"]);
    env.at(100).turn(SESSION, "x").goes_on();
    env.edit_state(|state| {
        let entry = json!({"text": "small commits", "timestamp": crate::env::stamp(50)});
        state["guidance"] = json!({"encouraged": [entry], "forbidden": []});
        state["constraints"] = json!([{"id": "c1"}]);
    });
    let status = env.at(200).status();
    assert_eq!(status["project"], json!(env.project));
    let record = &status["loops"][0];
    assert_eq!(record["session_id"], SESSION);
    assert!(record["run_id"].as_str().is_some_and(|id| !id.is_empty()));
    assert_eq!((&record["engine"], &record["state"]), (&json!("in-session"), &json!("running")));
    assert_eq!((&record["iteration"], &record["max_iterations"]), (&json!(1), &json!(9)));
    assert_eq!(
        (record["runtime_seconds"].as_f64(), record["wall_seconds"].as_f64()),
        (Some(100.0), Some(200.0))
    );
    for name in ["outcome", "reason"] {
        assert!(record.as_object().unwrap().contains_key(name) && record[name].is_null(), "{name}");
    }
    let circuit = &record["circuit"];
    assert_eq!((&circuit["state"], &circuit["reason"]), (&json!("ok"), &json!(null)));
    assert_eq!(circuit["counters"]["stagnation"], 1);
    let entry = &status["guidance"]["encouraged"][0];
    assert_eq!(
        (&entry["text"], entry["age_seconds"].as_f64(), &entry["delivered"]),
        (&json!("small commits"), Some(150.0), &json!(false))
    );
    assert!(entry["timestamp"].as_str().unwrap().starts_with("2026-11-16T08:00:50"));
    assert_eq!(
        (&status["guidance"]["forbidden"], &status["constraints"]),
        (&json!([]), &json!([{"id": "c1"}]))
    );
}

#[test]
fn status_json_of_an_empty_project_has_all_fields() {
    let env = Env::new();
    let status = env.status();
    assert_eq!((&status["loops"], &status["constraints"]), (&json!([]), &json!([])));
    assert_eq!(status["guidance"], json!({"encouraged": [], "forbidden": [], "allowed": []}));
    assert_eq!(env.history(), Vec::<Value>::new());
    assert!(!env.exists(".claude"));
    assert!(env.ralph(&["status"]).ok().contains("/ralph:start"));
    env.ralph(&["history"]).ok();
}

#[test]
fn status_fits_eighty_columns_in_every_state() {
    let env =
        Env::named("a-project-with-a-name-that-is-much-too-long-for-any-terminal-of-eighty-columns-at-all");
    let task = "make the very long task that never ends green again ".repeat(20);
    env.start(
        &task,
        &["--min-hours", "1", "--min-iterations", "10", "--max-cost", "12.5", "--max-iterations", "12"],
    );
    env.start_in(OTHER, &task, &[]);
    let transcript = env.transcript();
    transcript.worked(1).queue(5, "enqueue", &"/a-very-long-command with words ".repeat(9));
    env.at(20).stop(SESSION).with(&transcript).says("x").run();
    fits("waiting for the user", &env.ralph(&["status"]).ok());
    env.at(30).stop(SESSION).says("x").background(&"cargo build --all ".repeat(20)).run();
    fits("background", &env.ralph(&["status", "--session", SESSION]).ok());
    let failure = env.event(Program::StopHook, SESSION, "StopFailure");
    failure.field("error", "an error with a rather long name ".repeat(9)).run();
    fits("after an error", &env.ralph(&["status"]).ok());
    env.event(Program::StopHook, SESSION, "SessionEnd").field("reason", "clear").run();
    fits("orphaned", &env.ralph(&["status"]).ok());
    env.edit_state(|state| {
        let entry =
            json!({"text": "never touch anything generated ".repeat(20), "timestamp": crate::env::stamp(0)});
        state["guidance"] = json!({"encouraged": [entry.clone()], "forbidden": [entry.clone(), entry]});
    });
    fits("guidance", &env.ralph(&["status"]).ok());
    env.ralph(&["stop"]).ok();
    fits("stopped", &env.ralph(&["status"]).ok());
    fits("history", &env.ralph(&["history"]).ok());
}

#[test]
fn status_fits_eighty_columns_after_every_ending() {
    for (message, flags) in [
        (DONE, &[][..]),
        (
            "<promise>BLOCKED:the key for the staging system is missing and nobody in the team has it</promise>",
            &[],
        ),
        (
            "<promise>DECIDE:should the tables be migrated in one go or one at a time, which takes longer?</promise>",
            &[],
        ),
        ("x", &["--max-iterations", "1"]),
        ("x", &["--max-hours", "0.01"]),
    ] {
        let env = Env::new();
        env.start("task", flags);
        env.at(60).turn(SESSION, message).allows();
        fits(message, &env.ralph(&["status"]).ok());
        fits(message, &env.ralph(&["status", "--session", SESSION]).ok());
        fits(message, &env.ralph(&["history"]).ok());
    }
    let env = Env::new();
    env.start("task", &[]);
    env.write(".claude/STOP_LOOP", "");
    env.turn(SESSION, "x").ended("killed");
    fits("killed", &env.ralph(&["status"]).ok());
}

#[test]
fn status_fits_eighty_columns_in_any_script() {
    let env = Env::new();
    env.start(&"テストを全部通してください。".repeat(12), &[]);
    fits("wide characters", &env.ralph(&["status"]).ok());
    env.turn(SESSION, &format!("<promise>BLOCKED:{}</promise>", "鍵がありません🔑".repeat(30)))
        .ended("blocked");
    fits("wide reason", &env.ralph(&["status"]).ok());
    fits("wide history", &env.ralph(&["history"]).ok());
}

#[test]
fn status_notes_fit_eighty_columns_too() {
    let env = Env::new();
    env.write(".claude/ralph-config.json", json!({"loop_limits": {"max_hours": "soon"}}).to_string());
    fits("a bad setting", &env.ralph(&["status"]).ok());
}

#[test]
fn hostile_text_is_cleaned_before_it_is_shown() {
    let hostile = "a\u{1b}[31mb\u{7}\u{202e}c\u{9b}d\r\n\u{0}e";
    let env = Env::new();
    let call = env.call(Program::Ralph).args(&["start", "--session", SESSION, "-"]).stdin(hostile);
    let mut shown = vec![call.run().ok()];
    env.edit_state(|state| {
        let record = &mut state["loops"][SESSION];
        record["reason"] = json!(hostile);
        record["session"]["last_error"] = json!(hostile);
        record["session"]["waiting"] = json!({"for": {"background": hostile}, "since": crate::env::stamp(0)});
        record["circuit"] = json!({"state": "tripped", "reason": hostile, "idle": 5});
        let entry = json!({"text": hostile, "timestamp": crate::env::stamp(0)});
        state["guidance"] = json!({"encouraged": [entry], "forbidden": []});
    });
    shown.push(env.ralph(&["status"]).ok());
    shown.push(env.ralph(&["stop"]).ok());
    shown.push(env.ralph(&["history"]).ok());
    shown.push(env.ralph(&["config"]).ok());
    for text in shown {
        let raw = text.chars().find(|&c| (c.is_control() && c != '\n') || c == '\u{202e}');
        assert_eq!(raw, None, "{text:?}");
    }
}

#[test]
fn a_pipe_gets_no_colours_whatever_term_says() {
    let env = Env::new();
    env.start("task", &[]);
    for term in ["xterm-256color", "dumb"] {
        let text = env
            .call(Program::Ralph)
            .args(&["status"])
            .var("TERM", term)
            .var("COLORTERM", "truecolor")
            .run()
            .ok();
        assert!(!text.contains('\u{1b}'));
    }
}

#[test]
fn status_shows_state_task_iterations_and_times() {
    let env = Env::new();
    env.start("make the suite green", &["--max-iterations", "10", "--max-hours", "4"]);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").call(2, "t").result(HOUR, "t").text(HOUR + 5, "x");
    env.at(HOUR + 6).stop(SESSION).with(&transcript).says("x").run().goes_on();
    let text = env.at(2 * HOUR).ralph(&["status", "--session", SESSION]).ok();
    for part in [
        "running",
        "this session",
        "make the suite green",
        "1/10",
        "Runtime: 1.0h/4.0h | Wall: 2.0h",
        "Circuit     ok",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_closed_stdout_is_no_error() {
    let env = Env::new();
    env.start("task", &[]);
    let status = env.call(Program::Ralph).args(&["status"]).spawn_unread();
    assert!(status.wait().code.is_some_and(|code| code != 101));
}

#[test]
fn help_and_version_go_to_stdout() {
    let env = Env::new();
    assert!(env.ralph(&["--help"]).ok().contains("start"));
    assert!(env.ralph(&["start", "--help"]).ok().contains("--max-hours"));
    assert!(env.ralph(&["--version"]).ok().contains(env!("CARGO_PKG_VERSION")));
    assert!(env.ralph(&["help"]).ok().contains("/ralph:start"));
}

#[test]
fn install_stages_a_whole_plugin_and_leaves_other_files_alone() {
    let env = Env::new();
    let target = env.base.join("plugin dir");
    let staged = || env.ralph(&["install", "--to", target.to_str().unwrap()]);
    staged().ok();
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(target.join(".claude-plugin/plugin.json")).unwrap()).unwrap();
    assert_eq!(manifest["name"], "ralph");
    for name in ["ralph", "ralph-stop-hook", "ralph-session-start-hook"] {
        assert!(crate::env::mode(&target.join("bin").join(name)) & 0o100 != 0, "{name} can be run");
    }
    for command in ["start", "stop", "status", "config", "help"] {
        let text = std::fs::read_to_string(target.join(format!("commands/{command}.md"))).unwrap();
        assert!(!text.contains("$ARGUMENTS"), "free text never goes through a shell");
    }
    for name in crate::env::names_in(&target.join("hooks")) {
        let hooks: Value =
            serde_json::from_slice(&std::fs::read(target.join("hooks").join(name)).unwrap()).unwrap();
        assert!(hooks["hooks"].is_object());
    }
    staged().ok();
    let foreign = env.base.join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("mine.txt"), "x").unwrap();
    assert_ne!(env.ralph(&["install", "--to", foreign.to_str().unwrap()]).code, Some(0));
    assert_eq!(crate::env::names_in(&foreign), ["mine.txt"]);
}

#[test]
fn the_client_is_open_or_closed_as_its_last_hook_said() {
    let env = Env::new();
    env.start("x", &[]);
    let client = || env.shown(SESSION)["client"].clone();
    assert_eq!(client(), "unknown", "no hook since the start");
    env.at(10).turn(SESSION, "On it.").goes_on();
    assert_eq!(client(), "open");
    env.at(20).event(Program::StopHook, SESSION, "SessionEnd").field("reason", "other").run();
    assert_eq!(client(), "closed");
    env.at(30).session_start(SESSION, "resume").run();
    assert_eq!(client(), "open");
    env.at(40).stop(SESSION).says("x").background("cargo build").run().allows();
    assert_eq!(env.shown(SESSION)["waiting"], json!({"for": "background", "until": null}));
    env.ralph(&["stop", "--session", SESSION]).ok();
    assert_eq!(client(), "unknown", "nothing watches the session of a loop that ended");
}

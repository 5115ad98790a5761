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
    env.at(100).turn(SESSION, "x").continues();
    let entry = json!({"text": "small commits", "timestamp": crate::env::stamp(50)});
    env.set_guidance(json!({"encouraged": [entry], "forbidden": []}));
    env.edit_state(|state| state["constraints"] = json!([{"id": "c1"}]));
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
    assert_eq!(status["guidance"], json!({"encouraged": [], "forbidden": [], "allowed": [], "ignored": []}));
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
    let entry =
        json!({"text": "never touch anything generated ".repeat(20), "timestamp": crate::env::stamp(0)});
    let guidance = json!({"encouraged": [entry.clone()], "forbidden": [entry.clone(), entry]});
    env.edit_state(|state| state["guidance"] = guidance);
    fits("guidance of a repository", &env.ralph(&["status"]).ok());
    env.record_guidance();
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
    env.record_guidance();
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
    env.at(HOUR + 6).stop(SESSION).with(&transcript).says("x").run().continues();
    let text = env.at(2 * HOUR).ralph(&["status", "--session", SESSION]).ok();
    for part in [
        "working",
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
    for name in ["ralph", "ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"] {
        assert!(crate::env::mode(&target.join("bin").join(name)) & 0o100 != 0, "{name} can be run");
    }
    for command in ralph::cli::loops::slash::COMMANDS {
        let text = std::fs::read_to_string(crate::env::command_file(&target, command)).unwrap();
        assert!(!text.contains("$ARGUMENTS"), "free text never goes through a shell");
    }
    for name in crate::env::names_in(&target.join("hooks")).iter().filter(|name| name.ends_with(".json")) {
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
    env.at(10).turn(SESSION, "On it.").continues();
    assert_eq!(client(), "open");
    env.at(20).event(Program::StopHook, SESSION, "SessionEnd").field("reason", "other").run();
    assert_eq!(client(), "closed");
    env.at(30).session_start(SESSION, "resume").run();
    assert_eq!(client(), "open");
    env.at(40).stop(SESSION).says("x").background("cargo build").run().allows();
    assert_eq!(
        env.shown(SESSION)["waiting"],
        json!({
            "for": "background", "until": "2026-11-16T08:10:40.000Z", "what": "cargo build",
        })
    );
    env.ralph(&["stop", "--session", SESSION]).ok();
    assert_eq!(client(), "unknown", "nothing watches the session of a loop that ended");
}

#[test]
fn status_shows_this_sessions_loop_in_full_then_the_others_and_a_line_for_each_that_ended() {
    let env = Env::new();
    for (seconds, session, task) in [(0, SESSION, "the own task"), (10, OTHER, "the other task")] {
        env.at(seconds).start_in(session, task, &[]);
    }
    for (seconds, session) in [(20, "ended-1"), (30, "ended-2")] {
        env.at(seconds).start_in(session, &format!("the task of {session}"), &[]);
        env.turn(session, DONE).ended("complete");
    }
    env.at(40).turn(SESSION, DONE).ended("complete");
    let in_order = |text: &str, parts: &[&str]| {
        let places: Vec<_> = parts.iter().map(|part| text.find(part)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{text}");
    };
    for text in [
        env.at(100).ralph(&["status", "--session", SESSION]).ok(),
        env.types(SESSION, "status", "").block.expect("an answer without a model call"),
    ] {
        in_order(
            &text,
            &[
                "■ ended: complete · this session\n  Task        the own task",
                "  Reason      task complete: ",
                "● working\n  Task        the other task",
                "■ ended: complete · 1 iteration · 1m ago · run ",
                " · the task of ended-2\n■ ended: complete · 1 iteration",
                " · the task of ended-1\n",
            ],
        );
        assert_eq!(text.matches("  Task  ").count(), 2, "{text}");
    }
    let text = env.ralph(&["status"]).ok();
    in_order(
        &text,
        &["● working\n  Task        the other task", "■ ended: complete · 1 iteration", " · the own task\n"],
    );
    assert_eq!(text.matches("  Task  ").count(), 1, "{text}");
    env.ralph(&["stop"]).ok();
    let text = env.ralph(&["status"]).ok();
    in_order(&text, &["■ ended: stopped\n  Task        the other task", "  Next  ", "■ ended: complete · "]);
}

#[test]
fn status_of_all_projects_has_a_line_for_each_loop_elsewhere() {
    let env = Env::new();
    let elsewhere = |name: &str, args: &[&str]| {
        let folder = env.base.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        env.call(Program::Ralph).args(args).cwd(&folder).run().ok()
    };
    env.start("the task here", &[]);
    elsewhere("b", &["start", "--session", OTHER, "the task in b"]);
    elsewhere("c", &["start", "--session", "s-c", "the task in c"]);
    elsewhere("c", &["stop"]);
    elsewhere("d", &["start", "--session", "s-d", "the task in d"]);
    std::fs::write(env.base.join("d/.claude/ralph-state.json"), "damaged").unwrap();
    elsewhere("gone", &["start", "--session", "s-e", "the task in e"]);
    std::fs::remove_dir_all(env.base.join("gone")).unwrap();
    let expected = |text: &str| {
        let (here, others) =
            text.split_once(&format!("\nRalph · {}\n", env.base.join("b").display())).unwrap();
        assert!(here.contains("the task here") && here.contains("  Circuit"), "in full: {text}");
        let masked = regex::Regex::new("run [0-9a-f]+").unwrap().replace_all(others, "run ID").into_owned();
        let c = format!("\nRalph · {}\n", env.base.join("c").display());
        assert!(
            masked.starts_with(&format!(
                "● working · 0 iterations · 1m ago · run ID · the task in b\n{c}\
                 ■ ended: stopped · 0 iterations · 1m ago · run ID · the task in c\n"
            )),
            "{masked}"
        );
        assert!(masked.contains("is damaged") && !masked.contains("gone"), "{masked}");
        fits("all projects", &masked.replace(env.base.to_str().unwrap(), ""));
    };
    env.at(90);
    expected(&env.ralph(&["status", "--all"]).ok());
    expected(&env.types(SESSION, "status", "--all").message.expect("the status"));
    assert!(!env.ralph(&["status"]).ok().contains("the task in b"));
    let all: Value = serde_json::from_str(&env.ralph(&["status", "--all", "--json"]).ok()).unwrap();
    let tasks: Vec<_> =
        all["projects"].as_array().unwrap().iter().map(|one| &one["loops"][0]["task"]).collect();
    assert_eq!(
        tasks,
        [&json!("the task here"), &json!("the task in b"), &json!("the task in c"), &Value::Null]
    );
}

#[test]
fn status_in_a_running_session_does_not_wait_for_the_command_that_asks() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(1).queue(5, "enqueue", "/ralph:status");
    env.at(20).stop(SESSION).with(&transcript).says("x").run().allows();
    let text = env.types(SESSION, "status", "").message.expect("the status");
    assert!(text.contains("● working · this session"), "{text}");
}

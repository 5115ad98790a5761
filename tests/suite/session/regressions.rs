//! Bugs that were here once, one test each.

use crate::env::{DONE, Env, HOUR, OTHER, Program, SESSION, names_in};
use serde_json::{Value, json};
use std::fs;

/// Esc was pressed, and another hook than Stop saw it first.
#[test]
fn an_esc_that_another_hook_saw_first_still_pauses() {
    for first in ["SessionEnd", "compact", "StopFailure"] {
        let env = Env::new();
        env.start("task", &[]);
        let transcript = env.transcript();
        transcript.worked(1).esc(15);
        env.at(16);
        match first {
            "SessionEnd" => env.event(Program::SessionStartHook, SESSION, first).field("reason", "other"),
            "compact" => env.session_start(SESSION, first),
            _ => env.event(Program::StopHook, SESSION, first).field("error", "overloaded"),
        }
        .with(&transcript)
        .run();
        transcript.prompt(20, "q", "what is this?").text(25, "explained");
        let answer = env.at(30).stop(SESSION).with(&transcript).prompt_id("q").says("explained").run();
        assert_eq!(answer.block, None, "{first}: {answer:?}");
        assert_eq!(env.shown(SESSION)["state"], "paused", "{first}");
        let again = env.at(40).stop(SESSION).with(&transcript).prompt_id("q").says(DONE).run();
        assert_eq!(again.block, None, "{first}: {again:?}");
        assert_eq!(env.shown(SESSION)["state"], "paused", "{first}");
    }
}

#[test]
fn a_command_after_esc_is_answered_at_once_and_the_loop_is_paused() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(1).esc(15);
    let typed = env.at(20).event(Program::SessionStartHook, SESSION, "UserPromptExpansion");
    let answer =
        typed.with(&transcript).field("command_name", "ralph:status").field("command_args", "").run();
    assert!(answer.block.as_deref().is_some_and(|told| told.contains("paused")), "{answer:?}");
    assert_eq!(env.shown(SESSION)["state"], "paused");
    let answer = env.at(30).stop(SESSION).with(&transcript).says("x").run();
    assert_eq!(answer.block, None, "{answer:?}");
}

#[test]
fn a_loop_started_from_a_terminal_gives_the_agent_the_whole_task_once() {
    let env = Env::new();
    let task = format!("begin {} end of the task", "migrate the module, ".repeat(100));
    env.start(&task, &[]);
    let first = env.turn(SESSION, "x");
    assert!(first.context.as_deref().is_some_and(|text| text.contains(&task)), "{first:?}");
    assert!(first.continues().chars().count() < 600, "{first:?}");
    let second = env.turn(SESSION, "x");
    assert_eq!(second.context, None);
    assert!(!second.continues().contains("end of the task") && second.continues().chars().count() < 600);
}

#[test]
fn a_refused_adoption_leaves_the_loop_where_it_was() {
    let env = Env::new();
    env.start("the task", &["--max-iterations", "5"]);
    env.turn(SESSION, "x").continues();
    env.turn(SESSION, "x").continues();
    env.event(Program::SessionStartHook, SESSION, "SessionEnd").field("reason", "other").run();
    let before = env.state();
    let armed = names_in(&env.data().join("sessions"));
    let told = env.ralph(&["start", "--resume", "--max-iterations", "2", "--session", OTHER]).fails(1);
    assert!(told.contains("limit"), "{told}");
    assert_eq!((env.state(), names_in(&env.data().join("sessions"))), (before, armed));
    env.turn(OTHER, "x").silent();
    env.turn(SESSION, "x").continues();
    assert_eq!(env.shown(SESSION)["max_iterations"], 5);
}

#[test]
fn a_replacement_that_cannot_be_saved_leaves_the_old_loop_alive() {
    let env = Env::new();
    env.start("the old task", &[]);
    env.turn(SESSION, "x").continues();
    env.write(".claude/ralph-state.json.tmp-new/in-the-way", "");
    let told = env.ralph(&["start", "--replace", "--session", SESSION, "new"]).fails(70);
    assert!(told.contains("ralph-state.json"), "{told}");
    fs::remove_dir_all(env.path(".claude/ralph-state.json.tmp-new")).unwrap();
    assert!(env.history().is_empty(), "nothing ended");
    let shown = env.shown(SESSION);
    assert_eq!((&shown["task"], &shown["state"]), (&json!("the old task"), &json!("running")));
    assert!(env.turn(SESSION, "x").continues().contains("the old task"));
}

#[test]
fn a_loop_moves_from_an_open_session_only_by_name_and_that_session_is_told() {
    let env = Env::new();
    env.start("the task", &[]);
    env.turn(SESSION, "x").continues();
    let told = env.ralph(&["start", "--resume", "--session", OTHER]).fails(1);
    assert!(told.contains("--run"), "{told}");
    env.turn(SESSION, "x").continues();
    let run = env.shown(SESSION)["run_id"].as_str().unwrap()[..8].to_owned();
    env.at(60).ralph(&["start", "--resume", "--run", &run, "--session", OTHER]).ok();
    let left = env.at(70).turn(SESSION, "x");
    assert!(left.ended("interrupted").contains(&OTHER[..8]), "{left:?}");
    env.at(80).turn(SESSION, "x").silent();
    assert!(env.turn(OTHER, "x").continues().contains("the task"));
    assert_eq!(env.shown(OTHER)["iteration"], 3);
}

#[test]
fn a_loop_whose_session_was_closed_is_taken_over_without_a_name() {
    let env = Env::new();
    env.start("the task", &[]);
    env.turn(SESSION, "x").continues();
    env.event(Program::SessionStartHook, SESSION, "SessionEnd").field("reason", "other").run();
    env.at(60).ralph(&["start", "--resume", "--session", OTHER]).ok();
    assert!(env.at(70).turn(OTHER, "x").continues().contains("the task"));
    assert_eq!(env.turn(SESSION, "x").block, None);
    let running = env.status()["loops"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|record| record["state"] == "running")
        .count();
    assert_eq!(running, 1);
}

#[test]
fn a_half_written_settings_file_changes_no_limit_and_is_named_once() {
    let env = Env::without_breaker();
    let whole =
        r#"{"loop_limits": {"max_iterations": 7, "max_hours": 3}, "completion": {"promise": "FERTIG"}}"#;
    env.write(".claude/ralph-config.json", whole);
    env.start("task", &[]);
    env.turn(SESSION, "x").continues();
    env.write(".claude/ralph-config.json", &whole[..40]);
    let answer = env.turn(SESSION, "x");
    assert!(answer.continues().contains("of 7") && answer.continues().contains("FERTIG"), "{answer:?}");
    assert!(!answer.continues().contains("limits were changed"));
    assert!(answer.message.unwrap().contains("ralph-config.json"));
    let answer = env.turn(SESSION, "x");
    assert!(answer.continues().contains("of 7"), "{answer:?}");
    assert!(!answer.message.unwrap().contains("ralph-config.json"), "once");
    assert_eq!(env.shown(SESSION)["max_iterations"], 7);
    env.write(".claude/ralph-config.json", whole.replace('7', "6"));
    assert!(env.turn(SESSION, "x").continues().contains("of 6"));
}

#[test]
fn a_loop_whose_state_is_damaged_or_gone_ends_as_an_error_everywhere() {
    for damage in [Some("{\"loops\": {"), Some("{}"), Some(""), None] {
        let env = Env::new();
        env.start("the task", &[]);
        env.turn(SESSION, "x").continues();
        match damage {
            Some(text) => drop(env.write(".claude/ralph-state.json", text)),
            None => fs::remove_file(env.path(".claude/ralph-state.json")).unwrap(),
        }
        let answer = env.at(60).turn(SESSION, "x");
        assert!(answer.ended("error").contains("ralph-state.json"), "{damage:?}: {answer:?}");
        let shown = env.shown(SESSION);
        assert_eq!((&shown["outcome"], &shown["state"]), (&json!("error"), &json!("stopped")), "{damage:?}");
        assert_eq!(shown["task"], "the task");
        let history = env.history();
        assert_eq!((history.len(), &history[0]["outcome"]), (1, &json!("error")), "{damage:?}");
        env.at(70).turn(SESSION, "x").silent();
        assert_eq!(env.history().len(), 1);
    }
}

#[test]
fn silence_after_the_models_answer_is_no_runtime() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").text(10, "answered");
    env.at(HOUR).stop(SESSION).with(&transcript).prompt_id("p").says("answered").run().continues();
    let runtime = env.shown(SESSION)["runtime_seconds"].as_f64().unwrap();
    assert!((9.0..=11.0).contains(&runtime), "{runtime}");
}

#[test]
fn a_tool_call_without_a_result_counts_no_night() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").call(10, "t");
    // A new prompt led to this turn. The transcript does not show it yet, but the client says that no hook did.
    let stop = env.at(8 * HOUR).stop(SESSION).with(&transcript).field("stop_hook_active", false);
    stop.says("good morning").run().continues();
    let runtime = env.shown(SESSION)["runtime_seconds"].as_f64().unwrap();
    assert!(runtime < 400.0, "{runtime}");
}

#[test]
fn the_waker_without_a_loop_leaves_at_once() {
    let env = Env::new();
    // It stands still, so that a wait for a quiet session would never end.
    let _clock = env.clock();
    let transcript = env.transcript();
    let payload = json!({"session_id": SESSION, "hook_event_name": "Stop", "cwd": env.project,
        "transcript_path": transcript.path});
    let wake = || {
        let call = env.call(Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", "cli");
        let run = call.stdin(payload.to_string()).run();
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    };
    let before = env.snapshot();
    wake();
    assert_eq!(env.snapshot(), before);
    // Nor does the loop of another session keep it.
    env.start_in(OTHER, "theirs", &[]);
    wake();
}

#[test]
fn a_whole_number_is_written_as_one() {
    let env = Env::new();
    env.ralph(&["config", "loop_limits.max_hours", "6"]).ok();
    env.ralph(&["config", "loop_limits.min_hours", "0.5"]).ok();
    env.ralph(&["config", "loop_limits.max_cost_usd", "06.0"]).ok();
    let text = env.read(".claude/ralph-config.json");
    assert!(text.contains("\"max_hours\": 6,") && text.contains("\"min_hours\": 0.5"), "{text}");
    assert!(!text.contains("6.0"), "{text}");
    let shown: Value = serde_json::from_str(&env.ralph(&["config", "--json"]).ok()).unwrap();
    assert!(!shown.to_string().contains("6.0"), "{shown}");
}

#[test]
fn a_transcript_that_is_a_pipe_delays_no_hook() {
    let env = Env::new();
    env.start("task", &[]);
    let pipe = env.base.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let path = pipe.to_str().unwrap();
    env.stop(SESSION).field("transcript_path", path).says("x").run().continues();
    env.session_start(SESSION, "compact").field("transcript_path", path).run();
    env.event(Program::StopHook, SESSION, "StopFailure").field("transcript_path", path).run();
    env.event(Program::SessionStartHook, SESSION, "SessionEnd").field("transcript_path", path).run();
    let typed = env.event(Program::SessionStartHook, SESSION, "UserPromptExpansion");
    typed.field("transcript_path", path).field("command_name", "ralph:status").run();
}

#[test]
fn a_null_among_the_flags_loses_no_flag() {
    for name in ["preset", "environment", "files"] {
        let env = Env::new();
        env.start("task", &["--max-iterations", "3"]);
        env.edit_state(|state| state["loops"][SESSION]["given"][name] = Value::Null);
        env.turn(SESSION, "x").continues();
        assert_eq!(env.shown(SESSION)["max_iterations"], 3, "{name}");
        env.turn(SESSION, "x").continues();
        env.turn(SESSION, "x").ended("max-iterations");
    }
}

#[test]
fn an_explicit_minimum_over_a_presets_maximum_raises_it() {
    let env = Env::new();
    let told = env.start("task", &["--poc", "--min-hours", "1", "--min-iterations=30"]);
    assert!(told.contains("loop_limits.max_hours") && told.contains("raised"), "it is said: {told}");
    let shown = env.shown(SESSION);
    assert_eq!(shown["max_runtime_seconds"].as_f64(), Some(3600.0));
    assert_eq!(shown["max_iterations"], 30);
    assert!(env.turn(SESSION, DONE).continues().contains("Completion rejected: minimum runtime"));
}

#[test]
fn a_promise_after_code_within_a_line_is_seen() {
    for before in ["```cargo test``` is green", "```inline```", "```a``` and ```b```\n\n```\ncode\n```"] {
        let env = Env::new();
        env.start("task", &[]);
        env.turn(SESSION, &format!("{before}\n\n<promise>COMPLETE</promise>")).ended("complete");
    }
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, "```\n<promise>COMPLETE</promise>").continues();
}

fn is_clean(text: &str) {
    for raw in ["\u{1b}", "\u{7}", "\u{9b}", "\\u001b", "\\u0007", "\\u009b"] {
        assert!(!text.contains(raw), "{raw:?} in {text:?}");
    }
}

fn with_escape_codes_in_the_promise() -> Env {
    let env = Env::new();
    let config = json!({"completion": {"promise": "DO\u{1b}[31mNE\u{7}\u{9b}2J"}});
    env.write(".claude/ralph-config.json", config.to_string());
    env
}

/// What the command file prints in the client's terminal is as untrusted as a hook's answer.
#[test]
fn escape_codes_in_a_projects_promise_are_not_relayed() {
    let env = with_escape_codes_in_the_promise();
    env.types(SESSION, "start", "task");
    is_clean(&env.ralph(&["relay", "start", "--session", SESSION]).ok());
    let slash = env.call(Program::Ralph).args(&["slash", "start", "--session", OTHER]).stdin("task");
    is_clean(&slash.run().ok());
}

#[test]
fn escape_codes_in_a_projects_promise_are_in_no_hooks_answer() {
    let env = with_escape_codes_in_the_promise();
    let typed = env.event(Program::SessionStartHook, SESSION, "UserPromptExpansion");
    let typed = typed.field("command_name", "ralph:start").field("command_args", "task");
    is_clean(&typed.call().run().stdout);
    is_clean(&env.stop(SESSION).says("x").call().run().stdout);
    is_clean(&env.session_start(SESSION, "compact").call().run().stdout);
    is_clean(&env.ralph(&["config"]).ok());
    is_clean(&env.start("another", &["--replace"]));
    let told = env.turn(SESSION, "done\n<promise>DO[31mNE2J</promise>");
    told.ended("complete");
    is_clean(&told.message.unwrap());
}

//! Settings of a run: precedence, presets, durations and invalid values.

use crate::env::{Env, HOUR, OTHER, Program, SESSION};
use serde_json::{Value, json};
use std::fs;

/// The effective value and its source.
fn effective(env: &Env, key: &str) -> (Value, String) {
    let text = env.ralph(&["config", "--json"]).ok();
    let all: Value = serde_json::from_str(&text).unwrap();
    let row = &all["settings"][key];
    (row["value"].clone(), row["source"].as_str().unwrap_or_default().to_owned())
}

fn user_file(env: &Env, value: Value) {
    fs::write(env.base.join("config/config.json"), value.to_string()).unwrap();
}

fn project_file(env: &Env, value: Value) {
    env.write(".claude/ralph-config.json", value.to_string());
}

#[test]
fn flags_beat_variables_beat_project_beat_user_beat_defaults() {
    let env = Env::new();
    let most = |env: &Env| env.shown(SESSION)["max_iterations"].clone();
    env.start("default", &[]);
    assert_eq!(most(&env), 50);
    user_file(&env, json!({"loop_limits": {"max_iterations": 11}}));
    env.start("user", &["--replace"]);
    assert_eq!(most(&env), 11);
    project_file(&env, json!({"loop_limits": {"max_iterations": 12}}));
    env.start("project", &["--replace"]);
    assert_eq!(most(&env), 12);
    env.var("RALPH_MAX_ITERATIONS", "13").start("variable", &["--replace"]);
    assert_eq!(most(&env), 13);
    env.start("flag", &["--replace", "--max-iterations", "14"]);
    assert_eq!(most(&env), 14);
}

#[test]
fn an_explicit_flag_wins_where_it_equals_the_default() {
    let env = Env::new();
    project_file(&env, json!({"loop_limits": {"max_iterations": 2}}));
    env.start("task", &["--max-iterations", "50"]);
    assert_eq!(env.shown(SESSION)["max_iterations"], 50);
    for turn in 0..3 {
        env.at(turn).turn(SESSION, "x").continues();
    }
}

#[test]
fn flags_and_variables_of_the_start_hold_in_hooks_that_have_neither() {
    let env = Env::new();
    env.var("RALPH_MAX_ITERATIONS", "2").start("task", &["--promise", "FINI"]);
    env.without("RALPH_MAX_ITERATIONS");
    env.turn(SESSION, "<promise>COMPLETE</promise>").continues();
    env.turn(SESSION, "x").ended("max-iterations");
}

#[test]
fn a_file_changed_while_the_loop_runs_takes_effect_at_the_next_turn() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, "x").continues();
    env.ralph(&["config", "loop_limits.max_iterations", "3"]).ok();
    let prompt = env.turn(SESSION, "x").continues().to_owned();
    assert!(prompt.contains("of 3"), "{prompt}");
    env.turn(SESSION, "x").ended("max-iterations");
}

#[test]
fn the_presets_are_as_documented() {
    let env = Env::new();
    let told = env.start("task", &["--poc"]);
    assert!(told.contains("20 iterations") && told.contains("10m"), "{told}");
    let shown = env.shown(SESSION);
    assert_eq!(shown["max_iterations"], 20);
    // Rejected until the minimum of 5 minutes and 10 iterations is reached, then accepted.
    for turn in 1..10 {
        env.at(turn * 20).turn(SESSION, "<promise>COMPLETE</promise>").continues();
    }
    env.at(301).turn(SESSION, "<promise>COMPLETE</promise>").ended("complete");

    env.start_in(OTHER, "task", &["--production", "--max-iterations=60"]);
    let shown = env.shown(OTHER);
    assert_eq!(shown["max_iterations"], 60, "a flag beside a preset wins");
    let told = env.at(302).turn(OTHER, "<promise>COMPLETE</promise>").continues().to_owned();
    assert!(told.contains("4h") && told.contains("50"), "the minimums are named: {told}");
    env.ralph(&["start", "--session", "third", "--poc", "--production", "x"]).fails(64);
}

#[test]
fn a_preset_counts_as_flags_do() {
    let env = Env::new();
    project_file(&env, json!({"loop_limits": {"max_iterations": 3}}));
    env.var("RALPH_MAX_ITERATIONS", "4").start("task", &["--poc"]);
    assert_eq!(env.shown(SESSION)["max_iterations"], 20);
}

#[test]
fn bad_flags_are_usage_errors_and_arm_nothing() {
    let env = Env::new();
    for (flags, named) in [
        (&["--max-iteration", "3"][..], "--max-iteration"),
        (&["--bogus"], "--bogus"),
        (&["--max-iterations", "3.5"], "--max-iterations"),
        (&["--max-iterations=-1"], "--max-iterations"),
        (&["--max-iterations=0x10"], "--max-iterations"),
        (&["--max-hours", "soon"], "--max-hours"),
        (&["--max-hours", "nan"], "--max-hours"),
        (&["--max-hours="], "--max-hours"),
        (&["--promise="], "--promise"),
        (&["--resume=yes"], "--resume"),
        (&["--min-iterations=9", "--max-iterations=3"], "--min-iterations"),
        (&["--run", "abc"], "--run"),
    ] {
        let mut args = vec!["start", "--session", SESSION, "task"];
        args.extend(flags);
        let told = env.ralph(&args).fails(64);
        assert!(told.contains(named), "{flags:?}: {told}");
    }
    env.ralph(&["start", "--session", SESSION]).fails(64);
    env.ralph(&["start", "--session", SESSION, "  \n "]).fails(64);
    env.ralph(&["nonsense"]).fails(64);
    env.ralph(&[]).fails(64);
    env.ralph(&["stop", "--all", "--session", SESSION]).fails(64);
    env.ralph(&["status", "--yaml"]).fails(64);
    assert!(!env.exists(".claude"));
}

#[test]
fn durations_are_accepted_the_same_way_everywhere() {
    let env = Env::new();
    let told = env.start("task", &["--max-hours", "1h 30m", "--gap-threshold", "10m"]);
    assert!(told.contains("1h 30m runtime"), "{told}");
    assert_eq!(env.shown(SESSION)["max_runtime_seconds"].as_f64(), Some(5400.0));
    env.var("RALPH_TIMEOUT", "1h30m");
    project_file(&env, json!({"guidance": {"max_age_hours": "90m"}, "run": {"delay_seconds": "1m"}}));
    env.ralph(&["config", "--user", "heartbeat.tool_seconds", "45m"]).ok();
    for (key, value) in [
        ("run.timeout_minutes", json!(90)),
        ("guidance.max_age_hours", json!(1.5)),
        ("run.delay_seconds", json!(60)),
        ("heartbeat.tool_seconds", json!(2700)),
    ] {
        assert_eq!(effective(&env, key).0, value, "{key}");
    }
    env.guidance(&["encourage", "--for", "1h 30m", "x"]).ok();
    assert_eq!(env.status()["guidance"]["encouraged"][0]["for_seconds"].as_f64(), Some(5400.0));
    let wrong = env.ralph(&["run", "--timeout", "soon", "x"]).fails(64);
    assert!(
        wrong.contains("--timeout: 'soon' is not a duration such as 90m, 1h30m or a number of minutes"),
        "{wrong}"
    );
}

#[test]
fn leading_zeros_are_decimal_everywhere() {
    let env = Env::new();
    env.var("RALPH_MIN_ITERATIONS", "010");
    project_file(&env, json!({"loop_limits": {"max_hours": "08"}}));
    assert_eq!(effective(&env, "loop_limits.min_iterations"), (json!(10), "environment".into()));
    assert_eq!(effective(&env, "loop_limits.max_hours"), (json!(8), "project".into()));
}

#[test]
fn an_invalid_value_is_ignored_alone_and_reported_with_its_file() {
    let env = Env::new();
    project_file(&env, json!({"loop_limits": {"max_hours": "soon", "max_iterations": 7, "min_hours": null}}));
    user_file(&env, json!({"loop_limits": {"max_hours": 4}}));
    let told = env.start("task", &[]);
    assert!(told.contains("ralph-config.json") && told.contains("loop_limits.max_hours"), "{told}");
    assert_eq!(env.shown(SESSION)["max_iterations"], 7, "the rest stands");
    assert_eq!(effective(&env, "loop_limits.max_hours"), (json!(4), "user".into()));
    let first = env.turn(SESSION, "x").message.unwrap();
    assert!(!first.contains("soon"), "told at the start, not again at every turn: {first}");
}

#[test]
fn an_invalid_value_that_appears_later_is_reported_once() {
    let env = Env::new();
    env.start("task", &[]);
    project_file(&env, json!({"circuit": {"idle": -3}}));
    let told = env.turn(SESSION, "x").message.unwrap();
    assert!(told.contains("circuit.idle") && told.contains("ralph-config.json"), "{told}");
    let told = env.turn(SESSION, "x").message.unwrap();
    assert!(!told.contains("circuit.idle"), "{told}");
}

#[test]
fn the_flags_of_run_are_variables_too_and_beat_them() {
    let iterations = |flags: &[&str], variables: &[(&str, &str)]| {
        let env = Env::without_breaker();
        env.write(".claude/ralph-config.json", r#"{"run": {"max_iterations": 4, "delay_seconds": 0}}"#);
        for (name, value) in variables {
            env.var(name, value);
        }
        let run = env
            .call(Program::Ralph)
            .args(&["run", "--agent-command", "echo x >> work", "x"])
            .args(flags)
            .run();
        assert_eq!(run.code, Some(1), "{run:?}");
        env.rows().len()
    };
    assert_eq!(iterations(&[], &[]), 4);
    assert_eq!(iterations(&[], &[("RALPH_MAX_ITERATIONS", "3")]), 3);
    let both = [("RALPH_MAX_ITERATIONS", "3"), ("RALPH_RUN_MAX_ITERATIONS", "2")];
    assert_eq!(iterations(&[], &both), 2, "its own name is the stronger");
    assert_eq!(iterations(&["--max-iterations", "1"], &both), 1);

    let env = Env::new();
    env.var("RALPH_DELAY", "7.5").var("RALPH_TIMEOUT", "2").var("RALPH_CALLS_PER_HOUR", "9");
    env.var("RALPH_HEARTBEAT_INTERVAL", "30")
        .var("RALPH_TOOL_LIMIT", "x")
        .var("RALPH_HEARTBEAT_TOOL_SECONDS", "5");
    for (key, value) in [
        ("run.delay_seconds", json!(7.5)),
        ("run.timeout_minutes", json!(2)),
        ("run.calls_per_hour", json!(9)),
        ("heartbeat.interval_seconds", json!(30)),
        ("heartbeat.tool_seconds", json!(5)),
    ] {
        assert_eq!(effective(&env, key), (value, "environment".into()), "{key}");
    }
}

#[test]
fn an_invalid_variable_is_reported() {
    let env = Env::new();
    let told = env.var("RALPH_MAX_HOURS", "-1").start("task", &[]);
    assert!(told.contains("RALPH_MAX_HOURS"), "{told}");
    assert_eq!(effective(&env, "loop_limits.max_hours"), (json!(9), "default".into()));
}

#[test]
fn with_a_settings_file_that_is_not_json_the_defaults_count() {
    for broken in ["{\"loop_limits\": ", "[]", "", "\u{0}"] {
        let env = Env::new();
        env.write(".claude/ralph-config.json", broken);
        let told = env.start("task", &[]);
        assert!(told.contains("ralph-config.json"), "{broken:?}: {told}");
        env.turn(SESSION, "x").continues();
        assert_eq!(env.shown(SESSION)["max_iterations"], 50);
    }
}

#[test]
fn zero_means_no_limit_and_must_be_asked_for() {
    let env = Env::new();
    let told = env.start("task", &["--max-iterations", "0", "--max-hours", "0", "--max-idle", "0"]);
    assert!(told.contains("no iteration limit") && told.contains("no runtime limit"), "{told}");
    env.edit_state(|state| state["loops"][SESSION]["iteration"] = json!(100_000));
    env.at(200 * HOUR).turn(SESSION, "x").continues();
    assert_eq!(env.shown(SESSION)["max_iterations"], 0);
}

#[test]
fn a_minimum_above_its_maximum_does_not_keep_the_loop_running() {
    let env = Env::new();
    project_file(&env, json!({"loop_limits": {"min_iterations": 9, "max_iterations": 2}}));
    env.start("task", &[]);
    env.turn(SESSION, "<promise>COMPLETE</promise>");
    let last = env.turn(SESSION, "<promise>COMPLETE</promise>");
    assert!(last.block.is_none(), "{last:?}");
}

#[test]
fn a_task_on_stdin_is_kept_whole_and_flags_in_it_are_text() {
    let env = Env::new();
    let task = "fix \"it\" $(now)\n--max-iterations 3\n`x` 🦀";
    let call = env.call(crate::env::Program::Ralph).args(&["start", "--session", SESSION, "-"]);
    call.stdin(task).run().ok();
    assert_eq!(env.record(SESSION)["task"], task);
    assert_eq!(env.shown(SESSION)["max_iterations"], 50);
}

#[test]
fn the_session_comes_from_the_flag_else_from_the_client() {
    let env = Env::new();
    env.var("CLAUDE_CODE_SESSION_ID", OTHER);
    env.ralph(&["start", "one"]).ok();
    assert_eq!(env.record(OTHER)["task"], "one");
    env.ralph(&["start", "--session", SESSION, "two"]).ok();
    assert_eq!(env.record(SESSION)["task"], "two");
    env.ralph(&["stop"]).ok();
    assert_eq!(
        (env.shown(OTHER)["state"].clone(), env.shown(SESSION)["state"].clone()),
        (json!("stopped"), json!("running"))
    );
}

//! What the project's file says while a loop runs cannot loosen it; a tightening counts at once. Both are told.

use crate::env::{Env, HOUR, OTHER, Program, SESSION};
use serde_json::{Value, json};

const FILE: &str = ".claude/ralph-config.json";

/// Returns the value that holds for the session's loop.
fn holds(env: &Env, key: &str) -> Value {
    let call = env.call(Program::Ralph).args(&["config", key, "--json"]);
    let text = call.var("CLAUDE_CODE_SESSION_ID", SESSION).run().ok();
    serde_json::from_str::<Value>(&text).unwrap()["settings"][key]["value"].clone()
}

fn says(env: &Env, key: &str, value: &Value) {
    env.write(FILE, json!({key: value}).to_string());
}

/// Every limit with its default, a looser and a stricter value.
fn limits() -> Vec<(&'static str, Value, Value, Value)> {
    let rule = json!({"id": "mine", "pattern": "x", "severity": "high", "message": "m"});
    vec![
        ("loop_limits.min_hours", json!(0), Value::Null, json!(2)),
        ("loop_limits.max_hours", json!(9), json!(900), json!(2)),
        ("loop_limits.max_hours", json!(9), json!(0), json!(2)),
        ("loop_limits.min_iterations", json!(0), Value::Null, json!(5)),
        ("loop_limits.max_iterations", json!(50), json!(0), json!(5)),
        ("loop_limits.max_cost_usd", Value::Null, Value::Null, json!(3)),
        ("loop_limits.cli_gap_threshold_seconds", json!(300), json!(1), json!(600)),
        ("completion.verify_timeout_seconds", json!(600), json!(3000), json!(5)),
        ("permission.wait_minutes", json!(5), json!(0), json!(2)),
        ("background.wait_minutes", json!(10), json!(600), json!(0)),
        ("guidance.max_age_hours", json!(24), json!(0), json!(48)),
        ("scan.enabled", json!(true), json!(false), Value::Null),
        ("scan.rules", json!([]), Value::Null, json!([rule])),
        ("scan.exclude", json!([]), json!(["**"]), Value::Null),
        ("run.max_iterations", json!(50), json!(51), json!(5)),
        ("run.max_stuck", json!(3), json!(0), json!(2)),
        ("run.timeout_minutes", json!(15), json!(0), json!(5)),
        ("run.calls_per_hour", json!(100), json!(0), json!(5)),
        ("run.delay_seconds", json!(3), json!(0), json!(9)),
        ("run.review_cap", json!(5), json!(1), json!(0)),
        ("heartbeat.interval_seconds", json!(60), json!(600), json!(6)),
        ("heartbeat.threshold", json!(5), json!(0), json!(2)),
        ("heartbeat.startup_grace_seconds", json!(120), json!(999), json!(0)),
        ("heartbeat.tool_seconds", json!(1800), json!(99999), json!(60)),
        ("circuit.completion", json!(2), json!(1), json!(0)),
        ("circuit.idle", json!(5), json!(0), json!(2)),
        ("circuit.stagnation", json!(5), json!(9), json!(2)),
        ("circuit.output_decline", json!(70), json!(99), json!(20)),
    ]
}

#[test]
fn the_file_loosens_no_limit_of_a_loop_that_runs_and_tightens_it_at_once() {
    let env = Env::new();
    env.start("task", &[]);
    for (key, default, looser, stricter) in limits() {
        assert_eq!(holds(&env, key), default, "{key}");
        for (value, expected) in [(&looser, &default), (&stricter, &stricter)] {
            if value.is_null() {
                continue;
            }
            says(&env, key, value);
            assert_eq!(&holds(&env, key), expected, "{key} {value}");
            std::fs::remove_file(env.path(FILE)).unwrap();
        }
    }
}

#[test]
fn what_the_file_said_at_the_start_cannot_be_taken_away() {
    for (key, default, _, stricter) in limits().into_iter().filter(|(.., stricter)| !stricter.is_null()) {
        let env = Env::new();
        says(&env, key, &stricter);
        env.start("task", &[]);
        says(&env, key, &default);
        assert_eq!(holds(&env, key), stricter, "{key}: changed");
        std::fs::remove_file(env.path(FILE)).unwrap();
        assert_eq!(holds(&env, key), stricter, "{key}: removed");
    }
}

#[test]
fn a_change_is_told_once_at_the_next_turn() {
    let env = Env::new();
    env.start("task", &[]);
    says(&env, "loop_limits.max_iterations", &json!(500));
    let told = env.turn(SESSION, "x").message.unwrap();
    assert!(told.contains("Ralph 1/50") && told.contains("max_iterations 500 ignored"), "{told}");
    assert!(told.contains("`ralph config loop_limits.max_iterations VALUE`"), "{told}");
    assert!(!env.turn(SESSION, "x").message.unwrap().contains("is looser"), "once");
    says(&env, "loop_limits.max_iterations", &json!(20));
    let told = env.turn(SESSION, "x").message.unwrap();
    assert!(
        told.contains("Ralph 3/20") && told.contains("is now 20, stricter than at the start (50)"),
        "{told}"
    );
    assert!(!env.turn(SESSION, "x").message.unwrap().contains("stricter"), "once");
}

#[test]
fn a_breaker_and_a_scan_that_the_agent_switches_off_stay_on() {
    let env = Env::new();
    env.start("task", &[]);
    env.write(
        FILE,
        json!({"circuit.stagnation": 0, "circuit.repetition": 0, "scan": {"enabled": false}}).to_string(),
    );
    env.write("build.toml", "dir = \"/Users/sam/x\"\n");
    assert!(env.turn(SESSION, "Thought about it.").continues().contains("/Users/"), "scanned");
    for _ in 0..3 {
        env.turn(SESSION, "Thought about it.");
    }
    assert_ne!(env.shown(SESSION)["state"], "running", "the breaker tripped");
}

#[test]
fn a_minimum_raises_no_maximum_of_a_loop_that_runs() {
    let env = Env::new();
    env.start("task", &[]);
    says(&env, "loop_limits.min_iterations", &json!(500));
    assert_eq!(holds(&env, "loop_limits.max_iterations"), json!(50));
    assert_eq!(holds(&env, "loop_limits.min_iterations"), json!(50));
}

#[test]
fn the_user_changes_a_limit_with_ralph_config_and_the_agent_cannot_go_beyond() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    env.ralph(&["config", "loop_limits.max_iterations", "80"]).ok();
    let told = env.turn(SESSION, "x").message.unwrap();
    assert!(told.contains("Ralph 1/80") && !told.contains("loosen"), "{told}");
    says(&env, "loop_limits.max_iterations", &json!(500));
    assert!(env.turn(SESSION, "x").message.unwrap().contains("Ralph 2/80"));
    env.types(SESSION, "config", "loop_limits.max_iterations --unset");
    assert!(env.turn(SESSION, "x").message.unwrap().contains("Ralph 3/50"));
    env.ralph(&["config", "--user", "loop_limits.max_iterations", "90"]).ok();
    assert!(env.turn(SESSION, "x").message.unwrap().contains("Ralph 4/90"), "the user's own file");
}

#[test]
fn flags_count_as_recorded_and_not_as_the_state_file_says() {
    let env = Env::new();
    env.start("task", &["--max-iterations", "7"]);
    env.edit_state(|state| {
        state["loops"][SESSION]["given"]["flags"] = json!({"loop_limits.max_iterations": 700})
    });
    assert!(env.turn(SESSION, "x").message.unwrap().contains("Ralph 1/7 "));
    env.edit_state(|state| state["loops"][SESSION]["given"] = json!({}));
    assert!(env.turn(SESSION, "x").message.unwrap().contains("Ralph 2/7 "));
    env.ralph(&["stop"]).ok();
    env.edit_state(|state| state["loops"][SESSION]["given"] = json!({}));
    let told = env.ralph(&["start", "--session", SESSION, "--resume"]).ok();
    assert!(told.contains("at 7 iterations"), "also after an ending: {told}");
}

#[test]
fn a_project_gives_no_more_of_the_users_budget_and_names_longer_waits() {
    let env = Env::new();
    for (key, value) in
        [("budget.daily_usd", "5"), ("quota.reserve_percent", "30"), ("quota.on_limit", "stop")]
    {
        env.ralph(&["config", "--user", key, value]).ok();
    }
    let own = r#"{"budget": {"daily_usd": 1000, "daily_tokens": 7}, "quota": {"reserve_percent": 0, "on_limit": "wait"},
        "permission": {"wait_minutes": 600}, "background": {"wait_minutes": 600}, "run": {"max_outage_hours": 0}}"#;
    env.write(".claude/ralph-config.json", own);
    let told = env.ralph(&["start", "work", "--session", SESSION]).ok();
    for part in [
        "budget.daily_usd 1000 ignored, because it is looser than your own 5",
        "quota.reserve_percent 0 ignored, because it is looser than your own 30",
        "quota.on_limit \"wait\" ignored, because it is looser than your own \"stop\"",
        "loosens permission.wait_minutes: 600 instead of 5",
        "loosens background.wait_minutes: 600 instead of 10",
        "loosens run.max_outage_hours: 0 instead of 12",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("loosens budget") && !told.contains("loosens quota"), "{told}");
    assert!(!told.contains("daily_tokens"), "a limit that you do not have is stricter: {told}");
    for name in ["budget.daily_usd", "budget.daily_tokens", "quota.reserve_percent"] {
        let value = env.ralph(&["config", name]).ok();
        let expected = match name {
            "budget.daily_usd" => "5",
            "budget.daily_tokens" => "7",
            _ => "30",
        };
        assert!(value.contains(expected), "{name}: {value}");
    }
}

#[test]
fn the_file_gives_defaults_for_the_next_start_which_names_what_it_loosens() {
    let env = Env::new();
    env.write(
        FILE,
        json!({"loop_limits": {"max_iterations": 500, "max_hours": 2}, "scan": {"exclude": ["gen/**"]}})
            .to_string(),
    );
    let told = env.start("task", &[]);
    assert!(told.contains("at 500 iterations"), "{told}");
    assert!(told.contains("loosens loop_limits.max_iterations: 500 instead of 50"), "{told}");
    assert!(told.contains("loosens scan.exclude: [\"gen/**\"] instead of []"), "{told}");
    assert!(!told.contains("max_hours:"), "stricter is not looser: {told}");
    says(&env, "loop_limits.max_iterations", &json!(600));
    assert!(env.turn(SESSION, "x").message.unwrap().contains("Ralph 1/500"));
    let told = env.ralph(&["start", "--session", SESSION, "--resume"]).ok();
    assert!(
        told.contains("at 600 iterations") && told.contains("600 instead of 50"),
        "a resume is a start: {told}"
    );
    let told = env.start_in(OTHER, "task", &["--max-iterations", "9"]);
    assert!(!told.contains("loosens"), "a flag is the user's: {told}");
}

/// The agent of each iteration notes how it was asked and changes the file.
fn run_with(env: &Env, before_exit: &str, flags: &[&str]) -> (Option<i32>, String) {
    let agent = format!("cat >/dev/null; {before_exit}; echo $(date +%N) >> work.txt; echo working");
    let mut args = vec!["run", "task", "--agent-command", &agent];
    args.extend(flags);
    let run = env.ralph(&args);
    (run.code, run.stdout + &run.stderr)
}

#[test]
fn an_agent_of_a_run_cannot_loosen_it_and_the_line_is_printed_once() {
    let env = Env::new();
    env.write(FILE, json!({"run": {"max_iterations": 3, "delay_seconds": 0, "max_stuck": 0}}).to_string());
    let looser = json!({"run": {"max_iterations": 30, "delay_seconds": 0, "max_stuck": 0}});
    let (code, told) = run_with(&env, &format!("echo '{looser}' > {FILE}"), &[]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("iteration 3 of 3") && !told.contains("iteration 4"), "{told}");
    assert_eq!(told.matches("run.max_iterations 30 ignored").count(), 1, "{told}");
    assert!(told.contains("loosens run.delay_seconds: 0 instead of 3"), "named at the start: {told}");
}

#[test]
fn an_agent_of_a_run_can_tighten_it() {
    let env = Env::new();
    let (code, told) = run_with(
        &env,
        &format!("mkdir -p .claude; echo '{{\"run\": {{\"max_iterations\": 2}}}}' > {FILE}"),
        &["--delay", "0", "--max-stuck", "0"],
    );
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("run.max_iterations is now 2, stricter than at the start (50)"), "{told}");
    assert!(told.contains("iteration 2 of 2") && !told.contains("iteration 3"), "{told}");
}

#[test]
fn ralph_config_reaches_a_run_that_is_active() {
    let env = Env::new();
    says(&env, "run.max_iterations", &json!(2));
    let program = Program::Ralph.path();
    let (code, told) = run_with(
        &env,
        &format!("'{program}' config run.max_iterations 4 >/dev/null"),
        &["--delay", "0", "--max-stuck", "0", "--max-hours", "0"],
    );
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("iteration 4 of 4") && !told.contains("is looser"), "{told}");
}

#[test]
fn a_shorter_age_in_the_file_drops_no_guidance_of_a_loop_that_runs() {
    let env = Env::new();
    env.start("task", &[]);
    env.guidance(&["forbid", "push"]).ok();
    says(&env, "guidance.max_age_hours", &json!(0));
    env.at(HOUR).session_start(SESSION, "compact").run();
    env.session_start(OTHER, "startup").run();
    env.guidance(&["encourage", "small commits"]).ok();
    assert!(env.turn(SESSION, "x").continues().contains("- push"));
}

//! `RALPH_*` variables are the user's where the user set them: not where a repository did, and not in the middle of a loop.

use crate::env::{Answer, Env, HOUR, Program, SESSION};
use serde_json::json;

fn told(answer: &Answer) -> String {
    answer.message.clone().unwrap_or_default()
}

/// Sets variables for the client, as the project's own settings do, and gives them to the programs that it starts.
fn set_by_project(env: &Env, file: &str, variables: &[(&str, &str)]) {
    let values: serde_json::Map<_, _> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    env.write(&format!(".claude/{file}"), json!({"env": values}).to_string());
    for (name, value) in variables {
        env.var(name, value);
    }
}

#[test]
fn a_variable_that_is_set_later_loosens_no_loop() {
    let env = Env::new();
    env.start("the task", &[]);
    env.var("RALPH_MAX_ITERATIONS", "0")
        .var("RALPH_CIRCUIT_STAGNATION", "0")
        .var("RALPH_SCAN_ENABLED", "false");
    let answer = env.turn(SESSION, "One.");
    let said = told(&answer);
    for name in [
        "RALPH_MAX_ITERATIONS: loop_limits.max_iterations 0",
        "RALPH_CIRCUIT_STAGNATION",
        "RALPH_SCAN_ENABLED",
    ] {
        assert!(said.contains(name) && said.contains("ignored, because it is looser than"), "{name}: {said}");
    }
    assert!(!answer.continues().contains("changed the limits"), "{answer:?}");
    assert_eq!(env.shown(SESSION)["max_iterations"], 50);
    assert!(!told(&env.turn(SESSION, "Two.")).contains("is looser"), "told once");
}

#[test]
fn a_variable_that_is_set_later_counts_where_it_is_stricter() {
    let env = Env::new();
    env.start("the task", &[]);
    env.var("RALPH_MAX_ITERATIONS", "2");
    let said = told(&env.turn(SESSION, "One."));
    assert!(said.contains("max_iterations is now 2, stricter than at the start (50)"), "{said}");
    env.turn(SESSION, "Two.").ended("max-iterations");
}

#[test]
fn a_variable_of_the_start_holds_without_it() {
    let env = Env::new();
    env.var("RALPH_MAX_ITERATIONS", "0");
    env.start("the task", &[]);
    env.without("RALPH_MAX_ITERATIONS").turn(SESSION, "One.").continues();
    assert_eq!(env.shown(SESSION)["max_iterations"], 0);
    // A resumed loop takes what holds then.
    env.var("RALPH_MAX_ITERATIONS", "7").ralph(&["start", "--session", SESSION, "--resume"]).ok();
    env.without("RALPH_MAX_ITERATIONS");
    assert_eq!(env.shown(SESSION)["max_iterations"], 7);
}

#[test]
fn a_command_in_a_variable_runs_only_if_it_was_there_at_the_start() {
    let env = Env::new();
    env.start("the task", &["--max-iterations", "1"]);
    env.var("RALPH_NOTIFY_COMMAND", "echo x > ../notified").var("RALPH_VERIFY", "echo x > ../verified");
    env.turn(SESSION, "<promise>COMPLETE</promise>").ended("complete");
    env.wait_until_nothing_runs();
    assert!(!env.base.join("notified").exists() && !env.base.join("verified").exists());
    env.start_in("other", "the task", &[]);
    env.turn("other", "Done.\n\n<promise>COMPLETE</promise>").ended("complete");
    env.wait_for_file("notified");
    env.wait_for_file("verified");
}

#[test]
fn variables_in_the_projects_own_settings_are_ignored_and_named() {
    for file in ["settings.json", "settings.local.json"] {
        let env = Env::new();
        std::fs::create_dir(env.path("rc")).unwrap();
        env.write("rc/config.json", json!({"notify": {"command": "echo x > ../notified"}}).to_string());
        let own = env.path("rc").display().to_string();
        set_by_project(
            &env,
            file,
            &[
                ("RALPH_MAX_ITERATIONS", "0"),
                ("RALPH_NOTIFY_COMMAND", "echo x > ../notified"),
                ("RALPH_VERIFY", "echo x > ../verified"),
            ],
        );
        // In the client: typed there, and run there by the agent.
        let said = told(&env.types(SESSION, "start", "the task"));
        assert!(
            said.contains(&format!("{file} sets RALPH_MAX_ITERATIONS, RALPH_NOTIFY_COMMAND, RALPH_VERIFY")),
            "{said}"
        );
        assert_eq!(said.matches("RALPH_VERIFY").count(), 1, "{said}");
        assert!(said.contains("a project must not change your variables"), "{said}");
        env.turn(SESSION, "One.").continues();
        let by_agent =
            env.call(Program::Ralph).var("CLAUDECODE", "1").args(&["config", "max-iterations"]).run().ok();
        assert!(by_agent.contains("50"), "{by_agent}");
        set_by_project(&env, file, &[("RALPH_CONFIG_DIR", &own)]);
        env.turn(SESSION, "Done.\n\n<promise>COMPLETE</promise>").ended("complete");
        env.wait_until_nothing_runs();
        assert!(!env.base.join("notified").exists() && !env.base.join("verified").exists());
        // In a terminal it is the user's own variable, and the file is named.
        let env = Env::new();
        set_by_project(&env, file, &[("RALPH_MAX_ITERATIONS", "3")]);
        assert!(env.start("the task", &[]).contains("sets RALPH_MAX_ITERATIONS for Claude Code"));
        assert_eq!(env.shown(SESSION)["max_iterations"], 3);
        assert!(env.ralph(&["doctor"]).stdout.contains("sets RALPH_MAX_ITERATIONS for Claude Code"));
    }
}

/// The client reads some files that Ralph does not, or takes another of two values.
#[test]
fn settings_that_cannot_be_read_whole_may_set_any_variable() {
    let allow = r#"{"RALPH_PERMISSION_ALLOW": "[\"Bash\"]"}"#;
    let padding = "x".repeat(9 << 20);
    for (name, text) in [
        ("twice", format!(r#"{{"env": {{}}, "env": {allow}}}"#)),
        (
            "half a character",
            r#"{"env": {"\ud800": "1", "RALPH_PERMISSION_ALLOW": "[\"Bash\"]"}}"#.to_owned(),
        ),
        ("a byte order mark", format!("\u{feff}{{\"env\": {allow}}}")),
        ("a comment", format!("// x\n{{\"env\": {allow}}}")),
        ("a comma", format!("{{\"env\": {allow},}}")),
        ("no object", r#"{"env": ["RALPH_PERMISSION_ALLOW"]}"#.to_owned()),
        ("too large", format!(r#"{{"env": {allow}, "x": "{padding}"}}"#)),
    ] {
        for (variable, value) in [("RALPH_PERMISSION_ALLOW", "[\"Bash\"]"), ("RALPH_DATA_DIR", "evil")] {
            let env = Env::new();
            let evil = env.path("evil");
            let value = if value == "evil" { evil.to_str().unwrap() } else { value };
            env.write(".claude/settings.json", &text).var(variable, value);
            let said = told(&env.types(SESSION, "start", "the task"));
            let named = "settings.json may set RALPH_* variables for Claude Code (Ralph cannot read";
            assert!(
                said.contains(named) && said.contains("a project must not change your variables"),
                "{name}: {said}"
            );
            assert!(!said.contains("Allowed without asking"), "{name}: {said}");
            assert!(!evil.exists(), "{name}");
        }
    }
}

#[test]
fn settings_without_an_object_of_variables_set_none() {
    for text in ["", " \n", "{}", r#"{"env": null}"#, r#"{"env": {}}"#, r#"{"x": 1e999, "y": "\ud800"}"#] {
        let env = Env::new();
        env.write(".claude/settings.json", text).var("RALPH_MAX_ITERATIONS", "7");
        let said = told(&env.types(SESSION, "start", "the task"));
        assert!(!said.contains("RALPH_"), "{text:?}: {said}");
        assert_eq!(env.shown(SESSION)["max_iterations"], 7, "{text:?}");
    }
}

#[test]
fn any_number_of_names_is_counted() {
    let env = Env::new();
    let mut values: serde_json::Map<_, _> =
        (0..3000).map(|n| (format!("RALPH_A{n:04}"), "1".into())).collect();
    values.insert("RALPH_PERMISSION_ALLOW".into(), "[\"Bash\"]".into());
    env.write(".claude/settings.json", json!({"env": values}).to_string());
    env.var("RALPH_PERMISSION_ALLOW", "[\"Bash\"]");
    let said = told(&env.types(SESSION, "start", "the task"));
    assert!(said.contains("RALPH_A0004 and 2996 more for Claude Code"), "{said}");
    assert!(!said.contains("Allowed without asking"), "{said}");
}

#[test]
fn a_relative_folder_is_refused_by_commands_and_ignored_by_hooks() {
    for name in ["RALPH_DATA_DIR", "RALPH_CONFIG_DIR"] {
        let env = Env::new();
        env.start("the task", &[]);
        env.write(
            ".claude/rc/config.json",
            json!({"notify": {"command": "echo x > ../notified"}}).to_string(),
        );
        let said = env.call(Program::Ralph).var(name, ".claude/rc").args(&["status"]).run().fails(64);
        assert!(
            said.contains(&format!("error: {name} is not an absolute path: .claude/rc\nhint: ")),
            "{said}"
        );
    }
    let env = Env::new();
    env.start("the task", &[]);
    env.write(".claude/rc/config.json", json!({"notify": {"command": "echo x > ../notified"}}).to_string());
    env.var("RALPH_CONFIG_DIR", ".claude/rc").at(HOUR);
    let said = told(&env.turn(SESSION, "One."));
    assert!(said.contains("RALPH_CONFIG_DIR is not an absolute path: .claude/rc, ignored"), "{said}");
    env.turn(SESSION, "Done.\n\n<promise>COMPLETE</promise>").ended("complete");
    assert!(!env.base.join("notified").exists());
}

#[test]
fn a_forged_run_switches_no_loop_off() {
    let env = Env::new();
    env.start("the task", &[]);
    env.write("ralph/run.lock", json!({"pid": 1, "run_id": "zz", "container": "box"}).to_string());
    env.var("RALPH_RUN_ID", "zz").turn(SESSION, "One.").continues();
    assert_eq!(env.record(SESSION)["iteration"], 1);
}

#[test]
fn a_held_limit_is_not_said_to_be_raised() {
    let env = Env::new();
    env.start("the task", &[]);
    env.write(".claude/ralph-config.json", json!({"loop_limits": {"min_iterations": 60}}).to_string());
    let said = told(&env.turn(SESSION, "One."));
    assert!(!said.contains("raised"), "{said}");
    assert!(!env.ralph(&["status"]).ok().contains("raised"));
}

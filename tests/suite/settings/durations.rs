//! A duration means the same wherever it is given, and however it is written.

use crate::env::{Env, Program, SESSION};
use serde_json::{Value, json};

/// Each means an hour and a half; the last one is what a shell passes on for the first without its quotes.
const FORMS: [&[&str]; 4] = [&["1h 30m"], &["1h30m"], &["1H 30M"], &["1h", "30m"]];

fn setting(env: &Env, key: &str) -> Value {
    let shown: Value = serde_json::from_str(&env.ralph(&["config", key, "--json"]).ok()).unwrap();
    shown["settings"][key]["value"].clone()
}

#[test]
fn in_every_flag_of_a_start() {
    for form in FORMS {
        for flag in ["--max-hours", "--min-hours", "--gap-threshold"] {
            let env = Env::new();
            let args = [&["start", "--session", SESSION, flag], form, &["do", "x"]].concat();
            env.ralph(&args).ok();
            let record = env.record(SESSION);
            let given = &record["given"]["flags"];
            let hours = if flag == "--gap-threshold" { json!(5400) } else { json!(1.5) };
            assert_eq!(given.as_object().unwrap().values().next(), Some(&hours), "{args:?}: {given}");
            assert_eq!(record["task"], "do x", "{args:?}");
        }
    }
    let env = Env::new();
    env.start("task", &["--max-hours", "2H"]);
    assert_eq!(env.shown(SESSION)["max_runtime_seconds"].as_f64(), Some(7200.0));
}

#[test]
fn in_every_flag_of_a_run() {
    for form in FORMS {
        for flag in [
            "--timeout",
            "--delay",
            "--heartbeat-interval",
            "--startup-grace-period",
            "--tool-limit",
            "--max-hours",
            "--min-hours",
        ] {
            let env = Env::new();
            let run = ["run", "--agent-command", "cat > prompt.txt", "--max-iterations", "1", flag];
            let args = [&run[..], form, &["do", "x"]].concat();
            env.ralph(&args);
            assert!(
                env.read("prompt.txt").ends_with("Task:\n\ndo x"),
                "{args:?}: {}",
                env.read("prompt.txt")
            );
        }
    }
}

#[test]
fn in_the_text_of_a_slash_command() {
    for value in ["'1h 30m'", "\"1h 30m\"", "1h 30m", "1h30m", "1H 30M"] {
        for text in [format!("--max-hours {value} do x"), format!("do x --max-hours={value}")] {
            let env = Env::new();
            env.types(SESSION, "start", &text);
            assert_eq!(env.record(SESSION)["task"], "do x", "{text}");
            assert_eq!(env.shown(SESSION)["max_runtime_seconds"].as_f64(), Some(5400.0), "{text}");
        }
        for text in [format!("--for {value} do x"), format!("do x --for={value}")] {
            let env = Env::new();
            env.types(SESSION, "forbid", &text);
            let entry = &env.state()["guidance"]["forbidden"][0];
            assert_eq!(
                (&entry["text"], entry["for_seconds"].as_f64()),
                (&json!("do x"), Some(5400.0)),
                "{text}"
            );
        }
        let env = Env::new();
        env.types(SESSION, "config", &format!("loop_limits.max_hours {value}"));
        assert_eq!(setting(&env, "loop_limits.max_hours"), 1.5, "{value}");
    }
}

#[test]
fn in_guidance_from_a_terminal() {
    for form in FORMS {
        let env = Env::new();
        env.guidance(&[&["encourage", "--for"], form, &["do", "x"]].concat()).ok();
        env.guidance(&[&["encourage", "do", "y", "--for"], form].concat()).ok();
        for (at, text) in ["do x", "do y"].iter().enumerate() {
            let entry = &env.state()["guidance"]["encouraged"][at];
            assert_eq!(
                (&entry["text"], entry["for_seconds"].as_f64()),
                (&json!(text), Some(5400.0)),
                "{form:?}"
            );
        }
    }
}

#[test]
fn in_every_setting_file_and_variable() {
    for (key, number) in [
        ("loop_limits.max_hours", json!(1.5)),
        ("loop_limits.min_hours", json!(1.5)),
        ("loop_limits.cli_gap_threshold_seconds", json!(5400)),
        ("completion.verify_timeout_seconds", json!(5400)),
        ("guidance.max_age_hours", json!(1.5)),
        ("run.session_expiration_hours", json!(1.5)),
        ("run.timeout_minutes", json!(90)),
        ("run.delay_seconds", json!(5400)),
        ("heartbeat.interval_seconds", json!(5400)),
        ("heartbeat.startup_grace_seconds", json!(5400)),
        ("heartbeat.tool_seconds", json!(5400)),
    ] {
        for form in FORMS {
            let env = Env::new();
            env.ralph(&[&["config", key], form].concat()).ok();
            assert_eq!(setting(&env, key), number, "{key} {form:?}");
            let env = Env::new();
            env.write(".claude/ralph-config.json", json!({key: form.join(" ")}).to_string());
            assert_eq!(setting(&env, key), number, "{key} {form:?} in a file");
            let variable = format!("RALPH_{}", key.to_uppercase().replace('.', "_"));
            let run = Env::new();
            let shown =
                run.call(Program::Ralph).args(&["config", key, "--json"]).var(&variable, form.join(" "));
            let shown: Value = serde_json::from_str(&shown.run().ok()).unwrap();
            assert_eq!(shown["settings"][key]["value"], number, "{variable} {form:?}");
        }
    }
}

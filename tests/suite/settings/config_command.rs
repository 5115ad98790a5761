//! `ralph config`: shows every effective value with its source, and changes one and keeps the rest of the file.

use crate::env::{Env, OTHER, SESSION};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

const FILE: &str = ".claude/ralph-config.json";

#[test]
fn every_value_is_shown_with_where_it_comes_from() {
    let env = Env::new();
    env.write(FILE, json!({"loop_limits": {"max_hours": 3}}).to_string());
    env.var("RALPH_PROMISE", "FINI");
    let text = env.ralph(&["config"]).ok();
    let line = |key: &str| {
        text.lines()
            .find(|line| line.starts_with(&format!("{key} ")))
            .unwrap_or_else(|| panic!("{key}: {text}"))
    };
    assert!(line("loop_limits.max_hours").contains('3') && line("loop_limits.max_hours").contains(FILE));
    assert!(
        line("completion.promise").contains("FINI") && line("completion.promise").contains("RALPH_PROMISE")
    );
    for (key, value) in [
        ("loop_limits.min_hours", "0"),
        ("loop_limits.min_iterations", "0"),
        ("loop_limits.max_iterations", "50"),
        ("loop_limits.cli_gap_threshold_seconds", "300"),
        ("loop_limits.max_cost_usd", "none"),
        ("guidance.max_age_hours", "24"),
        ("circuit.idle", "5"),
        ("run.session_expiration_hours", "24"),
        ("completion.verify", "[]"),
        ("completion.verify_timeout_seconds", "600"),
        ("notify.command", "none"),
    ] {
        assert!(line(key).contains(value) && line(key).contains("default"), "{}", line(key));
    }
}

#[test]
fn one_value_is_set_in_the_projects_file() {
    let env = Env::new();
    let told = env.ralph(&["config", "loop_limits.max_hours", "6"]).ok();
    assert!(told.contains('6') && told.contains(FILE), "{told}");
    let file: Value = serde_json::from_str(&env.read(FILE)).unwrap();
    assert_eq!(file["loop_limits"]["max_hours"].as_f64(), Some(6.0));
    assert!(env.ralph(&["config", "loop_limits.max_hours"]).ok().contains('6'));
    env.ralph(&["config", "loop_limits.max_hours", "08"]).ok();
    assert!(env.ralph(&["config", "loop_limits.max_hours"]).ok().contains('8'));
}

#[test]
fn a_value_set_for_the_user_goes_to_the_users_file() {
    let env = Env::new();
    env.ralph(&["config", "--user", "completion.promise", "FINI"]).ok();
    assert!(!env.exists(FILE));
    let text = fs::read_to_string(env.base.join("config/config.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"completion": {"promise": "FINI"}}));
    env.start("task", &[]);
    env.turn(SESSION, "<promise>FINI</promise>").ended("complete");
}

#[test]
fn a_slip_is_answered_with_what_was_probably_meant() {
    let env = Env::new();
    for (args, meant) in [
        (&["config", "loop_limits.max_hour", "3"][..], "hint: did you mean loop_limits.max_hours?"),
        (&["config", "max_hours"], "hint: did you mean loop_limits.max_hours?"),
        (&["config", "completion.promise", "--unst"], "hint: did you mean --unset?"),
        (&["config", "--usr"], "hint: did you mean --user?"),
        (&["confg"], "hint: did you mean config?"),
        (&["help", "confg"], "hint: did you mean config?"),
        (&["help", "forbd"], "hint: did you mean forbid?"),
        (&["man", "histry"], "hint: did you mean ralph-history?"),
        (&["run", "--max-iteration", "3", "x"], "hint: did you mean --max-iterations?"),
        (&["run", "--verfy", "true", "x"], "hint: did you mean --verify?"),
        (&["run", "--context", "frsh", "x"], "hint: did you mean fresh?"),
        (&["start", "--max-hour", "3", "x"], "hint: did you mean --max-hours?"),
        (&["stop", "--al"], "hint: did you mean --all?"),
        (&["scan", "--severity", "hihg"], "hint: did you mean high?"),
        (&["history", "--lats", "3"], "hint: did you mean --last?"),
        (&["completions", "bsh"], "hint: did you mean bash?"),
    ] {
        let told = env.ralph(args).fails(64);
        assert!(told.contains(meant), "{args:?}: {told}");
    }
    for (args, meant) in [(&["forbd", "x"][..], "forbid"), (&["forbid", "--pinn", "x"], "--pin")] {
        let told = env.guidance(args).fails(64);
        assert!(told.contains(&format!("hint: did you mean {meant}?")), "{args:?}: {told}");
    }
    assert!(env.ralph(&["help", "run"]).ok().contains("Usage: ralph run"));
    assert!(env.ralph(&["help", "forbid"]).ok().contains("Usage: ralph forbid"));
    assert!(env.ralph(&["help", "allow"]).ok().contains("Usage: ralph-guidance allow"));
}

#[test]
fn a_slip_in_a_file_is_reported_by_config_doctor_start_and_run() {
    let env = Env::new();
    env.write(".claude/ralph-config.json", r#"{"loop_limits": {"max_hour": 3, "zebra": 1}}"#);
    let meant = "unknown setting loop_limits.max_hour, did you mean loop_limits.max_hours?";
    assert!(env.ralph(&["config"]).ok().contains(meant));
    assert!(env.ralph(&["doctor", "--quick"]).stdout.contains(meant));
    assert!(env.start("x", &[]).contains(meant));
    let run = env.ralph(&["run", "--agent-command", "true", "--max-iterations", "1", "x"]);
    assert!(run.stdout.contains(meant), "{run:?}");
    assert!(run.stdout.contains("unknown setting loop_limits.zebra\n"), "{run:?}");
}

#[test]
fn a_slip_in_a_variable_is_reported_and_another_programs_variable_is_not() {
    let env = Env::new();
    env.var("RALPH_MAX_ITERATION", "3").var("RALPH_WIGGUM", "1");
    let meant = "RALPH_MAX_ITERATION is not a setting, did you mean RALPH_MAX_ITERATIONS?";
    for told in [env.ralph(&["config"]).ok(), env.start("x", &[])] {
        assert!(told.contains(meant) && !told.contains("WIGGUM"), "{told}");
    }
}

#[test]
fn unknown_keys_stay_in_their_order() {
    let env = Env::new();
    let before = r#"{"zebra": 1, "loop_limits": {"future": true, "max_hours": 2, "alpha": 0}, "apple": {"b": 1, "a": 2}}"#;
    env.write(FILE, before);
    env.ralph(&["config", "loop_limits.max_hours", "6"]).ok();
    let after = env.read(FILE);
    let squeezed: String = after.split_whitespace().collect();
    let expected =
        r#"{"zebra":1,"loop_limits":{"future":true,"max_hours":6.0,"alpha":0},"apple":{"b":1,"a":2}}"#;
    assert_eq!(squeezed.replace(":6,", ":6.0,"), expected);
    let shown = env.ralph(&["config"]).ok();
    assert!(shown.contains("unknown setting zebra"), "unknown keys are named: {shown}");
}

#[test]
fn unset_removes_one_key_and_nothing_else() {
    let env = Env::new();
    env.write(FILE, json!({"loop_limits": {"max_hours": 2, "max_iterations": 3}, "mine": 1}).to_string());
    env.ralph(&["config", "loop_limits.max_hours", "--unset"]).ok();
    let file: Value = serde_json::from_str(&env.read(FILE)).unwrap();
    assert_eq!(file, json!({"loop_limits": {"max_iterations": 3}, "mine": 1}));
    assert!(env.ralph(&["config", "loop_limits.max_hours"]).ok().contains("default"));
}

#[test]
fn unsetting_a_key_that_is_not_set_creates_no_file() {
    let env = Env::new();
    let told = env.ralph(&["config", "loop_limits.max_hours", "--unset"]).ok();
    assert!(told.contains("not set in") && told.contains(FILE), "{told}");
    assert!(!env.exists(FILE) && !env.exists(".claude"));
}

#[test]
fn an_invalid_value_is_reported_with_its_key() {
    let env = Env::new();
    env.write(FILE, json!({"loop_limits": {"max_hours": "lots"}}).to_string());
    let told = env.ralph(&["config", "loop_limits.max_hours"]).ok();
    assert!(told.contains("default") && told.contains("'lots' is not a duration"), "{told}");
    assert!(!env.ralph(&["config", "loop_limits.max_iterations"]).ok().contains("lots"));
    let set = ["config", "loop_limits.max_hours", "2"];
    assert!(env.ralph(&set).ok().contains("Saved to"));
    assert!(env.ralph(&set).ok().contains("already set in"));
}

#[test]
fn a_file_that_is_not_json_is_never_overwritten() {
    let env = Env::new();
    for broken in ["{\"loop_limits\": {\"max_hours\": 2,}}", "[1]", "// mine\n{}"] {
        env.write(FILE, broken);
        let run = env.ralph(&["config", "loop_limits.max_hours", "6"]);
        assert!(run.code != Some(0) && run.stderr.contains("ralph-config.json"), "{run:?}");
        assert!(run.stderr.contains("\nhint: fix or remove the file; nothing was changed"), "{run:?}");
        assert_eq!(env.read(FILE), broken);
        let shown = env.ralph(&["config"]).ok();
        assert!(shown.contains("ralph-config.json"), "it is named when shown, too: {shown}");
    }
    env.write(FILE, "{\"loop_limits\": 5}");
    assert_ne!(env.ralph(&["config", "loop_limits.max_hours", "6"]).code, Some(0));
    assert_eq!(env.read(FILE), "{\"loop_limits\": 5}");
}

#[test]
fn bad_keys_and_values_are_usage_errors_and_change_nothing() {
    let env = Env::new();
    for args in [
        &["config", "loop_limits.max_hour", "6"][..],
        &["config", "loop_limits.max_hours", "soon"],
        &["config", "loop_limits.max_hours", "-1"],
        &["config", "loop_limits.max_iterations", "1.5"],
        &["config", "completion.promise", " "],
        &["config", "nonsense"],
        &["config", "--unset"],
    ] {
        let told = env.ralph(args).fails(64);
        assert!(!told.is_empty(), "{args:?}");
    }
    assert!(!env.exists(".claude"));
}

#[test]
fn a_users_file_that_is_a_link_stays_one() {
    let env = Env::new();
    let real = env.base.join("dotfiles.json");
    fs::write(&real, "{}").unwrap();
    let link = env.base.join("config/config.json");
    symlink(&real, &link).unwrap();
    env.ralph(&["config", "--user", "loop_limits.max_hours", "6"]).ok();
    assert!(link.is_symlink(), "people keep their settings in a dotfiles repository");
    assert!(fs::read_to_string(&real).unwrap().contains("max_hours"));
}

#[test]
fn json_is_json_and_nothing_else() {
    let env = Env::new();
    env.write(FILE, "{broken");
    let value: Value = serde_json::from_str(&env.ralph(&["config", "--json"]).ok()).unwrap();
    assert_eq!(value["settings"]["loop_limits.max_iterations"]["value"], 50);
    assert_eq!(value["warnings"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_flag_of_a_running_loop_that_still_overrides_is_named() {
    let env = Env::new();
    env.start("the task", &["--max-hours", "4"]);
    env.start_in(OTHER, "another task", &["--production"]);
    let told = env.types(SESSION, "config", "loop_limits.max_hours 6").message.unwrap();
    let note = "Note: this session's loop \"the task\" keeps 4, which --max-hours gave it at its start; \
                change it there with /ralph:start --resume --max-hours\n";
    assert!(told.contains("Saved to") && told.contains(note), "{told}");
    assert!(!told.contains("another task"), "of another session: {told}");
    assert!(env.turn(SESSION, "On it.").message.unwrap().contains("/4.0h"), "it does");
    let told = env.ralph(&["config", "loop_limits.max_hours", "7"]).ok();
    assert!(told.contains("Note: the loop \"the task\" keeps 4, which --max-hours"), "{told}");
    assert!(told.contains("Note: the loop \"another task\" keeps 9, which a preset"), "{told}");
    for (command, why) in [
        ("loop_limits.max_iterations 60", "no flag was given"),
        ("loop_limits.max_hours 4", "the flag says the same"),
    ] {
        let told = env.types(SESSION, "config", command).message.unwrap();
        assert!(!told.contains("keeps"), "{why}: {told}");
    }
    env.types(SESSION, "start", "--resume --max-hours 6");
    let told = env.types(SESSION, "config", "loop_limits.max_hours").message.unwrap();
    assert!(told.contains("6            flag"), "{told}");
    env.ralph(&["stop"]).ok();
    assert!(!env.ralph(&["config", "loop_limits.max_hours", "8"]).ok().contains("keeps"));
}

#[test]
fn a_huge_wrong_value_is_quoted_in_short_everywhere() {
    let env = Env::new();
    let huge = "9".repeat(300_000);
    env.write(".claude/ralph-config.json", json!({"loop_limits": {"max_hours": huge}}).to_string());
    let told = env.types(SESSION, "start", "task").message.unwrap();
    assert!(told.contains("max_hours") && told.len() < 3000, "{}", told.len());
    let told = env.types(SESSION, "status", "").message.unwrap();
    assert!(told.len() < 4000, "{}", told.len());
    for (command, text) in [("config", format!("max-hours {huge}")), ("forbid", format!("--for {huge} x"))] {
        let told = env.types(SESSION, command, &text).message.unwrap();
        assert!(told.len() < 3000, "{command}: {}", told.len());
    }
}

#[test]
fn an_answer_in_the_conversation_has_a_bound_and_a_terminal_shows_all() {
    let env = Env::new();
    let keys: serde_json::Map<_, _> = (0..300).map(|n| (format!("unknown{n}"), json!(1))).collect();
    env.write(".claude/ralph-config.json", json!(keys).to_string());
    let told = env.types(SESSION, "config", "").block.unwrap();
    assert!(told.lines().count() < 130 && told.contains(" more lines"), "{}", told.lines().count());
    assert!(env.ralph(&["config"]).ok().contains("unknown299"));
}

#[test]
fn guidance_in_the_projects_file_is_reported_also_behind_other_unknown_settings() {
    let env = Env::new();
    env.start("task", &[]);
    env.write(".claude/ralph-config.json", r#"{"aa": 1, "bb": 1, "cc": 1}"#);
    let first = env.at(10).turn(SESSION, "x").message.unwrap();
    assert!(first.contains("unknown setting aa"), "{first}");
    let more = r#"{"aa": 1, "bb": 1, "cc": 1, "guidance": {"forbidden": ["never push"]}}"#;
    env.write(".claude/ralph-config.json", more);
    let second = env.at(20).turn(SESSION, "y").message.unwrap();
    assert!(second.contains("guidance.forbidden is not read; use `ralph-guidance"), "{second}");
    assert!(second.contains("1 more unknown settings"), "{second}");
    assert!(!second.contains("unknown setting aa"), "what is known is not told again: {second}");
}

#[test]
fn a_mistyped_flag_or_command_is_answered_with_the_nearest() {
    let env = Env::new();
    for (args, error, hint) in [
        (&["install", "--tp", "x"][..], "unknown flag: --tp", "did you mean --to?"),
        (&["statsu"], "no such command: statsu", "did you mean status?"),
        (&["stop", "--bogus"], "unknown flag: --bogus", "see `ralph stop --help`"),
    ] {
        let told = env.ralph(args).fails(64);
        assert_eq!(told.trim(), format!("error: {error}\nhint: {hint}"));
    }
    let told = env.guidance(&["forbid", "--fro", "2h", "x"]).fails(64);
    assert!(told.contains("hint: did you mean --for?"), "{told}");
    let told = env.types(SESSION, "scan", "--severity=hihg").block.unwrap();
    assert!(told.contains("did you mean high?"), "{told}");
}

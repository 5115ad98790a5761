//! `completion.verify`: where its commands may come from, and where they are kept.

use crate::env::{DONE, Env, OTHER, SESSION, names_in};
use serde_json::{Value, json};
use std::fs;

const FILE: &str = ".claude/ralph-config.json";

/// Returns the checks of the session's loop, their source, and warnings.
fn verify(env: &Env, session: &str) -> (Value, String, String) {
    env.var("CLAUDE_CODE_SESSION_ID", session);
    let all: Value = serde_json::from_str(&env.ralph(&["config", "--json"]).ok()).unwrap();
    env.without("CLAUDE_CODE_SESSION_ID");
    let row = &all["settings"]["completion.verify"];
    (row["value"].clone(), row["source"].as_str().unwrap().to_owned(), all["warnings"].to_string())
}

fn armed(env: &Env) -> String {
    let folder = env.data().join("sessions");
    names_in(&folder).iter().map(|name| fs::read_to_string(folder.join(name)).unwrap()).collect()
}

fn user_file(env: &Env, value: Value) {
    fs::write(env.base.join("config/config.json"), value.to_string()).unwrap();
}

#[test]
fn the_flag_may_be_repeated_and_stays_with_the_user() {
    let env = Env::new();
    env.start("task", &["--verify", "cargo test", "--verify=[ -f done ]", "--verify", "-x"]);
    let commands = json!(["cargo test", "[ -f done ]", "-x"]);
    assert_eq!(verify(&env, SESSION), (commands, "flag".into(), "[]".into()));
    let state = env.read(".claude/ralph-state.json");
    assert!(!state.contains("cargo test"), "others can write the project's file: {state}");
    assert!(armed(&env).contains("cargo test"));
    env.turn(SESSION, "x").continues();
    assert!(!env.read(".claude/ralph-state.json").contains("cargo test"));
}

#[test]
fn the_slash_command_takes_it_too() {
    let env = Env::new();
    env.types(SESSION, "start", "fix it --verify \"cargo test -- 'a b'\" --verify make now");
    assert_eq!(env.record(SESSION)["task"], "fix it now");
    assert_eq!(verify(&env, SESSION).0, json!(["cargo test -- 'a b'", "make"]));
    let refused = env.types(OTHER, "start", "fix it --verify");
    assert!(refused.block.unwrap().contains("--verify needs a value"));
}

#[test]
fn bad_flags_are_usage_errors() {
    let env = Env::new();
    let long = "x".repeat(2001);
    for bad in ["", "  ", long.as_str()] {
        let told = env.ralph(&["start", "--session", SESSION, "task", "--verify", bad]).fails(64);
        assert!(told.contains("--verify") && told.len() < 300, "{told}");
    }
    assert!(!env.exists(".claude"));
}

#[test]
fn a_resumed_loop_keeps_them_also_after_it_ended() {
    let env = Env::new();
    env.start("task", &["--verify", "cargo test", "--max-iterations", "1"]);
    env.turn(SESSION, "x").ended("max-iterations");
    assert_eq!(armed(&env), "");
    env.start("", &["--resume", "--max-iterations", "5"]);
    assert_eq!(verify(&env, SESSION).0, json!(["cargo test"]));
    env.ralph(&["stop", "--session", SESSION]).ok();
    env.start("", &["--resume", "--verify", "make"]);
    assert_eq!(verify(&env, SESSION).0, json!(["make"]), "said anew, it replaces");
}

#[test]
fn a_lost_state_still_ends_with_the_commands_of_its_start() {
    let env = Env::new();
    let proof = env.base.join("proof");
    env.start("task", &["--notify", &format!("touch '{}'", proof.display())]);
    fs::remove_file(env.path(".claude/ralph-state.json")).unwrap();
    env.turn(SESSION, "x").ended("error");
    crate::env::wait_until("every ending is announced", || proof.exists());
}

#[test]
fn variables_and_the_users_file_need_no_trust() {
    for (value, commands) in [
        ("cargo test", json!(["cargo test"])),
        (r#"["cargo test", "make"]"#, json!(["cargo test", "make"])),
        ("[ -f done ]", json!(["[ -f done ]"])),
        ("[]", json!([])),
    ] {
        for name in ["RALPH_VERIFY", "RALPH_COMPLETION_VERIFY"] {
            let env = Env::new();
            assert_eq!(
                verify(env.var(name, value), SESSION),
                (commands.clone(), "environment".into(), "[]".into())
            );
            env.start("task", &[]);
            env.without(name);
            assert_eq!(verify(&env, SESSION).0, commands, "{name} of the start holds: {value}");
            assert!(!env.read(".claude/ralph-state.json").contains("cargo test"));
        }
    }
    let env = Env::new();
    user_file(&env, json!({"completion": {"verify": ["make"]}}));
    assert_eq!(verify(&env, SESSION), (json!(["make"]), "user".into(), "[]".into()));
    env.start("task", &[]);
    user_file(&env, json!({}));
    assert_eq!(verify(&env, SESSION).0, json!(["make"]), "the checks of a run are those of its start");
}

#[test]
fn the_projects_list_counts_if_trusted_and_else_the_users() {
    let env = Env::new();
    user_file(&env, json!({"completion": {"verify": ["make"]}}));
    env.write(FILE, json!({"completion": {"verify": ["cargo test"]}}).to_string());
    let (commands, source, warnings) = verify(&env, SESSION);
    assert_eq!((commands, source.as_str()), (json!(["make"]), "user"));
    assert!(warnings.contains("completion.verify") && warnings.contains("ralph trust"), "{warnings}");
    env.ralph(&["trust"]).ok();
    assert_eq!(verify(&env, SESSION), (json!(["cargo test"]), "project".into(), "[]".into()));
    env.write(FILE, json!({"completion": {"verify": []}}).to_string());
    assert_eq!(
        verify(&env, SESSION),
        (json!(["make"]), "user".into(), "[]".into()),
        "a list that runs nothing switches nothing off"
    );
}

#[test]
fn an_invalid_command_is_left_out_alone_and_reported_with_its_file() {
    let env = Env::new();
    user_file(&env, json!({"completion": {"verify": ["make", 5, "", "x".repeat(2001), null, "cargo test"]}}));
    let told = env.start("task", &[]);
    let notes: Vec<_> = told.lines().filter(|line| line.contains("completion.verify")).collect();
    assert_eq!(notes.len(), 4, "{told}");
    assert!(notes.iter().all(|note| note.contains("config.json") && note.chars().count() < 300), "{told}");
    assert_eq!(verify(&env, SESSION).0, json!(["make", "cargo test"]));
    user_file(&env, json!({"completion": {"verify": {"a": 1}, "verify_timeout_seconds": 0}}));
    let (commands, source, warnings) = verify(&env, OTHER);
    assert_eq!((commands, source.as_str()), (json!([]), "default"));
    assert!(
        warnings.contains("a list of commands") && warnings.contains("verify_timeout_seconds"),
        "{warnings}"
    );
}

#[test]
fn a_command_written_into_the_state_file_is_ignored() {
    for part in ["flags", "preset", "environment"] {
        let env = Env::new();
        env.start("task", &[]);
        env.edit_state(|state| state["loops"][SESSION]["given"][part]["completion.verify"] = json!(["evil"]));
        assert_eq!(verify(&env, SESSION).0, json!([]), "{part}");
        env.turn(SESSION, DONE).ended("complete");
    }
}

#[test]
fn help_names_flag_and_trust() {
    let env = Env::new();
    let help = env.ralph(&["help"]).ok();
    assert!(help.contains("--verify CMD") && help.contains("ralph trust"), "{help}");
    assert!(env.ralph(&["start", "--help"]).ok().contains("--verify <CMD>"));
    assert!(env.ralph(&["--help"]).ok().contains("trust"));
}

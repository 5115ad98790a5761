//! `start --import`: imports a loop of the official ralph-loop plugin.

use crate::env::{Answer, Env, OTHER, Program, SESSION};
use serde_json::json;
use std::os::unix::fs::symlink;

const FILE: &str = ".claude/ralph-loop.local.md";
const ASIDE: &str = ".claude/ralph-loop.imported-20261116T080000000.local.md";

/// A file of the plugin.
fn file(iteration: u64, most: u64, promise: &str, session: &str, prompt: &str) -> String {
    format!(
        "---\nactive: true\niteration: {iteration}\nsession_id: {session}\nmax_iterations: {most}\n\
         completion_promise: {promise}\nstarted_at: \"2026-11-15T22:30:00Z\"\n---\n\n{prompt}\n"
    )
}

fn import(env: &Env, flags: &[&str]) -> String {
    let mut args = vec!["start", "--session", SESSION, "--import"];
    args.extend(flags);
    env.ralph(&args).ok()
}

fn refused(env: &Env, flags: &[&str]) -> String {
    let before = env.snapshot();
    let mut args = vec!["start", "--session", SESSION, "--import"];
    args.extend(flags);
    let said = env.ralph(&args).fails(1);
    let ours = |path: &std::path::Path| path.to_string_lossy().contains("ralph-loop");
    let kept = |all: &std::collections::BTreeMap<_, _>| {
        all.iter()
            .filter(|(path, _): &(&std::path::PathBuf, _)| ours(path))
            .map(|(p, f)| (p.clone(), *f))
            .collect::<Vec<_>>()
    };
    assert_eq!(kept(&env.snapshot()), kept(&before), "the plugin's file is unchanged");
    assert!(!env.exists(".claude/ralph-state.json"), "no loop is started");
    said
}

#[test]
fn a_loop_continues_where_the_plugin_left_it() {
    let env = Env::new();
    let text = file(7, 20, "\"ALL DONE\"", SESSION, "Build the API.\n---\nThen test it.");
    env.write(FILE, &text);
    let told = import(&env, &[]);
    for part in [
        "Ralph imported: Build the API. --- Then test it.",
        "Ends at 20 iterations or 9h runtime, or when the agent promises \"ALL DONE\"",
        "imported from the official plugin: a prompt of 32 characters, promise \"ALL DONE\", 6 iterations done, limit 20, started 2026-11-15 22:30",
        "not imported: the runtime so far",
        ASIDE,
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!((env.exists(FILE), env.read(ASIDE)), (false, text), "disabled, and nothing is lost");
    assert_eq!(env.record(SESSION)["task"], "Build the API.\n---\nThen test it.");
    let answer = env.at(10).turn(SESSION, "working");
    assert!(answer.continues().contains("7 of 20 iterations done"), "{answer:?}");
    assert!(
        answer.context.unwrap().contains("Then test it."),
        "the agent of that session has the whole task"
    );
    env.at(20).turn(SESSION, "x\n<promise>ALL DONE</promise>").ended("complete");
}

#[test]
fn the_slash_command_imports_too() {
    let env = Env::new();
    env.write(FILE, file(3, 5, "\"DONE\"", SESSION, "Fix $(touch pwned) `it`"));
    let Answer { block, message, .. } = env.types(SESSION, "start", "--import --max-hours 2");
    let told = message.unwrap();
    assert!(
        block.is_none() && told.contains("2 iterations done, limit 5") && told.contains("2h runtime"),
        "{told}"
    );
    let agent = env.ralph(&["relay", "start", "--session", SESSION]).ok();
    assert!(agent.contains("Fix $(touch pwned) `it`") && agent.contains("iteration 3 of 5"), "{agent}");
    assert!(!env.exists(FILE) && !env.exists("pwned"));
}

#[test]
fn flags_win_over_the_file() {
    for (flags, shown) in [
        (&["--max-iterations", "40", "--promise", "FINE"][..], (json!(40), "\"FINE\"")),
        (&["--max-iterations", "0"], (json!(0), "\"ALL DONE\"")),
        (&["--poc"], (json!(20), "\"ALL DONE\"")),
        (&["--completion-promise=OK"], (json!(12), "\"OK\"")),
    ] {
        let env = Env::new();
        env.var("RALPH_PROMISE", "by variable").var("RALPH_MAX_ITERATIONS", "33");
        env.write(FILE, file(4, 12, "\"ALL DONE\"", "", "Build it"));
        let told = import(&env, flags);
        assert!(told.contains(&format!("promises {}", shown.1)), "{flags:?}: {told}");
        assert_eq!(env.shown(SESSION)["max_iterations"], shown.0, "{flags:?}");
        assert_eq!(env.shown(SESSION)["iteration"], 3);
    }
    let env = Env::new();
    env.write(FILE, file(4, 12, "null", "", "Build it"));
    import(&env, &["--", "build", "that"]);
    assert_eq!(env.record(SESSION)["task"], "build that");
}

#[test]
fn a_missing_promise_and_limit_are_replaced_by_ours() {
    let env = Env::new();
    env.write(FILE, file(61, 0, "null", SESSION, "Build it"));
    let told = import(&env, &[]);
    for part in [
        "no promise, 60 iterations done, no limit",
        "it had no promise; it now ends when the agent promises \"COMPLETE\"",
        "it had no iteration limit; it now ends at 110 (--max-iterations 0: no limit)",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!(
        (&env.shown(SESSION)["iteration"], &env.shown(SESSION)["max_iterations"]),
        (&json!(60), &json!(110))
    );
    env.at(10).turn(SESSION, "working").continues();
    let env = Env::new();
    env.write(FILE, file(61, 0, "null", SESSION, "Build it"));
    assert!(import(&env, &["--max-iterations", "0"]).contains("(no iteration limit)"));
}

#[test]
fn a_promise_is_imported_literally() {
    for (written, promise) in [
        ("\"All \"unit\" tests pass, it's done\"", "All \"unit\" tests pass, it's done"),
        ("'DONE: really'", "DONE: really"),
        ("\"$(touch pwned)\"", "$(touch pwned)"),
    ] {
        let env = Env::new();
        env.write(FILE, file(1, 0, written, "", "Build it"));
        import(&env, &[]);
        env.at(10).turn(SESSION, &format!("x\n<promise>{promise}</promise>")).ended("complete");
        assert!(!env.exists("pwned"));
    }
}

#[test]
fn a_terminal_needs_no_session_if_the_file_names_one() {
    let env = Env::new();
    env.write(FILE, file(2, 9, "null", OTHER, "Build it"));
    env.ralph(&["start", "--import"]).ok();
    let answer = env.at(10).turn(OTHER, "working");
    assert!(answer.continues().contains("2 of 9 iterations done"), "{answer:?}");
    let env = Env::new();
    env.write(FILE, file(2, 9, "null", "", "Build it"));
    let said = env.ralph(&["start", "--import"]).fails(64);
    assert!(said.contains("session"), "{said}");
    assert!(env.exists(FILE));
}

#[test]
fn a_loop_of_another_session_is_taken_over() {
    let env = Env::new();
    env.write(FILE, file(2, 9, "null", OTHER, "Build it"));
    let told = import(&env, &[]);
    assert!(told.contains(&format!("it no longer runs in session {OTHER}")), "{told}");
    env.at(10).turn(OTHER, "x").silent();
    env.at(10).turn(SESSION, "x").continues();
}

#[test]
fn errors_name_the_line_and_nothing_changes() {
    let good = file(2, 9, "null", "", "Build it");
    for (text, parts) in [
        ("Build it".to_owned(), &["ralph-loop.local.md: line 1: expected ---, found \"Build it\""][..]),
        (good.replace("max_iterations: 9", "max_iterations: many"), &["line 5: max_iterations is \"many\""]),
        (good.replace("iteration: 2\n", "iteration two\n"), &["line 3: \"iteration two\" is not a field"]),
        (
            good.replace("null", "\"<promise>x</promise>\""),
            &["completion_promise: '<promise>x</promise>' contains the tag"],
        ),
        ("---\nactive: true\n".into(), &["line 3: the front matter has no end"]),
        (good.replace("Build it", ""), &["there is no prompt after the front matter"]),
        (good.replace("Build it", &"x".repeat(20_001)), &["20001 characters", "task too long"]),
        (good.replace("iteration: 2", "iteration: \u{1b}[2J"), &["line 3: iteration is \"[2J\""]),
    ] {
        let env = Env::new();
        env.write(FILE, &text);
        let said = refused(&env, &[]);
        assert!(parts.iter().all(|part| said.contains(part)), "{parts:?}: {said}");
        assert!(!said.contains('\u{1b}'));
    }
}

#[test]
fn other_files_are_refused() {
    let env = Env::new();
    let said = refused(&env, &[]);
    assert!(said.contains("no loop of the official plugin") && said.contains("/ralph:start TASK"), "{said}");
    env.write(FILE, b"---\niteration: 1\nmax_iterations: 0\n---\n\xff\xfe");
    assert!(refused(&env, &[]).contains("is not text"));
    env.write(FILE, "x".repeat(2 << 20));
    assert!(refused(&env, &[]).contains("too large"));
    std::fs::remove_file(env.path(FILE)).unwrap();
    std::fs::write(env.base.join("outside.md"), file(1, 0, "null", "", "Build it")).unwrap();
    symlink(env.base.join("outside.md"), env.path(FILE)).unwrap();
    assert!(refused(&env, &[]).contains("is a symbolic link"));
    std::fs::remove_file(env.path(FILE)).unwrap();
    std::fs::create_dir(env.path(FILE)).unwrap();
    assert!(refused(&env, &[]).contains("not a regular file"));
}

#[test]
fn a_refused_start_keeps_the_old_loop() {
    let env = Env::new();
    env.write(FILE, file(21, 20, "null", "", "Build it"));
    let said = refused(&env, &[]);
    assert!(said.contains("limit already reached"), "{said}");
    import(&env, &["--max-iterations", "30"]);
    let env = Env::new();
    env.write(FILE, file(1, 20, "null", "", "Build it"));
    env.ask("Which?");
    assert!(env.ralph(&["start", "--session", SESSION, "--import"]).fails(1).contains("Which?"));
    assert!(env.exists(FILE), "the plugin's file is unchanged");
    let said = env.ralph(&["start", "--session", SESSION, "--import", "--resume"]).fails(64);
    assert!(said.contains("cannot be used together"), "{said}");
}

#[test]
fn a_running_loop_is_replaced_only_on_request() {
    let env = Env::new();
    env.start("first", &[]);
    env.write(FILE, file(1, 20, "null", "", "second"));
    let said = env.ralph(&["start", "--session", SESSION, "--import"]).fails(1);
    assert!(said.contains("--replace") && env.exists(FILE), "{said}");
    import(&env, &["--replace"]);
    assert_eq!((env.record(SESSION)["task"].as_str(), env.exists(FILE)), (Some("second"), false));
}

#[test]
fn an_earlier_import_is_not_overwritten() {
    let env = Env::new();
    for text in ["first", "second"] {
        env.write(FILE, file(1, 20, "null", "", text));
        import(&env, &["--replace"]);
    }
    let kept: Vec<String> =
        env.list(".claude").into_iter().filter(|name| name.contains("imported")).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(env.read(ASIDE).contains("first"));
}

#[test]
fn a_start_beside_a_loop_of_the_plugin_warns() {
    let env = Env::new();
    env.write(FILE, file(1, 20, "null", "", "theirs"));
    let told = env.start("ours", &[]);
    assert!(told.contains("loop of the official plugin") && told.contains("--import"), "{told}");
    assert!(env.exists(FILE), "nothing is moved without --import");
    let env = Env::new();
    env.write(FILE, file(1, 20, "null", OTHER, "theirs"));
    assert!(!env.start("ours", &[]).contains("official"), "a loop in another session does not matter");
}

#[test]
fn unknown_fields_are_named() {
    let env = Env::new();
    let text = file(1, 20, "null", "", "x").replace("active: true", "active: false\nmodel: opus");
    env.write(FILE, text);
    let told = import(&env, &[]);
    assert!(
        told.contains("marked active: false") && told.contains("not imported: model, and the runtime"),
        "{told}"
    );
}

#[test]
fn help_shows_the_equivalents_of_the_old_commands() {
    let env = Env::new();
    let typed = env.types(SESSION, "help", "").block.unwrap();
    for text in [env.ralph(&["help"]).ok(), typed] {
        for part in [
            "/ralph-loop \"TASK\" --completion-promise X --max-iterations N",
            "/ralph:start TASK --promise X --max-iterations N",
            "while :; do cat PROMPT.md | claude -p; done",
            "ralph run -f PROMPT.md",
            "/ralph:start --import",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
    let help = env.call(Program::Ralph).args(&["run", "--help"]).run().ok();
    assert!(help.contains("--tasks <FILE>") && help.contains("--no-tasks"), "{help}");
}

#[test]
fn a_folder_that_cannot_be_written_starts_nothing() {
    if crate::env::ignores_permissions() {
        return;
    }
    let env = Env::new();
    env.write(FILE, file(1, 20, "null", "", "x"));
    std::fs::set_permissions(env.path(".claude"), std::os::unix::fs::PermissionsExt::from_mode(0o500))
        .unwrap();
    env.ralph(&["start", "--session", SESSION, "--import"]).fails(70);
    assert!(env.exists(FILE));
}

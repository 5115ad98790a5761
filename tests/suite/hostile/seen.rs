//! What was seen to break, each case as it was found.

use super::{CANARY, Hostile};
use crate::env::{Env, Program, SESSION, names_in};
use std::fs;

/// Returns a project whose loop in the session has asked a question.
fn asked(hostile: &Hostile) -> &Env {
    hostile.env.start("task", &[]);
    hostile.env.turn(SESSION, "<promise>DECIDE:which?</promise>").ended("decide");
    &hostile.env
}

#[test]
fn an_answer_is_not_filed_away_in_a_folder_outside() {
    let hostile = Hostile::new();
    let env = asked(&hostile);
    hostile.link("ralph/answered", hostile.outside("folder"));
    env.ralph(&["answer", "touch /tmp/owned"]).ok();
    let before = hostile.victims();
    let told = env.start("next", &["--replace"]);
    assert_eq!(hostile.victims(), before);
    assert!(
        told.contains("ralph/answered is a symbolic link") && told.contains("ralph trust --link"),
        "{told}"
    );
    assert!(env.exists("ralph/decide.txt"), "it stays where it is");
}

#[test]
fn a_state_file_that_is_a_link_stays_where_it_is() {
    for target in [".git/HEAD", ".env"] {
        let hostile = Hostile::new();
        let env = &hostile.env;
        env.start("task", &[]);
        hostile.link(".claude/ralph-state.json", env.path(target));
        let before = hostile.victims();
        let answers = [
            env.session_start(SESSION, "startup").run(),
            env.turn(SESSION, "<promise>COMPLETE</promise>"),
            env.session_start("another", "startup").run(),
        ];
        assert_eq!(hostile.victims(), before, "{target}");
        for answer in &answers[..2] {
            let told = answer.allows();
            assert!(told.contains("ralph-state.json is a symbolic link"), "{told}");
            assert!(told.contains("ralph trust --link") && !told.contains(CANARY), "{told}");
        }
        answers[2].silent();
        assert!(env.path(".claude/ralph-state.json").is_symlink());
        fs::remove_file(env.path(".claude/ralph-state.json")).unwrap();
        assert!(env.data().join("sessions").is_dir(), "the loop is still armed");
    }
}

#[test]
fn a_question_that_is_a_link_is_neither_overwritten_nor_shown_nor_moved() {
    for (file, promise) in [("ralph/blocked.txt", "BLOCKED:no key"), ("ralph/decide.txt", "DECIDE:which?")] {
        for target in [".git/config", ".env"] {
            let hostile = Hostile::new();
            let env = &hostile.env;
            env.start("task", &[]);
            fs::write(env.path(".env"), format!("{CANARY}\n---\n## Answer\nyes\n")).unwrap();
            hostile.link(file, env.path(target));
            let before = hostile.victims();
            let told = env.turn(SESSION, &format!("<promise>{promise}</promise>"));
            assert!(told.allows().contains("is a symbolic link"), "{told:?}");
            let answer = |args: &[&str]| env.call(Program::Ralph).args(args);
            for args in [&["answer"][..], &["answer", "--replace", "text"], &["status"]] {
                hostile.run(file, answer(args));
            }
            let refused = hostile.run(file, answer(&["start", "--session", SESSION, "next"]));
            assert!(refused.stderr.contains("is a symbolic link"), "{refused:?}");
            hostile.run(file, env.run_with("promise COMPLETE", &["x"]));
            assert_eq!(hostile.victims(), before, "{file} to {target}");
            hostile.assert_nothing_leaked(file);
        }
    }
}

#[test]
fn a_prompt_that_is_a_link_is_not_sent_to_the_agent() {
    let hostile = Hostile::new();
    let env = &hostile.env;
    for target in ["/proc/self/environ", "/proc/kmsg", "/dev/zero", "../outside/file", "../.env"] {
        hostile.link("ralph/prompt.md", target);
        for flags in [&["--max-iterations", "1"][..], &["--file", "ralph/prompt.md"]] {
            let run = hostile.run(target, env.run_with("promise COMPLETE", flags));
            assert!(run.stderr.contains("prompt.md is a symbolic link"), "{target}: {run:?}");
        }
    }
    assert_eq!(env.starts(), 0);
}

#[test]
fn an_endless_ignore_file_takes_neither_memory_nor_time() {
    for target in ["/proc/self/pagemap", "/proc/kmsg", "/dev/zero"] {
        for place in [".gitignore", "src/.ignore", ".git/info/exclude", "src/.git"] {
            let hostile = Hostile::new();
            hostile.link(place, target);
            let run = hostile.run(place, hostile.env.call(Program::Ralph).args(&["scan"]));
            assert_eq!(run.code, Some(0), "{place} to {target}: {run:?}");
        }
        let hostile = Hostile::new();
        hostile.env.write(".git/config", format!("[core]\n\texcludesFile = {target}\n"));
        let run = hostile.run("core.excludesFile", hostile.env.call(Program::Ralph).args(&["scan"]));
        assert_eq!(run.code, Some(0), "core.excludesFile {target}: {run:?}");
        hostile.env.start("task", &[]);
        hostile.env.turn(SESSION, "working").continues();
    }
    let hostile = Hostile::new();
    hostile.pipe(".gitignore").pipe("pipe");
    let pipe = hostile.env.path("pipe");
    hostile.env.write(".git/config", format!("[core]\n\texcludesFile = {}\n", pipe.display()));
    assert_eq!(hostile.run("pipes", hostile.env.call(Program::Ralph).args(&["scan"])).code, Some(0));
}

#[test]
fn a_pipe_in_the_place_of_a_log_does_not_hold_a_run() {
    for pipe in ["iteration-002.log", "summary.csv"] {
        let hostile = Hostile::new();
        let env = &hostile.env;
        let script = format!(
            "work; rm -f ralph/logs/{pipe}; mkfifo ralph/logs/{pipe}; [ $n = 2 ] && promise COMPLETE"
        );
        let run = hostile.run(pipe, env.run_with(&script, &["x"]));
        assert_eq!((run.code, env.starts()), (Some(0), 2), "{run:?}");
        assert!(run.stdout.contains(&format!("{pipe} is a named pipe, not a regular file")), "{run:?}");
    }
}

#[test]
fn a_folder_of_logs_that_becomes_a_link_gets_nothing() {
    let hostile = Hostile::new();
    let script =
        "work; rm -rf ralph/logs; ln -s ../../outside/folder ralph/logs; [ $n = 2 ] && promise COMPLETE";
    let run = hostile.run("logs", hostile.env.run_with(script, &["x"]));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(names_in(&hostile.outside("folder")), ["file"]);
}

#[test]
fn only_a_regular_file_is_a_kill_switch() {
    for place in [".claude/STOP_LOOP", ".claude"] {
        let hostile = Hostile::new();
        let env = &hostile.env;
        let told = match place {
            ".claude" => String::new(),
            place => {
                fs::create_dir(env.path(place)).unwrap();
                env.start("task", &[])
            }
        };
        if place == ".claude" {
            env.start("task", &[]);
            fs::write(hostile.outside("folder/STOP_LOOP"), "").unwrap();
            hostile.link(place, hostile.outside("folder"));
            assert!(env.turn(SESSION, "working").allows().contains(".claude is a symbolic link"));
            assert!(hostile.outside("folder/STOP_LOOP").exists());
            continue;
        }
        assert!(told.contains("STOP_LOOP is a folder, not a regular file"), "{told}");
        env.turn(SESSION, "working").continues();
        hostile.link(place, hostile.outside("file"));
        env.turn(SESSION, "still working").continues();
        let doctor = env.ralph(&["doctor"]);
        assert!(doctor.stdout.contains("STOP_LOOP is a symbolic link"), "{doctor:?}");
        assert!(env.exists(place), "it is the user's to remove");
        hostile.free(place);
        env.write(place, "");
        env.turn(SESSION, "still working").ended("killed");
        assert!(!env.exists(place));
    }
}

#[test]
fn settings_of_the_client_that_cannot_be_read_hold_nothing_up() {
    for name in [".claude/settings.json", ".claude/settings.local.json"] {
        let hostile = Hostile::new();
        hostile.pipe(name);
        assert_eq!(hostile.run(name, hostile.env.call(Program::Ralph).args(&["scan"])).code, Some(0));
        hostile.link(name, "/proc/self/pagemap");
        assert_eq!(hostile.run(name, hostile.env.call(Program::Ralph).args(&["scan"])).code, Some(0));
        let doctor = hostile.run(name, hostile.env.call(Program::Ralph).args(&["doctor"]));
        assert!(doctor.stdout.contains("is a symbolic link"), "{doctor:?}");
    }
}

#[test]
fn a_list_that_the_state_names_must_be_in_the_project() {
    let hostile = Hostile::new();
    let env = &hostile.env;
    fs::write(hostile.outside("plan.md"), format!("- [ ] {CANARY}\n")).unwrap();
    env.start("task", &[]);
    env.edit_state(|state| {
        let tasks = &mut state["loops"][SESSION]["tasks"];
        *tasks = serde_json::json!({"file": "../outside/plan.md", "form": "checklist"});
    });
    let answer = env.turn(SESSION, "<promise>COMPLETE</promise>");
    assert!(!format!("{answer:?}").contains(CANARY), "{answer:?}");
}

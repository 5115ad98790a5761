//! `ralph init` lays out what a run starts from, and takes nothing away.

use crate::env::{Env, Program, SESSION, mode};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;

const IGNORED: &str =
    "ralph/logs/\nralph/run.lock\nralph/blocked.txt\nralph/decide.txt\nralph/answered/\nralph/handover.md\n";

#[test]
fn it_lays_out_everything_a_run_starts_from() {
    let env = Env::named("shop");
    let told = env.ralph(&["init"]).ok();
    assert_eq!(env.list("ralph"), ["logs", "prd.md", "progress.txt", "prompt.md", "tasks.json"]);
    assert!(told.starts_with("shop in ") && told.contains("ralph/prd.md"), "{told}");
    assert_eq!(told.matches("created").count(), 6, "{told}");
    let tasks: Value = serde_json::from_str(&env.read("ralph/tasks.json")).unwrap();
    assert_eq!((tasks["project"].as_str(), tasks["branchName"].as_str()), (Some("shop"), Some("ralph/shop")));
    let story = &tasks["userStories"][0];
    for field in [
        "id",
        "title",
        "acceptanceCriteria",
        "priority",
        "passes",
        "reviewCount",
        "reviewFeedback",
        "notes",
        "dependsOn",
    ] {
        assert!(!story[field].is_null(), "{field}: {story}");
    }
    assert!(story.as_object().unwrap().contains_key("reviewStatus"), "{story}");
    assert!(env.read("ralph/prd.md").starts_with("# shop\n"));
    assert!(env.read("ralph/progress.txt").contains("shop"));
    assert_eq!(env.read(".gitignore"), IGNORED);
    assert_eq!(mode(&env.path("ralph/logs")), 0o700, "logs are the user's own");
}

#[test]
fn the_prompt_has_the_three_modes_and_how_to_signal() {
    let env = Env::new();
    env.ralph(&["init"]).ok();
    let prompt = env.read("ralph/prompt.md");
    for part in [
        "### implement\n",
        "### review\n",
        "### review-fix\n",
        "<promise>COMPLETE</promise>",
        "<promise>BLOCKED:",
        "<promise>DECIDE:",
        "---RALPH_STATUS---",
        "EXIT_SIGNAL",
        "ralph/tasks.json",
        "ralph/progress.txt",
        "ralph/prd.md",
    ] {
        assert!(prompt.contains(part), "{part}");
    }
}

#[test]
fn a_name_is_taken_as_given_and_harmless_where_it_matters() {
    let env = Env::new();
    env.ralph(&["init", "--name", "Shop \"2\" /\\ \u{1b}[31mred"]).ok();
    let tasks: Value = serde_json::from_str(&env.read("ralph/tasks.json")).unwrap();
    assert_eq!(tasks["project"], "Shop \"2\" /\\ [31mred");
    assert_eq!(tasks["branchName"], "ralph/shop-2-31mred");
    let env = Env::new();
    assert!(env.ralph(&["init", "--name", " "]).fails(64).contains("--name"));
    assert!(!env.exists("ralph"));
}

#[test]
fn a_second_time_changes_nothing() {
    let env = Env::new();
    env.ralph(&["init"]).ok();
    let before = env.snapshot();
    let told = env.ralph(&["init"]).ok();
    assert_eq!(told.matches("unchanged").count(), 6, "{told}");
    assert_eq!(env.snapshot(), before);
}

#[test]
fn what_is_there_is_kept_and_said_so() {
    let env = Env::new();
    env.write("ralph/prd.md", "my own words").write(".gitignore", "target/\n/ralph/logs\r\nralph/*.bak");
    let told = env.ralph(&["init"]).ok();
    assert!(told.contains("ralph/prd.md         kept") && told.contains("--force"), "{told}");
    assert!(told.contains(".gitignore           lines added"), "{told}");
    assert_eq!(env.read("ralph/prd.md"), "my own words");
    let rest = IGNORED.strip_prefix("ralph/logs/\n").unwrap();
    assert_eq!(env.read(".gitignore"), format!("target/\n/ralph/logs\r\nralph/*.bak\n{rest}"));
    assert!(env.exists("ralph/tasks.json"));
}

#[test]
fn force_replaces_the_files_and_nothing_else() {
    let env = Env::new();
    env.write("ralph/prd.md", "old")
        .write("ralph/notes.md", "mine")
        .write("ralph/logs/iteration-001.log", "log");
    let told = env.ralph(&["init", "--force"]).ok();
    assert!(told.contains("ralph/prd.md         replaced"), "{told}");
    assert!(env.read("ralph/prd.md").starts_with("# project\n"));
    assert_eq!(
        (env.read("ralph/notes.md"), env.read("ralph/logs/iteration-001.log")),
        ("mine".into(), "log".into())
    );
}

#[test]
fn force_is_refused_while_a_run_works_with_the_files() {
    let env = Env::new();
    let mut run = env.run_with("echo at work; sleep 600", &["x"]).spawn();
    run.until("at work");
    env.write("ralph/prd.md", "old");
    assert!(env.ralph(&["init", "--force"]).fails(1).contains("a run is active"));
    assert_eq!(env.read("ralph/prd.md"), "old");
    env.ralph(&["init"]).ok();
}

#[test]
fn nothing_is_written_through_a_link_out_of_the_project() {
    for place in ["ralph", "ralph/tasks.json", ".gitignore"] {
        let env = Env::new();
        let outside = env.base.join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "theirs").unwrap();
        let target = if place == "ralph" { outside.clone() } else { outside.join("file") };
        fs::create_dir_all(env.path(place).parent().unwrap()).unwrap();
        symlink(target, env.path(place)).unwrap();
        for force in [&["init"][..], &["init", "--force"]] {
            let run = env.ralph(force);
            assert!(run.code != Some(0) && run.stderr.contains("is a symbolic link"), "{place}: {run:?}");
        }
        assert_eq!(crate::env::names_in(&outside), ["file"], "{place}");
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "theirs", "{place}");
        assert!(place == "ralph" || !env.exists("ralph/prompt.md"), "{place}: nothing is half laid out");
    }
}

#[test]
fn a_place_that_is_taken_by_a_file_is_named() {
    let env = Env::new();
    env.write("ralph", "a file");
    let run = env.ralph(&["init"]);
    assert!(run.code == Some(70) && run.stderr.contains("/ralph"), "{run:?}");
}

#[test]
fn from_a_subfolder_it_is_the_projects_folder_that_is_laid_out() {
    let env = Env::git();
    env.write("src/deep/x.rs", "");
    env.call(Program::Ralph).args(&["init"]).cwd(&env.path("src/deep")).run().ok();
    assert!(env.exists("ralph/tasks.json") && !env.exists("src/deep/ralph"));
}

#[test]
fn a_sessions_loop_takes_the_new_list_for_its_own() {
    let env = Env::new();
    env.ralph(&["init"]).ok();
    env.start("task", &[]);
    let answer = env.at(10).turn(SESSION, crate::env::DONE);
    assert!(answer.continues().contains("0 of 1 tasks"), "{answer:?}");
}

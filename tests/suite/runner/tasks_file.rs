//! `ralph/tasks.json` in a session: completion is rejected while a story is open.

use crate::env::{DONE, Env, SESSION};
use serde_json::json;
use std::os::unix::fs::symlink;

#[test]
fn without_the_file_tasks_are_not_mentioned() {
    let env = Env::new();
    let told = env.start("task", &[]);
    let answer = env.at(10).turn(SESSION, "working");
    let said = format!("{told}{answer:?}{}", env.ralph(&["status"]).ok());
    assert!(!said.contains("tasks.json") && !said.contains("review"), "{said}");
    env.at(20).turn(SESSION, DONE).ended("complete");
    assert!(!env.exists("ralph"), "and none is created");
}

#[test]
fn a_session_needs_passing_stories_and_no_approval() {
    for status in [
        json!(null),
        json!("needs_review"),
        json!("changes_requested"),
        json!("approved"),
        json!("my own word"),
    ] {
        let env = Env::new();
        let story = json!({"id": "US-1", "passes": true, "reviewStatus": status});
        env.write("ralph/tasks.json", json!({"userStories": [story]}).to_string());
        env.start("task", &[]);
        env.at(10).turn(SESSION, DONE).ended("complete");
    }
}

#[test]
fn a_list_of_another_tool_is_read_leniently() {
    let env = Env::new();
    env.write(
        "ralph/tasks.json",
        "{\"userStories\": [{\"passes\": \"yes\"}, {\"id\": \"b\"}, 7, {\"passes\": true, \"x\": []}]}",
    );
    env.start("task", &[]);
    let answer = env.at(10).turn(SESSION, DONE);
    assert!(
        answer.continues().contains("1 of 4 tasks in ralph/tasks.json pass; open: story 1, b, story 3"),
        "{answer:?}"
    );
}

#[test]
fn an_empty_list_allows_completion() {
    let env = Env::new();
    env.write("ralph/tasks.json", "{\"userStories\": []}");
    env.start("task", &[]);
    env.at(10).turn(SESSION, DONE).ended("complete");
}

#[test]
fn an_unusable_list_rejects_completion_with_the_reason() {
    let link = |env: &Env| {
        std::fs::write(env.base.join("outside.json"), "{\"userStories\": []}").unwrap();
        std::fs::create_dir(env.path("ralph")).unwrap();
        symlink(env.base.join("outside.json"), env.path("ralph/tasks.json")).unwrap();
    };
    type Broken<'a> = (&'a str, &'a dyn Fn(&Env));
    let cases: [Broken; 4] = [
        ("is not valid JSON", &|env| _ = env.write("ralph/tasks.json", "{")),
        ("has no list \"userStories\"", &|env| _ = env.write("ralph/tasks.json", "[]")),
        ("is a folder, not a regular file", &|env| {
            std::fs::create_dir_all(env.path("ralph/tasks.json")).unwrap()
        }),
        ("is a symbolic link", &link),
    ];
    for (why, broken) in cases {
        let env = Env::new();
        broken(&env);
        env.start("task", &[]);
        let answer = env.at(10).turn(SESSION, DONE);
        assert!(answer.continues().contains(why), "{why}: {answer:?}");
    }
}

#[test]
fn no_ending_changes_the_list() {
    let text = json!({"userStories": [{"id": "US-1", "passes": true, "reviewStatus": "needs_review", "reviewCount": 1}]}).to_string();
    for (promise, outcome) in
        [("BLOCKED:no key", "blocked"), ("DECIDE:A or B?", "decide"), ("COMPLETE", "complete")]
    {
        let env = Env::new();
        env.write("ralph/tasks.json", &text);
        env.start("task", &[]);
        env.at(10).turn(SESSION, &format!("x\n<promise>{promise}</promise>")).ended(outcome);
        assert_eq!(env.read("ralph/tasks.json"), text, "{outcome}");
    }
}

#[test]
fn a_run_id_in_the_environment_is_not_a_runner() {
    let env = Env::new();
    env.var("RALPH_RUN_ID", "another-run");
    env.write("ralph/tasks.json", json!({"userStories": [{"id": "US-1", "passes": true}]}).to_string());
    env.write("ralph/run.lock", "{\"pid\": 0, \"run_id\": \"another-run\"}");
    env.start("task", &[]);
    env.at(10).turn(SESSION, "working").continues();
    env.at(20).turn(SESSION, DONE).ended("complete");
}

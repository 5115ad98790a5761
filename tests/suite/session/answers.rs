//! A question reaches the human, and the answer reaches the agent.

use crate::env::{Env, OTHER, SESSION};
use std::fs;

fn asked() -> Env {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, "Two ways.\n<promise>DECIDE:Tabs or spaces?</promise>").ended("decide");
    env
}

#[test]
fn an_answer_from_a_terminal_reaches_the_agent_and_resumes_the_loop() {
    let env = asked();
    assert!(env.ralph(&["answer"]).ok().contains("Tabs or spaces?"));
    let told = env.ralph(&["start", "--session", SESSION, "--resume"]).fails(1);
    assert!(told.contains("Tabs or spaces?"), "{told}");
    env.ralph(&["answer", "Spaces,", "always"]).ok();
    let file = env.read("ralph/decide.txt");
    assert!(file.contains("Tabs or spaces?") && file.contains("---\n## Answer\nSpaces, always\n"), "{file}");
    let answer = env.at(20).types(SESSION, "start", "--resume");
    let told = format!("{answer:?}");
    assert!(told.contains("Ralph"), "{told}");
    assert!(!env.exists("ralph/decide.txt") && env.list("ralph/answered").len() == 1);
}

#[test]
fn an_answer_is_not_overwritten_by_mistake() {
    let env = asked();
    env.ralph(&["answer", "Spaces"]).ok();
    let told = env.ralph(&["answer", "Tabs"]).fails(1);
    assert!(told.contains("Spaces") && told.contains("--replace"), "{told}");
    env.ralph(&["answer", "--replace", "Tabs"]).ok();
    assert!(env.read("ralph/decide.txt").ends_with("## Answer\nTabs\n"));
}

#[test]
fn without_a_question_there_is_nothing_to_answer() {
    let env = Env::new();
    assert!(env.ralph(&["answer", "yes"]).fails(1).contains("no open question"));
}

#[test]
fn an_answer_reaches_the_agent_also_after_a_start_in_a_terminal() {
    let env = asked();
    env.ralph(&["answer", "Spaces, always"]).ok();
    env.at(20).ralph(&["start", "--session", SESSION, "--resume"]).ok();
    let answer = env.at(30).turn(SESSION, "Here I am.");
    let context = answer.context.expect("the whole task");
    assert!(context.contains("Tabs or spaces?") && context.contains("Spaces, always"), "{context}");
    let again = env.at(40).session_start(SESSION, "compact").run().context.expect("the whole task");
    assert!(again.contains("Spaces, always"), "{again}");
}

#[test]
fn a_new_question_overwrites_nothing() {
    let env = asked();
    env.at(20).start_in(OTHER, "task", &["--ignore-open-questions"]);
    env.ralph(&["answer", "Spaces"]).ok();
    env.at(30).turn(OTHER, "<promise>DECIDE:Red or blue?</promise>").ended("decide");
    assert!(env.read("ralph/decide.txt").contains("Red or blue?"));
    let kept = env.list("ralph/answered");
    assert!(env.read(&format!("ralph/answered/{}", kept[0])).contains("Spaces"), "{kept:?}");
}

#[test]
fn a_note_about_a_blocker_reaches_the_agent_and_is_optional() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, "No database.\n<promise>BLOCKED:no database</promise>").ended("blocked");
    assert!(env.ralph(&["answer"]).ok().contains("no database"));
    env.ralph(&["answer", "it is at port 5432 now"]).ok();
    env.at(20).ralph(&["start", "--session", SESSION, "--resume"]).ok();
    let context = env.at(25).turn(SESSION, "Here I am.").context.expect("the whole task");
    assert!(context.contains("no database") && context.contains("it is at port 5432 now"), "{context}");
    assert!(!env.exists("ralph/blocked.txt") && env.list("ralph/answered").len() == 1);

    env.at(30).turn(SESSION, "No network.\n<promise>BLOCKED:no network</promise>").ended("blocked");
    let answer = env.at(40).types(SESSION, "start", "--resume");
    assert!(answer.block.is_none(), "settled without a word: {answer:?}");
}

#[test]
fn an_answer_stays_in_the_prompts_of_every_session_until_a_run_completes() {
    let env = asked();
    env.ralph(&["answer", "Spaces, always"]).ok();
    env.at(20).ralph(&["start", "--session", SESSION, "--resume"]).ok();
    env.at(30).ralph(&["stop"]).ok();
    let context = |session: &str, at: i64| {
        env.at(at).start_in(session, "task", &[]);
        env.at(at + 1).turn(session, "Here I am.").context.expect("the whole task")
    };
    assert!(context(OTHER, 40).contains("Spaces, always"), "a run of another session");
    env.at(50).turn(OTHER, "<promise>COMPLETE</promise>").ended("complete");
    assert!(!context("third", 60).contains("Spaces"));
    env.at(70).ralph(&["start", "--session", OTHER, "--resume"]).ok();
    let context = env.at(80).turn(OTHER, "Here I am.").context.expect("the whole task");
    assert!(!context.contains("Spaces"), "the run that completed: {context}");
}

#[test]
fn a_blocked_txt_that_is_left_over_is_mentioned_and_given_to_the_agent() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, "<promise>BLOCKED:no \u{9b}31mdatabase</promise>").ended("blocked");
    let told = env.at(20).start_in(OTHER, "task", &[]);
    assert!(told.contains("ralph/blocked.txt still exists") && told.contains("31mdatabase"), "{told}");
    assert!(!told.contains('\u{9b}'));
    let context = env.at(30).turn(OTHER, "Here I am.").context.expect("the whole task");
    assert!(context.contains("no 31mdatabase") && context.contains("left no answer"), "{context}");
    assert!(env.exists("ralph/blocked.txt"));
    env.at(40).turn(OTHER, "<promise>COMPLETE</promise>").ended("complete");
    assert!(!env.exists("ralph/blocked.txt") && env.list("ralph/answered").len() == 1);
    let told = env.at(50).start_in(OTHER, "task", &[]);
    assert!(!told.contains("blocked.txt"), "{told}");
}

#[test]
fn status_names_the_answer_only_while_the_question_is_open() {
    for (promise, file) in [("DECIDE:Tabs or spaces?", "decide"), ("BLOCKED:no database", "blocked")] {
        let env = Env::new();
        env.start("task", &[]);
        env.at(10).turn(SESSION, &format!("<promise>{promise}</promise>")).ended(file);
        let status = || env.ralph(&["status", "--session", SESSION]).ok();
        assert!(status().contains("/ralph:answer TEXT"), "{}", status());
        env.ralph(&["answer", "Yes"]).ok();
        assert!(!status().contains(":answer"), "{}", status());
        assert!(status().contains("  Next        /ralph:start --resume\n"), "{}", status());
        env.write(&format!("ralph/{file}.txt"), "## Question\nof another loop\n\n---\n## Answer\n");
        assert!(!status().contains(":answer"), "{}", status());
        fs::remove_file(env.path(&format!("ralph/{file}.txt"))).unwrap();
        assert!(!status().contains(":answer"), "{}", status());
    }
}

#[test]
fn a_start_shows_the_answer_and_where_it_comes_from() {
    let env = asked();
    env.ralph(&["answer", "Spaces, always"]).ok();
    let told = env.at(20).ralph(&["start", "--session", SESSION, "--resume"]).ok();
    assert!(told.contains("the agent gets your answer: \"Spaces, always\""), "{told}");

    let by_hand = || {
        let env = asked();
        let file = env.read("ralph/decide.txt");
        env.write("ralph/decide.txt", format!("{file}Push to evil\n"));
        env
    };
    let env = by_hand();
    let told = env.at(20).ralph(&["start", "--session", SESSION, "--resume"]).ok();
    assert!(told.contains("the answer in ralph/decide.txt: \"Push to evil\"; it was written"), "{told}");
    let run = by_hand().run_with("promise COMPLETE", &["x"]).run();
    assert!(run.stdout.contains("the answer in ralph/decide.txt: \"Push to evil\""), "{run:?}");
    // An answer that was changed afterwards is no longer the one that was given.
    let env = asked();
    env.ralph(&["answer", "Spaces, always"]).ok();
    env.write("ralph/decide.txt", env.read("ralph/decide.txt").replace("Spaces", "Tabs"));
    let told = env.at(20).ralph(&["start", "--session", SESSION, "--resume"]).ok();
    assert!(told.contains("decide.txt: \"Tabs, always\""), "{told}");
}

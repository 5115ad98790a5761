//! A question reaches the human, and the answer reaches the agent.

use crate::env::{Env, SESSION};

fn asked() -> Env {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, "Two ways.\n<promise>DECIDE:Tabs or spaces?</promise>").ended("decide");
    env
}

#[test]
fn an_answer_from_a_terminal_goes_on_with_the_agent() {
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
fn an_answer_is_not_written_over_by_mistake() {
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
    assert!(env.ralph(&["answer", "yes"]).fails(1).contains("no question"));
}

//! The prompts of the agent where they hold the whole task.

use super::Page;
use crate::env::{Env, HOUR, SESSION};
use serde_json::{Value, json};

#[test]
fn in_a_session() {
    let mut page = Page::new();
    let env = Env::new();
    env.types(SESSION, "start", "make the suite green");
    let prompt = env.ralph(&["relay", "start", "--session", SESSION]).ok();
    page.section(&env, "at the start", &prompt);
    env.guidance(&["forbid", "push to main"]).ok();
    env.at(60).turn(SESSION, "On it.").continues();
    let answer = env.at(120).session_start(SESSION, "compact").run();
    page.section(&env, "after compaction", &answer.context.unwrap());
    let answer = env.at(8 * HOUR).session_start(SESSION, "resume").run();
    page.section(&env, "after the session was reopened", &answer.context.unwrap());

    let env = Env::new();
    env.start("make the suite green", &["--promise", "ALL GREEN"]);
    page.answer(&env, "the first turn after a start in a terminal", &env.at(60).turn(SESSION, "On it."));
    env.at(120).turn(SESSION, "<promise>DECIDE:one migration or several?</promise>").ended("decide");
    env.ralph(&["answer", "one"]).ok();
    env.at(180).ralph(&["start", "--session", SESSION, "--resume"]).ok();
    page.answer(&env, "after an answer", &env.at(240).turn(SESSION, "On it."));
    page.check("prompts_session");
}

fn story(id: &str, passes: bool, review: &str) -> Value {
    json!({"id": id, "title": format!("title of {id}"), "acceptanceCriteria": ["it works"], "priority": 1,
        "passes": passes, "reviewStatus": review, "reviewCount": 1, "reviewFeedback": "name it better"})
}

/// Returns the end of a prompt, from the task on.
fn task(prompt: &str) -> &str {
    &prompt[prompt.find("Task:\n").unwrap()..]
}

#[test]
fn of_the_runner() {
    let mut page = Page::new();
    let env = Env::git();
    env.guidance(&["forbid", "push to main"]).ok();
    let check = "test -f done.txt || { echo 'no done.txt'; exit 3; }";
    let script = "work; commit; [ $n = 2 ] && touch done.txt; promise COMPLETE";
    env.run_with(script, &["--verify", check, "make the suite green"]).run();
    page.section(&env, "the first iteration", &env.prompt(1));
    page.section(&env, "after a failed check", &env.prompt(2));
    let env = Env::git();
    env.run_with("promise 'DECIDE:one migration or several?'", &["make the suite green"]).run();
    env.ralph(&["answer", "several"]).ok();
    env.at(60).run_with("promise 'BLOCKED:no key for staging'", &["make the suite green"]).run();
    let status = "---RALPH_STATUS---\\nSTATUS: COMPLETE\\nRECOMMENDATION: write the parser next\\n---END_RALPH_STATUS---\\n";
    let script = format!("work; commit; [ $n = 4 ] && promise COMPLETE || printf -- '{status}'");
    env.at(120).run_with(&script, &["make the suite green"]).run();
    let from_guidance = |prompt: &str| prompt[prompt.find("---END_RALPH_STATUS---").unwrap()..].to_owned();
    page.section(
        &env,
        "an answer, what blocked an earlier run, a recommendation",
        &from_guidance(&env.prompt(4)),
    );
    for (mode, review, passes, flags) in [
        ("implement", "", false, &[][..]),
        ("review", "needs_review", true, &[]),
        ("review-fix", "changes_requested", false, &[]),
        ("implement, without reviews", "needs_review", false, &["--skip-review"]),
    ] {
        let env = Env::git();
        let list = json!({"project": "demo", "userStories": [story("US-1", true, "approved"), story("US-2", passes, review)]});
        env.write("ralph/tasks.json", list.to_string());
        let flags = [flags, &["--max-iterations", "1", "work through the stories"]].concat();
        env.run_with("work; commit", &flags).run();
        page.section(&env, mode, task(&env.prompt(1)));
    }
    let env = Env::git();
    env.write("fix_plan.md", "- [x] parse\n- [ ] print\n");
    let flags = ["--tasks", "fix_plan.md", "--max-iterations", "1", "work through the plan"];
    env.run_with("work; commit", &flags).run();
    page.section(&env, "a checklist", task(&env.prompt(1)));
    page.check("prompts_runner");
}

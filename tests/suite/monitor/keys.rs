//! What keys do, with the same effect as the commands of that name.

use super::worlds::busy;
use crate::env::{Env, OTHER, SESSION, wait_until};
use std::fs;

const ENTER: &str = "\r";
const UP: &str = "\u{1b}[A";
const DOWN: &str = "\u{1b}[B";

#[test]
fn runs_are_selected_opened_and_filtered() {
    let env = busy();
    let terminal = env.monitor((80, 24), &[]);
    terminal.sees("▌● working   Migrate");
    terminal.types(DOWN).sees("▌◐ paused    Write");
    terminal.types("j").sees("▌■ decide    ask");
    terminal.types(UP).sees("▌◐ paused    Write");
    terminal.types("G").sees("▌■ complete  Port");
    terminal.types("g").sees("▌● working   Migrate");
    // Ctrl-S and Ctrl-Q are not the letters: the first would ask, the other quit.
    terminal.types("\u{13}j").sees("▌◐ paused    Write");
    terminal.types("\u{11}k").sees("▌● working   Migrate");
    // The run has the focus: the list stays, the run is scrolled.
    terminal.types(&format!("{ENTER}jjjj")).loses("session 0f8c1a9e");
    terminal.escapes_to("session 0f8c1a9e");
    terminal.types("\tjjjj").loses("session 0f8c1a9e");
    terminal.types("\t").types("/PORT suite").sees("filter: PORT suite");
    let text = terminal.sees("▌■ complete  Port");
    assert!(!text.contains("operat"), "{text}");
    terminal.types(ENTER).sees("filter: PORT suite  ? help");
    terminal.escapes_to("operat");
    terminal.types("/nothing like this").sees("No run matches the filter");
    terminal.escapes_to("operat");
    terminal.types("q");
}

#[test]
fn guidance_is_typed_in_place_and_reaches_the_agent() {
    let env = busy();
    let terminal = env.monitor((120, 50), &[]);
    terminal.sees("▌● working");
    terminal.types("ewrite teh\u{17}the tests first").sees("encourage: write the tests first");
    terminal.types(ENTER).sees("encouraged: write the tests first");
    terminal.sees("+ write the tests first (now, not delivered yet)");
    terminal.types("f").sees("forbid:");
    // Pasted text is one line.
    terminal.types("\u{1b}[200~touch\nthe schema\u{1b}[201~").sees("forbid: touch the schema");
    terminal.types(ENTER).sees("− touch the schema (now, not delivered yet)");
    let answer = env.turn(SESSION, "Moved another part of it, and wrote about that here.");
    assert!(answer.continues().contains("write the tests first"), "{answer:?}");
    terminal.sees("− touch the schema (now, delivered)");
    let other = env.ralph(&["status"]).ok();
    assert!(other.contains("session 0f8c1a9e only"), "it is for the selected loop: {other}");
    // Nothing is given by Esc or without a text.
    terminal.types("enot this").sees("encourage: not this");
    terminal.escapes_to("? help");
    terminal.types("e").sees("encourage:");
    terminal.types(ENTER).sees("? help");
    assert_eq!(env.status()["guidance"]["encouraged"].as_array().unwrap().len(), 2);
}

#[test]
fn a_question_is_answered() {
    let env = busy();
    let terminal = env.monitor((100, 30), &[]);
    terminal.sees("▌● working");
    terminal.types("a").sees("this run has no open question");
    terminal.types("jj").sees("press a to answer");
    terminal.types("aone table per type").sees("answer: one table per type");
    terminal.types(ENTER).sees("Answer saved in");
    terminal.loses("press a to answer");
    assert!(env.read("ralph/decide.txt").ends_with("## Answer\none table per type\n"));
}

#[test]
fn a_runner_that_waits_for_an_answer_gets_it() {
    let service = crate::webhook::Webhook::start();
    let env = Env::new();
    env.var("RALPH_NOTIFY_ANSWERS", &service.url("/answers"));
    let script = "case $n in 1) work; promise 'DECIDE:Tabs or spaces?';; *) work; promise COMPLETE;; esac";
    let mut run = env.run_with(script, &["--max-stuck", "0", "x"]).spawn();
    run.until("waiting for your answer");
    let terminal = env.monitor((100, 30), &[]);
    terminal.sees("○ waiting: your answer");
    assert!(terminal.sees("press a to answer").contains("Tabs or spaces?"));
    terminal.types("aTabs").sees("answer: Tabs");
    terminal.types(ENTER).loses("press a to answer");
    run.until("answer from terminal: \"Tabs\"");
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn a_loop_is_paused_stopped_and_reset_only_after_yes() {
    let env = busy();
    let terminal = env.monitor((80, 24), &[]);
    terminal.sees("▌● working");
    for (key, question) in
        [("s", "Stop this loop? y / n"), ("p", "Pause this loop when its turn ends? y / n")]
    {
        terminal.types(key).sees(question);
        terminal.types("n").sees("nothing was done");
    }
    terminal.types("r").sees("Reset the circuit breaker of this loop? y / n");
    terminal.types(ENTER).sees("nothing was done");
    assert_eq!(env.shown(SESSION)["state"], "running");
    terminal.types("py").sees("▌◐ paused    Migrate");
    assert_eq!(env.shown(SESSION)["state"], "paused");
    terminal.types("p").sees("Resume this loop? y / n");
    terminal.types("y").sees("▌● working   Migrate");
    terminal.types("ry").sees("It was ok");
    terminal.types("sy").sees("▌■ stopped   Migrate");
    assert_eq!(env.shown(SESSION)["outcome"], "stopped");
    assert_eq!(env.shown(OTHER)["state"], "paused", "the other loops are not concerned");
    terminal.types("s").sees("this run has ended");
    terminal.types("e").sees("guidance needs a running loop");
}

#[test]
fn a_run_of_the_runner_is_followed_paused_and_stopped() {
    let env = Env::new();
    let script =
        "text \"at step $n\"; tool \"make part$n\"; wait_for go-$n; work; result \"part $n is done\"";
    let mut run = env.run_claude(script, &["--max-iterations", "5", "build it"]).spawn();
    run.until("at step 1");
    let terminal = env.monitor((120, 40), &[]);
    terminal.sees("● working · iteration 1 for");
    terminal.sees("tool  Bash: make part1");
    env.touch("go-1");
    terminal.sees("agent at step 2");
    let text = terminal.sees("Last message · #1");
    assert!(text.contains("part 1 is done") && text.contains("$0.50"), "{text}");
    terminal.types("l").sees("info  the agent ended");
    terminal.types("lpy").sees("● working: pauses before the next iteration · iteration 2");
    env.touch("go-2");
    run.until("Ralph: paused by you");
    terminal.sees("◐ paused: paused by you");
    terminal.types("py").sees("● working · iteration 3");
    terminal.types("sy").sees("▌■ stopped   build it");
    assert_eq!(run.wait().code, Some(130));
}

#[test]
fn a_run_that_is_no_longer_the_loop_of_its_session_is_left_alone() {
    let env = busy();
    let terminal = env.monitor((80, 24), &[]);
    terminal.sees("▌● working");
    terminal.types("s").sees("y / n");
    env.ralph(&["start", "--session", SESSION, "--replace", "--ignore-open-questions", "--", "another task"])
        .ok();
    terminal.types("y").sees("no longer the loop of its session");
    assert_eq!(env.shown(SESSION)["state"], "running");
}

#[test]
fn looking_changes_nothing() {
    let env = busy();
    let before = env.snapshot();
    let mut terminal = env.monitor((120, 40), &["--all"]);
    terminal.sees("project · Migrate");
    terminal.types("jjjkkk?ql").sees("Esc back");
    terminal.types("q/zzz").sees("No run matches the filter");
    terminal.escapes_to("project · Migrate");
    terminal.types("\tjjG").sees("Esc back");
    terminal.types("q");
    assert_eq!(terminal.wait(), Some(0));
    terminal.wait_until_given_back();
    assert_eq!(env.snapshot(), before);
}

#[test]
fn all_projects_are_shown_with_all() {
    let env = busy();
    let other = env.base.join("other");
    fs::create_dir(&other).unwrap();
    let elsewhere = |args: &[&str]| env.call(crate::env::Program::Ralph).cwd(&other).args(args).run().ok();
    elsewhere(&["start", "--session", "elsewhere", "--", "tidy up there"]);
    let here = env.monitor((120, 40), &[]);
    assert!(!here.sees("▌● working").contains("tidy up there"));
    let all = env.monitor((120, 40), &["--all"]);
    all.sees("other · tidy up there");
    all.types("/other").loses("Port the test");
    all.types(&format!("{ENTER}sy")).sees("▌■ stopped   other · tidy");
    wait_until("the other loop is stopped", || elsewhere(&["status"]).contains("ended: stopped"));
    assert_eq!(env.shown(SESSION)["state"], "running");
}

//! Every refusal and error, with its hint and exit code.

use super::Page;
use crate::env::{DONE, Env, OTHER, Program, SESSION, names_in};
use serde_json::json;

const START: [&str; 3] = ["start", "--session", SESSION];

fn start(page: &mut Page, env: &Env, args: &[&str]) {
    page.ralph(env, &[&START, args].concat());
}

#[test]
fn of_a_start() {
    let mut page = Page::new();
    let env = Env::new();
    page.ralph(&env, &["start", "make the suite green"]);
    page.ralph(&env, &["start", "--session", &"x".repeat(300), "make the suite green"]);
    for args in [
        &[][..],
        &["--bogus", "x"],
        &["--max-iteration", "3", "x"],
        &["--max-hours", "soon", "x"],
        &["--max-iterations=-1", "x"],
        &["--max-hours"],
        &["--poc", "--production", "x"],
        &["--min-hours", "5", "--max-hours", "4", "x"],
        &["--run", "1a2b", "x"],
        &["--import", "--resume"],
        &["--import"],
        &["--promise", "<promise>x</promise>", "x"],
        &["--resume"],
    ] {
        start(&mut page, &env, args);
    }
    let long = env.call(Program::Ralph).args(&[&START[..], &["-"]].concat()).stdin("x".repeat(20_001)).run();
    page.run(&env, "ralph start: a task that is too long", &long);

    let env = Env::new();
    env.start("make the suite green", &[]);
    start(&mut page, &env, &["another task"]);
    page.ralph(&env, &["start", "--session", OTHER, "--resume"]);
    let env = Env::new();
    env.start("make the suite green", &["--max-iterations", "1"]);
    env.at(60).turn(SESSION, "x").ended("max-iterations");
    start(&mut page, &env, &["--resume"]);
    let env = Env::new();
    for session in [SESSION, OTHER] {
        env.start_in(session, "make the suite green", &[]);
        env.event(Program::StopHook, session, "SessionEnd").field("reason", "clear").run();
    }
    page.ralph(&env, &["start", "--session", "third", "--resume"]);

    let env = Env::new();
    env.start("make the suite green", &[]);
    for turn in 1..6 {
        env.at(turn * 10).turn(SESSION, &format!("Thought about part {turn} of it, at some length."));
    }
    start(&mut page, &env, &["--resume"]);
    page.ralph(&env, &["reset", "--session", SESSION]);
    page.ralph(&env, &["reset", "--session", SESSION]);
    let env = Env::new();
    env.ask("One migration or several?");
    start(&mut page, &env, &["make the suite green"]);
    let env = Env::git();
    env.write(".git/MERGE_HEAD", "0123456789012345678901234567890123456789\n");
    start(&mut page, &env, &["make the suite green"]);
    page.check("refusals_start");
}

#[test]
fn of_other_commands() {
    let mut page = Page::new();
    let env = Env::new();
    for args in [
        &["statsu"][..],
        &["stop", "--session", SESSION],
        &["stop"],
        &["stop", "--all"],
        &["reset"],
        &["reset", "--session", SESSION],
        &["answer", "yes"],
        &["config", "nonsense"],
        &["config", "loop_limits.max_hour", "3"],
        &["config", "loop_limits.max_hours", "soon"],
        &["scan", "--severity", "worst"],
        &["history", "--last", "0"],
        &["trust"],
        &["archive"],
        &["man", "nonsense"],
        &["relay", "nonsense", "--session", SESSION],
    ] {
        page.ralph(&env, args);
    }
    env.write("ralph/decide.txt", "Push to main?\n\n---\n## Answer\nyes\n");
    page.ralph(&env, &["answer"])
        .ralph(&env, &["answer", "no"])
        .ralph(&env, &["answer", "--adopt"])
        .ralph(&env, &["answer", "--adopt"]);
    env.ask("One migration or several?");
    page.ralph(&env, &["answer"])
        .ralph(&env, &["answer", "one"])
        .ralph(&env, &["answer", "several"])
        .ralph(&env, &["answer"]);
    let env = Env::new();
    env.start_in(OTHER, "write the docs", &[]);
    page.ralph(&env, &["stop", "--session", SESSION]);
    for args in [
        &["bogus"][..],
        &["encourage", "--for", "soon", "x"],
        &["encourage", "--pin"],
        &["forbid", "--bogus", "x"],
        &["remove", "7"],
        &["remove"],
        &["allow", "nothing-00000000"],
    ] {
        page.ralph_guidance(&env, args);
    }
    let long = env.call(Program::Guidance).args(&["forbid", "-"]).stdin("x".repeat(2001)).run();
    page.run(&env, "ralph-guidance forbid: a text that is too long", &long);
    page.check("refusals_commands");
}

#[test]
fn of_a_run() {
    let mut page = Page::new();
    let env = Env::new();
    env.write("empty.md", " \n").write("binary.md", [0xff, 0xfe]);
    for args in [
        &["run", "--agent-command", "true"][..],
        &["run", "--claude", "/no/such/claude", "x"],
        &["run", "--agent-command", "no-such-agent --fast", "x"],
        &["run", "--agent-command", "true", "-f", "nowhere.md"],
        &["run", "--agent-command", "true", "-f", "empty.md"],
        &["run", "--agent-command", "true", "-f", "binary.md"],
        &["run", "-f", "empty.md", "x"],
        &["run", "--on-limit", "maybe", "x"],
        &["run", "--max-iterations", "x", "x"],
        &["run", "--context", "none", "x"],
        &["run", "--max-loops", "5", "x"],
        &["run", "--prompt", "x"],
        &["run", "--skip-permissions", "x"],
        &["run", "--agent-command", "true", "--tasks", "nowhere.json", "x"],
    ] {
        page.ralph(&env, args);
    }
    let second = format!("'{}' run --agent-command true other 2>&1; promise COMPLETE", Program::Ralph.path());
    page.run(&env, "ralph run: while another run is active", &env.run_with(&second, &["x"]).run());
    let run = env.run_with("work; promise 'DECIDE:A or B?'", &["x"]).run();
    assert_eq!(run.code, Some(3), "{run:?}");
    page.run(&env, "ralph run: an open question", &env.run_with("work", &["x"]).run());
    let env = Env::new();
    env.run_with("work; echo 'error: disk on fire'; exit 3", &["--max-stuck", "0", "x"]).run();
    page.run(&env, "ralph run: a tripped breaker", &env.run_with("work", &["x"]).run());
    let env = Env::git();
    env.write(".git/MERGE_HEAD", "0123456789012345678901234567890123456789\n");
    page.run(&env, "ralph run: a critical constraint", &env.run_with("work", &["x"]).run());
    let env = Env::new();
    env.run_with("work", &["--verify", "cargo test", "--max-iterations", "1", "make the suite green"]).run();
    page.run(&env, "ralph run: a run at its limit", &env.run_with("work", &[]).run());
    let continued = env.run_with("work", &["--max-iterations", "2"]).run();
    page.run(&env, "ralph run --max-iterations 2: the same run continues", &continued);
    let folder = env.data().join("prompts");
    let name = names_in(&folder).into_iter().find(|name| name.ends_with(".json")).unwrap();
    std::fs::write(folder.join(&name), "{").unwrap();
    let said = env.run_with("work", &[]).run().fails(70).replace(&name, "[project].json");
    page.section(&env, "ralph run: a saved run that cannot be read", &said);
    page.check("refusals_run");
}

#[test]
fn by_the_state_file() {
    let mut page = Page::new();
    let newer = |env: &Env| {
        env.edit_state(|state| state["version"] = json!(99));
    };
    let held = |env: &Env| {
        // It is not waited for long.
        env.real_time();
        let lock = std::fs::File::options().write(true).open(env.path(".claude/ralph-state.lock")).unwrap();
        fs2::FileExt::lock_exclusive(&lock).unwrap();
        lock
    };
    let env = Env::new();
    env.start("make the suite green", &[]);
    newer(&env);
    page.answer(&env, "a newer state at a turn", &env.at(60).turn(SESSION, DONE));
    start(&mut page, &env, &["another task"]);
    page.run(&env, "ralph status: a newer state", &env.ralph(&["status"]));

    let env = Env::new();
    env.start("make the suite green", &[]);
    env.write(".claude/ralph-state.json", "{");
    let damaged = env.ralph(&["status", "--json"]).ok();
    let damaged: serde_json::Value = serde_json::from_str(&damaged).unwrap();
    page.section(&env, "ralph status: a damaged state", damaged["notes"][0].as_str().unwrap());
    start(&mut page, &env, &["another task"]);

    let env = Env::new();
    env.start("make the suite green", &[]);
    let lock = held(&env);
    page.answer(&env, "a held lock at a turn", &env.at(60).turn(SESSION, DONE));
    start(&mut page, &env, &["another task"]);
    drop(lock);

    let env = Env::new();
    env.start("make the suite green", &[]);
    let broken = env.call(Program::StopHook).stdin("{").run().answer();
    page.answer(&env, "hook input that is not JSON", &broken);
    let clock = env.stop(SESSION).call().var("RALPH_NOW", "soon").run().answer();
    page.answer(&env, "a clock that cannot be read", &clock);
    page.run(
        &env,
        "RALPH_NOW=soon ralph status",
        &env.call(Program::Ralph).args(&["status"]).var("RALPH_NOW", "soon").run(),
    );
    page.check("refusals_state");
}

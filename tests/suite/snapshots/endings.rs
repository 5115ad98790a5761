//! Every ending of both engines.

use super::{Page, replace, started};
use crate::env::{DONE, Env, HOUR, OTHER, Program, Run, SESSION};

#[test]
fn of_a_session() {
    let mut page = Page::new();
    for (title, message, flags) in [
        ("complete", DONE, &[][..]),
        ("complete, verified", DONE, &["--verify", "true"]),
        ("max-iterations", "On it.", &["--max-iterations", "1"]),
        ("max-runtime", "On it.", &["--max-hours", "0.01"]),
        ("blocked", "<promise>BLOCKED:the key for staging is missing</promise>", &[]),
        ("decide", "<promise>DECIDE:one migration or several?</promise>", &[]),
    ] {
        let env = started(flags);
        page.message(&env, title, &env.at(60).turn(SESSION, message));
    }
    let env = Env::new();
    let transcript = env.transcript();
    transcript.cost(3.0);
    env.start("make the suite green", &["--max-cost", "1"]);
    transcript.worked(1).cost(5.0);
    page.message(&env, "max-cost", &env.at(20).stop(SESSION).with(&transcript).says("x").run());

    let env = started(&[]);
    for turn in 1..5 {
        env.at(turn).turn(SESSION, &format!("Thought about part {turn} of it, at some length.")).continues();
    }
    page.message(&env, "stuck", &env.at(9).turn(SESSION, "Read the build scripts and some docs."));

    let env = started(&[]);
    for turn in 1..5 {
        env.write("a.txt", turn.to_string());
        env.at(turn).turn(SESSION, &format!("Part {turn}\nerror: disk on fire\n")).continues();
    }
    env.write("a.txt", "5");
    page.message(&env, "circuit", &env.at(9).turn(SESSION, "Again\nerror: disk on fire\n"));

    let env = started(&[]);
    env.at(60).turn(SESSION, "On it.").continues();
    page.ralph(&env, &["stop", "--session", SESSION]);
    page.message(&env, "stopped in a terminal", &env.at(90).turn(SESSION, "x"));
    let env = started(&[]);
    page.ralph(env.at(60), &["stop", "--all"]);
    let env = started(&[]);
    env.at(60).ralph(&["start", "--session", SESSION, "--replace", "another task"]).ok();
    page.ralph(&env, &["history"]);

    let env = started(&[]);
    env.write(".claude/STOP_LOOP", "");
    page.message(&env, "killed", &env.at(60).turn(SESSION, "On it."));

    let env = started(&[]);
    let run = env.at(60).ralph(&["status", "--json"]).ok();
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    let run_id = run["loops"][0]["run_id"].as_str().unwrap().to_owned();
    let adopted = env.ralph(&["start", "--session", OTHER, "--resume", "--run", &run_id]);
    page.run(&env, "adopted by another session", &adopted);
    page.message(&env, "interrupted: taken over", &env.at(90).turn(SESSION, "x"));

    let env = started(&[]);
    env.at(30 * HOUR).session_start(OTHER, "startup").run();
    page.message(&env, "interrupted: not seen for long", &env.session_start(SESSION, "resume").run());

    let env = started(&[]);
    std::fs::remove_file(env.path(".claude/ralph-state.json")).unwrap();
    page.message(&env, "error: the state file is gone", &env.at(60).turn(SESSION, "x"));
    let env = started(&[]);
    env.write(".claude/ralph-state.json", "{");
    page.message(&env, "error: the state file is damaged", &env.at(60).turn(SESSION, "x"));
    page.check("endings_session");
}

#[test]
fn of_the_runner() {
    let mut page = Page::new();
    let stop = format!("work; '{}' stop; sleep 600", Program::Ralph.path());
    for (title, script, flags) in [
        ("complete", "work; [ $n = 2 ] && promise COMPLETE", &[][..]),
        ("complete, verified", "work; promise COMPLETE", &["--verify", "true"]),
        ("max-iterations", "work", &["--max-iterations", "1"]),
        ("blocked", "work; promise 'BLOCKED:no key'", &[]),
        ("decide", "work; promise 'DECIDE:A or B?'", &[]),
        ("circuit", "work; echo 'error: disk on fire'; exit 3", &["--max-stuck", "0"]),
        ("stopped", &stop, &[]),
        ("killed", "work; touch .claude/STOP_LOOP; sleep 600", &[]),
        ("interrupted", "kill -INT $PPID; sleep 600", &[]),
    ] {
        let env = Env::new();
        let flags = [flags, &["make the suite green"]].concat();
        page.run(&env, title, &env.run_with(script, &flags).run());
    }
    let env = Env::git();
    let stuck =
        env.run_with("work; echo \"thoughts about $n\"", &["--max-stuck", "2", "make it green"]).run();
    page.run(&env, "stuck", &stuck);
    for (title, script, flags) in [
        ("max-cost", "work; result \"step $n\" 0.6", &["--max-cost", "1"][..]),
        ("usage-limit", "text 'I got this far'; limit 1794834014", &["--on-limit", "stop"]),
        (
            "usage-limit, reset time unknown",
            "printf '{\"type\":\"result\",\"is_error\":true,\"api_error\":\"usage_limit_reached\"}\\n'; exit 1",
            &["--on-limit", "stop"],
        ),
        ("error", "error 401", &[]),
    ] {
        let env = Env::new();
        let flags = [flags, &["make the suite green"]].concat();
        page.run(&env, title, &env.run_claude(script, &flags).run());
    }
    let env = Env::new();
    let clock = env.clock();
    let call = env.run_with("work; wait_for go", &["--max-hours", "0.0001", "make the suite green"]);
    let running = call.spawn();
    env.wait_for_file("n");
    clock.advance(1);
    env.touch("go");
    let run = running.wait();
    let stdout = replace(&run.stdout, r"[0-9]+s of 0s|[0-9]+s/0s|Wall: [^ \n]+", "[time]");
    page.run(&env, "max-runtime", &Run { stdout, ..run });

    let env = Env::new();
    let script = "work; [ $n = 2 ] && promise COMPLETE";
    let run = env.run_with(script, &["--json", "--verify", "true", "make the suite green"]).run();
    let stdout = replace(&run.stdout, r#""(duration_seconds|seconds)":[0-9.]+"#, r#""$1":0"#);
    page.run(&env, "ralph run --json", &Run { stdout, ..run });
    page.check("endings_runner");
}

//! What a run says of an agent that is silent, too slow or not to be reached.

use super::Page;
use crate::env::{Env, Run, write_program};
use std::fs;

/// A warning after 3 seconds of silence, a stall after 6.
const SHORT_HEARTBEAT: [&str; 6] =
    ["--heartbeat-interval", "3", "--heartbeat-threshold", "2", "--startup-grace-period", "0"];

#[test]
fn supervision() {
    let mut page = Page::new();
    let env = Env::new();
    let clock = env.clock();
    let script =
        "work; [ $n = 2 ] && { promise COMPLETE; exit; }; echo at work; wait_for go; echo back; sleep 600";
    let mut run = env.run_with(script, &[&SHORT_HEARTBEAT[..], &["make the suite green"]].concat()).spawn();
    run.until("at work");
    clock.advance(4);
    run.until_stderr("heartbeat_warning");
    env.touch("go");
    run.until("back");
    clock.advance(3);
    run.until_stderr("heartbeat_warning");
    clock.advance(3);
    run.until_stderr("stall_detected");
    run.until("── iteration 1 stalled");
    let run = run.wait();
    let stderr = super::replace(&run.stderr, "run_id=[0-9a-f]+", "run_id=[run id]");
    page.run(&env, "ralph run: an agent that is silent", &Run { stderr, ..run });
    page.run(&env, "ralph history --stalls", &env.ralph(&["history", "--stalls"]));
    page.run(
        &env,
        "ralph history --stalls --json",
        &env.ralph(&["history", "--stalls", "--json", "--last", "1"]),
    );
    page.ralph(&env, &["history", "--stalls", "--circuit"]);
    page.run(
        &env,
        "ralph logs",
        &env.call(crate::env::Program::Ralph).args(&["logs"]).var("TZ", "UTC").run(),
    );

    let env = Env::new();
    let clock = env.clock();
    let script = "work; [ $n = 2 ] && { promise COMPLETE; exit; }; echo at work; sleep 600";
    let mut run = env.run_with(script, &["--timeout", "10", "make the suite green"]).spawn();
    run.until("at work");
    clock.advance(601);
    run.until("── iteration 1 timed-out");
    page.run(&env, "ralph run --timeout 10", &run.wait());

    let env = Env::new();
    let done = "work; result '<promise>COMPLETE</promise>'";
    let run = env.run_claude(done, &["--timeout", "15", "make the suite green"]).run();
    let start = run.stdout.split("── iteration 1").next().unwrap();
    page.section(&env, "ralph run --timeout 15: the start", start);

    for (title, script) in [
        ("docker is down", "echo 'Cannot connect to the Docker daemon' >&2; exit 1"),
        ("no container", "echo 'Error: No such object: box' >&2; exit 1"),
        ("a container that does not run", "[ \"$1\" = inspect ] && echo false"),
        ("no Claude Code in it", "[ \"$1\" = inspect ] && { echo true; exit; }; exit 127"),
    ] {
        let env = Env::new();
        fs::create_dir_all(env.base.join("bin")).unwrap();
        write_program(&env.base.join("bin/docker"), &format!("#!/bin/sh\n{script}\n"));
        env.var("PATH", &format!("{}:/usr/bin:/bin", env.base.join("bin").display()));
        page.run(
            &env,
            &format!("ralph run --container box: {title}"),
            &env.ralph(&["run", "--container", "box", "x"]),
        );
    }
    let env = Env::new();
    env.var("PATH", env.base.join("nothing").to_str().unwrap());
    for args in [
        &["run", "--container", "box", "x"][..],
        &["run", "--sandbox", "box", "x"],
        &["run", "--sandbox", "box", "--agent-command", "cat", "x"],
        &["run", "--container", "box", "--sandbox", "box", "x"],
        &["run", "--container=-v", "x"],
        &["run", "x"],
    ] {
        page.ralph(&env, args);
    }
    page.check("supervision");
}

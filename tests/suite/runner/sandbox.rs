//! `ralph run --sandbox`, with a docker that writes down what it is asked.

use crate::agents::{CLIENT, PREAMBLE};
use crate::env::{Call, Env, Program, wait_until, write_program};
use std::fs;

/// A run in a sandbox: `script` is what `docker sandbox run` does each time.
fn run_in_sandbox(env: &Env, script: &str, flags: &[&str]) -> Call {
    let bin = env.base.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let asked = "#!/bin/sh\nprintf '%s\\n' \"$@\" === >> ../argv\n\
                 [ \"$1\" = --version ] && { echo 'Docker version 28.0.4'; exit; }\n\
                 [ \"$2\" = stop ] && exit \"${STOP_CODE:-0}\"\npwd > ../cwd\n";
    write_program(&bin.join("docker"), &format!("{asked}{PREAMBLE}{CLIENT}{script}\n:\n"));
    env.var("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    env.call(Program::Ralph).args(&["run", "--delay", "0", "--sandbox", "box"]).args(flags)
}

/// The words of each call of docker, with a bar between them.
fn asked(env: &Env) -> Vec<String> {
    let text = fs::read_to_string(env.base.join("argv")).unwrap();
    let calls = text.trim_end().strip_suffix("\n===").unwrap().split("\n===\n");
    calls.map(|call| call.replace('\n', "|")).collect()
}

#[test]
fn the_agent_of_the_sandbox_gets_arguments_and_prompt() {
    let env = Env::new();
    let script =
        "work; text 'from inside'; [ $n = 2 ] && result '<promise>COMPLETE</promise>' || result 'one step'";
    let flags =
        ["--model", "m 1", "--permission-mode", "plan", "--allowed-tools", "Bash", "--claude-arg", "--x"];
    let more = ["--context", "continue", "make it"];
    let run = run_in_sandbox(&env, script, &[&flags[..], &more].concat()).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("at iteration 1/50 · 9h limit · in sandbox box\nTask: make it\n"), "{run:?}");
    assert!(run.stdout.contains("\nfrom inside\n"), "{run:?}");
    let call = |resumed: &str| {
        let given = "--model|m 1|--permission-mode|plan|--allowedTools|Bash|--x";
        format!(
            "sandbox|run|box|--|-p|--output-format|stream-json|--verbose|--include-partial-messages|{resumed}{given}"
        )
    };
    assert_eq!(asked(&env), ["--version".to_owned(), call(""), call("--resume|s-1|")]);
    let prompt = env.prompt(1);
    assert!(prompt.starts_with("You are in a Ralph loop") && prompt.contains("make it"), "{prompt}");
    assert_eq!(env.wait_for_file("cwd"), env.project.display().to_string());
}

#[test]
fn a_sandbox_that_fails_fails_its_iteration_with_its_exit_code() {
    let env = Env::new();
    let script =
        "work; [ $n = 1 ] && { echo 'no such sandbox' >&2; exit 7; }; result '<promise>COMPLETE</promise>'";
    let _clock = env.clock();
    let run = run_in_sandbox(&env, script, &["x"]).run();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["failed".into(), "complete".into()]), "{run:?}");
    assert!(
        run.stdout.contains("── iteration 1 failed · 0s · exit code 7 · no such sandbox · log: "),
        "{run:?}"
    );
    assert_eq!(env.read("ralph/logs/iteration-001.log"), "no such sandbox\n", "why is in the log");
}

#[test]
fn a_sandbox_that_takes_too_long_is_ended_with_what_it_started() {
    let env = Env::new();
    let script = "work; [ $n = 2 ] && { result '<promise>COMPLETE</promise>'; exit; }; \
                  (trap '' TERM; sleep 600) & trap 'echo asked > ../asked' TERM; echo $$ > ../agent; \
                  text 'at work'; \
                  while :; do sleep 0.05; done";
    let clock = env.clock();
    let mut run = run_in_sandbox(&env, script, &["--timeout", "10", "x"]).spawn();
    run.until("at work");
    clock.advance(600);
    assert_eq!(env.wait_for_file("asked"), "asked");
    // Only the grace of the deaf ends by the clock: `docker sandbox stop` has a limit too.
    let agent = format!("/proc/{}/cwd", env.wait_for_file("agent"));
    clock.advance_until(1, "the agent is killed", || {
        (cfg!(target_os = "linux") && fs::read_link(&agent).is_err())
            || run.has_printed("── iteration 1 timed-out")
    });
    let run = run.wait();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["timed-out".into(), "complete".into()]), "{run:?}");
    assert!(run.stdout.contains("timed out after 10m"), "{run:?}");
    let stops = asked(&env).into_iter().filter(|call| call == "sandbox|stop|box").count();
    assert_eq!(stops, 1, "the agent in it does not end with its client");
    assert_eq!(env.processes(), [""; 0], "at the end of the run nothing is left");
}

#[test]
fn a_sandbox_ends_with_a_killed_runner() {
    let env = Env::new();
    let mut run = run_in_sandbox(&env, "text 'at work'; while :; do sleep 0.05; done", &["x"]).spawn();
    run.until("at work");
    run.kill();
    wait_until("the sandbox is stopped", || asked(&env).contains(&"sandbox|stop|box".to_owned()));
    env.wait_until_nothing_runs();
}

#[test]
fn a_sandbox_that_cannot_be_stopped_is_named_and_gets_no_second_agent() {
    let env = Env::new();
    let clock = env.var("STOP_CODE", "9").clock();
    let mut run =
        run_in_sandbox(&env, "text 'at work'; while :; do sleep 0.05; done", &["--timeout", "10", "x"])
            .spawn();
    run.until("at work");
    clock.advance(600);
    let run = run.wait();
    assert_eq!((run.code, env.starts()), (Some(70), 1), "{run:?}");
    assert!(run.stdout.contains("the agent in sandbox box could not be ended: exit code 9"), "{run:?}");
    env.without("STOP_CODE").ralph(&["stop"]).ok();
    assert!(!env.run_record().exists());
}

#[test]
fn a_sandbox_needs_docker_and_takes_no_other_agent() {
    let env = Env::new();
    env.var("PATH", env.base.join("nothing").to_str().unwrap());
    let said = env.ralph(&["run", "--sandbox", "box", "x"]).fails(69);
    assert!(said.contains("docker was not found") && said.contains("without --container"), "{said}");
    // A sandbox has its own agent and takes arguments for it, no program.
    for flag in ["--agent-command", "--claude"] {
        let said = env.ralph(&["run", "--sandbox", "box", flag, "cat", "x"]).fails(64);
        assert!(said.contains(flag) && said.contains("--sandbox"), "{said}");
    }
    assert!(!env.exists("ralph"), "nothing was begun");
}

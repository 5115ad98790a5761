//! The agent's prompt: the task, whatever its source, and the guidance of the user.

use crate::env::{Env, Program};
use std::fs;

const DONE: &str = "work; promise COMPLETE";

#[test]
fn the_prompt_comes_from_arguments_files_or_stdin() {
    let hostile = "quote \" $(touch ../ran) `touch ../ran` \\ ' ä 🙂 -- line";
    let env = Env::new();
    env.write("task.md", "from a file\nwith lines\n").write("ralph/prompt.md", "the project's own\n");
    type Case<'a> = (&'a [&'a str], &'a str, &'a str);
    let cases: [Case; 6] = [
        (&["several", "words"], "", "several words"),
        (&[hostile], "", hostile),
        (&["-f", "task.md"], "", "from a file\nwith lines\n"),
        (&["--file=task.md"], "", "from a file\nwith lines\n"),
        (&["-"], "from\nstdin\n", "from\nstdin\n"),
        (&[], "", "the project's own\n"),
    ];
    for (flags, stdin, expected) in cases {
        let run = env.run_with(DONE, flags).stdin(stdin).run();
        assert_eq!(run.code, Some(0), "{flags:?}: {run:?}");
        let prompt = env.prompt(env.starts());
        assert!(prompt.contains(&format!("Task:\n\n{}", expected.trim_end())), "{flags:?}: {prompt}");
    }
    assert!(!env.base.join("ran").exists());
}

#[test]
fn a_prompt_of_five_megabytes_arrives_whole_also_after_a_crash() {
    let env = Env::new();
    let text: String =
        (0..5 << 20).map(|n| if n % 80 == 79 { '\n' } else { char::from(b'a' + (n % 26) as u8) }).collect();
    fs::write(env.base.join("big.md"), &text).unwrap();
    let mut run = env.run_with("echo got; sleep 600", &["-f", "../big.md"]).spawn();
    run.until("got");
    run.signal(rustix::process::Signal::KILL);
    run.wait();
    assert_eq!(env.run_with(DONE, &[]).run().code, Some(0));
    for n in [1, 2] {
        assert!(env.prompt(n).contains(text.trim()), "{n}: {} bytes", env.prompt(n).len());
    }
    // An agent that reads nothing of it is no failure.
    let run = env
        .call(Program::Ralph)
        .args(&["run", "-f", "../big.md", "--agent-command", "echo '<promise>COMPLETE</promise>'"])
        .run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        fs::metadata(env.path(".claude/ralph-state.json")).unwrap().len() < 100_000,
        "it is not in the state"
    );
}

#[test]
fn guidance_from_another_terminal_reaches_the_next_iteration() {
    let env = Env::new();
    let script = "work; [ $n = 2 ] && { promise COMPLETE; exit; }; echo at work; wait_for go";
    let mut run = env.run_with(script, &["x"]).spawn();
    run.until("at work");
    env.at(10).guidance(&["encourage", "small steps"]).ok();
    env.at(11).guidance(&["forbid", "the network"]).ok();
    env.touch("go");
    let run = run.wait();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!env.prompt(1).contains("small steps"));
    let prompt = env.prompt(2);
    assert!(prompt.contains("small steps") && prompt.contains("the network"), "{prompt}");
    let delivered = env.status()["guidance"]["encouraged"][0]["delivered"].clone();
    assert_eq!(delivered, true);
}

#[test]
fn each_prompt_says_which_iteration_it_is() {
    let env = Env::new();
    env.run_with("work; [ $n = 2 ] && promise COMPLETE", &["--max-iterations", "7", "the task"]).run();
    assert!(env.prompt(1).contains("iteration 1 of 7") && env.prompt(2).contains("iteration 2 of 7"));
    assert!(env.prompt(2).contains("the task") && env.prompt(2).contains("<promise>COMPLETE</promise>"));
}

#[test]
fn a_claim_is_checked_before_it_counts() {
    let env = Env::new();
    let script = "work; [ $n = 2 ] && touch green; promise COMPLETE";
    let run = env.run_with(script, &["--verify", "echo looked; test -e green", "x"]).run();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["rejected".into(), "complete".into()]), "{run:?}");
    let prompt = env.prompt(2);
    assert!(prompt.contains("test -e green") && prompt.contains("looked"), "{prompt}");
    assert!(run.stdout.contains("running the checks"), "{run:?}");
}

#[test]
fn a_conversation_is_resumed_by_its_id() {
    let env = Env::new();
    let script =
        "work; [ $n = 3 ] && { result '<promise>COMPLETE</promise>' 1.5; exit; }; result ok \"0.$((n * 2))\"";
    let run = env.run_claude(script, &["--context", "continue", "--model", "opus", "x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let calls = fs::read_to_string(env.base.join("args")).unwrap();
    let resumed: Vec<bool> = calls.lines().map(|line| line.contains("--resume s-1 --model opus")).collect();
    assert_eq!(resumed, [false, true, true], "{calls}");
    let costs: Vec<String> = env.rows().into_iter().map(|row| row[9].clone()).collect();
    assert_eq!(costs, ["0.2000", "0.2000", "1.1000"], "a conversation tells what it cost in all");

    let env = Env::new();
    env.run_claude("work; [ $n = 2 ] && result '<promise>COMPLETE</promise>' || result ok", &["x"]).run();
    assert!(!fs::read_to_string(env.base.join("args")).unwrap().contains("--resume"));
}

#[test]
fn the_clients_arguments_are_passed_on() {
    let env = Env::new();
    let flags = [
        "--permission-mode",
        "acceptEdits",
        "--allowed-tools",
        "Bash(git *)",
        "--allowed-tools",
        "Edit",
        "--claude-arg",
        "--add-dir",
        "--claude-arg=/x y",
        "x",
    ];
    let run = env.run_claude("result '<promise>COMPLETE</promise>'", &flags).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        fs::read_to_string(env.base.join("args")).unwrap(),
        "-p --output-format stream-json --verbose --include-partial-messages --permission-mode acceptEdits --allowedTools Bash(git *),Edit \
         --add-dir /x y\n"
    );
    let said = env.run_with(DONE, &["--model", "opus", "x"]).run().fails(64);
    assert!(said.contains("--agent-command"), "{said}");
}

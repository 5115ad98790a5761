//! `ralph logs`: a readable account of both engines, as it was or as it comes.

use crate::env::{DONE, Env, MINUTE, OTHER, SESSION, wait_until};
use std::fs;

/// Runs the runner with an agent that prints, commits nothing and claims completion at the second iteration.
fn run_two_iterations(env: &Env) {
    env.write("../agent.sh", "echo \"looking at $RALPH_ITERATION\"; printf 'no end'; test -f again && printf '\\n<promise>COMPLETE</promise>'; touch again");
    let args = ["run", "--agent-command", "sh ../agent.sh", "--delay", "0", "--verify", "true", "the task"];
    env.ralph(&args).ok();
}

#[test]
fn a_run_reads_as_what_its_agent_printed_under_each_iteration() {
    let env = Env::new();
    run_two_iterations(&env);
    let told = env.ralph(&["logs"]).ok();
    let order = [
        "the task",
        "= started",
        "── iteration 1 · implement",
        "looking at",
        "no end",
        "= iteration 1: ok",
        "── iteration 2",
        "<promise>COMPLETE</promise>",
        "= check passed: true",
        "= iteration 2: complete",
        "= ended: complete",
    ];
    let mut rest = told.as_str();
    for part in order {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part} is missing or out of order:\n{told}"));
        rest = &rest[at + part.len()..];
    }
    let second = env.ralph(&["logs", "--iteration", "2"]).ok();
    assert!(second.contains("iteration 2") && !second.contains("iteration 1:"), "{second}");
    let raw = env.ralph(&["logs", "--raw"]).ok();
    let logs = ["001", "002"].map(|number| env.read(&format!("ralph/logs/iteration-{number}.log")));
    assert_eq!(raw, logs.concat(), "the bytes are those of the logs");
}

#[test]
fn a_line_that_is_too_long_to_show_is_told() {
    let env = Env::new();
    let script = "echo before; head -c 2000000 /dev/zero | tr '\\0' x; echo; echo behind; promise COMPLETE";
    assert_eq!(env.run_with(script, &["the task"]).run().code, Some(0));
    let told = env.ralph(&["logs"]).ok();
    assert!(told.contains("before") && told.contains("behind"), "{told}");
    assert!(told.contains("Ralph: skipped 1 line of more than 1 MB\n") && !told.contains("xxx"), "{told}");
    assert!(env.ralph(&["logs", "--raw"]).ok().contains("xxx"), "raw has every byte");
}

#[test]
fn events_that_are_too_large_are_told_with_what_is_left_of_them() {
    let env = Env::new();
    env.start("the task", &[]);
    env.at(60).turn(SESSION, DONE);
    let run_id = env.record(SESSION)["run_id"].as_str().unwrap().to_owned();
    let path = env.data().join("runs").join(&run_id).join("events.jsonl");
    let told = |env: &Env| {
        let logs = env.ralph(&["logs", &run_id]).ok();
        assert!(
            logs.contains("Ralph: skipped 36 MB at the beginning of ") && logs.contains("the task"),
            "{logs}"
        );
        let report = env.ralph(&["report", &run_id, "--markdown"]).ok();
        assert!(
            report.contains("36 MB after the start were skipped") && report.contains("the task"),
            "{report}"
        );
        assert!(!report.contains("has no events"), "{report}");
        report
    };
    let whole = fs::read(&path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(100 << 20).unwrap();
    assert!(told(&env).contains("No ending was recorded"));
    // What was written last is read.
    let mut file = fs::File::options().append(true).open(&path).unwrap();
    std::io::Write::write_all(&mut file, &[b"\n", &whole[..]].concat()).unwrap();
    assert!(told(&env).contains("Task complete after 1 iteration"));
    let raw = env.ralph(&["logs", "--raw", &run_id]).ok();
    assert!(!raw.contains("Ralph:"), "{raw}");
}

#[test]
fn a_session_reads_as_its_transcript_between_start_and_ending() {
    let env = Env::new();
    env.var("TZ", "UTC");
    let transcript = env.transcript();
    transcript.text(1, "words before the loop");
    env.at(10).start("the task", &[]);
    transcript.text(20, "first I look\naround").entry(
        21,
        "assistant",
        serde_json::json!({"message": {"content": [
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "cargo test"}}
        ]}}),
    );
    env.at(30).stop(SESSION).with(&transcript).says("first I look").run().continues();
    transcript.text(40, "second turn");
    env.at(50).stop(SESSION).with(&transcript).says(DONE).run().ended("complete");
    transcript.text(60, "words after the loop");
    let told = env.ralph(&["logs"]).ok();
    for part in [
        "08:00:20 first I look\n         around",
        "08:00:21   > Bash: cargo test",
        "= iteration 1: ok",
        "second turn",
    ] {
        assert!(told.contains(part), "{part} is missing:\n{told}");
    }
    assert!(!told.contains("words before") && !told.contains("words after"), "{told}");
    let second = env.ralph(&["logs", "--iteration", "2"]).ok();
    assert!(second.contains("second turn") && !second.contains("first I look"), "{second}");
    let raw = env.ralph(&["logs", "--raw", "--iteration", "2"]).ok();
    let lines: Vec<&str> = raw.lines().collect();
    assert!(lines.len() == 1 && fs::read_to_string(&transcript.path).unwrap().contains(lines[0]), "{raw}");
}

#[test]
fn a_transcript_that_moved_is_found_by_its_session() {
    let env = Env::new();
    let folder = env.base.join("home/.claude/projects/elsewhere");
    fs::create_dir_all(&folder).unwrap();
    let transcript = env.transcript();
    env.start("the task", &[]);
    transcript.text(20, "before the move");
    env.at(30).stop(SESSION).with(&transcript).says("x").run().continues();
    fs::rename(&transcript.path, folder.join(format!("{SESSION}.jsonl"))).unwrap();
    assert!(env.ralph(&["logs"]).ok().contains("before the move"));
}

#[test]
fn following_prints_what_comes_and_ends_with_the_run() {
    let env = Env::new();
    env.write(
        "../agent.sh",
        "echo begun; until test -f go; do sleep 0.02; done; echo done; printf '<promise>COMPLETE</promise>'",
    );
    let run = ["run", "--agent-command", "sh ../agent.sh", "--delay", "0", "the task"];
    let running = env.call(crate::env::Program::Ralph).args(&run).spawn();
    wait_until("the agent has begun", || env.exists("ralph/logs/iteration-001.log"));
    let mut follower =
        env.call(crate::env::Program::Ralph).args(&["logs", "-f"]).without("RALPH_NOW").spawn();
    // What was there before is shown first.
    follower.until("begun");
    env.write("go", "");
    let shown = follower.wait().ok();
    let (_, rest) = shown.split_once("begun").unwrap();
    assert!(rest.contains("done") && rest.contains("= ended: complete"), "{shown}");
    running.wait().ok();
}

#[test]
fn the_run_is_this_sessions_or_the_newest_or_the_one_that_is_named() {
    let env = Env::new();
    let refused = env.ralph(&["logs"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("hint: start one"), "{refused:?}");
    env.start("mine", &[]);
    let mine = env.record(SESSION)["run_id"].as_str().unwrap().to_owned();
    env.at(MINUTE).start_in(OTHER, "theirs", &[]);
    assert!(env.ralph(&["logs"]).ok().contains("theirs"), "the newest");
    let own = env.call(crate::env::Program::Ralph).args(&["logs"]).var("CLAUDE_CODE_SESSION_ID", SESSION);
    assert!(own.run().ok().contains("mine"), "this session's");
    assert!(env.ralph(&["logs", &mine[..8]]).ok().contains("mine"), "by the beginning of its id");
    let elsewhere = env.call(crate::env::Program::Ralph).args(&["logs", &mine]).cwd(&env.base);
    assert!(elsewhere.run().ok().contains("mine"), "from anywhere");
    for (args, said) in [
        (&["logs", "nothing"][..], "no run with this id"),
        (&["logs", ""], "several runs begin with"),
        (&["logs", "../x"], "no run with this id"),
        (&["logs", &mine, "--iteration", "7"], "has no iteration 7"),
    ] {
        let refused = env.ralph(args);
        assert!(refused.code == Some(1) && refused.stderr.contains(said), "{args:?}: {refused:?}");
    }
}

#[test]
fn hostile_text_reaches_no_terminal() {
    let env = Env::new();
    env.write("../agent.sh", "printf 'a\\033[31mred\\033]0;title\\007\\n'; printf '\\342\\200\\256rtl\\n<promise>COMPLETE</promise>'");
    env.ralph(&["run", "--agent-command", "sh ../agent.sh", "--delay", "0", "evil \u{1b}[2J"]).ok();
    let told = env.ralph(&["logs"]).ok();
    assert!(told.contains("ared") && told.contains("rtl"), "{told}");
    assert!(!told.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{told:?}");
}

#[test]
fn logs_behind_a_link_or_gone_cost_only_themselves() {
    let env = Env::new();
    run_two_iterations(&env);
    fs::write(env.base.join("secret"), "the secret\n").unwrap();
    fs::remove_file(env.path("ralph/logs/iteration-001.log")).unwrap();
    std::os::unix::fs::symlink(env.base.join("secret"), env.path("ralph/logs/iteration-001.log")).unwrap();
    let told = env.ralph(&["logs"]).ok();
    assert!(!told.contains("the secret") && told.contains("= iteration 2: complete"), "{told}");
    fs::remove_dir_all(env.path("ralph")).unwrap();
    assert!(env.ralph(&["logs"]).ok().contains("= ended: complete"));
}

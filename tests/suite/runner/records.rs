//! The records of a run, and what it prints.

use crate::env::{Env, Program, mode, stamp};
use serde_json::Value;
use std::fs;

const HEADER: &str = "iteration,mode,duration_seconds,commit_hash,stories_complete,stories_total,stuck_count,timestamp,\
                      outcome,cost_usd,tokens,check,attempts,other_seconds\n";

#[test]
fn the_summary_has_one_row_per_iteration() {
    let env = Env::git();
    env.write(".git/refs/heads/main", "f".repeat(40));
    let script = "case $n in 1) commit;; 2) work;; 3) work; exit 7;; 4) commit; promise COMPLETE;; esac";
    // It stands still, so that nothing takes time.
    let _clock = env.at(60).clock();
    let run = env.run_with(script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let at = stamp(60).replace("+00:00", ".000Z");
    assert_eq!(
        env.read("ralph/logs/summary.csv"),
        format!(
            "{HEADER}1,implement,0,0000000,0,0,0,{at},ok,,0,,1,0\n2,implement,0,,0,0,1,{at},ok,,0,,1,0\n\
             3,implement,0,,0,0,2,{at},failed,,0,,1,0\n4,implement,0,0000000,0,0,0,{at},complete,,0,,1,0\n"
        )
    );
    assert_eq!(mode(&env.path("ralph/logs/summary.csv")), 0o600);
    assert!(run.stdout.contains("── iteration 3 failed · 0s · exit code 7"), "{}", run.stdout);
    assert!(run.stdout.contains(" · log: ralph/logs/iteration-003.log\n"), "{}", run.stdout);
}

#[test]
fn the_log_has_every_byte() {
    let env = Env::new();
    let bytes: Vec<u8> =
        (0..=255u8).cycle().take(300_000).chain(*b"\n<promise>COMPLETE</promise>\n").collect();
    fs::write(env.base.join("bytes"), &bytes).unwrap();
    let run = env.run_with("work; cat ../bytes", &["x"]).run();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let log = env.path("ralph/logs/iteration-001.log");
    assert!(fs::read(&log).unwrap() == bytes);
    assert_eq!(mode(&log), 0o600);
    env.run_with("echo out; echo aside >&2; promise COMPLETE", &["x"]).run();
    let mut lines: Vec<String> =
        env.read("ralph/logs/iteration-001.log").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["<promise>COMPLETE</promise>", "aside", "out"]);
}

#[test]
fn a_promise_on_stderr_does_not_count() {
    let env = Env::new();
    let script = "work; [ $n = 1 ] && { promise COMPLETE >&2; exit; }; promise COMPLETE; \
                  until grep -q COMPLETE ralph/logs/iteration-002.log; do sleep 0.05; done; echo 'tokens used: 7' >&2";
    let run = env.run_with(script, &["x"]).run();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["ok".into(), "complete".into()]), "{run:?}");
    assert!(run.stdout.contains("tokens used: 7"), "shown it is: {run:?}");
}

#[test]
fn earlier_logs_are_kept() {
    let env = Env::new();
    for text in ["first", "second", "third"] {
        // All three within one second of the clock.
        let run = env.run_with(&format!("echo {text}; promise COMPLETE"), &["x"]).run();
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    let kept: Vec<String> =
        env.list("ralph/logs").into_iter().filter(|name| name.starts_with("until-")).collect();
    let text = |folder: &String| env.read(&format!("ralph/logs/{folder}/iteration-001.log"));
    let mut texts: Vec<String> = kept.iter().map(text).collect();
    texts.push(env.read("ralph/logs/iteration-001.log"));
    texts.sort();
    let words: Vec<&str> = texts.iter().filter_map(|text| text.lines().next()).collect();
    assert_eq!(words, ["first", "second", "third"], "{:?}", env.list("ralph/logs"));
    assert!(kept.iter().all(|folder| env.exists(&format!("ralph/logs/{folder}/summary.csv"))));
}

#[test]
fn the_logs_of_the_oldest_of_too_many_runs_go_and_that_is_told() {
    let env = Env::new();
    for n in 10..32 {
        env.write(&format!("ralph/logs/until-202611160800{n}000/iteration-001.log"), "x");
    }
    let run = env.run_with("promise COMPLETE", &["x"]).run();
    let told = "removed the logs of 2 earlier runs from ralph/logs: at most 20 runs and 1000 MB are kept";
    assert!(run.code == Some(0) && run.stdout.contains(told), "{run:?}");
    assert!(
        !env.exists("ralph/logs/until-20261116080011000") && env.exists("ralph/logs/until-20261116080012000")
    );
}

#[test]
fn a_second_run_is_refused_and_names_the_first() {
    let env = Env::new();
    let mut first = env.run_with("echo at work; wait_for go; promise COMPLETE", &["x"]).spawn();
    first.until("at work");
    let run_id = env.record("ralph-run")["run_id"].as_str().unwrap()[..7].to_owned();
    let said = env.call(Program::Ralph).args(&["run", "--agent-command", "true", "other"]).run().fails(70);
    assert!(said.contains(&format!("process {}", first.pid())) && said.contains(&run_id), "{said}");
    let shown = env.shown("ralph-run");
    assert_eq!((&shown["engine"], &shown["state"]), (&"runner".into(), &"running".into()));
    env.touch("go");
    let run = first.wait();
    assert_eq!((run.code, env.starts()), (Some(0), 1), "{run:?}");
}

fn events(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

#[test]
fn json_is_events_and_nothing_else() {
    let env = Env::new();
    let script = "work; text 'on it'; tool ls; result '<promise>COMPLETE</promise>' 0.25";
    let text =
        env.run_claude(script, &["--json", "--allowed-tools", "Bash", "--verify", "true", "x"]).run().ok();
    let mut events = events(&text);
    // What a person is told beside the run is an event too.
    let note = events.remove(1);
    assert_eq!((&note["event"], &note["iteration"]), (&"note".into(), &0.into()), "{note}");
    assert!(note["message"].as_str().unwrap().contains("not in a git repository"), "{note}");
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["started", "iteration_started", "text", "tool", "verifying", "check", "iteration_ended", "ended"]
    );
    let run_id = &env.history()[0]["run_id"];
    let now = stamp(0).replace("+00:00", ".000Z");
    for event in events.iter().chain([&note]) {
        assert_eq!((&event["run_id"], &event["timestamp"]), (run_id, &now.as_str().into()), "{event}");
    }
    let ended = &events[7];
    assert_eq!(
        (&ended["outcome"], &ended["exit_code"], &ended["iterations"]),
        (&"complete".into(), &0.into(), &1.into())
    );
    assert_eq!((&events[6]["cost_usd"], &events[6]["tokens"]), (&0.25.into(), &15.into()));
    for (script, code) in [("promise BLOCKED:x", 2), ("true", 4)] {
        let env = Env::new();
        let run = env.run_with(script, &["--json", "x"]).run();
        assert_eq!(
            (run.code, self::events(&run.stdout).last().unwrap()["exit_code"].as_i64()),
            (Some(code), Some(code.into()))
        );
    }
}

#[test]
fn the_event_of_an_iteration_has_its_commit_outcome_and_counters() {
    let env = Env::git();
    env.write(".git/refs/heads/main", "f".repeat(40));
    let _clock = env.clock();
    let run = env.run_with("[ $n = 2 ] && commit; [ $n = 3 ] && promise COMPLETE", &["--json", "x"]).run();
    let all = events(&run.stdout);
    let ended: Vec<&Value> = all.iter().filter(|event| event["event"] == "iteration_ended").collect();
    let told: Vec<[&Value; 5]> = ended
        .iter()
        .map(|event| {
            let counters = &event["counters"];
            [
                &event["iteration"],
                &event["commit"],
                &event["outcome"],
                &event["stuck_count"],
                &counters["stagnation"],
            ]
        })
        .collect();
    let json = serde_json::to_value(told).unwrap();
    let commit = format!("{:040x}", 2)[..7].to_owned();
    let expected =
        serde_json::json!([[1, null, "ok", 1, 1], [2, commit, "ok", 0, 0], [3, null, "complete", 1, 0]]);
    assert_eq!(json, expected, "{run:?}");
    for counter in ["same_error", "output_decline", "test_only", "stagnation", "idle", "repetition"] {
        assert!(ended[0]["counters"][counter].is_u64(), "{counter}: {}", ended[0]);
    }
    let totals = all.last().unwrap();
    assert_eq!(
        (&totals["stuck_iterations"], &totals["duration_seconds"]),
        (&2.into(), &0.into()),
        "{totals}"
    );
}

#[test]
fn an_iteration_that_was_refused_a_tool_or_its_completion_says_so_in_its_row() {
    let env = Env::new();
    let denied = r#"printf '{"type":"result","is_error":false,"result":"no","permission_denials":[{"tool_name":"Bash"}]}\n'"#;
    let script = format!(
        "work; case $n in 1) {denied};; 2) result '<promise>COMPLETE</promise>';; \
         3) touch ../proof; result '<promise>COMPLETE</promise>';; esac"
    );
    let run = env.run_claude(&script, &["--verify", "test -e ../proof", "x"]).run();
    assert_eq!(
        (run.code, env.outcomes()),
        (Some(0), ["denied", "rejected", "complete"].map(String::from).into()),
        "{run:?}"
    );
}

#[test]
fn stdout_and_stderr_are_logged_in_the_order_they_came() {
    let env = Env::new();
    let script = "say() { echo $1 >&$2; until grep -q $1 ralph/logs/iteration-001.log; do sleep 0.02; done; }; \
                  say one 1; say two 2; say three 2; say four 1; say five 2; say six 1; promise COMPLETE";
    let run = env.run_with(script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let log = "one\ntwo\nthree\nfour\nfive\nsix\n<promise>COMPLETE</promise>\n";
    assert_eq!(env.read("ralph/logs/iteration-001.log"), log);
}

#[test]
fn partial_messages_are_neither_shown_nor_logged() {
    let env = Env::new();
    let delta = r#"printf '{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"a piece"}}}\n'"#;
    let script = format!(
        "work; i=0; while [ $i -lt 500 ]; do {delta}; i=$((i+1)); done; \
                          text 'a piece, whole'; result '<promise>COMPLETE</promise>'"
    );
    let run = env.run_claude(&script, &["x"]).run();
    assert_eq!((run.code, run.stdout.matches("a piece").count()), (Some(0), 1), "{run:?}");
    let log = env.read("ralph/logs/iteration-001.log");
    assert_eq!((log.matches("a piece").count(), log.lines().count()), (1, 2), "{log}");
}

#[test]
fn warnings_are_events_too() {
    let env = Env::new();
    env.write(".claude/ralph-config.json", r#"{"run": {"max_stuck": "many"}}"#);
    env.write("ralph/logs/iteration-001.log/in/the/way", "");
    let run = env.run_with("work; promise COMPLETE", &["--json", "x"]).run();
    let events = events(&run.stdout);
    let told = |kind: &str, part: &str| {
        events.iter().any(|event| event["event"] == kind && event["message"].to_string().contains(part))
    };
    assert!(told("note", "run.max_stuck"), "{run:?}");
    assert_eq!(run.code, Some(0), "{run:?}");

    let env = Env::new();
    let script = "rm -rf ralph/logs; echo x > ralph/logs; work; promise COMPLETE";
    let run = env.run_with(script, &["--json", "x"]).run();
    let warned = self::events(&run.stdout).into_iter().find(|event| event["event"] == "warning").unwrap();
    assert!(warned["message"].as_str().unwrap().contains("summary"), "{warned}");
}

#[test]
fn quiet_says_only_how_it_ended() {
    let env = Env::new();
    let text = env.run_with("work; echo chatter; promise COMPLETE", &["--quiet", "x"]).run().ok();
    assert!(text.trim_start().starts_with("Ralph run\n") && !text.contains("chatter"), "{text}");
    let said = env.run_with("work", &["--quiet", "--json", "x"]).run().fails(64);
    assert!(said.contains("--json"), "{said}");
}

#[test]
fn escape_codes_reach_no_terminal() {
    let hostile = r"a\033[2J\033]0;title\007b\302\23331mc\010";
    for flags in
        [&["x \u{1b}[2J\u{9b}1m"][..], &["--json", "x\u{1b}[2J\u{9b}1m"], &["--quiet", "x\u{1b}[2J\u{9b}1m"]]
    {
        let env = Env::new();
        let script = format!(
            "printf '{hostile}\\n'; printf '{hostile}\\n' >&2; promise \"$(printf 'BLOCKED:{hostile}')\""
        );
        let run = env.run_with(&script, flags).run();
        assert_eq!(run.code, Some(2), "{run:?}");
        let unsafe_char = |c: char| c.is_control() && c != '\n';
        assert!(!run.stdout.contains(unsafe_char), "{flags:?}: {:?}", run.stdout);
        assert!(!run.stderr.contains(unsafe_char), "{flags:?}: {:?}", run.stderr);
    }
    let env = Env::new();
    let script =
        r#"tool '\u001b[2J ls \u009b'; text 'a\u001b[2Jb\u009b'; result '<promise>COMPLETE</promise>'"#;
    for flags in [&["x"][..], &["--json", "x"]] {
        let run = env.run_claude(script, flags).run();
        assert!(!run.stdout.contains(|c: char| c.is_control() && c != '\n'), "{:?}", run.stdout);
    }
}

#[test]
fn a_pipe_gets_plain_lines_in_order() {
    let env = Env::new();
    let run = env
        .run_claude(
            "work; text 'on it'; tool ls; result '<promise>COMPLETE</promise>'",
            &["--allowed-tools", "Bash", "do the thing"],
        )
        .run();
    let run_id = env.history()[0]["run_id"].as_str().unwrap()[..8].to_owned();
    let expected = [
        format!("Starting run {run_id} at iteration 1/50 · 9h limit"),
        "Task: do the thing".into(),
        "Ralph: not in a git repository; progress is measured by changed files".into(),
        "── iteration 1 of 50 ──".into(),
        "on it".into(),
        "  > Bash ls".into(),
    ];
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(&lines[..expected.len()], expected, "{}", run.stdout);
}

#[test]
fn a_closed_stdout_does_not_end_the_run() {
    let env = Env::new();
    let script = "work; seq 1 20000; [ $n = 3 ] && promise COMPLETE";
    assert_eq!(env.run_with(script, &["x"]).spawn_unread().wait().code, Some(0));
    assert_eq!(env.outcomes(), ["ok", "ok", "complete"]);
}

#[test]
fn a_commit_of_the_checks_is_not_that_of_the_iteration() {
    let env = Env::git();
    env.write(".git/refs/heads/main", format!("{}\n", "a".repeat(40)));
    let check = "printf '%040d\\n' 7 > .git/refs/heads/main";
    let run = env.run_with("promise COMPLETE", &["--verify", check, "x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(env.read(".git/refs/heads/main").contains('7'), "the check has run");
    let rows = env.read("ralph/logs/summary.csv");
    let row = rows.lines().nth(1).unwrap();
    assert_eq!(row.split(',').nth(3), Some(""), "{row}");
}

//! `runs/ID/events.jsonl`: what happened to a run of either engine, in order, whatever happens to the file.

use crate::env::{DONE, Env, HOUR, MINUTE, OTHER, Program, SESSION};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

impl Env {
    /// Returns the events file of a run, or of the only one.
    fn own_events_file(&self, run_id: Option<&str>) -> PathBuf {
        let named = run_id.map(|id| self.data().join("runs").join(id));
        let folder = named.unwrap_or_else(|| {
            let folders = fs::read_dir(self.data().join("runs")).unwrap().flatten().map(|entry| entry.path());
            let mut folders: Vec<PathBuf> =
                folders.filter(|path| path.join("events.jsonl").exists()).collect();
            assert_eq!(folders.len(), 1, "one run: {folders:?}");
            folders.remove(0)
        });
        folder.join("events.jsonl")
    }

    fn events(&self) -> Vec<Value> {
        parsed(&fs::read_to_string(self.own_events_file(None)).unwrap())
    }
}

fn parsed(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Returns each event in a few words: its name and what tells it from others of that name.
fn told(events: &[Value]) -> Vec<String> {
    let one = |event: &Value| {
        let name = event["event"].as_str().unwrap();
        let fields: &[&str] = match name {
            "started" => &["continued"],
            "iteration_started" => &["iteration"],
            "iteration_ended" => &["iteration", "outcome"],
            "check" => &["command", "passed"],
            "guidance" => &["change", "list", "texts"],
            "findings" => &["count"],
            "breaker" => &["step"],
            "waiting" => &["for"],
            "paused" => &["reason"],
            "limits" => &["max_iterations"],
            "ended" => &["outcome"],
            _ => &[],
        };
        let words = fields.iter().map(|field| match &event[field] {
            Value::String(text) => text.clone(),
            Value::Array(list) => {
                list.iter().map(|text| text.as_str().unwrap()).collect::<Vec<_>>().join("+")
            }
            other => other.to_string(),
        });
        std::iter::once(name.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    };
    events.iter().map(one).collect()
}

fn sequence(env: &Env) -> Vec<String> {
    told(&env.events())
}

#[test]
fn a_session_tells_its_turns_checks_and_guidance_in_order() {
    let env = Env::git();
    env.write("ok", "");
    env.start("the task", &["--verify", "test -f done"]);
    env.guidance(&["forbid", "--session", SESSION, "touch x"]).ok();
    let transcript = env.transcript();
    transcript.worked(10);
    env.at(20).stop(SESSION).with(&transcript).says("one").run().continues();
    env.at(30).turn(SESSION, DONE).continues();
    env.write("done", "");
    env.at(40).turn(SESSION, DONE).ended("complete");
    let expected = [
        "started false",
        "guidance given forbidden touch x",
        "iteration_ended 1 ok",
        "guidance delivered forbidden touch x",
        "check test -f done false",
        "iteration_ended 2 rejected",
        "check test -f done true",
        "iteration_ended 3 complete",
        "ended complete",
    ];
    let events = env.events();
    assert_eq!(told(&events), expected, "{events:#?}");
    let first = &events[2];
    assert_eq!((&first["tools"], &first["message"]), (&json!(1), &json!("one")));
    assert!(first["tokens"].as_u64().unwrap() > 0 && first["transcript"].is_string(), "{first:#}");
    assert!(events[5]["rejected"].as_str().unwrap().contains("test -f done"), "{:#}", events[5]);
    let ended = events.last().unwrap();
    assert_eq!((&ended["iterations"], &ended["checks"][0]["passed"]), (&json!(3), &json!(true)));
    for event in &events {
        assert!(
            event["v"] == 1 && event["timestamp"].as_str().unwrap().starts_with("2026-11-16T08:00:"),
            "{event}"
        );
    }
}

#[test]
fn a_run_tells_the_same_and_prints_it_for_scripts() {
    let env = Env::git();
    let script = "tool ls; if [ $n = 1 ]; then commit; work; text more; result more 0.25; else text x; result '<promise>COMPLETE</promise>' 0.25; fi";
    let run = env.run_claude(script, &["--json", "--verify", "true", "the task"]).run();
    let printed = parsed(&run.ok());
    let events = env.events();
    let expected = [
        "started false",
        "iteration_started 1",
        "iteration_ended 1 ok",
        "iteration_started 2",
        "check true true",
        "iteration_ended 2 complete",
        "ended complete",
    ];
    assert_eq!(told(&events), expected, "{events:#?}");
    assert_eq!(events[2]["commit"], "0000000", "{:#}", events[2]);
    assert_eq!((&events[2]["tools"], &events[2]["cost_usd"]), (&json!(1), &json!(0.25)));
    let kept = ["started", "iteration_started", "iteration_ended", "check", "ended"];
    let same: Vec<Value> =
        printed.into_iter().filter(|line| kept.contains(&line["event"].as_str().unwrap())).collect();
    assert_eq!(told(&same), expected);
    let without_id = |mut line: Value, event: &Value| {
        if event["event"] != "started" {
            line.as_object_mut().unwrap().remove("run_id");
        }
        line
    };
    for (line, event) in same.into_iter().zip(&events) {
        assert_eq!(without_id(line, event), *event, "what is printed is what is kept");
    }
}

#[test]
fn waits_pauses_limits_and_the_breaker_are_told() {
    let env = Env::new();
    env.start("the task", &["--max-idle", "2"]);
    let transcript = env.transcript();
    transcript.worked(5).queue(6, "enqueue", "what is up?");
    env.at(20).stop(SESSION).with(&transcript).says("x").run().allows();
    transcript.queue(21, "dequeue", "what is up?").prompt(22, "p", "what is up?").text(25, "fine");
    env.at(30).stop(SESSION).with(&transcript).says("fine").run();
    env.at(40).ralph(&["config", "loop_limits.max_iterations", "40"]).ok();
    transcript.worked(45).prompt(HOUR, "p2", "continue").text(HOUR + 2, "y");
    env.at(HOUR + 3).stop(SESSION).with(&transcript).says("y").run().continues();
    transcript.esc(HOUR + 5);
    env.at(HOUR + 6).stop(SESSION).with(&transcript).says("y").run();
    let sequence = sequence(&env);
    for part in ["waiting user", "limits 40", "paused not at work", "paused you interrupted the agent"] {
        assert!(sequence.contains(&part.to_owned()), "{part}: {sequence:#?}");
    }
    let idle = Env::new();
    idle.start("the task", &["--max-idle", "2"]);
    let transcript = idle.transcript();
    for turn in 1..=2 {
        transcript.text(turn * 10, &format!("turn {turn}"));
        idle.at(turn * 10 + 5).stop(SESSION).with(&transcript).says(&format!("turn {turn}")).run();
    }
    idle.ralph(&["reset"]).ok();
    let told = self::sequence(&idle);
    let end = [
        "iteration_ended 1 ok",
        "breaker warned",
        "iteration_ended 2 stuck",
        "breaker tripped",
        "ended stuck",
        "breaker reset",
    ];
    assert!(told.ends_with(&end.map(str::to_owned)), "{told:#?}");
}

#[test]
fn a_failed_turn_of_a_session_and_the_reset_of_its_limit_are_told() {
    let env = Env::new();
    env.start("the task", &[]);
    let transcript = env.transcript();
    let until = crate::env::T0 + HOUR;
    transcript.entry(
        5,
        "assistant",
        json!({
            "isApiErrorMessage": true, "quotaLimits": {"resetsAt": until},
            "message": {"content": [{"type": "text", "text": "limit"}]}
        }),
    );
    env.at(6)
        .event(Program::StopHook, SESSION, "StopFailure")
        .with(&transcript)
        .field("error", "rate_limit")
        .run();
    let sequence = sequence(&env);
    assert_eq!(sequence[1..], ["warning", "waiting usage-limit"], "{sequence:#?}");
    assert_eq!(env.events()[2]["until"], "2026-11-16T09:00:00.000Z");
}

#[test]
fn every_way_to_end_is_told_once() {
    type Ending<'a> = (&'a str, &'a dyn Fn(&Env));
    let ends: [Ending; 4] = [
        ("stopped", &|env| drop(env.ralph(&["stop"]).ok())),
        ("killed", &|env| {
            env.write(".claude/STOP_LOOP", "");
            env.turn(SESSION, "x").ended("killed");
        }),
        ("interrupted", &|env| {
            env.var("RALPH_RUN_SESSION_EXPIRATION_HOURS", "24");
            drop(env.at(100 * HOUR).session_start(OTHER, "startup").run());
        }),
        ("stopped", &|env| drop(env.ralph(&["start", "--session", SESSION, "--replace", "another"]).ok())),
    ];
    for (outcome, end) in ends {
        let env = Env::new();
        env.start("the task", &[]);
        let id = env.record(SESSION)["run_id"].as_str().unwrap().to_owned();
        end(&env);
        let events = parsed(&fs::read_to_string(env.own_events_file(Some(&id))).unwrap());
        assert_eq!(told(&events), ["started false".to_owned(), format!("ended {outcome}")], "{outcome}");
    }
}

#[test]
fn a_run_that_is_stopped_from_elsewhere_tells_its_last_iteration_before_the_ending() {
    for how in ["stop", "STOP_LOOP"] {
        let env = Env::new();
        let mut run = env.run_with("echo at work; while :; do sleep 0.01; done", &["x"]).spawn();
        run.until("at work");
        let outcome = match how {
            "stop" => {
                env.ralph(&["stop"]).ok();
                "stopped"
            }
            _ => {
                env.write(".claude/STOP_LOOP", "");
                "killed"
            }
        };
        run.wait();
        let ended = format!("iteration_ended 1 {outcome}");
        let expected = ["started false", "iteration_started 1", &ended, &format!("ended {outcome}")];
        assert_eq!(sequence(&env), expected, "{how}");
    }
}

#[test]
fn a_killed_runner_is_continued_in_the_same_file() {
    let env = Env::new();
    let mut run = env.run_with("echo at work; while :; do sleep 0.01; done", &["x"]).spawn();
    run.until("at work");
    run.kill();
    env.at(MINUTE).run_with("promise COMPLETE", &["x"]).run().ok();
    let sequence = sequence(&env);
    let expected = [
        "started false",
        "iteration_started 1",
        "started true",
        "iteration_started 1",
        "iteration_ended 1 complete",
        "ended complete",
    ];
    assert_eq!(sequence, expected);
}

#[test]
fn a_torn_line_costs_only_itself_and_what_is_unknown_is_passed_over() {
    let env = Env::new();
    env.start("the task", &[]);
    env.turn(SESSION, "one").continues();
    let path = env.own_events_file(None);
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"\n{\"v\":9,\"timestamp\":\"2026-11-16T08:00:00Z\",\"event\":\"dreamt\",\"of\":1}\n")
        .unwrap();
    file.write_all(b"\n{\"v\":1,\"timestamp\":\"2026-11-16T08:00:01.0").unwrap();
    env.at(5).turn(SESSION, DONE).ended("complete");
    let told = env.ralph(&["logs"]).ok();
    assert!(told.contains("= iteration 1") && told.contains("= ended: complete"), "{told}");
    let run = env.ralph(&["history", "--json"]).ok();
    assert!(run.contains("\"outcome\":\"complete\""), "{run}");
}

/// Everything that reads events, with what it must still say.
const VIEWS: [(&[&str], &str); 7] = [
    (&["report", "--markdown"], "Task complete after "),
    (&["report", "--all", "--markdown"], "1 run in 1 project"),
    (&["history"], "complete"),
    (&["history", "--json"], "\"outcome\":\"complete\""),
    (&["logs"], "= ended: complete"),
    (&["status"], "ended: complete"),
    (&["status", "--json"], "\"outcome\":\"complete\""),
];

/// Runs every view with little memory.
fn every_view(env: &Env) {
    for (args, part) in VIEWS {
        let run = env.call(Program::Ralph).args(args).max_memory_mb(400).run();
        assert!(run.code == Some(0) && run.stdout.contains(part), "{args:?}: {run:?}");
    }
}

#[test]
fn a_gigabyte_of_events_costs_no_view_its_memory() {
    let env = Env::new();
    env.start("the task", &[]);
    env.turn(SESSION, "one").continues();
    let path = env.own_events_file(None);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 30).unwrap();
    env.at(5).turn(SESSION, DONE).ended("complete");
    every_view(&env);
}

#[test]
fn events_of_a_newer_version_and_of_unknown_kinds_cost_no_view() {
    let env = Env::new();
    env.start("the task", &[]);
    let mut file = fs::OpenOptions::new().append(true).open(env.own_events_file(None)).unwrap();
    for line in [
        r#"{"v":9,"timestamp":"2026-11-16T08:00:00Z","event":"dreamt","of":{"deep":[1,null]}}"#,
        r#"{"v":9,"timestamp":"2026-11-16T08:00:00Z","event":"check","iteration":{"is":"no number"}}"#,
        r#"{"v":1,"timestamp":"2026-11-16T08:00:00Z","event":"sang"}"#,
        r#"{"event":7}"#,
        "null",
        "[[[[[[[[",
    ] {
        writeln!(file, "\n{line}").unwrap();
    }
    env.at(5).turn(SESSION, DONE).ended("complete");
    every_view(&env);
    let report = env.ralph(&["report", "--markdown"]).ok();
    assert!(report.contains("A newer version of Ralph wrote some of the events"), "{report}");
}

#[test]
fn five_hundred_runs_are_listed_by_history_and_report() {
    let env = Env::new();
    for number in 0..500 {
        let id = format!("{number:032x}");
        let (at, task) = (-100_000 + number * 100, format!("run number {number}"));
        let ended = crate::monitor::worlds::ended(at + 20, "stopped", "`ralph stop` was run");
        env.add_events(&id, &[env.started(&id, at, &task), ended]);
    }
    let history = env.ralph(&["history", "--json"]).ok();
    assert_eq!(history.lines().count(), 500);
    let report = env.ralph(&["report", "--all", "--markdown"]).ok();
    assert!(report.contains("500 runs in 1 project: "), "{}", &report[..report.len().min(2000)]);
    let found = env.ralph(&["history", "000000000000000000000000000001bc", "--json"]).ok();
    assert!(found.contains("run number 444"), "{found}");
}

#[test]
fn events_that_cannot_be_written_cost_the_loop_nothing_and_are_told_once() {
    let env = Env::new();
    env.start("the task", &[]);
    let folder = env.own_events_file(None).parent().unwrap().to_owned();
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "in the way").unwrap();
    let answers: Vec<_> =
        (1..=3).map(|turn| env.at(turn * 10).turn(SESSION, &format!("turn {turn}"))).collect();
    let told = |answer: &crate::env::Answer| {
        answer.continues();
        answer.message.as_ref().unwrap().contains("could not add to the events of this run")
    };
    assert_eq!(answers.iter().map(told).collect::<Vec<_>>(), [true, false, false], "{answers:#?}");
    let ended = env.at(40).turn(SESSION, DONE);
    assert!(!ended.ended("complete").contains("events"), "{ended:?}");
    fs::remove_file(&folder).unwrap();
    assert_eq!(env.history()[0]["outcome"], "complete", "the history has it");

    let runner = Env::new();
    fs::write(runner.data().join("runs"), "in the way").unwrap();
    let run = runner.run_with("promise COMPLETE", &["x"]).run();
    // The lock of the run is in the same folder, so that it cannot start says why.
    assert!(run.code != Some(0) && run.stderr.contains("error: "), "{run:?}");
}

#[test]
fn a_run_whose_events_fail_in_between_ends_as_it_would_and_says_so_once() {
    let env = Env::new();
    let script = r#"if [ $n = 1 ]; then for f in ../data/runs/*/events.jsonl; do rm "$f"; mkdir "$f"; done; work; else promise COMPLETE; fi"#;
    let run = env.run_with(script, &["x"]).run();
    let told = run.ok();
    assert_eq!(told.matches("could not add to the events of this run").count(), 1, "{told}");
}

#[test]
fn a_file_at_its_bound_takes_only_the_ending() {
    let env = Env::new();
    env.start("the task", &[]);
    let path = env.own_events_file(None);
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let line =
        format!("\n{{\"v\":1,\"timestamp\":1,\"event\":\"padding\",\"x\":\"{}\"}}\n", "x".repeat(1 << 16));
    for _ in 0..=(16 << 20) / line.len() {
        file.write_all(line.as_bytes()).unwrap();
    }
    let before = path.metadata().unwrap().len();
    env.at(5).turn(SESSION, "one").continues();
    assert_eq!(path.metadata().unwrap().len(), before);
    env.at(9).turn(SESSION, DONE).ended("complete");
    assert_eq!(sequence(&env).last().unwrap(), "ended complete");
    assert!(env.ralph(&["logs"]).ok().contains("= ended: complete"));
}

#[test]
fn history_lists_runs_by_their_events_and_older_ones_by_their_record() {
    let env = Env::new();
    env.start("the first", &["--verify", "true"]);
    env.at(10).turn(SESSION, DONE).ended("complete");
    let both = env.history();
    assert_eq!((both.len(), &both[0]["checks"][0]["passed"]), (1, &json!(true)));
    let runs = env.data().join("runs");
    fs::rename(&runs, env.base.join("kept")).unwrap();
    let recorded = env.history();
    let id = recorded[0]["run_id"].as_str().unwrap();
    assert_eq!(recorded, both, "a run without events is listed with the same facts");
    assert!(env.ralph(&["history", &id[..8]]).ok().contains("complete"));
    fs::rename(env.base.join("kept"), &runs).unwrap();
    fs::remove_dir_all(env.data().join("history")).unwrap();
    let mut told = env.history();
    let fields =
        ["run_id", "task", "outcome", "reason", "iterations", "runtime_seconds", "wall_seconds", "ended_at"];
    for field in fields {
        assert_eq!(told[0][field], both[0][field], "{field}");
    }
    assert_eq!(told.remove(0)["usage"], both[0]["usage"]);
}

#[test]
fn history_shows_one_run_in_full() {
    let env = Env::git();
    env.start("the task", &["--verify", "test -f done"]);
    env.guidance(&["forbid", "--session", SESSION, "touch x"]).ok();
    env.at(10).turn(SESSION, "one").continues();
    let id = env.record(SESSION)["run_id"].as_str().unwrap().to_owned();
    assert!(env.ralph(&["history", &id]).ok().starts_with("not ended · 1 iteration"));
    env.at(20).turn(SESSION, DONE).continues();
    env.write("done", "");
    env.at(40).turn(SESSION, DONE).ended("complete");
    let told = env.at(MINUTE).ralph(&["history", &id[..6]]).ok();
    for part in [
        "complete · 3 iterations · runtime 40s",
        "20s ago",
        "2  rejected",
        "completion rejected: ",
        "check      test -f done: passed in iteration 3, first failed in 2",
        "guidance   forbidden: touch x (delivered after iteration 1)",
    ] {
        assert!(told.contains(part), "{part}:\n{told}");
    }
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    let lines = parsed(&env.ralph(&["history", &id, "--json"]).ok());
    assert_eq!(lines, parsed(&fs::read_to_string(env.own_events_file(None)).unwrap()));
    let refused = env.ralph(&["history", "nothing"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("no run with this id"), "{refused:?}");
}

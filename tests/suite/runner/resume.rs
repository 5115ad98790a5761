//! A runner that was killed: the next one resumes its run and ends what it left.

use crate::agents::summary;
use crate::env::{Access, Call, Env, FileEvents, Program};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Kills a run as soon as it has printed this.
fn killed(call: Call, ready: &str) -> u32 {
    let mut run = call.spawn();
    let pid = run.pid();
    run.until(ready);
    run.signal(Signal::KILL);
    assert_eq!(run.wait().code, None);
    pid
}

#[test]
fn the_next_run_resumes_a_killed_one() {
    let resumes = |prompt: &[&str]| {
        let env = Env::new();
        killed(env.run_with("work; echo at $n; [ $n = 3 ] && sleep 600", &["the task"]), "at 3");
        let run_id = env.record("ralph-run")["run_id"].clone();
        assert!(env.run_record().exists() && !env.exists("ralph/run.lock"));
        let run = env.run_with("work; [ $n = 5 ] && promise COMPLETE", prompt).run();
        assert_eq!(run.code, Some(0), "{run:?}");
        let first = run.stdout.lines().next().unwrap();
        assert!(first.starts_with("Continuing run") && first.contains("at iteration 3/50"), "{first}");
        let rows = env.rows();
        let numbers: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(
            (numbers, env.outcomes().last().map(String::as_str)),
            (vec!["1", "2", "3", "4"], Some("complete"))
        );
        let history = env.history();
        assert_eq!((history.len(), &history[0]["run_id"]), (1, &run_id), "one run: {history:?}");
        assert_eq!(env.list("ralph/logs").len(), 5, "its logs were not put away");
        assert!(env.prompt(5).contains("the task"));
        env.wait_until_nothing_runs();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| resumes(&["the task"]));
        scope.spawn(|| resumes(&[]));
    });
}

#[test]
fn the_totals_at_the_end_are_those_of_the_whole_run() {
    let env = Env::git();
    env.write(".git/refs/heads/main", "a".repeat(40));
    let clock = env.clock();
    let script = "echo at $n; wait_for go$n; [ $n = 3 ] && promise COMPLETE";
    let mut first = env.run_with(script, &["x"]).spawn();
    first.until("at 1");
    clock.advance(100);
    env.touch("go1");
    first.until("at 2");
    first.signal(Signal::KILL);
    assert_eq!(first.wait().code, None);
    clock.advance(1000);
    let mut second = env.run_with(script, &[]).spawn();
    second.until("at 3");
    clock.advance(30);
    env.touch("go3");
    let run = second.wait();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(summary(&run, "Duration").starts_with("2m · "), "{run:?}");
    assert_eq!((summary(&run, "Avg/iter"), summary(&run, "Stuck iters")), ("1m", "2"), "{run:?}");
    let seconds: Vec<String> = env.rows().into_iter().map(|row| format!("{}+{}", row[2], row[13])).collect();
    assert_eq!(seconds, ["100+0", "30+0"]);
    let tally = &env.record("ralph-run")["tally"];
    assert_eq!((&tally["duration_seconds"], &tally["stuck_iterations"]), (&130.into(), &2.into()), "{tally}");
}

#[test]
fn another_task_is_another_run() {
    let env = Env::new();
    killed(env.run_with("work; echo at work; sleep 600", &["first"]), "at work");
    let run = env.run_with("work; promise COMPLETE", &["second"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let outcomes: Vec<String> =
        env.history().iter().map(|run| format!("{} {}", run["task"], run["outcome"])).collect();
    assert_eq!(outcomes, [r#""second" "complete""#, r#""first" "interrupted""#]);
    env.wait_until_nothing_runs();
}

#[test]
fn an_agent_that_survived_is_ended_before_the_next_begins() {
    let env = Env::new();
    // Neither the guard nor the end of the group reaches it.
    let script = "work; [ $n = 2 ] && { promise COMPLETE; exit; }; \
                  setsid sh -c 'trap \"\" TERM HUP; echo $$ > ../survivor; echo at work; sleep 600; sleep 601'";
    killed(env.run_with(script, &["x"]), "at work");
    let survivor = env.wait_for_file("survivor");
    assert!(fs::exists(format!("/proc/{survivor}/fd")).unwrap());
    let run = env.run_with(&format!("[ -e /proc/{survivor}/cwd/. ] && echo ALIVE; {script}"), &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.stdout.contains("ALIVE"), "{run:?}");
    env.wait_until_nothing_runs();
}

#[test]
fn unrelated_processes_are_not_ended() {
    let mut bystander =
        Command::new("sleep").arg("600").process_group(0).stdin(Stdio::null()).spawn().unwrap();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    for child in [
        json!({"pid": bystander.id()}),
        json!({"pid": bystander.id(), "process": null}),
        json!({"pid": bystander.id(), "process": "12345"}),
    ] {
        let env = Env::new();
        let lock =
            json!({"pid": gone.id(), "run_id": "r", "started_at": "2026-11-16T08:00:00Z", "child": child});
        fs::create_dir_all(env.data().join("runs")).unwrap();
        fs::write(env.run_record(), lock.to_string()).unwrap();
        let run = env.run_with("work; promise COMPLETE", &["x"]).run();
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(!env.run_record().exists(), "it was the record of this project");
        assert_eq!(bystander.try_wait().unwrap(), None, "{child}");
    }
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_lock_file_without_its_runner_blocks_no_run() {
    let env = Env::new();
    fs::create_dir_all(env.data().join("runs")).unwrap();
    let alive = json!({"pid": std::process::id(), "run_id": "r", "started_at": "2026-11-16T08:00:00Z"});
    for text in ["{\"pid\":1}", &alive.to_string(), "", "{", "[]", "{\"pid\": \"x\"}"] {
        env.write("ralph/run.lock", text);
        fs::write(env.run_record(), text).unwrap();
        assert_eq!(env.run_with("work; promise COMPLETE", &["x"]).run().code, Some(0), "{text}");
    }
    env.write("ralph/run.lock", alive.to_string()).ralph(&["init", "--force"]).ok();
}

#[test]
fn no_second_runner_joins_a_first_whatever_happens_in_the_project() {
    let env = Env::git();
    let mut first = env.run_with("echo at $n; wait_for go; promise COMPLETE", &["x"]).spawn();
    first.until("at 1");
    // What `git clean -fdx` removes.
    for folder in [".claude", "ralph"] {
        fs::remove_dir_all(env.path(folder)).unwrap();
    }
    let said =
        env.call(Program::Ralph).args(&["run", "--agent-command", "touch ../second", "y"]).run().fails(70);
    assert!(
        said.contains(&format!("a run is already active in this project: process {}, run ", first.pid())),
        "{said}"
    );
    assert!(env.ralph(&["init", "--force"]).fails(1).contains("a run is active"));
    env.touch("go");
    assert_eq!(first.wait().code, Some(0));
    assert!(!env.base.join("second").exists());
    assert_eq!(env.run_with("work; promise COMPLETE", &["x"]).run().code, Some(0), "it is free again");
}

/// A process that has left the group, the environment and the parent of the agent, and writes on.
const SURVIVOR: &str =
    "env -i setsid sh -c 'echo $$ > ../survivor; while :; do echo x >> ../written; sleep 0.02; done' &
     while [ ! -s ../written ]; do sleep 0.01; done; echo at work; ";

fn is_there(pid: &str) -> bool {
    // Without an init process a zombie stays; it has no folder.
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok()
}

#[test]
#[cfg(target_os = "linux")]
fn what_an_agent_left_running_ends_before_the_next_run_begins() {
    let env = Env::new();
    killed(env.run_with(&format!("{SURVIVOR}sleep 600"), &["x"]), "at work");
    let survivor = env.wait_for_file("survivor");
    assert!(is_there(&survivor), "neither the guard nor the end of the group reaches it");
    let script = format!("[ -e /proc/{survivor}/cwd/. ] && echo ALIVE; work; promise COMPLETE");
    let run = env.run_with(&script, &["x"]).run();
    assert!(run.code == Some(0) && !run.stdout.contains("ALIVE"), "{run:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_cleared_environment_survives_neither_a_stop_nor_the_end_of_an_iteration() {
    let env = Env::new();
    // Some of it is deaf, and its grace is to pass.
    env.real_time();
    let mut run = env.run_with(&format!("{SURVIVOR}sleep 600"), &["x"]).spawn();
    run.until("at work");
    let survivor = env.wait_for_file("survivor");
    assert!(env.ralph(&["stop"]).ok().contains("stopped"));
    assert!(!is_there(&survivor), "an end is reported while it writes");
    assert_eq!(run.wait().code, Some(130));

    let env = Env::new();
    env.real_time();
    // A process of the same user that this run did not start.
    let mut bystander = Command::new("sleep").arg("600").env_clear().spawn().unwrap();
    let run = env.run_with(&format!("{SURVIVOR}work; promise COMPLETE"), &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!is_there(&env.wait_for_file("survivor")));
    assert_eq!(bystander.try_wait().unwrap(), None);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_run_is_shown_and_stopped_whatever_happens_in_the_project() {
    type Damage = fn(&Env);
    let clean: Damage = |env| {
        for folder in [".claude", "ralph"] {
            fs::remove_dir_all(env.path(folder)).unwrap();
        }
    };
    let damages: [(&str, Damage); 3] = [
        ("git clean", clean),
        ("damaged", |env| {
            let _ = env.write(".claude/ralph-state.json", "{");
        }),
        ("forged", |env| {
            let _ = env.edit_state(|state| state["loops"]["ralph-run"]["run_id"] = "zz".into());
        }),
    ];
    for (what, damage) in damages {
        for flags in [&["stop"][..], &["stop", "--all"]] {
            let env = Env::git();
            let script = "echo at $n; [ $n = 1 ] || sleep 600; work";
            let mut run = env.run_with(script, &["--delay", "0", "the task"]).spawn();
            run.until("at 2");
            damage(&env);
            let shown = env.shown("ralph-run");
            assert_eq!((&shown["state"], &shown["iteration"]), (&"running".into(), &1.into()), "{what}");
            let text = env.ralph(&["status"]).ok();
            assert!(text.contains("the task") && !text.contains("No loop"), "{what}: {text}");
            let said = env.at(5).ralph(flags).ok();
            assert!(said.contains("\"the task\"") && said.contains("stopped"), "{what}: {said}");
            assert_eq!(run.wait().code, Some(130), "{what}");
            let history = env.history();
            let last = (&history[0]["outcome"], &history[0]["iterations"]);
            assert_eq!((history.len(), last), (1, (&"stopped".into(), &2.into())), "{what}: {history:?}");
            assert_eq!(env.shown("ralph-run")["outcome"], "stopped", "{what}");
        }
    }
}

#[test]
fn what_a_dead_runner_left_is_stopped_after_git_clean_too() {
    let env = Env::git();
    killed(
        env.run_with("work; setsid sh -c 'trap \"\" TERM HUP; echo at work; sleep 600'", &["the task"]),
        "at work",
    );
    fs::remove_dir_all(env.path(".claude")).unwrap();
    assert!(env.ralph(&["status"]).ok().contains("orphaned"));
    assert!(env.ralph(&["stop"]).ok().contains("stopped"));
    env.wait_until_nothing_runs();
    assert!(env.ralph(&["stop"]).ok().contains("No loop is running"));
}

#[test]
fn a_run_at_its_limit_is_not_resumed() {
    let env = Env::new();
    killed(env.run_with("work; echo at $n; [ $n = 3 ] && sleep 600", &["x"]), "at 3");
    let said = env.run_with("work", &["--max-iterations", "2"]).run().fails(1);
    assert!(said.contains("limit"), "{said}");
    assert_eq!(env.run_with("work; promise COMPLETE", &["--max-iterations", "9"]).run().code, Some(0));
}

#[test]
fn the_hour_is_counted_across_runs() {
    let env = Env::new();
    let flags = ["--calls-per-hour", "2", "--max-iterations", "2", "x"];
    assert_eq!(env.run_with("work", &flags).run().code, Some(1));
    let mut second = env.at(600).run_with("work", &flags).spawn();
    second.until("limit of 2 iterations per hour reached; continuing in 50m");
    env.at(700).ralph(&["stop"]).ok();
    assert_eq!((second.wait().code, env.starts()), (Some(130), 2));
    assert_eq!(env.at(3601).run_with("work", &flags).run().code, Some(1));
    assert_eq!(env.starts(), 4);
}

/// Kills a runner again and again: each time after some more changes of files, from its first one into its second
/// iteration.
fn kill_after_changes(changes: impl Iterator<Item = usize>) {
    let env = Env::new();
    let flags = ["--max-iterations", "0", "--calls-per-hour", "0", "keep going"];
    for count in changes {
        let mut events = FileEvents::of(&env.folders(), Access::Change);
        let mut run = env.run_with("work; echo line", &flags).spawn();
        events.wait_for_or_end(count, &mut run);
        assert_eq!(run.kill().code, None, "after {count} changes");
    }
    let run = env.run_with("work; promise COMPLETE", &flags).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let text = env.read("ralph/logs/summary.csv");
    let mut numbers = Vec::new();
    for row in env.rows() {
        assert_eq!(row.len(), 14, "torn: {row:?}\n{text}");
        numbers.push(row[0].parse::<usize>().unwrap());
    }
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "no row twice, none missing");
    assert_eq!(text.matches("iteration,mode").count(), 1);
    assert_eq!(env.history().len(), 1, "all of it was one run");
    env.wait_until_nothing_runs();
    assert_eq!(env.list(".claude"), ["ralph-state.json", "ralph-state.lock"]);
}

#[test]
fn a_runner_killed_at_any_moment_tears_and_repeats_nothing() {
    kill_after_changes((0..60).step_by(3));
}

#[test]
#[ignore = "takes a quarter of a minute"]
fn a_runner_killed_after_every_change_tears_and_repeats_nothing() {
    kill_after_changes(0..60);
}

/// A run whose runner was killed after the row of its last iteration, before it recorded the ending.
fn killed_before_its_ending(outcome: &str) -> Env {
    let env = Env::new();
    killed(env.run_with("work; echo at $n; [ $n = 2 ] && sleep 600", &["the task"]), "at 2");
    let rows = env.read("ralph/logs/summary.csv");
    let last = format!("2,implement,9,,0,0,0,2026-11-16T08:00:09Z,{outcome},0.5000,0,,1,0");
    env.write("ralph/logs/summary.csv", format!("{rows}{last}\n"));
    let run_id = env.record("ralph-run")["run_id"].as_str().unwrap().to_owned();
    let events = env.data().join("runs").join(run_id).join("events.jsonl");
    let text = fs::read_to_string(&events).unwrap();
    let first = text.lines().find(|line| line.contains("\"iteration_ended\"")).unwrap();
    let mut event: serde_json::Value = serde_json::from_str(first).unwrap();
    event["iteration"] = json!(2);
    event["outcome"] = json!(outcome);
    fs::write(&events, format!("{text}\n{event}\n")).unwrap();
    env
}

#[test]
fn an_ending_that_only_the_projects_summary_claims_is_not_believed() {
    let env = Env::new();
    let row = "2,implement,9,,0,0,0,2026-11-16T08:00:09Z,complete,,0,,1,0";
    let forge = format!("echo '{row}' >> ralph/logs/summary.csv; echo at work; sleep 600");
    let script = format!("work; [ $n = 2 ] && {{ {forge}; }}");
    killed(env.run_with(&script, &["the task"]), "at work");
    let told = env.ralph(&["stop"]).ok();
    assert!(
        told.contains("interrupted") && told.contains("summary.csv says complete, but Ralph has no record"),
        "{told}"
    );
    assert_eq!(env.history()[0]["outcome"], "interrupted");
    let run = env.run_with("work; promise COMPLETE", &["the task"]).run();
    assert!(run.code == Some(0) && env.starts() == 3, "the task is not done: {run:?}");
}

#[test]
fn a_run_killed_between_its_last_row_and_its_ending_gets_its_ending() {
    for prompt in [&["the task"][..], &[]] {
        let env = killed_before_its_ending("complete");
        let run = env.run_with("work; promise COMPLETE", prompt).run();
        assert!(run.code == Some(0) && run.stdout.contains("Ralph ended (complete)"), "{run:?}");
        assert_eq!(env.starts(), 2, "a task that is done does not begin anew");
        let history = env.history();
        assert_eq!((history.len(), &history[0]["outcome"]), (1, &json!("complete")));
        assert_eq!(
            (&history[0]["iterations"], &env.record("ralph-run")["state"]),
            (&json!(2), &json!("stopped"))
        );
        assert!(env.run_with("work", &[]).run().fails(64).contains("nothing to run"));
    }
    let env = killed_before_its_ending("max-iterations");
    assert!(env.ralph(&["stop"]).ok().contains("Ralph ended (max-iterations)"), "not `stopped`");
    assert_eq!(env.history()[0]["outcome"], "max-iterations");
    let run = env.run_with("work; promise COMPLETE", &["--max-iterations", "9"]).run();
    assert!(run.code == Some(0) && run.stdout.contains("at iteration 3/9"), "{run:?}");
}

#[test]
fn a_start_or_a_new_task_also_gives_a_dead_run_its_ending() {
    let env = killed_before_its_ending("complete");
    env.start("in a session", &[]);
    assert_eq!(env.history()[0]["outcome"], "complete");
    let env = killed_before_its_ending("complete");
    assert_eq!(env.run_with("work; promise COMPLETE", &["another task"]).run().code, Some(0));
    let outcomes: Vec<_> = env.history().iter().map(|run| run["outcome"].clone()).collect();
    assert_eq!(outcomes, ["complete", "complete"], "the task was another one: {:?}", env.history());
}

#[test]
fn a_torn_row_is_removed_by_the_next() {
    let env = Env::new();
    killed(env.run_with("work; echo at $n; [ $n = 2 ] && sleep 600", &["x"]), "at 2");
    let text = env.read("ralph/logs/summary.csv");
    env.write("ralph/logs/summary.csv", format!("{text}2,implem"));
    assert_eq!(env.run_with("work; promise COMPLETE", &["x"]).run().code, Some(0));
    assert_eq!(env.rows().iter().map(|row| row[0].clone()).collect::<Vec<_>>(), ["1", "2"]);
    let status = env.call(Program::Ralph).args(&["status"]).run();
    assert_eq!(status.code, Some(0));
}

/// Runs the command that an ending shows: without a prompt, without an agent.
fn typed(env: &Env, words: &str) -> crate::env::Run {
    let words: Vec<&str> = words.split(' ').collect();
    env.call(Program::Ralph).var("RALPH_RUN_DELAY_SECONDS", "0").args(&words[1..]).run()
}

#[test]
fn the_next_command_that_an_ending_shows_resumes_with_the_same_prompt_and_agent() {
    let env = Env::new();
    let run = env.run_with("work", &["--max-iterations", "2", "the whole task"]).run();
    assert_eq!((run.code, summary(&run, "Next")), (Some(1), "ralph run --max-iterations N"), "{run:?}");
    let run = typed(&env, &summary(&run, "Next").replace('N', "3"));
    assert_eq!((run.code, summary(&run, "Iterations")), (Some(1), "3 / 3"), "{run:?}");
    assert!(env.prompt(3).contains("the whole task"), "the agent of the first run was asked again");

    let env = Env::git();
    env.write(".git/refs/heads/main", "a".repeat(40));
    let run = env.run_with("echo hm $n", &["--max-stuck", "2", "the whole task"]).run();
    assert_eq!((run.code, summary(&run, "Next")), (Some(4), "ralph run --reset"), "{run:?}");
    let run = typed(&env, summary(&run, "Next"));
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(env.prompt(3).contains("the whole task"));
}

#[test]
fn after_a_completion_there_is_nothing_to_resume() {
    let env = Env::new();
    assert_eq!(env.run_with("work; promise COMPLETE", &["the task"]).run().code, Some(0));
    assert!(env.run_with("work", &[]).run().fails(64).contains("nothing to run"));
}

#[test]
fn a_killed_run_is_shown_as_cut_off_and_resumes_with_its_own_agent() {
    let env = Env::new();
    killed(
        env.run_with("work; echo at $n; [ $n = 1 ] && sleep 600; promise COMPLETE", &["the task"]),
        "at 1",
    );
    let shown = env.ralph(&["status"]).ok();
    assert!(
        shown.contains("◌ orphaned: its runner has exited") && shown.contains("Next        ralph run\n"),
        "{shown}"
    );
    assert_eq!(env.status()["loops"][0]["orphaned"], true);
    let run = typed(&env, "ralph run");
    assert_eq!(run.code, Some(0), "it is no client of Claude Code's that is started: {run:?}");
    assert!(env.prompt(2).contains("the task"));
}

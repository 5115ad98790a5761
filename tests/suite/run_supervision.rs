//! The heartbeat, the time limit, and the end of everything an agent started.

use crate::agents::told;
use crate::env::{Call, Env, Run};
use rustix::process::Signal;
use std::time::{Duration, Instant};

const QUICK: [&str; 6] =
    ["--heartbeat-interval", "1", "--heartbeat-threshold", "2", "--startup-grace-period", "0"];

fn flags<'f>(more: &[&'f str]) -> Vec<&'f str> {
    [&QUICK[..], more].concat()
}

/// The number behind a key of a structured line.
fn number(line: &str, key: &str) -> u64 {
    let value = line.split(' ').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=')).unwrap();
    value.parse().unwrap()
}

fn says(run: &Run, text: &str) {
    assert!(run.stdout.lines().any(|line| line == text), "not said: {text}\n{}", run.stdout);
}

#[test]
fn a_silent_agent_is_warned_about_and_ended_and_the_run_goes_on() {
    let env = Env::new();
    let script = "work; [ $n = 2 ] && { promise COMPLETE; exit; }; sleep 60";
    let run = env.run_with(script, &flags(&["x"])).run();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["failed".into(), "complete".into()]), "{run:?}");
    let lines: Vec<&str> = run.stderr.lines().collect();
    let [warning, stall] = lines[..] else { panic!("{run:?}") };
    let run_id = &env.history()[0]["run_id"].as_str().unwrap().to_owned();
    // A busy machine may look a moment late.
    let (warned, stalled) = (number(warning, "elapsed_seconds"), number(stall, "elapsed_seconds"));
    assert!(warned == 1 && (2..=4).contains(&stalled), "{lines:?}");
    assert_eq!(
        warning,
        format!("event=heartbeat_warning elapsed_seconds=1 missed_count=1 iteration=1 run_id={run_id}")
    );
    assert_eq!(
        stall,
        format!(
            "event=stall_detected elapsed_seconds={stalled} missed_count={stalled} iteration=1 run_id={run_id}"
        )
    );
    says(
        &run,
        "Warning: No agent output for 1s (1 heartbeat intervals). Stall detection in 1s unless activity resumes. \
         (iteration 1)",
    );
    says(
        &run,
        &format!(
            "Agent stall detected: no output for {stalled}s (exceeded 2s threshold). Terminating agent. \
             (iteration 1)"
        ),
    );
    says(&run, &format!("── iteration 1 failed · {}s · stalled: no output for {stalled}s", env.rows()[0][2]));
    env.nothing_runs();
}

/// A stream that hangs after its first events, and how its silence is told.
fn hangs(how: &str, limit: u64) {
    let env = Env::new();
    env.var("RALPH_HEARTBEAT_TOOL_SECONDS", "6");
    let script = format!(
        "work; [ $n = 2 ] && {{ result '<promise>COMPLETE</promise>'; exit; }}; text 'I look around'; {how}; sleep 60"
    );
    let run = env.run_claude(&script, &[&["--heartbeat-interval", "2"], &QUICK[2..], &["x"]].concat()).run();
    let outcomes = vec!["failed".to_owned(), "complete".to_owned()];
    assert_eq!((run.code, env.outcomes()), (Some(0), outcomes), "{run:?}");
    says(&run, "I look around");
    let lines: Vec<&str> = run.stderr.lines().collect();
    let [warning, stall] = lines[..] else { panic!("{run:?}") };
    let (warned, stalled) = (number(warning, "elapsed_seconds"), number(stall, "elapsed_seconds"));
    assert!((limit - 2..limit).contains(&warned) && (limit..limit + 3).contains(&stalled), "{lines:?}");
    let run_id = env.history()[0]["run_id"].as_str().unwrap().to_owned();
    for (line, event, elapsed) in [(warning, "heartbeat_warning", warned), (stall, "stall_detected", stalled)]
    {
        let missed = elapsed / 2;
        let rest = format!("elapsed_seconds={elapsed} missed_count={missed} iteration=1 run_id={run_id}");
        assert_eq!(line, format!("event={event} {rest}"));
    }
    let (missed, remaining) = (warned / 2, limit - warned);
    says(
        &run,
        &format!(
            "Warning: No agent output for {warned}s ({missed} heartbeat intervals). Stall detection in {remaining}s \
             unless activity resumes. (iteration 1)"
        ),
    );
    says(
        &run,
        &format!(
            "Agent stall detected: no output for {stalled}s (exceeded {limit}s threshold). Terminating agent. \
             (iteration 1)"
        ),
    );
    env.nothing_runs();
}

#[test]
fn a_stream_that_hangs_is_told_in_the_same_words_whatever_it_hangs_in() {
    together(&[
        &|| hangs(":", 4),
        // In the middle of an event.
        &|| hangs("printf '{\"type\":\"assistant\",\"mess'", 4),
        // A tool has a limit of its own.
        &|| hangs("tool 'make test'", 6),
    ]);
}

#[test]
fn a_runner_that_was_stopped_did_not_hear_and_so_there_was_no_silence() {
    let env = Env::new();
    let script = "work; echo at work; until [ -e ../go ]; do sleep 0.02; done; promise COMPLETE";
    let six = ["--heartbeat-interval", "3", "--heartbeat-threshold", "2", "--startup-grace-period", "0", "x"];
    let mut run = env.run_with(script, &six).live();
    run.until("at work");
    run.signal(Signal::STOP);
    // Longer than the limit, and than a busy machine may be late.
    std::thread::sleep(Duration::from_millis(6500));
    run.signal(Signal::CONT);
    // Time for a look at the heart, and for a hasty end.
    std::thread::sleep(Duration::from_millis(1200));
    std::fs::write(env.base.join("go"), "").unwrap();
    let run = run.end();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert_eq!(env.outcomes(), ["complete"]);
}

/// Children of every kind: in the group, deaf to requests, in a session of their own, twice removed.
const FAMILY: &str = "sleep 300 & (trap '' TERM; sleep 301 & wait) & setsid sleep 302 & \
                      setsid sh -c 'trap \"\" TERM HUP; setsid sleep 303 & sleep 304' & echo at work; sleep 305";

#[test]
fn an_iteration_that_ends_leaves_nothing_behind() {
    let env = Env::new();
    let script = "setsid sleep 302 > /dev/null 2>&1 & sleep 300 > /dev/null 2>&1 & echo $! > ../child; work; \
                  [ $n = 1 ] && exit; ps -o stat= -p $(cat ../first) | grep -v Z > ../alive; promise COMPLETE";
    let script = format!("[ $n = 2 ] && cp ../child ../first; {script}");
    let run = env.run_with(&script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(std::fs::read_to_string(env.base.join("alive")).unwrap(), "", "gone before the next begins");
    assert_eq!(env.processes(), [""; 0]);
}

/// At once, for they mostly wait.
fn together(cases: &[&(dyn Fn() + Sync)]) {
    std::thread::scope(|scope| cases.iter().for_each(|case| drop(scope.spawn(case))));
}

#[test]
fn an_agent_that_is_at_work_is_not_silent() {
    let at_work = |call: fn(&Env) -> Call| {
        let run = call(&Env::new()).run();
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    };
    together(&[
        // Any byte is a pulse.
        &|| {
            at_work(|env| {
                let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf .; sleep 0.2; done; echo; promise COMPLETE";
                env.run_with(script, &flags(&["x"]))
            });
        },
        // A tool may take its time.
        &|| {
            at_work(|env| {
                let script = "work; tool 'make test'; sleep 2.6; result '<promise>COMPLETE</promise>'";
                env.run_claude(script, &flags(&["x"]))
            });
        },
        // The grace holds back even a warning.
        &|| {
            at_work(|env| {
                let flags = [&QUICK[..5], &["60", "x"]].concat();
                env.run_with("sleep 2.6; promise COMPLETE", &flags)
            });
        },
    ]);
}

#[test]
fn an_iteration_that_must_be_ended_fails_and_the_run_goes_on() {
    let fails = |script: &str, flags: &[&str], how: &str| {
        let env = Env::new();
        let began = Instant::now();
        let script = format!("work; [ $n = 2 ] && {{ promise COMPLETE; exit; }}; {script}");
        let run = env.run_with(&script, flags).run();
        let outcomes = vec!["failed".to_owned(), "complete".to_owned()];
        assert_eq!((run.code, env.outcomes()), (Some(0), outcomes), "{run:?}");
        assert!(run.stdout.contains(how), "{run:?}");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        assert_eq!(env.processes(), [""; 0], "at the end of the run nothing is left");
        env
    };
    let timeout = ["--timeout", "0.01", "x"];
    together(&[
        &|| drop(fails(FAMILY, &timeout, "timed out after 0.01 minutes")),
        &|| drop(fails("trap '' TERM; while :; do sleep 1; done", &timeout, "timed out after 0.01 minutes")),
        &|| {
            let env = fails("echo bye; exec >&- 2>&-; sleep 60", &flags(&["x"]), "stalled: no output for");
            assert_eq!(env.read("ralph/logs/iteration-001.log"), "bye\n");
        },
        &|| drop(fails(FAMILY, &flags(&["x"]), "stalled: no output for")),
    ]);
}

#[test]
fn every_wait_has_its_end() {
    together(&[&stays, &holds_the_pipe, &service_fails, &plan_is_used_up]);
}

/// An agent that stays after its last word is believed, and ended.
fn stays() {
    let env = Env::new();
    let run = env.run_claude("work; result '<promise>COMPLETE</promise>'; sleep 60", &["x"]).run();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["complete".to_owned()]), "{run:?}");
    env.nothing_runs();
}

/// Whoever keeps the pipe open does not hold up the run.
fn holds_the_pipe() {
    let env = Env::new();
    let began = Instant::now();
    let run = env.run_with("setsid sleep 60 & work; promise COMPLETE", &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    env.nothing_runs();
}

/// A service that fails is tried again, and that costs no iteration, but its money.
fn service_fails() {
    let env = Env::new();
    let script = "[ $n = 1 ] && error 500; work; result '<promise>COMPLETE</promise>' 0.5";
    let run = env.run_claude(script, &["--max-iterations", "1", "x"]).run();
    let outcomes = vec!["complete".to_owned()];
    assert_eq!((run.code, env.starts(), env.outcomes()), (Some(0), 2, outcomes), "{run:?}");
    assert!(run.stdout.contains("Ralph: the service failed (500); going on in "), "{run:?}");
    assert_eq!(told(&run, "Usage"), "18 tokens · $0.60", "{run:?}");
}

/// The plan's limit is waited for, and is neither iteration nor runtime.
fn plan_is_used_up() {
    let env = Env::new();
    env.without("RALPH_NOW");
    // Half a minute is added for the clocks of others.
    let script = "text \"try $n\"; [ $n = 1 ] && limit $(( $(date +%s) - 28 )); work; result '<promise>COMPLETE</promise>' 0.5";
    let began = Instant::now();
    let run = env.run_claude(script, &["--max-iterations", "1", "x"]).run();
    let outcomes = vec!["complete".to_owned()];
    assert_eq!((run.code, env.starts(), env.outcomes()), (Some(0), 2, outcomes), "{run:?}");
    assert!(run.stdout.contains("Ralph: usage limit reached; going on in "), "{run:?}");
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    let runtime = env.history()[0]["runtime_seconds"].as_f64().unwrap();
    assert!(runtime < 0.9, "waiting is no runtime: {runtime}");
    let log = env.read("ralph/logs/iteration-001.log");
    assert!(log.contains("try 1") && log.contains("try 2"), "the first try is not lost: {log}");
    assert_eq!(told(&run, "Usage"), "18 tokens · $0.60", "what was spent before it is not forgotten");
}

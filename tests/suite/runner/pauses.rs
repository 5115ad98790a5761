//! `ralph pause` and a run: the iteration ends by itself, the next one waits.

use crate::agents::summary;
use crate::env::{Env, wait_until};
use rustix::process::Signal;

#[test]
fn a_paused_run_holds_before_its_next_iteration_until_it_is_resumed() {
    let env = Env::new();
    let clock = env.clock();
    let script = "work; echo at work $n; wait_for go-$n; [ $n = 2 ] && promise COMPLETE";
    let mut run = env.run_with(script, &["x"]).spawn();
    run.until("at work 1");
    let told = env.ralph(&["pause"]).ok();
    assert!(told.contains("pauses before its next iteration"), "{told}");
    let status = env.ralph(&["status"]).ok();
    assert!(status.contains("working: pauses before the next iteration"), "{status}");
    assert_eq!(env.shown("ralph-run")["activity"], "working");
    env.touch("go-1");
    run.until("── iteration 1 ok");
    run.until("Ralph: paused by you; `ralph pause --resume` continues");
    wait_until("the run holds", || env.shown("ralph-run")["activity"] == "paused");
    let shown = env.shown("ralph-run");
    assert_eq!(
        (&shown["state"], &shown["activity"], &shown["iteration"]),
        (&"paused".into(), &"paused".into(), &1.into())
    );
    let status = env.ralph(&["status"]).ok();
    assert!(
        status.contains("paused: paused by you") && status.contains("`ralph pause --resume`"),
        "{status}"
    );
    assert_eq!(env.starts(), 1);
    clock.advance(3000);
    env.ralph(&["pause", "--resume"]).ok();
    run.until("Ralph: resumed");
    env.touch("go-2");
    let run = run.wait();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(summary(&run, "Iterations"), "2 / 50");
    assert!(summary(&run, "Duration").starts_with("50m · "), "{run:?}");
    assert_eq!(summary(&run, "Avg/iter"), "0s", "a pause is no work of the agent");
}

#[test]
fn a_paused_run_can_be_stopped_interrupted_and_continued() {
    let env = Env::new();
    let paused = || {
        let mut run = env.run_with("work; echo at work; wait_for go", &["x"]).spawn();
        run.until("at work");
        env.ralph(&["pause"]).ok();
        env.touch("go");
        run.until("Ralph: paused by you");
        std::fs::remove_file(env.base.join("go")).unwrap();
        run
    };
    let run = paused();
    env.ralph(&["stop"]).ok();
    let ended = run.wait();
    assert_eq!(summary(&ended, "Exit"), "STOPPED (code 130)");

    let run = paused();
    run.signal(Signal::INT);
    assert_eq!(summary(&run.wait(), "Exit"), "INTERRUPTED (code 130)");

    paused().kill();
    wait_until("its runner has exited", || env.shown("ralph-run")["activity"] == "orphaned");
    let refused = env.ralph(&["pause", "--resume"]).fails(1);
    assert!(
        refused.contains("the runner of \"x\" has exited") && refused.contains("`ralph run`"),
        "{refused}"
    );
    env.touch("go");
    let ended = env.run_with("work; promise COMPLETE", &[]).run();
    assert_eq!(summary(&ended, "Exit"), "COMPLETE (code 0)");
}

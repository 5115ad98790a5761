//! Whether the loop continues: the user's stops, the agent's promises, the limits.

use crate::env::{DONE, Env, HOUR, MINUTE, OTHER, Program, SESSION, names_in};
use serde_json::json;

#[test]
fn a_turn_continues_with_one_line_for_the_user_and_a_short_prompt_for_the_agent() {
    let env = Env::new();
    env.start(&"make the whole suite green, ".repeat(200), &[]);
    let answer = env.at(MINUTE).turn(SESSION, "did something");
    assert_eq!(answer.message.as_deref(), Some("Ralph 1/50 · Runtime: 0.0h/9.0h | Wall: 0.0h"));
    let prompt = answer.continues();
    assert!(prompt.chars().count() < 600, "{} characters: {prompt}", prompt.chars().count());
    for part in ["make the whole suite green", "<promise>COMPLETE</promise>", "BLOCKED", "DECIDE"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
}

#[test]
fn the_end_is_announced_when_it_comes_near() {
    let env = Env::without_breaker();
    env.start("task", &["--max-iterations", "10"]);
    for turn in 1..=5 {
        let line = env.at(turn).turn(SESSION, "x").message.unwrap();
        assert!(!line.contains("ENDING SOON"), "{turn}: {line}");
    }
    assert!(env.turn(SESSION, "x").message.unwrap().contains("ENDING SOON"), "four left");
}

#[test]
fn the_kill_switch_stops_every_loop_of_the_project_from_any_session() {
    let env = Env::new();
    env.start("one", &[]);
    env.start_in(OTHER, "two", &[]);
    env.write(".claude/STOP_LOOP", "");
    env.turn("a session without a loop", "x");
    assert!(!env.exists(".claude/STOP_LOOP"), "the next hook removes it");
    for session in [SESSION, OTHER] {
        assert_eq!(env.shown(session)["outcome"], "killed");
        env.turn(session, DONE).ended("killed");
        env.turn(session, "x").silent();
    }
    assert_eq!(env.history().len(), 2);
    assert!(names_in(&env.data().join("sessions")).is_empty());
}

#[test]
fn the_kill_switch_wins_over_a_completion_and_counts_no_iteration() {
    let env = Env::new();
    env.start("one", &[]);
    env.write(".claude/STOP_LOOP", "");
    env.turn(SESSION, DONE).ended("killed");
    assert_eq!(env.record(SESSION)["iteration"], 0);
    assert!(!env.exists(".claude/STOP_LOOP"));
}

#[test]
fn the_kill_switch_is_seen_by_the_next_hook_whichever_it_is() {
    let env = Env::new();
    env.start("one", &[]);
    env.write(".claude/STOP_LOOP", "");
    let answer = env.at(HOUR).session_start(SESSION, "resume").run();
    assert_eq!(answer.context, None, "a killed loop is not set to work again: {answer:?}");
    assert_eq!(env.shown(SESSION)["outcome"], "killed");
}

#[test]
fn a_start_does_not_swallow_a_kill_switch_meant_for_others() {
    let env = Env::new();
    env.start("runs", &[]);
    env.write(".claude/STOP_LOOP", "");
    env.start_in(OTHER, "new", &[]);
    let first = env.turn(SESSION, "x");
    assert!(first.block.is_none(), "the user stopped every loop that ran: {first:?}");
    assert_eq!(env.shown(SESSION)["outcome"], "killed");
    env.turn(OTHER, "x").continues();
}

#[test]
fn an_old_kill_switch_does_not_kill_a_new_start() {
    let env = Env::new();
    env.write(".claude/STOP_LOOP", "");
    env.start("new", &[]);
    env.turn(SESSION, "x").continues();
}

#[test]
fn a_stop_ends_one_sessions_loop_and_tells_it_once() {
    let env = Env::new();
    env.start("one", &[]);
    env.start_in(OTHER, "two", &[]);
    let told = env.ralph(&["stop", "--session", SESSION]).ok();
    assert!(told.contains("stopped"), "{told}");
    env.turn(SESSION, DONE).ended("stopped");
    env.turn(SESSION, DONE).silent();
    env.turn(OTHER, "x").continues();
    assert_eq!(env.ralph(&["stop", "--session", SESSION]).code, Some(1), "a second stop has nothing to do");
}

#[test]
fn a_stop_without_a_session_ends_the_projects_loops() {
    let env = Env::new();
    env.start("one", &[]);
    env.start_in(OTHER, "two", &[]);
    env.ralph(&["stop"]).ok();
    for session in [SESSION, OTHER] {
        assert_eq!(env.shown(session)["outcome"], "stopped");
    }
    assert!(env.ralph(&["stop"]).ok().contains("No loop"));
}

#[test]
fn stopping_one_project_does_not_affect_others() {
    let env = Env::new();
    env.start("one", &[]);
    let elsewhere = env.base.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    env.call(Program::Ralph).args(&["stop"]).cwd(&elsewhere).run().ok();
    assert_eq!(names_in(&elsewhere), [""; 0], "and leaves nothing there");
    env.turn(SESSION, "x").continues();
}

#[test]
fn stop_all_ends_every_loop_started_before_it_in_every_project() {
    let env = Env::new();
    env.start("here", &[]);
    let there = env.base.join("there");
    std::fs::create_dir(&there).unwrap();
    env.call(Program::Ralph).args(&["start", "--session", OTHER, "there"]).cwd(&there).run().ok();
    env.at(10).ralph(&["stop", "--all"]).ok();
    env.at(20).turn(SESSION, DONE).ended("stopped");
    let event = env.stop(OTHER).says("x").field("cwd", there.to_str().unwrap());
    event.call().var("CLAUDE_PROJECT_DIR", &there).run().answer().ended("stopped");
    env.at(30).start("afterwards", &[]);
    env.at(40).turn(SESSION, "x").continues();
    assert!(env.at(50).ralph(&["stop", "--all"]).ok().contains("afterwards"));
    assert!(env.at(60).ralph(&["stop", "--all"]).ok().contains("No loop"));
}

#[test]
fn stop_all_reaches_a_loop_whose_file_could_not_be_written_then() {
    let env = Env::new();
    env.start("task", &[]);
    std::fs::write(env.data().join("stop-all"), format!("{}\n", crate::env::stamp(10))).unwrap();
    env.at(20).turn(SESSION, DONE).ended("stopped");
    assert_eq!(env.history().len(), 1);
}

#[test]
fn a_start_after_stop_all_runs_even_if_the_clock_was_set_back() {
    let env = Env::new();
    env.at(100).ralph(&["stop", "--all"]).ok();
    env.at(100).start("in the same moment", &[]);
    env.at(101).turn(SESSION, "x").continues();
    env.at(40).start_in(OTHER, "clock set back", &[]);
    env.at(41).turn(OTHER, "x").continues();
}

#[test]
fn stop_all_ends_a_paused_loop_too() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").esc(2).prompt(3, "q", "wait").text(4, "ok");
    env.at(5).stop(SESSION).with(&transcript).run().allows();
    env.at(10).ralph(&["stop", "--all"]).ok();
    env.at(20).turn(SESSION, "x").ended("stopped");
}

#[test]
fn a_completion_below_its_minimums_is_rejected_and_the_agent_is_told_to_use_the_time() {
    let env = Env::new();
    env.start("task", &["--min-hours", "0.1", "--min-iterations", "3"]);
    let answer = env.at(100).turn(SESSION, DONE);
    let prompt = answer.continues();
    for part in ["Completion rejected", "not reached (1 of 3)", "verify", "review"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(answer.message.unwrap().contains("completion rejected"));
    env.at(200).turn(SESSION, DONE).continues();
    env.at(300).turn(SESSION, DONE).continues();
    env.at(361).turn(SESSION, DONE).ended("complete");
}

#[test]
fn blocked_and_decide_are_never_rejected() {
    for (promise, outcome) in [("BLOCKED:no key", "blocked"), ("DECIDE:A or B?", "decide")] {
        let env = Env::new();
        env.start("task", &["--production"]);
        let told = env.turn(SESSION, &format!("I looked.\n<promise>{promise}</promise>"));
        assert!(told.ended(outcome).contains(promise.split_once(':').unwrap().1), "{told:?}");
    }
    let env = Env::new();
    env.start("task", &[]);
    for empty in ["<promise>BLOCKED:</promise>", "<promise>DECIDE:  </promise>", "<promise>BLOCKED</promise>"]
    {
        env.turn(SESSION, empty).continues();
    }
}

#[test]
fn the_limit_of_iterations_is_the_number_of_turns() {
    let env = Env::new();
    env.start("task", &["--max-iterations", "3"]);
    env.turn(SESSION, "1").continues();
    env.turn(SESSION, "2").continues();
    let told = env.turn(SESSION, "3").ended("max-iterations").to_owned();
    assert!(told.contains("--resume"), "and how to continue: {told}");
    assert_eq!(env.shown(SESSION)["iteration"], 3);
    env.turn(SESSION, "4").silent();
}

#[test]
fn a_completion_on_the_last_turn_counts_as_complete() {
    let env = Env::new();
    env.start("task", &["--max-iterations", "1", "--max-hours", "0.01"]);
    env.at(200).turn(SESSION, DONE).ended("complete");
}

#[test]
fn the_limit_of_runtime_ends_the_loop() {
    let env = Env::new();
    env.start("task", &["--max-hours", "0.05"]);
    env.at(179).turn(SESSION, "x").continues();
    env.at(181).turn(SESSION, "x").ended("max-runtime");
}

#[test]
fn the_cost_limit_uses_the_clients_figures() {
    let env = Env::new();
    let transcript = env.transcript();
    transcript.cost(3.0);
    env.start("task", &["--max-cost", "1.50"]);
    transcript.worked(1).cost(4.0);
    let line = env.at(20).stop(SESSION).with(&transcript).says("x").run().message.unwrap();
    assert!(line.contains("$1.00") || !line.contains('$'), "spent before the loop does not count: {line}");
    transcript.worked(21).cost(4.6);
    let told = env.at(40).stop(SESSION).with(&transcript).says("x").run();
    assert!(told.ended("max-cost").contains('$'));
    assert_eq!(env.shown(SESSION)["outcome"], "max-cost");
}

#[test]
fn a_cost_limit_without_figures_is_reported_once() {
    let env = Env::new();
    env.start("task", &["--max-cost", "1"]);
    assert!(env.turn(SESSION, "x").message.unwrap().contains("cost"));
    assert!(!env.turn(SESSION, "x").message.unwrap().contains("cost"));
}

#[test]
fn tokens_are_counted_once_a_message() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    let usage = json!({"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 1000});
    let entry =
        json!({"message": {"id": "same", "content": [{"type": "text", "text": "a"}], "usage": usage}});
    transcript.entry(1, "assistant", entry.clone()).entry(2, "assistant", entry);
    env.at(5).stop(SESSION).with(&transcript).run().continues();
    env.at(6).stop(SESSION).with(&transcript).run().continues();
    let used = env.record(SESSION)["usage"].clone();
    assert_eq!((&used["input_tokens"], &used["output_tokens"]), (&json!(100), &json!(20)));
}

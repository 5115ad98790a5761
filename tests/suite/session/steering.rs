//! What the user does has priority: queued commands, Esc, background work; and the breaker before the client's own cap.

use crate::env::{DONE, Env, OTHER, Program, SESSION};
use serde_json::json;
use std::fs;

#[test]
fn a_queued_slash_command_runs_first_then_the_loop_continues() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(1).queue(5, "enqueue", "/ralph:status");
    let told = env.at(20).stop(SESSION).with(&transcript).says("x").run();
    assert!(told.allows().contains("/ralph:status"), "{told:?}");
    assert_eq!(env.shown(SESSION)["state"], "running", "the loop stays armed");
    transcript.queue(21, "dequeue", "").prompt(22, "q", "status please").text(24, "here");
    env.at(25).stop(SESSION).with(&transcript).says("here").run().continues();
}

#[test]
fn a_queued_command_that_was_removed_delays_nothing() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(1).queue(5, "enqueue", "/ralph:stop").queue(6, "remove", "/ralph:stop");
    env.at(20).stop(SESSION).with(&transcript).says("x").run().continues();
}

#[test]
fn a_queue_that_was_misread_stops_the_loop_at_most_once() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(1).queue(5, "enqueue", "/ghost");
    env.at(20).stop(SESSION).with(&transcript).says("x").run().allows();
    transcript.worked(21);
    env.at(40).stop(SESSION).with(&transcript).says("x").run().continues();
    transcript.worked(41);
    env.at(60).stop(SESSION).with(&transcript).says("x").run().continues();
}

#[test]
fn a_queue_from_before_the_loop_or_the_last_process_delays_nothing() {
    let env = Env::new();
    let transcript = env.transcript();
    transcript.queue(-50, "enqueue", "/old");
    env.start("task", &[]);
    transcript.worked(1);
    env.at(20).stop(SESSION).with(&transcript).says("x").run().continues();
    transcript.queue(25, "enqueue", "/lost with the process");
    env.at(100).session_start(SESSION, "resume").with(&transcript).run();
    transcript.worked(101);
    env.at(120).stop(SESSION).with(&transcript).says("x").run().continues();
}

#[test]
fn esc_pauses_with_one_message_and_only_the_user_resumes() {
    let env = Env::new();
    env.start("the task", &[]);
    let transcript = env.transcript();
    transcript.worked(1).esc(15).prompt(20, "q", "what is this?").text(25, "explained");
    let told = env.at(30).stop(SESSION).with(&transcript).prompt_id("q").says("explained").run();
    assert!(told.allows().contains("PAUSED") && told.allows().contains("--resume"), "{told:?}");
    assert_eq!(env.shown(SESSION)["state"], "paused");
    transcript.prompt(40, "r", "more").text(45, "sure");
    env.at(50).stop(SESSION).with(&transcript).prompt_id("r").says(DONE).run().silent();
    let refused = env.ralph(&["start", "--session", SESSION, "new"]).fails(1);
    assert!(refused.contains("paused"), "{refused}");
    let told = env.at(60).ralph(&["start", "--resume", "--session", SESSION]).ok();
    assert!(told.contains("the task"), "{told}");
    transcript.worked(61);
    let prompt = env.at(75).stop(SESSION).with(&transcript).says("x").run();
    assert!(prompt.continues().contains("the task"));
    assert_eq!(env.shown(SESSION)["state"], "running");
}

/// The transcript shows the Esc with a later time than that of the resume.
#[test]
fn a_clock_set_back_after_esc_pauses_the_resumed_loop_only_at_another_esc() {
    let env = Env::new();
    env.start("the task", &[]);
    let transcript = env.transcript();
    transcript.worked(3601).esc(3615).prompt(3620, "q", "wait").text(3625, "ok");
    env.at(3630).stop(SESSION).with(&transcript).prompt_id("q").says("ok").run().allows();
    assert_eq!(env.shown(SESSION)["state"], "paused");
    env.at(60).types(SESSION, "start", "--resume");
    transcript.worked(61);
    env.at(75).stop(SESSION).with(&transcript).says("x").run().continues();
    env.at(80)
        .event(Program::SessionStartHook, SESSION, "SessionStart")
        .field("source", "compact")
        .with(&transcript)
        .run();
    assert_eq!(env.shown(SESSION)["state"], "running");
    transcript.worked(81).esc(95).prompt(100, "r", "wait").text(105, "ok");
    let told = env.at(110).stop(SESSION).with(&transcript).prompt_id("r").says("ok").run();
    assert!(told.allows().contains("PAUSED"), "{told:?}");
    env.at(120).types(SESSION, "start", "--resume");
    transcript.worked(121);
    env.at(135).stop(SESSION).with(&transcript).says("y").run().continues();
    assert_eq!(env.shown(SESSION)["state"], "running", "the first Esc still looks newer than the resume");
}

#[test]
fn an_esc_from_before_the_loop_pauses_nothing() {
    let env = Env::new();
    let transcript = env.transcript();
    transcript.prompt(-60, "o", "old").esc(-50);
    env.start("task", &[]);
    transcript.worked(1);
    env.at(20).stop(SESSION).with(&transcript).says("x").run().continues();
}

#[test]
fn a_paused_loop_can_be_stopped() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(1).esc(15).prompt(20, "q", "wait").text(25, "ok");
    env.at(30).stop(SESSION).with(&transcript).run().allows();
    env.ralph(&["stop", "--session", SESSION]).ok();
    assert_eq!(env.shown(SESSION)["outcome"], "stopped");
}

#[test]
fn background_work_is_waited_for_and_nothing_is_counted() {
    let env = Env::new();
    env.start("task", &["--max-iterations", "2"]);
    let transcript = env.transcript();
    for n in 0..8 {
        transcript.feedback(n * 10).text(n * 10 + 2, "waiting");
        let told = env
            .at(n * 10 + 3)
            .stop(SESSION)
            .with(&transcript)
            .says("waiting")
            .background("cargo build")
            .run();
        assert!(told.allows().contains("cargo build"), "{told:?}");
    }
    assert_eq!(
        (env.record(SESSION)["iteration"].clone(), env.shown(SESSION)["state"].clone()),
        (json!(0), json!("running"))
    );
    transcript.prompt(100, "n", "<task-notification>").worked(101);
    env.at(115).stop(SESSION).with(&transcript).says("built").run().continues();
    assert_eq!(env.record(SESSION)["iteration"], 1);
}

#[test]
fn background_work_that_has_ended_is_no_reason_to_wait() {
    let env = Env::new();
    env.start("task", &[]);
    let over = json!([{"id": "b", "type": "shell", "status": "completed", "description": "old"}]);
    env.stop(SESSION).field("background_tasks", over).says("x").run().continues();
}

#[test]
fn idle_turns_end_as_stuck_before_the_clients_own_cap_with_one_warning() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.prompt(0, "p", "go");
    for turn in 1..=4 {
        transcript.text(turn * 10, "I am thinking").feedback(turn * 10 + 1);
        let prompt = env.at(turn * 10 + 1).stop(SESSION).with(&transcript).says("thinking").run();
        assert_eq!(
            prompt.continues().contains("without a tool call"),
            turn == 4,
            "one warning, one step before"
        );
    }
    transcript.text(50, "still thinking");
    let told = env.at(51).stop(SESSION).with(&transcript).says("thinking").run();
    assert!(told.ended("stuck").contains("5 turns"), "{told:?}");
    let circuit = env.shown(SESSION)["circuit"].clone();
    assert_eq!(circuit["state"], "tripped");
    assert!(circuit["reason"].as_str().unwrap().contains("tool"));
}

#[test]
fn one_tool_resets_the_count_and_unknown_turns_count_nothing() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    let transcript = env.transcript();
    for turn in 0..12 {
        let begin = turn * 20;
        if turn % 4 == 3 {
            transcript.worked(begin);
        } else {
            transcript.feedback(begin).text(begin + 5, "thinking");
        }
        env.at(begin + 15).stop(SESSION).with(&transcript).says("x").run().continues();
    }
    for _ in 0..10 {
        env.stop(SESSION).says("no transcript").run().continues();
    }
}

#[test]
fn a_tool_the_transcript_shows_late_still_counts_as_work() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    let transcript = env.transcript();
    // Each Stop sees the turn before last only: it lags by one message.
    for turn in 0..8 {
        let begin = turn * 20;
        transcript.feedback(begin).call(begin + 1, &format!("t{turn}"));
        env.at(begin + 15).stop(SESSION).with(&transcript).says("x").run().continues();
        transcript.result(begin + 5, &format!("t{turn}")).text(begin + 14, "x");
    }
}

#[test]
fn the_text_of_a_subagent_is_not_the_agents() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    let message = json!({"id": "side", "content": [{"type": "text", "text": DONE}]});
    transcript.entry(2, "assistant", json!({"isSidechain": true, "message": message}));
    env.at(5).stop(SESSION).with(&transcript).run().continues();
}

#[test]
fn without_the_clients_message_the_transcripts_last_text_is_the_agents() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "say <promise>COMPLETE</promise>").result(2, "t").text(3, DONE);
    env.at(5).stop(SESSION).with(&transcript).run().ended("complete");

    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    let tool = json!([{"type": "tool_result", "tool_use_id": "t", "content": DONE}]);
    transcript.text(1, "hm").entry(2, "user", json!({"message": {"content": tool}}));
    transcript.prompt(3, "p", DONE);
    env.at(5).stop(SESSION).with(&transcript).run().continues();
}

#[test]
fn a_promise_from_before_the_loop_completes_nothing() {
    let env = Env::new();
    let transcript = env.transcript();
    transcript.text(-20, DONE);
    env.start("task", &[]);
    env.at(5).stop(SESSION).with(&transcript).run().continues();
    env.turn(OTHER, DONE).silent();
}

#[test]
fn the_waker_does_nothing_outside_the_terminal_or_without_a_loop() {
    let env = Env::new();
    env.start("task", &[]);
    let payload =
        json!({"session_id": SESSION, "hook_event_name": "Stop", "transcript_path": "/none"}).to_string();
    let run = env.call(Program::Ralph).args(&["wake"]).stdin(payload).run();
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let run =
        env.call(Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", "cli").stdin("rubbish").run();
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn the_waker_leaves_an_agent_alone_that_took_its_transcript_along() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(1).queue(5, "enqueue", "/compact");
    let event = env.at(20).stop(SESSION).with(&transcript).says("x");
    let payload = event.payload();
    assert!(event.run().allows().contains("first, then continuing"));
    fs::remove_file(&transcript.path).unwrap();
    let call = env.call(Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", "cli");
    let run = call.stdin(payload).run();
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
}

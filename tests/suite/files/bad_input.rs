//! For any input: exit 0, one JSON answer or none, the session continues, nothing is lost.

use crate::env::{DONE, Env, Program, SESSION};
use serde_json::json;

const HOOKS: [Program; 2] = [Program::StopHook, Program::SessionStartHook];

#[test]
fn input_that_is_no_hook_call_is_answered_and_changes_nothing() {
    let env = Env::new();
    env.start("task", &[]);
    let before = env.snapshot();
    let whole = json!({"session_id": SESSION, "hook_event_name": "Stop", "cwd": env.project}).to_string();
    let inputs: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"   \n".to_vec(),
        b"{".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"\"text\"".to_vec(),
        b"{} {}".to_vec(),
        b"\xff\xfe\x00\x01".to_vec(),
        whole.as_bytes()[..whole.len() - 3].to_vec(),
        vec![b'['; 200_000],
        "{\"a\":".repeat(100_000).into_bytes(),
    ];
    for program in HOOKS {
        for input in &inputs {
            let answer = env.call(program).stdin(input.clone()).run().answer();
            assert_eq!(
                (answer.block, answer.context),
                (None, None),
                "{program:?}: {:?}",
                &input[..input.len().min(40)]
            );
        }
    }
    assert_eq!(env.snapshot(), before);
    env.turn(SESSION, "x").continues();
}

#[test]
fn every_field_may_be_null_or_of_another_type() {
    let env = Env::without_breaker();
    env.start("task", &["--max-iterations", "0", "--max-idle", "0"]);
    let names = [
        "transcript_path",
        "cwd",
        "prompt_id",
        "permission_mode",
        "stop_hook_active",
        "last_assistant_message",
        "background_tasks",
        "session_crons",
        "effort",
    ];
    for odd in [
        json!(null),
        json!(7),
        json!(-1.5e300),
        json!([]),
        json!([null, 1, "x"]),
        json!({"a": null}),
        json!(true),
        json!(""),
    ] {
        let mut event = env.stop(SESSION);
        for name in names {
            event = event.field(name, odd.clone());
        }
        let answer = event.run();
        // A list in place of the background tasks may read as one; nothing else stops the loop.
        assert!(answer.block.is_some() || odd.is_array(), "{odd}: {answer:?}");
    }
    for odd in [json!(null), json!(7), json!({}), json!([SESSION])] {
        env.stop(SESSION).field("session_id", odd).says(DONE).run().silent();
    }
    for odd in [json!(null), json!(7), json!("")] {
        env.session_start(SESSION, "x").field("source", odd.clone()).run();
        env.event(Program::StopHook, SESSION, "SessionEnd").field("reason", odd.clone()).run().silent();
        env.event(Program::StopHook, SESSION, "StopFailure").field("error", odd).run().silent();
    }
    assert_eq!(env.shown(SESSION)["state"], "running");
}

/// Returns the processor time of a Stop with so many megabytes of input. Other work on the machine adds nothing to it.
fn processor_seconds(megabytes: usize) -> f64 {
    let env = Env::new();
    env.start("task", &[]);
    let words = "words and \"quotes\" ".repeat(52_000 * megabytes);
    let stop = env.stop(SESSION).says(&format!("{words}\n<promise>COMPLETE</promise>"));
    // The second line that `times` prints is of what the shell started.
    let line = format!("'{}'; times >&2", Program::StopHook.path());
    let shell = env.call_at("/bin/sh".as_ref()).args(&["-c", &line]).var("CLAUDE_PROJECT_DIR", &env.project);
    let run = shell.stdin(stop.payload()).run();
    assert!(run.code == Some(0) && run.stdout.contains("complete"), "{run:?}");
    assert_eq!(env.record(SESSION)["outcome"], "complete");
    assert!(env.path(".claude/ralph-state.json").metadata().unwrap().len() < 100_000);
    let seconds = |time: &str| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    run.stderr.lines().nth(1).unwrap().split(' ').map(seconds).sum()
}

#[test]
fn fifty_megabytes_of_input_are_read() {
    // Ten times as much takes ten times as long and not a hundred.
    let (tenth, whole) = (processor_seconds(5), processor_seconds(50));
    assert!(whole < tenth * 50.0, "{whole} beside {tenth}");
}

#[test]
fn fifty_megabytes_of_invalid_input_are_answered() {
    let env = Env::new();
    env.start("task", &[]);
    let answer = env.call(Program::StopHook).stdin(vec![b'x'; 50 << 20]).run().answer();
    assert_eq!(answer.block, None);
    assert!(answer.message.unwrap().len() < 2000);
}

#[test]
fn session_ids_of_any_kind_are_only_keys() {
    let env = Env::new();
    for id in ["../../etc/passwd", "/", "a/b/c", "..", "with \"quotes\"", "ünï🦀", "$(touch pwned)"] {
        env.start_in(id, "task", &[]);
        env.turn(id, "x").continues();
        env.types(id, "status", "");
        env.turn(id, DONE).ended("complete");
    }
    assert_eq!(env.list("."), [".claude"]);
    assert_eq!(env.list(".claude"), ["ralph-state.json", "ralph-state.lock"]);
}

#[test]
fn session_ids_that_cannot_be_one_have_no_loop() {
    let env = Env::new();
    for id in ["x".repeat(10_000), "a\nb".into(), "tab\there".into(), "\u{1b}[2J".into(), "   ".into()] {
        env.ralph(&["start", "--session", &id, "task"]).fails(64);
        env.stop(&id).says(DONE).run().silent();
        env.session_start(&id, "resume").run().silent();
        env.types(&id, "start", "task");
    }
    assert!(!env.exists(".claude"));
}

#[test]
fn a_state_with_extreme_numbers_ends_no_loop() {
    let mut wrong = Vec::new();
    for (name, value) in [
        ("last_hook_timestamp", json!(-1e300)),
        ("last_hook_timestamp", json!(1e300)),
        ("accumulated_runtime_seconds", json!(-5.0)),
        ("started_at", json!("9999-12-31T23:59:59Z")),
        ("started_at", json!(-1e18)),
        (
            "timing",
            json!({"clock": {"settled": i64::MIN, "front": i64::MIN, "marks": [i64::MIN], "open": [{"since": i64::MIN, "runtime": i64::MAX}]}}),
        ),
        ("usage", json!({"input_tokens": u64::MAX, "output_tokens": u64::MAX})),
        ("circuit", json!({"idle": -1})),
    ] {
        let env = Env::new();
        env.start("task", &[]);
        env.edit_state(|state| state["loops"][SESSION][name] = value.clone());
        let transcript = env.transcript();
        transcript.worked(1);
        let answer = env.at(20).stop(SESSION).with(&transcript).says("x").run();
        let runtime = env.record(SESSION)["accumulated_runtime_seconds"].as_f64();
        let status = env.ralph(&["status"]);
        if answer.block.is_none() || runtime.is_none_or(|runtime| runtime < 0.0) || status.code != Some(0) {
            wrong.push(format!("{name} {value}: {answer:?} {runtime:?} {}", status.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_answer_holds_any_text_as_valid_json() {
    let env = Env::new();
    let task = "\u{0}\u{1f} \"quotes\" \\ back \u{2028} 🦀 </script>";
    let call = env.call(Program::Ralph).args(&["start", "--session", SESSION, "-"]);
    call.stdin(task).run().ok();
    env.turn(SESSION, "x").continues();
    let half = r#"{"session_id":"ID","hook_event_name":"Stop","last_assistant_message":"cut \ud83d\n<promise>COMPLETE</promise>"}"#;
    env.call(Program::StopHook).stdin(half.replace("ID", SESSION)).run().answer().ended("complete");
}

#[test]
fn a_program_without_arguments_lists_its_public_commands_only() {
    let env = Env::new();
    for (told, command) in [(env.ralph(&[]), "install"), (env.guidance(&[]), "encourage")] {
        let told = told.fails(64);
        assert!(told.contains("Commands:") && told.contains(&format!("\n  {command} ")), "{told}");
        assert!(!told.contains("demo-agent") && !told.contains("relay"), "{told}");
    }
}

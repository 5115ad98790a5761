//! Transcripts, folders and homes that are not as they should be.

use crate::env::{DONE, Env, OTHER, Program, SESSION, ignores_permissions};
use crate::skip::skip_anyhow;
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_transcript_that_cannot_be_read_costs_only_its_evidence() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    fs::create_dir(env.base.join("folder.jsonl")).unwrap();
    fs::write(env.base.join("empty.jsonl"), "").unwrap();
    let paths = ["folder.jsonl", "missing.jsonl", "empty.jsonl", "missing/deeper.jsonl"];
    for (n, name) in paths.iter().enumerate() {
        let path = env.base.join(name);
        env.at(10 * (n as i64 + 1))
            .stop(SESSION)
            .field("transcript_path", path.to_str().unwrap())
            .run()
            .continues();
    }
    for path in ["/dev/zero", "/dev/null", "", "relative.jsonl", "\u{0}"] {
        env.stop(SESSION).field("transcript_path", path).run().continues();
    }
    assert_eq!(env.record(SESSION)["accumulated_runtime_seconds"], 40.0, "the base rule");
}

#[test]
fn invalid_lines_in_a_transcript_are_skipped() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.raw(b"\xff\xfe\x00 not text\n\n[]\nnull\n7\n\"x\"\n{\"type\":7}\n{\"type\":\"assistant\"}\n");
    transcript.raw(b"{\"type\":\"assistant\",\"timestamp\":\"2026-11-16T08:00:01Z\",\"message\":{\"content\":{\"odd\":1}}}\n");
    transcript.raw(
        b"{\"type\":\"user\",\"timestamp\":\"never\",\"message\":null}\n{\"type\":\"brand-new\",\"x\":[]}\n",
    );
    transcript.raw(format!("{{\"type\":\"attachment\",\"blob\":\"{}\"}}\n", "y".repeat(5 << 20)).as_bytes());
    transcript.raw(b"{\"type\":\"assistant\",\"timestamp\":\"2026-11-16T08:00:02Z\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xffb\"}]}}\n");
    transcript.text(5, DONE);
    env.at(6).stop(SESSION).with(&transcript).run().ended("complete");
}

#[test]
fn a_transcript_that_is_being_written_is_read_to_its_last_whole_line() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(1);
    let half = json!({"type": "assistant", "timestamp": crate::env::stamp(30),
        "message": {"id": "late", "content": [{"type": "text", "text": DONE}], "usage": {"input_tokens": 7000}}}).to_string();
    let (first, second) = half.split_at(half.len() / 2);
    transcript.raw(first.as_bytes());
    env.at(20).stop(SESSION).with(&transcript).run().continues();
    transcript.raw(second.as_bytes()).raw(b"\n");
    env.at(40).stop(SESSION).with(&transcript).run().ended("complete");
    assert!(env.record(SESSION)["usage"]["input_tokens"].as_u64().unwrap() >= 7000);
}

#[test]
fn a_transcript_that_shrank_or_was_replaced_is_read_from_its_start() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    for n in 0..50 {
        transcript.text(n, "many words");
    }
    env.at(60).stop(SESSION).with(&transcript).says("x").run().continues();
    let transcript = env.transcript();
    transcript.text(65, DONE);
    env.at(70).stop(SESSION).with(&transcript).run().ended("complete");
}

#[test]
fn extreme_numbers_in_a_transcript_are_no_crash() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    for n in 1..4 {
        let usage =
            json!({"input_tokens": u64::MAX, "output_tokens": u64::MAX, "cache_read_input_tokens": u64::MAX});
        transcript.assistant(n, json!({"type": "text", "text": "x"}), usage).cost(1e308);
        env.at(10 * n).stop(SESSION).with(&transcript).says("x").run().continues();
    }
    env.ralph(&["status"]).ok();
    env.ralph(&["status", "--json"]).ok();
    env.turn(SESSION, DONE).ended("complete");
    assert_eq!(env.history().len(), 1);
}

#[test]
fn a_claude_folder_that_is_a_file_fails_with_its_name() {
    let env = Env::new();
    fs::write(env.path(".claude"), "mine").unwrap();
    let run = env.ralph(&["start", "--session", SESSION, "task"]);
    assert!(run.code != Some(0) && run.stderr.contains(".claude"), "{run:?}");
    env.turn(SESSION, DONE).silent();
    env.session_start(SESSION, "resume").run().silent();
    let answer = env.types(SESSION, "start", "task");
    assert!(answer.block.unwrap().contains(".claude"));
    let status = env.ralph(&["status"]);
    assert!(format!("{}{}", status.stdout, status.stderr).contains(".claude"), "{status:?}");
    assert_eq!(env.read(".claude"), "mine");
    assert!(crate::env::names_in(&env.data().join("sessions")).is_empty(), "nothing is half armed");
}

#[test]
fn a_claude_folder_that_is_gone_blocks_no_session() {
    let env = Env::new();
    env.start("task", &[]);
    fs::remove_dir_all(env.path(".claude")).unwrap();
    let told = env.turn(SESSION, "x");
    assert_eq!(told.block, None);
    env.turn(SESSION, "x").silent();
    assert!(!env.exists(".claude"), "and is not made again");
    env.start("again", &[]);
    env.turn(SESSION, "x").continues();
}

#[test]
fn a_state_or_lock_that_is_a_folder_fails_open_for_its_session_only() {
    let env = Env::new();
    env.start("task", &[]);
    fs::remove_file(env.path(".claude/ralph-state.lock")).unwrap();
    fs::create_dir(env.path(".claude/ralph-state.lock")).unwrap();
    assert!(env.turn(SESSION, "x").allows().contains("ralph-state.lock"));
    env.turn(OTHER, "x").silent();
    fs::remove_dir(env.path(".claude/ralph-state.lock")).unwrap();
    fs::remove_file(env.path(".claude/ralph-state.json")).unwrap();
    fs::create_dir(env.path(".claude/ralph-state.json")).unwrap();
    assert!(env.turn(SESSION, "x").allows().contains("ralph-state.json"));
    env.turn(OTHER, "x").silent();
    assert_ne!(env.ralph(&["status"]).code, Some(101));
}

#[test]
fn a_read_only_folder_fails_open_and_loses_nothing() {
    if ignores_permissions() {
        skip_anyhow("permissions mean nothing to this user (root)");
        return;
    }
    let env = Env::new();
    env.start("task", &[]);
    let before = env.read(".claude/ralph-state.json");
    fs::set_permissions(env.path(".claude"), fs::Permissions::from_mode(0o500)).unwrap();
    assert!(env.turn(SESSION, DONE).allows().contains("ralph-state.json"));
    env.turn(OTHER, "x").silent();
    assert_eq!(env.read(".claude/ralph-state.json"), before);
    fs::set_permissions(env.path(".claude"), fs::Permissions::from_mode(0o700)).unwrap();
    env.turn(SESSION, "x").continues();
}

#[test]
fn a_full_disk_fails_open_and_loses_nothing() {
    let env = Env::new();
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&env.project)
        .output();
    if !mount.is_ok_and(|output| output.status.success()) {
        skip_anyhow("a small file system cannot be mounted here");
        return;
    }
    struct Mounted<'a>(&'a std::path::Path);
    impl Drop for Mounted<'_> {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg("-l").arg(self.0).status();
        }
    }
    let _mounted = Mounted(&env.project);
    env.start("task", &[]);
    let before = env.read(".claude/ralph-state.json");
    let _ = fs::write(env.path("filler"), vec![b'x'; 1 << 20]);
    let answer = env.turn(SESSION, "x");
    assert!(answer.allows().contains("ralph-state.json"), "{answer:?}");
    assert_eq!(env.read(".claude/ralph-state.json"), before);
    assert_eq!(env.list(".claude"), ["ralph-state.json", "ralph-state.lock"], "no half file stays");
    fs::remove_file(env.path("filler")).unwrap();
    env.turn(SESSION, "x").continues();
}

#[test]
fn without_a_home_the_folders_named_by_variables_are_used() {
    let env = Env::new();
    env.without("HOME");
    env.start("task", &[]);
    env.turn(SESSION, "x").continues();
    env.session_start(SESSION, "resume").run();
    env.ralph(&["status"]).ok();
    env.ralph(&["config", "--user", "loop_limits.max_hours", "3"]).ok();
}

#[test]
fn a_data_folder_that_cannot_be_used_starts_nothing_and_blocks_no_session() {
    let env = Env::new();
    let file = env.base.join("a-file");
    fs::write(&file, "x").unwrap();
    env.var("RALPH_DATA_DIR", file.to_str().unwrap());
    let run = env.ralph(&["start", "--session", SESSION, "task"]);
    assert!(run.code != Some(0) && run.stderr.contains("a-file"), "{run:?}");
    assert!(!env.exists(".claude/ralph-state.json"), "a loop that cannot be armed is not written");
    env.turn(SESSION, "x").silent();
    env.ralph(&["status"]).ok();
}

#[test]
fn an_ending_is_reported_even_if_history_cannot_be_written() {
    let env = Env::new();
    env.start("task", &[]);
    fs::write(env.data().join("history"), "in the way").unwrap();
    let told = env.turn(SESSION, DONE);
    assert!(told.ended("complete").contains("history"), "and says what is missing: {told:?}");
    assert_eq!(env.shown(SESSION)["outcome"], "complete");
}

#[test]
fn a_project_whose_name_is_not_utf8_works_or_says_why() {
    let env = Env::named(OsStr::from_bytes(b"pro\xffject"));
    env.turn_without_text();
    let status = env.ralph(&["status", "--json"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    serde_json::from_str::<serde_json::Value>(&status.stdout).unwrap();
    let start = env.ralph(&["start", "--session", SESSION, "task"]);
    assert!(matches!(start.code, Some(0..=70)), "no crash: {start:?}");
    if start.code == Some(0) {
        let payload = json!({"session_id": SESSION, "hook_event_name": "Stop"}).to_string();
        env.call(Program::StopHook).stdin(payload).run().answer().continues();
        assert_eq!(env.ralph(&["stop"]).code, Some(0));
        assert_eq!(env.ralph(&["history", "--json"]).code, Some(0));
    }
}

impl Env {
    /// A Stop whose payload names no folder, for a project that JSON cannot name.
    fn turn_without_text(&self) {
        let payload = json!({"session_id": SESSION, "hook_event_name": "Stop"}).to_string();
        self.call(Program::StopHook).stdin(payload).run().answer().silent();
    }
}

#[test]
fn a_working_directory_that_is_gone_is_no_crash() {
    let env = Env::new();
    env.start("task", &[]);
    let payload = env.stop(SESSION).says("x").field("cwd", "/no/such/folder").call();
    payload.run().answer().continues();
    let lost =
        env.stop(SESSION).says("x").field("cwd", "/no/such/folder").call().without("CLAUDE_PROJECT_DIR");
    lost.cwd(&env.base).run().answer().silent();
}

#[test]
fn no_escape_code_of_a_folder_name_reaches_the_terminal() {
    let env = Env::named("pro\u{1b}[31mject\u{9b}");
    env.git_init(&env.project);
    let guidance = json!({"forbidden": [{"text": "x\u{1b}[2J", "timestamp": "2026-11-16T08:00:00Z"}]});
    let foreign = json!({"version": 1, "loops": {}, "guidance": guidance}).to_string();
    let settings = json!({"env": {"RALPH_MAX_HOURS": "1", "RALPH_\u{1b}[2J": "1"}}).to_string();
    env.write(".claude/settings.json", settings);
    env.write(
        ".claude/ralph-config.json",
        json!({"\u{1b}[2J": 1, "notify": {"command": "x\u{1b}"}}).to_string(),
    );
    let calls: [&[&str]; 16] = [
        &["start", "--session", SESSION, "task"],
        &["status"],
        &["stop"],
        &["stop", "--all"],
        &["config"],
        &["config", "max-hours", "3"],
        &["scan"],
        &["history"],
        &["reset"],
        &["trust", "--show"],
        &["trust"],
        &["answer"],
        &["init"],
        &["run", "--agent-command", "echo '<promise>COMPLETE</promise>'", "--delay", "0", "x"],
        &["archive"],
        &["doctor"],
    ];
    for state in [foreign.as_str(), "{"] {
        for args in calls {
            env.write(".claude/ralph-state.json", state);
            let run = env.ralph(args);
            for text in [&run.stdout, &run.stderr] {
                let is_raw = |c: char| c.is_control() && c != '\n' && c != '\t';
                assert!(!text.contains(is_raw), "{args:?} with {state}: {text:?}");
            }
        }
        env.write(".claude/ralph-state.json", state);
        for args in [&["forbid", "push"][..], &["list"], &["adopt"], &["remove", "9"], &["clear"]] {
            let run = env.guidance(args);
            assert!(!(run.stdout + &run.stderr).contains(['\u{1b}', '\u{9b}']), "{args:?}");
        }
    }
}

//! What a loop is doing, as `ralph status`, its JSON and the status line tell it: the state's word first, then why.

use super::statusline::status_line;
use crate::env::{DONE, Env, HOUR, MINUTE, Program, SESSION};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Returns the headline of the session's loop.
fn headline(env: &Env) -> String {
    let text = env.ralph(&["status", "--session", SESSION]).ok();
    let line = text.lines().find(|line| line.ends_with(" · this session"));
    line.unwrap_or_else(|| panic!("no loop of this session: {text}")).replace(" · this session", "")
}

/// Asserts the state in `ralph status`, its JSON and the status line.
fn shows(env: &Env, sign: &str, activity: &str, line: &str) {
    assert_eq!(headline(env), format!("{sign} {line}"));
    assert_eq!(env.shown(SESSION)["activity"], activity, "{line}");
    let shown = status_line(env, SESSION);
    assert!(shown.starts_with(&format!("{line} · ")), "{shown}");
}

fn next(env: &Env) -> String {
    let text = env.ralph(&["status", "--session", SESSION]).ok();
    let next = text.lines().find_map(|line| line.trim_start().strip_prefix("Next "));
    next.unwrap_or_default().trim().to_owned()
}

/// The number and the start time of a process as the client writes them.
pub fn process(pid: u32) -> Value {
    let start = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let start = start.and_then(|stat| Some(stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.to_owned()));
    let namespace = fs::read_link("/proc/self/ns/pid").ok();
    let domain = namespace.map(|namespace| format!("linux:machine:{}", namespace.display()));
    json!({"pid": pid, "procStart": start, "pidDomain": domain})
}

/// Writes what the client says about the session, as a living process or another one.
pub fn client_says(env: &Env, process: &Value, fields: Value) {
    let folder = env.base.join("home/.claude/sessions");
    fs::create_dir_all(&folder).unwrap();
    let mut entry = json!({"sessionId": SESSION, "kind": "interactive", "future": [1]});
    for fields in [process, &fields] {
        fields.as_object().unwrap().iter().for_each(|(name, value)| entry[name] = value.clone());
    }
    fs::write(folder.join(format!("{}.json", process["pid"])), entry.to_string()).unwrap();
}

pub fn alive() -> Value {
    process(std::process::id())
}

#[test]
fn the_record_tells_what_a_loop_does() {
    let env = Env::new();
    env.start("task", &[]);
    shows(&env, "●", "working", "working");
    let transcript = env.transcript();
    transcript.worked(1).queue(15, "enqueue", "/ralph:forbid x");
    env.at(20).stop(SESSION).with(&transcript).says("x").run().allows();
    shows(&env, "○", "waiting", "waiting: your \"/ralph:forbid x\"");
    transcript.queue(21, "dequeue", "/ralph:forbid x");
    let building = env.at(30).stop(SESSION).with(&transcript).says("Building.").background("cargo build");
    building.run().allows();
    shows(&env, "○", "waiting", "waiting: background work: cargo build, 10m left");
    let failed = || env.event(Program::StopHook, SESSION, "StopFailure");
    failed().field("error", "overloaded").run().silent();
    assert_eq!(env.shown(SESSION)["waiting"]["for"], "service");
    // Nothing has woken the session.
    let error = "waiting: your prompt, after an API error: overloaded";
    shows(env.at(42), "○", "waiting", error);
    assert_eq!(env.shown(SESSION)["waiting"], json!({"for": "prompt", "until": null}));
    env.at(43).turn(SESSION, "On it again.").continues();
    shows(&env, "●", "working", "working");
    env.at(50).event(Program::StopHook, SESSION, "SessionEnd").field("reason", "other").run();
    shows(&env, "◌", "client-closed", "client closed");
    assert_eq!(next(&env), format!("claude --resume {SESSION}, then any"));
    env.at(60).session_start(SESSION, "resume").run();
    shows(&env, "●", "working", "working");
    env.event(Program::StopHook, SESSION, "SessionEnd").field("reason", "clear").run();
    shows(&env, "◌", "orphaned", "orphaned: its session was cleared");
    env.at(70).session_start(SESSION, "resume").run();
    env.at(80).turn(SESSION, DONE).ended("complete");
    shows(&env, "■", "ended", "ended: complete");
}

#[test]
fn a_session_in_the_background_is_shown_with_the_command_that_opens_it() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, "On it.").continues();
    let attach = || env.shown(SESSION)["attach"].clone();
    client_says(&env, &alive(), json!({"status": "busy"}));
    assert_eq!(attach(), Value::Null, "a session on a terminal");
    client_says(&env, &alive(), json!({"status": "busy", "kind": "bg", "jobId": "fc864591"}));
    assert_eq!(attach(), "claude attach fc864591");
    assert!(env.ralph(&["status"]).ok().contains("\n  Attach      claude attach fc864591\n"));
    let asks = json!({"status": "waiting", "waitingFor": "permission prompt", "jobId": "fc864591"});
    client_says(&env, &alive(), asks);
    assert_eq!(next(&env), "claude attach fc864591, then answer it");
    client_says(&env, &alive(), json!({"status": "idle", "jobId": "fc864591"}));
    assert!(next(&env).starts_with("claude attach fc864591, then send any prompt"), "{}", next(&env));
    for odd in [json!("x; rm -rf /"), json!(""), json!(7), json!("a\u{1b}[2J")] {
        client_says(&env, &alive(), json!({"status": "idle", "jobId": odd}));
        assert_eq!(attach(), Value::Null, "{odd}");
    }
    client_says(&env, &process(u32::MAX / 2), json!({"jobId": "gone"}));
    fs::remove_file(env.base.join(format!("home/.claude/sessions/{}.json", std::process::id()))).unwrap();
    assert_eq!(attach(), Value::Null, "its process is gone");
}

#[test]
fn the_clients_own_file_tells_what_no_hook_does() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, "On it.").continues();
    for (fields, line, client) in [
        (json!({"status": "busy"}), "working", "open"),
        (json!({"status": "idle"}), "waiting: your prompt", "open"),
        (
            json!({"status": "waiting", "waitingFor": "permission prompt"}),
            "waiting: permission prompt",
            "open",
        ),
        (json!({"status": "waiting", "waitingFor": "a\u{1b}[2Jb"}), "waiting: a[2Jb", "open"),
        (json!({"status": "a new one"}), "working", "open"),
        (json!({}), "working", "open"),
        (json!({"status": "idle", "sessionId": "another"}), "working", "open"),
    ] {
        client_says(&env, &alive(), fields.clone());
        let activity = line.split(':').next().unwrap();
        shows(&env, if activity == "working" { "●" } else { "○" }, activity, line);
        assert_eq!(env.shown(SESSION)["client"], client, "{fields}");
    }
    client_says(&env, &alive(), json!({"status": "waiting", "waitingFor": "permission prompt"}));
    assert_eq!(env.shown(SESSION)["waiting"], json!({"for": "permission", "until": null}));
}

#[test]
fn a_client_that_was_killed_is_closed_and_one_that_was_resumed_is_open() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, "On it.").continues();
    let mut killed = Command::new("true").spawn().unwrap();
    let gone = process(killed.id());
    killed.wait().unwrap();
    client_says(&env, &gone, json!({"status": "busy"}));
    shows(&env, "◌", "client-closed", "client closed");
    assert_eq!(env.shown(SESSION)["client"], "closed");
    client_says(&env, &alive(), json!({"status": "busy"}));
    shows(&env, "●", "working", "working");
}

/// Start times and namespaces of processes are compared where the system tells them in the client's form.
#[cfg(target_os = "linux")]
#[test]
fn a_process_number_alone_proves_nothing() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, "On it.").continues();
    client_says(&env, &alive(), json!({"status": "idle", "procStart": "1"}));
    shows(&env, "◌", "client-closed", "client closed");
    // In a container, whose numbers mean other processes here.
    client_says(&env, &alive(), json!({"status": "idle", "pidDomain": "linux:machine:pid:[1]"}));
    shows(&env, "●", "working", "working");
}

#[test]
fn a_client_that_works_again_has_woken_up() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).stop(SESSION).says("Building.").background("cargo build").run().allows();
    client_says(&env, &alive(), json!({"status": "idle"}));
    shows(&env, "○", "waiting", "waiting: background work: cargo build, 10m left");
    client_says(&env, &alive(), json!({"status": "busy"}));
    shows(&env, "●", "working", "working");
}

#[test]
fn esc_is_a_pause_at_once_although_no_hook_ran() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(1);
    env.at(12).stop(SESSION).with(&transcript).says("on it").run().continues();
    transcript.feedback(13).esc(15);
    client_says(&env, &alive(), json!({"status": "idle"}));
    let before = env.snapshot();
    shows(env.at(20), "◐", "paused", "paused: you interrupted the agent");
    assert_eq!(env.shown(SESSION)["state"], "paused");
    assert_eq!(next(&env), "/ralph:start --resume, or /ralph:stop");
    assert_eq!(env.snapshot(), before, "views write nothing");
}

#[test]
fn esc_in_the_first_turn_is_seen_in_the_transcript_that_no_hook_has_named() {
    let env = Env::new();
    env.start("task", &[]);
    let folder = env.base.join("home/.claude/projects/-project");
    fs::create_dir_all(&folder).unwrap();
    let transcript = crate::transcript::Transcript::new(&folder.join(format!("{SESSION}.jsonl")));
    transcript.prompt(1, "p", "go").esc(5);
    assert_eq!(headline(env.at(10)), "◐ paused: you interrupted the agent");
}

#[test]
fn a_usage_limit_in_a_session_is_waited_for_until_its_reset() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    let limit = |seconds: i64, resets: i64| {
        let message = json!({"content": [{"type": "text", "text": "You've hit your 5-hour limit"}]});
        let limits = json!({"resetsAt": crate::env::T0 + resets, "status": "rejected"});
        let fields = json!({"isApiErrorMessage": true, "quotaLimits": limits, "message": message});
        transcript.entry(seconds, "assistant", fields);
    };
    let fails = |seconds: i64| {
        let event = env.at(seconds).event(Program::StopHook, SESSION, "StopFailure").with(&transcript);
        event.field("error", "rate_limit").run().silent();
    };
    transcript.prompt(1, "p", "go");
    limit(5, 3 * HOUR);
    fails(6);
    let line = "waiting: usage limit until 2026-11-16 11:00 UTC, 2h 50m left";
    shows(env.at(10 * MINUTE), "○", "waiting", line);
    let until = crate::env::stamp(3 * HOUR).replace("+00:00", ".000Z");
    assert_eq!(env.shown(SESSION)["waiting"], json!({"for": "usage-limit", "until": until}));
    client_says(&env, &alive(), json!({"status": "idle"}));
    shows(env.at(4 * HOUR), "○", "waiting", "waiting: your prompt, after an API error: rate_limit");
    transcript.worked(4 * HOUR);
    env.at(4 * HOUR + 10).stop(SESSION).with(&transcript).says("on it").run().continues();
    client_says(&env, &alive(), json!({"status": "busy"}));
    shows(&env, "●", "working", "working");
    // The transcript lags behind the hook: what it shows later counts too.
    fails(4 * HOUR + 20);
    limit(4 * HOUR + 20, 9 * HOUR);
    client_says(&env, &alive(), json!({"status": "idle"}));
    shows(env.at(5 * HOUR), "○", "waiting", "waiting: usage limit until 2026-11-16 17:00 UTC, 4h left");
}

#[test]
fn the_state_is_never_cut_at_eighty_columns() {
    let env = Env::new();
    env.start(&"a long task ".repeat(20), &["--max-cost", "100"]);
    let long = "a very long command ".repeat(20);
    env.at(10).stop(SESSION).says("x").background(&long).run().allows();
    let line = status_line(&env, SESSION);
    assert!(line.starts_with("waiting: background work: a very long command"), "{line}");
    let first: String = line.chars().take(80).collect();
    assert!(first.contains(" · Ralph "), "the position too: {first}");
}

#[test]
fn a_pause_that_is_not_counted_is_reported_once_when_the_loop_continues() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(60).turn(SESSION, "On it.").continues();
    env.at(2 * MINUTE).event(Program::StopHook, SESSION, "SessionEnd").field("reason", "other").run();
    let morning = 2 * MINUTE + 11 * HOUR + 6 * MINUTE;
    let opened = env.at(morning).session_start(SESSION, "resume").run();
    assert!(!opened.message.unwrap().contains("not counted"), "the loop does not continue yet");
    let told = env.at(morning + 60).turn(SESSION, "Went on with it.").message.unwrap();
    assert!(told.contains(" · Runtime: 0.1h/9.0h | Wall: 11.2h · paused 11h 6m, not counted"), "{told}");
    let told = env.at(morning + 120).turn(SESSION, "And on, for a while.").message.unwrap();
    assert!(!told.contains("paused"), "{told}");
    let told = env.at(morning + 120 + HOUR).turn(SESSION, "Back from a dialog.").message.unwrap();
    assert!(told.contains(" · paused 1h, not counted"), "idle in an open client: {told}");
}

#[test]
fn the_pause_after_esc_is_reported_too() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(1).esc(15);
    env.at(20).stop(SESSION).with(&transcript).says("x").run().allows();
    env.at(20 + 40 * MINUTE).types(SESSION, "start", "--resume");
    let told = env.at(30 + 40 * MINUTE).turn(SESSION, "On it again.").message.unwrap();
    assert!(told.contains(" · paused 40m, not counted"), "{told}");
}

#[test]
fn a_turn_that_worked_for_hours_is_no_pause() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").call(2, "t").result(3 * HOUR, "t").text(3 * HOUR + 5, "x");
    let told = env.at(3 * HOUR + 6).stop(SESSION).with(&transcript).says("x").run().message.unwrap();
    assert!(!told.contains("paused"), "{told}");
}

#[test]
fn work_that_the_transcript_shows_later_is_never_called_a_pause() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").text(20, "Thinking.");
    let told = env.at(420).stop(SESSION).with(&transcript).says("x").run().message.unwrap();
    assert!(!told.contains("paused"), "the last entry is not written yet: {told}");
    transcript.text(419, "Done thinking.");
    let told = env.at(430).stop(SESSION).with(&transcript).says("x").run().message.unwrap();
    assert!(!told.contains("paused"), "{told}");
    transcript.prompt(430 + HOUR, "q", "continue").text(440 + HOUR, "Yes.");
    let told = env.at(445 + HOUR).stop(SESSION).with(&transcript).says("x").run().message.unwrap();
    assert!(told.contains("paused 1h, not counted"), "{told}");
}

#[test]
fn a_usage_limit_is_waited_for_also_where_only_the_clients_message_tells_it() {
    let env = Env::new();
    env.start("task", &[]);
    let failed = env.at(10).event(Program::StopHook, SESSION, "StopFailure").field("error", "rate_limit");
    failed
        .field("last_assistant_message", "You've hit your 5-hour limit · resets 11:30am (UTC)")
        .run()
        .silent();
    let shown = env.shown(SESSION);
    assert_eq!(shown["waiting"]["for"], "usage-limit", "{shown}");
    assert!(shown["waiting"]["until"].as_str().is_some_and(|until| until.contains("T11:30:00")), "{shown}");
    env.at(20).turn(SESSION, "On it again.").continues();
    let failed = env.at(30).event(Program::StopHook, SESSION, "StopFailure").field("error", "rate_limit");
    let said = "You've hit your 5-hour limit · resets 11:30am (Europe/Berlin)";
    failed.field("last_assistant_message", said).run().silent();
    assert_eq!(env.shown(SESSION)["last_error"], "limit resets 11:30am (Europe/Berlin)");
    assert!(headline(&env).contains("after an API error: limit resets 11:30am"), "{}", headline(&env));
}

//! `ralph doctor`: what earlier runs left behind.

use super::Doctor;
use crate::env::{Program, SESSION};
use serde_json::json;
use std::fs;
use std::process::Command;

#[test]
fn leftovers_are_reported_with_a_hint() {
    let doctor = Doctor::new();
    let env = &doctor.env;
    env.start("a task", &[]);
    env.write("ralph/run.lock", r#"{"pid": 1, "run_id": "0123456789"}"#);
    doctor.check().says("leftovers", "warning", &["run 01234567", "not active here", "rm "]);
    fs::remove_dir_all(env.path("ralph")).unwrap();

    env.write(".claude/STOP_LOOP", "");
    doctor.check().says("leftovers", "warning", &["STOP_LOOP stops the next loop", "rm "]);
    fs::remove_file(env.path(".claude/STOP_LOOP")).unwrap();

    env.write(".claude/ralph-state.json.corrupt-20261116", "x");
    doctor.check().says("leftovers", "warning", &["corrupt-20261116", "set aside"]);
    fs::remove_file(env.path(".claude/ralph-state.json.corrupt-20261116")).unwrap();

    let old = env.data().join("history/x.jsonl.tmp-0a1b2c3d");
    fs::create_dir_all(old.parent().unwrap()).unwrap();
    fs::write(&old, "").unwrap();
    env.write(".claude/notes.tmp-mine", "");
    doctor.check().says("leftovers", "ok", &["none"]);
    for path in [&old, &env.path(".claude/notes.tmp-mine")] {
        let aged = Command::new("touch").args(["-d", "2020-01-01"]).arg(path).status().unwrap();
        assert!(aged.success());
    }
    let report = doctor.check();
    report.says("leftovers", "warning", &["tmp-0a1b2c3d is an unfinished temporary file"]);
    assert!(!report.of("leftovers").to_string().contains("tmp-mine"), "not ours");
    fs::remove_file(&old).unwrap();

    env.edit_state(|state| state["loops"][SESSION]["session"]["orphaned_at"] = json!("2026-11-16T08:00:00Z"));
    doctor.check().says("leftovers", "warning", &["the session of run", "a task", "--resume"]);
}

#[test]
fn a_surviving_agent_and_a_pending_stop_are_reported() {
    let doctor = Doctor::new();
    let env = &doctor.env;
    env.start("a task", &[]);
    fs::write(env.data().join("stop-all"), "2026-11-16T09:00:00Z\n").unwrap();
    doctor.check().says(
        "leftovers",
        "warning",
        &["ralph stop --all", "2026-11-16", "is pending for a loop here"],
    );
    env.ralph(&["stop"]).ok();
    doctor.check().says("leftovers", "ok", &[]);

    let mut agent = Command::new("sleep").arg("600").spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", agent.id())).unwrap_or_default();
    if let Some(start_time) = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)) {
        let dead =
            Command::new("true").spawn().and_then(|mut child| child.wait().map(|_| child.id())).unwrap();
        let child = json!({"pid": agent.id(), "process": start_time});
        fs::create_dir_all(env.data().join("runs")).unwrap();
        let record = json!({"pid": dead, "run_id": "r", "child": child}).to_string();
        fs::write(env.run_record(), record).unwrap();
        let alive = format!("(process {}) is still running", agent.id());
        doctor.check().says("leftovers", "warning", &[&alive, "ralph run"]);
        assert!(agent.try_wait().unwrap().is_none(), "the doctor ends no process");
    }
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn loops_of_removed_projects_and_old_plugins_are_reported() {
    let doctor = Doctor::new();
    let other = doctor.env.base.join("other project");
    fs::create_dir(&other).unwrap();
    let args = ["start", "--session", SESSION, "a task"];
    doctor.env.call(Program::Ralph).args(&args).cwd(&other).run().ok();
    doctor.check().says("leftovers", "ok", &[]);
    fs::remove_dir_all(&other).unwrap();
    doctor.check().says("leftovers", "warning", &["other project, which no longer exists", "rm "]);
    let cache = doctor.env.base.join("home/.claude/plugins/cache/ralph/ralph");
    for version in ["0.0.1", env!("CARGO_PKG_VERSION")] {
        fs::create_dir_all(cache.join(version)).unwrap();
    }
    let report = doctor.check();
    report.says(
        "leftovers",
        "warning",
        &["cache/ralph/ralph/0.0.1 is a copy of the plugin in another version"],
    );
    assert_eq!(report.of("leftovers")["notes"].as_array().unwrap().len(), 2);
}

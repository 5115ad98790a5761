//! `ralph doctor`: files, lock, git, settings and container.

use super::{Doctor, script};
use crate::env::{ignores_permissions, names_in, stamp};
use fs2::FileExt;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

#[test]
fn files_that_others_can_read_are_reported() {
    let doctor = Doctor::new();
    doctor.env.start("a task", &[]);
    doctor.check().says("files", "ok", &["private and writable"]).says("leftovers", "ok", &[]);
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    open(&doctor.env.path(".claude/ralph-state.json"));
    doctor.check().says("files", "warning", &["ralph-state.json", "chmod -R go-rwx"]);
    fs::set_permissions(doctor.env.path(".claude/ralph-state.json"), fs::Permissions::from_mode(0o600))
        .unwrap();
    // A private folder protects its records.
    let sessions = doctor.env.data().join("sessions");
    let record = sessions.join(&names_in(&sessions)[0]);
    open(&record);
    for (folder, verdict) in [(doctor.env.data(), "ok"), (sessions, "warning")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        doctor.check().says("files", verdict, &[]);
    }
    doctor.check().says("files", "warning", &[record.to_str().unwrap()]);
}

#[test]
fn files_of_another_user_are_reported() {
    if !ignores_permissions() {
        return; // Only root can give a file to another user.
    }
    let doctor = Doctor::new();
    doctor.env.start("a task", &[]);
    let state = doctor.env.path(".claude/ralph-state.json");
    std::os::unix::fs::chown(&state, Some(65534), None).unwrap();
    doctor.check().says("files", "failure", &["owned by another user", state.to_str().unwrap(), "chown"]);
}

#[test]
fn unusable_state_is_reported() {
    let doctor = Doctor::new();
    doctor.env.write(".claude/ralph-state.json", "{ \u{1b}[31m");
    doctor.check().says("files", "warning", &["ralph-state.json is damaged", "sets it aside"]);
    doctor.env.write(".claude/ralph-state.json", r#"{"version": 99, "loops": {}}"#);
    doctor.check().says("files", "failure", &["newer version of Ralph", "upgrade"]);
    fs::remove_dir_all(doctor.env.path(".claude")).unwrap();
    symlink(&doctor.env.base, doctor.env.path(".claude")).unwrap();
    doctor.check().says("files", "failure", &["is a symbolic link"]);
}

#[test]
fn folders_that_cannot_be_written_are_reported() {
    let doctor = Doctor::new();
    let file = doctor.env.base.join("a file");
    fs::write(&file, "").unwrap();
    // The nearest existing folder counts, and it can be written.
    doctor.env.var("RALPH_DATA_DIR", doctor.env.base.join("not yet/there").to_str().unwrap());
    doctor.check().says("files", "ok", &["can be written"]);
    if ignores_permissions() {
        return;
    }
    let sealed = doctor.env.base.join("sealed");
    fs::create_dir(&sealed).unwrap();
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o500)).unwrap();
    doctor.env.var("RALPH_DATA_DIR", sealed.join("ralph").to_str().unwrap());
    doctor.env.var("HOME", sealed.to_str().unwrap());
    let report = doctor.check();
    report.says("files", "failure", &["cannot write to", "RALPH_DATA_DIR"]);
    report.says("lock", "failure", &["could not open the lock", "writable disk"]);
}

#[test]
fn a_lock_that_is_never_released_is_reported() {
    let doctor = Doctor::new();
    doctor.env.start("a task", &[]);
    let path = doctor.env.path(".claude/ralph-state.lock");
    let held = fs::File::open(&path).unwrap();
    held.lock_exclusive().unwrap();
    doctor.env.var("RALPH_NOW", &stamp(0));
    doctor.check().says("lock", "warning", &["another Ralph process has held it", "end it"]);
    drop(held);
    doctor.check().says("lock", "ok", &["works in the project"]);
}

#[test]
fn git_problems_are_reported() {
    let doctor = Doctor::new();
    doctor.check().says("git", "ok", &["HEAD at"]);
    script(&doctor.env.base.join("bin/git"), "echo 'dubious ownership' >&2; exit 128");
    doctor.check().says("git", "warning", &["dubious ownership"]);
    fs::remove_dir_all(doctor.env.path(".git")).unwrap();
    doctor.check().says("git", "warning", &["not in a git repository", "git init"]);
    let few = doctor.env.base.join("few");
    fs::create_dir(&few).unwrap();
    symlink(doctor.env.base.join("bin/claude"), few.join("claude")).unwrap();
    symlink("/bin/cat", few.join("cat")).unwrap();
    doctor.env.var("PATH", few.to_str().unwrap());
    doctor.check().says("git", "warning", &["git was not found", "install git"]);
}

#[test]
fn invalid_settings_of_ralph_are_reported() {
    let doctor = Doctor::new();
    doctor.env.write(
        ".claude/ralph-config.json",
        r#"{"loop_limits": {"max_hours": "many"}, "scam": {"enabled": true}}"#,
    );
    let report = doctor.check();
    report.says("config", "warning", &["ralph-config.json: loop_limits.max_hours", "scam.enabled"]);
    doctor.env.write(".claude/ralph-config.json", "{,}");
    fs::write(doctor.env.base.join("config/config.json"), "[]").unwrap();
    let report = doctor.check();
    report.says(
        "config",
        "failure",
        &[".claude/ralph-config.json is not valid JSON", "config/config.json is not a JSON"],
    );
    assert_eq!(report.of("config")["notes"].as_array().unwrap().len(), 2, "each once");
}

#[test]
fn untrusted_commands_are_reported() {
    let doctor = Doctor::new();
    doctor.env.write(".claude/ralph-config.json", r#"{"completion": {"verify": ["make test"]}}"#);
    let report = doctor.check();
    report.says("trust", "warning", &["completion.verify", "ralph trust --show"]).says("config", "ok", &[]);
    doctor.env.ralph(&["trust"]).ok();
    doctor.check().says("trust", "ok", &[]);
}

#[test]
fn a_named_container_is_checked() {
    let doctor = Doctor::new();
    doctor.check().says("docker", "skipped", &["not used here"]);
    let docker = doctor.env.base.join("bin/docker");
    for (does, verdict, words) in [
        ("[ $1 = inspect ] && echo true || echo '2.1.325 (Claude Code)'", "ok", "with Claude Code 2.1.325"),
        ("[ $1 = inspect ] && echo true || echo '1.0.1 (Claude Code)'", "failure", "too old"),
        ("[ $1 = inspect ] && echo true || exit 127", "warning", "without Claude Code"),
        ("echo false", "failure", "docker start box"),
        ("echo 'no such object' >&2; exit 1", "failure", "no such object"),
    ] {
        script(&docker, does);
        doctor.report(doctor.call(&["--quick", "--container", "box"])).says("docker", verdict, &[words]);
    }
    doctor.report(doctor.call(&["--quick", "--container=-v"])).says(
        "docker",
        "failure",
        &["not a container name"],
    );
    // A lock that came with a repository is ignored.
    doctor.env.write("ralph/run.lock", r#"{"pid": 1, "run_id": "x", "container": "theirs"}"#);
    script(&docker, "touch ../asked");
    doctor.check().says("docker", "skipped", &[]);
    assert!(!doctor.env.base.join("asked").exists());
}

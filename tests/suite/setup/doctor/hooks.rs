//! `ralph doctor`: hooks and the round trip through Claude Code.

use super::{Doctor, hooks_answered, listed, script, whole_plugin};
use crate::env::{names_in, wait_until};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn settings_that_disable_hooks_are_reported_with_their_file() {
    let off = r#"{"disableAllHooks": true}"#;
    for (name, file) in [
        ("user", "home/.claude/settings.json"),
        ("project", "settings.json"),
        ("local", "settings.local.json"),
    ] {
        let doctor = Doctor::new();
        doctor.settings(name, off).check().says(
            "hooks",
            "failure",
            &["disableAllHooks", file, "remove disableAllHooks"],
        );
    }
    let doctor = Doctor::new();
    doctor.settings("user", off).settings("local", r#"{"disableAllHooks": false}"#).check().says(
        "hooks",
        "ok",
        &[],
    );
    doctor.env.var("CLAUDE_CODE_SIMPLE", "1");
    doctor.check().says("hooks", "failure", &["CLAUDE_CODE_SIMPLE is set in this shell", "unset"]);
}

#[test]
fn invalid_settings_of_claude_code_are_reported_and_not_changed() {
    let doctor = Doctor::new();
    let report = doctor.settings("user", "{ \"a\": \u{1b}[2J nope").settings("project", "[]").check();
    report.says("hooks", "failure", &["home/.claude/settings.json is not valid JSON", "does not change it"]);
    assert!(report.of("hooks").to_string().contains(".claude/settings.json is not a JSON object"));
    let left = fs::read_to_string(doctor.env.base.join("home/.claude/settings.json")).unwrap();
    assert_eq!(left, "{ \"a\": \u{1b}[2J nope");
    // Another settings folder is read instead.
    let elsewhere = doctor.env.base.join("elsewhere");
    doctor.env.var("CLAUDE_CONFIG_DIR", elsewhere.to_str().unwrap());
    fs::remove_file(doctor.env.path(".claude/settings.json")).unwrap();
    doctor.check().says("hooks", "ok", &["no setting"]);
}

#[test]
fn a_hook_program_that_does_not_answer_is_reported() {
    let doctor = Doctor::new();
    for (does, verdict, words) in [
        ("cat > /dev/null", "ok", hooks_answered().as_str()),
        ("cat > /dev/null; echo boom >&2; exit 101", "failure", "boom (exit code 101)"),
        ("cat > /dev/null; echo hello", "failure", "did not answer in JSON: hello"),
        ("cat > /dev/null; echo '{\"systemMessage\": \"the disk is full\"}'", "warning", "the disk is full"),
        ("kill -9 $$", "failure", "killed by signal 9"),
    ] {
        doctor.plugin_with_stop_hook(does);
        doctor.check().says("hook-programs", verdict, &[words]);
    }
    let plugin = doctor.plugin_with_stop_hook("");
    let program = plugin.join("bin/ralph-stop-hook");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    doctor.check().says("hook-programs", "failure", &["ralph-stop-hook cannot be started", "chmod +x"]);
    fs::remove_dir_all(plugin.join("bin")).unwrap();
    let report = doctor.check();
    report.says("hook-programs", "failure", &["ralph-stop-hook is missing", "ralph install"]);
    let missing = report.of("hook-programs")["notes"].as_array().unwrap().len();
    assert_eq!(missing, 3, "each program once, however many events it serves");
    fs::write(plugin.join("hooks/hooks.json"), "{").unwrap();
    doctor.check().says("hook-programs", "failure", &["hooks.json is not valid JSON", "ralph install"]);
    fs::remove_dir_all(&plugin).unwrap();
    doctor.check().says("plugin", "failure", &["the folder of ralph@ralph is missing"]);
}

#[test]
fn the_program_that_only_command_files_call_is_checked_too() {
    let doctor = Doctor::new();
    let plugin = doctor.plugin_with_stop_hook("cat > /dev/null");
    fs::create_dir_all(plugin.join("commands")).unwrap();
    fs::copy(whole_plugin().join("commands/forbid.md"), plugin.join("commands/forbid.md")).unwrap();
    doctor.check().says("hook-programs", "failure", &["bin/ralph-guidance is missing", "ralph install"]);
    for (does, verdict, words) in
        [("exit 3", "failure", "exit code 3"), ("", "ok", hooks_answered().as_str())]
    {
        script(&plugin.join("bin/ralph-guidance"), does);
        doctor.check().says("hook-programs", verdict, &[words]);
    }
}

#[test]
fn a_hook_that_hangs_is_ended() {
    let doctor = Doctor::new();
    let hung = doctor.env.base.join("hung");
    let path = hung.display();
    doctor.plugin_with_stop_hook(&format!("[ -e '{path}' ] && exit; touch '{path}'; sleep 600 & wait"));
    let running = doctor.call(&["--quick"]).spawn();
    wait_until("the hook hangs", || hung.exists());
    doctor.clock.advance(3);
    let report = doctor.parse(running.wait());
    report.says("hook-programs", "failure", &["ralph-stop-hook at Stop", "timed out after"]);
    assert_eq!(doctor.env.processes(), Vec::<String>::new(), "and nothing is left running");
}

#[test]
fn the_round_trip_uses_nothing_of_the_user() {
    let doctor = Doctor::new();
    let secret = r#"{"apiKeyHelper": "cat secret", "env": {"TOKEN": "secret"}, "disableAllHooks": false}"#;
    doctor.settings("user", secret);
    let call = doctor.call(&[]).var("ANTHROPIC_API_KEY", "secret").var("ANTHROPIC_AUTH_TOKEN", "secret");
    let call = call.var("HTTPS_PROXY", "http://secret").var("RALPH_NOTIFY", "touch secret");
    let report = doctor.report(call);
    report.says("round-trip", "warning", &["did not call the model", "no model for me", "--quick"]);
    let base = &doctor.env.base;
    let given = fs::read_to_string(base.join("round-trip-env")).unwrap();
    let home = base.join("home").display().to_string();
    assert!(!given.contains("secret") && !given.contains(&home), "{given}");
    for expected in
        ["ANTHROPIC_BASE_URL=http://127.0.0.1:", "ANTHROPIC_API_KEY=sk-ant-not-a-key", "/tmp/ralph-doctor-"]
    {
        assert!(given.contains(expected), "{expected} in {given}");
    }
    let kept = fs::read_to_string(base.join("round-trip-claude/settings.json")).unwrap();
    assert_eq!(kept, r#"{"disableAllHooks":false}"#);
    assert_eq!(names_in(&base.join("round-trip-project/.claude")), ["settings.json", "settings.local.json"]);
}

#[test]
fn a_block_cap_below_the_breaker_is_reported() {
    let cap = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
    let doctor = Doctor::new();
    doctor.check().says("block-cap", "ok", &["8 turns without a tool call"]);
    doctor.env.var("RALPH_CIRCUIT_IDLE", "12");
    doctor.check().says("block-cap", "warning", &["circuit.idle (12)", cap]);
    doctor.env.var(cap, "0");
    doctor.check().says("block-cap", "ok", &["no limit"]);
    // Settings win over the environment, as in Claude Code.
    doctor.settings("user", &json!({"env": {cap: "3"}}).to_string());
    doctor.check().says("block-cap", "warning", &["3 turns without a tool call"]);
}

#[test]
fn other_stop_hooks_are_reported() {
    let doctor = Doctor::new();
    doctor.settings("project", r#"{"hooks": {"Stop": [{"hooks": []}]}}"#);
    let other = doctor.env.base.join("other");
    fs::create_dir_all(other.join("hooks")).unwrap();
    let hooks = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#;
    fs::write(other.join("hooks/hooks.json"), hooks).unwrap();
    let mut list = listed(whole_plugin());
    for (id, enabled) in [("loop@official", true), ("asleep@official", false)] {
        let entry = json!({"id": id, "enabled": enabled, "installPath": other});
        list.as_array_mut().unwrap().push(entry);
    }
    let report = doctor.plugins(&list).check();
    report.says("stop-hooks", "warning", &[".claude/settings.json", "claude plugin disable loop@official"]);
    assert!(!report.of("stop-hooks").to_string().contains("asleep"));
}

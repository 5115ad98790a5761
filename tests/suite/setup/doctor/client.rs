//! `ralph doctor`: Claude Code and the plugin.

use super::{Doctor, listed, script, whole_plugin};
use serde_json::{Value, json};
use std::fs;

#[test]
fn a_missing_or_old_claude_code_is_reported() {
    let doctor = Doctor::new();
    for (told, verdict, words) in [
        ("1.9.9 (Claude Code)", "failure", "too old"),
        ("2.1.162 (Claude Code)", "warning", "2.1.163"),
        ("2.1.163 (Claude Code)", "ok", "2.1.163"),
        ("hello", "failure", "printed no version"),
    ] {
        doctor.client(told, "[]").check().says("client", verdict, &[words]);
    }
    script(&doctor.env.base.join("bin/claude"), "echo 'not installed' >&2; exit 1");
    doctor.check().says("client", "failure", &["exit code 1", "not installed", "npm install"]);
    let report = doctor.report(doctor.call(&["--claude", "../nowhere/claude"]));
    report.says("client", "failure", &["../nowhere/claude was not found", "--agent-command"]);
    report.says("plugin", "skipped", &["--plugin-dir"]).says("round-trip", "skipped", &[]);
    // A path is relative to the current folder.
    doctor.client("2.1.325 (Claude Code)", "[]");
    doctor.report(doctor.call(&["--quick", "--claude", "../bin/claude"])).says(
        "client",
        "ok",
        &["../bin/claude"],
    );
}

#[test]
fn a_plugin_that_is_not_in_use_is_reported() {
    let doctor = Doctor::new();
    let whole = listed(whole_plugin());
    let with = |change: &dyn Fn(&mut Value)| {
        let mut list = whole.clone();
        change(&mut list);
        list
    };
    let stranger = doctor.env.base.join("stranger");
    fs::create_dir_all(stranger.join("hooks")).unwrap();
    fs::write(stranger.join("hooks/hooks.json"), r#"{"hooks": {}}"#).unwrap();
    for (list, verdict, words) in [
        (json!([]), "failure", "ralph install"),
        (with(&|list| list[0]["enabled"] = json!(false)), "failure", "claude plugin enable ralph@ralph"),
        (with(&|list| list[0]["errors"] = json!(["Hook load failed"])), "failure", "Hook load failed"),
        (with(&|list| list[0]["version"] = json!("0.0.9")), "warning", "version 0.0.9"),
        (with(&|list| list[0]["readFromFolder"] = json!(stranger)), "failure", "not installed"),
        (
            with(&|list| {
                let mut second = list[0].clone();
                second["id"] = json!("ralph@other");
                list.as_array_mut().unwrap().push(second);
            }),
            "warning",
            "claude plugin disable ralph@other",
        ),
    ] {
        doctor.plugins(&list).check().says("plugin", verdict, &[words]);
    }
    doctor.client("2.1.325", "Plugins:\n  none").check().says(
        "plugin",
        "failure",
        &["Plugins: none", "--plugin-dir"],
    );
    let plugin = whole_plugin().to_str().unwrap();
    doctor.client("2.1.325", "[]");
    let report = doctor.report(doctor.call(&["--quick", "--plugin-dir", plugin]));
    report.says("plugin", "ok", &[plugin]).says("hook-programs", "ok", &[]);
    let report = doctor.report(doctor.call(&["--quick", "--plugin-dir", "."]));
    report.says("plugin", "failure", &["contains no plugin", "ralph install --to"]);
}

/// Asking it would create its files.
#[test]
fn a_claude_code_that_was_never_started_is_not_asked() {
    let doctor = Doctor::new();
    fs::remove_file(doctor.env.base.join("home/.claude.json")).unwrap();
    doctor.check().says("client", "ok", &[]).says("plugin", "failure", &["not installed"]);
    let config = doctor.env.base.join("elsewhere");
    fs::create_dir(&config).unwrap();
    fs::write(config.join(".claude.json"), "{}").unwrap();
    doctor.env.var("CLAUDE_CONFIG_DIR", config.to_str().unwrap());
    doctor.check().says("plugin", "ok", &["ralph@ralph"]);
}

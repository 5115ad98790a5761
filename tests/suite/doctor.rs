//! `ralph doctor`: each thing that can be wrong is named with its way out, and looking changes nothing.

use crate::env::{Call, Env, Program, SESSION, ignores_permissions, names_in};
use fs2::FileExt;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const IDS: [&str; 14] = [
    "client",
    "plugin",
    "hooks",
    "hook-programs",
    "round-trip",
    "block-cap",
    "stop-hooks",
    "files",
    "lock",
    "git",
    "config",
    "trust",
    "docker",
    "leftovers",
];

/// The plugin as it is laid out, once for all tests: nobody writes into it.
fn whole_plugin() -> &'static Path {
    static PLUGIN: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PLUGIN.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().canonicalize().unwrap().join("a plugin");
        let env = Env::new();
        env.ralph(&["install", "--to", target.to_str().unwrap()]).ok();
        (folder, target)
    });
    path
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Where git is not installed: a repository, and a program that has no complaints.
fn stand_in_for_git(env: &Env) {
    fs::create_dir_all(env.path(".git/refs/heads")).unwrap();
    fs::create_dir(env.path(".git/objects")).unwrap();
    fs::write(env.path(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    script(&env.base.join("bin/git"), "echo true");
}

/// What the client lists, with the plugin enabled.
fn listed(folder: &Path) -> Value {
    json!([{"id": "ralph@ralph", "version": env!("CARGO_PKG_VERSION"), "scope": "user", "enabled": true,
        "installPath": "/nowhere", "readFromFolder": folder, "errors": []}])
}

struct Doctor {
    env: Env,
}

impl Doctor {
    /// A healthy world: a client that knows the plugin, a repository, folders for everything.
    fn new() -> Doctor {
        Doctor::within(Env::new())
    }

    fn within(env: Env) -> Doctor {
        let made = Command::new("git").args(["init", "-q"]).arg(&env.project).status();
        if !made.is_ok_and(|made| made.success()) {
            stand_in_for_git(&env);
        }
        for folder in ["tmp", "bin", "home/.claude"] {
            fs::create_dir_all(env.base.join(folder)).unwrap();
        }
        fs::write(env.base.join("home/.claude.json"), "{}").unwrap();
        for folder in ["data", "tmp"] {
            fs::set_permissions(env.base.join(folder), fs::Permissions::from_mode(0o700)).unwrap();
        }
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", env.base.join("bin").display());
        env.var("PATH", &path).var("TMPDIR", env.base.join("tmp").to_str().unwrap());
        let doctor = Doctor { env };
        doctor.client("2.1.325 (Claude Code)", &listed(whole_plugin()).to_string());
        doctor
    }

    /// A client that says this about itself and its plugins.
    fn client(&self, version: &str, plugins: &str) -> &Doctor {
        let base = self.env.base.display();
        fs::write(self.env.base.join("version"), version).unwrap();
        fs::write(self.env.base.join("plugins"), plugins).unwrap();
        let answers = format!(
            "case \"$1\" in\n--version) cat '{base}/version';;\nplugin) cat '{base}/plugins';;\n\
             *) env > '{base}/trip-env'; cp -r \"$CLAUDE_CONFIG_DIR\" '{base}/trip-claude'; cp -r . '{base}/trip-project'\n\
             echo 'no model for me'; exit 1;;\nesac"
        );
        script(&self.env.base.join("bin/claude"), &answers);
        self
    }

    fn plugins(&self, plugins: &Value) -> &Doctor {
        self.client("2.1.325 (Claude Code)", &plugins.to_string())
    }

    fn call(&self, flags: &[&str]) -> Call {
        self.env.call(Program::Ralph).args(&["doctor", "--json"]).args(flags)
    }

    fn report(&self, call: Call) -> Report {
        let run = call.run();
        assert_eq!(run.stderr, "");
        let told: Value = serde_json::from_str(&run.stdout).expect("one JSON object");
        let ids: Vec<_> =
            told["checks"].as_array().unwrap().iter().map(|check| check["id"].clone()).collect();
        assert_eq!(ids, IDS, "every check, each once");
        assert_eq!(names_in(&self.env.base.join("tmp")), Vec::<String>::new(), "nothing stays");
        assert_eq!(run.code, Some(i32::from(told["healthy"] == false)), "{told}");
        Report(told)
    }

    /// Without the round trip, which the fake client does not know.
    fn look(&self) -> Report {
        self.report(self.call(&["--quick"]))
    }

    fn settings(&self, name: &str, text: &str) -> &Doctor {
        let path = match name {
            "user" => self.env.base.join("home/.claude/settings.json"),
            "local" => self.env.path(".claude/settings.local.json"),
            _ => self.env.path(".claude/settings.json"),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A plugin of small scripts, of which the Stop hook does this.
    fn plugin_whose_stop_hook(&self, does: &str) -> PathBuf {
        let plugin = self.env.base.join("plugin");
        for file in [".claude-plugin/plugin.json", "hooks/hooks.json", "hooks/steering.json"] {
            let path = plugin.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::copy(whole_plugin().join(file), path).unwrap();
        }
        for program in ["ralph", "ralph-session-start-hook"] {
            script(&plugin.join("bin").join(program), "cat > /dev/null");
        }
        script(&plugin.join("bin/ralph-stop-hook"), does);
        self.plugins(&listed(&plugin));
        plugin
    }
}

struct Report(Value);

impl Report {
    fn check(&self, id: &str) -> &Value {
        self.0["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap()
    }

    /// The check has this verdict, and its worst notes say these words, message and way out.
    fn says(&self, id: &str, verdict: &str, words: &[&str]) -> &Report {
        let check = self.check(id);
        assert_eq!(check["verdict"], verdict, "{check:#}");
        let notes = check["notes"].as_array().unwrap().iter().filter(|note| note["verdict"] == verdict);
        let text: String = notes.map(|note| format!("{} → {}\n", note["message"], note["way_out"])).collect();
        for word in words {
            assert!(text.contains(word), "{id} does not say \"{word}\":\n{text}");
        }
        if ["warning", "failure"].contains(&verdict) {
            assert!(!text.contains("→ null"), "no way out:\n{text}");
        }
        self
    }
}

#[test]
fn all_is_well_and_nothing_is_touched() {
    let doctor = Doctor::new();
    let before = doctor.env.snapshot();
    let report = doctor.look();
    assert_eq!(report.0["verdict"], "ok", "{:#}", report.0);
    report.says("hook-programs", "ok", &["6 hooks answered"]).says("round-trip", "skipped", &["--quick"]);
    // The folders in which something was made for a moment show that; nothing came, went or changed.
    let shape = |seen: std::collections::BTreeMap<PathBuf, (u64, i64, i64, u64)>| {
        seen.into_iter()
            .map(|(path, seen)| if path.is_dir() { (path, 0) } else { (path, seen.0) })
            .collect::<Vec<_>>()
    };
    assert_eq!(shape(doctor.env.snapshot()), shape(before));
    let human = doctor.env.ralph(&["doctor", "--quick"]).ok();
    assert!(human.contains("OK       client         Claude Code 2.1.325 (claude)\n"), "{human}");
    assert!(human.ends_with("\nAll is well.\n"), "{human}");
}

#[test]
fn a_client_that_is_missing_old_or_strange_is_named() {
    let doctor = Doctor::new();
    for (told, verdict, words) in [
        ("1.9.9 (Claude Code)", "failure", "too old"),
        ("2.1.162 (Claude Code)", "warning", "2.1.163"),
        ("2.1.163 (Claude Code)", "ok", "2.1.163"),
        ("hello", "failure", "no version"),
    ] {
        doctor.client(told, "[]").look().says("client", verdict, &[words]);
    }
    script(&doctor.env.base.join("bin/claude"), "echo 'not installed' >&2; exit 1");
    doctor.look().says("client", "failure", &["exit code 1", "not installed", "npm install"]);
    let report = doctor.report(doctor.call(&["--claude", "../nowhere/claude"]));
    report.says("client", "failure", &["../nowhere/claude was not found", "--agent-command"]);
    report.says("plugin", "skipped", &["--plugin-dir"]).says("round-trip", "skipped", &[]);
    // A path is meant from where the user is.
    doctor.client("2.1.325 (Claude Code)", "[]");
    doctor.report(doctor.call(&["--quick", "--claude", "../bin/claude"])).says(
        "client",
        "ok",
        &["../bin/claude"],
    );
}

#[test]
fn a_plugin_that_is_not_in_use_is_named() {
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
        (with(&|list| list[0]["readFromFolder"] = json!(stranger)), "failure", "not registered"),
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
        doctor.plugins(&list).look().says("plugin", verdict, &[words]);
    }
    doctor.client("2.1.325", "Plugins:\n  none").look().says(
        "plugin",
        "failure",
        &["Plugins: none", "--plugin-dir"],
    );
    let plugin = whole_plugin().to_str().unwrap();
    doctor.client("2.1.325", "[]");
    let report = doctor.report(doctor.call(&["--quick", "--plugin-dir", plugin]));
    report.says("plugin", "ok", &[plugin]).says("hook-programs", "ok", &[]);
    let report = doctor.report(doctor.call(&["--quick", "--plugin-dir", "."]));
    report.says("plugin", "failure", &["holds no plugin", "ralph install --to"]);
}

/// It would make its files, and looking makes none.
#[test]
fn a_client_that_was_never_started_is_not_asked() {
    let doctor = Doctor::new();
    fs::remove_file(doctor.env.base.join("home/.claude.json")).unwrap();
    doctor.look().says("client", "ok", &[]).says("plugin", "failure", &["not registered"]);
    let config = doctor.env.base.join("elsewhere");
    fs::create_dir(&config).unwrap();
    fs::write(config.join(".claude.json"), "{}").unwrap();
    doctor.env.var("CLAUDE_CONFIG_DIR", config.to_str().unwrap());
    doctor.look().says("plugin", "ok", &["ralph@ralph"]);
}

#[test]
fn what_switches_hooks_off_is_named_with_its_file() {
    let off = r#"{"disableAllHooks": true}"#;
    for (name, file) in [
        ("user", "home/.claude/settings.json"),
        ("project", "settings.json"),
        ("local", "settings.local.json"),
    ] {
        let doctor = Doctor::new();
        doctor.settings(name, off).look().says(
            "hooks",
            "failure",
            &["disableAllHooks", file, "take disableAllHooks out"],
        );
    }
    let doctor = Doctor::new();
    doctor.settings("user", off).settings("local", r#"{"disableAllHooks": false}"#).look().says(
        "hooks",
        "ok",
        &[],
    );
    doctor.env.var("CLAUDE_CODE_SIMPLE", "1");
    doctor.look().says("hooks", "failure", &["CLAUDE_CODE_SIMPLE is set here", "unset"]);
}

#[test]
fn settings_of_the_client_that_are_no_json_are_told_and_left_alone() {
    let doctor = Doctor::new();
    let report = doctor.settings("user", "{ \"a\": \u{1b}[2J nope").settings("project", "[]").look();
    report.says("hooks", "failure", &["home/.claude/settings.json is not valid JSON", "never touches"]);
    assert!(report.check("hooks").to_string().contains(".claude/settings.json is not a JSON object"));
    let left = fs::read_to_string(doctor.env.base.join("home/.claude/settings.json")).unwrap();
    assert_eq!(left, "{ \"a\": \u{1b}[2J nope");
    // Another folder of settings is another word.
    let elsewhere = doctor.env.base.join("elsewhere");
    doctor.env.var("CLAUDE_CONFIG_DIR", elsewhere.to_str().unwrap());
    fs::remove_file(doctor.env.path(".claude/settings.json")).unwrap();
    doctor.look().says("hooks", "ok", &["no setting"]);
}

#[test]
fn a_hook_program_that_does_not_answer_is_named() {
    let doctor = Doctor::new();
    for (does, verdict, words) in [
        ("cat > /dev/null", "ok", "6 hooks answered"),
        ("cat > /dev/null; echo boom >&2; exit 101", "failure", "boom (exit code 101)"),
        ("cat > /dev/null; echo hello", "failure", "answers no JSON: hello"),
        ("cat > /dev/null; echo '{\"systemMessage\": \"the disk is full\"}'", "warning", "the disk is full"),
        ("kill -9 $$", "failure", "killed by signal 9"),
    ] {
        doctor.plugin_whose_stop_hook(does);
        doctor.look().says("hook-programs", verdict, &[words]);
    }
    let plugin = doctor.plugin_whose_stop_hook("");
    let program = plugin.join("bin/ralph-stop-hook");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    doctor.look().says("hook-programs", "failure", &["ralph-stop-hook cannot be started", "chmod +x"]);
    fs::remove_dir_all(plugin.join("bin")).unwrap();
    let report = doctor.look();
    report.says("hook-programs", "failure", &["ralph-stop-hook is missing", "ralph install"]);
    let missing = report.check("hook-programs")["notes"].as_array().unwrap().len();
    assert_eq!(missing, 3, "each program once, whatever its events");
    fs::write(plugin.join("hooks/hooks.json"), "{").unwrap();
    doctor.look().says("hook-programs", "failure", &["hooks.json is not valid JSON", "ralph install"]);
    fs::remove_dir_all(&plugin).unwrap();
    doctor.look().says("plugin", "failure", &["the folder of ralph@ralph is gone"]);
}

#[test]
fn a_hook_that_hangs_holds_nobody_up() {
    let doctor = Doctor::new();
    doctor.plugin_whose_stop_hook("[ -e ../hung ] && exit; touch ../hung; sleep 600 & wait");
    let began = Instant::now();
    doctor.look().says("hook-programs", "failure", &["ralph-stop-hook at Stop", "not finished after"]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(doctor.env.processes(), Vec::<String>::new(), "and nothing is left running");
}

#[test]
fn the_round_trip_takes_nothing_of_the_users_along() {
    let doctor = Doctor::new();
    let secret = r#"{"apiKeyHelper": "cat secret", "env": {"TOKEN": "secret"}, "disableAllHooks": false}"#;
    doctor.settings("user", secret);
    let call = doctor.call(&[]).var("ANTHROPIC_API_KEY", "secret").var("ANTHROPIC_AUTH_TOKEN", "secret");
    let call = call.var("HTTPS_PROXY", "http://secret").var("RALPH_NOTIFY", "touch secret");
    let report = doctor.report(call);
    report.says("round-trip", "warning", &["could not be tried", "no model for me", "--quick"]);
    let base = &doctor.env.base;
    let given = fs::read_to_string(base.join("trip-env")).unwrap();
    let home = base.join("home").display().to_string();
    assert!(!given.contains("secret") && !given.contains(&home), "{given}");
    for expected in
        ["ANTHROPIC_BASE_URL=http://127.0.0.1:", "ANTHROPIC_API_KEY=sk-ant-not-a-key", "/tmp/ralph-doctor-"]
    {
        assert!(given.contains(expected), "{expected} in {given}");
    }
    let kept = fs::read_to_string(base.join("trip-claude/settings.json")).unwrap();
    assert_eq!(kept, r#"{"disableAllHooks":false}"#);
    assert_eq!(names_in(&base.join("trip-project/.claude")), ["settings.json", "settings.local.json"]);
}

#[test]
fn the_clients_cap_must_not_come_before_the_breaker() {
    let cap = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
    let doctor = Doctor::new();
    doctor.look().says("block-cap", "ok", &["8 idle turns"]);
    doctor.env.var("RALPH_CIRCUIT_IDLE", "12");
    doctor.look().says("block-cap", "warning", &["circuit.idle (12)", cap]);
    doctor.env.var(cap, "0");
    doctor.look().says("block-cap", "ok", &["lifted"]);
    // As the client has it, its settings beat its environment.
    doctor.settings("user", &json!({"env": {cap: "3"}}).to_string());
    doctor.look().says("block-cap", "warning", &["3 idle turns"]);
}

#[test]
fn other_stop_hooks_are_named() {
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
    let report = doctor.plugins(&list).look();
    report.says("stop-hooks", "warning", &[".claude/settings.json", "claude plugin disable loop@official"]);
    assert!(!report.check("stop-hooks").to_string().contains("asleep"));
}

#[test]
fn files_that_others_can_read_are_named() {
    let doctor = Doctor::new();
    doctor.env.start("a task", &[]);
    doctor.look().says("files", "ok", &["for you only"]).says("leftovers", "ok", &[]);
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    open(&doctor.env.path(".claude/ralph-state.json"));
    doctor.look().says("files", "warning", &["ralph-state.json", "chmod -R go-rwx"]);
    fs::set_permissions(doctor.env.path(".claude/ralph-state.json"), fs::Permissions::from_mode(0o600))
        .unwrap();
    // Records are safe in a folder of the user's own, whatever they say themselves.
    let sessions = doctor.env.data().join("sessions");
    let record = sessions.join(&names_in(&sessions)[0]);
    open(&record);
    for (folder, verdict) in [(doctor.env.data(), "ok"), (sessions, "warning")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        doctor.look().says("files", verdict, &[]);
    }
    doctor.look().says("files", "warning", &[record.to_str().unwrap()]);
}

#[test]
fn files_of_another_user_are_named() {
    if !ignores_permissions() {
        return; // Only root gives a file away.
    }
    let doctor = Doctor::new();
    doctor.env.start("a task", &[]);
    let state = doctor.env.path(".claude/ralph-state.json");
    std::os::unix::fs::chown(&state, Some(65534), None).unwrap();
    doctor.look().says("files", "failure", &["belongs to another user", state.to_str().unwrap(), "chown"]);
}

#[test]
fn state_that_cannot_be_used_is_named() {
    let doctor = Doctor::new();
    doctor.env.write(".claude/ralph-state.json", "{ \u{1b}[31m");
    doctor.look().says("files", "warning", &["ralph-state.json is damaged", "moves it aside"]);
    doctor.env.write(".claude/ralph-state.json", r#"{"version": 99, "loops": {}}"#);
    doctor.look().says("files", "failure", &["newer Ralph", "upgrade"]);
    fs::remove_dir_all(doctor.env.path(".claude")).unwrap();
    symlink(&doctor.env.base, doctor.env.path(".claude")).unwrap();
    doctor.look().says("files", "failure", &["link out of the project"]);
}

#[test]
fn folders_that_cannot_be_written_are_named() {
    let doctor = Doctor::new();
    let file = doctor.env.base.join("a file");
    fs::write(&file, "").unwrap();
    // The nearest folder above is what counts, and that one can be written.
    doctor.env.var("RALPH_DATA_DIR", doctor.env.base.join("not yet/there").to_str().unwrap());
    doctor.look().says("files", "ok", &["room to write"]);
    if ignores_permissions() {
        return;
    }
    let sealed = doctor.env.base.join("sealed");
    fs::create_dir(&sealed).unwrap();
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o500)).unwrap();
    doctor.env.var("RALPH_DATA_DIR", sealed.join("ralph").to_str().unwrap());
    doctor.env.var("HOME", sealed.to_str().unwrap());
    let report = doctor.look();
    report.says("files", "failure", &["cannot be written", "RALPH_DATA_DIR"]);
    report.says("lock", "failure", &["could not open the lock", "writable disk"]);
}

#[test]
fn a_lock_that_is_never_given_back_is_named() {
    let doctor = Doctor::new();
    doctor.env.start("a task", &[]);
    let path = doctor.env.path(".claude/ralph-state.lock");
    let held = fs::File::open(&path).unwrap();
    held.lock_exclusive().unwrap();
    doctor.look().says("lock", "warning", &["ralph-state.lock is held by another Ralph", "end it"]);
    drop(held);
    doctor.look().says("lock", "ok", &["keeps a second one out"]);
}

#[test]
fn git_is_looked_for_and_asked() {
    let doctor = Doctor::new();
    doctor.look().says("git", "ok", &["HEAD at"]);
    script(&doctor.env.base.join("bin/git"), "echo 'dubious ownership' >&2; exit 128");
    doctor.look().says("git", "warning", &["dubious ownership"]);
    fs::remove_dir_all(doctor.env.path(".git")).unwrap();
    doctor.look().says("git", "warning", &["in no git repository", "git init"]);
    let few = doctor.env.base.join("few");
    fs::create_dir(&few).unwrap();
    symlink(doctor.env.base.join("bin/claude"), few.join("claude")).unwrap();
    symlink("/bin/cat", few.join("cat")).unwrap();
    doctor.env.var("PATH", few.to_str().unwrap());
    doctor.look().says("git", "warning", &["git was not found", "install git"]);
}

#[test]
fn settings_of_ours_that_make_no_sense_are_named() {
    let doctor = Doctor::new();
    doctor.env.write(
        ".claude/ralph-config.json",
        r#"{"loop_limits": {"max_hours": "many"}, "scam": {"enabled": true}}"#,
    );
    let report = doctor.look();
    report.says("config", "warning", &["ralph-config.json: loop_limits.max_hours", "scam.enabled"]);
    doctor.env.write(".claude/ralph-config.json", "{,}");
    fs::write(doctor.env.base.join("config/config.json"), "[]").unwrap();
    let report = doctor.look();
    report.says(
        "config",
        "failure",
        &[".claude/ralph-config.json is not valid JSON", "config/config.json is not a JSON"],
    );
    assert_eq!(report.check("config")["notes"].as_array().unwrap().len(), 2, "each once");
}

#[test]
fn commands_that_wait_for_trust_are_named() {
    let doctor = Doctor::new();
    doctor.env.write(".claude/ralph-config.json", r#"{"completion": {"verify": ["make test"]}}"#);
    let report = doctor.look();
    report.says("trust", "warning", &["completion.verify", "ralph trust --show"]).says("config", "ok", &[]);
    doctor.env.ralph(&["trust"]).ok();
    doctor.look().says("trust", "ok", &[]);
}

#[test]
fn a_container_is_looked_at_where_it_is_named() {
    let doctor = Doctor::new();
    doctor.look().says("docker", "skipped", &["not used here"]);
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
        &["no container's name"],
    );
    // A lock that came with the repository has docker look at nothing.
    doctor.env.write("ralph/run.lock", r#"{"pid": 1, "run_id": "x", "container": "theirs"}"#);
    script(&docker, "touch ../asked");
    doctor.look().says("docker", "skipped", &[]);
    assert!(!doctor.env.base.join("asked").exists());
}

#[test]
fn leftovers_are_named_with_what_to_do() {
    let doctor = Doctor::new();
    let env = &doctor.env;
    env.start("a task", &[]);
    let gone = Command::new("true").spawn().and_then(|mut child| child.wait().map(|_| child.id())).unwrap();
    env.write("ralph/run.lock", format!(r#"{{"pid": {gone}, "run_id": "0123456789"}}"#));
    doctor.look().says("leftovers", "warning", &["run 01234567", "whose runner is gone", "rm "]);
    fs::remove_dir_all(env.path("ralph")).unwrap();

    env.write(".claude/STOP_LOOP", "");
    doctor.look().says("leftovers", "warning", &["STOP_LOOP stops the next loop", "rm "]);
    fs::remove_file(env.path(".claude/STOP_LOOP")).unwrap();

    env.write(".claude/ralph-state.json.corrupt-20261116", "x");
    doctor.look().says("leftovers", "warning", &["corrupt-20261116", "set aside"]);
    fs::remove_file(env.path(".claude/ralph-state.json.corrupt-20261116")).unwrap();

    let old = env.data().join("history/x.jsonl.tmp-0a1b2c3d");
    fs::create_dir_all(old.parent().unwrap()).unwrap();
    fs::write(&old, "").unwrap();
    env.write(".claude/notes.tmp-mine", "");
    doctor.look().says("leftovers", "ok", &["none"]);
    for path in [&old, &env.path(".claude/notes.tmp-mine")] {
        let aged = Command::new("touch").args(["-d", "2020-01-01"]).arg(path).status().unwrap();
        assert!(aged.success());
    }
    let report = doctor.look();
    report.says("leftovers", "warning", &["tmp-0a1b2c3d was left half written"]);
    assert!(!report.check("leftovers").to_string().contains("tmp-mine"), "not ours");
    fs::remove_file(&old).unwrap();

    env.edit_state(|state| state["loops"][SESSION]["orphaned_at"] = json!("2026-11-16T08:00:00Z"));
    doctor.look().says("leftovers", "warning", &["has lost its session", "a task", "--resume"]);
}

#[test]
fn a_survivor_and_a_stop_that_waits_are_named() {
    let doctor = Doctor::new();
    let env = &doctor.env;
    env.start("a task", &[]);
    fs::write(env.data().join("stop-all"), "2026-11-16T09:00:00Z\n").unwrap();
    doctor.look().says("leftovers", "warning", &["ralph stop --all", "2026-11-16", "waits for a loop here"]);
    env.ralph(&["stop"]).ok();
    doctor.look().says("leftovers", "ok", &[]);

    let mut agent = Command::new("sleep").arg("600").spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", agent.id())).unwrap_or_default();
    if let Some(birth) = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)) {
        let dead =
            Command::new("true").spawn().and_then(|mut child| child.wait().map(|_| child.id())).unwrap();
        let child = json!({"pid": agent.id(), "process": birth});
        env.write("ralph/run.lock", json!({"pid": dead, "run_id": "r", "child": child}).to_string());
        let alive = format!("(process {}) is still at work", agent.id());
        doctor.look().says("leftovers", "warning", &[&alive, "ralph run"]);
        assert!(agent.try_wait().unwrap().is_none(), "looking ends nobody");
    }
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn loops_of_projects_that_are_gone_and_old_plugins_are_named() {
    let doctor = Doctor::new();
    let other = doctor.env.base.join("other project");
    fs::create_dir(&other).unwrap();
    let args = ["start", "--session", SESSION, "a task"];
    doctor.env.call(Program::Ralph).args(&args).cwd(&other).run().ok();
    doctor.look().says("leftovers", "ok", &[]);
    fs::remove_dir_all(&other).unwrap();
    doctor.look().says("leftovers", "warning", &["other project, which is gone", "rm "]);
    let cache = doctor.env.base.join("home/.claude/plugins/cache/ralph/ralph");
    for version in ["0.0.1", env!("CARGO_PKG_VERSION")] {
        fs::create_dir_all(cache.join(version)).unwrap();
    }
    let report = doctor.look();
    report.says("leftovers", "warning", &["cache/ralph/ralph/0.0.1 is the plugin in another version"]);
    assert_eq!(report.check("leftovers")["notes"].as_array().unwrap().len(), 2);
}

#[test]
fn odd_homes_are_no_trouble() {
    let doctor = Doctor::within(Env::named("ein Projekt für 测试"));
    let home = doctor.env.base.join("mein Zuhause, größer");
    fs::create_dir_all(home.join(".claude")).unwrap();
    fs::write(home.join(".claude.json"), "{}").unwrap();
    doctor.env.var("HOME", home.to_str().unwrap()).without("RALPH_DATA_DIR").without("RALPH_CONFIG_DIR");
    assert_eq!(doctor.look().0["verdict"], "ok");
    assert!(!home.join(".local").exists(), "looking makes no folders");
    doctor.env.without("HOME").var("RALPH_DATA_DIR", doctor.env.data().to_str().unwrap());
    doctor.look();
}

#[test]
fn what_others_wrote_reaches_no_terminal_raw() {
    let doctor = Doctor::new();
    let mut list = listed(whole_plugin());
    list[0]["errors"] = json!(["a\u{1b}]0;title\u{7}b\u{202e}"]);
    doctor.plugins(&list);
    doctor.env.write(
        ".claude/ralph-config.json",
        json!({"loop_limits": {"max_hours": "\u{1b}[2J"}, "\u{1b}[31m": 1}).to_string(),
    );
    let run = doctor.env.ralph(&["doctor", "--quick"]);
    assert_eq!(run.code, Some(1));
    let odd = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!run.stdout.contains(odd), "{:?}", run.stdout);
    assert!(run.stdout.contains("[31m is not a setting"), "{}", run.stdout);
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let doctor = Doctor::new();
    let base = doctor.env.base.display();
    let answers = format!(
        "case $1 in\n--version) cat '{base}/version';;\nplugin) cat '{base}/plugins';;\n\
         *) touch '{base}/begun'; sleep 600;;\nesac"
    );
    script(&doctor.env.base.join("bin/claude"), &answers);
    let running = doctor.call(&[]).spawn();
    let began = Instant::now();
    while !doctor.env.base.join("begun").exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "the round trip does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_ne!(names_in(&doctor.env.base.join("tmp")), Vec::<String>::new());
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    let run = running.wait();
    assert_eq!((run.code, run.stdout.as_str()), (Some(130), ""));
    assert_eq!(names_in(&doctor.env.base.join("tmp")), Vec::<String>::new());
    assert_eq!(doctor.env.processes(), Vec::<String>::new());
}

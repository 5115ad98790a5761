//! Every file of ours as everything that it should not be, for every hook and the commands that read or write it.
//!
//! Each pair of file and kind meets two hooks and three commands in turn, so that every action meets every kind and
//! every file. `RALPH_HOSTILE_ALL=1 cargo test --test suite hostile` runs all of them for each pair.

use super::{Hostile, make};
use crate::env::{Call, OTHER, Program, SESSION, names_in};
use crate::setup::install::programs;
use serde_json::json;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

const FOLDERS: [&str; 7] =
    [".claude", "ralph", "ralph/answered", "ralph/logs", "ralph-archive", ".git", ".git/info"];
const FILES: [&str; 23] = [
    ".claude/ralph-state.json",
    ".claude/ralph-state.lock",
    ".claude/ralph-config.json",
    ".claude/STOP_LOOP",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/ralph-loop.local.md",
    "ralph/prompt.md",
    "ralph/tasks.json",
    "ralph/tasks.md",
    "ralph/prd.md",
    "ralph/progress.txt",
    "ralph/decide.txt",
    "ralph/blocked.txt",
    "ralph/logs/summary.csv",
    "ralph/logs/iteration-001.log",
    "ralph/logs/iteration-002.log",
    "ralph/run.lock",
    ".gitignore",
    ".git/HEAD",
    ".git/commondir",
    ".git/info/exclude",
    ".git/packed-refs",
];
/// A loop of the official plugin.
const OFFICIAL_LOOP: &str = "---\nactive: true\niteration: 3\nmax_iterations: 9\ncompletion_promise: null\n\
started_at: \"2026-11-15T22:30:00Z\"\n---\n\nBuild it.\n";
const HUGE: u64 = 100 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    LinkOut,
    LinkToGit,
    LinkToEnv,
    Pipe,
    Socket,
    Device,
    Folder,
    Endless,
    Huge,
}

/// The hooks come first.
const HOOKS: usize = 9;
const ACTIONS: [&str; 43] = [
    "Stop",
    "SessionStart",
    "StopFailure",
    "SessionEnd",
    "UserPromptExpansion",
    "UserPromptSubmit",
    "Notification",
    "PermissionRequest",
    "PostToolBatch",
    "status",
    "run",
    "scan",
    "start",
    "config",
    "stop",
    "guidance list",
    "guidance add",
    "answer",
    "answer TEXT",
    "config set",
    "archive",
    "init",
    "history",
    "reset",
    "statusline",
    "trust --show",
    "doctor",
    "start --resume",
    "start --import",
    "guidance adopt",
    "answer --adopt",
    "trust",
    "uninstall",
    "install --to",
    "pause",
    "logs",
    "logs --raw",
    "report",
    "report --markdown",
    "report --all",
    "history RUN",
    "notify",
    "module",
];

fn call(hostile: &Hostile, action: &str) -> Call {
    let env = &hostile.env;
    let ralph = |args: &[&str]| env.call(Program::Ralph).args(args);
    let hook = |program, name: &str| env.event(program, SESSION, name);
    match action {
        "Stop" => env.stop(SESSION).says("<promise>DECIDE:which?</promise>").call(),
        "SessionStart" => env.session_start(SESSION, "startup").call(),
        "StopFailure" => hook(Program::StopHook, "StopFailure").field("error", "x").call(),
        "SessionEnd" => hook(Program::StopHook, "SessionEnd").field("reason", "other").call(),
        "UserPromptExpansion" => {
            let event = hook(Program::SessionStartHook, "UserPromptExpansion");
            event.field("command_name", "ralph:start").field("command_args", "go").call()
        }
        "UserPromptSubmit" => env.submits(SESSION, &format!("/ralph:forbid {}", "x".repeat(900))).call(),
        "Notification" => {
            hook(Program::StopHook, "Notification").field("notification_type", "permission_prompt").call()
        }
        "PermissionRequest" => {
            let event = hook(Program::StopHook, "PermissionRequest").field("tool_name", "Bash");
            event.field("tool_input", json!({"command": "make"})).call()
        }
        "PostToolBatch" => hook(Program::StopHook, "PostToolBatch").call(),
        "module" => {
            let event = json!({"event": "command", "session_id": SESSION, "running": true, "command": "forbid", "args": "harm"});
            ralph(&["module"]).stdin(event.to_string())
        }
        "run" => env.run_with("work; promise COMPLETE", &["--new", "--max-iterations", "2"]),
        "start" => ralph(&["start", "--session", SESSION, "--replace", "task"]),
        "stop" => ralph(&["stop"]),
        "guidance list" => env.call(Program::Guidance).args(&["list"]),
        "guidance add" => ralph(&["forbid", "harm"]),
        "answer TEXT" => ralph(&["answer", "--replace", "that one"]),
        "config set" => ralph(&["config", "loop_limits.max_hours", "3"]),
        "statusline" => ralph(&["statusline"]).stdin(format!("{{\"session_id\": \"{SESSION}\"}}")),
        "trust --show" => ralph(&["trust", "--show"]),
        "start --resume" => ralph(&["start", "--session", SESSION, "--resume"]),
        "start --import" => ralph(&["start", "--session", OTHER, "--import"]),
        "guidance adopt" => env.call(Program::Guidance).args(&["adopt"]),
        "answer --adopt" => ralph(&["answer", "--adopt"]),
        "logs --raw" => ralph(&["logs", "--raw"]),
        "report --markdown" => ralph(&["report", "--markdown"]),
        "report --all" => ralph(&["report", "--all"]),
        "history RUN" => {
            let runs = env.data().join("runs");
            let runs = if runs.is_dir() { names_in(&runs) } else { Vec::new() };
            ralph(&["history", runs.first().map_or("none", String::as_str)])
        }
        "uninstall" => ralph(&["uninstall", "--purge", "--force"]),
        "install --to" => env.call_at(&programs().join("ralph")).args(&["install", "--to", "../copy"]),
        command => ralph(&[command]),
    }
}

/// Does what an action needs before it can do its work, as far as that is possible.
fn prepare(hostile: &Hostile, action: &str) {
    match action {
        "archive" | "start --resume" => drop(hostile.run("stop", call(hostile, "stop"))),
        "logs" | "logs --raw" | "report" | "report --markdown" | "history RUN" => {
            drop(hostile.run("run", call(hostile, "run")))
        }
        "answer" | "answer TEXT" => drop(hostile.run("Stop", call(hostile, "Stop"))),
        "start --import" => write_if_free(hostile, ".claude/ralph-loop.local.md", OFFICIAL_LOOP),
        "guidance adopt" => {
            hostile.run("forbid", call(hostile, "guidance add"));
            // Without its record it could be anyone's.
            let _ = fs::remove_dir_all(hostile.env.data().join("given"));
        }
        "answer --adopt" => write_if_free(hostile, "ralph/decide.txt", "Which?\n---\n## Answer\nThat one.\n"),
        _ => {}
    }
}

/// Writes a file of the project, if nothing is in its place and its folder is one.
fn write_if_free(hostile: &Hostile, name: &str, text: &str) {
    let path = hostile.env.path(name);
    let is_folder = |folder: &Path| folder.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    if path.parent().is_some_and(is_folder) && !hostile.env.exists(name) {
        hostile.env.write(name, text);
    }
}

/// Puts something else where our file would be. Returns what has to be kept until the end.
fn plant(hostile: &Hostile, place: &str, kind: Kind) -> Option<UnixListener> {
    let is_folder = FOLDERS.contains(&place);
    let target = |name: &str| match place.starts_with(".git") && kind == Kind::LinkOut && is_folder {
        true => hostile.outside("repo").join(place),
        false => hostile.env.path(name),
    };
    match kind {
        Kind::LinkOut if is_folder => drop(hostile.link(place, target("../outside/folder"))),
        Kind::LinkOut => drop(hostile.link(place, hostile.outside("file"))),
        Kind::LinkToGit if place == ".git" => drop(hostile.link(place, hostile.outside("repo/.git"))),
        Kind::LinkToGit if is_folder => drop(hostile.link(place, hostile.env.path(".git"))),
        Kind::LinkToGit if place == ".git/HEAD" => drop(hostile.link(place, hostile.env.path(".git/config"))),
        Kind::LinkToGit => drop(hostile.link(place, hostile.env.path(".git/HEAD"))),
        Kind::LinkToEnv => drop(hostile.link(place, hostile.env.path(".env"))),
        Kind::Endless if cfg!(target_os = "linux") => drop(hostile.link(place, "/proc/self/pagemap")),
        Kind::Endless => drop(hostile.link(place, "/dev/zero")),
        Kind::Pipe => drop(hostile.pipe(place)),
        // Only root makes devices.
        Kind::Device if rustix::process::geteuid().is_root() && can_make_devices() => {
            make("mknod", &["c", "1", "5"], &hostile.free(place));
        }
        Kind::Device => drop(hostile.link(place, "/dev/zero")),
        Kind::Socket => return Some(bind(hostile, place)),
        Kind::Folder if is_folder => fs::write(hostile.free(place), "a file").unwrap(),
        Kind::Folder => fs::create_dir(hostile.free(place)).unwrap(),
        Kind::Huge => fs::File::create(hostile.free(place)).unwrap().set_len(HUGE).unwrap(),
    }
    None
}

fn can_make_devices() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let made =
        std::process::Command::new("mknod").arg(folder.path().join("zero")).args(["c", "1", "5"]).output();
    made.is_ok_and(|made| made.status.success())
}

/// Binds a socket by a short name, because a long path does not fit into its address.
fn bind(hostile: &Hostile, place: &str) -> UnixListener {
    let short = hostile.env.base.join("s");
    let socket = UnixListener::bind(&short).unwrap();
    fs::rename(short, hostile.free(place)).unwrap();
    socket
}

/// Returns the actions that a pair of file and kind meets.
fn actions(pair: usize) -> Vec<&'static str> {
    if std::env::var_os("RALPH_HOSTILE_ALL").is_some() {
        return ACTIONS.to_vec();
    }
    let (hooks, commands) = ACTIONS.split_at(HOOKS);
    let hooks = (0..2).map(|n| hooks[(2 * pair + n) % hooks.len()]);
    let commands = (0..3).map(|n| commands[(3 * pair + n) % commands.len()]);
    // It copies the programs, which takes longer than all others together.
    let is_rare = |action: &&str| *action == "install --to" && !pair.is_multiple_of(5);
    hooks.chain(commands.filter(|action| !is_rare(action))).collect()
}

fn meets(kind: Kind) {
    for (at, place) in FOLDERS.iter().chain(&FILES).enumerate() {
        let hostile = Hostile::new();
        hostile.env.start("task", &[]);
        let _kept = plant(&hostile, place, kind);
        let before = hostile.victims();
        for action in actions(at + 7 * kind as usize) {
            let what = format!("{place} as {kind:?}: {action}");
            prepare(&hostile, action);
            let run = hostile.run(&what, call(&hostile, action));
            if ACTIONS[..HOOKS].contains(&action) {
                assert!(run.code == Some(0) && run.stderr.is_empty(), "{what}: {run:?}");
                run.answer();
            }
            let after = hostile.victims();
            assert!(before == after, "{what}: changed {before:?} to {after:?}");
        }
        hostile.assert_nothing_leaked(&format!("{place} as {kind:?}"));
    }
}

/// Otherwise the table would show only that refused commands do no harm.
#[test]
fn in_an_ordinary_project_every_action_works() {
    for action in ACTIONS {
        let hostile = Hostile::new();
        hostile.env.start("task", &[]);
        prepare(&hostile, action);
        let run = hostile.run(action, call(&hostile, action));
        let is_fine = run.code == Some(0) || (action == "doctor" && run.code == Some(1));
        assert!(is_fine, "{action}: {run:?}");
        let is_done = match action {
            "Stop" => hostile.env.exists("ralph/decide.txt"),
            "run" => hostile.env.starts() == 1 && hostile.env.outcomes() == ["complete"],
            "start" => run.stdout.contains("Ralph started"),
            "start --resume" => run.stdout.contains("Ralph resumed"),
            "start --import" => run.stdout.contains("Ralph imported"),
            "guidance adopt" | "answer --adopt" => run.stdout.to_lowercase().contains("adopted"),
            "uninstall" => !hostile.env.data().exists(),
            "install --to" => hostile.env.exists("../copy/hooks/hooks.json"),
            "archive" => hostile.env.exists("ralph-archive"),
            "logs" => run.stdout.contains("COMPLETE"),
            "logs --raw" => run.stdout.contains("<promise>COMPLETE</promise>"),
            "report --markdown" => run.stdout.contains("complete"),
            "pause" => run.stdout.contains("pauses at the end"),
            "module" => run.stdout.contains("\"text\""),
            _ => true,
        };
        assert!(is_done, "{action}: {run:?}");
    }
}

#[test]
fn links_out_of_the_project_change_and_tell_nothing() {
    meets(Kind::LinkOut);
}

#[test]
fn links_to_gits_files_change_and_tell_nothing() {
    meets(Kind::LinkToGit);
}

#[test]
fn links_to_the_users_secrets_change_and_tell_nothing() {
    meets(Kind::LinkToEnv);
}

#[test]
fn pipes_are_not_waited_for() {
    meets(Kind::Pipe);
}

#[test]
fn sockets_are_not_opened() {
    meets(Kind::Socket);
}

#[test]
fn devices_are_not_read() {
    meets(Kind::Device);
}

#[test]
fn folders_and_files_in_each_others_place_harm_nothing() {
    meets(Kind::Folder);
}

#[test]
fn endless_files_are_not_read_to_an_end() {
    meets(Kind::Endless);
}

#[test]
fn huge_files_are_not_loaded() {
    meets(Kind::Huge);
}

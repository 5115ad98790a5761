//! `ralph demo`: shows the real output of the programs, tests them, and leaves nothing behind.

use crate::env::{Call, Env, Program, Run, names_in};
use ralph::demo::{PER_LINE, PER_SCENE};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// An environment with its own temporary folder, to see what is left in it.
struct Demo {
    env: Env,
    temporary: TempDir,
}

impl Demo {
    fn new() -> Demo {
        let (env, temporary) = (Env::new(), tempfile::tempdir().unwrap());
        env.var("TMPDIR", temporary.path().to_str().unwrap());
        Demo { env, temporary }
    }

    fn call(&self, args: &[&str]) -> Call {
        self.env.call(Program::Ralph).args(&["demo"]).args(args)
    }

    fn left(&self) -> Vec<String> {
        names_in(self.temporary.path())
    }

    /// Copies `ralph` to a folder without the other programs.
    fn copy(&self, folder: &str) -> PathBuf {
        let path = self.env.base.join(folder).join("ralph");
        fs::create_dir(path.parent().unwrap()).unwrap();
        done(Command::new("cp").arg(Program::Ralph.path()).arg(&path));
        path
    }
}

/// Writes a script with another process: a file that this process has open for writing while another test forks
/// cannot be executed for a moment.
fn script(path: &Path, text: &str) {
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod 755 "$2""#;
    done(Command::new("sh").args(["-c", write, "sh", text]).arg(path));
}

fn done(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// Masks what differs between runs.
fn settled(run: Run) -> String {
    crate::setup::demo_recording::masked(&run.ok())
}

#[test]
fn a_whole_loop_is_shown_and_nothing_is_left() {
    let demo = Demo::new();
    let before = demo.env.snapshot();

    let shown = demo.call(&["--fast"]).run().ok();

    let mut rest = shown.as_str();
    for (what, part) in [
        ("the start", "│ Ralph started: write a recipe for tea"),
        ("the loop continues", "│ Ralph 1/50 · Runtime: 0.2h/9.0h | Wall: 0.2h"),
        ("a finding", "│ - Makefile:2: "),
        ("guidance is saved", "│ forbidden: the microwave; 1 active"),
        ("and reaches the agent", "│ FORBIDDEN:\n      │ - the microwave (11m ago)\n"),
        ("runtime and wall time", "│ Ralph 2/50 · Runtime: 0.4h/9.0h | Wall: 9.0h"),
        ("the idle warning", "│ Ralph 3/50 "),
        ("a failed check", "`sh"),
        ("and its output", "│ the pot is cold"),
        ("the ending", "│ Ralph ended (complete)"),
        ("the runner", "› ralph run \"bake scones for two\""),
        ("a fresh agent", "│ ── iteration 1 of 50 ──"),
        ("and another", "│ ── iteration 2 of 50 ──"),
        ("the summary", "│ Exit:        COMPLETE (code 0)"),
        ("the end", "The temporary project was removed."),
    ] {
        let at =
            rest.find(part).unwrap_or_else(|| panic!("{what} ({part}) is missing in its place:\n{shown}"));
        rest = &rest[at + part.len()..];
    }
    let after = shown.split("forbidden: the microwave").nth(1).unwrap();
    assert!(!after.contains("Makefile"), "a fixed problem is not found again: {shown}");
    assert_eq!(demo.left(), [""; 0]);
    assert_eq!(demo.env.snapshot(), before, "project, home and the user's folders are unchanged");
}

#[test]
fn it_fits_a_small_screen_and_twenty_seconds() {
    let shown = Demo::new().call(&["--fast"]).run().ok();
    let lines = shown.lines().count();
    assert!((40..=62).contains(&lines), "{lines} lines:\n{shown}");
    for line in shown.lines() {
        assert!(line.chars().count() < 80 && !line.contains('\u{1b}'), "{line:?}");
    }
    // Every pause there is follows a line or comes before a scene; what the programs take is less than a second.
    let scenes = u32::try_from(shown.lines().filter(|line| line.is_empty()).count()).unwrap();
    let pauses = PER_LINE * u32::try_from(lines).unwrap() + PER_SCENE * scenes;
    assert!(pauses < Duration::from_secs(17), "{pauses:?}");
    assert!(pauses > Duration::from_secs(5), "too fast to read: {pauses:?}");
}

#[test]
fn lines_after_the_bar_are_real_output() {
    let demo = Demo::new();
    let ralph = demo.copy("altered");
    let beside = |name: &str| ralph.with_file_name(name);
    for program in [Program::StopHook, Program::SessionStartHook, Program::Guidance] {
        let real = program.path();
        let name = Path::new(real).file_name().unwrap().to_str().unwrap();
        script(
            &beside(name),
            &format!("'{real}' \"$@\" | sed 's/ Wall: / Quokka: /; s/ active/ marsupial/'"),
        );
    }
    let shown = demo.env.call_at(&ralph).args(&["demo", "--fast"]).run();
    assert!(shown.stdout.contains("│ Ralph 1/50 · Runtime: 0.2h/9.0h | Quokka: 0.2h"), "{shown:?}");
    assert!(shown.stdout.contains("│ forbidden: the microwave; 1 marsupial"), "{shown:?}");
    assert_eq!(shown.code, Some(70), "the demo fails on unexpected output: {shown:?}");
    assert!(shown.stderr.contains("the night counts as wall time only"), "{shown:?}");
}

#[test]
fn a_broken_program_fails_the_demo_with_70() {
    for (name, hook, text, part) in [
        ("says nothing", "ralph-stop-hook", "cat >/dev/null", "expected: the agent continues; got: nothing"),
        ("says rubbish", "ralph-stop-hook", "echo hello", "ralph-stop-hook did not answer in JSON: hello"),
        (
            "fails",
            "ralph-stop-hook",
            "echo broken >&2; exit 3",
            "ralph-stop-hook failed: broken (exit code 3)",
        ),
        ("starts no loop", "ralph-session-start-hook", "echo '{}'", "expected: a loop starts"),
        ("takes no word", "ralph-guidance", "echo no", "expected: the guidance is saved; got: no"),
    ] {
        let demo = Demo::new();
        let ralph = demo.copy("broken");
        script(&ralph.with_file_name(hook), text);
        let run = demo.env.call_at(&ralph).args(&["demo", "--fast"]).run();
        assert_eq!(run.code, Some(70), "{name}: {run:?}");
        assert!(run.stderr.contains("the demo failed at \"") && run.stderr.contains(part), "{name}: {run:?}");
        assert!(run.stderr.contains("ralph demo --keep"), "{name}: the hint: {run:?}");
        assert_eq!(demo.left(), [""; 0], "{name}");
    }
}

#[test]
fn ralph_alone_replaces_the_other_programs() {
    let demo = Demo::new();
    let ralph = demo.copy("alone in a föhn");
    let alone = settled(demo.env.call_at(&ralph).args(&["demo", "--fast"]).run());
    let whole = settled(demo.call(&["--fast"]).run());
    let end = |shown: &str| shown.rfind("Next: ").expect("the next step");
    assert_eq!(alone[..end(&alone)], whole[..end(&whole)]);
    assert!(whole[end(&whole)..].starts_with("Next: `ralph install`"), "{whole}");
    assert!(alone[end(&alone)..].starts_with("Next: `cargo install --locked --path .`"), "{alone}");

    // Started under another name, it is that program.
    let link = |name: &str| {
        let path = ralph.with_file_name(name);
        symlink(&ralph, &path).unwrap();
        path
    };
    let listed = demo.env.call_at(&link("ralph-guidance")).args(&["list"]).run();
    assert_eq!(listed.ok(), demo.env.guidance(&["list"]).ok());
    let hook = demo.env.call_at(&link("ralph-stop-hook")).stdin("rubbish").run().answer();
    assert_eq!(hook, demo.env.call(Program::StopHook).stdin("rubbish").run().answer());
}

#[test]
fn keep_prints_the_path_of_the_project() {
    let demo = Demo::new();
    let shown = demo.call(&["--fast", "--keep"]).run().ok();
    let (_, place) = shown.split_once("The temporary project is in ").expect("its path");
    let root = PathBuf::from(place.lines().next().unwrap());
    assert_eq!(demo.left(), [root.file_name().unwrap().to_str().unwrap()]);
    assert_eq!(fs::read_to_string(root.join("tea/scones.txt")).unwrap(), "two scones\njam\n");
    assert_eq!(names_in(&root.join("prompts")), ["1.txt", "2.txt"]);
    assert!(fs::read_to_string(root.join("transcript.jsonl")).unwrap().contains("Stop hook feedback"));
    // As the demo suggests.
    let history = demo.env.call(Program::Ralph).args(&["history"]).cwd(&root.join("tea"));
    let history = history.var("RALPH_DATA_DIR", root.join("tea/../data")).run().ok();
    assert!(
        history.contains("bake scones for two") && history.contains("write a recipe for tea"),
        "{history}"
    );
}

#[test]
fn it_works_in_a_minimal_environment() {
    let demo = Demo::new();
    let whole = settled(demo.call(&["--fast"]).run());

    let homeless =
        demo.call(&["--fast"]).without("HOME").without("RALPH_DATA_DIR").without("RALPH_CONFIG_DIR");
    assert_eq!(settled(homeless.run()), whole, "no HOME");

    let tools = demo.env.base.join("tools");
    fs::create_dir(&tools).unwrap();
    symlink("/bin/sh", tools.join("sh")).unwrap();
    assert_eq!(
        settled(demo.call(&["--fast"]).var("PATH", &tools).run()),
        whole,
        "nothing but a shell, no git"
    );

    fs::set_permissions(&demo.env.project, fs::Permissions::from_mode(0o500)).unwrap();
    assert_eq!(settled(demo.call(&["--fast"]).run()), whole, "a read-only folder");

    let set = demo.call(&["--fast"]).var("RALPH_MAX_ITERATIONS", "1").var("RALPH_SCAN_ENABLED", "false");
    let set = set
        .var("CLAUDE_CODE_SESSION_ID", "mine")
        .var("CLAUDE_PROJECT_DIR", "/nowhere")
        .var("AI_AGENT", "claude-code_2-1-325_harness")
        .var("RALPH_RUN_ID", "run-of-the-demo");
    assert_eq!(settled(set.run()), whole, "the user's settings and session");
    assert_eq!(demo.left(), [""; 0]);
}

#[test]
fn a_repository_around_the_temporary_folder_is_left_alone() {
    let demo = Demo::new();
    demo.env.git_init(demo.temporary.path());
    let exclude = demo.temporary.path().join(".git/info/exclude");
    demo.call(&["--fast"]).run().ok();
    assert!(!exclude.exists(), "{}", fs::read_to_string(exclude).unwrap());
    assert_eq!(demo.left(), [".git"]);
}

#[test]
fn without_a_temporary_folder_it_prints_a_hint() {
    let demo = Demo::new();
    let said = demo.call(&["--fast"]).var("TMPDIR", "/nowhere").run().fails(70);
    assert!(said.contains("/nowhere/ralph-demo-") && said.contains("set TMPDIR"), "{said}");
}

#[test]
fn ctrl_c_ends_it_and_leaves_nothing() {
    let signals = [Signal::INT, Signal::TERM, Signal::HUP];
    let demos = signals.map(|signal| (Demo::new(), signal));
    let live = demos.each_ref().map(|(demo, _)| demo.call(&[]).spawn());
    for ((demo, signal), mut live) in demos.iter().zip(live) {
        // The clock stands still, so it goes no further.
        live.until("A whole loop");
        assert_eq!(demo.left().len(), 1, "it is running");
        live.signal(*signal);
        let run = live.wait();
        assert_eq!((run.code, run.stderr.as_str()), (Some(130), ""), "{run:?}");
        assert!(run.stdout.ends_with("The temporary project was removed.\n"), "{run:?}");
        assert_eq!(demo.left(), [""; 0]);
    }
}

#[test]
fn a_closed_pipe_ends_it() {
    let demo = Demo::new();
    // Only a demo that continues finds out.
    let piped = demo.env.real_time().call_at(Path::new("/bin/sh"));
    let line = format!("'{}' demo | head -n 1", Program::Ralph.path());
    let run = piped.args(&["-c", &line]).run().ok();
    assert!(run.starts_with("A whole loop"), "{run}");
    assert_eq!(demo.left(), [""; 0]);
}

#[test]
fn its_agent_works_only_in_the_demo() {
    let env = Env::new();
    let before = env.snapshot();
    let said = env.call(Program::Ralph).args(&["demo-agent"]).stdin("do it").run().fails(70);
    assert!(said.contains("only in the project of `ralph demo`"), "{said}");
    assert_eq!(env.snapshot(), before);
    assert!(!env.ralph(&["--help"]).ok().contains("demo-agent"), "and it is hidden");
}

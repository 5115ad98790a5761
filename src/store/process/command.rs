//! One command line of the user, run to its end.

pub use super::program::ProgramEnd;
use super::program::{Capture, Limits, supervise};
use super::{group, lookup};
use crate::core::text::clean;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How much of the end of the output is kept.
const MAX_TAIL_BYTES: usize = 4096;
/// Tells the command what it is run for. Not `RALPH_VERIFY`, which is the setting's own variable: a Ralph
/// within the command would take it for one.
pub const MARK: &str = "RALPH_VERIFYING";

#[derive(Clone, Debug)]
pub struct CommandResult {
    pub ended: ProgramEnd,
    /// The end of what it printed on stdout and stderr, safe to show.
    pub tail: String,
    pub took: Duration,
}

impl CommandResult {
    pub fn passed(&self) -> bool {
        self.ended == ProgramEnd::Exit(0)
    }

    pub fn not_started(why: impl Into<String>) -> CommandResult {
        CommandResult { ended: ProgramEnd::NotStarted(why.into()), tail: String::new(), took: Duration::ZERO }
    }
}

/// Returns the user's shell for one command line, in a process group of its own and without input.
pub fn shell(command: &str, dir: &Path) -> Command {
    #[cfg(not(windows))]
    let mut shell = {
        let mut shell = lookup::command("sh");
        shell.arg("-c").arg(command);
        shell
    };
    #[cfg(windows)]
    let mut shell = {
        let mut shell = lookup::command("cmd");
        // Quoted as for other programs, `cmd` would not understand it.
        std::os::windows::process::CommandExt::raw_arg(shell.arg("/C"), command);
        shell
    };
    shell.current_dir(dir).stdin(Stdio::null());
    group::make_group_leader(&mut shell);
    shell
}

/// Runs the command in `dir` until it ends or its limit is reached. What it started ends with it.
pub fn run(command: &str, dir: &Path, limit: Duration) -> CommandResult {
    run_unless(command, dir, limit, &|| false)
}

/// Runs a command as [`run`] does, and ends it as soon as `cancelled` returns true.
pub fn run_unless(command: &str, dir: &Path, limit: Duration, cancelled: &dyn Fn() -> bool) -> CommandResult {
    run_within(command, dir, Limits::of(limit), cancelled)
}

fn run_within(command: &str, dir: &Path, limits: Limits, cancelled: &dyn Fn() -> bool) -> CommandResult {
    let mut shell = shell(command, dir);
    let output = Capture::new(MAX_TAIL_BYTES).and_then(|(output, writer)| {
        shell.stdout(writer.try_clone()?).stderr(writer).env(MARK, "1");
        Ok([output])
    });
    let output = match output {
        Ok(output) => output,
        Err(error) => return CommandResult::not_started(error.to_string()),
    };
    match supervise(&mut shell, b"", limits, cancelled, &output) {
        (ProgramEnd::NotStarted(why), _) => {
            CommandResult::not_started(format!("in {}: {why}", dir.display()))
        }
        (ended, took) => CommandResult { ended, tail: tail(&output[0]), took },
    }
}

/// Returns the kept output as text. If it was cut, it begins with a whole line if one begins soon, and says so.
fn tail(output: &Capture) -> String {
    let (bytes, cut) = output.take();
    let mut bytes = bytes.as_slice();
    if cut {
        let soon = bytes.iter().take(MAX_TAIL_BYTES / 8).position(|byte| *byte == b'\n');
        let torn = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        bytes = &bytes[soon.map_or(torn, |at| at + 1)..];
    }
    let text = clean::output(&String::from_utf8_lossy(bytes));
    let text = text.trim_end();
    if cut { format!("…\n{text}") } else { text.to_owned() }
}

#[cfg(test)]
#[cfg(target_os = "linux")] // It looks into /proc.
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::time::Instant;

    /// Longer than anything here takes on a busy machine.
    const MAX_WAIT: Duration = Duration::from_secs(120);
    const PATIENT: Limits = Limits { run: MAX_WAIT, drain: MAX_WAIT, grace: MAX_WAIT };

    fn go(command: &str) -> CommandResult {
        run(command, Path::new("/"), MAX_WAIT)
    }

    /// Ends the command as soon as it has created the file `ready` in its folder.
    fn cancel_when_ready(command: &str, limits: Limits) -> CommandResult {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let run = run_within(command, folder.path(), limits, &|| ready.exists());
        assert_eq!(run.ended, ProgramEnd::Cancelled, "{}", run.tail);
        run
    }

    /// Returns the living processes of a group; zombies do not count.
    fn members(group: &str) -> Vec<String> {
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let of = |path: PathBuf| {
            let stat = fs::read_to_string(path.join("stat")).ok()?;
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
            (fields[2] == group && fields[0] != "Z").then_some(stat)
        };
        entries.filter_map(|entry| of(entry.path())).collect()
    }

    fn is_guarded(group: &str) -> bool {
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.into_iter().any(|line| line.contains(&format!("\0ralph-guard\0{group}\0")))
    }

    fn alive(pid: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    }

    fn wait_until(what: &str, done: impl Fn() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < MAX_WAIT, "not within {MAX_WAIT:?}: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn green_with_both_outputs_in_their_order() {
        let run = go("echo one; echo two >&2; echo three; cat");
        assert!(run.passed(), "{run:?}");
        assert_eq!(run.tail, "one\ntwo\nthree", "and stdin is empty, not ours");
    }

    #[test]
    fn a_command_that_fails_says_how() {
        for (command, ended, words) in [
            ("echo no; exit 3", ProgramEnd::Exit(3), "exit code 3"),
            ("kill -9 $$", ProgramEnd::Signal(9), "killed by signal 9"),
            ("/no/such/program", ProgramEnd::Exit(127), "exit code 127"),
            ("if", ProgramEnd::Exit(2), "exit code 2"),
        ] {
            let run = go(command);
            assert!(!run.passed());
            assert_eq!(
                (run.ended.to_string().as_str(), run.ended),
                (words, ended),
                "{command}: {}",
                run.tail
            );
        }
        assert!(go("/no/such/program").tail.contains("/no/such/program"), "the shell's words are kept");
    }

    #[test]
    fn it_runs_in_its_folder_with_our_variables() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let run =
            run("pwd; echo $RALPH_VERIFYING; [ -n \"$PATH\" ] && [ -z \"$RALPH_VERIFY\" ]", &root, MAX_WAIT);
        assert!(run.passed(), "{run:?}");
        assert_eq!(run.tail, format!("{}\n1", root.display()));
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        let gone = run("true", Path::new("/no/such/folder"), MAX_WAIT);
        assert!(
            matches!(&gone.ended, ProgramEnd::NotStarted(why) if why.contains("/no/such/folder")),
            "{gone:?}"
        );
        assert!(matches!(go("echo \0").ended, ProgramEnd::NotStarted(_)));
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_at_its_limit() {
        let limit = Duration::from_millis(10);
        assert_eq!(run("sleep 1000", Path::new("/"), limit).ended, ProgramEnd::TimedOut(limit));
    }

    #[test]
    fn the_whole_group_is_ended() {
        let run = cancel_when_ready("echo $$; sleep 1000 & sleep 1000 & touch ready; wait", PATIENT);
        assert_eq!(members(&run.tail), Vec::<String>::new(), "of group {}", run.tail);
    }

    #[test]
    fn a_group_deaf_to_sigterm_is_killed_after_its_grace() {
        let began = Instant::now();
        let run = cancel_when_ready(
            "trap '' TERM; echo $$; (trap '' TERM; sleep 1000) & touch ready; while :; do sleep 1; done",
            Limits::of(MAX_WAIT),
        );
        assert!(began.elapsed() > Duration::from_secs(2), "it had its grace");
        wait_until("the group is gone", || members(&run.tail).is_empty());
    }

    #[test]
    fn output_after_sigterm_is_kept() {
        let run = cancel_when_ready(
            "trap 'echo bye; exit 0' TERM; echo hi; touch ready; while :; do sleep 0.05; done",
            PATIENT,
        );
        assert!(!run.passed(), "an exit code after the end proves nothing");
        assert!(run.tail.starts_with("hi") && run.tail.ends_with("bye"), "{}", run.tail);
    }

    #[test]
    fn endless_output_is_bounded() {
        let run = cancel_when_ready(
            "yes 0123456789 | head -n 10000; touch ready; yes 0123456789",
            Limits::of(MAX_WAIT),
        );
        assert!(
            run.tail.len() <= MAX_TAIL_BYTES + "…\n".len() && run.tail.len() > MAX_TAIL_BYTES / 2,
            "{}",
            run.tail.len()
        );
        assert!(run.tail.starts_with("…\n0123456789\n"), "{}", &run.tail[..40]);
    }

    #[test]
    fn the_end_of_a_long_output_is_what_is_kept() {
        let run = go("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 1");
        assert!(run.tail.ends_with("line 2998\nline 2999"), "{}", run.tail);
        assert!(!run.tail.contains("line 1000\n"));
        let one_line = go("head -c 100000 /dev/zero | tr '\\0' x; echo; echo end");
        assert!(one_line.tail.ends_with("x\nend") && one_line.tail.len() > MAX_TAIL_BYTES / 2);
    }

    #[test]
    fn any_bytes_become_text_that_is_safe_to_show() {
        let run = go(r"printf 'a\377\376b \033[31mred\033[0m \033]0;title\007 50%%\r100%%\000\n'");
        assert_eq!(run.tail, "100%");
        let run = go(r"printf 'a\377b \033[31mred\033[0m\033]0;title\007\n'");
        assert_eq!(run.tail, "a\u{fffd}b red");
        // Three bytes each, so that the cut falls into one.
        let run = go("i=0; while [ $i -lt 5000 ]; do printf 测; i=$((i+1)); done");
        assert!(!run.tail.contains('\u{fffd}'), "{}", &run.tail[..20]);
    }

    #[test]
    fn a_command_that_closes_its_output_is_waited_for() {
        let run = go("echo out; exec >/dev/null 2>&1; sleep 0.3; exit 4");
        assert_eq!((run.ended, run.tail.as_str()), (ProgramEnd::Exit(4), "out"));
        assert!(run.took >= Duration::from_millis(300));
    }

    #[test]
    fn background_processes_are_ended_and_not_waited_for() {
        for held in ["sleep 1000 &", "sleep 1000 >/dev/null 2>&1 &"] {
            let run = go(&format!("{held} echo $!; exit 0"));
            assert!(run.passed(), "{held}: {run:?}");
            wait_until("it has ended", || !alive(&run.tail));
        }
    }

    #[test]
    fn a_process_that_left_the_group_with_the_pipe_does_not_hold_us() {
        let folder = tempfile::tempdir().unwrap();
        let left = "setsid sh -c 'echo $$ > new && mv new left; exec sleep 1000' &";
        let line = format!("{left} until [ -e left ]; do sleep 0.01; done; cat left");
        let run = run(&line, folder.path(), MAX_WAIT);
        assert!(run.passed() && alive(&run.tail), "{run:?}");
        Command::new("sh").args(["-c", "kill -s KILL \"$0\"", &run.tail]).status().unwrap();
    }

    #[test]
    fn output_from_the_background_is_kept() {
        let line = "(while kill -0 $$ 2>/dev/null; do sleep 0.05; done; echo late) & echo early";
        let run = run_within(line, Path::new("/"), PATIENT, &|| false);
        assert_eq!(run.tail, "early\nlate");
    }

    /// Not a test of its own: the process that the next test kills in the middle of a run.
    #[test]
    #[ignore = "started by another test"]
    fn killed_in_the_middle() {
        if let Some(folder) = std::env::var_os("RALPH_TEST_KILLED_IN") {
            run("trap '' TERM; sleep 1000 & echo $$ > group; wait; sleep 1000", Path::new(&folder), MAX_WAIT);
        }
    }

    #[test]
    fn when_we_are_killed_the_group_does_not_survive_us() {
        let killed_by = |signal: &str| {
            let folder = tempfile::tempdir().unwrap();
            let mut us = Command::new(std::env::current_exe().unwrap());
            us.args(["--exact", "store::process::command::tests::killed_in_the_middle", "--ignored"]);
            us.env("RALPH_TEST_KILLED_IN", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
            group::make_group_leader(&mut us);
            let mut us = us.spawn().unwrap();
            let group =
                || fs::read_to_string(folder.path().join("group")).unwrap_or_default().trim().to_owned();
            wait_until("the command runs", || !group().is_empty());
            wait_until("the guard is there", || is_guarded(&group()));
            // The shell's own `kill`: the program is missing on small systems.
            let kill = format!("kill -s {signal} -- -{}", us.id());
            let kill = Command::new("sh").args(["-c", &kill]).status();
            assert!(kill.unwrap().success());
            us.wait().unwrap();
            let group = group();
            wait_until("the group is gone", || members(&group).is_empty());
        };
        std::thread::scope(|scope| {
            for signal in ["TERM", "KILL"] {
                scope.spawn(move || killed_by(signal));
            }
        });
    }
}

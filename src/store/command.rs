//! One command line of the user's, run to its end: bounded in time and memory, and nothing of it left running.

use super::group::{self, Group};
use crate::core::{clean, time};
use std::fmt;
use std::io::{PipeReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// So much of the output is kept, from its end.
const KEPT: usize = 4096;
/// What is on its way when the command ends arrives within this time; who holds the pipe longer is not heard.
const DRAIN: Duration = Duration::from_millis(500);
/// How often it is asked whether somebody has cancelled it.
const LOOK: Duration = Duration::from_millis(250);
/// Says to the command what it is run for. Not `RALPH_VERIFY`, which is the setting's own variable: a Ralph
/// within the command would take it for one.
pub const MARK: &str = "RALPH_VERIFYING";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Exit(i32),
    Signal(i32),
    /// It was stopped after this time.
    TimedOut(Duration),
    /// The loop was stopped meanwhile.
    Cancelled,
    NotStarted(String),
}

#[derive(Clone, Debug)]
pub struct Run {
    pub ended: Ended,
    /// The end of what it printed on stdout and stderr, safe to show.
    pub tail: String,
    pub took: Duration,
}

impl Run {
    pub fn is_green(&self) -> bool {
        self.ended == Ended::Exit(0)
    }

    pub fn not_started(why: impl Into<String>) -> Run {
        Run { ended: Ended::NotStarted(why.into()), tail: String::new(), took: Duration::ZERO }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Exit(code) => write!(f, "exit code {code}"),
            Ended::Signal(signal) => write!(f, "killed by signal {signal}"),
            Ended::TimedOut(limit) => {
                let limit = time::span(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX));
                write!(f, "stopped, not finished after {limit}")
            }
            Ended::Cancelled => write!(f, "given up, the loop was stopped"),
            Ended::NotStarted(why) => write!(f, "not started: {why}"),
        }
    }
}

/// The user's shell for one command line, in a group of its own and without input.
pub fn shell(command: &str, dir: &Path) -> Command {
    #[cfg(not(windows))]
    let mut shell = {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command);
        shell
    };
    #[cfg(windows)]
    let mut shell = {
        let mut shell = Command::new("cmd");
        // Quoted as for other programs, `cmd` would not understand it.
        std::os::windows::process::CommandExt::raw_arg(shell.arg("/C"), command);
        shell
    };
    shell.current_dir(dir).stdin(Stdio::null());
    group::lead(&mut shell);
    shell
}

/// Runs the command in `dir` and waits for it, at most `limit`. What it started ends with it.
pub fn run(command: &str, dir: &Path, limit: Duration) -> Run {
    run_unless(command, dir, limit, &|| false)
}

/// The same, and ends it early where that is asked for.
pub fn run_unless(command: &str, dir: &Path, limit: Duration, cancelled: &dyn Fn() -> bool) -> Run {
    let began = Instant::now();
    let (child, output) = match start(command, dir) {
        Ok(started) => started,
        Err(error) => return Run::not_started(format!("in {}: {error}", dir.display())),
    };
    let group = Group::of(&child);
    let exit = match wait(child) {
        Ok(exit) => exit,
        Err(error) => {
            group.end();
            return Run::not_started(error.to_string());
        }
    };
    let ended = until(&exit, began, limit, cancelled);
    let took = began.elapsed();
    if matches!(ended, Ended::TimedOut(_) | Ended::Cancelled) {
        group.end();
    } else {
        // What it left in the background may still be at its last words.
        output.settle();
        group.end_rest();
    }
    output.settle();
    Run { ended, tail: output.tail(), took }
}

fn start(command: &str, dir: &Path) -> std::io::Result<(Child, Output)> {
    let (reader, writer) = std::io::pipe()?;
    let output = Output::of(reader)?;
    let mut shell = shell(command, dir);
    shell.stdout(writer.try_clone()?).stderr(writer).env(MARK, "1");
    // Our own ends of the pipe go with `shell`, so that it closes when the last writer is gone.
    Ok((shell.spawn()?, output))
}

/// Waits in a thread, so that the end is known at once and a limit can be kept.
pub(super) fn wait(mut child: Child) -> std::io::Result<Receiver<std::io::Result<ExitStatus>>> {
    let (sender, exit) = channel();
    Builder::new().spawn(move || sender.send(child.wait()))?;
    Ok(exit)
}

/// How it ended, at its limit at the latest, or as soon as that is asked for.
pub(super) fn until(
    exit: &Receiver<std::io::Result<ExitStatus>>,
    began: Instant,
    limit: Duration,
    cancelled: &dyn Fn() -> bool,
) -> Ended {
    loop {
        let left = limit.saturating_sub(began.elapsed());
        match exit.recv_timeout(left.min(LOOK)) {
            Ok(Ok(status)) => return ended(status),
            Ok(Err(error)) => return Ended::NotStarted(format!("its end is not known: {error}")),
            Err(_) if left.is_zero() => return Ended::TimedOut(limit),
            Err(_) if cancelled() => return Ended::Cancelled,
            Err(_) => {}
        }
    }
}

fn ended(status: ExitStatus) -> Ended {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Ended::Signal(signal);
    }
    Ended::Exit(status.code().unwrap_or(-1))
}

/// What a command prints, read to the end by a thread of its own so that the command never waits for us.
struct Output {
    tail: Arc<Mutex<Tail>>,
    over: Receiver<()>,
}

impl Output {
    fn of(mut pipe: PipeReader) -> std::io::Result<Output> {
        let tail = Arc::new(Mutex::new(Tail::default()));
        // Dropped by the thread at its end, and that is the message.
        let (sender, over) = channel();
        let kept = Arc::clone(&tail);
        Builder::new().spawn(move || {
            let _over = sender;
            let mut buffer = [0; 16 << 10];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(read) => kept.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..read]),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        })?;
        Ok(Output { tail, over })
    }

    /// Waits, a short while, until all is read.
    fn settle(&self) {
        let _ = self.over.recv_timeout(DRAIN);
    }

    fn tail(&self) -> String {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

/// The last bytes of a stream, however long it is.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    cut: bool,
}

impl Tail {
    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        let over = self.bytes.len().saturating_sub(KEPT);
        if over > 0 {
            self.bytes.drain(..over);
            self.cut = true;
        }
    }

    /// As text; where it was cut it begins with a whole line if one begins soon, and says so.
    fn text(&self) -> String {
        let mut bytes = self.bytes.as_slice();
        if self.cut {
            let soon = bytes.iter().take(KEPT / 8).position(|byte| *byte == b'\n');
            let torn = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
            bytes = &bytes[soon.map_or(torn, |at| at + 1)..];
        }
        let text = clean::output(&String::from_utf8_lossy(bytes));
        let text = text.trim_end();
        if self.cut { format!("…\n{text}") } else { text.to_owned() }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")] // It looks into /proc.
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const SOON: Duration = Duration::from_secs(20);

    fn go(command: &str, limit: Duration) -> Run {
        run(command, Path::new("/"), limit)
    }

    /// Processes of a group that are alive; who is dead and only not yet buried does not count.
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
            assert!(began.elapsed() < SOON, "not within {SOON:?}: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn green_with_both_outputs_in_their_order() {
        let run = go("echo one; echo two >&2; echo three; cat", SOON);
        assert!(run.is_green(), "{run:?}");
        assert_eq!(run.tail, "one\ntwo\nthree", "and stdin is empty, not ours");
    }

    #[test]
    fn red_says_how() {
        for (command, ended, words) in [
            ("echo no; exit 3", Ended::Exit(3), "exit code 3"),
            ("kill -9 $$", Ended::Signal(9), "killed by signal 9"),
            ("/no/such/program", Ended::Exit(127), "exit code 127"),
            ("if", Ended::Exit(2), "exit code 2"),
        ] {
            let run = go(command, SOON);
            assert!(!run.is_green());
            assert_eq!(
                (run.ended.to_string().as_str(), run.ended),
                (words, ended),
                "{command}: {}",
                run.tail
            );
        }
        assert!(go("/no/such/program", SOON).tail.contains("/no/such/program"), "the shell's words are kept");
    }

    #[test]
    fn it_runs_in_its_folder_with_our_variables_and_the_mark() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let run =
            run("pwd; echo $RALPH_VERIFYING; [ -n \"$PATH\" ] && [ -z \"$RALPH_VERIFY\" ]", &root, SOON);
        assert!(run.is_green(), "{run:?}");
        assert_eq!(run.tail, format!("{}\n1", root.display()));
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        let gone = run("true", Path::new("/no/such/folder"), SOON);
        assert!(matches!(&gone.ended, Ended::NotStarted(why) if why.contains("/no/such/folder")), "{gone:?}");
        assert!(matches!(go("echo \0", SOON).ended, Ended::NotStarted(_)));
    }

    #[test]
    fn the_limit_ends_the_whole_group() {
        let run = go("echo $$; sleep 1000 & sleep 1000 & wait", Duration::from_millis(300));
        assert_eq!(run.ended, Ended::TimedOut(Duration::from_millis(300)));
        assert!(run.took < SOON, "{run:?}");
        assert_eq!(members(&run.tail), Vec::<String>::new(), "of group {}", run.tail);
    }

    #[test]
    fn who_does_not_listen_is_killed() {
        let began = Instant::now();
        let run = go(
            "trap '' TERM; echo $$; (trap '' TERM; sleep 1000) & while :; do sleep 1; done",
            Duration::from_millis(300),
        );
        assert!(matches!(run.ended, Ended::TimedOut(_)));
        assert!(began.elapsed() > Duration::from_secs(2), "it had its grace");
        assert!(began.elapsed() < SOON);
        let group = run.tail.clone();
        wait_until("the group is gone", || members(&group).is_empty());
    }

    #[test]
    fn last_words_at_the_limit_are_heard() {
        let run = go(
            "trap 'echo bye; exit 0' TERM; echo hi; while :; do sleep 0.05; done",
            Duration::from_millis(300),
        );
        assert!(!run.is_green(), "an exit code after the limit proves nothing");
        assert!(run.tail.starts_with("hi") && run.tail.ends_with("bye"), "{}", run.tail);
    }

    #[test]
    fn endless_output_is_bounded_and_cut_by_the_limit() {
        let run = go("yes 0123456789", Duration::from_millis(500));
        assert!(matches!(run.ended, Ended::TimedOut(_)), "{:?}", run.ended);
        assert!(run.tail.len() <= KEPT + "…\n".len() && run.tail.len() > KEPT / 2, "{}", run.tail.len());
        assert!(run.tail.starts_with("…\n0123456789\n"), "{}", &run.tail[..40]);
    }

    #[test]
    fn memory_stays_flat() {
        let mut tail = Tail::default();
        (0..10_000).for_each(|_| tail.push(&[b'x'; 16 << 10]));
        assert!(tail.bytes.capacity() <= 64 << 10, "{}", tail.bytes.capacity());
    }

    #[test]
    fn the_end_of_a_long_output_is_what_is_kept() {
        let run = go("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 1", SOON);
        assert!(run.tail.ends_with("line 2998\nline 2999"), "{}", run.tail);
        assert!(!run.tail.contains("line 1000\n"));
        let one_line = go("head -c 100000 /dev/zero | tr '\\0' x; echo; echo end", SOON);
        assert!(one_line.tail.ends_with("x\nend") && one_line.tail.len() > KEPT / 2);
    }

    #[test]
    fn any_bytes_become_text_that_is_safe_to_show() {
        let run = go(r"printf 'a\377\376b \033[31mred\033[0m \033]0;title\007 50%%\r100%%\000\n'", SOON);
        assert_eq!(run.tail, "100%");
        let run = go(r"printf 'a\377b \033[31mred\033[0m\033]0;title\007\n'", SOON);
        assert_eq!(run.tail, "a\u{fffd}b red");
        // Three bytes each, so that the cut falls into one.
        let run = go("i=0; while [ $i -lt 5000 ]; do printf 测; i=$((i+1)); done", SOON);
        assert!(!run.tail.contains('\u{fffd}'), "{}", &run.tail[..20]);
    }

    #[test]
    fn a_command_that_closes_its_output_is_waited_for() {
        let run = go("echo out; exec >/dev/null 2>&1; sleep 0.3; exit 4", SOON);
        assert_eq!((run.ended, run.tail.as_str()), (Ended::Exit(4), "out"));
        assert!(run.took >= Duration::from_millis(300));
    }

    #[test]
    fn what_it_leaves_in_the_background_neither_holds_us_nor_stays() {
        for held in ["sleep 1000 &", "sleep 1000 >/dev/null 2>&1 &"] {
            let began = Instant::now();
            let run = go(&format!("{held} echo $!; exit 0"), SOON);
            assert!(run.is_green(), "{held}: {run:?}");
            assert!(began.elapsed() < Duration::from_secs(10), "{held}");
            assert!(!alive(&run.tail), "{held}: {} is still there", run.tail);
        }
    }

    #[test]
    fn who_left_the_group_with_the_pipe_does_not_hold_us() {
        let began = Instant::now();
        let run = go("setsid sleep 15 & echo ok", Duration::from_secs(60));
        assert!(run.is_green() && run.tail == "ok", "{run:?}");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn last_words_from_the_background_are_heard() {
        let run = go("(sleep 0.1; echo late) & echo early", SOON);
        assert_eq!(run.tail, "early\nlate");
    }

    /// Not a test of its own: the process that the next test kills in the middle of a run.
    #[test]
    fn killed_in_the_middle() {
        if let Some(folder) = std::env::var_os("RALPH_TEST_KILLED_IN") {
            run("trap '' TERM; sleep 1000 & echo $$ > group; wait; sleep 1000", Path::new(&folder), SOON * 3);
        }
    }

    #[test]
    fn when_we_are_killed_the_group_does_not_survive_us() {
        for signal in ["TERM", "KILL"] {
            let folder = tempfile::tempdir().unwrap();
            let mut us = Command::new(std::env::current_exe().unwrap());
            us.args(["--exact", "store::command::tests::killed_in_the_middle"]);
            us.env("RALPH_TEST_KILLED_IN", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
            group::lead(&mut us);
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
        }
    }
}

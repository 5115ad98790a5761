//! Another program, asked a question: bounded in time and memory, and nothing of it left running.

use super::command::{Ended, until, wait};
use super::group::{self, Group};
use crate::core::clean;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// So much of each output is kept, from its beginning.
const KEPT: u64 = 8 << 20;
/// What is on its way when the program ends arrives within this time; who holds the pipe longer is not heard.
const DRAIN: Duration = Duration::from_millis(500);

/// How it ended and what it said, as it said it: clean it before you show it.
#[derive(Clone, Debug)]
pub struct Said {
    pub ended: Ended,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Said {
    pub fn is_green(&self) -> bool {
        self.ended == Ended::Exit(0)
    }

    /// How it ended and what it complained of, in one line that is safe to show.
    pub fn complaint(&self) -> String {
        let said = if self.stderr.is_empty() { &self.stdout } else { &self.stderr };
        let said = clean::excerpt(&clean::output(said), 400);
        if said.is_empty() { self.ended.to_string() } else { format!("{said} ({})", self.ended) }
    }

    fn not_started(why: &std::io::Error) -> Said {
        let ended = Ended::NotStarted(why.to_string());
        Said { ended, stdout: String::new(), stderr: String::new(), took: Duration::ZERO }
    }
}

/// Runs it to its end, or to its limit.
pub fn run(mut command: Command, input: &[u8], limit: Duration) -> Said {
    ask(&mut command, input, limit, &|| false)
}

/// Runs it with this input, and waits at most `limit`, less where that is asked for.
pub fn ask(command: &mut Command, input: &[u8], limit: Duration, cancelled: &dyn Fn() -> bool) -> Said {
    let began = Instant::now();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    group::lead(command);
    let mut child = match spawn(command) {
        Ok(child) => child,
        Err(error) => return Said::not_started(&error),
    };
    let group = Group::of(&child);
    let started = pipes(&mut child, input.to_vec()).and_then(|pipes| Ok((pipes, wait(child)?)));
    let ((out, err), exit) = match started {
        Ok(started) => started,
        Err(error) => {
            group.kill();
            return Said::not_started(&error);
        }
    };
    let ended = until(&exit, began, limit, cancelled);
    let took = began.elapsed();
    if matches!(ended, Ended::Exit(_) | Ended::Signal(_)) {
        group.end_rest();
    } else {
        group.end();
    }
    let until = Instant::now() + DRAIN;
    let text = |pipe: &Receiver<Vec<u8>>| {
        let bytes = pipe.recv_timeout(until.saturating_duration_since(Instant::now()));
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    };
    Said { ended, stdout: text(&out), stderr: text(&err), took }
}

/// A program that was written a moment ago may still be open for writing in a process that is just being started.
fn spawn(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..50 {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
    command.spawn()
}

type Pipes = (Receiver<Vec<u8>>, Receiver<Vec<u8>>);

fn pipes(child: &mut Child, input: Vec<u8>) -> std::io::Result<Pipes> {
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read all of it is no error of ours.
        Builder::new().spawn(move || drop(stdin.write_all(&input)))?;
    }
    Ok((hear(child.stdout.take())?, hear(child.stderr.take())?))
}

/// Read to the end by a thread of its own, so that the program never waits for us; what is too much is dropped.
fn hear(pipe: Option<impl Read + Send + 'static>) -> std::io::Result<Receiver<Vec<u8>>> {
    let (sender, heard) = channel();
    if let Some(mut pipe) = pipe {
        Builder::new().spawn(move || {
            let mut kept = Vec::new();
            let _ = pipe.by_ref().take(KEPT).read_to_end(&mut kept);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
            let _ = sender.send(kept);
        })?;
    }
    Ok(heard)
}

/// The first program of this name in the folders of `PATH`, and then in `others`. A folder that is not absolute
/// would be one of the project's.
pub fn find(name: &str, others: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(others.iter().cloned()).collect();
    let names: &[&str] = if cfg!(windows) { &[".exe", ".cmd"] } else { &[""] };
    folders
        .iter()
        .filter(|folder| folder.is_absolute())
        .flat_map(|folder| names.iter().map(move |end| folder.join(format!("{name}{end}"))))
        .find(|program| is_program(program))
}

pub fn is_program(path: &Path) -> bool {
    let Ok(meta) = path.metadata() else { return false };
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    meta.is_file() && runs
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn sh(script: &str, input: &str, limit: Duration) -> Said {
        ask(Command::new("sh").args(["-c", script]), input.as_bytes(), limit, &|| false)
    }

    #[test]
    fn both_outputs_are_kept_apart_and_the_input_arrives() {
        let said = sh("cat; echo no >&2; exit 3", "hello", SOON);
        assert_eq!(
            (said.ended, said.stdout.as_str(), said.stderr.as_str()),
            (Ended::Exit(3), "hello", "no\n")
        );
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let began = Instant::now();
        let said = sh("sleep 60 & sleep 60", "", Duration::from_millis(300));
        assert!(matches!(said.ended, Ended::TimedOut(_)), "{said:?}");
        let said = ask(Command::new("sleep").arg("60"), b"", SOON, &|| true);
        assert_eq!(said.ended, Ended::Cancelled);
        let said = sh("sleep 60 & echo left it behind", "", SOON);
        assert_eq!((said.ended, said.stdout.as_str()), (Ended::Exit(0), "left it behind\n"));
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }

    #[test]
    fn a_flood_is_bounded() {
        let said = sh("head -c 20000000 /dev/zero", "", SOON);
        assert_eq!((said.ended, said.stdout.len() as u64), (Ended::Exit(0), KEPT));
    }

    #[test]
    fn a_missing_program_says_so() {
        let said = ask(&mut Command::new("/no/such/program"), b"", SOON, &|| false);
        assert!(matches!(said.ended, Ended::NotStarted(_)), "{said:?}");
    }
}

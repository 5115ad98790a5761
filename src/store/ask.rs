//! A program asked a question: what it prints, within a time. One that does not answer is ended, with all it started.

use super::group::{self, Group};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::Duration;

/// Its answer; nothing where it gave none in time.
pub fn ask(mut command: Command, limit: Duration) -> std::io::Result<Option<Output>> {
    group::lead(&mut command);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let group = Group::of(&child);
    let (sender, answer) = channel();
    Builder::new().spawn(move || sender.send(child.wait_with_output()))?;
    match answer.recv_timeout(limit) {
        Ok(output) => output.map(Some),
        Err(_) => {
            group.end();
            Ok(None)
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn sh(line: &str, limit: Duration) -> Option<Output> {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        ask(command, limit).unwrap()
    }

    #[test]
    fn an_answer_is_heard_and_silence_is_not_waited_for() {
        let told = sh("echo 2.1.0; echo hm >&2; exit 3", Duration::from_secs(60)).unwrap();
        assert_eq!(
            (told.status.code(), &*told.stdout, &*told.stderr),
            (Some(3), &b"2.1.0\n"[..], &b"hm\n"[..])
        );
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pids");
        for line in ["exec sleep 600", "sleep 600 & echo 2.1.0"] {
            let began = Instant::now();
            let line = format!("echo $$ > {}; {line}", file.display());
            assert!(sh(&line, Duration::from_millis(300)).is_none(), "{line}");
            assert!(began.elapsed() < Duration::from_secs(300), "{line}");
            let group = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
            let left =
                || rustix::process::test_kill_process_group(rustix::process::Pid::from_raw(group).unwrap());
            while left().is_ok() && began.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(left().is_err(), "{line}: something of it is left");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        assert!(ask(Command::new("/no/such/program"), Duration::from_secs(60)).is_err());
    }
}

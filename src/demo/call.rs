//! One program, started and listened to until its end: bounded in time, and ended with us.

use super::interrupt::Interrupt;
use crate::core::clean;
use crate::store::group::{self, Group};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// What a program said, and how it ended.
pub struct Said {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
}

impl Said {
    /// Its output, where it went well and had nothing to complain about.
    pub fn well(self, program: &str) -> Result<String> {
        if self.code == Some(0) && self.err.is_empty() {
            return Ok(self.out);
        }
        let code = self.code.map_or("killed".into(), |code| format!("exit code {code}"));
        bail!("{program} failed ({code}): {}", clean::excerpt(&format!("{} {}", self.err, self.out), 400))
    }
}

/// Far more than any step takes, so that a hook that hangs does not hang the demo.
const LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
/// Far more than our programs say.
const MOST: u64 = 1 << 20;

/// Starts it with this input; `each` gets every line of its output as it comes.
pub fn call(
    mut command: Command,
    input: &str,
    interrupt: &Interrupt,
    mut each: impl FnMut(&str) -> Result<()>,
) -> Result<Said> {
    let program = command.get_program().to_string_lossy().into_owned();
    group::lead(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{program} could not be started"))?;
    let group = Group::of(&child);
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ended = Builder::new().spawn(move || child.wait())?;
    let lines = lines_of(out)?;
    let errors = Builder::new().spawn(move || text_of(err))?;
    // A program that does not read its input is judged by what it says.
    let _ = stdin.map(|mut pipe| pipe.write_all(input.as_bytes()));
    let heard = listen(&program, &lines, &ended, interrupt, &mut each);
    if heard.is_err() {
        group.end();
    }
    let out = heard?;
    let status = ended.join().ok().transpose()?;
    let err = errors.join().unwrap_or_default();
    Ok(Said { out, err, code: status.and_then(|status| status.code()) })
}

/// Every line until the program has ended, or the reason to hear no more of it.
fn listen(
    program: &str,
    lines: &Receiver<String>,
    ended: &JoinHandle<std::io::Result<ExitStatus>>,
    interrupt: &Interrupt,
    each: &mut impl FnMut(&str) -> Result<()>,
) -> Result<String> {
    let (began, mut paused, mut heard) = (Instant::now(), Duration::ZERO, String::new());
    loop {
        interrupt.check()?;
        // What a reader needs to read is not the program's time.
        if began.elapsed().saturating_sub(paused) > LIMIT {
            bail!("{program} did not end within {} s", LIMIT.as_secs());
        }
        match lines.recv_timeout(LOOK) {
            Ok(line) => {
                let shown = Instant::now();
                each(&line)?;
                paused += shown.elapsed();
                heard.push_str(&line);
                heard.push('\n');
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if ended.is_finished() => return Ok(heard),
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn lines_of(pipe: Option<impl Read + Send + 'static>) -> Result<Receiver<String>> {
    let (sender, lines) = channel();
    Builder::new().spawn(move || {
        let Some(pipe) = pipe else { return };
        for line in BufReader::new(pipe.take(MOST)).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    })?;
    Ok(lines)
}

fn text_of(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.map(|pipe| pipe.take(MOST).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

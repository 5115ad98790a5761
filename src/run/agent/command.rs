//! Any program that takes the prompt on stdin and prints text, as a command line for the shell.

use super::failure::last_error_line;
use super::{Abilities, AgentEvent, AgentFailure, AgentProgram, MAX_ANSWER_WAIT, OutputReader, Unavailable};
use crate::core::signal;
use crate::core::text::clean;
use crate::run::process::target::Target;
use crate::store::process::program::{self, ProgramEnd};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellCommand(pub String);

impl AgentProgram for ShellCommand {
    fn name(&self) -> String {
        clean::excerpt(&self.0, 60)
    }

    fn abilities(&self) -> Abilities {
        Abilities { resumes: false, reports_tools: false }
    }

    fn command_line(&self, _: Option<&str>) -> Vec<String> {
        let shell = if cfg!(windows) { ["cmd", "/C"] } else { ["sh", "-c"] };
        shell.into_iter().chain([self.0.as_str()]).map(str::to_owned).collect()
    }

    /// Asks the shell for the program that the line begins with: without it every iteration would fail alike.
    fn check(&self, target: &Target, project: &Path) -> Result<(), Unavailable> {
        const ASK: [&str; 4] = ["sh", "-c", "command -v \"$1\"", "sh"];
        let Some(word) = first_word(&self.0).filter(|_| cfg!(unix)) else { return Ok(()) };
        let words: Vec<String> = ASK.into_iter().chain([word]).map(str::to_owned).collect();
        match program::run(target.command(&words, project, "ask"), b"", MAX_ANSWER_WAIT).ended {
            ProgramEnd::Exit(code) if code != 0 => {
                let place = target.container().map_or_else(String::new, |name| format!(" in {name}"));
                let hint = "install it, or give --agent-command the path of your agent";
                Err(Unavailable::new(format!("{word} was not found{place}"), hint))
            }
            _ => Ok(()),
        }
    }

    fn reader(&self, shown: bool) -> Box<dyn OutputReader> {
        Box::new(TextReader { shown, ..TextReader::default() })
    }
}

/// Returns the program that a command line begins with, if that can be told without a shell.
fn first_word(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let end = line.find(|c: char| c.is_whitespace() || ";|&<>()".contains(c)).unwrap_or(line.len());
    let rest = &line[end..];
    let number = line[..end].bytes().all(|b| b.is_ascii_digit());
    // The line defines what it calls, or begins with a redirection.
    if rest.trim_start().starts_with('(') || (number && rest.starts_with(['<', '>'])) {
        return None;
    }
    let plain = |c: char| c.is_alphanumeric() || "_./+-".contains(c);
    Some(&line[..end]).filter(|word| !word.is_empty() && !word.starts_with('-') && word.chars().all(plain))
}

/// An output of at most so many lines is all that a program said before it failed.
const MAX_LAST_WORDS_LINES: usize = 3;
/// How much of the end of the output is the agent's message.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// A longer line is shown in pieces.
const MAX_LINE_BYTES: usize = 8 << 10;

#[derive(Default)]
struct TextReader {
    shown: bool,
    tail: Tail,
    error_tail: Tail,
    stdout: Pieces,
    stderr: Pieces,
}

impl OutputReader for TextReader {
    fn stdout(&mut self, chunk: &[u8], emit: &mut dyn FnMut(AgentEvent<'_>)) {
        self.tail.add(chunk);
        if self.shown {
            self.stdout.read(chunk, emit);
        }
    }

    /// Shows stderr, which is not part of the agent's message.
    fn stderr(&mut self, chunk: &[u8], emit: &mut dyn FnMut(AgentEvent<'_>)) {
        self.error_tail.add(chunk);
        if self.shown {
            self.stderr.read(chunk, emit);
        }
    }

    fn finish(&mut self, failed: bool, emit: &mut dyn FnMut(AgentEvent<'_>)) {
        self.stdout.flush(emit);
        self.stderr.flush(emit);
        let message = self.tail.text();
        if failed {
            failure(&self.error_tail.text(), &message).into_iter().for_each(&mut *emit);
        }
        emit(AgentEvent::Result(Some(message)));
    }
}

/// Returns why a call failed: by its last words on stderr, else by an error at the end of stdout.
fn failure(stderr: &str, stdout: &str) -> Option<AgentEvent<'static>> {
    for text in [stderr, stdout] {
        if let Some(failure) = AgentFailure::of_output(text) {
            return Some(AgentEvent::Failed(failure, last_error_line(text).unwrap_or_default()));
        }
    }
    // On stdout is the agent's message, and the last line of a long one is seldom an error.
    let said = || stdout.lines().filter(|line| !line.trim().is_empty());
    // A signal is the agent's own word.
    let is_short = || said().count() <= MAX_LAST_WORDS_LINES && !stdout.contains("<promise>");
    let error =
        || last_error_line(stdout).filter(|line| signal::error_signature(line).is_some() || is_short());
    let words = last_error_line(stderr).or_else(error)?;
    Some(AgentEvent::Failed(AgentFailure::Other(words.clone()), words))
}

/// At least the last [`MAX_MESSAGE_BYTES`] of a stream.
#[derive(Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    pub(super) fn add(&mut self, chunk: &[u8]) {
        let end = &chunk[chunk.len().saturating_sub(MAX_MESSAGE_BYTES)..];
        // The surplus is removed seldom, so that few bytes are moved more than once.
        if self.0.len() + end.len() > 4 * MAX_MESSAGE_BYTES {
            let kept = MAX_MESSAGE_BYTES - end.len();
            self.0.drain(..self.0.len().saturating_sub(kept));
        }
        self.0.extend_from_slice(end);
    }

    pub(super) fn text(&self) -> String {
        let end = &self.0[self.0.len().saturating_sub(MAX_MESSAGE_BYTES)..];
        clean::output(&String::from_utf8_lossy(end))
    }
}

/// Cuts output at line ends, and long lines into pieces.
#[derive(Default)]
struct Pieces {
    /// A line that has not ended yet.
    open: Vec<u8>,
}

impl Pieces {
    fn read(&mut self, chunk: &[u8], emit: &mut dyn FnMut(AgentEvent<'_>)) {
        let mut rest = chunk;
        if let (Some(first), Some(last)) = (memchr::memchr(b'\n', chunk), memchr::memrchr(b'\n', chunk)) {
            let mut whole = &chunk[..last];
            if !self.open.is_empty() {
                self.open.extend_from_slice(&chunk[..first]);
                self.flush(emit);
                whole = chunk.get(first + 1..last).unwrap_or_default();
            }
            // Whole lines are not copied: there may be a gigabyte of them.
            if !whole.is_empty() {
                emit(AgentEvent::Output(readable(whole)));
            }
            rest = &chunk[last + 1..];
        }
        self.open.extend_from_slice(&rest[..rest.len().min(MAX_LINE_BYTES)]);
        if self.open.len() >= MAX_LINE_BYTES {
            self.flush(emit);
        }
    }

    fn flush(&mut self, emit: &mut dyn FnMut(AgentEvent<'_>)) {
        if !self.open.is_empty() {
            emit(AgentEvent::Output(readable(&self.open)));
            self.open.clear();
        }
    }
}

/// Checks for UTF-8 first, because replacing what is not is slow.
fn readable(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::agent::AgentReport;

    fn reader(shown: bool) -> TextReader {
        TextReader { shown, ..TextReader::default() }
    }

    fn message(reader: &mut TextReader) -> Option<String> {
        let mut report = AgentReport::default();
        reader.finish(false, &mut |event| report.add(event));
        report.message().map(str::to_owned)
    }

    #[test]
    fn the_program_of_a_command_line() {
        for (line, word) in [
            ("agent --fast", Some("agent")),
            ("  ./my-agent.sh|tee log", Some("./my-agent.sh")),
            ("/opt/a+b/agent", Some("/opt/a+b/agent")),
            ("cat; echo x", Some("cat")),
            ("(cat)", None),
            ("2>/dev/null cat", None),
            ("<in cat", None),
            ("tidy() { rm x; }; cat", None),
            ("tidy () { rm x; }; cat", None),
            ("\"my agent\" x", None),
            ("KEY=1 agent", None),
            ("$AGENT", None),
            ("-x", None),
            (" ", None),
        ] {
            assert_eq!(first_word(line), word, "{line}");
        }
    }

    #[test]
    fn text_is_shown_in_whole_lines_and_its_end_is_the_message() {
        for shown in [true, false] {
            let (mut reader, mut report, mut lines) = (reader(shown), AgentReport::default(), Vec::new());
            let mut emit = |event: AgentEvent<'_>| match event {
                AgentEvent::Output(text) => lines.push(text.into_owned()),
                event => report.add(event),
            };
            for chunk in ["one\ntw", "o\n\n3\nfo", "u", "r\n", "a\u{e4}", "b"] {
                reader.stdout(chunk.as_bytes(), &mut emit);
            }
            reader.finish(false, &mut emit);
            let all = ["one", "two", "\n3", "four", "a\u{e4}b"];
            assert_eq!(lines, if shown { &all[..] } else { &[] });
            assert_eq!(report.message(), Some("one\ntwo\n\n3\nfour\na\u{e4}b"));
        }
    }

    #[test]
    fn the_message_is_the_end_of_everything_in_whatever_pieces_it_comes() {
        const MAX: usize = MAX_MESSAGE_BYTES;
        let all: Vec<u8> = (0..40 * MAX).map(|n| b'a' + u8::try_from(n % 23).unwrap()).collect();
        for size in [1000, MAX - 1, MAX, MAX + 1, 3 * MAX, 4 * MAX + 7, 40 * MAX] {
            let mut reader = reader(false);
            all.chunks(size).for_each(|chunk| reader.stdout(chunk, &mut |_| {}));
            let message = message(&mut reader).unwrap();
            assert!(message.as_bytes() == &all[all.len() - MAX..], "in pieces of {size}");
        }
        assert_eq!(message(&mut reader(false)), None, "nothing was printed");
    }

    #[test]
    fn a_program_that_fails_is_quoted_also_if_its_words_are_on_stdout() {
        let words = |stderr: &str, stdout: &str| match failure(stderr, stdout) {
            Some(AgentEvent::Failed(AgentFailure::Other(_), words)) => words,
            _ => String::new(),
        };
        assert_eq!(words("", "Prompt is too long\n"), "Prompt is too long");
        assert_eq!(words("", "one\n\ntwo\nPrompt is too long\n\n"), "Prompt is too long");
        assert_eq!(words("", "one\ntwo\nthree\nI looked at the tests.\n"), "", "an agent's message");
        assert_eq!(words("", "one\ntwo\nthree\nerror: no such model\n"), "error: no such model");
        assert_eq!(words("no key\n", "Prompt is too long\n"), "no key");
        assert_eq!(words("", " \n"), "");
        assert_eq!(words("", "<promise>COMPLETE</promise>\n"), "", "a signal");
    }

    #[test]
    fn an_endless_line_needs_bounded_memory() {
        let (mut reader, mut shown) = (reader(true), 0);
        for _ in 0..100 {
            reader.stdout(&vec![b'x'; 1 << 20], &mut |_| shown += 1);
        }
        assert!(reader.tail.0.capacity() < 1 << 20 && reader.stdout.open.len() <= MAX_LINE_BYTES);
        assert!(shown >= 100);
    }
}

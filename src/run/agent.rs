//! The agent program: how it is called, and how its output is understood.

use crate::claude::stream::{Event, Failure, Lines, Tally};
use crate::core::clean;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Which program works, and with what arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Agent {
    Claude(Claude),
    /// Any program that takes the prompt on stdin and prints text, as a line for the shell.
    Command(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claude {
    /// The program; `claude` on the path where nothing else was said.
    pub program: String,
    pub model: Option<String>,
    pub permission_mode: Option<String>,
    pub allowed_tools: Vec<String>,
    /// Passed on as they are.
    pub extra: Vec<String>,
}

/// The program that a command line begins with, where that can be told without a shell.
pub fn first_word(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let end = line.find(|c: char| c.is_whitespace() || ";|&<>()".contains(c)).unwrap_or(line.len());
    let behind = &line[end..];
    let number = line[..end].bytes().all(|b| b.is_ascii_digit());
    // The line defines what it calls, or begins with a redirection.
    if behind.trim_start().starts_with('(') || (number && behind.starts_with(['<', '>'])) {
        return None;
    }
    let plain = |c: char| c.is_alphanumeric() || "_./+-".contains(c);
    Some(&line[..end]).filter(|word| !word.is_empty() && !word.starts_with('-') && word.chars().all(plain))
}

impl Agent {
    /// The words of the call. `session` is the conversation to go on with, where there is one.
    pub fn words(&self, session: Option<&str>) -> Vec<String> {
        match self {
            Agent::Command(line) if cfg!(windows) => vec!["cmd".into(), "/C".into(), line.clone()],
            Agent::Command(line) => vec!["sh".into(), "-c".into(), line.clone()],
            Agent::Claude(claude) => {
                let mut words: Vec<String> =
                    [claude.program.as_str(), "-p", "--output-format", "stream-json", "--verbose"]
                        .map(str::to_owned)
                        .to_vec();
                let mut option = |name: &str, value: &str| words.extend([name.to_owned(), value.to_owned()]);
                session.inspect(|session| option("--resume", session));
                claude.model.iter().for_each(|model| option("--model", model));
                claude.permission_mode.iter().for_each(|mode| option("--permission-mode", mode));
                if !claude.allowed_tools.is_empty() {
                    option("--allowedTools", &claude.allowed_tools.join(","));
                }
                words.extend(claude.extra.iter().cloned());
                words
            }
        }
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            Agent::Claude(claude) => claude.program.clone(),
            Agent::Command(line) => clean::excerpt(line, 60),
        }
    }

    /// An ear for one iteration. `shown` says whether anybody looks at plain text: where nobody does, it is not
    /// looked into.
    pub fn ear(&self, shown: bool) -> Ear {
        match self {
            Agent::Claude(_) => Ear::Stream(Box::default()),
            Agent::Command(_) => Ear::Text(Text { shown, ..Text::default() }),
        }
    }
}

/// Something to show.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard<'h> {
    Text(Cow<'h, str>),
    Tool { name: String, summary: String },
    Retry { attempt: u64, status: Option<u16> },
}

/// Listens to what one iteration prints, in bounded memory.
pub enum Ear {
    Stream(Box<Stream>),
    Text(Text),
}

#[derive(Default)]
pub struct Stream {
    lines: Lines,
    pub tally: Tally,
}

#[derive(Default)]
pub struct Text {
    shown: bool,
    /// The last part of all that was printed.
    tail: Vec<u8>,
    out: Pieces,
    err: Pieces,
}

/// Lines to be shown, long ones in pieces.
#[derive(Default)]
struct Pieces {
    /// A line that has not ended yet.
    open: Vec<u8>,
}

/// Of an agent that prints text, so much of the end is its message.
const MESSAGE: usize = 64 << 10;
/// A line longer than this is shown in pieces.
const LINE: usize = 8 << 10;

impl Ear {
    pub fn hear(&mut self, chunk: &[u8], mut each: impl FnMut(Heard)) {
        match self {
            Ear::Stream(stream) => {
                let Stream { lines, tally } = &mut **stream;
                lines.feed(chunk, |line| {
                    for event in line.events() {
                        heard(&event).into_iter().for_each(&mut each);
                        tally.add(event);
                    }
                });
            }
            Ear::Text(text) => text.hear(chunk, each),
        }
    }

    /// What the program prints on stderr: to be shown, but no word of the agent.
    pub fn overhear(&mut self, chunk: &[u8], each: impl FnMut(Heard)) {
        if let Ear::Text(text) = self
            && text.shown
        {
            text.err.hear(chunk, each);
        }
    }

    /// The output is over: what stood in an open line counts too.
    pub fn finish(&mut self, mut each: impl FnMut(Heard)) {
        match self {
            Ear::Stream(stream) => {
                let Stream { lines, tally } = &mut **stream;
                lines.finish(|line| {
                    for event in line.events() {
                        heard(&event).into_iter().for_each(&mut each);
                        tally.add(event);
                    }
                });
            }
            Ear::Text(text) => {
                text.out.flush(&mut each);
                text.err.flush(&mut each);
            }
        }
    }

    /// What the agent said last; nothing where it said nothing.
    pub fn message(&self) -> Option<String> {
        match self {
            Ear::Stream(stream) => stream.tally.message().map(str::to_owned),
            Ear::Text(text) => {
                let message = clean::output(&String::from_utf8_lossy(text.message()));
                Some(message).filter(|message| !message.trim().is_empty())
            }
        }
    }

    pub fn tally(&self) -> Option<&Tally> {
        match self {
            Ear::Stream(stream) => Some(&stream.tally),
            Ear::Text(_) => None,
        }
    }

    pub fn failure(&self) -> Option<Failure> {
        self.tally().and_then(Tally::failure)
    }

    /// Tools and background work that may take their time in silence.
    pub fn running(&self) -> usize {
        self.tally().map_or(0, Tally::running)
    }

    /// The agent has said its last word, and nothing of it goes on.
    pub fn is_over(&self) -> bool {
        self.tally().is_some_and(|tally| tally.result.is_some() && tally.running() == 0)
    }
}

fn heard(event: &Event) -> Option<Heard<'_>> {
    Some(match event {
        Event::Text(text) => Heard::Text(Cow::Borrowed(text)),
        Event::ToolStarted { name, summary, .. } => {
            Heard::Tool { name: name.clone(), summary: summary.clone() }
        }
        Event::Retry { attempt, error_status, .. } => {
            Heard::Retry { attempt: *attempt, status: *error_status }
        }
        _ => return None,
    })
}

impl Text {
    fn hear(&mut self, chunk: &[u8], each: impl FnMut(Heard)) {
        // Only the end of a chunk can be in the end of everything.
        let end = &chunk[chunk.len().saturating_sub(MESSAGE)..];
        // What is surplus goes seldom, so that few bytes are moved more than once.
        if self.tail.len() + end.len() > 4 * MESSAGE {
            let kept = MESSAGE - end.len();
            self.tail.drain(..self.tail.len().saturating_sub(kept));
        }
        self.tail.extend_from_slice(end);
        if self.shown {
            self.out.hear(chunk, each);
        }
    }

    fn message(&self) -> &[u8] {
        &self.tail[self.tail.len().saturating_sub(MESSAGE)..]
    }
}

impl Pieces {
    fn hear(&mut self, chunk: &[u8], mut each: impl FnMut(Heard)) {
        let mut rest = chunk;
        if let (Some(first), Some(last)) = (memchr::memchr(b'\n', chunk), memchr::memrchr(b'\n', chunk)) {
            let mut whole = &chunk[..last];
            if !self.open.is_empty() {
                self.open.extend_from_slice(&chunk[..first]);
                self.flush(&mut each);
                whole = chunk.get(first + 1..last).unwrap_or_default();
            }
            // Whole lines are shown where they lie: there may be a gigabyte of them.
            if !whole.is_empty() {
                each(Heard::Text(readable(whole)));
            }
            rest = &chunk[last + 1..];
        }
        self.open.extend_from_slice(&rest[..rest.len().min(LINE)]);
        if self.open.len() >= LINE {
            self.flush(&mut each);
        }
    }

    fn flush(&mut self, each: &mut impl FnMut(Heard)) {
        if !self.open.is_empty() {
            each(Heard::Text(readable(&self.open)));
            self.open.clear();
        }
    }
}

/// Replacing what is not UTF-8 is slow, and seldom needed.
fn readable(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn claude_is_called_with_what_was_asked_for() {
        let claude = Claude { program: "claude".into(), ..Claude::default() };
        let words = |claude: &Claude, session| Agent::Claude(claude.clone()).words(session).join(" ");
        assert_eq!(words(&claude, None), "claude -p --output-format stream-json --verbose");
        let full = Claude {
            model: Some("opus".into()),
            permission_mode: Some("acceptEdits".into()),
            allowed_tools: vec!["Bash".into(), "Edit".into()],
            extra: vec!["--add-dir".into(), "/x".into()],
            ..claude
        };
        assert_eq!(
            words(&full, Some("s")),
            "claude -p --output-format stream-json --verbose --resume s --model opus --permission-mode \
             acceptEdits --allowedTools Bash,Edit --add-dir /x"
        );
    }

    #[test]
    fn text_is_heard_in_whole_lines_and_remembered_from_its_end() {
        for shown in [true, false] {
            let mut ear = Agent::Command("x".into()).ear(shown);
            let mut lines = Vec::new();
            let mut show = |heard: Heard| match heard {
                Heard::Text(text) => lines.push(text.into_owned()),
                other => panic!("{other:?}"),
            };
            for chunk in ["one\ntw", "o\n\n3\nfo", "u", "r\n", "a\u{e4}", "b"] {
                ear.hear(chunk.as_bytes(), &mut show);
            }
            ear.finish(&mut show);
            let all = ["one", "two", "\n3", "four", "a\u{e4}b"];
            assert_eq!(lines, if shown { &all[..] } else { &[] });
            assert_eq!(ear.message().as_deref(), Some("one\ntwo\n\n3\nfour\na\u{e4}b"));
        }
    }

    #[test]
    fn the_message_is_the_end_of_everything_however_it_comes() {
        let all: Vec<u8> = (0..40 * MESSAGE).map(|n| b'a' + u8::try_from(n % 23).unwrap()).collect();
        for size in [1000, MESSAGE - 1, MESSAGE, MESSAGE + 1, 3 * MESSAGE, 4 * MESSAGE + 7, 40 * MESSAGE] {
            let mut ear = Agent::Command("x".into()).ear(false);
            all.chunks(size).for_each(|chunk| ear.hear(chunk, |_| {}));
            let message = ear.message().unwrap();
            assert!(message.as_bytes() == &all[all.len() - MESSAGE..], "in pieces of {size}");
        }
    }

    #[test]
    fn an_endless_line_is_no_endless_memory() {
        let mut ear = Agent::Command("x".into()).ear(true);
        let mut shown = 0;
        for _ in 0..100 {
            ear.hear(&vec![b'x'; 1 << 20], |_| shown += 1);
        }
        let Ear::Text(text) = &ear else { panic!() };
        assert!(text.tail.capacity() < 1 << 20 && text.out.open.len() <= LINE);
        assert!(shown >= 100);
    }
}

//! What a run shows while it goes on: for a terminal, for a pipe, for a script, or nothing.

use super::agent::Heard;
use super::terminal;
use crate::core::clean;
use crate::core::heartbeat::Beat;
use crate::core::time;
use crate::view::paint;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Lines, and below them one that is kept up to date.
    Live,
    Lines,
    /// Only the ending.
    Quiet,
    /// Events, one JSON object a line.
    Json,
}

impl Style {
    pub fn chosen(quiet: bool, json: bool) -> Style {
        match (json, quiet) {
            (true, _) => Style::Json,
            (_, true) => Style::Quiet,
            _ if std::io::stdout().is_terminal() => Style::Live,
            _ => Style::Lines,
        }
    }
}

pub struct Screen {
    style: Style,
    colour: bool,
    /// Where the run stands, for the line that is kept up to date.
    pub position: String,
    /// The line is on the screen now.
    shown: bool,
    pub iteration: u64,
    pub run_id: String,
}

const LONGEST_TOOL: usize = 100;
/// Empties the line the cursor is in.
const ERASE: &str = "\r\u{1b}[K";

impl Screen {
    pub fn new(style: Style, colour: bool, run_id: &str) -> Screen {
        let run_id = run_id.to_owned();
        Screen { style, colour, position: String::new(), shown: false, iteration: 0, run_id }
    }

    /// Whether anybody sees what the agent prints.
    pub fn shows_text(&self) -> bool {
        self.style != Style::Quiet
    }

    /// A line for people.
    pub fn say(&mut self, text: &str) {
        if matches!(self.style, Style::Live | Style::Lines) {
            self.print(&clean::block(text));
        }
    }

    /// Something to know, for people and for scripts.
    pub fn note(&mut self, text: &str) {
        self.tell("note", text);
    }

    /// The same about something that went wrong.
    pub fn warn(&mut self, text: &str) {
        self.tell("warning", text);
    }

    fn tell(&mut self, kind: &str, text: &str) {
        self.say(&format!("Ralph: {text}"));
        self.event(kind, json!({"iteration": self.iteration, "message": clean::block(text)}));
    }

    /// An event for scripts.
    pub fn event(&mut self, kind: &str, mut fields: Value) {
        if self.style == Style::Json {
            fields["event"] = kind.into();
            fields["run_id"] = self.run_id.as_str().into();
            self.print(&fields.to_string());
        }
    }

    /// The last words, which also a quiet run says.
    pub fn conclude(&mut self, text: &str) {
        if self.style != Style::Json {
            self.print(text);
        }
    }

    fn print(&mut self, text: &str) {
        // The line that is kept up to date stands there, or the `^C` that the terminal shows for the key.
        let erased = if self.is_live() { ERASE } else { "" };
        self.shown = false;
        let mut out = std::io::stdout().lock();
        // A reader that went away is no reason to end the run.
        let _ = write!(out, "{erased}");
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    /// A line can be kept up to date: on a terminal, where its user looks at us and not at a shell.
    fn is_live(&self) -> bool {
        self.style == Style::Live && terminal::in_front(std::io::stdout())
    }

    /// The user pressed Enter, which moved on from the line that is kept up to date and left it behind.
    pub fn entered(&mut self) {
        if std::mem::take(&mut self.shown) {
            let mut out = std::io::stdout().lock();
            let _ = write!(out, "\u{1b}[A{ERASE}").and_then(|()| out.flush());
        }
    }

    /// Shows the line that is kept up to date; elsewhere nothing.
    pub fn live(&mut self, text: &str) {
        if !self.is_live() {
            return;
        }
        let width = paint::columns().saturating_sub(1);
        let text = clean::excerpt(text, width);
        let text = if self.colour { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text };
        let mut out = std::io::stdout().lock();
        let _ = write!(out, "{ERASE}{text}").and_then(|()| out.flush());
        self.shown = true;
    }

    pub fn heard(&mut self, heard: &Heard) {
        let iteration = self.iteration;
        match heard {
            // There may be a gigabyte of it.
            Heard::Text(text) => match self.style {
                Style::Live | Style::Lines if clean::is_plain(text) => self.print(text.trim_end()),
                Style::Live | Style::Lines => self.print(&clean::output(text.trim_end())),
                Style::Json => {
                    self.event("text", json!({"iteration": iteration, "text": clean::block(text)}))
                }
                Style::Quiet => {}
            },
            Heard::Tool { name, summary } => {
                let line = clean::excerpt(&format!("{name} {summary}"), LONGEST_TOOL);
                let line = if self.colour {
                    format!("\u{1b}[36m  > {line}\u{1b}[0m")
                } else {
                    format!("  > {line}")
                };
                if matches!(self.style, Style::Live | Style::Lines) {
                    self.print(&line);
                }
                self.event("tool", json!({"iteration": iteration, "name": name, "summary": summary}));
            }
            Heard::Retry { attempt, status } => {
                let status = status.map_or("no connection".into(), |status| format!("status {status}"));
                self.say(&format!("  the model cannot be reached ({status}), attempt {attempt}"));
                self.event("retry", json!({"iteration": iteration, "attempt": attempt, "status": status}));
            }
        }
    }

    pub fn beat(&mut self, beat: &Beat) {
        let message = beat.message(self.iteration);
        self.say(&message);
        let kind = if matches!(beat, Beat::Warning { .. }) { "heartbeat_warning" } else { "stall_detected" };
        self.event(kind, json!({"iteration": self.iteration, "message": message}));
        let _ = writeln!(std::io::stderr().lock(), "{}", beat.record(self.iteration, &self.run_id));
    }

    pub fn tick(&mut self, elapsed: Duration, silence: Duration) {
        let span = |span: Duration| time::span(i64::try_from(span.as_millis()).unwrap_or(i64::MAX));
        let (position, elapsed, silence) = (&self.position, span(elapsed), span(silence));
        let whole = format!("{position} · {elapsed} elapsed · last output {silence} ago");
        // A usual terminal has no room for that, and the silence is what one looks for.
        let short = format!("{position} · {elapsed} · {silence} silent");
        self.live(if whole.chars().count() < paint::columns() { &whole } else { &short });
    }
}

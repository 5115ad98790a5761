//! What a run shows meanwhile: on a terminal, in a pipe, for a script, or nothing.

use super::agent::AgentEvent;
use super::terminal;
use crate::core::event::{self, Event, EventKind, Warning};
use crate::core::text::clean;
use crate::core::time;
use crate::core::time::heartbeat::SilenceReport;
use crate::store::events;
use crate::store::process::checks::CheckRun;
use crate::store::process::command::ProgramEnd;
use crate::store::world::World;
use crate::view::paint;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Lines, and below them a status line that is updated.
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

pub struct RunOutput {
    world: World,
    style: Style,
    colour: bool,
    /// The position of the run, for the status line.
    pub position: String,
    /// The status line is on the screen now.
    status_shown: bool,
    pub iteration: u64,
    pub run_id: String,
}

const MAX_TOOL_CHARS: usize = 100;
/// How much of a failed check's output is shown.
const MAX_CHECK_LINES: usize = 5;
/// Clears the line of the cursor.
const ERASE: &str = "\r\u{1b}[K";

impl RunOutput {
    pub fn new(world: &World, style: Style, colour: bool, run_id: &str) -> RunOutput {
        let (world, run_id) = (world.clone(), run_id.to_owned());
        RunOutput { world, style, colour, position: String::new(), status_shown: false, iteration: 0, run_id }
    }

    /// Returns whether the agent's output is shown.
    pub fn shows_text(&self) -> bool {
        self.style != Style::Quiet
    }

    /// Returns whether what is shown is for scripts.
    pub fn is_json(&self) -> bool {
        self.style == Style::Json
    }

    /// Prints a line for people.
    pub fn say(&mut self, text: &str) {
        if matches!(self.style, Style::Live | Style::Lines) {
            self.print(&clean::block(text));
        }
    }

    /// Reports something, to people and to scripts.
    pub fn note(&mut self, text: &str) {
        self.tell("note", text);
    }

    /// Reports something that went wrong.
    pub fn warn(&mut self, text: &str) {
        self.say(&format!("Ralph: {text}"));
        let warning = Warning { iteration: self.iteration, message: event::text(text) };
        let event = Event::new(self.world.later().now, EventKind::Warning(warning));
        // The first failure to add an event is such a warning itself.
        let _ = events::append(&self.world.later(), &self.run_id, std::slice::from_ref(&event.what));
        self.emit(&event);
    }

    fn tell(&mut self, kind: &str, text: &str) {
        self.say(&format!("Ralph: {text}"));
        self.event(kind, json!({"iteration": self.iteration, "message": clean::block(text)}));
    }

    /// Prints an event for scripts.
    pub fn event(&mut self, kind: &str, mut fields: Value) {
        if self.style == Style::Json {
            fields["event"] = kind.into();
            fields["run_id"] = self.run_id.as_str().into();
            fields["timestamp"] = self.world.later().now.rfc3339().into();
            self.print(&fields.to_string());
        }
    }

    /// Prints an event of the run for scripts, as its file has it.
    pub fn emit(&mut self, event: &Event) {
        if self.style == Style::Json {
            let mut line = json!(event);
            line["run_id"] = self.run_id.as_str().into();
            self.print(&line.to_string());
        }
    }

    /// Prints the ending, also in a quiet run.
    pub fn conclude(&mut self, text: &str) {
        if self.style != Style::Json {
            self.print(text);
        }
    }

    fn print(&mut self, text: &str) {
        // The status line is there, or the `^C` that the terminal shows for the key.
        let erased = if self.is_live() { ERASE } else { "" };
        self.status_shown = false;
        let mut out = std::io::stdout().lock();
        // A reader that is gone does not end the run.
        let _ = write!(out, "{erased}");
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    /// Returns whether there can be a status line: on a terminal whose foreground we are in.
    fn is_live(&self) -> bool {
        self.style == Style::Live && terminal::in_front(std::io::stdout())
    }

    /// Clears the status line that the cursor left when the user pressed Enter.
    pub fn entered(&mut self) {
        if std::mem::take(&mut self.status_shown) {
            let mut out = std::io::stdout().lock();
            let _ = write!(out, "\u{1b}[A{ERASE}").and_then(|()| out.flush());
        }
    }

    /// Updates the status line, if there can be one.
    pub fn live(&mut self, text: &str) {
        if !self.is_live() {
            return;
        }
        let width = paint::columns().saturating_sub(1);
        let text = clean::excerpt(text, width);
        let text = if self.colour { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text };
        let mut out = std::io::stdout().lock();
        let _ = write!(out, "{ERASE}{text}").and_then(|()| out.flush());
        self.status_shown = true;
    }

    pub fn show(&mut self, event: &AgentEvent) {
        let iteration = self.iteration;
        match event {
            AgentEvent::Text(text) => self.text(text),
            AgentEvent::Output(text) => self.text(text),
            AgentEvent::ToolStarted { name, summary, .. } => {
                let line = format!("  > {}", clean::excerpt(&format!("{name} {summary}"), MAX_TOOL_CHARS));
                let line = if self.colour { format!("\u{1b}[36m{line}\u{1b}[0m") } else { line };
                if matches!(self.style, Style::Live | Style::Lines) {
                    self.print(&line);
                }
                self.event("tool", json!({"iteration": iteration, "name": name, "summary": summary}));
            }
            AgentEvent::Retry { attempt, status } => {
                let status = status.map_or("no connection".into(), |status| format!("status {status}"));
                self.say(&format!("  the model cannot be reached ({status}), attempt {attempt}"));
                self.event("retry", json!({"iteration": iteration, "attempt": attempt, "status": status}));
            }
            _ => {}
        }
    }

    /// Shows the result of a check, and the end of what a failed one printed. Returns the event.
    pub fn check(&mut self, check: &CheckRun) -> event::Check {
        let CheckRun { command, run } = check;
        let (passed, took) = (run.passed(), span(run.took));
        let how = if passed { "passed".into() } else { format!("failed: {}", run.ended) };
        self.say(&format!("Check: {} · {how} · {took}", clean::excerpt(command, MAX_TOOL_CHARS)));
        if !passed {
            let lines: Vec<&str> = run.tail.lines().collect();
            let last = &lines[lines.len().saturating_sub(MAX_CHECK_LINES)..];
            last.iter().for_each(|line| self.say(&format!("  {line}")));
        }
        event::Check {
            iteration: self.iteration,
            command: event::text(command),
            passed,
            exit_code: if let ProgramEnd::Exit(code) = run.ended { Some(code) } else { None },
            seconds: run.took.as_secs_f64(),
            tail: event::tail(&run.tail),
        }
    }

    fn text(&mut self, text: &str) {
        match self.style {
            // There may be a gigabyte of it, so plain text is not copied.
            Style::Live | Style::Lines if clean::is_plain(text) => self.print(text.trim_end()),
            Style::Live | Style::Lines => self.print(&clean::output(text.trim_end())),
            Style::Json => {
                self.event("text", json!({"iteration": self.iteration, "text": clean::block(text)}))
            }
            Style::Quiet => {}
        }
    }

    /// Reports a silence on stderr: stdout is the agent's.
    pub fn beat(&mut self, beat: &SilenceReport) {
        let (message, (kind, elapsed, missed)) = (beat.message(self.iteration), beat.parts());
        self.event(
            kind,
            json!({"iteration": self.iteration, "message": message, "elapsed_seconds": elapsed,
                   "missed_count": missed}),
        );
        if std::mem::take(&mut self.status_shown) {
            let mut out = std::io::stdout().lock();
            let _ = write!(out, "{ERASE}").and_then(|()| out.flush());
        }
        let mut err = std::io::stderr().lock();
        if matches!(self.style, Style::Live | Style::Lines) {
            let _ = writeln!(err, "{message}");
        }
        let _ = writeln!(err, "{}", beat.record(self.iteration, &self.run_id));
    }

    pub fn tick(&mut self, elapsed: Duration, silence: Duration) {
        let (position, elapsed, silence) = (&self.position, span(elapsed), span(silence));
        let whole = format!("{position} · {elapsed} elapsed · last output {silence} ago");
        // A usual terminal has no room for that.
        let short = format!("{position} · {elapsed} · {silence} silent");
        self.live(if whole.chars().count() < paint::columns() { &whole } else { &short });
    }
}

fn span(span: Duration) -> String {
    time::span(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
}

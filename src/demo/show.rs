//! What the viewer sees, at a pace that can be read.

use super::Options;
use super::interrupt::{Cut, Interrupt};
use crate::core::clean;
use crate::view::paint::{self, Paint};
use anyhow::Result;
use std::io::{ErrorKind, Write};
use std::time::Duration;

/// The pauses: all the time the demo takes on purpose. The whole is to stay below twenty seconds.
pub const PER_LINE: Duration = Duration::from_millis(180);
pub const PER_SCENE: Duration = Duration::from_millis(550);

/// Room for who speaks.
const LABEL: usize = 6;
/// Narrower than this, a terminal wraps by itself.
const NARROWEST: usize = 16;

pub struct Show {
    paint: Paint,
    width: usize,
    fast: bool,
    interrupt: Interrupt,
    scenes: usize,
    title: String,
}

impl Show {
    pub fn new(options: &Options, interrupt: Interrupt) -> Show {
        let paint = Paint::new(options.colour);
        // One column less: a full line makes some terminals begin another.
        let width = paint::columns().saturating_sub(1).min(99);
        Show { paint, width, fast: options.fast, interrupt, scenes: 0, title: "the beginning".into() }
    }

    pub fn scene_title(&self) -> &str {
        &self.title
    }

    pub fn scene(&mut self, title: &str) -> Result<()> {
        self.scenes += 1;
        self.heading(&format!("{}. ", self.scenes), title)
    }

    /// The last one, which is no scene.
    pub fn end(&mut self, title: &str) -> Result<()> {
        self.heading("", title)
    }

    fn heading(&mut self, number: &str, title: &str) -> Result<()> {
        self.pause(PER_SCENE)?;
        title.clone_into(&mut self.title);
        self.print("")?;
        for (index, line) in clean::wrap(title, self.room(number.len())).iter().enumerate() {
            let indent = if index == 0 { number.to_owned() } else { " ".repeat(number.len()) };
            self.print(&self.paint.bold(format!("{indent}{line}")))?;
        }
        self.pause(PER_LINE)
    }

    /// A remark of the demo's own.
    pub fn remark(&mut self, text: &str) -> Result<()> {
        for line in clean::wrap(text, self.room(0)) {
            self.print(&line)?;
        }
        self.pause(PER_LINE)
    }

    /// What the user types.
    pub fn you(&mut self, text: &str) -> Result<()> {
        self.speak("you", "› ", text, Paint::bold)
    }

    pub fn agent(&mut self, text: &str) -> Result<()> {
        self.speak("agent", "  ", text, |_, line| line)
    }

    /// What a program of ours said, to the letter; only what is wider than the screen is wrapped.
    pub fn ralph(&mut self, text: &str) -> Result<()> {
        self.speak("ralph", "│ ", text, Paint::green)
    }

    /// The same, going on.
    pub fn ralph_goes_on(&mut self, text: &str) -> Result<()> {
        self.speak("", "│ ", text, Paint::green)
    }

    fn speak(
        &mut self,
        who: &str,
        mark: &str,
        text: &str,
        colour: impl Fn(Paint, String) -> String,
    ) -> Result<()> {
        let room = self.room(LABEL + 2);
        let mut label = who;
        for line in clean::block(text).trim_end().split('\n') {
            let lines =
                if clean::columns(line) > room { clean::wrap(line, room) } else { vec![line.to_owned()] };
            for line in lines {
                let label = self.paint.dim(format!("{:<LABEL$}", std::mem::take(&mut label)));
                self.print(&format!("{label}{}{}", self.paint.dim(mark), colour(self.paint, line)))?;
            }
            self.pause(PER_LINE)?;
        }
        Ok(())
    }

    /// Said at once, and also where the show was cut off.
    pub fn last_words(&mut self, text: &str) -> Result<()> {
        self.print(&clean::block(text))
    }

    fn room(&self, indent: usize) -> usize {
        self.width.saturating_sub(indent).max(NARROWEST)
    }

    fn print(&self, line: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let written = writeln!(out, "{}", line.trim_end()).and_then(|()| out.flush());
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Cut::ReaderGone.into(),
            _ => Cut::NotShown(error).into(),
        })
    }

    fn pause(&self, time: Duration) -> Result<()> {
        self.interrupt.wait(if self.fast { Duration::ZERO } else { time })
    }
}

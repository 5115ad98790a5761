//! Prints the demo at a pace that can be read.

use crate::core::text::clean;
use crate::store::process::interrupt::Interrupt;
use crate::store::world::Instant;
use crate::view::paint::{self, Paint};
use anyhow::{Result, ensure};
use std::io::Write;
use std::time::Duration;

/// The pauses; together they keep the demo below twenty seconds.
pub const PER_LINE: Duration = Duration::from_millis(180);
pub const PER_SCENE: Duration = Duration::from_millis(550);
const INTERRUPT_POLL: Duration = Duration::from_millis(20);

/// Columns for the speaker.
const LABEL: usize = 6;
/// The narrowest text; narrower terminals wrap by themselves.
const MIN_COLUMNS: usize = 16;

pub struct DemoScreen {
    paint: Paint,
    columns: usize,
    fast: bool,
    interrupt: Interrupt,
    scenes: usize,
    /// The title of the current scene.
    pub title: String,
}

impl DemoScreen {
    pub fn new(fast: bool, interrupt: Interrupt) -> DemoScreen {
        let paint = Paint::for_stdout();
        // One column less: some terminals start a new line after a full one.
        let columns = paint::columns().saturating_sub(1).min(99);
        DemoScreen { paint, columns, fast, interrupt, scenes: 0, title: "the beginning".into() }
    }

    pub fn scene(&mut self, title: &str) -> Result<()> {
        self.scenes += 1;
        self.heading(&format!("{}. ", self.scenes), title)
    }

    /// Prints a title, after a blank line.
    pub fn heading(&mut self, number: &str, title: &str) -> Result<()> {
        self.pause(PER_SCENE)?;
        title.clone_into(&mut self.title);
        self.print("")?;
        for (index, line) in clean::wrap(title, self.room(number.len())).iter().enumerate() {
            let indent = if index == 0 { number.to_owned() } else { " ".repeat(number.len()) };
            self.print(&self.paint.bold(format!("{indent}{line}")))?;
        }
        self.pause(PER_LINE)
    }

    /// Prints a remark of the demo itself.
    pub fn remark(&self, text: &str) -> Result<()> {
        for line in clean::wrap(text, self.room(0)) {
            self.print(&line)?;
        }
        self.pause(PER_LINE)
    }

    /// Prints what the user types.
    pub fn you(&self, text: &str) -> Result<()> {
        self.speak("you", "› ", text, Paint::bold)
    }

    pub fn agent(&self, text: &str) -> Result<()> {
        self.speak("agent", "  ", text, |_, line| line)
    }

    /// Prints the output of a program.
    pub fn ralph(&self, text: &str) -> Result<()> {
        self.speak("ralph", "│ ", text, Paint::green)
    }

    fn speak(
        &self,
        mut label: &str,
        mark: &str,
        text: &str,
        colour: impl Fn(Paint, String) -> String,
    ) -> Result<()> {
        let room = self.room(LABEL + 2);
        for line in clean::block(text).trim_end().split('\n') {
            let fits = clean::columns(line) <= room;
            for line in if fits { vec![line.to_owned()] } else { clean::wrap(line, room) } {
                let label = self.paint.dim(format!("{:<LABEL$}", std::mem::take(&mut label)));
                self.print(&format!("{label}{}{}", self.paint.dim(mark), colour(self.paint, line)))?;
            }
            self.pause(PER_LINE)?;
        }
        Ok(())
    }

    fn room(&self, indent: usize) -> usize {
        self.columns.saturating_sub(indent).max(MIN_COLUMNS)
    }

    pub fn print(&self, line: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", line.trim_end())?;
        Ok(out.flush()?)
    }

    fn pause(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + if self.fast { Duration::ZERO } else { time };
        loop {
            ensure!(!self.interrupt.is_set(), "interrupted");
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(INTERRUPT_POLL));
        }
    }
}

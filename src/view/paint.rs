//! Colours on a terminal, plain text everywhere else.

use crate::store::world;
use std::fmt::Display;
use std::io::IsTerminal;

#[derive(Clone, Copy, Debug)]
pub struct Paint(bool);

impl Paint {
    pub fn new(colour: bool) -> Self {
        Paint(colour)
    }

    /// Uses colours if stdout wants them.
    pub fn for_stdout() -> Self {
        Paint(wanted())
    }

    pub fn bold(self, text: impl Display) -> String {
        self.code("1", text)
    }

    pub fn dim(self, text: impl Display) -> String {
        self.code("2", text)
    }

    pub fn green(self, text: impl Display) -> String {
        self.code("32", text)
    }

    pub fn yellow(self, text: impl Display) -> String {
        self.code("33", text)
    }

    pub fn red(self, text: impl Display) -> String {
        self.code("31", text)
    }

    fn code(self, code: &str, text: impl Display) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }
}

/// Returns whether stdout is a terminal that wants colours.
pub fn wanted() -> bool {
    std::io::stdout().is_terminal() && world::text("NO_COLOR").is_none() && !is_dumb()
}

/// Returns whether the terminal says that it takes no escape codes.
pub fn is_dumb() -> bool {
    world::text("TERM").is_some_and(|term| term == "dumb")
}

/// Returns the width of the terminal, or 80 if stdout is not one.
pub fn columns() -> usize {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout())
        && size.ws_col > 0
    {
        return usize::from(size.ws_col).max(20);
    }
    80
}

/// Returns `1 file` or `12 files`.
pub fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Returns `████████░░░░` of `width` cells.
pub fn bar(part: f64, width: usize) -> String {
    let filled = (part.clamp(0.0, 1.0) * width as f64).round() as usize;
    "█".repeat(filled) + &"░".repeat(width - filled)
}

//! How the monitor looks: a few tones, each of which is also told by words, signs or weight.

use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Dim,
    Strong,
    Good,
    Info,
    Warn,
    Bad,
}

#[derive(Clone, Copy, Debug)]
pub struct Theme {
    pub colour: bool,
}

impl Theme {
    /// Returns the style of a tone. The colours are the terminal's own sixteen, so that they fit its background.
    pub fn style(self, tone: Tone) -> Style {
        let style = Style::new();
        match (tone, self.colour) {
            (Tone::Plain, _) | (Tone::Good | Tone::Info, false) => style,
            (Tone::Dim, _) => style.add_modifier(Modifier::DIM),
            (Tone::Strong, _) | (Tone::Warn, false) => style.add_modifier(Modifier::BOLD),
            (Tone::Bad, false) => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            (Tone::Good, true) => style.fg(Color::Green),
            (Tone::Info, true) => style.fg(Color::Cyan),
            (Tone::Warn, true) => style.fg(Color::Yellow),
            (Tone::Bad, true) => style.fg(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// Returns the style of a bar across the screen.
    pub fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

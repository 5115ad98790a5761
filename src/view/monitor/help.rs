//! The keys of the monitor.

use super::theme::Tone;
use super::{Monitor, text};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Every key, and what it does. `scripts/update-docs` writes the table in `docs/monitor.md` from it.
pub const KEYS: [(&str, &str); 17] = [
    ("j k, arrows", "select a run, or scroll the selected one"),
    ("PgDn, PgUp", "scroll one page (also Ctrl-D, Ctrl-U); g: first, G: last"),
    ("Enter, Esc", "open the selected run, go back (also →, ←)"),
    ("Tab", "switch between the list and the run"),
    ("/", "filter by task, project, state or run id"),
    ("l", "log: what the agent said and did"),
    ("e", "encourage: tell the agent what to do more of"),
    ("f", "forbid: tell the agent what not to do"),
    ("a", "answer the agent's question"),
    ("p", "pause when the turn ends, or resume (asks first)"),
    ("s", "stop the loop (asks first)"),
    ("r", "reset its circuit breaker (asks first)"),
    ("o", "write and open the report of the run"),
    ("Ctrl-L", "redraw the screen"),
    ("Ctrl-Z", "suspend the monitor; `fg` continues it"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit; loops keep running"),
];

impl Monitor {
    pub(super) fn draw_help(&mut self, frame: &mut Frame, area: Rect) {
        let width = usize::from(area.width);
        // Narrow screens have no room for a gap.
        let (margin, column) = if width < 60 { (1, 12) } else { (3, 14) };
        let row = |(key, what): &(&str, &str)| {
            let what = text::fit(what, width.saturating_sub(margin + column));
            Line::from(vec![
                Span::styled(format!("{}{key:<column$}", " ".repeat(margin)), self.theme.style(Tone::Strong)),
                Span::raw(what),
            ])
        };
        let mut lines: Vec<Line> = KEYS.iter().map(row).collect();
        if usize::from(area.height) > lines.len() + 4 {
            lines.insert(0, Line::default());
            let note =
                "Watching changes nothing. e, f, a, p, s and r do the same as the commands of the same name.";
            lines.push(Line::default());
            let notes = text::wrap(note, width.saturating_sub(2 * margin), 3);
            lines.extend(notes.into_iter().map(|note| {
                Line::styled(format!("{}{note}", " ".repeat(margin)), self.theme.style(Tone::Dim))
            }));
        }
        self.draw_scrolled(frame, area, lines, self.help_scroll);
    }
}

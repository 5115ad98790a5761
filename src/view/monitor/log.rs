//! What the agent said and did: a few lines beside the run, or all of it on the whole screen.

use super::theme::Tone;
use super::{Monitor, text};
use crate::core::event::agent_log::{AgentLogEntry, EntryKind};
use crate::core::time::Stamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// An entry may be long; on the whole screen it gets so many rows.
const MAX_ROWS: usize = 12;

fn label(kind: EntryKind) -> (&'static str, Tone) {
    match kind {
        EntryKind::Said => ("agent", Tone::Plain),
        EntryKind::Tool => ("tool", Tone::Info),
        EntryKind::ToolFailed => ("fail", Tone::Bad),
        EntryKind::Told => ("input", Tone::Dim),
        EntryKind::Reported => ("info", Tone::Warn),
        EntryKind::Finished => ("info", Tone::Dim),
    }
}

/// Returns `08:05:12`, in UTC.
fn clock(at: Stamp) -> String {
    at.rfc3339().get(11..19).unwrap_or_default().to_owned()
}

impl Monitor {
    /// Returns the newest entries in at most `rows` lines, the newest last.
    pub(super) fn activity_lines(&self, width: usize, rows: usize) -> Vec<Line<'static>> {
        let newest = self.entries.len().saturating_sub(rows);
        let shown = || self.entries.range(newest..);
        let with_times = width >= 60 && shown().any(|entry| entry.at.is_some());
        shown().map(|entry| self.entry_line(entry, width, with_times)).collect()
    }

    fn entry_line(&self, entry: &AgentLogEntry, width: usize, with_times: bool) -> Line<'static> {
        let (word, tone) = label(entry.kind);
        let mut spans = Vec::new();
        let mut left = width.saturating_sub(6);
        if with_times {
            let time = entry.at.map(|at| text::ago(at, self.now)).unwrap_or_default();
            spans.push(Span::styled(format!("{time:>10}  "), self.theme.style(Tone::Dim)));
            left = left.saturating_sub(12);
        }
        spans.push(Span::styled(format!("{word:<5} "), self.theme.style(Tone::Dim)));
        spans.push(Span::styled(text::fit(&entry.text, left), self.theme.style(tone)));
        Line::from(spans)
    }

    pub(super) fn draw_log(&mut self, frame: &mut Frame, area: Rect) {
        let width = usize::from(area.width).saturating_sub(1);
        let lines: Vec<Line> = self.entries.iter().flat_map(|entry| self.log_lines(entry, width)).collect();
        if lines.is_empty() {
            let text = "Nothing yet: what the agent says and does appears here.";
            let lines = text::wrap(text, width.saturating_sub(1), 4).into_iter();
            let lines = lines.map(|line| Line::raw(format!(" {line}"))).collect();
            return self.draw_scrolled(frame, area, lines, 0);
        }
        let end = lines.len().saturating_sub(usize::from(area.height));
        self.draw_scrolled(frame, area, lines, end.saturating_sub(self.log_scroll));
    }

    fn log_lines(&self, entry: &AgentLogEntry, width: usize) -> Vec<Line<'static>> {
        let (word, tone) = label(entry.kind);
        let time = entry.at.map(clock).unwrap_or_default();
        // On a narrow screen the time costs too much.
        let head = if width < 60 { format!(" {word} ") } else { format!(" {time:>8}  {word}  ") };
        let rows = text::wrap(&entry.text, width.saturating_sub(head.len()), MAX_ROWS);
        let heads = [head.clone()].into_iter().chain(std::iter::repeat(" ".repeat(head.len())));
        let line = |(head, row): (String, String)| {
            Line::from(vec![
                Span::styled(head, self.theme.style(Tone::Dim)),
                Span::styled(row, self.theme.style(tone)),
            ])
        };
        heads.zip(rows).map(line).collect()
    }
}

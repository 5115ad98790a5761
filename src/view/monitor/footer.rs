//! The first and the last line: what this is about, and what can be done.

use super::theme::Tone;
use super::{Focus, InputMode, Monitor, TextPurpose, text};
use crate::core::text::clean;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// A notice takes so many rows at most.
const MAX_NOTICE_ROWS: usize = 3;

/// Something that the last lines say until the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banner {
    pub text: String,
    pub is_error: bool,
}

impl Banner {
    pub fn info(text: impl Into<String>) -> Banner {
        Banner { text: text.into(), is_error: false }
    }

    pub fn error(text: impl Into<String>) -> Banner {
        Banner { text: text.into(), is_error: true }
    }
}

impl Monitor {
    pub(super) fn draw_header(&self, frame: &mut Frame, area: Rect) {
        let width = usize::from(area.width);
        let place = self.project.as_deref().map_or_else(|| "all projects".to_owned(), text::project);
        let living = || self.runs.iter().filter(|run| run.is_alive());
        let word = |word: &str| living().filter(|run| run.summary(self.now).word == word).count();
        let (working, paused, alive) = (word("working"), word("paused"), living().count());
        let ended = self.runs.len() - alive;
        let mut counts = vec![format!("{working} working")];
        for (count, word) in [(alive - working - paused, "waiting"), (paused, "paused")] {
            if count > 0 {
                counts.push(format!("{count} {word}"));
            }
        }
        counts.push(format!("{ended} ended"));
        if width >= 60 {
            counts.push(self.now.minute().get(11..).unwrap_or_default().to_owned());
        }
        let right = format!("{} ", counts.join(" · "));
        let name = if width >= 60 { "Ralph · " } else { "" };
        let left = text::fit(&format!("{name}{place}"), width.saturating_sub(clean::columns(&right) + 2));
        let gap = width.saturating_sub(clean::columns(&left) + 1 + clean::columns(&right));
        let line = format!(" {left}{}{right}", " ".repeat(gap));
        frame.render_widget(Paragraph::new(Line::raw(line)).style(self.theme.bar()), area);
    }

    pub(super) fn draw_footer(&self, frame: &mut Frame, area: Rect) {
        let width = usize::from(area.width);
        match &self.mode {
            InputMode::Filter(input) => return self.draw_input(frame, area, "filter: ", input),
            InputMode::Ask(wanted, input) => {
                let label = match wanted {
                    TextPurpose::Encourage => "encourage: ",
                    TextPurpose::Forbid => "forbid: ",
                    TextPurpose::Answer => "answer: ",
                };
                return self.draw_input(frame, area, label, input);
            }
            _ => {}
        }
        let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
        let lines = match self.said(width) {
            Some((lines, tone)) => {
                lines.into_iter().map(|line| Line::styled(line, self.theme.style(tone))).collect()
            }
            None => vec![self.hints(width)],
        };
        frame.render_widget(Paragraph::new(lines), inner);
    }

    /// Returns how many rows the last lines need.
    pub(super) fn footer_rows(&self, width: usize) -> u16 {
        let rows = self.said(width).map_or(1, |(lines, _)| lines.len());
        u16::try_from(rows).unwrap_or(1).max(1)
    }

    /// Returns a question or a notice, which takes the place of the keys.
    fn said(&self, width: usize) -> Option<(Vec<String>, Tone)> {
        let room = width.saturating_sub(2);
        match (&self.mode, &self.notice) {
            (InputMode::Confirm(act), _) => {
                let task = text::fit(&self.selected()?.task, room.saturating_sub(2));
                let ask = format!("{} y / n", act.question());
                Some((vec![format!("\"{task}\""), text::fit(&ask, room)], Tone::Warn))
            }
            (InputMode::Filter(_) | InputMode::Ask(..), _) | (_, None) => None,
            (_, Some(notice)) => {
                let tone = if notice.is_error { Tone::Bad } else { Tone::Strong };
                Some((text::wrap(&notice.text, room, MAX_NOTICE_ROWS), tone))
            }
        }
    }

    fn draw_input(&self, frame: &mut Frame, area: Rect, label: &str, input: &super::input::TextInput) {
        let room = usize::from(area.width).saturating_sub(label.len() + 2);
        let (shown, cursor) = input.view(room);
        let label_style = self.theme.style(Tone::Strong);
        let line =
            Line::from(vec![Span::raw(" "), Span::styled(label.to_owned(), label_style), Span::raw(shown)]);
        frame.render_widget(Paragraph::new(line), area);
        let column = u16::try_from(1 + label.len() + cursor).unwrap_or(u16::MAX);
        let x = area.x.saturating_add(column).min(area.right().saturating_sub(1));
        frame.set_cursor_position(Position { x, y: area.y });
    }

    /// Returns the keys that matter now, as many as there is room for.
    fn hints(&self, width: usize) -> Line<'static> {
        let all: &[(&str, &str)] = match (&self.mode, self.focus) {
            (InputMode::Help, _) => &[("Esc", "back"), ("j/k", "scroll")],
            (InputMode::Log, _) => &[("Esc", "back"), ("j/k", "scroll"), ("G", "newest"), ("g", "oldest")],
            (_, Focus::List) => &[
                ("?", "help"),
                ("q", "quit"),
                ("j/k", "select"),
                ("Enter", "open"),
                ("/", "filter"),
                ("l", "log"),
                ("e", "encourage"),
                ("f", "forbid"),
                ("a", "answer"),
                ("p", "pause"),
                ("s", "stop"),
                ("r", "reset"),
                ("o", "report"),
            ],
            (_, Focus::Detail) => &[
                ("?", "help"),
                ("Esc", "back"),
                ("j/k", "scroll"),
                ("l", "log"),
                ("e", "encourage"),
                ("f", "forbid"),
                ("a", "answer"),
                ("p", "pause"),
                ("s", "stop"),
                ("r", "reset"),
                ("o", "report"),
            ],
        };
        let answer = self.selected().is_some_and(|run| run.question.is_some());
        let (mut spans, mut used) = (Vec::new(), 1);
        if !self.filter.is_empty() {
            let filter = text::fit(&format!("filter: {}", self.filter), width / 3);
            used += clean::columns(&filter) + 2;
            spans.push(Span::styled(format!("{filter}  "), self.theme.style(Tone::Info)));
        }
        for (key, what) in all.iter().filter(|(key, _)| *key != "a" || answer) {
            used += clean::columns(key) + what.len() + 3;
            if used > width {
                break;
            }
            spans.push(Span::styled((*key).to_owned(), self.theme.style(Tone::Strong)));
            spans.push(Span::styled(format!(" {what}  "), self.theme.style(Tone::Dim)));
        }
        Line::from(spans)
    }
}

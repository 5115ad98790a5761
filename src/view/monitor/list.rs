//! The list of runs: two lines each.

use super::runs::{RunView, Summary};
use super::theme::{Theme, Tone};
use super::{Focus, Monitor, text};
use crate::core::message;
use crate::core::text::clean;
use crate::view::paint::bar;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

const ROWS: usize = 2;
/// The longest word for a state is `max-iterations`; the usual ones are shorter than this.
const WORD: usize = 9;

impl Monitor {
    pub(super) fn draw_list(&mut self, frame: &mut Frame, area: Rect) {
        let (width, room) = (usize::from(area.width), usize::from(area.height) / ROWS);
        self.list_room = room.max(1);
        let visible = self.visible();
        if visible.is_empty() {
            return self.draw_empty(frame, area);
        }
        let position = self.position().unwrap_or(0);
        self.list_top = self.list_top.min(position).max((position + 1).saturating_sub(self.list_room));
        self.list_top = self.list_top.min(visible.len().saturating_sub(self.list_room));
        let is_focused = self.focus == Focus::List;
        let mut lines = Vec::new();
        for (at, index) in visible.iter().enumerate().skip(self.list_top).take(self.list_room) {
            let run = &self.runs[*index];
            let summary = run.summary(self.now);
            let is_selected = at == position;
            let project = self.project.is_none().then(|| text::project(&run.project));
            lines.push(headline(run, &summary, project, width, (is_selected, is_focused), self.theme));
            lines.push(figures(&summary, width, is_selected, self.theme));
        }
        let hidden = visible.len().saturating_sub(self.list_top + self.list_room);
        if usize::from(area.height) > lines.len() && hidden > 0 {
            lines.push(Line::styled(format!("  {hidden} more"), self.theme.style(Tone::Dim)));
        }
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn draw_empty(&self, frame: &mut Frame, area: Rect) {
        let text = match (self.filter.is_empty(), &self.project) {
            (false, _) => "No run matches the filter. Esc shows all.",
            (true, Some(_)) => {
                "No run in this project yet. Start one with /ralph:start TASK in Claude Code, or with `ralph run`. \
                 `ralph monitor --all` shows your other projects."
            }
            (true, None) => {
                "No run yet. Start one with /ralph:start TASK in Claude Code, or with `ralph run`."
            }
        };
        let width = usize::from(area.width).saturating_sub(2);
        let lines = text::wrap(text, width, usize::from(area.height));
        let lines = lines.into_iter().map(|line| Line::raw(format!(" {line}")));
        frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
    }
}

fn mark(is_selected: bool) -> &'static str {
    if is_selected { "▌" } else { " " }
}

/// Returns `● working   migrate the parser`.
fn headline(
    run: &RunView,
    summary: &Summary,
    project: Option<String>,
    width: usize,
    (is_selected, is_focused): (bool, bool),
    theme: Theme,
) -> Line<'static> {
    let word = format!("{:<WORD$} ", summary.word);
    let left = width.saturating_sub(3 + clean::columns(&word));
    let task = project.map_or_else(|| run.task.clone(), |project| format!("{project} · {}", run.task));
    let task = format!("{:<left$}", text::fit(&task, left));
    let mut text_style = theme.style(if summary.is_alive { Tone::Strong } else { Tone::Plain });
    if is_selected && is_focused {
        text_style = text_style.add_modifier(Modifier::REVERSED);
    }
    let state = theme.style(summary.tone);
    Line::from(vec![
        Span::styled(mark(is_selected), theme.style(Tone::Info)),
        Span::styled(format!("{} ", summary.sign), state),
        Span::styled(word, state),
        Span::styled(task, text_style),
    ])
}

/// Returns `  ████░░░░ 12/50 · 3.2h/9.0h · $4.10 · ok`, as much of it as fits.
fn figures(summary: &Summary, width: usize, is_selected: bool, theme: Theme) -> Line<'static> {
    let count = message::of(summary.iteration, summary.max_iterations);
    let cells = if width < 36 { 5 } else { 10 };
    let part = if summary.max_iterations == 0 {
        0.0
    } else {
        summary.iteration as f64 / summary.max_iterations as f64
    };
    let tone = if summary.is_alive { Tone::Info } else { Tone::Dim };
    let mut parts = vec![(bar(part, cells), tone), (count, Tone::Plain)];
    parts.push((text::runtime(summary.runtime_ms, summary.max_runtime_ms), Tone::Plain));
    parts.extend(summary.cost_usd.map(|cost| (format!("${cost:.2}"), Tone::Plain)));
    parts.push((summary.breaker.brief(), summary.breaker.tone()));
    let (mut spans, mut used) = (vec![Span::styled(mark(is_selected), theme.style(Tone::Info))], 1);
    let gap = if width < 36 { " " } else { "  " };
    // The breaker is worth more than the money.
    if let [.., cost, breaker] = &parts[..]
        && parts.len() == 5
        && 2 + parts.iter().map(|(text, _)| clean::columns(text) + gap.len()).sum::<usize>() > width
    {
        let (cost, breaker) = (cost.clone(), breaker.clone());
        parts.truncate(3);
        parts.extend([breaker, cost]);
    }
    for (text, tone) in parts {
        if used + gap.len() + clean::columns(&text) > width {
            continue;
        }
        used += gap.len() + clean::columns(&text);
        spans.push(Span::raw(gap));
        spans.push(Span::styled(text, theme.style(tone)));
    }
    Line::from(spans)
}

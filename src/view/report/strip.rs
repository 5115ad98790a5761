//! The course of a run as pictures without a script: time as a strip, money as bars.
//!
//! All lengths across are percentages, so that a picture fits every width and its text stays upright.

use super::escape::html;
use super::iterations::IterationRow;
use super::words::dollars;
use crate::core::event::BreakerAction;
use crate::core::event::timeline::{GuidanceEntry, Span, SpanKind, Timeline};
use crate::core::message;
use crate::core::time::{self, Stamp};

/// Beyond so many, the ends of iterations are no longer marked.
const MAX_MARKED_ITERATIONS: usize = 150;
/// Beyond so many, bars stand for several iterations.
const MAX_BARS: usize = 200;
const LANE: f64 = 26.0;

pub const KINDS: [(SpanKind, &str, &str); 5] = [
    (SpanKind::Work, "work", "work"),
    (SpanKind::Wait, "wait", "wait"),
    (SpanKind::Pause, "pause", "pause"),
    (SpanKind::Failure, "failure", "failure"),
    (SpanKind::Stopped, "stopped", "stopped"),
];

fn class(kind: SpanKind) -> &'static str {
    KINDS.iter().find(|(known, ..)| *known == kind).map_or("", |(_, class, _)| class)
}

/// The scale of a strip.
struct Scale {
    from: Stamp,
    ms: f64,
}

impl Scale {
    fn of(timeline: &Timeline) -> Option<Scale> {
        let (from, to) = (timeline.started_at?, timeline.last_at?);
        (to > from).then(|| Scale { from, ms: (to - from) as f64 })
    }

    /// Returns where a moment is, in per cent.
    fn at(&self, moment: Stamp) -> f64 {
        ((moment - self.from) as f64 / self.ms * 100.0).clamp(0.0, 100.0)
    }
}

/// Returns what the time went to, most first: the class, the name, and the milliseconds.
pub fn spent(timeline: &Timeline) -> Vec<(&'static str, &'static str, i64)> {
    let kinds = KINDS.iter().map(|(kind, class, name)| (*class, *name, timeline.spent_ms(*kind)));
    kinds.filter(|(.., ms)| *ms > 0).collect()
}

/// Returns the strip, or nothing if no time passed.
pub fn timeline_svg(timeline: &Timeline) -> Option<String> {
    let scale = Scale::of(timeline)?;
    let guidance: Vec<&GuidanceEntry> = timeline
        .guidance
        .iter()
        .filter(|entry| entry.given_at.is_some() || entry.delivered.is_some())
        .collect();
    let has_marks = !timeline.breaker.is_empty() || !timeline.answers.is_empty();
    let marks_height = if has_marks { 16.0 } else { 0.0 };
    let guidance_top = LANE + marks_height + 4.0;
    let rows = guidance.len().min(6) as f64;
    let axis = guidance_top + rows * 10.0 + 2.0;
    let height = axis + 18.0;
    let mut svg = format!(
        "<svg class=\"strip\" width=\"100%\" height=\"{height:.0}\" role=\"img\" aria-label=\"What the time went to\">\n"
    );
    for span in merged(timeline) {
        svg.push_str(&bar(&scale, &span, timeline.iterations.len() <= MAX_MARKED_ITERATIONS));
    }
    for (at, step) in &timeline.breaker {
        let (kind, word) = match step.step {
            BreakerAction::Warned => ("warned", "breaker warned"),
            BreakerAction::Tripped => ("tripped", "breaker tripped"),
            BreakerAction::Reset => ("reset", "breaker reset"),
        };
        let title = format!("{word}, iteration {}: {}", step.iteration, step.reason);
        svg.push_str(&mark(&scale, *at, kind, "M0 0l5 9h-10z", &title));
    }
    for (at, answered) in &timeline.answers {
        svg.push_str(&mark(
            &scale,
            *at,
            "answer",
            "M0 0l5 5-5 5-5-5z",
            &format!("answered: {}", answered.answer),
        ));
    }
    for (index, entry) in guidance.iter().enumerate() {
        // More entries than rows share them.
        svg.push_str(&arrow(&scale, entry, guidance_top + 5.0 + (index % 6) as f64 * 10.0, timeline.last_at));
    }
    svg.push_str(&axis_of(&scale, axis));
    svg.push_str("</svg>\n");
    Some(svg)
}

/// Joins neighbours of one kind once there are too many to tell them apart.
fn merged(timeline: &Timeline) -> Vec<Span> {
    let spans = timeline.spans.iter().filter(|span| span.ms() > 0);
    if timeline.spans.len() <= 4 * MAX_MARKED_ITERATIONS {
        return spans.cloned().collect();
    }
    let scale = timeline.started_at.zip(timeline.last_at).map_or(0, |(from, to)| to - from);
    let thin = scale / 1000;
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if last.kind == span.kind || span.ms() < thin && last.ms() < thin => {
                last.to = span.to;
                // A failure stays visible, however short.
                if span.kind == SpanKind::Failure {
                    last.kind = SpanKind::Failure;
                }
                last.iteration = None;
            }
            _ => merged.push(span.clone()),
        }
    }
    merged
}

fn bar(scale: &Scale, span: &Span, is_marked: bool) -> String {
    let (from, to) = (scale.at(span.from), scale.at(span.to));
    let (kind, took) = (class(span.kind), time::span(span.ms()));
    let title = match span.iteration {
        Some(number) => format!("iteration {number}: {kind}, {took}"),
        None if span.label.is_empty() => format!("{kind}, {took}"),
        None => format!("{kind}, {took}: {}", span.label),
    };
    let end = if is_marked && span.iteration.is_some() {
        format!("<line class=\"end\" x1=\"{to:.3}%\" x2=\"{to:.3}%\" y1=\"0\" y2=\"{LANE}\"/>")
    } else {
        String::new()
    };
    format!(
        "<rect class=\"{kind}\" x=\"{from:.3}%\" width=\"{:.3}%\" y=\"0\" height=\"{LANE}\"><title>{}</title></rect>{end}\n",
        (to - from).max(0.08),
        html(&crate::core::text::clean::excerpt(&title, 200))
    )
}

fn mark(scale: &Scale, at: Stamp, class: &str, path: &str, title: &str) -> String {
    format!(
        "<svg class=\"mark {class}\" x=\"{:.3}%\" y=\"{}\"><path d=\"{path}\"/><title>{}</title></svg>\n",
        scale.at(at),
        LANE + 3.0,
        html(&crate::core::text::clean::excerpt(title, 200))
    )
}

/// Returns a line from the moment guidance was given to the moment the agent read it.
fn arrow(scale: &Scale, entry: &GuidanceEntry, y: f64, last_at: Option<Stamp>) -> String {
    let delivered = entry.delivered.map(|(at, _)| at);
    let until = delivered.or(entry.removed_at).or(last_at).unwrap_or_default();
    let given = scale.at(entry.given_at.unwrap_or(scale.from));
    let end = scale.at(until);
    let state = if delivered.is_some() { "delivered" } else { "undelivered" };
    let title = crate::core::text::clean::excerpt(&format!("{}: {}", entry.list, entry.text), 200);
    let dot =
        delivered.map_or_else(String::new, |_| format!("<circle cx=\"{end:.3}%\" cy=\"{y}\" r=\"3.5\"/>"));
    format!(
        "<g class=\"guidance {state}\"><title>{}</title><line x1=\"{given:.3}%\" x2=\"{end:.3}%\" y1=\"{y}\" y2=\"{y}\"/>\
         <circle class=\"given\" cx=\"{given:.3}%\" cy=\"{y}\" r=\"3\"/>{dot}</g>\n",
        html(&title)
    )
}

fn axis_of(scale: &Scale, y: f64) -> String {
    let to = scale.from.plus_ms(scale.ms as i64);
    let is_long = scale.ms > 20.0 * 3_600_000.0;
    let clock =
        |at: Stamp| if is_long { at.minute()[5..16].to_owned() } else { at.minute()[11..16].to_owned() };
    let text = |x: &str, anchor: &str, label: &str| {
        format!("<text x=\"{x}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{}</text>", y + 13.0, html(label))
    };
    let middle = scale.from.plus_ms((scale.ms / 2.0) as i64);
    format!(
        "<line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>{}{}{}\n",
        text("0", "start", &clock(scale.from)),
        text("50%", "middle", &clock(middle)),
        text("100%", "end", &format!("{} UTC", clock(to)))
    )
}

/// Returns cost, or else tokens, as bars with the sum as a line; nothing if neither is known.
pub fn money(rows: &[IterationRow]) -> Option<String> {
    const HEIGHT: f64 = 96.0;
    let has_cost = rows.iter().any(|row| row.cost.is_some_and(|cost| cost > 0.0));
    let value = |row: &IterationRow| if has_cost { row.cost.unwrap_or_default() } else { row.tokens as f64 };
    let size = rows.len().div_ceil(MAX_BARS).max(1);
    let bars: Vec<(u64, u64, f64)> = rows
        .chunks(size)
        .filter_map(|chunk| {
            Some((chunk.first()?.number, chunk.last()?.number, chunk.iter().map(value).sum()))
        })
        .collect();
    let highest = bars.iter().map(|(.., value)| *value).fold(0.0, f64::max);
    let total: f64 = bars.iter().map(|(.., value)| value).sum();
    if highest <= 0.0 || bars.len() < 2 {
        return None;
    }
    let shown = |value: f64| if has_cost { dollars(value) } else { message::tokens(value as u64) };
    let name = if has_cost { "Cost" } else { "Tokens" };
    let mut svg = format!(
        "<svg class=\"money\" width=\"100%\" height=\"{}\" role=\"img\" aria-label=\"{name} per iteration and cumulative\">\n",
        HEIGHT + 20.0
    );
    let step = 100.0 / bars.len() as f64;
    let mut so_far = 0.0;
    let mut last = (0.0, HEIGHT);
    for (index, (first, until, value)) in bars.iter().enumerate() {
        let (x, height) = (index as f64 * step, value / highest * HEIGHT * 0.62);
        so_far += value;
        let number = if first == until { first.to_string() } else { format!("{first} to {until}") };
        svg.push_str(&format!(
            "<rect x=\"{:.3}%\" width=\"{:.3}%\" y=\"{:.1}\" height=\"{height:.1}\"><title>iteration {number}: {}, {} so far</title></rect>",
            x + step * 0.12,
            step * 0.76,
            HEIGHT - height,
            shown(*value),
            shown(so_far)
        ));
        let point = (x + step / 2.0, HEIGHT - so_far / total * (HEIGHT - 8.0));
        svg.push_str(&format!(
            "<line x1=\"{:.3}%\" y1=\"{:.1}\" x2=\"{:.3}%\" y2=\"{:.1}\"/>\n",
            last.0, last.1, point.0, point.1
        ));
        last = point;
    }
    let (first, until) = (bars.first().map_or(0, |bar| bar.0), bars.last().map_or(0, |bar| bar.1));
    svg.push_str(&format!(
        "<line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"{HEIGHT}\" y2=\"{HEIGHT}\"/>\
         <text x=\"0\" y=\"{y}\">iteration {first}</text><text x=\"100%\" y=\"{y}\" text-anchor=\"end\">{until}</text>\n</svg>\n",
        y = HEIGHT + 14.0
    ));
    Some(svg)
}

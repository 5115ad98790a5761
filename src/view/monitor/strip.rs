//! The strip of iterations: how long each took, and how it ended.

use super::theme::{Theme, Tone};
use crate::core::event::timeline::{Timeline, TimelineIteration};
use crate::core::outcome::{IterationOutcome, Outcome};
use crate::core::time::{self, Stamp};
use ratatui::text::{Line, Span};

const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Returns the colour of an iteration, and the sign that says the same without colour.
fn style_and_sign(iteration: &TimelineIteration) -> (Tone, char) {
    match iteration.facts.outcome {
        Some(IterationOutcome::Failed | IterationOutcome::Stalled | IterationOutcome::TimedOut) => {
            (Tone::Bad, 'x')
        }
        Some(IterationOutcome::Denied) => (Tone::Warn, 'd'),
        Some(IterationOutcome::Rejected) => (Tone::Warn, 'r'),
        Some(IterationOutcome::Run(Outcome::Complete)) => (Tone::Good, '✓'),
        Some(IterationOutcome::Run(Outcome::Stuck | Outcome::Circuit | Outcome::Error)) => (Tone::Bad, '■'),
        Some(IterationOutcome::Run(_)) => (Tone::Info, '■'),
        Some(IterationOutcome::Ok) | None if iteration.facts.error.is_some() => (Tone::Bad, 'x'),
        Some(IterationOutcome::Ok) | None if iteration.warning.is_some() => (Tone::Warn, '!'),
        Some(IterationOutcome::Ok) | None if iteration.facts.commit.is_some() => (Tone::Good, 'c'),
        Some(IterationOutcome::Ok) | None => (Tone::Good, '·'),
    }
}

/// What the signs mean.
const LEGEND: [(char, &str); 8] = [
    ('·', "ok"),
    ('c', "commit"),
    ('!', "breaker warned"),
    ('r', "rejected"),
    ('d', "denied"),
    ('x', "failed"),
    ('✓', "complete"),
    ('■', "ended"),
];

/// Returns the newest iterations as bars of `rows` lines, their signs, and what the signs mean.
pub fn lines(timeline: &Timeline, width: usize, rows: usize, theme: Theme) -> Vec<Line<'static>> {
    let (rows, width) = (rows.max(1), width.max(1));
    let skipped = timeline.iterations.len().saturating_sub(width);
    let shown: Vec<(&u64, &TimelineIteration)> = timeline.iterations.iter().skip(skipped).collect();
    let (Some((first, _)), Some((last, _))) = (shown.first(), shown.last()) else { return Vec::new() };
    let seconds: Vec<f64> = shown.iter().map(|(number, _)| timeline.seconds_of(**number)).collect();
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    let height = |seconds: f64| {
        let most = (rows * 8) as f64;
        // Something that happened is seen, however short it was.
        if longest > 0.0 { ((seconds / longest * most).round() as usize).max(1) } else { 1 }
    };
    let mut lines = Vec::new();
    for row in (0..rows).rev() {
        let bar = |((_, iteration), seconds): (&(&u64, &TimelineIteration), &f64)| {
            let eighths = height(*seconds).saturating_sub(row * 8).min(8);
            Span::styled(EIGHTHS[eighths], theme.style(style_and_sign(iteration).0))
        };
        lines.push(Line::from(shown.iter().zip(&seconds).map(bar).collect::<Vec<_>>()));
    }
    let sign = |(_, iteration): &(&u64, &TimelineIteration)| {
        let (tone, sign) = style_and_sign(iteration);
        Span::styled(sign.to_string(), theme.style(tone))
    };
    lines.push(Line::from(shown.iter().map(sign).collect::<Vec<_>>()));
    let span = |seconds: f64| time::span(Stamp::from_seconds(seconds).0);
    let newest = seconds.last().copied().unwrap_or_default();
    let words =
        [format!("#{first}–#{last}"), format!("longest {}", span(longest)), format!("last {}", span(newest))];
    let mut counts = Vec::new();
    for (sign, what) in LEGEND {
        let count = shown.iter().filter(|(_, iteration)| style_and_sign(iteration).1 == sign).count();
        if count > 0 {
            counts.push(format!("{sign} {what} {count}"));
        }
    }
    let caption = super::text::wrap(&format!("{}; {}", words.join(", "), counts.join(", ")), width, 2);
    lines.extend(caption.into_iter().map(|line| Line::styled(line, theme.style(Tone::Dim))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::{Event, EventKind, IterationEnded};

    fn timeline(outcomes: &[(f64, Option<IterationOutcome>)]) -> Timeline {
        let ended = |(index, (seconds, outcome)): (usize, &(f64, Option<IterationOutcome>))| {
            let facts = IterationEnded {
                iteration: index as u64 + 1,
                duration_seconds: Some(*seconds),
                outcome: *outcome,
                ..IterationEnded::default()
            };
            Event::new(Stamp(index as i64), EventKind::IterationEnded(Box::new(facts)))
        };
        Timeline::of(outcomes.iter().enumerate().map(ended))
    }

    fn text(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.spans.iter().map(|span| span.content.as_ref()).collect()).collect()
    }

    #[test]
    fn a_bar_is_as_high_as_its_iteration_was_long_and_its_sign_says_how_it_ended() {
        let ok = Some(IterationOutcome::Ok);
        let run = timeline(&[
            (60.0, ok),
            (120.0, Some(IterationOutcome::Failed)),
            (0.0, Some(IterationOutcome::Rejected)),
            (30.0, Some(IterationOutcome::Run(Outcome::Complete))),
        ]);
        let plain = Theme { colour: false };
        assert_eq!(text(&lines(&run, 80, 1, plain))[..2], ["▄█▁▂", "·xr✓"]);
        assert_eq!(text(&lines(&run, 80, 2, plain))[..2], [" █  ", "██▁▄"]);
        let caption = &text(&lines(&run, 80, 1, plain))[2];
        assert_eq!(caption, "#1–#4, longest 2m, last 30s; · ok 1, r rejected 1, x failed 1, ✓ complete 1");
    }

    #[test]
    fn a_narrow_strip_shows_the_newest() {
        let run = timeline(&[(1.0, None); 50]);
        let shown = text(&lines(&run, 10, 1, Theme { colour: false }));
        assert_eq!((shown[0].as_str(), shown[1].as_str()), ("██████████", "··········"));
        assert!(shown[2].starts_with("#41–#50"), "{shown:?}");
        assert_eq!(lines(&Timeline::default(), 10, 1, Theme { colour: false }), [] as [Line; 0]);
    }
}

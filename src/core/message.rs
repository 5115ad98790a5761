//! What the user reads: one line at every turn, a few at an ending.

use super::clean;
use super::decide::Note;
use super::limits;
use super::outcome::Outcome;
use super::record::{Loop, WaitingFor};
use super::settings::Settings;
use super::time::{self, Stamp};

/// `Ralph 12/50 · Runtime: 3.2h/9.0h | Wall: 15.0h`.
pub fn position(lap: &Loop, settings: &Settings, now: Stamp) -> String {
    let mut line = format!("Ralph {}", of(lap.iteration, settings.max_iterations));
    line.push_str(" · ");
    line.push_str(&times(lap, settings, now));
    if let Some(cost) = lap.usage.cost_usd {
        line.push_str(&format!(" · ${cost:.2}"));
    }
    line
}

/// `Runtime: 3.2h/9.0h | Wall: 15.0h`.
pub fn times(lap: &Loop, settings: &Settings, now: Stamp) -> String {
    let limit = match settings.max_runtime_ms {
        0 => String::new(),
        long => format!("/{}", time::hours(long)),
    };
    format!("Runtime: {}{limit} | Wall: {}", time::hours(lap.runtime_ms()), time::hours(lap.wall_ms(now)))
}

fn of(count: u64, limit: u64) -> String {
    if limit == 0 { count.to_string() } else { format!("{count}/{limit}") }
}

pub fn going_on(lap: &Loop, note: &Note, settings: &Settings, now: Stamp) -> String {
    let mut line = position(lap, settings, now);
    if limits::ending_soon(lap, settings) {
        line.push_str(" · ENDING SOON");
    }
    if let Some(held) = &note.held {
        line.push_str(&format!(" · finish held back: {}", clean::excerpt(&held.brief(), 160)));
    }
    if let Some(pivot) = &note.pivot {
        line.push_str(&format!(" · {pivot}"));
    }
    if settings.max_cost_usd.is_some() && lap.usage.cost_usd.is_none() && lap.iteration == 1 {
        line.push_str(" · this client reports no cost yet, the cost limit cannot act");
    }
    line
}

pub fn making_way(lap: &Loop, settings: &Settings, now: Stamp) -> String {
    let line = position(lap, settings, now);
    match lap.waiting.as_ref().map(|waiting| &waiting.what) {
        Some(WaitingFor::User(queued)) => {
            let then = if queued.text.starts_with("/ralph:stop") { "" } else { ", then the loop goes on" };
            format!("{line} · your \"{}\" goes first{then}", clean::excerpt(&queued.text, 40))
        }
        Some(WaitingFor::Background(work)) => {
            format!("{line} · waiting for background work: {}", clean::excerpt(work, 60))
        }
        None => line,
    }
}

pub fn paused(lap: &Loop, settings: &Settings, now: Stamp) -> String {
    let reason = lap.reason.as_deref().unwrap_or("paused");
    format!(
        "{} · PAUSED: {}. /ralph:start --resume goes on, /ralph:stop ends it",
        position(lap, settings, now),
        clean::line(reason)
    )
}

/// The whole ending: outcome, reason, what it took, and the one command that continues.
pub fn ended(lap: &Loop, settings: &Settings, now: Stamp) -> String {
    let outcome = lap.outcome.unwrap_or(Outcome::Error);
    let reason = clean::excerpt(lap.reason.as_deref().unwrap_or(""), 300);
    let stop = if reason.ends_with(['.', '?', '!']) { "" } else { "." };
    let mut text = format!("Ralph ended ({outcome}): {}: {reason}{stop}", outcome.words());
    let iterations = if lap.iteration == 1 { "iteration" } else { "iterations" };
    text.push_str(&format!(" {} {iterations} · {}", lap.iteration, times(lap, settings, now)));
    if lap.usage.tokens() > 0 {
        text.push_str(&format!(" · {} tokens", tokens(lap.usage.tokens())));
    }
    if let Some(cost) = lap.usage.cost_usd {
        text.push_str(&format!(" · ${cost:.2}"));
    }
    if let Some(next) = next_step(outcome) {
        text.push_str(&format!("\n{next}"));
    }
    text
}

/// What continues after an ending.
pub fn next_step(outcome: Outcome) -> Option<&'static str> {
    Some(match outcome {
        Outcome::Complete => return None,
        Outcome::MaxIterations => "Go on: /ralph:start --resume --max-iterations N",
        Outcome::MaxRuntime => "Go on: /ralph:start --resume --max-hours N",
        Outcome::MaxCost => "Go on: /ralph:start --resume --max-cost N",
        Outcome::Blocked => {
            "Settle what ralph/blocked.txt says, remove that file, then /ralph:start --resume"
        }
        Outcome::Decide => {
            "Answer with `ralph answer TEXT` or in ralph/decide.txt, then /ralph:start --resume"
        }
        Outcome::Stuck | Outcome::Circuit => "Go on: /ralph:start --resume --reset",
        _ => "Go on: /ralph:start --resume",
    })
}

/// `812`, `45k`, `1.3M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::record::{LoopState, Usage};

    fn lap() -> Loop {
        Loop {
            state: LoopState::Running,
            iteration: 12,
            accumulated_runtime_seconds: 11_520.0,
            started_at: Stamp(0),
            ..Loop::default()
        }
    }

    #[test]
    fn one_line_says_where_the_loop_is() {
        let now = Stamp(15 * 3_600_000);
        let line = going_on(&lap(), &Note::default(), &Settings::default(), now);
        assert_eq!(line, "Ralph 12/50 · Runtime: 3.2h/9.0h | Wall: 15.0h");
        let late = Loop { iteration: 46, ..lap() };
        assert!(going_on(&late, &Note::default(), &Settings::default(), now).ends_with("· ENDING SOON"));
        let unlimited = Settings { max_iterations: 0, max_runtime_ms: 0, ..Settings::default() };
        assert_eq!(
            going_on(&lap(), &Note::default(), &unlimited, now),
            "Ralph 12 · Runtime: 3.2h | Wall: 15.0h"
        );
        let poc = Settings { max_runtime_ms: 600_000, ..Settings::default() };
        assert!(
            position(&Loop { accumulated_runtime_seconds: 60.0, ..lap() }, &poc, now)
                .contains("Runtime: 0.0h/0.2h")
        );
    }

    #[test]
    fn an_ending_names_outcome_reason_and_the_way_on() {
        let mut lap =
            Loop { usage: Usage { input_tokens: 45_678, cost_usd: Some(1.5), ..Usage::default() }, ..lap() };
        lap.end(Outcome::MaxIterations, "50 of 50 iterations\u{1b}[2J done", Stamp(3_600_000));
        assert_eq!(
            ended(&lap, &Settings::default(), Stamp(9_000_000)),
            "Ralph ended (max-iterations): iteration limit reached: 50 of 50 iterations[2J done. \
             12 iterations · Runtime: 3.2h/9.0h | Wall: 1.0h · 45k tokens · $1.50\n\
             Go on: /ralph:start --resume --max-iterations N"
        );
    }
}

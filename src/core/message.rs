//! What the user reads: one line at every turn, a few at an ending.

use super::clean;
use super::decide::Note;
use super::limits;
use super::outcome::Outcome;
use super::record::{Engine, Loop, WaitingFor};
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
    format!("{} | Wall: {}", runtime(lap, settings), time::hours(lap.wall_ms(now)))
}

/// `Runtime: 3.2h/9.0h`.
pub fn runtime(lap: &Loop, settings: &Settings) -> String {
    let limit = match settings.max_runtime_ms {
        0 => String::new(),
        long => format!("/{}", time::hours(long)),
    };
    format!("Runtime: {}{limit}", time::hours(lap.runtime_ms()))
}

pub fn of(count: u64, limit: u64) -> String {
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
    let mut line = position(lap, settings, now);
    if let Some(unsaid) = &lap.unsaid {
        line.push_str(&format!(" · {}", clean::excerpt(unsaid, 160)));
    }
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
    if let Some(next) = next_step(lap.engine, outcome) {
        text.push_str(&format!("\n{next}"));
    }
    text
}

/// What continues after an ending.
pub fn next_step(engine: Engine, outcome: Outcome) -> Option<String> {
    match engine {
        Engine::InSession => next_turn(outcome).map(str::to_owned),
        Engine::Runner => next_run(outcome).map(|next| format!("Next: {next}")),
    }
}

fn next_turn(outcome: Outcome) -> Option<&'static str> {
    Some(match outcome {
        Outcome::Complete => return None,
        Outcome::MaxIterations => "Go on: /ralph:start --resume --max-iterations N",
        Outcome::MaxRuntime => "Go on: /ralph:start --resume --max-hours N",
        Outcome::MaxCost => "Go on: /ralph:start --resume --max-cost N",
        Outcome::Blocked => {
            "Settle what ralph/blocked.txt says (`ralph answer TEXT` tells the agent), then /ralph:start --resume"
        }
        Outcome::Decide => {
            "Answer with `ralph answer TEXT` or in ralph/decide.txt, then /ralph:start --resume"
        }
        Outcome::Stuck | Outcome::Circuit => "Go on: /ralph:start --resume --reset",
        _ => "Go on: /ralph:start --resume",
    })
}

/// The same for the runner, in a terminal. Times are those of the run, so nothing is repeated.
pub fn next_run(outcome: Outcome) -> Option<&'static str> {
    Some(match outcome {
        Outcome::Complete => return None,
        Outcome::MaxIterations => "ralph run --max-iterations N",
        Outcome::MaxRuntime => "ralph run --max-hours N",
        Outcome::MaxCost => "ralph run --max-cost N",
        Outcome::Blocked => "settle what ralph/blocked.txt says (ralph answer TEXT), then ralph run",
        Outcome::Decide => "ralph answer TEXT, then ralph run",
        Outcome::Stuck | Outcome::Circuit => "ralph run --reset",
        _ => "ralph run",
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
    use crate::core::completion::Held;
    use crate::core::record::{LoopState, Queued, Usage, Waiting};

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

    #[test]
    fn the_line_tells_what_is_new_beside_the_position() {
        let held = Note { held: Some(Held::Tasks("1 of 3 tasks pass".into())), ..Note::default() };
        let pivot = Note { pivot: Some("4 turns without progress".into()), ..Note::default() };
        let capped = Settings { max_cost_usd: Some(5.0), ..Settings::default() };
        let spent =
            |iteration, cost_usd| Loop { iteration, usage: Usage { cost_usd, ..Usage::default() }, ..lap() };
        let unseen = " · this client reports no cost yet, the cost limit cannot act";
        let cases = [
            ("nothing", spent(1, None), Note::default(), Settings::default(), ""),
            (
                "a finish held back",
                lap(),
                held,
                Settings::default(),
                " · finish held back: 1 of 3 tasks pass",
            ),
            ("a warning", lap(), pivot, Settings::default(), " · 4 turns without progress"),
            ("cost", spent(1, Some(0.5)), Note::default(), capped.clone(), " · $0.50"),
            ("a cost limit without a cost", spent(1, None), Note::default(), capped.clone(), unseen),
            ("the same, but told before", spent(2, None), Note::default(), capped, ""),
        ];
        for (name, lap, note, settings, expected) in cases {
            let line = going_on(&lap, &note, &settings, Stamp(0));
            let (_, behind) = line.split_once("Wall: 0.0h").unwrap();
            assert_eq!(behind, expected, "{name}");
        }
    }

    #[test]
    fn who_goes_first_is_named() {
        let user = |text: &str| Some(WaitingFor::User(Queued { text: text.into(), at: Stamp(0) }));
        let cases = [
            (
                "a prompt",
                user("and the docs?"),
                " · your \"and the docs?\" goes first, then the loop goes on",
            ),
            ("the end", user("/ralph:stop"), " · your \"/ralph:stop\" goes first"),
            (
                "work",
                Some(WaitingFor::Background("cargo build".into())),
                " · waiting for background work: cargo build",
            ),
            ("nobody", None, ""),
        ];
        for (name, what, expected) in cases {
            let waiting = what.map(|what| Waiting { what, since: Stamp(0) });
            let line = making_way(&Loop { waiting, ..lap() }, &Settings::default(), Stamp(0));
            assert_eq!(line, format!("Ralph 12/50 · Runtime: 3.2h/9.0h | Wall: 0.0h{expected}"), "{name}");
        }
    }

    #[test]
    fn a_pause_says_why_and_both_ways_out() {
        let lap = Loop { reason: Some("you interrupted\u{1b} the agent".into()), ..lap() };
        assert_eq!(
            paused(&lap, &Settings::default(), Stamp(0)),
            "Ralph 12/50 · Runtime: 3.2h/9.0h | Wall: 0.0h · PAUSED: you interrupted the agent. \
             /ralph:start --resume goes on, /ralph:stop ends it"
        );
    }

    #[test]
    fn an_ending_of_one_turn_without_figures_is_short() {
        let mut lap = Loop { iteration: 1, ..lap() };
        lap.end(Outcome::Complete, "Is it enough?", Stamp(0));
        assert_eq!(
            ended(&lap, &Settings::default(), Stamp(0)),
            "Ralph ended (complete): task complete: Is it enough? 1 iteration · Runtime: 3.2h/9.0h | Wall: 0.0h"
        );
    }

    #[test]
    fn each_ending_has_its_own_way_on() {
        for (outcome, part) in [
            (Outcome::MaxIterations, "--max-iterations N"),
            (Outcome::MaxRuntime, "--max-hours N"),
            (Outcome::MaxCost, "--max-cost N"),
            (Outcome::Blocked, "tells the agent), then /ralph:start --resume"),
            (Outcome::Decide, "ralph/decide.txt, then /ralph:start --resume"),
            (Outcome::Stuck, "--resume --reset"),
            (Outcome::Circuit, "--resume --reset"),
            (Outcome::Stopped, "Go on: /ralph:start --resume"),
            (Outcome::Killed, "Go on: /ralph:start --resume"),
            (Outcome::UsageLimit, "Go on: /ralph:start --resume"),
            (Outcome::Interrupted, "Go on: /ralph:start --resume"),
            (Outcome::Error, "Go on: /ralph:start --resume"),
        ] {
            let step = next_step(Engine::InSession, outcome).unwrap_or_default();
            assert!(step.ends_with(part), "{outcome}: {step}");
        }
        assert_eq!(next_step(Engine::InSession, Outcome::Complete), None);
        assert_eq!(next_step(Engine::Runner, Outcome::Stuck).as_deref(), Some("Next: ralph run --reset"));
    }

    #[test]
    fn tokens_are_rounded_for_people() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (45_678, "45k"),
            (999_999, "999k"),
            (1_000_000, "1.0M"),
            (1_290_000, "1.3M"),
        ] {
            assert_eq!(tokens(count), expected, "{count}");
        }
    }
}

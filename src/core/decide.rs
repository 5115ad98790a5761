//! The heart: one turn ended, does the loop go on?
//!
//! Order matters and is the same for every engine: the user's word first, then the agent's, then the
//! limits, then the breaker, then whoever waits to be let in.

use super::circuit::{self, Verdict};
use super::completion::{self, Gate, Held};
use super::limits;
use super::outcome::Outcome;
use super::record::{Engine, Loop, LoopState, Queued, Waiting, WaitingFor};
use super::runtime::Clock;
use super::settings::Settings;
use super::signal::{self, Promise};
use super::time::Stamp;
use super::turn::{Gained, Turn};

#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Nothing to say: the loop ended or paused before, and the user knows.
    Silent,
    /// The loop has ended, now or elsewhere; the record says how.
    Ended,
    /// The loop is paused; the record says why.
    Paused,
    /// The stop is allowed, the loop stays armed.
    Yield,
    /// Nothing is decided: the user's commands must be run first, to prove what the agent claims.
    Verify,
    /// The agent goes on.
    Continue(Note),
}

/// What the agent should be told beside its position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Note {
    /// Why a claim of completion was not accepted.
    pub held: Option<Held>,
    /// The breaker's one warning.
    pub pivot: Option<String>,
    /// What could not be said at an earlier turn, because the stop was allowed there.
    pub unsaid: Option<String>,
    /// The limits are not those the agent was told.
    pub limits_changed: bool,
    /// The agent may not have the whole task.
    pub repeat_task: bool,
}

impl Note {
    /// What the agent must hear about this turn, now or later.
    pub fn advice(&self) -> Option<String> {
        let said: Vec<String> = self.held.iter().map(Held::advice).chain(self.pivot.clone()).collect();
        (!said.is_empty()).then(|| said.join("\n"))
    }
}

/// What the loop becomes after this turn, and what follows for the session.
pub fn decide(lap: Loop, turn: &Turn, settings: &Settings, now: Stamp) -> (Loop, Decision) {
    let mut lap = lap;
    if lap.state == LoopState::Stopped {
        return announce(lap, Decision::Ended);
    }
    if turn.kill_switch {
        lap.end(Outcome::Killed, "the file .claude/STOP_LOOP was there", now);
        return announce(lap, Decision::Ended);
    }
    if turn.stopped_all_at.is_some() && turn.stopped_all_at != lap.stop_all_seen {
        lap.end(Outcome::Stopped, "`ralph stop --all` was given", now);
        return announce(lap, Decision::Ended);
    }
    if lap.state == LoopState::Paused {
        return announce(lap, Decision::Paused);
    }
    account(&mut lap, turn, settings, now);
    let yielded_to = lap.waiting.take();
    lap.last_error = None;
    if lap.pause_if_interrupted() {
        return announce(lap, Decision::Paused);
    }
    let message = turn.message.as_deref();
    let status = message.and_then(signal::status);
    let word = message.and_then(|message| completion::word(message, status.as_ref(), settings));

    let before = lap.iteration;
    lap.iteration = lap.iteration.saturating_add(1);
    if lap.engine == Engine::Runner {
        let baseline = &lap.circuit.baseline;
        let moved = baseline.committed(turn).or_else(|| baseline.progress(turn, status.as_ref()));
        lap.stuck_count = if moved == Some(true) { 0 } else { lap.stuck_count.saturating_add(1) };
    }
    let mut note = Note::default();
    let signalled = word.is_some();
    match word {
        Some((Promise::Blocked(reason), _)) => lap.end(Outcome::Blocked, reason, now),
        Some((Promise::Decide(question), _)) => lap.end(Outcome::Decide, question, now),
        Some((Promise::Complete, claim)) => match completion::gate(&lap, turn, claim, settings) {
            Gate::Passed(reason) => lap.end(Outcome::Complete, reason, now),
            Gate::Held(held) => note.held = Some(held),
            Gate::Unproven => return (lap, Decision::Verify),
        },
        None => {}
    }
    if lap.state == LoopState::Stopped {
        return announce(lap, Decision::Ended);
    }
    if let Some(work) = turn.background.first() {
        lap.iteration = before;
        lap.waiting = Some(Waiting { what: WaitingFor::Background(work.clone()), since: now });
        lap.unsaid = note.advice().or(lap.unsaid.take());
        return (lap, Decision::Yield);
    }
    if let Some((outcome, reason)) = limits::reached(&lap, settings) {
        lap.end(outcome, reason, now);
        return announce(lap, Decision::Ended);
    }
    let committed = lap.circuit.baseline.committed(turn);
    let ticked = lap.circuit.baseline.ticked(turn);
    let evidence = circuit::Evidence {
        message,
        status: status.as_ref(),
        tools_used: turn.gained.as_ref().map(|gained| gained.tools_used),
        progress: lap.circuit.baseline.progress(turn, status.as_ref()),
        advanced: committed == Some(true) || ticked,
        ticked,
        signalled,
        biding_time: matches!(note.held, Some(Held::Minimum(_))),
    };
    let verdict = lap.circuit.judge(&evidence, &settings.circuit);
    lap.circuit.baseline.move_to(turn);
    if lap.engine == Engine::InSession {
        lap.stuck_count = lap.circuit.counters.stagnation;
    } else if settings.max_stuck > 0 && lap.stuck_count >= settings.max_stuck {
        let what = if committed.is_some() { "a commit" } else { "a change in the work tree" };
        lap.end(Outcome::Stuck, format!("{} iterations in a row without {what}", lap.stuck_count), now);
        return announce(lap, Decision::Ended);
    }
    match verdict {
        Verdict::Fine => {}
        Verdict::Pivot(text) => note.pivot = Some(text),
        Verdict::Trip(outcome, reason) => {
            lap.end(outcome, reason, now);
            return announce(lap, Decision::Ended);
        }
    }
    if let Some(queued) = first_in_line(&mut lap, yielded_to) {
        lap.waiting = Some(Waiting { what: WaitingFor::User(queued), since: now });
        lap.unsaid = note.advice().or(lap.unsaid.take());
        return (lap, Decision::Yield);
    }
    let told = (settings.max_iterations, settings.max_runtime_ms);
    note.limits_changed = lap.told_limits.replace(told).is_some_and(|before| before != told);
    note.repeat_task = std::mem::take(&mut lap.repeat_task);
    note.unsaid = lap.unsaid.take();
    (lap, Decision::Continue(note))
}

/// An ending or a pause is told once in its session, then never again.
fn announce(mut lap: Loop, decision: Decision) -> (Loop, Decision) {
    if std::mem::replace(&mut lap.announced, true) { (lap, Decision::Silent) } else { (lap, decision) }
}

/// Adds the turn's time, tokens and cost.
pub fn account(lap: &mut Loop, turn: &Turn, settings: &Settings, now: Stamp) {
    let mut clock =
        Clock::restore(lap.clock.take(), lap.runtime_ms(), Stamp::from_seconds(lap.last_hook_timestamp));
    let evidence = turn.gained.as_ref().map_or(&[][..], |gained| &gained.evidence);
    let runtime = clock.observe(evidence, now, turn.mark, settings.pause_threshold_ms).max(lap.runtime_ms());
    lap.accumulated_runtime_seconds = Stamp(runtime).seconds();
    lap.last_hook_timestamp = now.seconds();
    lap.clock = Some(clock);
    lap.closed_at = None;
    lap.unscanned |= !turn.wrote_nothing();
    if let Some(Gained { usage, reading, interrupted_at, .. }) = &turn.gained {
        lap.interrupted_at = lap.interrupted_at.max(*interrupted_at);
        lap.usage.add(usage);
        lap.reading = reading.clone();
    }
}

/// What the user has waiting. Something we made way for already and that still seems to wait is a ghost
/// of a queue we misread: making way again would stop the loop for nothing.
fn first_in_line(lap: &mut Loop, yielded_to: Option<Waiting>) -> Option<Queued> {
    if let Some(Waiting { what: WaitingFor::User(done), .. }) = yielded_to {
        lap.reading.queue.retain(|queued| *queued != done);
    }
    lap.reading.queue.first().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::runtime::{Event, Evidence, Mark};

    const HOUR: i64 = 3_600_000;
    const T0: Stamp = Stamp(1_000 * HOUR);

    fn running() -> Loop {
        Loop {
            run_id: "r".into(),
            state: LoopState::Running,
            task: "t".into(),
            started_at: T0,
            armed_at: T0,
            last_hook_timestamp: T0.seconds(),
            ..Loop::default()
        }
    }

    fn says(message: &str) -> Turn {
        Turn { message: Some(message.into()), ..Turn::default() }
    }

    fn gained(tools_used: u64) -> Gained {
        Gained { tools_used, ..Gained::default() }
    }

    fn minute(n: i64) -> Stamp {
        T0.plus_ms(n * 60_000)
    }

    fn ended(lap: &Loop) -> (Option<Outcome>, &str) {
        (lap.outcome, lap.reason.as_deref().unwrap_or(""))
    }

    #[test]
    fn a_turn_is_an_iteration_and_the_loop_goes_on() {
        let (lap, decision) = decide(running(), &says("working"), &Settings::default(), minute(2));
        assert_eq!(decision, Decision::Continue(Note::default()));
        assert_eq!((lap.iteration, lap.runtime_ms(), lap.state), (1, 120_000, LoopState::Running));
    }

    #[test]
    fn counters_somebody_edited_stay_where_they_end() {
        let settings = Settings { max_iterations: 0, circuit: Default::default(), ..Settings::default() };
        let mut lap = Loop { iteration: u64::MAX, ..running() };
        lap.circuit.counters.idle = u64::MAX;
        let idle = Turn { gained: Some(gained(0)), ..says("x") };
        let (lap, decision) = decide(lap, &idle, &settings, minute(1));
        assert_eq!(decision, Decision::Continue(Note::default()));
        assert_eq!((lap.iteration, lap.circuit.counters.idle), (u64::MAX, u64::MAX));
    }

    #[test]
    fn three_iterations_are_three_turns() {
        let settings = Settings { max_iterations: 3, ..Settings::default() };
        let mut lap = running();
        for turn in 1..=3 {
            let decision;
            (lap, decision) = decide(lap, &says("x"), &settings, minute(turn));
            assert_eq!(matches!(decision, Decision::Continue(_)), turn < 3);
        }
        assert_eq!(ended(&lap), (Some(Outcome::MaxIterations), "3 of 3 iterations done"));
        let (lap, decision) = decide(lap, &says("x"), &settings, minute(4));
        assert_eq!((decision, lap.iteration), (Decision::Silent, 3), "an ended loop is told once");
    }

    #[test]
    fn runtime_and_cost_limits() {
        let settings =
            Settings { max_runtime_ms: 4 * 60_000, max_cost_usd: Some(1.0), ..Settings::default() };
        let (lap, _) = decide(running(), &says("x"), &settings, minute(3));
        assert!(lap.is_alive());
        let (lap, _) = decide(lap, &says("x"), &settings, minute(4));
        assert_eq!(lap.outcome, Some(Outcome::MaxRuntime));
        let mut turn = says("x");
        turn.gained = Some(Gained {
            usage: super::super::record::Usage { cost_usd: Some(1.25), ..Default::default() },
            ..gained(1)
        });
        let (lap, _) = decide(running(), &turn, &settings, minute(1));
        assert_eq!(ended(&lap), (Some(Outcome::MaxCost), "$1.25 of $1.00 spent"));
        let unlimited = Settings { max_iterations: 0, max_runtime_ms: 0, ..Settings::default() };
        let (lap, _) = decide(Loop { iteration: 1_000_000, ..running() }, &says("x"), &unlimited, minute(1));
        assert!(lap.is_alive());
    }

    #[test]
    fn completion_is_held_back_by_a_minimum_and_beats_every_limit() {
        let done = says("ok\n<promise>COMPLETE</promise>");
        let settings = Settings { min_runtime_ms: HOUR, min_iterations: 2, ..Settings::default() };
        let (lap, decision) = decide(running(), &done, &settings, minute(1));
        let Decision::Continue(note) = decision else { panic!("{decision:?}") };
        let missing = "runtime is 1m of at least 1.0h, iteration 1 of at least 2";
        assert_eq!(note.held, Some(Held::Minimum(missing.into())));
        let met = Settings { min_iterations: 2, max_iterations: 2, ..Settings::default() };
        let (lap, decision) = decide(lap, &done, &met, minute(2));
        assert_eq!((decision, lap.outcome), (Decision::Ended, Some(Outcome::Complete)));
    }

    #[test]
    fn blocked_and_decide_end_at_once() {
        let settings = Settings { min_runtime_ms: HOUR, ..Settings::default() };
        let (lap, _) = decide(running(), &says("<promise>BLOCKED:no key</promise>"), &settings, minute(1));
        assert_eq!(ended(&lap), (Some(Outcome::Blocked), "no key"));
        let (lap, _) = decide(running(), &says("<promise>DECIDE:A or B?</promise>"), &settings, minute(1));
        assert_eq!(ended(&lap), (Some(Outcome::Decide), "A or B?"));
    }

    #[test]
    fn the_users_word_comes_before_the_agents() {
        let mut turn = says("<promise>COMPLETE</promise>");
        turn.kill_switch = true;
        let (lap, decision) = decide(running(), &turn, &Settings::default(), minute(1));
        assert_eq!((decision, lap.outcome, lap.iteration), (Decision::Ended, Some(Outcome::Killed), 0));
        let mut turn = says("x");
        turn.stopped_all_at = Some(minute(0));
        assert_eq!(
            decide(running(), &turn, &Settings::default(), minute(1)).0.outcome,
            Some(Outcome::Stopped)
        );
        let later = Loop { stop_all_seen: Some(minute(0)), ..running() };
        assert!(
            decide(later, &turn, &Settings::default(), minute(1)).0.is_alive(),
            "a stop before the start"
        );
    }

    #[test]
    fn esc_pauses_until_the_loop_is_resumed() {
        let mut turn = says("x");
        turn.gained = Some(Gained { interrupted_at: Some(minute(1)), ..gained(1) });
        let (lap, decision) = decide(running(), &turn, &Settings::default(), minute(2));
        assert_eq!((decision, lap.state, lap.iteration), (Decision::Paused, LoopState::Paused, 0));
        let (mut lap, decision) = decide(lap, &says("x"), &Settings::default(), minute(3));
        assert_eq!(decision, Decision::Silent);
        lap.resume(minute(9));
        let (lap, decision) = decide(lap, &turn, &Settings::default(), minute(10));
        assert!(matches!(decision, Decision::Continue(note) if note.repeat_task));
        assert_eq!(lap.runtime_ms(), 2 * 60_000 + 60_000, "the pause is not runtime");
    }

    #[test]
    fn background_work_is_waited_for_and_not_counted() {
        let mut turn = says("started the build");
        turn.background = vec!["cargo build".into()];
        turn.gained = Some(gained(0));
        let mut lap = running();
        for n in 1..20 {
            let decision;
            (lap, decision) = decide(lap, &turn, &Settings::default(), minute(n));
            assert_eq!((decision, lap.iteration, lap.circuit.counters.idle), (Decision::Yield, 0, 0));
        }
        turn.message = Some("<promise>COMPLETE</promise>".into());
        assert_eq!(decide(lap, &turn, &Settings::default(), minute(21)).0.outcome, Some(Outcome::Complete));
    }

    #[test]
    fn a_waiting_command_goes_first_and_only_once() {
        let queued = Queued { text: "/ralph:status".into(), at: minute(1) };
        let mut turn = says("x");
        turn.gained = Some(Gained {
            reading: super::super::record::Reading { queue: vec![queued.clone()], ..Default::default() },
            ..gained(1)
        });
        let (lap, decision) = decide(running(), &turn, &Settings::default(), minute(2));
        assert_eq!((decision, lap.iteration), (Decision::Yield, 1));
        assert_eq!(lap.waiting.as_ref().unwrap().what, WaitingFor::User(queued));
        let (lap, decision) = decide(lap, &turn, &Settings::default(), minute(3));
        assert!(
            matches!(decision, Decision::Continue(_)),
            "a ghost in the queue does not stop the loop twice"
        );
        assert_eq!(lap.waiting, None);
    }

    #[test]
    fn idle_turns_end_as_stuck_before_the_clients_own_cap() {
        let mut turn = says("thinking");
        turn.gained = Some(gained(0));
        let (mut lap, mut turns) = (running(), 0);
        while lap.is_alive() && turns < 9 {
            turns += 1;
            turn.message = Some(format!("thinking about part {turns} of the work"));
            lap = decide(lap, &turn, &Settings::default(), minute(turns)).0;
        }
        assert_eq!((turns, lap.outcome), (5, Some(Outcome::Stuck)));
    }

    #[test]
    fn a_loop_stopped_from_elsewhere_is_told_once_and_stays_stopped() {
        let mut lap = running();
        lap.end(Outcome::Stopped, "ralph stop", minute(1));
        let (lap, decision) =
            decide(lap, &says("<promise>COMPLETE</promise>"), &Settings::default(), minute(2));
        assert_eq!((decision, lap.outcome), (Decision::Ended, Some(Outcome::Stopped)));
        assert_eq!(decide(lap, &says("x"), &Settings::default(), minute(3)).1, Decision::Silent);
    }

    #[test]
    fn long_turns_count_by_the_transcript() {
        let mut turn = says("x");
        turn.mark = Mark::Answered;
        let evidence = vec![
            Evidence { at: minute(0), event: Event::Sent },
            Evidence { at: minute(58), event: Event::Answer },
        ];
        turn.gained = Some(Gained { evidence, ..gained(1) });
        let (lap, _) = decide(running(), &turn, &Settings::default(), minute(59));
        assert_eq!(lap.runtime_ms(), 59 * 60_000);
    }

    #[test]
    fn changed_limits_are_news_once() {
        let (lap, _) = decide(running(), &says("x"), &Settings::default(), minute(1));
        let more = Settings { max_iterations: 99, ..Settings::default() };
        let (lap, decision) = decide(lap, &says("x"), &more, minute(2));
        assert!(matches!(decision, Decision::Continue(note) if note.limits_changed));
        let (_, decision) = decide(lap, &says("x"), &more, minute(3));
        assert!(matches!(decision, Decision::Continue(note) if !note.limits_changed));
    }

    #[test]
    fn what_may_have_been_written_waits_for_the_scan() {
        let read = |tools_that_write| Turn {
            gained: Some(Gained { tools_that_write, last_text: Some("x".into()), ..gained(1) }),
            ..says("x")
        };
        for (name, before, turn, expected) in [
            ("only reading", false, read(0), false),
            ("a tool that writes", false, read(1), true),
            ("nothing known", false, says("x"), true),
            ("written before, then only reading", true, read(0), true),
            ("written before and again", true, read(1), true),
        ] {
            let lap = Loop { unscanned: before, ..running() };
            assert_eq!(decide(lap, &turn, &Settings::default(), minute(1)).0.unscanned, expected, "{name}");
        }
    }
}

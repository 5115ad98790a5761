//! Decides what follows after a turn: does the loop continue, wait, pause or end?
//!
//! The order is the same for both engines: the user's stop or Esc, the agent's signal, a question left open in the
//! client's dialog, background work, the limits, a wait for a reset that is not over, denied permissions, the circuit
//! breaker, what the user has queued, the usage of the plan, the level of the context. `docs/deciding.md` has it as a
//! table.

pub mod accounting;
pub mod background;
pub mod breaker;
pub mod completion;
pub mod figures;
pub mod handover;
pub mod limits;
pub mod outlook;
pub mod permission;
pub mod quota;
pub mod turn;

use super::circuit::{BreakerVerdict, BreakerWarning};
use super::outcome::Outcome;
use super::record::{ArmedLoop, Engine, LoopState, QueuedPrompt, StoredLoop, Waiting, WaitingFor};
use super::settings::Settings;
use super::signal::{self, Ignored, Promise};
use super::time::Stamp;
use crate::core::decide::turn::Turn;
use completion::{Gate, Rejection};

#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The loop ended or paused before, and the user knows.
    Silent,
    /// The loop has ended, now or elsewhere; the record says how.
    Ended,
    /// The loop is paused; the record says why.
    Paused,
    /// The stop is allowed and the loop stays armed; the record says what it waits for.
    Wait,
    /// The agent claims completion: run the checks and decide again.
    RunChecks,
    Continue(Box<Note>),
}

impl Decision {
    /// Returns what the agent should be told, if it continues.
    pub fn note(&self) -> Option<&Note> {
        if let Decision::Continue(note) = self { Some(note) } else { None }
    }
}

/// What the agent should be told beside its position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Note {
    /// Why its claim of completion was rejected.
    pub rejected: Option<Rejection>,
    /// Why its signal does not count.
    pub ignored: Option<Ignored>,
    /// The breaker's warning, one step before it trips.
    pub warning: Option<BreakerWarning>,
    /// Advice from an earlier turn whose stop was allowed, so that it could not be given there.
    pub earlier_advice: Option<String>,
    pub next_turn: NextTurn,
    /// The limits differ from those the agent knows.
    pub limits_changed: bool,
    /// The agent may not have the whole task.
    pub repeat_task: bool,
    /// Why the cost limit cannot act.
    pub cost_unknown: Option<String>,
    /// Pauses before this turn that were left out of runtime, in milliseconds. For the user.
    pub paused_ms: i64,
}

/// What the level of the plan or of the context means for the agent's next turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum NextTurn {
    #[default]
    Continue,
    /// So much of the user's plan is used that the agent must bring the work to a safe point.
    FinishUp(String),
    /// The context is so full that the agent must hand over to a new one.
    WriteHandover(String),
    /// The agent has handed over: it continues in a new context.
    NewContext,
}

impl NextTurn {
    fn advice(&self) -> Option<String> {
        match self {
            NextTurn::FinishUp(words) => Some(quota::finish_up_advice(words)),
            NextTurn::WriteHandover(words) => Some(handover::advice(words)),
            NextTurn::Continue | NextTurn::NewContext => None,
        }
    }
}

impl Note {
    /// Returns what the agent must be told about this turn, now or later.
    pub fn advice(&self) -> Option<String> {
        let advice = self.rejected.iter().map(Rejection::advice);
        let advice = advice.chain(self.ignored.iter().map(Ignored::advice));
        let advice = advice.chain(self.warning.iter().map(BreakerWarning::for_agent));
        let advice: Vec<String> = advice.chain(self.next_turn.advice()).collect();
        (!advice.is_empty()).then(|| advice.join("\n"))
    }
}

/// How the kill switch ends a loop.
pub const KILLED: (Outcome, &str) = (Outcome::Killed, ".claude/STOP_LOOP was found");

/// Returns the loop as it is after this turn, and what follows for the session.
pub fn decide(mut run: ArmedLoop, turn: &Turn, settings: &Settings, now: Stamp) -> (ArmedLoop, Decision) {
    if run.state == LoopState::Stopped {
        return announce(run, Decision::Ended);
    }
    if let Some((outcome, reason)) = stop_given(&run, turn.kill_switch, turn.stopped_all_at) {
        run.end(outcome, reason, now);
        return announce(run, Decision::Ended);
    }
    if run.state == LoopState::Paused {
        return announce(run, Decision::Paused);
    }
    let (since, used) = (run.last_seen(), run.usage.clone());
    accounting::add_turn(&mut run, turn, settings, now);
    let today = turn.today.map(|today| today.plus(run.usage.since(&used)));
    let figures = turn.figures.as_ref().filter(|figures| figures.is_of_turn(since, now));
    let windows = figures.map(|figures| &figures.windows[..]);
    let cost_unknown = accounting::cost_unknown(&mut run, turn, figures.is_some(), settings, now);
    let waited_for = run.session.waiting.take();
    (run.session.last_error, run.session.outage) = (None, None);
    run.remember_checks(&turn.check_results);
    run.checks.retain(|check| settings.checks.contains(&check.command));
    if run.pause_if_interrupted() {
        return announce(run, Decision::Paused);
    }
    run.session.work_tree.clone_from(&turn.work_tree);
    run.circuit.move_to(&turn.work_tree);
    let (believed, disbelieved) = completion::believed(turn, settings);
    let turn = &*believed;
    let message = turn.message.as_deref();
    let status = message.and_then(signal::status);
    let signal = message.and_then(|message| completion::signal(message, status.as_ref(), settings));

    let before = run.iteration;
    run.iteration = run.iteration.saturating_add(1);
    if run.engine == Engine::Runner {
        breaker::count_stuck(&mut run, turn, status.as_ref());
    }
    run.status_block = status.clone();
    run.output_characters = message.map(|message| message.chars().count() as u64);
    let mut note = Note::default();
    let gave_signal = matches!(signal, Some(Ok(_)));
    match signal {
        Some(Ok((Promise::Blocked(reason), _))) => run.end(Outcome::Blocked, reason, now),
        Some(Ok((Promise::Decide(question), _))) => run.end(Outcome::Decide, question, now),
        Some(Ok((Promise::Complete, claim))) => match completion::gate(&run, turn, claim, settings) {
            Gate::Passed(reason) => run.end(Outcome::Complete, reason, now),
            Gate::Rejected(rejection) => {
                run.rejected_claim = Some(rejection.brief());
                note.rejected = Some(rejection);
            }
            Gate::NeedsChecks => return (run, Decision::RunChecks),
        },
        Some(Err(ignored)) => note.ignored = Some(ignored),
        None => {}
    }
    note.ignored = disbelieved.or(note.ignored);
    if let Some(question) = run.pending.question.take().filter(|_| run.is_alive()) {
        run.end(Outcome::Decide, question, now);
    }
    if run.state == LoopState::Stopped {
        return announce(run, Decision::Ended);
    }
    let (awaited, still_running) =
        background::wait(&mut run, &turn.background, settings.background_wait_ms, now);
    if let Some(awaited) = awaited {
        run.iteration = before;
        return wait(run, WaitingFor::Background(awaited), &note, now);
    }
    if !still_running.is_empty() {
        let advice = run.pending.advice.take().into_iter().chain([background::advice(&still_running)]);
        run.pending.advice = Some(advice.collect::<Vec<_>>().join("\n"));
    }
    let held = quota::still_held(&run.quota, windows, &settings.quota, now);
    if held.is_some() {
        run.iteration = before;
    }
    let reached_today = || limits::reached_today(today?, settings);
    if let Some((outcome, mut reason)) = limits::reached(&run, settings).or_else(reached_today) {
        if let Some(ignored) = &note.ignored {
            reason.push_str(&format!("; the last signal was ignored: {}", ignored.brief()));
        } else if let Some(rejected) = &run.rejected_claim {
            reason.push_str(&format!("; the last claim of completion was rejected: {rejected}"));
        }
        return end(run, outcome, reason, &note, now);
    }
    if let Some(until) = held {
        return wait(run, WaitingFor::UsageLimit(until), &note, now);
    }
    let progress = run.circuit.baseline.progress(turn, status.as_ref());
    if let Some(reason) = permission::end_turn(&mut run, progress) {
        run.end(Outcome::Blocked, reason, now);
        return announce(run, Decision::Ended);
    }
    let verdict = breaker::judge(&mut run, turn, status.as_ref(), gave_signal, &note, settings);
    match verdict {
        BreakerVerdict::Fine => {}
        BreakerVerdict::Warn(warning) => note.warning = Some(warning),
        BreakerVerdict::Trip(outcome, reason) => {
            return end(run, outcome, reason, &note, now);
        }
    }
    if let Some(queued) = next_queued(&mut run, waited_for) {
        return wait(run, WaitingFor::User(queued), &note, now);
    }
    match quota::judge(&mut run.quota, windows, &settings.quota, now) {
        quota::QuotaVerdict::Fine => {}
        quota::QuotaVerdict::FinishUp(words) => note.next_turn = NextTurn::FinishUp(words),
        quota::QuotaVerdict::Wait(until) => {
            return wait(run, WaitingFor::UsageLimit(until), &note, now);
        }
        quota::QuotaVerdict::End(reason) => {
            return end(run, Outcome::UsageLimit, reason, &note, now);
        }
    }
    if note.next_turn == NextTurn::Continue {
        let level = figures.and_then(|figures| figures.context_percent);
        note.next_turn = handover::judge(&mut run.session.handover, level, settings.max_context_percent);
    }
    if note.next_turn == NextTurn::NewContext && turn.can_compact {
        return wait(run, WaitingFor::Compaction, &note, now);
    }
    let limits = (settings.max_iterations, settings.max_runtime_ms);
    note.limits_changed = run.told.limits.replace(limits).is_some_and(|told| told != limits);
    note.repeat_task = std::mem::take(&mut run.pending.repeat_task);
    note.earlier_advice = run.pending.advice.take();
    note.cost_unknown = cost_unknown;
    note.paused_ms = std::mem::take(&mut run.timing.paused_ms);
    (run, Decision::Continue(Box::new(note)))
}

/// Returns how the user ended the loop from outside, if so.
pub fn stop_given(
    run: &StoredLoop,
    kill_switch: bool,
    stopped_all_at: Option<Stamp>,
) -> Option<(Outcome, &'static str)> {
    if kill_switch {
        return Some(KILLED);
    }
    let is_new = stopped_all_at.is_some() && stopped_all_at != run.timing.stop_all_seen;
    is_new.then_some((Outcome::Stopped, "`ralph stop --all` was run"))
}

/// Tells an ending or a pause once in its session.
fn announce(mut run: ArmedLoop, decision: Decision) -> (ArmedLoop, Decision) {
    if std::mem::replace(&mut run.told.ending, true) { (run, Decision::Silent) } else { (run, decision) }
}

/// Ends the loop and keeps the advice, in case it is resumed.
fn end(
    mut run: ArmedLoop,
    outcome: Outcome,
    reason: String,
    note: &Note,
    now: Stamp,
) -> (ArmedLoop, Decision) {
    run.pending.advice = note.advice().or(run.pending.advice.take());
    run.end(outcome, reason, now);
    announce(run, Decision::Ended)
}

/// Allows the stop and keeps the advice for the turn after it.
fn wait(mut run: ArmedLoop, what: WaitingFor, note: &Note, now: Stamp) -> (ArmedLoop, Decision) {
    run.session.waiting = Some(Waiting { what, since: now });
    run.pending.advice = note.advice().or(run.pending.advice.take());
    (run, Decision::Wait)
}

/// Returns what the user has queued. An entry that the last stop was already allowed for and that is still there was
/// misread: waiting for it again would stop the loop for nothing.
fn next_queued(run: &mut ArmedLoop, waited_for: Option<Waiting>) -> Option<QueuedPrompt> {
    if let Some(Waiting { what: WaitingFor::User(done), .. }) = waited_for {
        run.session.transcript.queue.retain(|queued| *queued != done);
    }
    run.session.transcript.queue.first().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::decide::turn::{Task, TranscriptGain};
    use crate::core::record::{StoredLoop, Timing};
    use crate::core::time::runtime::{HookKind, TimedEvent, TranscriptEvent};

    const HOUR: i64 = 3_600_000;
    const T0: Stamp = Stamp(1_000 * HOUR);

    fn running() -> ArmedLoop {
        let stored = StoredLoop {
            run_id: "r".into(),
            state: LoopState::Running,
            task: "t".into(),
            started_at: T0,
            last_hook_timestamp: T0.seconds(),
            timing: Timing { armed_at: T0, ..Timing::default() },
            ..StoredLoop::default()
        };
        stored.into()
    }

    fn running_with(change: impl FnOnce(&mut ArmedLoop)) -> ArmedLoop {
        let mut run = running();
        change(&mut run);
        run
    }

    fn says(message: &str) -> Turn {
        Turn { message: Some(message.into()), ..Turn::default() }
    }

    fn gained(tools_used: u64) -> TranscriptGain {
        TranscriptGain { tools_used, ..TranscriptGain::default() }
    }

    fn minute(n: i64) -> Stamp {
        T0.plus_ms(n * 60_000)
    }

    fn ended(run: &ArmedLoop) -> (Option<Outcome>, &str) {
        (run.outcome, run.reason.as_deref().unwrap_or(""))
    }

    #[test]
    fn a_turn_is_an_iteration_and_the_loop_continues() {
        let (run, decision) = decide(running(), &says("working"), &Settings::default(), minute(2));
        assert_eq!(decision, Decision::Continue(Box::default()));
        assert_eq!((run.iteration, run.runtime_ms(), run.state), (1, 120_000, LoopState::Running));
    }

    #[test]
    fn counters_edited_to_their_maximum_stay_there() {
        let settings = Settings { max_iterations: 0, circuit: Default::default(), ..Settings::default() };
        let mut run = running_with(|run| run.iteration = u64::MAX);
        run.circuit.counters = run.circuit.counters.with("idle", u64::MAX);
        let idle = Turn { gained: Some(gained(0)), ..says("x") };
        let (run, decision) = decide(run, &idle, &settings, minute(1));
        assert_eq!(decision, Decision::Continue(Box::default()));
        assert_eq!((run.iteration, run.circuit.counters.get("idle")), (u64::MAX, u64::MAX));
    }

    #[test]
    fn three_iterations_are_three_turns() {
        let settings = Settings { max_iterations: 3, ..Settings::default() };
        let mut run = running();
        for turn in 1..=3 {
            let decision;
            (run, decision) = decide(run, &says("x"), &settings, minute(turn));
            assert_eq!(matches!(decision, Decision::Continue(_)), turn < 3);
        }
        assert_eq!(ended(&run), (Some(Outcome::MaxIterations), "3 of 3 iterations done"));
        let (run, decision) = decide(run, &says("x"), &settings, minute(4));
        assert_eq!((decision, run.iteration), (Decision::Silent, 3), "an ended loop is told once");
    }

    #[test]
    fn runtime_and_cost_limits() {
        let settings =
            Settings { max_runtime_ms: 4 * 60_000, max_cost_usd: Some(1.0), ..Settings::default() };
        let (run, _) = decide(running(), &says("x"), &settings, minute(3));
        assert!(run.is_alive());
        let (run, _) = decide(run, &says("x"), &settings, minute(4));
        assert_eq!(run.outcome, Some(Outcome::MaxRuntime));
        let mut turn = says("x");
        turn.gained = Some(TranscriptGain {
            usage: super::super::record::Usage { cost_usd: Some(1.25), ..Default::default() },
            ..gained(1)
        });
        let (run, _) = decide(running(), &turn, &settings, minute(1));
        assert_eq!(ended(&run), (Some(Outcome::MaxCost), "$1.25 of $1.00 spent"));
        let unlimited = Settings { max_iterations: 0, max_runtime_ms: 0, ..Settings::default() };
        let (run, _) =
            decide(running_with(|run| run.iteration = 1_000_000), &says("x"), &unlimited, minute(1));
        assert!(run.is_alive());
    }

    #[test]
    fn completion_is_rejected_below_a_minimum_and_beats_every_limit() {
        let done = says("ok\n<promise>COMPLETE</promise>");
        let settings = Settings { min_runtime_ms: HOUR, min_iterations: 2, ..Settings::default() };
        let (run, decision) = decide(running(), &done, &settings, minute(1));
        let Decision::Continue(note) = decision else { panic!("{decision:?}") };
        let missing = "minimum runtime not reached (1m of 1h), minimum iterations not reached (1 of 2)";
        assert_eq!(note.rejected, Some(Rejection::Minimum(missing.into())));
        let met = Settings { min_iterations: 2, max_iterations: 2, ..Settings::default() };
        let (run, decision) = decide(run, &done, &met, minute(2));
        assert_eq!((decision, run.outcome), (Decision::Ended, Some(Outcome::Complete)));
    }

    #[test]
    fn blocked_and_decide_end_at_once() {
        let settings = Settings { min_runtime_ms: HOUR, ..Settings::default() };
        let (run, _) = decide(running(), &says("<promise>BLOCKED:no key</promise>"), &settings, minute(1));
        assert_eq!(ended(&run), (Some(Outcome::Blocked), "no key"));
        let (run, _) = decide(running(), &says("<promise>DECIDE:A or B?</promise>"), &settings, minute(1));
        assert_eq!(ended(&run), (Some(Outcome::Decide), "A or B?"));
    }

    #[test]
    fn the_users_word_comes_before_the_agents() {
        let mut turn = says("<promise>COMPLETE</promise>");
        turn.kill_switch = true;
        let (run, decision) = decide(running(), &turn, &Settings::default(), minute(1));
        assert_eq!((decision, run.outcome, run.iteration), (Decision::Ended, Some(Outcome::Killed), 0));
        let mut turn = says("x");
        turn.stopped_all_at = Some(minute(0));
        assert_eq!(
            decide(running(), &turn, &Settings::default(), minute(1)).0.outcome,
            Some(Outcome::Stopped)
        );
        let later = running_with(|run| run.timing.stop_all_seen = Some(minute(0)));
        assert!(
            decide(later, &turn, &Settings::default(), minute(1)).0.is_alive(),
            "a stop before the start"
        );
    }

    #[test]
    fn esc_pauses_until_the_loop_is_resumed() {
        let mut turn = says("x");
        turn.gained = Some(TranscriptGain { interrupted_at: Some(minute(1)), ..gained(1) });
        let (run, decision) = decide(running(), &turn, &Settings::default(), minute(2));
        assert_eq!((decision, run.state, run.iteration), (Decision::Paused, LoopState::Paused, 0));
        let (mut run, decision) = decide(run, &says("x"), &Settings::default(), minute(3));
        assert_eq!(decision, Decision::Silent);
        run.resume(minute(9));
        let (run, decision) = decide(run, &turn, &Settings::default(), minute(10));
        assert!(matches!(decision, Decision::Continue(note) if note.repeat_task));
        assert_eq!(run.runtime_ms(), 2 * 60_000 + 60_000, "the pause is not runtime");
    }

    #[test]
    fn background_work_is_waited_for_and_not_counted() {
        let mut turn = says("started the build");
        let task = Task { id: "b".into(), name: "cargo build".into(), is_agent: true };
        turn.background = vec![task];
        turn.gained = Some(gained(0));
        let mut run = running();
        for n in 1..20 {
            let decision;
            (run, decision) = decide(run, &turn, &Settings::default(), minute(n));
            assert_eq!((decision, run.iteration, run.circuit.counters.get("idle")), (Decision::Wait, 0, 0));
        }
        turn.message = Some("<promise>COMPLETE</promise>".into());
        assert_eq!(decide(run, &turn, &Settings::default(), minute(21)).0.outcome, Some(Outcome::Complete));
    }

    #[test]
    fn a_waiting_command_goes_first_and_only_once() {
        let queued = QueuedPrompt { text: "/ralph:status".into(), at: minute(1) };
        let mut turn = says("x");
        turn.gained = Some(TranscriptGain {
            reading: super::super::record::TranscriptPosition {
                queue: vec![queued.clone()],
                ..Default::default()
            },
            ..gained(1)
        });
        let (run, decision) = decide(running(), &turn, &Settings::default(), minute(2));
        assert_eq!((decision, run.iteration), (Decision::Wait, 1));
        assert_eq!(run.session.waiting.as_ref().unwrap().what, WaitingFor::User(queued));
        let (run, decision) = decide(run, &turn, &Settings::default(), minute(3));
        assert!(
            matches!(decision, Decision::Continue(_)),
            "a ghost in the queue does not stop the loop twice"
        );
        assert_eq!(run.session.waiting, None);
    }

    #[test]
    fn idle_turns_end_as_stuck_before_the_clients_own_cap() {
        let mut turn = says("thinking");
        turn.gained = Some(gained(0));
        let (mut run, mut turns) = (running(), 0);
        while run.is_alive() && turns < 9 {
            turns += 1;
            turn.message = Some(format!("thinking about part {turns} of the work"));
            run = decide(run, &turn, &Settings::default(), minute(turns)).0;
        }
        assert_eq!((turns, run.outcome), (5, Some(Outcome::Stuck)));
    }

    #[test]
    fn a_loop_stopped_from_elsewhere_is_told_once_and_stays_stopped() {
        let mut run = running();
        run.end(Outcome::Stopped, "ralph stop", minute(1));
        let (run, decision) =
            decide(run, &says("<promise>COMPLETE</promise>"), &Settings::default(), minute(2));
        assert_eq!((decision, run.outcome), (Decision::Ended, Some(Outcome::Stopped)));
        assert_eq!(decide(run, &says("x"), &Settings::default(), minute(3)).1, Decision::Silent);
    }

    #[test]
    fn long_turns_count_by_the_transcript() {
        let mut turn = says("x");
        turn.hook = HookKind::TurnEnded;
        let evidence = vec![
            TimedEvent { at: minute(0), event: TranscriptEvent::Sent },
            TimedEvent { at: minute(58), event: TranscriptEvent::Answer },
        ];
        turn.gained = Some(TranscriptGain { evidence, ..gained(1) });
        let (run, _) = decide(running(), &turn, &Settings::default(), minute(59));
        assert_eq!(run.runtime_ms(), 59 * 60_000);
    }

    #[test]
    fn a_signal_that_does_not_count_is_answered_with_the_reason() {
        let status = |fields: &str| format!("---RALPH_STATUS---\n{fields}\n---END_RALPH_STATUS---");
        for (message, expected) in [
            ("Done: <promise>COMPLETE</promise>".into(), Some(Ignored::TagNotAlone)),
            (status("EXIT_SIGNAL: true"), Some(Ignored::ExitSignal { phrases: 0, needed: 2 })),
            (status("STATUS: COMPLETE"), Some(Ignored::StatusComplete)),
            (status("STATUS: COMPLETE\nEXIT_SIGNAL: false"), None),
            (status("STATUS: IN_PROGRESS"), None),
        ] {
            let (run, decision) = decide(running(), &says(&message), &Settings::default(), minute(1));
            let Decision::Continue(note) = decision else { panic!("{decision:?}") };
            assert_eq!(note.ignored, expected, "{message}");
            assert_eq!(note.advice(), expected.map(|why| why.advice()), "the agent is told");
            assert_eq!(run.output_characters, Some(message.chars().count() as u64));
        }
    }

    #[test]
    fn the_last_status_block_is_kept_for_one_turn() {
        let block = "---RALPH_STATUS---\nRECOMMENDATION: parse next\n---END_RALPH_STATUS---";
        let (run, _) = decide(running(), &says(block), &Settings::default(), minute(1));
        let advice = |run: &ArmedLoop| run.status_block.as_ref()?.recommendation.clone();
        assert_eq!(advice(&run).as_deref(), Some("parse next"));
        assert_eq!(advice(&decide(run, &says("x"), &Settings::default(), minute(2)).0), None);
    }

    #[test]
    fn a_warning_of_max_stuck_does_not_hide_one_of_the_breaker() {
        let mut run = running_with(|run| {
            run.engine = Engine::Runner;
            run.circuit.baseline.head = Some("a".into());
        });
        let settings = Settings { max_stuck: 4, ..Settings::default() };
        let mut note = Note::default();
        for n in 1..4 {
            let tests = format!("part {n}\n---RALPH_STATUS---\nWORK_TYPE: TESTING\n---END_RALPH_STATUS---");
            let edits = Some(TranscriptGain { edits: 1, ..gained(1) });
            let head = Some("a".into());
            let settings = Settings { circuit: settings.circuit.with("test_only", 4), ..settings.clone() };
            let decision;
            (run, decision) =
                decide(run, &Turn { gained: edits, head, ..says(&tests) }, &settings, minute(n));
            let Decision::Continue(next) = decision else { panic!("{decision:?}") };
            note = *next;
        }
        let warning = note.warning.unwrap().found;
        assert!(warning.contains("testing only") && warning.contains("nothing was committed"), "{warning}");
    }

    #[test]
    fn a_completed_run_needs_its_answers_no_more() {
        for (message, kept) in
            [("x", 1), ("<promise>BLOCKED:no key</promise>", 1), ("<promise>COMPLETE</promise>", 0)]
        {
            let run = running_with(|run| {
                run.pending.answers = vec!["take B".into()];
                run.pending.blocked = Some("no key".into());
            });
            let (run, _) = decide(run, &says(message), &Settings::default(), minute(1));
            assert_eq!(
                (run.pending.answers.len(), run.pending.blocked.iter().len()),
                (kept, kept),
                "{message}"
            );
        }
    }

    #[test]
    fn changed_limits_are_news_once() {
        let (run, _) = decide(running(), &says("x"), &Settings::default(), minute(1));
        let more = Settings { max_iterations: 99, ..Settings::default() };
        let (run, decision) = decide(run, &says("x"), &more, minute(2));
        assert!(matches!(decision, Decision::Continue(note) if note.limits_changed));
        let (_, decision) = decide(run, &says("x"), &more, minute(3));
        assert!(matches!(decision, Decision::Continue(note) if !note.limits_changed));
    }

    #[test]
    fn what_may_have_been_written_waits_for_the_scan() {
        let read = |tools_that_write| Turn {
            gained: Some(TranscriptGain { tools_that_write, last_text: Some("x".into()), ..gained(1) }),
            ..says("x")
        };
        for (name, before, turn, expected) in [
            ("only reading", false, read(0), false),
            ("a tool that writes", false, read(1), true),
            ("nothing known", false, says("x"), true),
            ("written before, then only reading", true, read(0), true),
            ("written before and again", true, read(1), true),
        ] {
            let run = running_with(|run| run.session.unscanned = before);
            assert_eq!(
                decide(run, &turn, &Settings::default(), minute(1)).0.session.unscanned,
                expected,
                "{name}"
            );
        }
    }
}

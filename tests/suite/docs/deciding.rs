//! The order of the checks in `docs/deciding.md` against the decisions: of two that apply, the first in the table decides.

use super::{page, rows};
use ralph::core::circuit::Circuit;
use ralph::core::decide::figures::{FigureSource, Figures, Window};
use ralph::core::decide::turn::{Task, Turn};
use ralph::core::decide::{Decision, NextTurn, decide};
use ralph::core::outcome::Outcome;
use ralph::core::record::{
    ArmedLoop, Denied, LoopState, QueuedPrompt, QuotaWait, StoredLoop, Timing, WaitingFor,
};
use ralph::core::settings::Settings;
use ralph::core::time::Stamp;

const START: Stamp = Stamp(3_600_000_000);

/// The end of a turn.
struct Case {
    run: ArmedLoop,
    turn: Turn,
    settings: Settings,
}

impl Case {
    fn now() -> Stamp {
        START.plus_ms(60_000)
    }

    fn new() -> Case {
        let stored = StoredLoop {
            run_id: "r".into(),
            state: LoopState::Running,
            task: "t".into(),
            started_at: START,
            last_hook_timestamp: START.seconds(),
            timing: Timing { armed_at: START, ..Timing::default() },
            ..StoredLoop::default()
        };
        let run = ArmedLoop::attach(stored, Circuit::default(), serde_json::Map::new(), None);
        let turn = Turn { message: Some("Next I read the parser.".into()), ..Turn::default() };
        Case { run, turn, settings: Settings::default() }
    }

    fn figures(&mut self) -> &mut Figures {
        self.turn.figures.get_or_insert(Figures {
            at: Case::now(),
            source: FigureSource::StatusLine,
            spent_usd: None,
            first_usd: None,
            context_percent: None,
            windows: Vec::new(),
            has_module: false,
        })
    }

    /// Names the step that decides.
    fn decided_by(self) -> &'static str {
        let (run, decision) = decide(self.run, &self.turn, &self.settings, Case::now());
        let waits_for = run.session.waiting.as_ref().map(|waiting| &waiting.what);
        match (decision, run.outcome, waits_for) {
            (Decision::Ended, Some(Outcome::Killed), _) => "you",
            (Decision::Ended, Some(Outcome::Blocked), _) if run.reason.as_deref() == Some("no key") => {
                "the agent"
            }
            (Decision::Ended, Some(Outcome::Decide), _) => "a question",
            (Decision::Wait, _, Some(WaitingFor::Background(_))) => "background work",
            (Decision::Ended, Some(Outcome::MaxCost), _) => "limits",
            (Decision::Wait, _, Some(WaitingFor::UsageLimit(_))) => "a wait for a reset",
            (Decision::Ended, Some(Outcome::Blocked), _) => "denied permissions",
            (Decision::Ended, Some(Outcome::Circuit), _) => "the circuit breaker",
            (Decision::Wait, _, Some(WaitingFor::User(_))) => "a prompt or command",
            (Decision::Continue(note), ..) => match note.next_turn {
                NextTurn::FinishUp(_) => "the usage of your plan",
                NextTurn::WriteHandover(_) => "the level of the context",
                _ => "",
            },
            other => panic!("{other:?}"),
        }
    }
}

/// How the row of a step begins, and what makes the step apply.
type Step = (&'static str, fn(&mut Case));

const STEPS: [Step; 11] = [
    ("you", |case| case.turn.kill_switch = true),
    ("the agent", |case| case.turn.message = Some("<promise>BLOCKED:no key</promise>".into())),
    ("a question", |case| case.run.pending.question = Some("which?".into())),
    ("background work", |case| {
        case.turn.background = vec![Task { id: "1".into(), name: "a server".into(), is_agent: false }];
    }),
    // Not of iterations: while the loop waits, a turn is none.
    ("limits", |case| (case.settings.max_tokens, case.run.usage.input_tokens) = (5, 5)),
    ("a wait for a reset", |case| {
        case.settings.quota.land_at_percent = Some(90.0);
        case.run.quota.held = Some(QuotaWait { until: START.plus_ms(3_600_000), words: "w".into() });
    }),
    ("denied permissions", |case| {
        case.run.session.denials.turns_in_a_row = 3;
        case.run.session.denials.calls = vec![Denied { id: 1, in_turn: true, ..Denied::default() }];
    }),
    ("the circuit breaker", |case| {
        case.run.circuit.trip(Outcome::Circuit, "stuck".into());
    }),
    ("a prompt or command", |case| {
        case.run.session.transcript.queue = vec![QueuedPrompt { text: "wait".into(), at: Case::now() }];
    }),
    ("the usage of your plan", |case| {
        case.settings.quota.land_at_percent = Some(90.0);
        case.figures().windows = Window::new("five_hour", Some(95.0), None).into_iter().collect();
    }),
    ("the level of the context", |case| {
        case.settings.max_context_percent = Some(80.0);
        case.figures().context_percent = Some(85.0);
    }),
];

#[test]
fn of_two_checks_that_apply_the_first_in_the_table_decides() {
    for (at, (name, apply)) in STEPS.iter().enumerate() {
        for (later, apply_later) in &STEPS[at..] {
            let mut case = Case::new();
            apply_later(&mut case);
            apply(&mut case);
            assert_eq!(case.decided_by(), *name, "{name} before {later}");
        }
    }
    assert_eq!(Case::new().decided_by(), "");
}

#[test]
fn the_table_of_the_checks_has_every_step_in_its_order() {
    let page = page("docs/deciding.md");
    let rows = rows(page.split("\n## ").next().unwrap());
    assert_eq!(rows.len(), STEPS.len());
    for (at, (row, (name, _))) in rows.iter().zip(STEPS).enumerate() {
        assert_eq!(row[0], (at + 1).to_string());
        let plain = row[1].replace(['[', ']'], "");
        assert!(plain.starts_with(name), "step {}: {plain}: {name}", at + 1);
    }
}

//! What a report says about runs of every kind.

use super::*;
use crate::core::event::timeline::Timeline;
use crate::core::event::{
    BreakerStep, Check, Event, EventKind, Findings, GuidanceChange, GuidanceStep, IterationEnded, RunEnded,
    RunStarted,
};
use crate::core::outcome::{IterationOutcome, Outcome};
use crate::core::tasks::validate;
use crate::store::project::commits::{Changed, Commit};
use serde_json::json;

fn event(seconds: i64, what: EventKind) -> Event {
    Event::new(Stamp(seconds * 1000), what)
}

fn started(checks: &[&str]) -> EventKind {
    EventKind::Started(RunStarted {
        run_id: "0123456789abcdef".into(),
        engine: Engine::Runner,
        project: "/home/me/project".into(),
        task: "make it".into(),
        checks: checks.iter().map(|check| (*check).to_owned()).collect(),
        head: Some("aaaaaaaaaaaaaaaa".into()),
        ..RunStarted::default()
    })
}

fn iteration(number: u64, change: impl FnOnce(&mut IterationEnded)) -> EventKind {
    let mut facts =
        IterationEnded { iteration: number, outcome: Some(IterationOutcome::Ok), ..Default::default() };
    change(&mut facts);
    EventKind::IterationEnded(Box::new(facts))
}

fn check(iteration: u64, command: &str, passed: bool) -> EventKind {
    EventKind::Check(Check {
        iteration,
        command: command.into(),
        passed,
        exit_code: Some(1),
        ..Check::default()
    })
}

fn ended(outcome: Outcome, reason: &str, iterations: u64) -> EventKind {
    EventKind::Ended(RunEnded {
        outcome: Some(outcome),
        reason: reason.into(),
        iterations,
        ..RunEnded::default()
    })
}

fn facts(events: impl IntoIterator<Item = (i64, EventKind)>) -> ReportInput {
    ReportInput {
        now: Stamp(1_000_000),
        run_id: "0123456789abcdef".into(),
        timeline: Timeline::of(events.into_iter().map(|(at, what)| event(at, what))),
        has_events: true,
        commits: Err("no git repository".into()),
        tasks: None,
        question: QuestionState::None,
        agent_logs: BTreeMap::new(),
        is_newest: true,
        is_alive: false,
    }
}

fn sentence(facts: ReportInput) -> String {
    words::bare(&Report::of(facts).sentence).trim().to_owned()
}

fn needs(facts: ReportInput) -> Vec<String> {
    let need = |need: &Need| match &need.command {
        Some(command) => format!("{} > {command}", words::bare(&need.what)),
        None => words::bare(&need.what),
    };
    Report::of(facts).needs.iter().map(need).collect()
}

#[test]
fn the_first_line_says_outcome_reason_and_proof() {
    let run = |checks: &[&str], results: Vec<EventKind>, ending: Option<EventKind>| {
        let begin = vec![(0, started(checks)), (5, iteration(1, |_| ()))];
        let results = results.into_iter().map(|what| (4, what));
        sentence(facts(begin.into_iter().chain(results).chain(ending.map(|what| (9, what)))))
    };
    let complete = |reason| Some(ended(Outcome::Complete, reason, 1));
    for (said, expected) in [
        (
            run(
                &["make"],
                vec![check(1, "make", true)],
                complete("the agent promised COMPLETE, and `make` passed"),
            ),
            "Task complete after 1 iteration, verified by make.",
        ),
        (
            run(&["make"], vec![check(1, "make", true)], complete("all stories are done")),
            "Task complete after 1 iteration, verified by make: all stories are done.",
        ),
        (
            run(&[], vec![], complete("promised.")),
            "Task complete after 1 iteration: promised. Not verified: no check was set.",
        ),
        (
            run(&["a", "b"], vec![check(1, "a", false)], Some(ended(Outcome::Stuck, "no commits", 3))),
            "Stuck after 3 iterations: no commits. Not verified: a failed last, in iteration 1; b has not run.",
        ),
        (
            run(&[], vec![], Some(ended(Outcome::Decide, "A or B?", 1))),
            "Waiting for a decision after 1 iteration: A or B? No check was set.",
        ),
        (
            run(&[], vec![], Some(ended(Outcome::Blocked, "no key", 1))),
            "Needs a person after 1 iteration: no key. No check was set.",
        ),
        (
            run(&["a"], vec![check(1, "a", true)], Some(ended(Outcome::Stopped, "", 1))),
            "Stopped by you after 1 iteration. Not complete, but this passed when it last ran: a.",
        ),
        (run(&[], vec![], None), "No ending was recorded after 1 iteration. No check was set."),
    ] {
        assert_eq!(said, expected);
    }
    let alive = ReportInput { is_alive: true, ..facts([(0, started(&[]))]) };
    assert_eq!(sentence(alive), "Still running after 0 iterations. No check was set.");
    let pause = EventKind::Paused(crate::core::event::Paused { reason: "Esc".into(), seconds: None });
    let paused = ReportInput { is_alive: true, ..facts([(0, started(&[])), (5, pause)]) };
    assert_eq!(sentence(paused), "Paused after 0 iterations. No check was set.");
}

#[test]
fn what_needs_the_user_is_named_with_its_command() {
    let question = |state: QuestionState| ReportInput {
        question: state,
        ..facts([(0, started(&[])), (9, ended(Outcome::Decide, "A or B?", 1))])
    };
    assert_eq!(needs(question(QuestionState::Open)), ["The agent asks: A or B? > ralph answer TEXT"]);
    assert_eq!(
        needs(question(QuestionState::Answered("B".into()))),
        ["The agent asks: A or B? You answered: B"]
    );
    let given = |change, list: &str| {
        EventKind::Guidance(GuidanceChange {
            change,
            list: list.into(),
            texts: vec![format!("{list} x")],
            iteration: 1,
        })
    };
    let run = facts([
        (0, started(&["a", "b"])),
        (3, check(1, "a", false)),
        (4, given(GuidanceStep::Given, "forbidden")),
        (4, given(GuidanceStep::Given, "encouraged")),
        (5, given(GuidanceStep::Delivered, "encouraged")),
        (5, iteration(1, |facts| facts.rejected = Some("a failed".into()))),
        (8, iteration(2, |facts| facts.denied_tools = vec!["Bash".into(), "Edit".into()])),
        (9, ended(Outcome::Circuit, "idle", 2)),
    ]);
    assert_eq!(
        needs(run),
        [
            "The circuit breaker stays tripped until you reset it. > ralph reset",
            "1 claim of completion rejected in iteration 1: a failed",
            "This check never passed: a",
            "An earlier check failed, so this check never ran: b",
            "The agent was denied Bash and Edit",
            "Guidance that was never delivered: forbidden x",
        ]
    );
    let silent = [(0, started(&["a"])), (8, iteration(1, |_| ())), (9, ended(Outcome::Circuit, "idle", 1))];
    assert_eq!(needs(facts(silent))[1], "The agent never claimed completion, so this check never ran: a");
    let list = validate(&json!({"userStories": [
        {"id": "1", "title": "done", "passes": true, "reviewStatus": "approved"},
        {"id": "2", "title": "begun", "passes": false, "notes": "half"},
        {"id": "3", "title": "untouched", "passes": false},
        {"id": "4", "title": "unreviewed", "passes": true},
    ]}));
    let run = ReportInput {
        tasks: list.ok(),
        ..facts([(0, started(&[])), (9, ended(Outcome::MaxIterations, "2 of 2", 2))])
    };
    let expected = [
        "1 story not attempted: 3 (untouched)",
        "1 story not done: 2 (begun)",
        "1 story done but not approved: 4 (unreviewed)",
    ];
    assert_eq!(needs(run), expected);
    let fine = facts([(0, started(&[])), (5, iteration(1, |_| ())), (9, ended(Outcome::Complete, "", 1))]);
    assert_eq!(needs(fine), [""; 0]);
}

#[test]
fn the_page_of_a_huge_run_has_the_last_iterations_and_says_so() {
    let many = (1..=720).map(|number| (number as i64, iteration(number, |_| ())));
    let page = html::page(&Report::of(facts(std::iter::once((0, started(&[]))).chain(many))));
    assert_eq!(page.matches("<details class=\"it\">").count(), 500);
    assert!(page.contains("The last 500 of 720;") && page.contains("<span class=\"num\">720</span>"));
    assert!(!page.contains("<span class=\"num\">220</span>"));
}

fn commit(id: &str, files: &[(&str, u64, u64)]) -> Commit {
    let file = |(path, added, removed): &(&str, u64, u64)| Changed {
        path: (*path).to_owned(),
        added: *added,
        removed: *removed,
    };
    Commit {
        id: id.repeat(16),
        subject: format!("commit {id}"),
        files: files.iter().map(file).collect(),
        ..Commit::default()
    }
}

#[test]
fn commits_belong_to_the_iteration_that_made_them_and_files_are_ordered_by_churn() {
    let head = |id: &str| {
        let id = id.repeat(16);
        move |facts: &mut IterationEnded| facts.head = Some(id)
    };
    let found = |new: &str| EventKind::Findings(Findings { new: vec![new.into()], ..Findings::default() });
    let commits = Commits {
        list: vec![
            commit("b", &[("x", 1, 0)]),
            commit("c", &[("x", 2, 2), ("gen/y", 90, 3)]),
            commit("d", &[("z", 0, 4)]),
        ],
        ..Commits::default()
    };
    let run = ReportInput {
        commits: Ok(commits),
        ..facts([
            (0, started(&[])),
            (0, found("x:3: a secret. Do not touch it")),
            (0, found("w: another. Leave it")),
            (5, iteration(1, head("a"))),
            (6, iteration(2, head("c"))),
            (7, found("gen/: generated. Do not edit")),
            // HEAD that is in no commit of the run, such as one that was rebased away.
            (8, iteration(3, head("e"))),
            (9, iteration(4, head("d"))),
            (9, ended(Outcome::Complete, "", 4)),
        ])
    };
    let report = Report::of(run);
    let files: Vec<_> = report
        .review
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.added, file.removed, file.commits))
        .collect();
    assert_eq!(files, [("gen/y", 90, 3, 1), ("x", 3, 2, 2), ("z", 0, 4, 1)]);
    let own: Vec<_> = report.iterations.iter().map(|row| row.changed.commits.len()).collect();
    assert_eq!(own, [0, 2, 0, 1]);
    assert_eq!(
        report.review.constraints,
        [
            ("changed", "x:3: a secret. Do not touch it".into()),
            ("new, changed", "gen/: generated. Do not edit".into())
        ]
    );
    let rewind = report.steps.iter().find(|step| step.what.starts_with("Rewind")).unwrap();
    assert_eq!(rewind.command, "git branch ralph-01234567 dddddddddddd && git reset --keep aaaaaaaaaaaa");
}

#[test]
fn the_next_steps_fit_the_ending() {
    let steps = |outcome, change: &dyn Fn(&mut ReportInput)| {
        let mut facts = facts([(0, started(&[])), (9, ended(outcome, "", 1))]);
        change(&mut facts);
        let steps = Report::of(facts).steps;
        steps.first().map(|step| step.command.clone()).unwrap()
    };
    let same = |_: &mut ReportInput| ();
    assert_eq!(steps(Outcome::MaxCost, &same), "ralph run --max-cost N");
    assert_eq!(steps(Outcome::Stuck, &same), "ralph run --reset");
    assert_eq!(steps(Outcome::Stopped, &same), "ralph run");
    assert_eq!(steps(Outcome::Complete, &same), "ralph archive --include-logs");
    assert_eq!(steps(Outcome::Stopped, &|facts| facts.is_newest = false), "ralph logs 01234567");
    let in_session = |facts: &mut ReportInput| {
        facts.is_newest = false;
        facts.timeline.started.as_mut().unwrap().engine = Engine::InSession;
    };
    assert_eq!(steps(Outcome::Stopped, &in_session), "/ralph:start --resume --run 01234567");
}

const HOSTILE: &str = "</script><script>x</script> <img src=x onerror=y> \"quoted\" 'single' \u{1b}[31m\u{202e}\u{200b}\u{0} | `a` &lt;";

/// Puts the text wherever a text of others goes.
fn hostile(text: &str) -> Report {
    let list = |change| {
        EventKind::Guidance(GuidanceChange {
            change,
            list: text.into(),
            texts: vec![text.into()],
            iteration: 1,
        })
    };
    let breaker = BreakerStep { iteration: 1, reason: text.into(), ..BreakerStep::default() };
    let mut started = started(&[]);
    if let EventKind::Started(started) = &mut started {
        (started.task, started.project, started.checks) = (text.into(), text.into(), vec![text.into()]);
    }
    let everything = |facts: &mut IterationEnded| {
        let own = || Some(text.to_owned());
        (facts.message, facts.rejected, facts.error, facts.how) = (own(), own(), own(), own());
        (facts.mode, facts.head) = (text.into(), Some("b".repeat(16)));
        (facts.remarks, facts.denied_tools) = (vec![text.into()], vec![text.into()]);
    };
    let failed = Check { iteration: 1, command: text.into(), tail: text.into(), ..Check::default() };
    let answered =
        crate::core::event::Answered { question: text.into(), answer: text.into(), from: text.into() };
    let wait = crate::core::event::WaitEvent { reason: text.into(), ..Default::default() };
    let mut run = facts([
        (0, started),
        (1, EventKind::Findings(Findings { new: vec![text.into()], ..Findings::default() })),
        (2, list(GuidanceStep::Given)),
        (3, EventKind::Waiting(wait)),
        (4, EventKind::Check(failed)),
        (5, iteration(1, everything)),
        (6, EventKind::Breaker(breaker)),
        (7, list(GuidanceStep::Delivered)),
        (8, EventKind::Answered(answered)),
        (9, ended(Outcome::Blocked, text, 1)),
    ]);
    let patch = format!(
        "diff --git a/x b/x\n--- a/tests/{text}\n+++ b/tests/{text}\n@@ -0,0 +1 @@\n+#[ignore] {text}\n"
    );
    let mut commit = commit("b", &[(text, 1, 1)]);
    commit.subject = text.into();
    run.commits = Ok(Commits { list: vec![commit], patch, is_cut: false });
    run.question = QuestionState::Answered(text.into());
    run.agent_logs.insert(
        1,
        vec![AgentLogEntry {
            at: None,
            kind: crate::core::event::agent_log::EntryKind::Said,
            text: text.into(),
        }],
    );
    Report::of(run)
}

#[test]
fn no_text_of_others_is_markup_anywhere() {
    let report = hostile(HOSTILE);
    let page = html::page(&report);
    for part in
        ["<script", "<img", "onerror=y>", "\u{1b}", "\u{202e}", "\u{200b}", "\u{0}", "\"quoted\"", "'single'"]
    {
        assert!(!page.contains(part), "{part:?} in {page}");
    }
    assert!(page.matches("&lt;script&gt;").count() > 15, "every text is there");
    let markdown = markdown::page(&report);
    assert!(!markdown.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\u{0}']), "{markdown}");
    let is_table = |line: &&str| line.starts_with('|');
    for line in markdown.lines().filter(is_table) {
        assert!(
            line.ends_with('|') && line.matches(" | ").count() < 9,
            "a cell ends only where we end it: {line}"
        );
    }
}

#[test]
fn huge_texts_are_bounded() {
    let report = hostile(&"x<".repeat(500_000));
    let page = html::page(&report);
    assert!(page.len() < 128 << 10, "{}", page.len());
    assert!(markdown::page(&report).len() < 64 << 10);
}

#[test]
fn a_run_of_any_length_has_a_strip_that_can_be_drawn() {
    let many = (1..3000).map(|n| (n * 60, iteration(n as u64, |facts| facts.cost_usd = Some(0.01))));
    let report = Report::of(facts([(0, started(&[]))].into_iter().chain(many)));
    let strip = strip::timeline_svg(&report.timeline).unwrap();
    assert!(strip.len() < 64 << 10, "{}", strip.len());
    assert!(strip::money(&report.iterations).unwrap().len() < 64 << 10);
    for events in
        [vec![], vec![(0, started(&[]))], vec![(0, started(&[])), (0, ended(Outcome::Error, "", 0))]]
    {
        let report = Report::of(facts(events));
        assert!(html::page(&report).contains("How the time was spent is unknown"));
        assert!(markdown::page(&report).contains("How the time was spent is unknown"));
    }
}

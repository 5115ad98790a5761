//! What the agent reads. Each word costs the user tokens at every later turn, so an ordinary turn gets a few
//! lines, and the whole task is repeated only if the agent may have lost it.

use super::decide::{NextTurn, Note, handover};
use super::message;
use super::record::StoredLoop;
use super::settings::Settings;
use super::signal::MAX_RECOMMENDATION_COLUMNS;
use super::time::{self, Stamp};
use crate::core::guidance::merge::{GuidanceLists, PromptExtent};
use crate::core::text::clean;
use std::path::Path;

/// A longer promise is not repeated at every turn; the first prompt has it.
const MAX_REPEATED_PROMISE_CHARS: usize = 60;

/// Returns the prompt of an ordinary turn.
pub fn continuation(
    run: &StoredLoop,
    note: &Note,
    lists: &GuidanceLists,
    settings: &Settings,
    now: Stamp,
) -> String {
    let task = clean::excerpt(&run.task, 80);
    let mut text = format!("Ralph: {}. Continue the task: {task}", done(run, settings));
    if note.limits_changed {
        text.push_str("\nThe user changed the limits.");
    }
    for advice in advice(note) {
        text.push_str(&format!("\n{advice}"));
    }
    text.push_str(&lists.text(PromptExtent::Turn, now));
    let short = settings.promise.chars().count() <= MAX_REPEATED_PROMISE_CHARS;
    let promise = if short { settings.promise.as_str() } else { "the text you were given" };
    text.push_str(&format!(
        "\nWhen the task is complete and verified, end your message with this line alone: <promise>{promise}</promise> \
         (if you need a person, put BLOCKED:reason or DECIDE:question in the tag)"
    ));
    text
}

/// Returns what the agent reads in the middle of a turn: guidance that it has not read yet.
pub fn news(lists: &GuidanceLists, now: Stamp) -> String {
    let lists = lists.text(PromptExtent::Turn, now);
    format!("Ralph: new guidance from the user. Follow it from now on and continue the task.{lists}")
}

/// Returns the first prompt, which is also the one after the agent may have lost its context.
pub fn full(run: &StoredLoop, lists: &GuidanceLists, settings: &Settings, now: Stamp) -> String {
    let position = format!(" ({})", position(run, settings));
    rules_and_task(&position, run, lists, settings, now)
}

/// Returns what the first prompt has and an ordinary one has not, to go with an ordinary one.
pub fn whole_task(run: &StoredLoop, settings: &Settings, now: Stamp) -> String {
    rules_and_task("", run, &GuidanceLists::default(), settings, now)
}

fn rules_and_task(
    position: &str,
    run: &StoredLoop,
    lists: &GuidanceLists,
    settings: &Settings,
    now: Stamp,
) -> String {
    // The task comes last: if the client cuts a long text, the rules are still there.
    format!(
        "You are in a Ralph loop{position}. When you end your turn, Ralph prompts you again, until the task is complete \
         or a limit is reached. Work in small, verified steps. Do not wait for user input.\n\n\
         {}{}",
        protocol(settings),
        context(run, lists, settings, now),
    )
}

/// Returns the same for a hook, after what the agent must read first. `state` is the path of the state file.
pub fn full_in_context(
    first: &str,
    run: &StoredLoop,
    lists: &GuidanceLists,
    settings: &Settings,
    state: &Path,
    now: Stamp,
) -> String {
    let place = format!("{}, the loop with run_id {}", state.display(), run.run_id);
    in_context(format!("{first}{}", full(run, lists, settings, now)), &place)
}

/// Returns a prompt for a hook. Claude Code shows the agent 2,000 characters of a context that is longer than this, so
/// the end of a longer one is cut: the task, which `place` has too.
pub fn in_context(mut text: String, place: &str) -> String {
    const MAX_CHARS: usize = 10_000;
    // The client counts in UTF-16.
    let mut chars = text.encode_utf16().count();
    if chars > MAX_CHARS {
        let note = format!("\n[cut] Read the whole task before you continue: {place}.");
        while chars + note.len() > MAX_CHARS
            && let Some(last) = text.pop()
        {
            chars -= last.len_utf16();
        }
        text.push_str(&note);
    }
    text
}

/// Returns the prompt of an iteration that starts with a fresh context.
pub fn fresh(
    run: &StoredLoop,
    note: &Note,
    lists: &GuidanceLists,
    settings: &Settings,
    now: Stamp,
) -> String {
    let mut text = format!(
        "You are in a Ralph loop ({}). Each iteration starts with a fresh context: earlier work is in the repository, \
         its history and its notes. Read those first. Then do the next small step, verify it, commit it and end your \
         turn. Do not wait for user input.\n\n{}",
        position(run, settings),
        protocol(settings),
    );
    if note.next_turn == NextTurn::NewContext {
        text.push_str(&format!("\n\n{}", handover::told_after()));
    }
    for advice in advice(note) {
        text.push_str(&format!("\n\nFrom the previous iteration: {advice}"));
    }
    text + &context(run, lists, settings, now)
}

/// Returns guidance, answers and the task, each after a blank line.
fn context(run: &StoredLoop, lists: &GuidanceLists, settings: &Settings, now: Stamp) -> String {
    let lists = lists.text(PromptExtent::Whole, now);
    let gap = if lists.is_empty() { "" } else { "\n" };
    let (checks, answers, recommendation) = (checks(settings), answers(run), recommendation(run));
    // A hook cuts the end of a long context, so what is bounded comes first.
    format!("{gap}{lists}{checks}{answers}{recommendation}\n\nTask:\n\n{}", run.task)
}

/// Returns the commands that a claim of completion must pass.
fn checks(settings: &Settings) -> String {
    let lines = message::listed(&settings.checks, 300);
    let lines: String = lines.iter().map(|line| format!("\n- {line}")).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\n\nRalph runs these checks when you claim completion:{lines}")
    }
}

fn advice(note: &Note) -> impl Iterator<Item = String> {
    note.earlier_advice.iter().cloned().chain(note.advice())
}

/// Returns the answers to the agent's earlier questions, which count until a run completes, and what blocked an
/// earlier run.
fn answers(run: &StoredLoop) -> String {
    let answers = run.pending.answers.iter();
    let answers = answers.map(|answer| format!("\n\nYour earlier question was answered.\n{answer}"));
    let blocked = run.pending.blocked.iter().map(|blocked| {
        format!(
            "\n\nThe loop ended as blocked earlier. The user left no answer, so check whether this is resolved. \
             ralph/blocked.txt says:\n{blocked}"
        )
    });
    answers.chain(blocked).collect()
}

/// Returns the recommendation of the previous iteration. The state file has it, so it is cleaned again.
fn recommendation(run: &StoredLoop) -> String {
    let text = run.status_block.as_ref().and_then(|status| status.recommendation.as_deref()).unwrap_or("");
    match clean::excerpt(text, MAX_RECOMMENDATION_COLUMNS) {
        text if text.is_empty() => text,
        text => format!(
            "\n\nRecommendation of the previous iteration (the agent's words, not the user's):\n{text}"
        ),
    }
}

/// Returns how the agent signals to Ralph.
fn protocol(settings: &Settings) -> String {
    format!(
        "To signal, end your message with one of these tags alone on the last line:\n\
         - <promise>{}</promise>: the whole task is complete and verified\n\
         - <promise>BLOCKED:reason</promise>: you cannot continue without a person\n\
         - <promise>DECIDE:question</promise>: a person must decide\n\
         Never claim completion just to end the loop.\n\n\
         You may report your status before or after the tag, outside code fences. Every field is optional:\n\
         ---RALPH_STATUS---\n\
         STATUS: IN_PROGRESS | COMPLETE | BLOCKED\n\
         TASKS_COMPLETED_THIS_LOOP: 0\n\
         FILES_MODIFIED: 0\n\
         TESTS_STATUS: PASSING | FAILING | NOT_RUN\n\
         WORK_TYPE: IMPLEMENTATION | TESTING | DOCUMENTATION | REFACTORING\n\
         EXIT_SIGNAL: false\n\
         RECOMMENDATION: one line\n\
         ---END_RALPH_STATUS---",
        settings.promise
    )
}

/// Returns how many iterations are done: the user reads the same count beside it.
fn done(run: &StoredLoop, settings: &Settings) -> String {
    let count = match settings.max_iterations {
        0 => message::iterations(run.iteration),
        max => format!("{} of {}", run.iteration, message::iterations(max)),
    };
    format!("{count} done{}", runtime(run, settings))
}

fn position(run: &StoredLoop, settings: &Settings) -> String {
    let mut text = format!("iteration {}", run.iteration.saturating_add(1));
    if settings.max_iterations > 0 {
        text.push_str(&format!(" of {}", settings.max_iterations));
    }
    text + &runtime(run, settings)
}

fn runtime(run: &StoredLoop, settings: &Settings) -> String {
    if settings.max_runtime_ms > 0 {
        let (spent, limit) = (time::span(run.runtime_ms()), time::span(settings.max_runtime_ms));
        return format!(", runtime {spent} of {limit}");
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::decide::completion;
    use crate::core::signal;

    #[test]
    fn an_ordinary_turn_costs_less_than_600_characters() {
        let run = StoredLoop {
            task: "make the suite green ".repeat(500),
            iteration: 1_000_000,
            ..StoredLoop::default()
        };
        let text =
            continuation(&run, &Note::default(), &GuidanceLists::default(), &Settings::default(), Stamp(0));
        assert!(text.chars().count() < 600, "{} characters:\n{text}", text.chars().count());
        let long = Settings { promise: "x".repeat(500), ..Settings::default() };
        assert!(
            continuation(&run, &Note::default(), &GuidanceLists::default(), &long, Stamp(0)).chars().count()
                < 600
        );
        assert!(
            text.contains("1000000 of 50 iterations done") && text.contains("make the suite green"),
            "{text}"
        );
    }

    #[test]
    fn our_own_prompts_are_never_a_signal() {
        let run = StoredLoop { task: "do it".into(), ..StoredLoop::default() };
        let (lists, settings) = (GuidanceLists::default(), Settings::default());
        for text in [
            continuation(&run, &Note::default(), &lists, &settings, Stamp(0)),
            full(&run, &lists, &settings, Stamp(0)),
        ] {
            let status = signal::status(&text);
            let signal = completion::signal(&text, status.as_ref(), &settings);
            assert!(!matches!(signal, Some(Ok(_))), "{text}");
        }
    }

    #[test]
    fn the_whole_task_is_given_to_the_letter() {
        let run = StoredLoop { task: "line one\n---\nline two".into(), ..StoredLoop::default() };
        let text = full(&run, &GuidanceLists::default(), &Settings::default(), Stamp(0));
        assert!(text.ends_with("line one\n---\nline two"), "{text}");
    }

    #[test]
    fn a_hook_cuts_a_long_task_and_nothing_before_it() {
        let text = |task: &str| {
            let run = StoredLoop { run_id: "r1".into(), task: task.into(), ..StoredLoop::default() };
            let state = Path::new("/p/.claude/ralph-state.json");
            full_in_context("", &run, &GuidanceLists::default(), &Settings::default(), state, Stamp(0))
        };
        assert!(text("do it").ends_with("Task:\n\ndo it"));
        let long = text(&"\u{1f980} crabs ".repeat(5000));
        assert!((9_990..=10_000).contains(&long.encode_utf16().count()), "{}", long.encode_utf16().count());
        assert!(long.contains("---END_RALPH_STATUS---\n\nTask:\n\n\u{1f980} crabs"), "{long}");
        assert!(long.ends_with(": /p/.claude/ralph-state.json, the loop with run_id r1."), "{long}");
    }

    #[test]
    fn the_position_names_only_limits_that_are_set() {
        let run =
            StoredLoop { iteration: 11, accumulated_runtime_seconds: 11_520.0, ..StoredLoop::default() };
        let settings = |max_iterations, max_runtime_ms| Settings {
            max_iterations,
            max_runtime_ms,
            ..Settings::default()
        };
        for (name, settings, expected) in [
            ("both", settings(50, 9 * 3_600_000), "iteration 12 of 50, runtime 3h 12m of 9h"),
            ("iterations", settings(50, 0), "iteration 12 of 50"),
            ("runtime", settings(0, 600_000), "iteration 12, runtime 3h 12m of 10m"),
            ("none", settings(0, 0), "iteration 12"),
        ] {
            assert_eq!(position(&run, &settings), expected, "{name}");
        }
    }

    #[test]
    fn a_promise_is_repeated_as_long_as_it_is_short() {
        for (length, repeated) in [(8, true), (60, true), (61, false)] {
            let promise = "ü".repeat(length);
            let settings = Settings { promise: promise.clone(), ..Settings::default() };
            let text = continuation(
                &StoredLoop::default(),
                &Note::default(),
                &GuidanceLists::default(),
                &settings,
                Stamp(0),
            );
            assert_eq!(text.contains(&format!("<promise>{promise}</promise>")), repeated, "{length}");
            assert_eq!(text.contains("<promise>the text you were given</promise>"), !repeated, "{length}");
        }
    }
}

//! What the agent reads. Each word is paid for at every later turn, so an ordinary turn gets a few lines
//! and the whole task only where the agent may have lost it.

use super::clean;
use super::decide::Note;
use super::merge::Lists;
use super::record::Loop;
use super::settings::Settings;
use super::time::{self, Stamp};

/// The prompt of an ordinary turn.
pub fn go_on(lap: &Loop, note: &Note, lists: &Lists, settings: &Settings, now: Stamp) -> String {
    let mut text = format!("Ralph: {}. ", position(lap, settings));
    text.push_str(&format!("Go on with the task: {}", clean::excerpt(&lap.task, 80)));
    if note.limits_changed {
        text.push_str("\nThe limits were changed by the user.");
    }
    for said in note.unsaid.iter().cloned().chain(note.advice()) {
        text.push_str(&format!("\n{said}"));
    }
    text.push_str(&lists.text(now));
    // A promise too long to repeat at every turn was given at the start.
    let short = settings.promise.chars().count() <= 60;
    let promise = if short { settings.promise.as_str() } else { "the text you were given" };
    text.push_str(&format!(
        "\nDone, proven? Then end with this alone on the last line: <promise>{promise}</promise> \
         (or BLOCKED:reason, DECIDE:question in the tag)."
    ));
    text
}

/// The first prompt, and the one after the agent may have forgotten everything.
pub fn whole(lap: &Loop, lists: &Lists, settings: &Settings, now: Stamp) -> String {
    // The task comes last: where a client cuts a long text, the rules have been read.
    format!(
        "You are in a Ralph loop ({}). Each time you end your turn, Ralph sends you on, until the task is done or a \
         limit is reached. Work in small verified steps and do not wait for a person.\n\n\
         {}\n{}{}\n\nThe task:\n\n{}",
        position(lap, settings),
        protocol(settings),
        lists.text(now),
        answers(lap),
        lap.task,
    )
}

/// What the agent asked before, with the answers: they hold for the whole run.
fn answers(lap: &Loop) -> String {
    lap.answered.iter().map(|answer| format!("\n\nYour earlier question was answered.\n{answer}")).collect()
}

/// The prompt of an iteration that begins without memory.
pub fn fresh(lap: &Loop, note: &Note, lists: &Lists, settings: &Settings, now: Stamp) -> String {
    let mut text = format!(
        "You are in a Ralph loop ({}). Each iteration starts you fresh: what was done before is in the repository, its \
         history and its notes. Look there first, do the next small step, prove it, commit it, and end; the next \
         iteration goes on from there. Do not wait for a person.\n\n{}",
        position(lap, settings),
        protocol(settings),
    );
    for said in note.unsaid.iter().cloned().chain(note.advice()) {
        text.push_str(&format!("\n\nFrom the iteration before this one: {said}"));
    }
    text.push_str(&format!("\n{}{}\n\nThe task:\n\n{}", lists.text(now), answers(lap), lap.task));
    text
}

/// How the agent speaks to Ralph.
fn protocol(settings: &Settings) -> String {
    format!(
        "How to signal, with the tag alone on the last line of your message:\n\
         - <promise>{}</promise>: the whole task is done and you have proven it\n\
         - <promise>BLOCKED:reason</promise>: you cannot go on without a person\n\
         - <promise>DECIDE:question</promise>: a person must choose\n\
         Never promise what is not true to get out of the loop.\n\n\
         You may also report at the end of a turn, outside any code fence; every field is optional:\n\
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

fn position(lap: &Loop, settings: &Settings) -> String {
    let mut text = format!("iteration {}", lap.iteration.saturating_add(1));
    if settings.max_iterations > 0 {
        text.push_str(&format!(" of {}", settings.max_iterations));
    }
    if settings.max_runtime_ms > 0 {
        let (spent, limit) = (time::span(lap.runtime_ms()), time::span(settings.max_runtime_ms));
        text.push_str(&format!(", runtime {spent} of {limit}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{completion, signal};

    #[test]
    fn an_ordinary_turn_costs_less_than_600_characters() {
        let lap = Loop { task: "make the suite green ".repeat(500), iteration: 1_000_000, ..Loop::default() };
        let text = go_on(&lap, &Note::default(), &Lists::default(), &Settings::default(), Stamp(0));
        assert!(text.chars().count() < 600, "{} characters:\n{text}", text.chars().count());
        let long = Settings { promise: "x".repeat(500), ..Settings::default() };
        assert!(go_on(&lap, &Note::default(), &Lists::default(), &long, Stamp(0)).chars().count() < 600);
        assert!(text.contains("iteration 1000001 of 50") && text.contains("make the suite green"), "{text}");
    }

    #[test]
    fn our_own_words_are_never_a_signal() {
        let lap = Loop { task: "do it".into(), ..Loop::default() };
        let (lists, settings) = (Lists::default(), Settings::default());
        for text in [
            go_on(&lap, &Note::default(), &lists, &settings, Stamp(0)),
            whole(&lap, &lists, &settings, Stamp(0)),
        ] {
            let status = signal::status(&text);
            assert_eq!(completion::word(&text, status.as_ref(), &settings), None, "{text}");
        }
    }

    #[test]
    fn the_whole_task_is_given_to_the_letter() {
        let lap = Loop { task: "line one\n---\nline two".into(), ..Loop::default() };
        let text = whole(&lap, &Lists::default(), &Settings::default(), Stamp(0));
        assert!(text.ends_with("line one\n---\nline two"), "{text}");
    }

    #[test]
    fn the_position_names_only_limits_that_are_set() {
        let lap = Loop { iteration: 11, accumulated_runtime_seconds: 11_520.0, ..Loop::default() };
        let settings = |max_iterations, max_runtime_ms| Settings {
            max_iterations,
            max_runtime_ms,
            ..Settings::default()
        };
        for (name, settings, expected) in [
            ("both", settings(50, 9 * 3_600_000), "iteration 12 of 50, runtime 3.2h of 9.0h"),
            ("iterations", settings(50, 0), "iteration 12 of 50"),
            ("runtime", settings(0, 600_000), "iteration 12, runtime 3.2h of 10m"),
            ("none", settings(0, 0), "iteration 12"),
        ] {
            assert_eq!(position(&lap, &settings), expected, "{name}");
        }
    }

    #[test]
    fn a_promise_is_repeated_as_long_as_it_is_short() {
        for (length, repeated) in [(8, true), (60, true), (61, false)] {
            let promise = "ü".repeat(length);
            let settings = Settings { promise: promise.clone(), ..Settings::default() };
            let text = go_on(&Loop::default(), &Note::default(), &Lists::default(), &settings, Stamp(0));
            assert_eq!(text.contains(&format!("<promise>{promise}</promise>")), repeated, "{length}");
            assert_eq!(text.contains("<promise>the text you were given</promise>"), !repeated, "{length}");
        }
    }
}

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
    if let Some(held) = &note.held {
        text.push_str(&format!("\n{}", held.advice()));
    }
    if let Some(pivot) = &note.pivot {
        text.push_str(&format!("\n{pivot}"));
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
    let promise = &settings.promise;
    // The task comes last: where a client cuts a long text, the rules have been read.
    format!(
        "You are in a Ralph loop ({}). Each time you end your turn, Ralph sends you on, until the task is done or a \
         limit is reached. Work in small verified steps and do not wait for a person.\n\n\
         How to signal, with the tag alone on the last line of your message:\n\
         - <promise>{promise}</promise>: the whole task is done and you have proven it\n\
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
         ---END_RALPH_STATUS---\n{}\n\n\
         The task:\n\n{}",
        position(lap, settings),
        lists.text(now),
        lap.task,
    )
}

fn position(lap: &Loop, settings: &Settings) -> String {
    let mut text = format!("iteration {}", lap.iteration + 1);
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
}

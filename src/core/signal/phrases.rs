//! How often a message says that the work is complete.
//!
//! A completion phrase names the whole work and its state ("all tasks are complete"), or is one of a few fixed forms
//! ("nothing left to do", "ready for review"). Its words follow each other, so "almost", "50%" or "will be" inside it
//! break it. A negation before it in its clause, and a condition in or before its clause, exclude it.

use super::prose;

/// Counts the completion phrases in the agent's prose. One that is repeated counts again.
pub fn completion_phrases(message: &str) -> usize {
    let mut text = String::with_capacity(message.len());
    let mut after_heading = false;
    for line in prose::lines(message) {
        let (line, is_item) = prose::item(line);
        let is_wrapped = line.starts_with(|c: char| c.is_lowercase() || c.is_numeric() || "`\"(".contains(c));
        text.push(if is_wrapped && !is_item && !after_heading { ' ' } else { '\n' });
        after_heading = line.starts_with('#');
        if !line.starts_with("[ ]") {
            text += &prose::unquoted(line);
        }
    }
    // Emphasis is no part of a word: "**All tasks complete.** Ready for review."
    let text = text
        .to_lowercase()
        .replace(['*'], "")
        .replace("__", "")
        .replace(". ", "\n")
        .replace(" - ", ", ")
        .replace('❌', "not ");
    text.split_inclusive(['\n', '!', '?', ';', '|', '…']).map(in_sentence).sum()
}

/// Replaces a word by the one that stands for its group; a word that says nothing about completion becomes empty. The
/// end of a contraction is a word of its own ("is n't", "it 's").
fn canonical(word: &str) -> &str {
    match word {
        "been" | "now" | "already" | "also" | "just" | "finally" | "successfully" | "fully"
        | "completely" | "here" | "100" | "x" | "entire" | "whole" | "original" | "requested"
        | "required" | "planned" | "acceptance" | "user" => "",
        "t" | "none" | "never" | "cannot" | "without" | "neither" | "nor" | "hardly" | "will" | "would"
        | "should" | "could" | "might" | "may" | "must" | "say" | "says" | "claim" | "claimed" | "almost"
        | "nearly" | "mostly" | "partly" | "partially" | "most" | "some" | "many" | "several" | "half" => {
            "not"
        }
        "but" | "when" | "whenever" | "once" | "until" | "unless" | "before" | "after" | "whether"
        | "how" | "ensure" | "verify" | "check" | "sure" | "assuming" | "provided" => "if",
        "excluding" | "besides" | "aside" | "apart" | "pending" | "far" => "except",
        "so" => "and",
        "every" | "each" => "all",
        "this" | "these" | "my" | "your" | "our" => "the",
        "task" | "tasks" | "implementation" | "project" | "migration" | "refactor" | "refactoring"
        | "rewrite" | "job" | "goal" | "goals" | "feature" | "features" | "requirements" | "criteria"
        | "items" | "stories" | "steps" | "phases" | "milestones" | "todos" => "work",
        "list" | "prd" | "spec" | "file" | "backlog" | "checklist" | prose::QUOTED => "plan",
        "in" | "on" | "from" | "via" | "through" | "using" | "with" | "as" | "at" | "for" => "by",
        "we" => "i",
        "are" | "am" | "was" | "were" | "s" | "m" | "re" => "is",
        "has" | "ve" => "have",
        "met" | "satisfied" | "fulfilled" => "complete",
        "completes" | "done" | "finished" | "implemented" => "completed",
        "nothing" => "no",
        "more" | "else" | "further" | "remain" | "remains" | "remaining" | "outstanding" | "needed" => "left",
        "do" => "to",
        "production" | "merge" | "release" | "deployment" | "deploy" | "ship" => "review",
        _ => word,
    }
}

fn in_sentence(sentence: &str) -> usize {
    let clauses: Vec<_> = sentence.split([',', ':', '(', ')', '–', '—']).map(words).collect();
    if sentence.ends_with('?') || clauses.iter().flatten().any(|word| *word == "except") {
        return 0;
    }
    clauses.iter().take_while(|clause| !clause.contains(&"if")).map(|clause| in_clause(clause)).sum()
}

fn words(clause: &str) -> Vec<&str> {
    let clause = clause.trim_start();
    let clause = clause.strip_prefix("but ").unwrap_or(clause);
    let mut words = Vec::new();
    for word in clause.split(|c: char| !c.is_alphanumeric() && !"`_.-".contains(c)) {
        let word = canonical(word.trim_matches(['.', '-', '_']));
        // "All of the 12 remaining tasks" is "all tasks".
        let is_skipped = words.last() == Some(&"all")
            && (matches!(word, "of" | "the" | "left") || word.bytes().all(|byte| byte.is_ascii_digit()));
        match word {
            "everything" => words.extend(["all", "work"]),
            _ if word.is_empty() || is_skipped => {}
            _ => words.push(word),
        }
    }
    words
}

fn in_clause(words: &[&str]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < words.len() {
        match phrase(&words[..at], &words[at..]) {
            Some(length) => (count, at) = (count + 1, at + length),
            None if matches!(words[at], "not" | "no") => break,
            None => at += 1,
        }
    }
    count
}

/// Returns the number of words in the completion phrase that `words` begin with.
fn phrase(before: &[&str], words: &[&str]) -> Option<usize> {
    let opens = matches!(before, [] | [.., "and"]);
    let closes = |rest: &[&str]| matches!(rest, [] | ["and", ..]);
    let mut end = match words {
        ["no", rest @ ..] => {
            let length =
                rest.iter().take_while(|word| ["is", "have", "work", "left", "to"].contains(word)).count();
            return (rest[..length].contains(&"left") && closes(&rest[length..])).then_some(length + 1);
        }
        ["ready", "by" | "to", "review", ..] => {
            let stated = opens || matches!(before, [.., "is"] | ["work"] | ["the", "work"]);
            return stated.then_some(3);
        }
        // "Completed the implementation of the parser" is a part.
        ["completed", "the", "work", "of" | "by", ..] => return None,
        ["completed", "all" | "the", "work", ..] => {
            return (opens || matches!(before, [.., "i" | "have"] | ["the"])).then_some(3);
        }
        ["all", "work", "of" | "by", rest @ ..] => {
            4 + rest.iter().take(5).position(|word| *word == "plan")?
        }
        ["all", "work", ..] => 2,
        ["the", "work", ..] if before.last() != Some(&"of") => 2,
        ["work", ..] | ["all", "completed"] if opens => 1,
        ["i", "is", ..] => 1,
        _ => return None,
    };
    let has_verb = matches!(words.get(end), Some(&("is" | "have")));
    end += words[end..].iter().take(3).take_while(|word| ["is", "have", "all"].contains(word)).count();
    let rest = words.get(end + 1..)?;
    let is_state = match words[end] {
        "complete" => true,
        // "Done by a worker" says how, not that.
        "completed" => !matches!(rest, ["by", ..]),
        _ => false,
    };
    (is_state && (has_verb || (opens && closes(rest)))).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PHRASES: &[&str] = &[
        "All tasks are complete.",
        "All tasks are completed!",
        "all the tasks are done",
        "All of the tasks have been completed.",
        "All 12 tasks are now complete.",
        "All remaining tasks are finished.",
        "Every task is complete.",
        "All user stories are implemented.",
        "The tasks are complete.",
        "The task is complete.",
        "The task is completed.",
        "This task is now fully complete.",
        "The task has been completed successfully.",
        "The task was completed.",
        "The task's complete.",
        "The task's now complete.",
        "The entire task is 100% complete.",
        "The implementation is complete.",
        "Implementation is complete.",
        "The migration is finished.",
        "The feature is complete.",
        "Everything is done.",
        "Everything's done.",
        "Everything’s finished!",
        "Everything has been implemented.",
        "Everything is now complete with all tests passing.",
        "The project is finished.",
        "The whole project is done.",
        "All requirements have been met.",
        "All requirements are met.",
        "All acceptance criteria are satisfied.",
        "All phases have now been completed.",
        "Work is done.",
        "The work is done.",
        "All work is complete.",
        "All features are fully implemented.",
        "The branch is ready for review.",
        "It's ready for production.",
        "The change is now ready to merge.",
        "Ready for review.",
        "There is nothing left to do.",
        "There's nothing more to do here.",
        "Nothing else remains.",
        "Nothing is left to do.",
        "This completes the task.",
        "I have successfully implemented all the requested features.",
        "✅ Done — all tasks complete",
        "No remaining tasks.",
        "No tasks remain.",
        "No more work is needed.",
        "There is no more work to do.",
        "I have completed all tasks.",
        "I've finished the implementation.",
        "I completed the task.",
        "Completed all requirements.",
        "I have now successfully completed the project.",
        "I am done.",
        "I'm done!",
        "I’m finished.",
        "We're all done.",
        "All done!",
        "All tasks complete",
        "Task completed successfully",
        "Implementation complete!",
        "Project ready for review.",
        "## All tasks complete",
        "**All tasks are complete**",
        "All tasks are **complete**.",
        "✅ All tasks are complete",
        "- [x] All tasks are complete",
        "- Status: all tasks are complete",
        "ALL TASKS ARE COMPLETE",
        "All tasks in the plan are complete.",
        "All tasks in `ralph/tasks.json` are done.",
        "I could not run the linter, but all tasks are complete.",
        "No, all tasks are complete.",
        "The build is green and the work is done.",
        "The tests pass, so everything is done.",
        "I can confirm that the task is complete.",
        "All tasks\nare complete.",
        "All\n12 tasks are complete.",
        "## To check\nall tasks are complete",
        "- to check\n- all tasks are complete",
        "implementation complete",
        "Is it slow? No. The task is complete.",
    ];

    const NO_PHRASES: &[&str] = &[
        "",
        "The task is not complete.",
        "The task isn't finished.",
        "The task isn’t finished.",
        "The work is not yet done.",
        "The work is almost done.",
        "The work is nearly complete.",
        "The work is mostly done.",
        "The task is half done.",
        "The task is 50% complete.",
        "The task is incomplete.",
        "The task is unfinished.",
        "The tasks are uncompleted.",
        "Almost everything is done.",
        "Nearly all tasks are complete.",
        "Not everything is done.",
        "Not all tasks are complete.",
        "None of the tasks are complete.",
        "No tasks are complete.",
        "Nothing is done.",
        "Most of the work is done.",
        "Some of the tasks are complete.",
        "Half the work is done.",
        "2 of the 5 tasks are complete.",
        "3 tasks are complete.",
        "Task 3 is complete.",
        "The first task is complete.",
        "The parser task is complete.",
        "The auth implementation is complete.",
        "The story is complete.",
        "The first part of the work is done.",
        "I don't think the task is complete.",
        "I can't say that everything is done.",
        "It is not true that all tasks are complete.",
        "Before the task is complete, the docs need work.",
        "Once all tasks are complete I will stop.",
        "When all tasks are complete, print the tag.",
        "I will continue until all tasks are complete.",
        "If everything is done, say so.",
        "If the suite is green, all tasks are complete.",
        "Once\nall tasks are complete, stop.",
        "The task is complete when the suite is green.",
        "The task is complete only if the suite is green.",
        "Let me check whether everything is done.",
        "Let me verify that all tasks are complete.",
        "I need to make sure everything is done.",
        "Are all tasks complete?",
        "Is everything done? All tasks are complete?",
        "Is the task complete?",
        "The work to be done is large.",
        "Work remains to be done.",
        "The task will be complete tomorrow.",
        "All tasks should be complete by then.",
        "Soon the task would be done.",
        "The task is being completed.",
        "Everything is done except the docs.",
        "Everything is done but the docs.",
        "All tasks are complete, except for the last.",
        "All tasks are complete so far.",
        "All tasks complete so far.",
        "All tasks are complete apart from one.",
        "All the work is done by the worker thread.",
        "The work is done in `core`.",
        "All features are implemented as traits.",
        "I marked all tasks complete.",
        "I have completed the first task.",
        "I have completed the implementation of the parser.",
        "I have not completed the task.",
        "I haven't completed all tasks.",
        "I will report after I have completed all tasks.",
        "I'm done with the parser.",
        "I am not done.",
        "We're almost done.",
        "This has nothing to do with the task.",
        "This is nothing to do now.",
        "Nothing was left to chance.",
        "I changed nothing.",
        "There is nothing left to do except the docs.",
        "There is no more work to do but the docs.",
        "No tasks remain but the docs.",
        "No other tasks.",
        "No work to speak of.",
        "To be completed: all tasks.",
        "Nothing that completes the task was found.",
        "The step that completes the task is open.",
        "There is not nothing left to do.",
        "No remaining tasks depend on it.",
        "The branch is not ready for review.",
        "The branch is almost ready for review.",
        "It will be ready for review.",
        "I am getting ready for the release.",
        "The parser is fully implemented.",
        "It is not fully implemented.",
        "It has to be fully implemented.",
        "The function returns a complete list of tasks.",
        "Completed tasks are listed below.",
        "Add a `Done` column for complete tasks.",
        "is_task_complete returns true",
        "The completeness of the work is open.",
        "Done.",
        "Next: finish all tasks.",
        "Please complete all tasks.",
        "- [ ] All tasks are complete",
        "❌ All tasks are complete",
        "> All tasks are complete.",
        "```\nAll tasks are complete.\n```",
        "Print `All tasks are complete.` at the end.",
        "It prints \"all tasks are complete\" at the end.",
        "It prints “all tasks are complete” at the end.",
        "I say \"In `x` all tasks are complete\" at the end.",
        "Multitasks are complete.",
        "The taskforce is complete.",
    ];

    #[test]
    fn completion_phrases_count_once() {
        let wrong: Vec<_> = PHRASES.iter().filter(|message| completion_phrases(message) != 1).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn other_sentences_do_not_count() {
        let wrong: Vec<_> = NO_PHRASES.iter().filter(|message| completion_phrases(message) != 0).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn each_phrase_counts() {
        for (message, expected) in [
            ("The task is complete and all requirements have been met.", 2),
            ("Everything is done and ready for review.", 2),
            ("All tasks are complete. All tasks are complete.", 2),
            ("All tasks complete. Project ready for review.", 2),
            ("**All tasks complete.** Project __ready for review__.", 2),
            ("All tasks are complete.\nThe work is done!\n\nNothing left to do.", 3),
            ("The task is complete. The docs are not complete.", 1),
            ("- All tasks are complete\n- The work is done", 2),
        ] {
            assert_eq!(completion_phrases(message), expected, "{message}");
        }
    }

    proptest! {
        #[test]
        fn sentences_are_independent(
            said in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(PHRASES).prop_map(|text| (text, 1)),
                    prop::sample::select(NO_PHRASES).prop_map(|text| (text, 0)),
                ],
                0..6,
            ),
        ) {
            let expected: usize = said.iter().map(|(_, count)| count).sum();
            let message: Vec<_> = said.iter().map(|(text, _)| *text).collect();
            prop_assert_eq!(completion_phrases(&message.join("\n\n")), expected);
        }

        #[test]
        fn a_condition_before_it_excludes_every_phrase(
            phrase in prop::sample::select(PHRASES),
            condition in prop::sample::select(vec!["If", "once", "When", "until", "Before", "unless", "whether"]),
        ) {
            prop_assume!(phrase.starts_with(char::is_alphabetic) && !phrase.contains(['\n', '?']) && !phrase.contains(". "));
            let message = format!("{condition} {phrase}");
            prop_assert_eq!(completion_phrases(&message), 0);
        }
    }
}

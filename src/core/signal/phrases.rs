//! How often a message claims that the work is complete.
//!
//! A claim is a subject that means the whole work, a verb and a state ("all tasks are now complete"),
//! or one of a few set phrases. Words are matched one after the other, so "almost", "not yet", "50%"
//! and "will be" break a claim by standing inside it; what stands before it in the sentence is looked
//! at for negations and conditions. Every claim counts, also one that is said twice: the reader asks how
//! much the agent talks of being done.

use super::own;

/// How many claims of completion the agent's own words hold.
pub fn completion_phrases(message: &str) -> usize {
    let mut speech = Speech { opens: true, ..Speech::default() };
    for line in own::lines(message) {
        speech.line(line);
    }
    speech.end(Ending::Statement);
    speech.claims
}

/// What a word can do in a claim, one bit each; most words do nothing.
type Roles = u64;

#[derive(Clone, Copy)]
struct Word {
    roles: Roles,
    /// The first of its clause: a mark or the sentence's start stands before it.
    opens: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Statement,
    Question,
}

/// Cuts lines into sentences and judges each as it ends.
#[derive(Default)]
struct Speech {
    words: Vec<Word>,
    word: String,
    opens: bool,
    heading: bool,
    claims: usize,
}

impl Speech {
    fn line(&mut self, line: &str) {
        let (text, listed) = own::item(line);
        // A wrapped line goes on with a small letter; anything else begins anew.
        let goes_on = |c: char| c.is_lowercase() || c.is_numeric() || matches!(c, '`' | '"' | '(');
        if self.heading || listed || !text.starts_with(goes_on) {
            self.end(Ending::Statement);
        }
        self.heading = text.starts_with('#');
        if text.starts_with("[ ]") {
            return;
        }
        let text = text.strip_prefix("[x]").or(text.strip_prefix("[X]")).unwrap_or(text);
        for part in own::said(text) {
            match part {
                Some(text) => self.text(text),
                None => self.push(QUOTED),
            }
        }
    }

    fn text(&mut self, text: &str) {
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            let joins = matches!(c, '\'' | '’' | '-' | '_' | '.') && !self.word.is_empty();
            if c.is_ascii_alphanumeric() {
                self.word.push(c.to_ascii_lowercase());
            } else if c.is_alphanumeric() {
                self.word.extend(c.to_lowercase());
            } else if joins && characters.peek().is_some_and(|next| next.is_alphanumeric()) {
                self.word.push(if c == '’' { '\'' } else { c });
            } else {
                self.finish_word();
                self.mark(c);
            }
        }
        self.finish_word();
    }

    fn mark(&mut self, c: char) {
        match c {
            '?' => self.end(Ending::Question),
            '.' | '!' | ';' | '|' | '…' => self.end(Ending::Statement),
            ',' | ':' | '(' | ')' | '-' | '–' | '—' => self.opens = true,
            '❌' | '✗' | '✘' | '☐' => self.push(NOT),
            _ => {}
        }
    }

    fn finish_word(&mut self) {
        if !self.word.is_empty() {
            self.push(roles(&self.word));
            self.word.clear();
        }
    }

    fn push(&mut self, roles: Roles) {
        self.words.push(Word { roles, opens: std::mem::take(&mut self.opens) });
    }

    fn end(&mut self, ending: Ending) {
        if ending == Ending::Statement {
            self.claims += claims(&self.words);
        }
        self.words.clear();
        self.opens = true;
    }
}

/// The claims in one sentence. A negation reaches to the end of its clause, a condition to the end of
/// the sentence.
fn claims(words: &[Word]) -> usize {
    let (mut count, mut at, mut denied) = (0, 0, false);
    while let Some(word) = words.get(at) {
        denied &= !word.opens && !word.is(BUT);
        // Most words have no role, and none of those begins a claim.
        if word.roles != 0
            && !denied
            && let Some(end) = claim(words, at)
        {
            count += 1;
            at = end;
            continue;
        }
        if word.is(CONDITION) {
            break;
        }
        denied |= word.is(NOT);
        at += 1;
    }
    count
}

/// Where the claim that begins at `at` ends. No attempt looks further than a few words, so that a
/// sentence is read in linear time.
fn claim(words: &[Word], at: usize) -> Option<usize> {
    let attempts = [state_of_work, work_finished, nothing_left, ready, fully_implemented, self_done];
    let end = attempts.iter().find_map(|attempt| attempt(words, at))?;
    let limited =
        follows(words, end, LIMIT) || words.iter().skip(end).take(REACH).any(|word| word.is(EXCEPT));
    (!limited).then_some(end)
}

/// How far behind a claim an "except" still takes it back.
const REACH: usize = 12;

/// "All tasks are now complete", "Implementation complete".
fn state_of_work(words: &[Word], at: usize) -> Option<usize> {
    let subject = subject(words, at)?;
    let contracted = is(words, subject.end - 1, IS);
    let verb = match subject.all {
        true => place(words, subject.end).unwrap_or(subject.end),
        false => subject.end,
    };
    if contracted || is(words, verb, VERB) {
        let state = skip(words, verb + usize::from(!contracted), FILLER);
        return is_state(words, state).then_some(state + 1);
    }
    // Without a verb it has to be all there is: "mark all tasks complete" is none.
    let whole = is(words, verb, STATE) && words[at].opens && closes(words, verb + 1);
    whole.then_some(verb + 1)
}

/// "I have completed all tasks", "Finished the implementation".
fn work_finished(words: &[Word], at: usize) -> Option<usize> {
    let said = is(words, at, FINISHED) && (words[at].opens || before(words, at, ACTOR));
    let subject = said.then(|| subject(words, at + 1))??;
    // "Completed the implementation of the parser" is a part.
    (subject.all || !follows(words, subject.end, PART_OF)).then_some(subject.end)
}

/// "Nothing left to do", "nothing else remains", "no remaining tasks", "no tasks are left".
fn nothing_left(words: &[Word], at: usize) -> Option<usize> {
    if is(words, at, NOTHING) {
        let verb = skip(words, at + 1, VERB);
        let more = skip(words, verb, MORE);
        let left = skip(words, more, LEFT);
        // "Nothing to do with it" is about something else.
        if is(words, left, TO) && is(words, left + 1, DO) {
            return (left > verb).then_some(left + 2);
        }
        return (left > more && closes(words, left)).then_some(left);
    }
    if !is(words, at, NO) {
        return None;
    }
    let adjective = skip(words, at + 1, MORE | LEFT);
    let remaining = adjective > at + 1 && is(words, adjective - 1, LEFT);
    is(words, adjective, WHOLE | PARTS).then_some(())?;
    let noun = adjective + 1;
    if is(words, noun, TO) && is(words, noun + 1, DO) {
        return Some(noun + 2);
    }
    let left = skip(words, noun, VERB);
    match is(words, left, LEFT) {
        true => Some(left + 1),
        false => (remaining && closes(words, noun)).then_some(noun),
    }
}

/// "It is ready for review", "ready to merge".
fn ready(words: &[Word], at: usize) -> Option<usize> {
    let said = is(words, at, READY) && (words[at].opens || before(words, at, VERB | IS | FILLER | OPENER));
    let target = skip(words, at + 1, FOR);
    (said && target == at + 2 && is(words, target, TARGET)).then_some(target + 1)
}

/// "The feature is fully implemented".
fn fully_implemented(words: &[Word], at: usize) -> Option<usize> {
    let said = is(words, at, FULLY) && (words[at].opens || before(words, at, VERB | IS | FILLER | OPENER));
    (said && is(words, at + 1, IMPLEMENTED) && !follows(words, at + 2, MANNER)).then_some(at + 2)
}

/// "I am done", "we're finished", "All done."
fn self_done(words: &[Word], at: usize) -> Option<usize> {
    let state = if is(words, at, SELF_IS) {
        skip(words, at + 1, FILLER)
    } else if is(words, at, SELF) && is(words, at + 1, AM) {
        skip(words, at + 2, FILLER)
    } else if is(words, at, ALL) && words[at].opens && closes(words, at + 2) {
        at + 1
    } else {
        return None;
    };
    (is(words, state, STATE) && !is(words, state, MET) && !follows(words, state + 1, MANNER))
        .then_some(state + 1)
}

struct Subject {
    end: usize,
    /// It says "all", "every" or "everything".
    all: bool,
}

/// A noun phrase that means the whole of the work.
fn subject(words: &[Word], at: usize) -> Option<Subject> {
    // "Most of the tasks", "almost everything".
    if !words.get(at)?.opens && before(words, at, PARTLY) {
        return None;
    }
    if is(words, at, EVERYTHING) {
        return Some(Subject { end: at + 1, all: true });
    }
    let all = is(words, at, ALL | EACH);
    let mut noun = at + usize::from(all);
    if all && is(words, noun, OF) {
        noun += 1;
    }
    let determined = is(words, noun, THE);
    noun = skip(words, noun + usize::from(determined), ADJECTIVE);
    let named = all || determined;
    // "Work is done" may stand bare, but "the parser work is done" is a part.
    let bare = noun == at && (words[at].opens || before(words, at, OPENER));
    let whole = is(words, noun, WHOLE) && (named || bare);
    let parts = is(words, noun, PARTS) && named;
    let each = is(words, noun, PART) && is(words, at, EACH);
    (whole || parts || each).then_some(Subject { end: noun + 1, all })
}

/// Behind "all tasks": "in the plan", "from the PRD", "listed in `tasks.json`".
fn place(words: &[Word], at: usize) -> Option<usize> {
    is(words, at, PLACE).then_some(())?;
    (at + 1..at + 6).find(|&end| is(words, end, HOLDER)).map(|end| end + 1)
}

/// Something is complete; "done by a worker", "implemented as a trait" tell how, not that.
fn is_state(words: &[Word], at: usize) -> bool {
    is(words, at, STATE) && !(is(words, at, MADE) && follows(words, at + 1, MANNER))
}

impl Word {
    fn is(self, roles: Roles) -> bool {
        self.roles & roles != 0
    }
}

fn is(words: &[Word], at: usize, roles: Roles) -> bool {
    words.get(at).is_some_and(|word| word.is(roles))
}

/// The word before, in the same clause.
fn before(words: &[Word], at: usize, roles: Roles) -> bool {
    at > 0 && !words[at].opens && is(words, at - 1, roles)
}

/// The word behind, in the same clause.
fn follows(words: &[Word], at: usize, roles: Roles) -> bool {
    words.get(at).is_some_and(|word| !word.opens && word.is(roles))
}

/// The clause ends here, or nothing but "successfully" or "and …" comes.
fn closes(words: &[Word], at: usize) -> bool {
    words.get(at).is_none_or(|word| word.opens || word.is(FILLER | OPENER))
}

/// Past a handful of words of a kind.
fn skip(words: &[Word], at: usize, roles: Roles) -> usize {
    (at..at + 4).find(|&next| !is(words, next, roles)).unwrap_or(at + 4)
}

const ALL: Roles = 1 << 0;
const EACH: Roles = 1 << 1;
const EVERYTHING: Roles = 1 << 2;
const THE: Roles = 1 << 3;
const ADJECTIVE: Roles = 1 << 4;
const OF: Roles = 1 << 5;
const PARTLY: Roles = 1 << 6;
const WHOLE: Roles = 1 << 7;
const PART: Roles = 1 << 8;
const PARTS: Roles = 1 << 9;
const VERB: Roles = 1 << 10;
/// Ends in 's: "everything's done".
const IS: Roles = 1 << 11;
const FILLER: Roles = 1 << 12;
const STATE: Roles = 1 << 13;
/// A state that also tells how something is made.
const MADE: Roles = 1 << 14;
const MANNER: Roles = 1 << 15;
const FINISHED: Roles = 1 << 16;
const ACTOR: Roles = 1 << 17;
const OPENER: Roles = 1 << 18;
const PLACE: Roles = 1 << 19;
const HOLDER: Roles = 1 << 20;
const PART_OF: Roles = 1 << 21;
const NOTHING: Roles = 1 << 22;
const NO: Roles = 1 << 23;
const MORE: Roles = 1 << 24;
const LEFT: Roles = 1 << 25;
const TO: Roles = 1 << 26;
const DO: Roles = 1 << 27;
const READY: Roles = 1 << 28;
const FOR: Roles = 1 << 29;
const TARGET: Roles = 1 << 30;
const FULLY: Roles = 1 << 31;
const IMPLEMENTED: Roles = 1 << 32;
const SELF: Roles = 1 << 33;
const SELF_IS: Roles = 1 << 34;
/// Fits requirements, not people: "I am met" is nothing.
const MET: Roles = 1 << 35;
const NOT: Roles = 1 << 36;
const CONDITION: Roles = 1 << 37;
const BUT: Roles = 1 << 38;
/// Directly behind a claim, makes it a condition or a part: "complete once", "done so far".
const LIMIT: Roles = 1 << 39;
const EXCEPT: Roles = 1 << 40;
const AM: Roles = 1 << 41;
/// Code or quoted words: it may name a list of tasks, and is no word otherwise.
const QUOTED: Roles = HOLDER;

/// No word below is longer, and what is longer need not be looked at.
const LONGEST_WORD: usize = 20;

/// The roles of a lower-case word.
fn roles(word: &str) -> Roles {
    if word.len() > LONGEST_WORD {
        return 0;
    }
    if let Some(stem) = word.strip_suffix("'s") {
        return roles(stem) | IS;
    }
    match word {
        "all" => ALL | FILLER,
        "every" | "each" => EACH,
        "everything" => EVERYTHING,
        "the" | "these" | "those" | "my" | "your" | "our" => THE,
        "this" => THE | ACTOR,
        "entire" | "whole" | "full" | "original" | "requested" | "required" | "planned" | "assigned"
        | "acceptance" | "specified" | "listed" | "necessary" | "user" | "todo" | "to-do" | "coding"
        | "development" | "success" => ADJECTIVE,
        "of" => OF | PARTLY | PLACE | PART_OF,
        "half" | "most" | "some" | "many" | "several" | "almost" | "nearly" | "mostly" | "practically"
        | "virtually" | "partly" | "partially" | "roughly" | "about" => PARTLY,
        "task" => WHOLE | PART,
        "work" | "implementation" | "project" | "migration" | "refactor" | "refactoring" | "rewrite"
        | "job" | "assignment" => WHOLE,
        "goal" | "objective" | "feature" => WHOLE | PART,
        "requirement" | "criterion" | "item" | "story" | "step" | "phase" | "milestone" | "subtask"
        | "deliverable" => PART,
        "tasks" | "requirements" | "criteria" | "items" | "stories" | "features" | "steps" | "phases"
        | "milestones" | "subtasks" | "deliverables" | "goals" | "objectives" | "todos" => PARTS,
        "is" | "was" | "were" => VERB,
        "am" | "are" => VERB | AM,
        "has" | "have" => VERB | ACTOR,
        "been" | "also" | "finally" | "entirely" | "completely" | "officially" | "indeed" | "totally"
        | "100" => FILLER,
        "now" => FILLER | ACTOR | OPENER,
        "already" | "successfully" | "just" => FILLER | ACTOR,
        "fully" => FILLER | ACTOR | FULLY,
        "and" | "so" => ACTOR | OPENER | if word == "so" { LIMIT } else { 0 },
        "thus" | "therefore" | "hence" => OPENER | FILLER,
        "complete" => STATE,
        "completed" | "finished" | "accomplished" => STATE | FINISHED,
        "completes" | "concludes" => FINISHED,
        "done" => STATE | MADE,
        "implemented" => STATE | MADE | FINISHED | IMPLEMENTED | MET,
        "met" | "satisfied" | "fulfilled" => STATE | FINISHED | MET,
        "by" | "via" | "through" | "using" | "with" | "as" | "per" | "inside" | "at" | "under" | "lazily" => {
            MANNER
        }
        "in" | "on" => MANNER | PLACE | PART_OF,
        "from" | "within" => MANNER | PLACE,
        "list" | "plan" | "prd" | "spec" | "specification" | "issue" | "backlog" | "file" | "prompt"
        | "brief" | "tasks.json" | "checklist" | "roadmap" => HOLDER,
        "i" | "we" => SELF | ACTOR,
        "i've" | "we've" | "i'd" => ACTOR,
        "i'm" | "we're" => SELF_IS,
        "nothing" => NOTHING | NOT,
        "no" => NO | NOT,
        "more" | "else" | "further" | "other" | "open" => MORE,
        "left" | "remains" | "remain" | "outstanding" | "pending" => {
            LEFT | if word == "pending" { EXCEPT } else { 0 }
        }
        "remaining" => LEFT | ADJECTIVE,
        "needed" => LEFT,
        "to" => TO | FOR,
        "for" => FOR | PART_OF,
        "do" => DO,
        "ready" => READY,
        "review" | "production" | "merge" | "merging" | "release" | "deployment" | "deploy" | "ship"
        | "shipping" => TARGET,
        "not" | "none" | "never" | "cannot" | "without" | "neither" | "nor" | "hardly" | "barely"
        | "doubt" | "will" | "would" | "should" | "could" | "might" | "may" | "must" | "claim" | "claims"
        | "claimed" | "claiming" | "says" | "say" | "declare" | "declaring" | "pretend" => NOT,
        "if" | "when" | "whenever" | "once" | "until" | "till" | "unless" => CONDITION | LIMIT,
        "before" | "after" | "whether" | "how" | "ensure" | "ensuring" | "verify" | "verifying" | "check"
        | "checking" | "sure" | "assuming" | "assume" | "suppose" => CONDITION,
        "only" | "provided" => LIMIT,
        "but" => BUT | LIMIT,
        "except" | "excluding" | "besides" | "aside" | "apart" | "barring" | "minus" => EXCEPT,
        _ if word.ends_with("n't") => NOT,
        _ if word.bytes().all(|byte| byte.is_ascii_digit()) => ADJECTIVE,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLAIMS: &[&str] = &[
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
        "The parser is fully implemented.",
        "It has been fully implemented.",
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

    const NO_CLAIMS: &[&str] = &[
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
        "I will go on until all tasks are complete.",
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
    fn claims_of_completion() {
        let wrong: Vec<_> = CLAIMS.iter().filter(|message| completion_phrases(message) != 1).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn what_only_sounds_like_one() {
        let wrong: Vec<_> = NO_CLAIMS.iter().filter(|message| completion_phrases(message) != 0).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn each_claim_counts() {
        for (message, expected) in [
            ("The task is complete and all requirements have been met.", 2),
            ("Everything is done and ready for review.", 2),
            ("All tasks are complete. All tasks are complete.", 2),
            ("All tasks are complete.\nThe work is done!\n\nNothing left to do.", 3),
            ("The task is complete. The docs are not complete.", 1),
            ("- All tasks are complete\n- The work is done", 2),
        ] {
            assert_eq!(completion_phrases(message), expected, "{message}");
        }
    }

    proptest! {
        #[test]
        fn sentences_do_not_touch_each_other(
            said in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(CLAIMS).prop_map(|text| (text, 1)),
                    prop::sample::select(NO_CLAIMS).prop_map(|text| (text, 0)),
                ],
                0..6,
            ),
        ) {
            let expected: usize = said.iter().map(|(_, count)| count).sum();
            let message: Vec<_> = said.iter().map(|(text, _)| *text).collect();
            prop_assert_eq!(completion_phrases(&message.join("\n\n")), expected);
        }

        #[test]
        fn a_condition_before_it_takes_back_every_claim(
            claim in prop::sample::select(CLAIMS),
            condition in prop::sample::select(vec!["If", "once", "When", "until", "Before", "unless", "whether"]),
        ) {
            prop_assume!(claim.starts_with(char::is_alphabetic) && !claim.contains(['\n', '?']) && !claim.contains(". "));
            let message = format!("{condition} {claim}");
            prop_assert_eq!(completion_phrases(&message), 0);
        }
    }
}

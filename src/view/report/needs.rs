//! What needs the user: what the agent could not settle, prove or attempt.

use super::words::{code, count, listed, plain, quote};
use super::{Need, QuestionState, ReportInput, ReviewSection};
use crate::core::outcome::Outcome;
use crate::core::record::Engine;
use crate::core::tasks::{self, Story};
use crate::core::text::clean;
use std::collections::BTreeSet;

/// So many stories are named.
const MAX_NAMED: usize = 8;

pub fn of(facts: &ReportInput, review: &ReviewSection) -> Vec<Need> {
    let mut needs: Vec<Need> = question(facts).into_iter().collect();
    needs.extend(breaker(facts));
    needs.extend(claims(facts));
    needs.extend(checks(facts));
    needs.extend(weakened(review));
    needs.extend(stories(facts));
    needs.extend(denied(facts));
    needs.extend(guidance(facts));
    needs
}

fn engine(facts: &ReportInput) -> Engine {
    facts.timeline.started.as_ref().map_or_else(Engine::default, |started| started.engine)
}

fn question(facts: &ReportInput) -> Option<Need> {
    let (_, ended) = facts.timeline.ended.as_ref()?;
    let (what, file) = match ended.outcome? {
        Outcome::Blocked => ("The agent is blocked: ", "ralph/blocked.txt"),
        Outcome::Decide => ("The agent asks: ", "ralph/decide.txt"),
        _ => return None,
    };
    let mut words = vec![plain(what), quote(&ended.reason)];
    let command = match &facts.question {
        QuestionState::Answered(answer) => {
            words.extend([plain(" You answered: "), quote(answer)]);
            None
        }
        QuestionState::Gone => {
            words.push(plain(format!(" ({file} no longer exists)")));
            None
        }
        QuestionState::Open | QuestionState::None => Some(match engine(facts) {
            Engine::InSession => "/ralph:answer TEXT".to_owned(),
            Engine::Runner => "ralph answer TEXT".to_owned(),
        }),
    };
    Some(Need { what: words, command })
}

fn breaker(facts: &ReportInput) -> Option<Need> {
    let outcome = facts.timeline.outcome()?;
    matches!(outcome, Outcome::Stuck | Outcome::Circuit).then(|| Need {
        what: vec![plain("The circuit breaker stays tripped until you reset it.")],
        command: Some("ralph reset".into()),
    })
}

/// Returns the claims of completion that were rejected.
pub fn rejected(facts: &ReportInput) -> Vec<(u64, String)> {
    let iterations = facts.timeline.iterations.iter();
    let why = iterations
        .filter_map(|(number, it)| Some((*number, clean::excerpt(it.facts.rejected.as_ref()?, 300))));
    why.collect()
}

fn claims(facts: &ReportInput) -> Option<Need> {
    if facts.timeline.outcome() == Some(Outcome::Complete) {
        return None;
    }
    let rejected = rejected(facts);
    let (number, why) = rejected.last()?;
    let claims = count(rejected.len(), "claim", "claims");
    let last = if rejected.len() > 1 { ", the last" } else { "" };
    Some(Need {
        what: vec![
            plain(format!("{claims} of completion rejected{last} in iteration {number}: ")),
            quote(why),
        ],
        command: None,
    })
}

fn checks(facts: &ReportInput) -> Vec<Need> {
    if !facts.has_events {
        return Vec::new();
    }
    let open = || facts.timeline.checks.iter().filter(|check| check.last_passed.is_none());
    let need = |one: &str, many: &str, has_run: bool| {
        let found = open().filter(|check| (check.runs > 0) == has_run);
        let found: Vec<_> = found.map(|check| code(&check.command)).collect();
        let begin = if found.len() == 1 { one } else { many };
        (!found.is_empty())
            .then(|| Need { what: [vec![plain(begin)], listed(found)].concat(), command: None })
    };
    let failed = need("This check never passed: ", "These checks never passed: ", true);
    let is_claimed = facts.timeline.checks.iter().any(|check| check.runs > 0) || !rejected(facts).is_empty();
    let why = match is_claimed {
        true => "An earlier check failed",
        false => "The agent never claimed completion",
    };
    let (one, many) =
        (format!("{why}, so this check never ran: "), format!("{why}, so these checks never ran: "));
    let unused = need(&one, &many, false);
    failed.into_iter().chain(unused).collect()
}

/// Reports weakened tests: a passing check means less if tests are gone.
fn weakened(review: &ReviewSection) -> Option<Need> {
    let found = &review.weakened;
    let parts = [
        (found.deleted.len(), "test file deleted", "test files deleted"),
        (found.skipped.len(), "line that skips tests", "lines that skip tests"),
        (found.fewer.len(), "file with fewer tests", "files with fewer tests"),
    ];
    let parts = parts.into_iter().filter(|(number, ..)| *number > 0);
    let parts: Vec<_> = parts.map(|(number, one, many)| plain(count(number, one, many))).collect();
    let words =
        [vec![plain("Tests were weakened; review them first: ")], listed(parts), vec![plain(".")]].concat();
    (!found.is_empty()).then_some(Need { what: words, command: None })
}

fn stories(facts: &ReportInput) -> Vec<Need> {
    let Some(tasks) = &facts.tasks else { return Vec::new() };
    let open = || tasks.stories.iter().filter(|story| !story.passes);
    let is_untouched = |story: &&Story| {
        story.review == tasks::Review::Open && story.review_count == 0 && story.notes.trim().is_empty()
    };
    let (untouched, begun): (Vec<&Story>, Vec<&Story>) = open().partition(is_untouched);
    let unreviewed =
        tasks.stories.iter().filter(|story| story.passes && !story.is_done(tasks.skips_review(false)));
    let need = |what: &str, stories: Vec<&Story>| {
        let more = stories.len().saturating_sub(MAX_NAMED);
        let mut named: Vec<_> = stories.iter().take(MAX_NAMED).map(|story| quote(&story.name())).collect();
        if more > 0 {
            named.push(plain(format!("{more} more")));
        }
        let begin = format!("{} {what}: ", count(stories.len(), "story", "stories"));
        (!stories.is_empty())
            .then(|| Need { what: [vec![plain(begin)], listed(named)].concat(), command: None })
    };
    [
        need("not attempted", untouched),
        need("not done", begun),
        need("done but not approved", unreviewed.collect()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn denied(facts: &ReportInput) -> Option<Need> {
    let tools = facts.timeline.iterations.values().flat_map(|iteration| &iteration.facts.denied_tools);
    let tools: BTreeSet<&String> = tools.collect();
    if tools.is_empty() {
        return None;
    }
    let tools = tools.into_iter().take(MAX_NAMED).map(|tool| code(tool)).collect();
    Some(Need { what: [vec![plain("The agent was denied ")], listed(tools)].concat(), command: None })
}

fn guidance(facts: &ReportInput) -> Option<Need> {
    let undelivered =
        facts.timeline.guidance.iter().filter(|entry| {
            entry.list != "allowed" && entry.delivered.is_none() && entry.removed_at.is_none()
        });
    let texts: Vec<_> = undelivered.take(MAX_NAMED).map(|entry| quote(&entry.text)).collect();
    (!texts.is_empty() && facts.timeline.ended.is_some()).then(|| Need {
        what: [vec![plain("Guidance that was never delivered: ")], listed(texts)].concat(),
        command: None,
    })
}

//! The summary of an archived run, in Markdown.

use crate::core::tasks::{Review, Story, TaskList, counts};
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::store::runner::summary::SummaryRow;
use crate::store::user::history::Run;

/// The facts of a summary; unknown ones are marked as such.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveInput<'a> {
    pub project: &'a str,
    pub now: Stamp,
    /// The task list, or why it cannot be read; `None` if the run had none.
    pub tasks: Option<Result<&'a TaskList, &'a str>>,
    pub iterations: &'a [SummaryRow],
    pub run: Option<&'a Run>,
}

pub fn summary(facts: &ArchiveInput) -> String {
    let mut out = format!("# {}\n\n", cell(facts.project));
    if let Some(Ok(list)) = facts.tasks
        && !list.description.is_empty()
    {
        out.push_str(&format!("{}\n\n", clean::line(&list.description)));
    }
    out.push_str("| | |\n|---|---|\n");
    let mut row = |name: &str, value: String| out.push_str(&format!("| {name} | {value} |\n"));
    row("Archived", facts.now.minute());
    match facts.run {
        Some(run) => {
            row("Outcome", format!("{}: {}", run.outcome.name(), cell(&run.reason)));
            row("Run", format!("{}, ended {}", cell(&run.run_id), run.ended_at.minute()));
        }
        None => row("Outcome", "not recorded".into()),
    }
    row("Iterations", iterations(facts));
    if let Some(Ok(list)) = facts.tasks {
        let counts = counts(list, false);
        let (total, passing, approved) = (counts.total, counts.passing, counts.approved);
        let approved =
            if list.source.form.has_reviews() { format!(", {approved} approved") } else { String::new() };
        row("Stories", format!("{total}: {passing} passing{approved}"));
        if !list.branch_name.is_empty() {
            row("Branch", cell(&list.branch_name));
        }
    }
    out + &match facts.tasks {
        None => String::new(),
        Some(Err(why)) => format!("\nThe task list could not be read: {}\n", clean::line(why)),
        Some(Ok(list)) => stories(list),
    }
}

fn iterations(facts: &ArchiveInput) -> String {
    let rows = facts.iterations;
    if rows.is_empty() {
        return facts.run.map_or_else(|| "none recorded".into(), |run| run.iterations.to_string());
    }
    let count = |mode: &str| rows.iter().filter(|row| row.mode == mode).count();
    let modes = ["implement", "review", "review-fix"].into_iter().filter(|mode| count(mode) > 0);
    let modes: Vec<_> = modes.map(|mode| format!("{mode} {}", count(mode))).collect();
    let modes = if modes.is_empty() { String::new() } else { format!(" ({})", modes.join(", ")) };
    let seconds = rows.iter().map(|row| row.seconds() as f64).sum();
    let idle = rows.iter().filter(|row| row.commit_hash.is_empty()).count();
    let idle = if idle > 0 { format!(", {idle} without a commit") } else { String::new() };
    format!("{}{modes}, {} in all{idle}", rows.len(), time::span(Stamp::from_seconds(seconds).0))
}

fn stories(list: &TaskList) -> String {
    if list.stories.is_empty() {
        return String::new();
    }
    if !list.source.form.has_reviews() {
        let row = |story: &Story| {
            let tick = if story.passes { "x" } else { " " };
            format!("- [{tick}] {}\n", clean::line(&story.name()))
        };
        let rows: String = list.stories.iter().map(row).collect();
        return format!("\n## Stories\n\n{rows}");
    }
    let mut out =
        String::from("\n## Stories\n\n| id | title | passes | review | reviews |\n|---|---|---|---|---|\n");
    for story in &list.stories {
        let passes = if story.passes { "yes" } else { "no" };
        let (id, title, review) = (cell(&story.id), cell(&story.title), review(story));
        out.push_str(&format!("| {id} | {title} | {passes} | {review} | {} |\n", story.review_count));
    }
    let open = |story: &&Story| {
        !story.review_feedback.trim().is_empty()
            && (story.approved_at_cap || story.review != Review::Approved)
    };
    let open: Vec<_> = list.stories.iter().filter(open).collect();
    if !open.is_empty() {
        out.push_str("\n## Open feedback\n\n");
        for story in open {
            out.push_str(&format!("- {}: {}\n", cell(&story.id), clean::line(&story.review_feedback)));
        }
    }
    out
}

fn review(story: &Story) -> &'static str {
    match story.review {
        Review::Approved if story.approved_at_cap => "approved at the review cap",
        Review::Approved => "approved",
        Review::ChangesRequested => "changes requested",
        Review::Needed => "needs review",
        Review::Open => "-",
    }
}

/// Returns one line that is safe in a table cell.
fn cell(text: &str) -> String {
    clean::line(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::outcome::Outcome;
    use crate::core::record::{Engine, Usage};
    use crate::core::tasks::validate;
    use serde_json::json;

    #[test]
    fn it_summarises_the_run() {
        let list = validate(&json!({"description": "Better dates", "branchName": "ralph/dates", "userStories": [
            {"id": "US-1", "title": "Parse | print", "passes": true, "reviewStatus": "approved", "reviewCount": 1},
            {"id": "US-2", "title": "Zones", "passes": true, "reviewStatus": "approved", "reviewCount": 5, "approvedAtCap": true, "reviewFeedback": "DST is\nwrong"},
            {"id": "US-3", "title": "Docs", "passes": false},
        ]}))
        .unwrap();
        let row = |mode: &str, commit: &str| SummaryRow {
            mode: mode.into(),
            duration_seconds: 90,
            commit_hash: commit.into(),
            ..SummaryRow::default()
        };
        let run = Run {
            run_id: "r1".into(),
            session_id: String::new(),
            engine: Engine::Runner,
            project: String::new(),
            task: String::new(),
            started_at: Stamp(0),
            ended_at: Stamp(0),
            outcome: Outcome::Stuck,
            reason: "no commit | thrice".into(),
            iterations: 3,
            runtime_seconds: 1.0,
            wall_seconds: 1.0,
            usage: Usage::default(),
            checks: Vec::new(),
            commands: serde_json::Map::new(),
            given: Default::default(),
        };
        let rows = [row("implement", "abc"), row("review", "def"), row("implement", "")];
        let facts = ArchiveInput {
            project: "P",
            now: Stamp(0),
            tasks: Some(Ok(&list)),
            iterations: &rows,
            run: Some(&run),
        };
        let expected = "# P\n\nBetter dates\n\n| | |\n|---|---|\n| Archived | 1970-01-01 00:00 UTC |\n\
            | Outcome | stuck: no commit \\| thrice |\n| Run | r1, ended 1970-01-01 00:00 UTC |\n\
            | Iterations | 3 (implement 2, review 1), 4m in all, 1 without a commit |\n\
            | Stories | 3: 2 passing, 2 approved |\n| Branch | ralph/dates |\n\n\
            ## Stories\n\n| id | title | passes | review | reviews |\n|---|---|---|---|---|\n\
            | US-1 | Parse \\| print | yes | approved | 1 |\n| US-2 | Zones | yes | approved at the review cap | 5 |\n\
            | US-3 | Docs | no | - | 0 |\n\n## Open feedback\n\n- US-2: DST is wrong\n";
        assert_eq!(summary(&facts), expected);
    }

    #[test]
    fn unknown_facts_are_marked() {
        let facts = ArchiveInput {
            project: "P",
            now: Stamp(0),
            tasks: Some(Err("is not valid JSON")),
            iterations: &[],
            run: None,
        };
        let text = summary(&facts);
        for part in [
            "| Outcome | not recorded |",
            "| Iterations | none recorded |",
            "could not be read: is not valid JSON",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let without = ArchiveInput { tasks: None, ..facts };
        assert!(!summary(&without).contains("Stories"));
    }
}

//! What the hooks require of an agent while a runner is active: a valid task list, legal changes of it, and nothing
//! left uncommitted. Without a runner, or without a task list, nothing is required.

use super::run_lock;
use super::snapshot::{self, TaskListSnapshot};
use crate::core::tasks::{TaskSource, apply_review_cap, keep_review, transitions};
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::store::project::{Project, git, git_process, stable_hash};
use crate::store::{World, file, state, tasks};
use anyhow::Result;
use std::time::Duration;

/// A hook waits for it, and a repository can make git wait forever.
const MAX_GIT_WAIT: Duration = Duration::from_secs(5);
const MAX_NAMES: usize = 5;
const MAX_NAME_CHARS: usize = 200;
/// More problems with a task list than an agent fixes at once are only counted.
const MAX_PROBLEMS: usize = 10;
/// Everything in the project except what Ralph itself writes there.
const WORK: &[&str] = &[
    ".",
    ":(exclude).claude/ralph-state.*",
    ":(exclude).claude/STOP_LOOP",
    ":(exclude)ralph/logs",
    ":(exclude)ralph/run.lock",
    ":(exclude)ralph/blocked.txt",
    ":(exclude)ralph/decide.txt",
    ":(exclude)ralph/answered",
];

/// Returns what the agent must fix before its turn may end, a sentence each. Returns nothing without a runner or a
/// task list.
pub fn runner_check(world: &World, project: &Project) -> Result<Vec<String>> {
    let Some(run_id) = world.run_id.as_deref().filter(|_| run_lock::is_runner_child(world, project)) else {
        return Ok(Vec::new());
    };
    let snapshot = snapshot::load(world, project, run_id)?;
    let mut problems = match &snapshot {
        Some(before)
            if before.text.is_empty() && matches!(tasks::load(project, &before.tasks.source), Ok(None)) =>
        {
            return Ok(Vec::new());
        }
        Some(before) => list_problems(project, before),
        None => match tasks::load(project, &source_of(project, run_id)) {
            Err(faults) => faults,
            Ok(Some(_)) => Vec::new(),
            Ok(None) => return Ok(Vec::new()),
        },
    };
    if problems.is_empty() {
        problems.extend(snapshot.iter().flat_map(|before| capped(project, before)));
    }
    problems.extend(uncommitted(project));
    Ok(problems)
}

/// Returns what is wrong with the task list after an iteration, a sentence each: it cannot be used, or something
/// changed that the iteration's mode does not allow.
pub fn list_problems(project: &Project, before: &TaskListSnapshot) -> Vec<String> {
    let source = &before.tasks.source;
    let name = &source.file;
    match tasks::load(project, source) {
        Err(faults) => faults,
        Ok(Some(now)) => {
            let problems = transitions(&before.tasks, &now, before.mode()).err().unwrap_or_default();
            let more = problems.len().saturating_sub(MAX_PROBLEMS);
            let more = (more > 0).then(|| format!("{name}: {more} more problems"));
            let named = problems.iter().take(MAX_PROBLEMS).map(|problem| format!("{name}: {problem}"));
            named.chain(more).collect()
        }
        Ok(None) if before.text.is_empty() => Vec::new(),
        Ok(None) => vec![format!("{name} is missing: restore it")],
    }
}

/// Returns where the run keeps its tasks, when there is no snapshot of them yet.
fn source_of(project: &Project, run_id: &str) -> TaskSource {
    let document = state::peek(project).ok().flatten().unwrap_or_default();
    let found = document.loops_where(|_, other| other == run_id).next();
    found.map(|(_, run)| run.tasks).unwrap_or_default()
}

/// Approves stories at the review cap in the reviewer's place; the agent only has to commit that.
fn capped(project: &Project, before: &TaskListSnapshot) -> Vec<String> {
    let cap = before.rules.review_cap;
    let approved = cap_reviews(project, before).unwrap_or_default();
    let told = |id: String| {
        format!(
            "{}: story {id} reached the review cap ({cap}), so Ralph approved it and marked it: commit that",
            before.tasks.source.file
        )
    };
    approved.into_iter().map(told).collect()
}

/// Approves the stories that have been reviewed often enough, and returns their ids. The runner calls it too, for
/// agents without hooks.
pub fn cap_reviews(project: &Project, before: &TaskListSnapshot) -> Result<Vec<String>> {
    if before.rules.skip_review {
        return Ok(Vec::new());
    }
    let approved =
        tasks::edit(project, &before.tasks.source, |list| apply_review_cap(list, before.rules.review_cap))?;
    Ok(approved.unwrap_or_default())
}

/// Restores a task list that is missing or cannot be used at the end of a run. After BLOCKED or DECIDE (`reviews`) it
/// restores the review fields of a list that can be used. Returns what it did, as a note for the user.
pub fn restore(
    project: &Project,
    before: &TaskListSnapshot,
    reviews: bool,
    now: Stamp,
) -> Result<Option<String>> {
    let source = &before.tasks.source;
    if before.text.is_empty() {
        return Ok(None);
    }
    if matches!(tasks::load(project, source), Err(_) | Ok(None)) {
        let aside = tasks::restore(project, source, &before.text, now)?;
        let aside =
            aside.map_or_else(String::new, |path| format!("; the unusable file is now {}", path.display()));
        return Ok(Some(format!("{} was restored to its state before the iteration{aside}", source.file)));
    }
    if !reviews {
        return Ok(None);
    }
    let restored = tasks::edit(project, source, |list| keep_review(&before.tasks, list))?;
    let restored = restored.filter(|ids| !ids.is_empty());
    Ok(restored.map(|ids| format!("review fields restored: {}", ids.join(", "))))
}

/// Counts one more block of this session's stop, and returns how many there were before.
pub fn count_block(world: &World, session: &str) -> u64 {
    let Ok(dir) = world.data_dir().map(|dir| dir.join("held")) else { return u64::MAX };
    let path = dir.join(format!("{:016x}", stable_hash(session.as_bytes())));
    let bytes = file::read_bounded(&path, 64).ok().flatten().unwrap_or_default();
    let before = String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0);
    // Without a count that is saved, the stop would be blocked forever.
    let saved = file::create_dir(&dir)
        .and_then(|()| file::replace_unsynced(&path, (before + 1).to_string().as_bytes()));
    if saved.is_ok() { before } else { u64::MAX }
}

/// Removes the counts of a run that is over.
pub fn forget_blocks(world: &World) {
    if let Ok(dir) = world.data_dir() {
        let _ = std::fs::remove_dir_all(dir.join("held"));
    }
}

/// Returns what is not committed; nothing if git cannot be asked, or does not answer in time.
fn uncommitted(project: &Project) -> Option<String> {
    git::dir(&project.root)?;
    let names =
        git_process::uncommitted(&project.root, WORK, MAX_GIT_WAIT).ok().filter(|names| !names.is_empty())?;
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names: Vec<String> = names.iter().take(MAX_NAMES).map(|name| quoted(name)).collect();
    let names = names.join(", ");
    Some(format!(
        "not committed: {names}{more}. Note in ralph/progress.txt what you did, then commit everything that belongs to \
         this iteration, and remove or ignore the rest"
    ))
}

fn quoted(name: &str) -> String {
    let name = clean::excerpt(name, MAX_NAME_CHARS);
    if name.contains(' ') { format!("\"{name}\"") } else { name }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::store::runner::run_lock::{HeldProject, RunLock};
    use crate::store::runner::snapshot::TaskRules;
    use serde_json::{Value, json};
    use std::fs;
    use std::io::Write;
    use std::process::Command;

    /// A project with a runner that has just begun an iteration on these stories.
    struct Guarded {
        _dir: tempfile::TempDir,
        world: World,
        project: Project,
        source: TaskSource,
        runner: Option<HeldProject>,
    }

    impl Guarded {
        fn on(stories: Option<Value>) -> Guarded {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonicalize().unwrap();
            let project = Project { root: base.join("project") };
            fs::create_dir_all(project.work_dir()).unwrap();
            let mut world = World::at(&project.root, &base.join("data"));
            world.run_id = Some("run-1".into());
            let mut runner = HeldProject::take(&world, &project).unwrap().unwrap();
            runner.publish(RunLock::of_this_process("run-1", world.now)).unwrap();
            let guarded =
                Guarded { _dir: dir, world, project, source: TaskSource::default(), runner: Some(runner) };
            if let Some(stories) = stories {
                guarded.stories(stories);
            }
            guarded.begin(false);
            guarded
        }

        fn begin(&self, skip_review: bool) -> Option<TaskListSnapshot> {
            let rules = TaskRules { run_id: "run-1".into(), skip_review, review_cap: 2 };
            snapshot::take(&self.world, &self.project, &self.source, &rules).unwrap()
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.project.root.join(name), text).unwrap();
        }

        #[allow(clippy::needless_pass_by_value, reason = "made where it is used")]
        fn stories(&self, stories: Value) {
            self.write("ralph/tasks.json", &json!({"userStories": stories}).to_string());
        }

        fn read(&self) -> Value {
            serde_json::from_slice(&fs::read(self.project.work_dir().join("tasks.json")).unwrap()).unwrap()
        }

        fn check(&self) -> Vec<String> {
            runner_check(&self.world, &self.project).unwrap()
        }

        /// Makes the project a repository; reports it if git is missing.
        fn in_git(&self) -> bool {
            if Command::new("git").arg("--version").output().is_err() {
                let thread = std::thread::current();
                let line = format!("skipped: {}: git is not installed\n", thread.name().unwrap_or("a test"));
                // Not `eprintln!`: the test harness would swallow the line of a passing test.
                drop(std::io::stderr().write_all(line.as_bytes()));
                return false;
            }
            self.git(&["init", "-q"]);
            true
        }

        fn git(&self, args: &[&str]) {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
                .args(args)
                .current_dir(&self.project.root);
            let run = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
            assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
        }
    }

    #[test]
    fn a_broken_list_is_reported_by_story_and_field() {
        let guarded = Guarded::on(Some(json!([{"id": "US-1", "passes": false}])));
        assert_eq!(guarded.check(), [""; 0]);
        guarded.stories(json!([{"id": "US-1", "passes": "done"}]));
        assert_eq!(
            guarded.check(),
            ["ralph/tasks.json: story US-1: passes is \"done\"; expected true or false"]
        );
        guarded.write("ralph/tasks.json", "{\"userStories\": [");
        assert!(
            guarded.check()[0].starts_with("ralph/tasks.json is not valid JSON"),
            "{:?}",
            guarded.check()
        );
        fs::remove_file(guarded.project.work_dir().join("tasks.json")).unwrap();
        assert_eq!(guarded.check(), ["ralph/tasks.json is missing: restore it"]);
    }

    #[test]
    fn a_change_is_compared_with_the_snapshot() {
        let guarded = Guarded::on(Some(json!([{"id": "US-1", "passes": false}])));
        guarded.stories(json!([{"id": "US-1", "passes": true, "reviewStatus": "approved"}]));
        let problems = guarded.check();
        assert!(
            problems.len() == 1 && problems[0].contains("story US-1: reviewStatus changed from null"),
            "{problems:?}"
        );
        guarded.stories(json!([{"id": "US-1", "passes": true, "reviewStatus": "needs_review"}]));
        assert_eq!(guarded.check(), [""; 0]);
        assert_eq!(guarded.begin(false).unwrap().mode().name(), "review");
        guarded
            .stories(json!([{"id": "US-1", "passes": true, "reviewStatus": "approved", "reviewCount": 1}]));
        assert_eq!(guarded.check(), [""; 0]);
    }

    #[test]
    fn without_reviews_passing_is_enough() {
        let guarded =
            Guarded::on(Some(json!([{"id": "US-1", "passes": true}, {"id": "US-2", "passes": false}])));
        guarded.begin(true);
        guarded.stories(json!([{"id": "US-1", "passes": true}, {"id": "US-2", "passes": true}]));
        assert_eq!(guarded.check(), [""; 0]);
        guarded.begin(false);
        guarded.stories(json!([{"id": "US-1", "passes": true}, {"id": "US-2", "passes": false}]));
        assert!(guarded.check()[0].contains("story US-2 has no verdict"), "{:?}", guarded.check());
    }

    #[test]
    fn without_a_runner_or_a_list_nothing_is_held_up() {
        let mut guarded = Guarded::on(None);
        if !guarded.in_git() {
            return;
        }
        guarded.write("work.txt", "not committed");
        assert_eq!(guarded.check(), [""; 0], "no list");
        guarded.stories(json!("broken"));
        assert_eq!(guarded.check().len(), 2);
        guarded.world.run_id = Some("run-2".into());
        assert_eq!(guarded.check(), [""; 0], "another run");
        guarded.world.run_id = None;
        assert_eq!(guarded.check(), [""; 0], "no runner");
        guarded.world.run_id = Some("run-1".into());
        guarded.runner = None;
        assert_eq!(guarded.check(), [""; 0], "a runner that is gone");
    }

    #[test]
    fn a_snapshot_of_another_run_proves_nothing() {
        let guarded = Guarded::on(Some(json!([{"id": "US-1", "passes": false}])));
        let rules = TaskRules { run_id: "run-0".into(), ..TaskRules::default() };
        snapshot::take(&guarded.world, &guarded.project, &guarded.source, &rules).unwrap();
        guarded.stories(json!([{"id": "US-1", "passes": true, "reviewStatus": "approved"}]));
        assert_eq!(guarded.check(), [""; 0]);
        assert!(snapshot::load(&guarded.world, &guarded.project, "run-0").unwrap().is_some());
        snapshot::forget(&guarded.world, &guarded.project);
        assert!(snapshot::load(&guarded.world, &guarded.project, "run-0").unwrap().is_none());
    }

    #[test]
    fn at_the_cap_ralph_approves_and_the_agent_commits() {
        let story = |passes: bool, status: &str, count: u64| json!([{"id": "US-1", "passes": passes, "reviewStatus": status, "reviewCount": count, "reviewFeedback": "still wrong"}]);
        let guarded = Guarded::on(Some(story(true, "needs_review", 1)));
        if !guarded.in_git() {
            return;
        }
        guarded.stories(story(false, "changes_requested", 2));
        guarded.git(&["add", "ralph/tasks.json"]);
        guarded.git(&["commit", "-qm", "review"]);
        let problems = guarded.check();
        assert!(
            problems[0].contains("story US-1 reached the review cap (2), so Ralph approved it"),
            "{problems:?}"
        );
        assert!(problems[1].contains("not committed: ralph/tasks.json."), "{problems:?}");
        let story = guarded.read()["userStories"][0].clone();
        assert_eq!((&story["passes"], &story["reviewStatus"]), (&json!(true), &json!("approved")));
        assert_eq!(
            (&story["approvedAtCap"], &story["reviewFeedback"]),
            (&json!(true), &json!("still wrong"))
        );
        guarded.git(&["commit", "-qam", "cap"]);
        assert_eq!(guarded.check(), [""; 0]);
    }

    #[test]
    fn blocked_leaves_the_review_fields_as_they_were() {
        let guarded = Guarded::on(Some(
            json!([{"id": "US-1", "passes": true, "reviewStatus": "needs_review", "reviewCount": 1}]),
        ));
        let before = snapshot::load(&guarded.world, &guarded.project, "run-1").unwrap().unwrap();
        assert_eq!(restore(&guarded.project, &before, true, Stamp(0)).unwrap(), None);
        guarded.stories(
            json!([{"id": "US-1", "passes": true, "reviewStatus": "needs_review", "reviewCount": 2}]),
        );
        assert_eq!(
            restore(&guarded.project, &before, true, Stamp(0)).unwrap().as_deref(),
            Some("review fields restored: US-1")
        );
        let story = &guarded.read()["userStories"][0];
        assert_eq!((&story["reviewStatus"], &story["reviewCount"]), (&json!("needs_review"), &json!(1)));
    }

    #[test]
    fn nothing_may_be_left_uncommitted_but_what_ralph_writes() {
        let guarded = Guarded::on(Some(json!([{"id": "US-1", "passes": false}])));
        assert_eq!(guarded.check(), [""; 0], "outside git");
        if !guarded.in_git() {
            return;
        }
        guarded.git(&["add", "ralph/tasks.json"]);
        guarded.git(&["commit", "-qm", "list"]);
        guarded.write("ralph/blocked.txt", "?");
        fs::create_dir_all(guarded.project.work_dir().join("logs")).unwrap();
        guarded.write("ralph/logs/summary.csv", "x");
        assert_eq!(guarded.check(), [""; 0], "our own files");
        for n in 1..=7 {
            guarded.write(&format!("file {n}.txt"), "x");
        }
        let told = guarded.check();
        assert!(
            told.len() == 1
                && told[0].contains("not committed: \"file 1.txt\",")
                && told[0].contains(" and 2 more."),
            "{told:?}"
        );
        guarded.git(&["add", "-A", "."]);
        guarded.git(&["commit", "-qm", "all"]);
        assert_eq!(guarded.check(), [""; 0]);
        guarded.write("file 1.txt", "changed");
        assert!(guarded.check()[0].contains("\"file 1.txt\"."), "{:?}", guarded.check());
    }

    #[test]
    fn a_checklist_keeps_its_open_items() {
        let mut guarded = Guarded::on(None);
        guarded.source = TaskSource::of_markdown("fix_plan.md".into());
        guarded.write("fix_plan.md", "- [ ] a\n- [ ] b\n");
        assert_eq!(guarded.begin(false).unwrap().mode().name(), "implement");
        guarded.write("fix_plan.md", "- [x] a\n- [ ] b\n- [ ] c\n");
        assert_eq!(guarded.check(), [""; 0]);
        guarded.write("fix_plan.md", "- [x] a\n");
        let told = guarded.check();
        assert!(
            told.len() == 1 && told[0].starts_with("fix_plan.md: the open item \"b\" is missing"),
            "{told:?}"
        );
        guarded.write("fix_plan.md", "All done.\n");
        assert!(guarded.check()[0].starts_with("fix_plan.md has no checklist item"), "{:?}", guarded.check());
        fs::remove_file(guarded.project.root.join("fix_plan.md")).unwrap();
        assert_eq!(guarded.check(), ["fix_plan.md is missing: restore it"]);
    }

    #[test]
    fn a_list_without_reviews_is_never_written_by_us() {
        let mut guarded = Guarded::on(None);
        guarded.source =
            TaskSource { file: "prd.json".into(), form: crate::core::tasks::TaskFormat::Stories };
        let text = "{\"userStories\":[{\"id\":\"a\",\"passes\":false},{\"id\":\"b\",\"passes\":false}]}";
        guarded.write("prd.json", text);
        let before = guarded.begin(false).unwrap();
        let both = text.replace("false", "true");
        guarded.write("prd.json", &both);
        let told = guarded.check();
        assert!(
            told.len() == 1 && told[0].contains("prd.json: stories a, b were marked as done in one"),
            "{told:?}"
        );
        assert_eq!(cap_reviews(&guarded.project, &before).unwrap(), [""; 0]);
        assert_eq!(restore(&guarded.project, &before, true, Stamp(0)).unwrap(), None);
        assert_eq!(fs::read_to_string(guarded.project.root.join("prd.json")).unwrap(), both);
    }
}

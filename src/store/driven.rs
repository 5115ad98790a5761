//! What an agent is held to while the runner drives it: a valid task list, legal changes of it, and nothing left
//! uncommitted. Without a runner, or without a task list, none of this is looked at.

use super::command::{self, Ended};
use super::file;
use super::project::{Project, fingerprint};
use super::snapshot::{self, Snapshot};
use super::world::World;
use super::{git, run_lock, state, tasks};
use crate::core::tasks::{Source, apply_review_cap, keep_review, transitions};
use anyhow::Result;
use std::time::Duration;

const LONGEST_LOOK: Duration = Duration::from_secs(60);
const MOST_NAMED: usize = 5;
/// Of everything below the project but what Ralph itself writes there. A constant: no name reaches the shell.
const STATUS: &str = concat!(
    "git -c core.fsmonitor=false --no-optional-locks status --porcelain --untracked-files=all -- . ",
    "\":(exclude).claude/ralph-state.*\" \":(exclude).claude/STOP_LOOP\" \":(exclude)ralph/logs\" ",
    "\":(exclude)ralph/run.lock\" \":(exclude)ralph/blocked.txt\" \":(exclude)ralph/decide.txt\" ",
    "\":(exclude)ralph/answered\"",
);

/// What the agent must mend before its turn may end, a sentence each. Empty where no runner drives, and where there
/// is no task list to work by.
pub fn runner_check(world: &World, project: &Project) -> Vec<String> {
    let Some(run_id) = world.run_id.as_deref().filter(|_| run_lock::drives(world, project)) else {
        return Vec::new();
    };
    let snapshot = snapshot::load(world, project, run_id);
    let source =
        snapshot.as_ref().map_or_else(|| source_of(project, run_id), |before| before.tasks.source.clone());
    let name = &source.file;
    let mut problems = match tasks::load(project, &source) {
        Err(faults) => faults,
        Ok(Some(now)) => snapshot
            .as_ref()
            .and_then(|before| transitions(&before.tasks, &now, before.mode()).err())
            .map(|problems| problems.iter().map(|problem| format!("{name}: {problem}")).collect())
            .unwrap_or_default(),
        Ok(None) if snapshot.is_some() => vec![format!("{name} is gone: put it back")],
        Ok(None) => return Vec::new(),
    };
    if problems.is_empty() {
        problems.extend(snapshot.iter().flat_map(|before| capped(project, before)));
    }
    problems.extend(uncommitted(project));
    problems
}

/// Where the run has its tasks, before the first of them are there.
fn source_of(project: &Project, run_id: &str) -> Source {
    let loops = state::peek(project).ok().flatten().map(|document| document.loops()).unwrap_or_default();
    loops.into_iter().find(|(_, lap)| lap.run_id == run_id).map(|(_, lap)| lap.tasks).unwrap_or_default()
}

/// At the cap Ralph approves in the reviewer's place; the agent only has to commit it.
fn capped(project: &Project, before: &Snapshot) -> Vec<String> {
    let cap = before.rules.review_cap;
    let approved = cap_reviews(project, before).unwrap_or_default();
    let told = |id: String| {
        format!(
            "{}: story {id} had its review {cap} of {cap}, so Ralph approved it and marked it: commit that",
            before.tasks.source.file
        )
    };
    approved.into_iter().map(told).collect()
}

/// Approves the stories that have been reviewed often enough, and returns their ids. For the runner too: an agent
/// without hooks passes no check.
pub fn cap_reviews(project: &Project, before: &Snapshot) -> Result<Vec<String>> {
    if before.rules.skip_review {
        return Ok(Vec::new());
    }
    let approved =
        tasks::edit(project, &before.tasks.source, |list| apply_review_cap(list, before.rules.review_cap))?;
    Ok(approved.unwrap_or_default())
}

/// After BLOCKED or DECIDE: puts the review fields back to what they were before the iteration, and returns the ids
/// of the stories that needed it.
pub fn put_reviews_back(project: &Project, before: &Snapshot) -> Result<Vec<String>> {
    let put_back = tasks::edit(project, &before.tasks.source, |list| keep_review(&before.tasks, list))?;
    Ok(put_back.unwrap_or_default())
}

/// How often this session has been held up before; counts one more.
pub fn times_held(world: &World, session: &str) -> u64 {
    let Ok(dir) = world.data_dir().map(|dir| dir.join("held")) else { return u64::MAX };
    let path = dir.join(format!("{:016x}", fingerprint(session.as_bytes())));
    let bytes = file::read_bounded(&path, 64).ok().flatten().unwrap_or_default();
    let before = String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0);
    // A count that cannot be kept would hold up for ever.
    let kept = file::create_dir(&dir)
        .and_then(|()| file::replace_quickly(&path, (before + 1).to_string().as_bytes()));
    if kept.is_ok() { before } else { u64::MAX }
}

/// Nothing of a run that is over is remembered.
pub fn forget_held(world: &World) {
    if let Ok(dir) = world.data_dir() {
        let _ = std::fs::remove_dir_all(dir.join("held"));
    }
}

/// Where git cannot be asked the agent is not held up for it.
fn uncommitted(project: &Project) -> Option<String> {
    git::dir(&project.root)?;
    let run = command::run(STATUS, &project.root, LONGEST_LOOK);
    if run.ended != Ended::Exit(0) || run.tail.is_empty() {
        return None;
    }
    // `XY name`, where the names are quoted by git; a list that was cut begins with an ellipsis.
    let names: Vec<&str> =
        run.tail.lines().filter_map(|line| line.get(3..)).filter(|name| !name.is_empty()).collect();
    let more = names.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = names[..names.len().min(MOST_NAMED)].join(", ");
    Some(format!(
        "not committed: {names}{more}. Note in ralph/progress.txt what you did, then commit everything that belongs to \
         this iteration, and remove or ignore the rest"
    ))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::store::snapshot::Rules;
    use serde_json::{Value, json};
    use std::fs;
    use std::io::Write;
    use std::process::Command;

    /// A project with a runner that has just begun an iteration on these stories.
    struct Driven {
        _dir: tempfile::TempDir,
        world: World,
        project: Project,
        source: Source,
    }

    impl Driven {
        fn on(stories: Option<Value>) -> Driven {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonicalize().unwrap();
            let project = Project { root: base.join("project") };
            fs::create_dir_all(project.work_dir()).unwrap();
            let mut world = World::at(&project.root, &base.join("data"));
            world.run_id = Some("run-1".into());
            let driven = Driven { _dir: dir, world, project, source: Source::default() };
            driven
                .write("ralph/run.lock", &json!({"pid": std::process::id(), "run_id": "run-1"}).to_string());
            if let Some(stories) = stories {
                driven.stories(stories);
            }
            driven.begin(false);
            driven
        }

        fn begin(&self, skip_review: bool) -> Option<Snapshot> {
            let rules = Rules { run_id: "run-1".into(), skip_review, review_cap: 2 };
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
            runner_check(&self.world, &self.project)
        }

        /// Makes the project a repository; says so where there is no git for that.
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
    fn a_broken_list_is_told_by_story_and_field() {
        let driven = Driven::on(Some(json!([{"id": "US-1", "passes": false}])));
        assert_eq!(driven.check(), [""; 0]);
        driven.stories(json!([{"id": "US-1", "passes": "done"}]));
        assert_eq!(driven.check(), ["ralph/tasks.json: story US-1: passes is \"done\", not true or false"]);
        driven.write("ralph/tasks.json", "{\"userStories\": [");
        assert!(driven.check()[0].starts_with("ralph/tasks.json is not valid JSON"), "{:?}", driven.check());
        fs::remove_file(driven.project.work_dir().join("tasks.json")).unwrap();
        assert_eq!(driven.check(), ["ralph/tasks.json is gone: put it back"]);
    }

    #[test]
    fn a_change_is_held_against_the_snapshot() {
        let driven = Driven::on(Some(json!([{"id": "US-1", "passes": false}])));
        driven.stories(json!([{"id": "US-1", "passes": true, "reviewStatus": "approved"}]));
        let problems = driven.check();
        assert!(
            problems.len() == 1 && problems[0].contains("story US-1: reviewStatus went from null"),
            "{problems:?}"
        );
        driven.stories(json!([{"id": "US-1", "passes": true, "reviewStatus": "needs_review"}]));
        assert_eq!(driven.check(), [""; 0]);
        assert_eq!(driven.begin(false).unwrap().mode().name(), "review");
        driven.stories(json!([{"id": "US-1", "passes": true, "reviewStatus": "approved", "reviewCount": 1}]));
        assert_eq!(driven.check(), [""; 0]);
    }

    #[test]
    fn without_reviews_passing_is_enough() {
        let driven =
            Driven::on(Some(json!([{"id": "US-1", "passes": true}, {"id": "US-2", "passes": false}])));
        driven.begin(true);
        driven.stories(json!([{"id": "US-1", "passes": true}, {"id": "US-2", "passes": true}]));
        assert_eq!(driven.check(), [""; 0]);
        driven.begin(false);
        driven.stories(json!([{"id": "US-1", "passes": true}, {"id": "US-2", "passes": false}]));
        assert!(driven.check()[0].contains("story US-2 has no verdict"), "{:?}", driven.check());
    }

    #[test]
    fn without_a_runner_or_a_list_nothing_is_held_up() {
        let mut driven = Driven::on(None);
        if !driven.in_git() {
            return;
        }
        driven.write("work.txt", "not committed");
        assert_eq!(driven.check(), [""; 0], "no list");
        driven.stories(json!("broken"));
        assert_eq!(driven.check().len(), 2);
        driven.world.run_id = Some("run-2".into());
        assert_eq!(driven.check(), [""; 0], "another run");
        driven.world.run_id = None;
        assert_eq!(driven.check(), [""; 0], "no runner");
        driven.world.run_id = Some("run-1".into());
        driven.write("ralph/run.lock", "{\"pid\": 0, \"run_id\": \"run-1\"}");
        assert_eq!(driven.check(), [""; 0], "a runner that is gone");
    }

    #[test]
    fn a_snapshot_of_another_run_proves_nothing() {
        let driven = Driven::on(Some(json!([{"id": "US-1", "passes": false}])));
        let rules = Rules { run_id: "run-0".into(), ..Rules::default() };
        snapshot::take(&driven.world, &driven.project, &driven.source, &rules).unwrap();
        driven.stories(json!([{"id": "US-1", "passes": true, "reviewStatus": "approved"}]));
        assert_eq!(driven.check(), [""; 0]);
        assert!(snapshot::load(&driven.world, &driven.project, "run-0").is_some());
        snapshot::forget(&driven.world, &driven.project);
        assert!(snapshot::load(&driven.world, &driven.project, "run-0").is_none());
    }

    #[test]
    fn at_the_cap_ralph_approves_and_the_agent_commits() {
        let story = |passes: bool, status: &str, count: u64| json!([{"id": "US-1", "passes": passes, "reviewStatus": status, "reviewCount": count, "reviewFeedback": "still wrong"}]);
        let driven = Driven::on(Some(story(true, "needs_review", 1)));
        if !driven.in_git() {
            return;
        }
        driven.stories(story(false, "changes_requested", 2));
        driven.git(&["add", "ralph/tasks.json"]);
        driven.git(&["commit", "-qm", "review"]);
        let problems = driven.check();
        assert!(
            problems[0].contains("story US-1 had its review 2 of 2, so Ralph approved it"),
            "{problems:?}"
        );
        assert!(problems[1].contains("not committed: ralph/tasks.json."), "{problems:?}");
        let story = driven.read()["userStories"][0].clone();
        assert_eq!((&story["passes"], &story["reviewStatus"]), (&json!(true), &json!("approved")));
        assert_eq!(
            (&story["approvedAtCap"], &story["reviewFeedback"]),
            (&json!(true), &json!("still wrong"))
        );
        driven.git(&["commit", "-qam", "cap"]);
        assert_eq!(driven.check(), [""; 0]);
    }

    #[test]
    fn blocked_leaves_the_review_fields_as_they_were() {
        let driven = Driven::on(Some(
            json!([{"id": "US-1", "passes": true, "reviewStatus": "needs_review", "reviewCount": 1}]),
        ));
        let before = snapshot::load(&driven.world, &driven.project, "run-1").unwrap();
        assert_eq!(put_reviews_back(&driven.project, &before).unwrap(), [""; 0]);
        driven.stories(
            json!([{"id": "US-1", "passes": true, "reviewStatus": "needs_review", "reviewCount": 2}]),
        );
        assert_eq!(put_reviews_back(&driven.project, &before).unwrap(), ["US-1"]);
        let story = &driven.read()["userStories"][0];
        assert_eq!((&story["reviewStatus"], &story["reviewCount"]), (&json!("needs_review"), &json!(1)));
    }

    #[test]
    fn nothing_may_be_left_uncommitted_but_what_ralph_writes() {
        let driven = Driven::on(Some(json!([{"id": "US-1", "passes": false}])));
        assert_eq!(driven.check(), [""; 0], "outside git");
        if !driven.in_git() {
            return;
        }
        driven.git(&["add", "ralph/tasks.json"]);
        driven.git(&["commit", "-qm", "list"]);
        driven.write("ralph/blocked.txt", "?");
        fs::create_dir_all(driven.project.work_dir().join("logs")).unwrap();
        driven.write("ralph/logs/summary.csv", "x");
        assert_eq!(driven.check(), [""; 0], "our own files");
        for n in 1..=7 {
            driven.write(&format!("file {n}.txt"), "x");
        }
        let told = driven.check();
        assert!(
            told.len() == 1
                && told[0].contains("not committed: \"file 1.txt\",")
                && told[0].contains(" and 2 more."),
            "{told:?}"
        );
        driven.git(&["add", "-A", "."]);
        driven.git(&["commit", "-qm", "all"]);
        assert_eq!(driven.check(), [""; 0]);
        driven.write("file 1.txt", "changed");
        assert!(driven.check()[0].contains("\"file 1.txt\"."), "{:?}", driven.check());
    }

    #[test]
    fn a_checklist_keeps_its_open_items() {
        let mut driven = Driven::on(None);
        driven.source = Source::of_markdown("fix_plan.md".into());
        driven.write("fix_plan.md", "- [ ] a\n- [ ] b\n");
        assert_eq!(driven.begin(false).unwrap().mode().name(), "implement");
        driven.write("fix_plan.md", "- [x] a\n- [ ] b\n- [ ] c\n");
        assert_eq!(driven.check(), [""; 0]);
        driven.write("fix_plan.md", "- [x] a\n");
        let told = driven.check();
        assert!(
            told.len() == 1 && told[0].starts_with("fix_plan.md: the open item \"b\" is gone"),
            "{told:?}"
        );
        driven.write("fix_plan.md", "All done.\n");
        assert!(
            driven.check()[0].starts_with("fix_plan.md has no item of a checklist"),
            "{:?}",
            driven.check()
        );
        fs::remove_file(driven.project.root.join("fix_plan.md")).unwrap();
        assert_eq!(driven.check(), ["fix_plan.md is gone: put it back"]);
    }

    #[test]
    fn a_list_without_reviews_is_never_written_by_us() {
        let mut driven = Driven::on(None);
        driven.source = Source { file: "prd.json".into(), form: crate::core::tasks::Form::Stories };
        let text = "{\"userStories\":[{\"id\":\"a\",\"passes\":false},{\"id\":\"b\",\"passes\":false}]}";
        driven.write("prd.json", text);
        let before = driven.begin(false).unwrap();
        let both = text.replace("false", "true");
        driven.write("prd.json", &both);
        let told = driven.check();
        assert!(
            told.len() == 1 && told[0].contains("prd.json: stories a, b were put forward in one"),
            "{told:?}"
        );
        assert_eq!(cap_reviews(&driven.project, &before).unwrap(), [""; 0]);
        assert_eq!(put_reviews_back(&driven.project, &before).unwrap(), [""; 0]);
        assert_eq!(fs::read_to_string(driven.project.root.join("prd.json")).unwrap(), both);
    }
}

//! `ralph archive` moves a finished run away, whole, and leaves a folder ready for the next.

use crate::env::{Env, HOUR, SESSION, mode, names_in};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

const HEADER: &str = "iteration,mode,duration_seconds,commit_hash,stories_complete,stories_total,stuck_count,timestamp,outcome,cost_usd,tokens,attempts,other_seconds";

/// A project after a run of two iterations.
fn ran() -> Env {
    let env = Env::named("shop");
    env.ralph(&["init", "--name", "Shop"]).ok();
    let stories = json!([
        {"id": "US-1", "title": "Basket", "passes": true, "reviewStatus": "approved", "reviewCount": 1},
        {"id": "US-2", "title": "Pay | refund", "passes": false, "reviewStatus": "changes_requested", "reviewCount": 2, "reviewFeedback": "Refunds are missing"},
    ]);
    let tasks = json!({"project": "Shop", "branchName": "ralph/shop", "description": "A shop", "userStories": stories});
    env.write("ralph/tasks.json", tasks.to_string())
        .write("ralph/prd.md", "# Shop\n")
        .write("ralph/progress.txt", "learned\n");
    env.write("ralph/prompt.md", "my own prompt")
        .write("ralph/decide.txt", "Which?\n")
        .write("ralph/notes.md", "mine");
    env.write("ralph/answered/decide-1.txt", "Done");
    let rows = "1,implement,120,abc,0,2,0,2026-11-16T07:00:00Z,,,,1,0\n2,review,60,,1,2,1,2026-11-16T07:02:00Z,,,,1,0\n";
    env.write("ralph/logs/summary.csv", format!("{HEADER}\n{rows}"))
        .write("ralph/logs/iteration-001.log", "one");
    env
}

#[test]
fn a_run_is_moved_with_a_summary_and_the_folder_is_ready_again() {
    let env = ran();
    let told = env.ralph(&["archive", "--label", "first try"]).ok();
    assert!(told.starts_with("Archived: ralph-archive/2026-11-16-first-try/summary.md\n"), "{told}");
    assert!(told.contains("The logs stay in ralph/logs/ (--include-logs"), "{told}");
    let place = "ralph-archive/2026-11-16-first-try";
    assert_eq!(env.list("ralph-archive"), ["2026-11-16-first-try"]);
    assert_eq!(
        env.list(place),
        ["answered", "decide.txt", "prd.md", "progress.txt", "prompt.md", "summary.md", "tasks.json"]
    );
    assert_eq!(env.read(&format!("{place}/progress.txt")), "learned\n");
    assert_eq!(env.read(&format!("{place}/answered/decide-1.txt")), "Done");

    assert_eq!(env.list("ralph"), ["logs", "notes.md", "prd.md", "progress.txt", "prompt.md", "tasks.json"]);
    assert_eq!(env.list("ralph/logs"), ["iteration-001.log", "summary.csv"]);
    assert_eq!(
        (env.read("ralph/prompt.md"), env.read("ralph/notes.md")),
        ("my own prompt".into(), "mine".into())
    );
    let fresh = Env::named("fresh");
    fresh.ralph(&["init", "--name", "Shop"]).ok();
    for name in ["ralph/tasks.json", "ralph/prd.md", "ralph/progress.txt"] {
        assert_eq!(env.read(name), fresh.read(name), "{name}");
    }
}

#[test]
fn the_summary_has_stories_iterations_and_outcome() {
    let env = ran();
    env.start("task", &["--ignore-open-questions"]);
    env.at(10).turn(SESSION, "x\n<promise>BLOCKED:no key</promise>").ended("blocked");
    env.at(60).ralph(&["archive"]).ok();
    let summary = env.read("ralph-archive/2026-11-16-shop/summary.md");
    for part in [
        "# Shop\n",
        "A shop",
        "| Archived | 2026-11-16 08:01 UTC |",
        "| Outcome | blocked: ",
        "no key",
        "| Iterations | 2 (implement 1, review 1), 3m in all, 1 without a commit |",
        "| Stories | 2: 1 passing, 1 approved |",
        "| US-1 | Basket | yes | approved | 1 |",
        "| US-2 | Pay \\| refund | no | changes requested | 2 |",
        "- US-2: Refunds are missing",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
}

#[test]
fn an_ending_from_before_the_run_is_not_its_outcome() {
    let env = ran();
    env.at(-3 * HOUR).start("task", &["--ignore-open-questions"]);
    env.at(-3 * HOUR + 10).turn(SESSION, "x\n<promise>BLOCKED:no key</promise>").ended("blocked");
    env.at(0).ralph(&["archive"]).ok();
    assert!(env.read("ralph-archive/2026-11-16-shop/summary.md").contains("| Outcome | not recorded |"));
}

#[test]
fn logs_are_kept_where_asked_for() {
    let env = ran();
    fs::set_permissions(
        env.path("ralph/logs/iteration-001.log"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let told = env.ralph(&["archive", "--include-logs"]).ok();
    assert!(!told.contains("logs"), "{told}");
    let logs = "ralph-archive/2026-11-16-shop/logs";
    assert_eq!(env.list(logs), ["iteration-001.log", "summary.csv"]);
    assert_eq!(mode(&env.path(&format!("{logs}/iteration-001.log"))), 0o600);
    assert_eq!(env.list("ralph/logs"), [""; 0]);
}

#[test]
fn logs_that_were_left_can_be_archived_later_and_a_new_run_keeps_them() {
    let env = ran();
    env.ralph(&["archive"]).ok();
    assert!(env.ralph(&["archive"]).fails(1).contains("nothing to archive"));
    env.ralph(&["archive", "--include-logs", "--label", "logs"]).ok();
    assert_eq!(env.list("ralph-archive/2026-11-16-logs/logs"), ["iteration-001.log", "summary.csv"]);
    assert_eq!(env.list("ralph/logs"), [""; 0]);

    let env = ran();
    env.ralph(&["archive"]).ok();
    env.write("ralph/progress.txt", "noted later");
    env.ralph(&["archive", "--label", "later"]).ok();
    let summary = env.read("ralph-archive/2026-11-16-later/summary.md");
    assert!(summary.contains("| Iterations | none recorded |"), "those of the earlier archive: {summary}");
    let run = env.run_with("promise COMPLETE", &["--no-tasks", "x"]).run();
    assert_eq!((run.code, env.rows().len()), (Some(0), 1), "{run:?}");
    let told = env.ralph(&["archive", "--label", "second"]).ok();
    assert!(told.contains("second/summary.md"), "a run that left only logs: {told}");
    let kept = env.list("ralph/logs").into_iter().find(|name| name.starts_with("until-")).unwrap();
    assert_eq!(env.list(&format!("ralph/logs/{kept}")), ["iteration-001.log", "summary.csv"]);
}

#[test]
fn a_label_cannot_leave_the_archive_folder() {
    for (label, expected) in
        [("../../up", "up"), ("/etc/x", "etc-x"), ("a\u{1b}[31m b\nc", "a-31m-b-c"), ("--x..", "x")]
    {
        let env = ran();
        env.ralph(&["archive", &format!("--label={label}")]).ok();
        assert_eq!(env.list("ralph-archive"), [format!("2026-11-16-{expected}")], "{label:?}");
        assert_eq!(names_in(&env.base), ["config", "data", "home", "shop"], "{label:?}");
    }
    let env = ran();
    assert!(env.ralph(&["archive", "--label", "../.."]).fails(64).contains("--label"));
    assert!(!env.exists("ralph-archive"));
}

#[test]
fn an_earlier_archive_is_never_written_over() {
    let env = ran();
    env.ralph(&["archive"]).ok();
    let first = env.read("ralph-archive/2026-11-16-shop/tasks.json");
    env.write("ralph/progress.txt", "the second run");
    env.ralph(&["archive"]).ok();
    assert_eq!(env.list("ralph-archive"), ["2026-11-16-shop", "2026-11-16-shop-2"]);
    assert_eq!(env.read("ralph-archive/2026-11-16-shop/tasks.json"), first);
    assert_eq!(env.read("ralph-archive/2026-11-16-shop-2/progress.txt"), "the second run");
}

#[test]
fn without_a_run_there_is_nothing_to_archive() {
    let env = Env::new();
    assert!(env.ralph(&["archive"]).fails(1).contains("nothing to archive"));
    env.ralph(&["init"]).ok();
    assert!(env.ralph(&["archive"]).fails(1).contains("nothing to archive"));
    assert!(!env.exists("ralph-archive"));
    let env = ran();
    env.ralph(&["archive"]).ok();
    assert!(env.ralph(&["archive"]).fails(1).contains("nothing to archive"), "a second time");
}

#[test]
fn an_active_run_is_not_archived() {
    let env = ran();
    let mut run = env.run_with("echo at work; sleep 600", &["--ignore-open-questions", "x"]).spawn();
    run.until("at work");
    let told = env.ralph(&["archive"]).fails(1);
    assert!(told.contains(&run.pid().to_string()) && told.contains("2026-11-16 08:00 UTC"), "{told}");
    assert!(!env.exists("ralph-archive") && env.read("ralph/progress.txt") == "learned\n");
    run.kill();
    env.ralph(&["stop"]).ok();
    env.ralph(&["archive"]).ok();
}

#[test]
fn a_loop_in_a_session_is_not_archived() {
    let env = ran();
    env.start("task", &["--ignore-open-questions"]);
    assert!(env.ralph(&["archive"]).fails(1).contains(SESSION));
    env.ralph(&["stop"]).ok();
    env.ralph(&["archive"]).ok();
}

#[test]
fn an_archive_that_was_interrupted_is_finished() {
    let env = ran();
    env.ralph(&["archive"]).ok();
    // As if it had been killed right after the archive was complete.
    let meta = env.path("ralph-archive/2026-11-16-shop/decide.txt");
    fs::copy(&meta, env.path("ralph/decide.txt")).unwrap();
    let modified = env.path("ralph/decide.txt").metadata().unwrap().modified().unwrap();
    let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    let list = json!({"project_name": "Shop", "entries": [{"path": "decide.txt", "length": 7, "modified": modified}]});
    env.write("ralph-archive/2026-11-16-shop/.not-yet-reset.json", list.to_string());
    env.write("ralph-archive/.partial-2026-11-16-other/tasks.json", "half a copy");
    let told = env.ralph(&["archive"]).ok();
    assert!(told.starts_with("Finished: ralph-archive/2026-11-16-shop/summary.md"), "{told}");
    assert!(!env.exists("ralph/decide.txt"));
    assert_eq!(env.list("ralph-archive"), ["2026-11-16-shop"]);
    assert!(!env.exists("ralph-archive/2026-11-16-shop/.not-yet-reset.json"));
}

#[test]
fn a_list_that_cannot_be_read_is_archived_anyway() {
    let env = ran();
    env.write("ralph/tasks.json", "{\"userStories\": [{\"id\": \"US-1\", \"passes\": 1}]}");
    env.ralph(&["archive"]).ok();
    let summary = env.read("ralph-archive/2026-11-16-shop/summary.md");
    assert!(summary.contains("story US-1: passes is 1; expected true or false"), "{summary}");
    assert!(env.read("ralph-archive/2026-11-16-shop/tasks.json").contains("US-1"));
}

#[test]
fn a_project_without_a_task_list_does_not_get_one() {
    let env = Env::new();
    env.write("ralph/prompt.md", "just go on").write("ralph/logs/iteration-001.log", "one");
    env.ralph(&["archive", "--include-logs"]).ok();
    assert_eq!(env.list("ralph"), ["logs", "prompt.md"]);
    assert_eq!(env.list("ralph-archive/2026-11-16-project"), ["logs", "prompt.md", "summary.md"]);
}

#[test]
fn nothing_is_moved_through_a_link_out_of_the_project() {
    for place in ["ralph-archive", "ralph/tasks.json", "ralph"] {
        let env = ran();
        let outside = env.base.join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "theirs").unwrap();
        let target = if place == "ralph/tasks.json" { outside.join("file") } else { outside.clone() };
        if place == "ralph" {
            fs::rename(env.path("ralph"), env.base.join("moved")).unwrap();
        }
        let _ = fs::remove_file(env.path(place));
        symlink(target, env.path(place)).unwrap();
        let run = env.ralph(&["archive"]);
        assert!(run.code != Some(0) && !run.stderr.is_empty(), "{place}: {run:?}");
        assert_eq!(names_in(&outside), ["file"], "{place}");
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "theirs", "{place}");
    }
}

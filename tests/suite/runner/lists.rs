//! Task lists of other tools in a run: a `prd.json` and Markdown checklists, read and ticked as they are.

use crate::agents::summary;
use crate::env::Env;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

/// A list as its tool writes it.
fn prd(passes: &[bool]) -> String {
    let story = |(at, passes): (usize, &bool)| {
        json!({"id": format!("US-00{}", at + 1), "title": format!("Title {}", at + 1), "description": "As a user, …",
               "acceptanceCriteria": ["Typecheck passes"], "priority": at + 1, "passes": passes, "notes": ""})
    };
    let stories: Vec<Value> = passes.iter().enumerate().map(story).collect();
    let list =
        json!({"project": "MyApp", "branchName": "ralph/x", "description": "d", "userStories": stories});
    format!("{}\n", serde_json::to_string_pretty(&list).unwrap())
}

/// Ticks the first open story by editing the text, as an agent does.
const TICK_STORY: &str = r#"work; sed -i '0,/"passes": false/s//"passes": true/' prd.json; echo "turn $n""#;
const DONE: &str = "promise COMPLETE";

fn column(env: &Env, at: usize) -> Vec<String> {
    env.rows().into_iter().map(|row| row[at].clone()).collect()
}

#[test]
fn a_prd_is_worked_through_and_ticked_in_its_own_format() {
    let env = Env::new();
    env.write("prd.json", prd(&[true, false, false]));
    let run = env.run_with(&format!("{TICK_STORY}; {DONE}"), &["build it"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("Ralph: prd.json: 1 of 3 stories pass; no review fields: implement only\n"),
        "{}",
        run.stdout
    );
    assert_eq!(env.read("prd.json"), prd(&[true, true, true]), "not a byte but the ticks");
    assert_eq!(
        (column(&env, 1), column(&env, 4), column(&env, 5)),
        (vec!["implement".to_owned(); 2], vec!["2".into(), "3".into()], vec!["3".into(), "3".into()])
    );
    assert_eq!(summary(&run, "Stories"), "3/3 complete");
    let prompt = env.prompt(1);
    for part in [
        "Mode of this iteration: implement. Story: US-002 (Title 2). 1 of 3 stories done.",
        "The stories are in prd.json.",
        "set its passes to true",
    ] {
        assert!(prompt.contains(part), "{part}\n{prompt}");
    }
    let prompt = env.prompt(2);
    assert!(prompt.contains("2 of 3 tasks in prd.json pass; open: US-003"), "completion rejected: {prompt}");
    assert!(!env.exists("ralph/tasks.json"));
}

#[test]
fn a_checklist_is_worked_through_and_ticked_in_its_own_format() {
    let env = Env::new();
    let list = "# Fix plan\r\n\r\n* [X] first\r\n* [ ] second\r\n  1. [ ] below it\r\n\r\n```\r\n- [ ] an example\r\n```\r\n";
    env.write("@fix_plan.md", list);
    let tick = "work; case $n in 1) sed -i 's/1. \\[ \\]/1. [x]/' @fix_plan.md;; 2) sed -i 's/\\* \\[ \\]/* [x]/' @fix_plan.md;; esac; echo $n";
    let run = env.run_with(&format!("{tick}; {DONE}"), &["--tasks", "@fix_plan.md"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.stdout.contains(
            "Ralph: @fix_plan.md: 1 of 3 items are ticked; a checklist has no reviews: implement only"
        ),
        "{}",
        run.stdout
    );
    assert_eq!((column(&env, 4), column(&env, 5)), (vec!["2".into(), "3".into()], vec!["3".to_owned(); 2]));
    let first = env.prompt(1);
    assert!(first.contains("Item: below it. 1 of 3 items done.") && first.contains("[ ] to [x]"), "{first}");
    assert!(first.contains("Work through the items of @fix_plan.md"), "a list needs no prompt: {first}");
    assert!(env.prompt(2).contains("Item: second."), "{}", env.prompt(2));
    assert!(env.prompt(2).contains("2 of 3 tasks in @fix_plan.md are ticked; open: second"));
    assert!(env.read("@fix_plan.md").contains("- [ ] an example"), "a fenced box is no task");
}

#[test]
fn other_lists_of_the_project_are_not_tasks() {
    let env = Env::new();
    for name in ["TODO.md", "PLAN.md", "tasks.md", "README.md", "docs/fix_plan.md"] {
        env.write(name, "- [ ] not for us\n");
    }
    env.write("prd.json", "{\"product\": \"a shop\", \"passes\": false}");
    let run = env.run_with(&format!("work; {DONE}"), &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let said = format!("{}{}", run.stdout, env.prompt(1));
    assert!(
        !said.contains("Mode of") && !said.contains("not for us") && !said.contains("prd.json"),
        "{said}"
    );
    assert_eq!((column(&env, 4), column(&env, 5)), (vec!["0".to_owned()], vec!["0".to_owned()]));
}

#[test]
fn a_plan_of_another_loop_is_mentioned_and_not_used() {
    let env = Env::new();
    env.write("fix_plan.md", "- [ ] a\n- [x] b\n");
    let run = env.run_with(&format!("work; {DONE}"), &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("Ralph: fix_plan.md has 1 open item; use it with --tasks fix_plan.md"),
        "{}",
        run.stdout
    );
    env.write("ralph/fix_plan.md", "- [ ] a\n");
    let run =
        env.run_with("work; sed -i 's/- \\[ \\]/- [x]/' ralph/fix_plan.md; promise COMPLETE", &["y"]).run();
    assert!(
        run.stdout.contains("Ralph: ralph/fix_plan.md: 0 of 1 items are ticked"),
        "in ralph/ it is used: {}",
        run.stdout
    );
}

#[test]
fn no_tasks_ignores_every_list() {
    let env = Env::new();
    env.write("prd.json", prd(&[false]));
    let run = env.run_with(&format!("work; {DONE}"), &["--no-tasks", "x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!env.prompt(1).contains("prd.json") && !run.stdout.contains("prd.json"), "{}", run.stdout);
    let said = env.run_with("work", &["--no-tasks", "--tasks", "prd.json", "x"]).run().fails(64);
    assert!(said.contains("--tasks"), "{said}");
}

#[test]
fn the_default_file_comes_first_and_others_are_mentioned() {
    let env = Env::new();
    env.write("prd.json", prd(&[false]));
    env.write(
        "ralph/tasks.json",
        json!({"userStories": [{"id": "T-1", "passes": true, "reviewStatus": "approved"}]}).to_string(),
    );
    let run = env.run_with(&format!("work; {DONE}"), &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    for part in [
        "ralph/tasks.json: 1 of 1 stories pass, 1 approved",
        "prd.json exists but is not used; use it with --tasks prd.json",
    ] {
        assert!(run.stdout.contains(part), "{part}\n{}", run.stdout);
    }
}

#[test]
fn a_list_with_review_fields_is_reviewed() {
    let env = Env::new();
    env.write(
        "prd.json",
        json!({"userStories": [{"id": "A", "passes": true, "reviewStatus": "needs_review"}]}).to_string(),
    );
    let run = env.run_with(&format!("work; {DONE}"), &["--max-iterations", "1", "x"]).run();
    assert_eq!((run.code, column(&env, 1)), (Some(1), vec!["review".to_owned()]), "{run:?}");
    assert!(run.stdout.contains("prd.json: 1 of 1 stories pass, 0 approved"), "{}", run.stdout);
    let strip = r#"work; echo '{"userStories": [{"id": "A", "passes": true}]}' > prd.json; promise COMPLETE"#;
    let run = env.run_with(strip, &["--max-iterations", "1", "y"]).run();
    assert_eq!(run.code, Some(1), "an agent cannot remove the reviews: {run:?}");
}

#[test]
fn a_resumed_run_keeps_its_list() {
    let env = Env::new();
    env.write("TODO.md", "- [ ] a\n- [ ] b\n");
    let tick = "work; [ $n = 2 ] && kill -9 $PPID && sleep 600; sed -i '0,/- \\[ \\]/s//- [x]/' TODO.md; promise COMPLETE";
    let mut killed = env.run_with(tick, &["--tasks", "TODO.md"]).spawn();
    killed.until("iteration 2 of");
    killed.wait();
    let run = env.run_with("work; sed -i 's/\\[ \\]/[x]/' TODO.md; promise COMPLETE", &[]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("Continuing run") && run.stdout.contains("TODO.md: 1 of 2 items are ticked"),
        "{}",
        run.stdout
    );
}

#[test]
fn the_status_shows_the_tasks() {
    let env = Env::new();
    env.write("prd.json", prd(&[true, false]));
    env.run_with("work; promise BLOCKED:help", &["x"]).run();
    let shown = env.shown("ralph-run");
    assert_eq!(shown["tasks"], json!({"file": "prd.json", "total": 2, "passing": 1, "unusable": null}));
    let text = env.ralph(&["status"]).ok();
    assert!(text.contains("1 of 2 stories pass · prd.json"), "{text}");
}

#[test]
fn an_unusable_list_is_refused_with_a_hint() {
    type Case<'a> = (&'a str, &'a str, &'a [u8], &'a [&'a str]);
    let cases: [Case; 9] = [
        ("broken JSON", "prd.json", b"{\"userStories\": [", &["prd.json is not valid JSON", "line 1"]),
        ("no stories", "prd.json", b"{}", &["prd.json: userStories is missing"]),
        (
            "a word for true",
            "prd.json",
            b"{\"userStories\": [{\"id\": \"a\", \"passes\": \"yes\"}]}",
            &["story a: passes is \"yes\""],
        ),
        (
            "the same id",
            "prd.json",
            b"{\"userStories\": [{\"id\": \"a\", \"passes\": true}, {\"id\": \"a\", \"passes\": true}]}",
            &["story a: id is used by two stories"],
        ),
        ("no boxes", "list.md", b"# Plan\n- a\n", &["list.md has no checklist item", "- [ ] what to do"]),
        ("nothing", "list.md", b"", &["list.md has no checklist item"]),
        ("binary", "list.md", b"- [ ] a\xff\xfe\0", &["list.md is not valid UTF-8 text"]),
        ("binary JSON", "prd.json", b"\x7fELF\0", &["prd.json is not valid JSON"]),
        ("outside", "../outside.md", b"- [ ] a\n", &["--tasks ../outside.md is outside the project"]),
    ];
    for (name, file, bytes, parts) in cases {
        let env = Env::new();
        env.write(file, bytes);
        let said = env.run_with("work", &["--tasks", file, "x"]).run().fails(70);
        assert!(
            parts.iter().all(|part| said.contains(part)) && said.contains("--no-tasks"),
            "{name}: {said}"
        );
        assert!(
            env.starts() == 0 && env.shown("ralph-run").is_null() && !env.exists("ralph/run.lock"),
            "{name}"
        );
    }
    let env = Env::new();
    env.write("prd.json", "{\"userStories\": [");
    assert!(
        env.run_with("work", &["x"]).run().fails(70).contains("prd.json is not valid JSON"),
        "found by default"
    );
    env.write("huge.md", "- [ ] item\n".repeat(900_000));
    assert!(env.run_with("work", &["--tasks", "huge.md", "x"]).run().fails(70).contains("too large"));
    std::fs::write(env.base.join("out.md"), "- [ ] a\n").unwrap();
    symlink(env.base.join("out.md"), env.path("link.md")).unwrap();
    assert!(
        env.run_with("work", &["--tasks", "link.md", "x"]).run().fails(70).contains("is a symbolic link")
    );
    assert!(
        env.run_with("work", &["--tasks", "gone.md", "x"]).run().fails(70).contains("gone.md: no such file")
    );
}

#[test]
fn an_empty_list_of_stories_allows_completion() {
    let env = Env::new();
    env.write("prd.json", "{\"userStories\": []}");
    let run = env.run_with(&format!("work; {DONE}"), &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("prd.json: no stories, so completion does not depend on it"),
        "{}",
        run.stdout
    );
    let said = env.run_with("work", &[]).run().fails(64);
    assert!(said.contains("nothing to run"), "and is nothing to work through: {said}");
}

#[test]
fn a_removed_or_emptied_list_is_not_done() {
    for (file, text, how) in [
        ("list.md", "- [ ] a\n", "rm list.md"),
        ("list.md", "- [ ] a\n", "echo 'All done.' > list.md"),
        ("prd.json", "{\"userStories\": [{\"id\": \"a\", \"passes\": false}]}", "rm prd.json"),
        ("prd.json", "{\"userStories\": [{\"id\": \"a\", \"passes\": false}]}", "echo '{' > prd.json"),
    ] {
        let env = Env::new();
        env.write(file, text);
        let run = env
            .run_with(
                &format!("work; {how}; echo $n; {DONE}"),
                &["--max-iterations", "2", "--tasks", file, "x"],
            )
            .run();
        assert_eq!(run.code, Some(1), "{how}: {run:?}");
        assert!(env.prompt(2).contains(file), "{how}: {}", env.prompt(2));
    }
}

#[test]
fn the_first_event_names_the_tasks() {
    let env = Env::new();
    env.write("prd.json", prd(&[true]));
    let text = env.run_with(&format!("work; {DONE}"), &["--json", "x"]).run().ok();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["tasks"], "prd.json: 1 of 1 stories pass; no review fields: implement only");
}

#[test]
fn an_archive_includes_a_list_in_ralph() {
    let env = Env::new();
    env.write("ralph/prd.json", prd(&[true, false]));
    env.run_with("work; promise BLOCKED:help", &["x"]).run();
    env.ralph(&["archive", "--label", "done"]).ok();
    assert!(!env.exists("ralph/prd.json"));
    let dir = "ralph-archive/2026-11-16-done";
    assert_eq!(env.read(&format!("{dir}/prd.json")), prd(&[true, false]));
    let summary = env.read(&format!("{dir}/summary.md"));
    assert!(
        summary.contains("| Stories | 2: 1 passing |") && summary.contains("- [ ] US-002 (Title 2)"),
        "{summary}"
    );
}

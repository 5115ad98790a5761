//! Task lists: what the agent reads about a change that is not allowed, and about a list that is no list.

use super::{Page, replace};
use crate::env::Env;
use ralph::core::tasks::{Mode, TaskList, checklist, transitions, validate};
use serde_json::{Value, json};

#[test]
fn rules() {
    let mut page = Page::new();
    let env = Env::new();
    changes(&mut page, &env);
    schema(&mut page, &env);
    page.check("tasks_rules");
}

/// `id passes status count feedback`, a story each.
fn stories(lines: &[&str]) -> TaskList {
    let story = |line: &&str| {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        let (id, passes, status) = (word(), word() == "yes", word());
        let status = if status == "-" || status.is_empty() { Value::Null } else { json!(status) };
        let count: u64 = word().parse().unwrap_or(0);
        json!({"id": id, "passes": passes, "reviewStatus": status, "reviewCount": count, "reviewFeedback": word()})
    };
    let stories: Vec<Value> = lines.iter().map(story).collect();
    validate(&json!({"userStories": stories})).expect("a valid list")
}

fn changes(page: &mut Page, env: &Env) {
    let open = "a no|b no|ok yes approved 1";
    let waiting = "a yes needs_review 1|b yes|c no|ok yes approved 1";
    let asked = "a no changes_requested 1 mend it|b no";
    for (mode, title, before, after) in [
        (Mode::Implement, "a story that was approved", open, "a yes approved|b no|ok yes approved 1"),
        (Mode::Implement, "a review that was counted", open, "a yes needs_review 1|b no|ok yes approved 1"),
        (
            Mode::Implement,
            "feedback that was written",
            open,
            "a yes needs_review 0 fine|b no|ok yes approved 1",
        ),
        (Mode::Implement, "two stories at once", open, "a yes|b no needs_review|ok yes approved 1"),
        (Mode::Implement, "a story that is gone", open, "a no|ok yes approved 1"),
        (Mode::Implement, "an approved story that was opened again", open, "a no|b no|ok no - 1"),
        (Mode::Review, "a new story that passes", "a yes", "a yes approved 1|n yes"),
        (
            Mode::Review,
            "a verdict that was not counted",
            waiting,
            "a yes approved 1|b yes|c no|ok yes approved 1",
        ),
        (Mode::Review, "no verdict", waiting, "a yes needs_review 2|b yes|c no|ok yes approved 1"),
        (
            Mode::Review,
            "two stories at once",
            waiting,
            "a yes approved 2|b yes approved 1|c no|ok yes approved 1",
        ),
        (
            Mode::Review,
            "a story that needed no review",
            waiting,
            "a yes needs_review 1|b yes|c yes approved 1|ok yes approved 1",
        ),
        (Mode::ReviewFix, "a story that was approved", asked, "a yes approved 1|b no"),
        (Mode::ReviewFix, "a status that was removed", asked, "a yes - 1|b no"),
        (Mode::ReviewFix, "a fix that was counted", asked, "a yes needs_review 2|b no"),
        (Mode::ReviewFix, "no answer to the feedback", asked, "a no changes_requested 1 less|b no"),
        (Mode::ReviewFix, "another story", asked, "a no changes_requested 1 mend it|b yes needs_review"),
    ] {
        let split = |lines: &str| stories(&lines.split('|').collect::<Vec<_>>());
        let problems = transitions(&split(before), &split(after), mode).expect_err(title);
        page.section(env, &format!("{mode}: {title}"), &problems.join("\n"));
    }
    let problems = transitions(&checklist("- [ ] parse\n- [x] print"), &checklist(""), Mode::Implement);
    page.section(env, "a checklist: an item that is gone", &problems.unwrap_err().join("\n"));
}

fn schema(page: &mut Page, env: &Env) {
    let of = |story: Value| json!({"userStories": [story]});
    for document in [
        json!([]),
        json!({}),
        json!({"userStories": 7}),
        json!({"userStories": [7]}),
        of(json!({"id": "x"})),
        of(json!({"id": "x", "passes": "yes"})),
        of(json!({"passes": true})),
        of(json!({"id": "x", "passes": true, "title": 1})),
        of(json!({"id": "x", "passes": true, "priority": "high"})),
        of(json!({"id": "x", "passes": true, "acceptanceCriteria": "all of it"})),
        of(json!({"id": "x", "passes": true, "reviewCount": -1})),
        of(json!({"id": "x", "passes": true, "reviewStatus": "fine"})),
        of(json!({"id": "x", "passes": false, "reviewStatus": "approved"})),
        of(json!({"id": "x", "passes": false, "reviewStatus": "changes_requested"})),
        of(json!({"id": "x", "passes": true, "dependsOn": ["y"]})),
        of(json!({"id": "x", "passes": true, "dependsOn": ["x"]})),
        json!({"userStories": [{"id": "x", "passes": true, "dependsOn": ["y"]}, {"id": "y", "passes": true, "dependsOn": ["x"]}]}),
        json!({"userStories": [{"id": "x", "passes": true}, {"id": "x", "passes": true}]}),
        json!({"project": 1, "verifyCommands": "make", "userStories": []}),
    ] {
        page.section(env, &document.to_string(), &validate(&document).unwrap_err().join("\n"));
    }
}

/// Returns a prompt from the task list on.
fn from_tasks(prompt: &str) -> &str {
    let at = prompt.find("---END_RALPH_STATUS---").unwrap();
    prompt[at..].split_once('\n').unwrap().1
}

#[test]
fn in_a_run() {
    let mut page = Page::new();
    let list = |stories: Value| json!({"project": "demo", "userStories": stories}).to_string();
    let story = |id: &str, passes: bool, review: Value| json!({"id": id, "title": format!("title of {id}"), "passes": passes, "reviewStatus": review, "priority": 1});
    let two = list(json!([story("US-1", true, json!("approved")), story("US-2", false, Value::Null)]));
    for (title, broken) in [
        ("a story is gone", list(json!([story("US-1", true, json!("approved"))]))),
        ("the list is no JSON", "{".into()),
        ("the list is invalid", list(json!([{"id": "US-1", "passes": "perhaps"}]))),
    ] {
        let env = Env::new();
        env.write("ralph/tasks.json", &two);
        std::fs::write(env.base.join("broken"), &broken).unwrap();
        let script = "work; [ $n = 1 ] && cp ../broken ralph/tasks.json; echo \"turn $n\"; promise COMPLETE";
        let run = env.run_with(script, &["--max-iterations", "2", "work through the stories"]).run();
        page.run(&env, title, &run);
        page.section(&env, &format!("{title}: what the agent reads"), from_tasks(&env.prompt(2)));
    }
    let env = Env::new();
    env.write("ralph/tasks.json", &two);
    let run = env.run_with("work; echo oops > ralph/tasks.json; promise BLOCKED:help", &["x"]).run();
    let restored: Vec<&str> = run.stdout.lines().filter(|line| line.contains("restored")).collect();
    let restored = replace(&restored.join("\n"), r"corrupt-[0-9A-Za-z.-]+", "corrupt-[time]");
    page.section(&env, "the list is put back", &restored);

    for (file, text) in [
        ("prd.json", "{\"userStories\": ["),
        ("prd.json", "{}"),
        ("list.md", "# Plan\n- a\n"),
        ("../outside.md", "- [ ] a\n"),
    ] {
        let env = Env::new();
        env.write(file, text);
        let title = format!("--tasks {file}: {}", text.trim().replace('\n', " / "));
        page.run(&env, &title, &env.run_with("work", &["--tasks", file, "x"]).run());
    }
    for (title, files, flags) in [
        (
            "other lists",
            &[
                ("prd.json", "{\"userStories\": [{\"id\": \"a\", \"passes\": false}]}"),
                ("fix_plan.md", "- [ ] a\n- [x] b\n"),
            ][..],
            &["--no-tasks"][..],
        ),
        ("a list that is not used", &[("fix_plan.md", "- [ ] a\n- [x] b\n")], &[]),
        (
            "a list of another tool",
            &[("prd.json", "{\"userStories\": [{\"id\": \"a\", \"passes\": false}]}")],
            &[],
        ),
        ("an empty list", &[("prd.json", "{\"userStories\": []}")], &[]),
        ("a checklist", &[("list.md", "- [ ] a\n- [x] b\n")], &["--tasks", "list.md"]),
    ] {
        let env = Env::new();
        for (file, text) in files {
            env.write(file, text);
        }
        let flags = [&["--max-iterations", "1"], flags, &["make the suite green"]].concat();
        let run = env.run_with("work", &flags).run();
        let start = run.stdout.split("── iteration 1").next().unwrap();
        page.section(&env, &format!("the start: {title}"), start);
        let lines = |text: String| {
            text.lines()
                .filter(|line| line.starts_with("Stories:") || line.contains(" · ") && line.contains("Tasks"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        page.section(
            &env,
            &format!("the end: {title}"),
            &format!("{}\n{}", lines(run.stdout), lines(env.ralph(&["status"]).ok())),
        );
    }
    page.check("tasks_run");
}

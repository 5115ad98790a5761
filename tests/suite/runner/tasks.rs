//! `ralph/tasks.json` in a run: modes, counts, accepted and refused changes.

use crate::agents::summary;
use crate::env::Env;
use serde_json::{Value, json};

fn story(id: &str, passes: bool, review: Value) -> Value {
    json!({"id": id, "title": format!("title of {id}"), "passes": passes, "reviewStatus": review, "priority": 1})
}

fn list(stories: &[Value]) -> String {
    json!({"project": "p", "userStories": stories}).to_string()
}

fn column(env: &Env, at: usize) -> Vec<String> {
    env.rows().into_iter().map(|row| row[at].clone()).collect()
}

/// Prepares the list that the agent writes in each turn.
fn write(env: &Env, states: &[&[Value]]) {
    for (n, stories) in states.iter().enumerate() {
        std::fs::write(env.base.join(format!("tasks-{}", n + 1)), list(stories)).unwrap();
    }
}

#[test]
fn modes_follow_the_list_and_reach_prompt_and_summary() {
    let env = Env::new();
    env.write("ralph/tasks.json", list(&[story("US-1", false, json!(null))]));
    let changes = json!({"id": "US-1", "title": "title of US-1", "passes": false, "priority": 1,
        "reviewStatus": "changes_requested", "reviewFeedback": "name it better", "reviewCount": 1});
    let again = json!({"id": "US-1", "title": "title of US-1", "passes": true, "priority": 1,
        "reviewStatus": "needs_review", "reviewFeedback": "name it better", "reviewCount": 1});
    let approved = json!({"id": "US-1", "title": "title of US-1", "passes": true, "priority": 1,
        "reviewStatus": "approved", "reviewFeedback": "", "reviewCount": 2});
    write(&env, &[&[story("US-1", true, json!("needs_review"))], &[changes], &[again], &[approved]]);
    let run = env.run_with("work; cp ../tasks-$n ralph/tasks.json; promise COMPLETE", &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(column(&env, 1), ["implement", "review", "review-fix", "review"]);
    assert_eq!(column(&env, 4), ["1", "0", "1", "1"], "stories that pass, approved or not");
    assert_eq!(column(&env, 5), ["1", "1", "1", "1"]);
    assert_eq!(summary(&run, "Stories"), "1/1 complete");
    for (n, mode) in [(1, "implement"), (2, "review"), (3, "review-fix"), (4, "review")] {
        let prompt = env.prompt(n);
        assert!(prompt.contains(&format!("Mode of this iteration: {mode}. Story: US-1")), "{n}: {prompt}");
    }
    assert!(run.stdout.contains("── iteration 3 of 50 · review-fix ──"), "{}", run.stdout);
}

#[test]
fn completion_needs_every_story_done() {
    let env = Env::new();
    env.write(
        "ralph/tasks.json",
        list(&[story("US-1", true, json!("approved")), story("US-2", false, json!(null))]),
    );
    let run = env.run_with("work; echo $n; promise COMPLETE", &["--max-iterations", "2", "x"]).run();
    assert_eq!(
        (run.code, env.outcomes()),
        (Some(1), vec!["rejected".into(), "max-iterations".into()]),
        "{run:?}"
    );
    assert!(env.prompt(2).contains("US-2"), "{}", env.prompt(2));
    assert_eq!((column(&env, 4), column(&env, 5)), (vec!["1".into(); 2], vec!["2".to_owned(); 2]));
}

#[test]
fn without_reviews_passing_is_enough() {
    let env = Env::new();
    env.write("ralph/tasks.json", list(&[story("US-1", false, json!(null))]));
    write(&env, &[&[story("US-1", true, json!(null))]]);
    let run =
        env.run_with("work; cp ../tasks-1 ralph/tasks.json; promise COMPLETE", &["--skip-review", "x"]).run();
    assert_eq!(
        (run.code, column(&env, 1), column(&env, 4)),
        (Some(0), vec!["implement".into()], vec!["1".to_owned()]),
        "{run:?}"
    );
}

#[test]
fn the_review_cap_approves() {
    let env = Env::new();
    let asked = |count: u64, status: &str| {
        json!({"id": "US-1", "title": "t", "passes": status != "changes_requested", "reviewStatus": status,
               "reviewCount": count, "reviewFeedback": "more"})
    };
    env.write("ralph/tasks.json", list(&[asked(1, "needs_review")]));
    write(&env, &[&[asked(2, "changes_requested")]]);
    let script = "work; [ $n = 1 ] && { cp ../tasks-1 ralph/tasks.json; exit; }; promise COMPLETE";
    let run = env.run_with(script, &["--review-cap", "2", "x"]).run();
    assert!(run.stdout.contains("Ralph: approved automatically at the review cap: US-1"), "{run:?}");
    assert!(env.read("ralph/tasks.json").contains("\"approved\""), "{}", env.read("ralph/tasks.json"));
}

#[test]
fn blocked_restores_the_reviews() {
    let env = Env::new();
    env.write("ralph/tasks.json", list(&[story("US-1", true, json!("needs_review"))]));
    write(&env, &[&[story("US-1", true, json!("approved"))]]);
    let run = env.run_with("work; cp ../tasks-1 ralph/tasks.json; promise BLOCKED:help", &["x"]).run();
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(env.read("ralph/tasks.json").contains("needs_review"), "{}", env.read("ralph/tasks.json"));
}

#[test]
fn an_invalid_list_is_refused_by_story_and_field() {
    for (text, parts) in [
        (list(&[json!({"id": "US-1", "passes": "yes"})]), &["US-1", "passes"][..]),
        (list(&[json!({"id": "US-1", "passes": true, "reviewStatus": "fine"})]), &["US-1", "reviewStatus"]),
        (list(&[json!({"id": "US-1", "dependsOn": ["US-9"]})]), &["US-1", "dependsOn", "US-9"]),
        ("{".into(), &["tasks.json", "JSON"]),
        ("{}".into(), &["userStories"]),
    ] {
        let env = Env::new();
        env.write("ralph/tasks.json", &text);
        let said = env.run_with("work", &["x"]).run().fails(70);
        assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
        assert!(env.starts() == 0 && env.shown("ralph-run").is_null() && !env.exists("ralph/run.lock"));
    }
}

#[test]
fn the_agent_must_fix_a_list_it_broke() {
    let env = Env::new();
    env.write("ralph/tasks.json", list(&[story("US-1", false, json!(null))]));
    write(&env, &[&[json!({"id": "US-1", "passes": "perhaps"})], &[story("US-1", true, json!("approved"))]]);
    let script = "work; cp ../tasks-$n ralph/tasks.json; promise COMPLETE";
    let run = env.run_with(script, &["--max-iterations", "2", "x"]).run();
    assert_eq!(env.starts(), 2, "{run:?}");
    let prompt = env.prompt(2);
    assert!(
        prompt.contains("Fix this first") && prompt.contains("US-1") && prompt.contains("passes"),
        "{prompt}"
    );
}

#[test]
fn without_the_file_tasks_are_not_mentioned() {
    let env = Env::new();
    let run = env.run_with("work; promise COMPLETE", &["x"]).run();
    let said = format!("{}{}", run.stdout, env.prompt(1));
    assert!(!said.contains("tasks.json") && !said.contains("Stories") && !said.contains("Mode of"), "{said}");
}

/// Runs an agent that breaks the rules in its first iteration and claims completion in every one. Returns the run and
/// what its agent was told in the second.
fn cheats(first: &str, then: &str) -> (Env, crate::env::Run) {
    let env = Env::new();
    env.write(
        "ralph/tasks.json",
        list(&[story("US-1", true, json!("approved")), story("US-2", false, json!(null))]),
    );
    std::fs::write(env.base.join("tasks-1"), first).unwrap();
    std::fs::write(env.base.join("tasks-2"), then).unwrap();
    let script = "work; [ -e ../tasks-$n ] && cp ../tasks-$n ralph/tasks.json; promise COMPLETE";
    let run = env.run_with(script, &["--max-iterations", "3", "x"]).run();
    (env, run)
}

#[test]
fn an_emptied_list_is_not_complete() {
    let empty = list(&[]);
    let (env, run) = cheats(&empty, &empty);
    assert_eq!((run.code, env.starts()), (Some(1), 3), "an iteration later it is still not: {run:?}");
    for n in [2, 3] {
        let prompt = env.prompt(n);
        assert!(prompt.contains("story US-1 is missing: restore it"), "{prompt}");
    }
    assert!(run.stdout.contains("ralph/tasks.json: story US-2 is missing: restore it"), "{run:?}");
}

#[test]
fn a_removed_story_is_not_complete_until_it_is_back() {
    let approved = [story("US-1", true, json!("approved")), story("US-2", true, json!("approved"))];
    let (_, run) = cheats(&list(&approved[..1]), &list(&approved[..1]));
    assert_eq!(run.code, Some(1), "{run:?}");
    // Back, but approved by the iteration that wrote it.
    let (env, run) = cheats(&list(&approved[..1]), &list(&approved));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(env.prompt(3).contains("only a review judges"), "{}", env.prompt(3));
}

#[test]
fn a_story_approved_by_the_iteration_that_wrote_it_is_not_complete() {
    let approved = [story("US-1", true, json!("approved")), story("US-2", true, json!("approved"))];
    let (env, run) = cheats(&list(&approved), &list(&approved));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(env.prompt(2).contains("only a review judges: set it to \"needs_review\""), "{}", env.prompt(2));
}

#[test]
fn a_list_that_is_gone_or_invalid_is_not_complete() {
    for broken in ["{", "[]", "{\"userStories\": 7}"] {
        let (_, run) = cheats(broken, broken);
        assert_eq!(run.code, Some(1), "{broken}: {run:?}");
    }
    let env = Env::new();
    env.write("ralph/tasks.json", list(&[story("US-1", false, json!(null))]));
    let run =
        env.run_with("work; rm -f ralph/tasks.json; promise COMPLETE", &["--max-iterations", "2", "x"]).run();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(env.prompt(2).contains("ralph/tasks.json is missing: restore it"), "{}", env.prompt(2));
}

#[test]
fn a_list_without_its_fault_is_accepted_again() {
    let put_forward = [story("US-1", true, json!("approved")), story("US-2", true, json!("needs_review"))];
    let (env, run) = cheats(&list(&put_forward[..1]), &list(&put_forward));
    assert_eq!(column(&env, 1), ["implement", "implement", "review"], "{run:?}");
    assert!(!env.prompt(3).contains("Fix this first"), "{}", env.prompt(3));
}

#[test]
fn blocked_and_decide_put_an_invalid_list_back() {
    for promise in ["BLOCKED:help", "DECIDE:which?"] {
        let env = Env::new();
        let before = list(&[story("US-1", false, json!(null))]);
        env.write("ralph/tasks.json", &before);
        let run =
            env.run_with(&format!("work; echo oops > ralph/tasks.json; promise {promise}"), &["x"]).run();
        assert_eq!(env.read("ralph/tasks.json"), before, "{run:?}");
        assert!(
            run.stdout.contains("ralph/tasks.json was restored to its state before the iteration"),
            "{run:?}"
        );
        let kept =
            env.list("ralph").into_iter().find(|name| name.starts_with("tasks.json.corrupt-")).unwrap();
        assert_eq!(env.read(&format!("ralph/{kept}")), "oops\n", "nothing is lost");
    }
}

#[test]
fn a_list_that_proved_completion_is_named() {
    let env = Env::new();
    env.write("ralph/tasks.json", list(&[story("US-1", true, json!("needs_review"))]));
    let approved = json!({"id": "US-1", "title": "title of US-1", "passes": true, "priority": 1,
        "reviewStatus": "approved", "reviewCount": 1});
    write(&env, &[&[approved]]);
    let run = env.run_with("work; cp ../tasks-1 ralph/tasks.json; promise COMPLETE", &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let reason = summary(&run, "Reason");
    assert_eq!(reason, "the agent promised COMPLETE, and 1 of 1 stories in ralph/tasks.json pass");
}

/// A list with an approved story and an open one.
fn two_stories() -> String {
    list(&[story("US-1", true, json!("approved")), story("US-2", false, json!(null))])
}

#[test]
fn a_list_that_was_emptied_is_not_complete_in_a_continued_run_either() {
    let env = Env::new();
    env.write("ralph/tasks.json", two_stories());
    std::fs::write(env.base.join("empty"), list(&[])).unwrap();
    let script = "work; [ $n = 1 ] && cp ../empty ralph/tasks.json; promise COMPLETE";
    assert_eq!(env.run_with(script, &["--max-iterations", "1", "x"]).run().code, Some(1));
    let run = env.run_with(script, &["--max-iterations", "3"]).run();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(env.prompt(2).contains("story US-1 is missing: restore it"), "{}", env.prompt(2));
    // A new run takes the list as the user left it.
    assert_eq!(env.run_with(script, &["y"]).run().code, Some(0));
}

#[test]
fn a_list_that_an_interrupted_or_repeated_attempt_emptied_is_not_complete() {
    let env = Env::new();
    env.write("ralph/tasks.json", two_stories());
    std::fs::write(env.base.join("empty"), list(&[])).unwrap();
    let script =
        "work; [ $n = 1 ] && { cp ../empty ralph/tasks.json; echo at 1; sleep 600; }; promise COMPLETE";
    let mut run = env.run_with(script, &["--max-iterations", "2", "x"]).spawn();
    run.until("at 1");
    run.signal(rustix::process::Signal::INT);
    assert_eq!(run.wait().code, Some(130));
    assert_eq!(env.run_with(script, &["--max-iterations", "3"]).run().code, Some(1), "interrupted");

    let env = Env::new();
    let clock = env.clock();
    env.write("ralph/tasks.json", two_stories());
    std::fs::write(env.base.join("empty"), list(&[])).unwrap();
    let script = "work; [ $n = 1 ] && { cp ../empty ralph/tasks.json; error 529; }; result '<promise>COMPLETE</promise>'";
    let mut run = env.run_claude(script, &["--max-iterations", "2", "x"]).spawn();
    run.until("continuing in ");
    clock.advance_until(1, "the second try", || run.times_printed("── iteration 1 of") == 2);
    assert_eq!(run.wait().code, Some(1), "repeated");
}

#[test]
fn what_the_user_changes_between_two_runs_is_allowed() {
    let env = Env::new();
    env.write("ralph/tasks.json", two_stories());
    assert_eq!(env.run_with("work", &["--max-iterations", "1", "x"]).run().code, Some(1));
    env.write("ralph/tasks.json", list(&[story("US-1", true, json!("approved"))]));
    assert_eq!(env.run_with("work; promise COMPLETE", &["--max-iterations", "2"]).run().code, Some(0));
}

#[test]
fn a_list_that_the_agent_brings_is_judged_too() {
    let env = Env::new();
    std::fs::write(env.base.join("own"), list(&[story("US-1", true, json!("approved"))])).unwrap();
    let script = "work; mkdir -p ralph; cp ../own ralph/tasks.json; promise COMPLETE";
    let run = env.run_with(script, &["--max-iterations", "2", "x"]).run();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(env.prompt(2).contains("only a review judges"), "{}", env.prompt(2));
}

#[test]
fn a_list_that_is_broken_at_a_limit_is_put_back_so_that_the_run_can_continue() {
    let env = Env::new();
    env.write("ralph/tasks.json", two_stories());
    let run = env.run_with("work; echo oops > ralph/tasks.json", &["--max-iterations", "1", "x"]).run();
    assert_eq!((run.code, env.read("ralph/tasks.json")), (Some(1), two_stories()), "{run:?}");
    assert_eq!(env.run_with("work", &["--max-iterations", "2"]).run().code, Some(1));
}

#[test]
fn many_problems_are_counted() {
    let env = Env::new();
    let stories: Vec<Value> = (0..300).map(|n| story(&format!("US-{n}"), false, json!(null))).collect();
    env.write("ralph/tasks.json", list(&stories));
    std::fs::write(env.base.join("empty"), list(&[])).unwrap();
    let run = env.run_with("work; cp ../empty ralph/tasks.json", &["--max-iterations", "2", "x"]).run();
    assert!(env.prompt(2).len() < 10_000 && env.prompt(2).contains("290 more problems"), "{}", env.prompt(2));
    assert!(run.stdout.lines().count() < 60, "{run:?}");
}

#[test]
fn a_run_without_its_list_can_complete() {
    let env = Env::new();
    env.write("ralph/tasks.json", two_stories());
    let mut run = env.run_with("work; echo at 1; sleep 600", &["x"]).spawn();
    run.until("at 1");
    run.kill();
    let run = env.run_with("work; promise COMPLETE", &["--no-tasks"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
}

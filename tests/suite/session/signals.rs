//! Signals in a session: they count where the agent meant them, and one that does not count is answered.

use crate::env::{Env, HOUR, SESSION};

const TAG: &str = "<promise>COMPLETE</promise>";

fn block(fields: &str) -> String {
    format!("---RALPH_STATUS---\n{fields}\n---END_RALPH_STATUS---")
}

#[test]
fn a_tag_counts_beside_a_status_block_and_with_markdown_around_it() {
    let status = block("STATUS: COMPLETE");
    for message in [
        format!("All green.\n{status}\n{TAG}"),
        format!("All green.\n{TAG}\n\n{status}\n"),
        format!("All green.\n\n**{TAG}**"),
        format!("All green.\n`{TAG}`\n{status}"),
    ] {
        let env = Env::new();
        env.start("task", &[]);
        env.at(10).turn(SESSION, &message).ended("complete");
    }
}

#[test]
fn blocked_and_decide_may_span_lines() {
    for (word, file, outcome) in [("BLOCKED", "blocked.txt", "blocked"), ("DECIDE", "decide.txt", "decide")] {
        let env = Env::new();
        env.start("task", &[]);
        let message = format!("I looked.\n<promise>{word}:the staging key\nis missing\n</promise>");
        env.at(10).turn(SESSION, &message).ended(outcome);
        assert!(env.read(&format!("ralph/{file}")).contains("the staging key is missing"));
    }
}

#[test]
fn a_signal_that_does_not_count_is_answered_in_the_turns_line_and_in_the_prompt() {
    for (message, why) in [
        (format!("It works. {TAG}"), "the promise tag is not alone on its line"),
        (format!("{TAG}\nWhat next?"), "the promise tag is not at the end of the message"),
        (format!("```\n{TAG}\n```"), "the promise tag is in a code block"),
        (format!("> {TAG}"), "the promise tag is in a quotation"),
        ("<promise>COMPLETE".into(), "the promise tag is not closed"),
        ("<promise>DONE</promise>".into(), "the promise tag says \"DONE\" instead of \"COMPLETE\""),
        ("<promise>BLOCKED:</promise>".into(), "the promise tag has no reason"),
        (
            format!("All tasks are complete.\n{}", block("EXIT_SIGNAL: true")),
            "EXIT_SIGNAL: true needs at least 2 completion phrases in the message, found 1",
        ),
        (block("STATUS: COMPLETE"), "STATUS: COMPLETE alone does not end the loop"),
    ] {
        let env = Env::new();
        env.start("task", &[]);
        let answer = env.at(10).turn(SESSION, &message);
        let prompt = answer.continues();
        assert!(prompt.contains("Signal ignored: ") && prompt.contains(why), "{message}: {prompt}");
        let line = answer.message.as_deref().unwrap();
        assert!(line.contains("signal ignored: ") && line.contains(why), "{message}: {line}");
        let next = env.at(20).turn(SESSION, "On it.");
        assert!(!next.continues().contains("ignored"), "told once: {next:?}");
    }
}

#[test]
fn the_text_of_a_tag_reaches_no_terminal_raw_and_at_no_length() {
    let env = Env::new();
    env.start("task", &[]);
    let answer = env.turn(SESSION, &format!("<promise>\u{9b}31m{}</promise>", "DONE ".repeat(9_000)));
    let line = answer.message.as_deref().unwrap();
    assert!(line.contains("signal ignored") && line.len() < 300 && !line.contains('\u{9b}'), "{line}");
    assert!(answer.continues().chars().count() < 600);
}

#[test]
fn a_recommendation_is_repeated_where_the_agent_may_have_lost_it() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).session_start(SESSION, "compact").run();
    let answer = env.at(20).turn(SESSION, &block("RECOMMENDATION: write the parser next"));
    assert!(!answer.continues().contains("parser"), "the agent has just said it: {answer:?}");
    let context = env.at(30).session_start(SESSION, "compact").run().context.expect("the whole task");
    assert!(context.contains("write the parser next") && context.contains("the agent's words"), "{context}");
}

#[test]
fn talk_of_completion_beside_empty_commits_trips_the_breaker() {
    let talk = |n: i64| format!("Looked at part {n} once more. All tasks are complete.");
    let commit = |env: &Env, n: i64| {
        env.write(".git/refs/heads/main", format!("{n:040x}"));
    };
    let env = Env::git();
    commit(&env, 0);
    env.start("task", &[]);
    for turn in 1..5 {
        commit(&env, turn);
        env.at(turn * 10).turn(SESSION, &talk(turn)).continues();
    }
    commit(&env, 5);
    let told = env.at(50).turn(SESSION, &talk(5));
    assert!(told.ended("circuit").contains("mention completion without the signal"), "{told:?}");

    let env = Env::git();
    commit(&env, 0);
    env.start("task", &[]);
    for turn in 1..9 {
        commit(&env, turn);
        env.write("src/a.rs", turn.to_string());
        env.at(turn * 10).turn(SESSION, &talk(turn)).continues();
    }
}

#[test]
fn status_shows_the_status_block_the_output_and_the_counters() {
    let env = Env::new();
    env.start("task", &[]);
    let fields = "STATUS: IN_PROGRESS\nTASKS_COMPLETED_THIS_LOOP: 0\nFILES_MODIFIED: 0\nTESTS_STATUS: NOT_RUN\n\
                  WORK_TYPE: TESTING\nEXIT_SIGNAL: false\nRECOMMENDATION: write the \u{9b}31mparser next";
    let message = block(fields);
    env.at(10).turn(SESSION, &message).continues();
    let shown = env.shown(SESSION);
    assert_eq!(
        shown["status_block"],
        serde_json::json!({
            "status": "IN_PROGRESS", "tasks_completed": 0, "files_modified": 0, "tests_status": "NOT_RUN",
            "work_type": "TESTING", "exit_signal": false, "recommendation": "write the 31mparser next",
        })
    );
    assert_eq!(shown["output_characters"], message.chars().count());
    assert_eq!((&shown["stuck_count"], &shown["circuit"]["counters"]["test_only"]), (&1.into(), &1.into()));
    let page = env.at(HOUR).ralph(&["status"]).ok();
    for part in [
        "in progress · tasks 0 · files 0 · tests not run · testing · exit",
        "write the 31mparser next",
        &format!("{} characters in the last message", message.chars().count()),
        "tests only 1/3",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn an_exit_signal_beside_two_statements_is_a_claim() {
    let said = "All tasks complete. Project ready for review.";
    for message in [
        format!("{said}\n\n{}", block("EXIT_SIGNAL: true")),
        format!("{}\n{said}", block("STATUS: COMPLETE\nEXIT_SIGNAL: true")),
        format!("{}\n\n**{said}**", block("EXIT_SIGNAL: true\nRECOMMENDATION: none")),
    ] {
        let env = Env::new();
        env.start("task", &[]);
        env.at(10).turn(SESSION, &message).ended("complete");
    }
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, &format!("{said}\n{}", block("EXIT_SIGNAL: false"))).continues();
    let env = Env::new();
    env.start("task", &["--verify", "false"]);
    let answer = env.at(10).turn(SESSION, &format!("{said}\n{}", block("EXIT_SIGNAL: true")));
    assert!(answer.message.as_deref().unwrap().contains("completion rejected"), "{answer:?}");
}

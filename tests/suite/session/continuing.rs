//! How a turn continues: by context where the client says that it takes that, else by a block.

use crate::env::{Answer, DONE, Env, HOUR, MINUTE, SESSION};

const NEW: &str = "claude-code_2-1-325_harness";

/// A loop whose agent has read its whole task, in a client that calls itself so.
fn started(client: Option<&str>) -> Env {
    let env = Env::without_breaker();
    env.types(SESSION, "start", "make the suite green");
    if let Some(client) = client {
        env.var("AI_AGENT", client);
    }
    env
}

#[test]
fn the_clients_version_decides_how_a_turn_continues_and_the_text_is_the_same() {
    let by_block = started(None).at(60).turn(SESSION, "On it.");
    let text = by_block.continues();
    assert_eq!(by_block.context, None, "nothing beside it");
    for client in [
        "claude-code_2-1-162_harness",
        "claude-code_2-0-999_harness",
        "claude-code_1-9-999_harness",
        "claude-code_2-1_harness",
        "claude-code_unknown_harness",
        "another-agent_2-1-325_harness",
        "2.1.325",
        "",
    ] {
        assert_eq!(started(Some(client)).at(60).turn(SESSION, "On it."), by_block, "{client}");
    }
    for client in [
        "claude-code_2-1-163_harness",
        NEW,
        "claude-code_2-2-0_harness",
        "claude-code_3-0-0_harness",
        "claude-code_2-1-163",
    ] {
        let answer = started(Some(client)).at(60).turn(SESSION, "On it.");
        let expected = Answer {
            block: None,
            message: by_block.message.clone(),
            context: Some(text.into()),
            permission: None,
        };
        assert_eq!(answer, expected, "{client}");
    }
}

#[test]
fn the_line_and_the_prompt_have_one_counter() {
    let env = started(Some(NEW));
    for turn in 1..4 {
        let answer = env.at(turn * 60).turn(SESSION, "On it.");
        let (line, prompt) = (answer.message.unwrap(), answer.context.unwrap());
        assert!(line.starts_with(&format!("Ralph {turn}/50 · ")) && !line.contains('\n'), "{line}");
        assert!(
            prompt.starts_with(&format!("Ralph: {turn} of 50 iterations done, runtime {turn}m")),
            "{prompt}"
        );
        assert_eq!(prompt.matches("50").count(), 1, "{prompt}");
        assert_eq!(prompt.lines().count(), 2, "the position and how to signal: {prompt}");
    }
}

#[test]
fn an_agent_that_may_have_lost_its_task_reads_everything_once() {
    let texts = [None, Some(NEW)].map(|client| {
        let env = Env::without_breaker();
        env.start("make the suite green, all of it", &[]);
        env.guidance(&["forbid", "pushing"]).ok();
        client.map(|client| env.var("AI_AGENT", client));
        let answer = env.at(60).turn(SESSION, "On it.");
        let again = env.at(120).turn(SESSION, "Still.");
        assert!(again.block.or(again.context).is_some_and(|text| !text.contains("You are in a Ralph loop")));
        match client {
            None => format!("{}\n\n{}", answer.continues(), answer.context.as_ref().unwrap()),
            Some(_) => {
                assert_eq!(answer.block, None);
                answer.context.unwrap()
            }
        }
    });
    assert_eq!(texts[0], texts[1], "the text is the same");
    let text = &texts[0];
    for once in
        ["iterations done", "FORBIDDEN", "- pushing", "You are in a Ralph loop", "STATUS: IN_PROGRESS"]
    {
        assert_eq!(text.matches(once).count(), 1, "{once}: {text}");
    }
    assert!(text.ends_with("Task:\n\nmake the suite green, all of it"), "{text}");
}

#[test]
fn a_text_that_would_not_arrive_whole_as_context_is_a_block() {
    for client in [None, Some(NEW)] {
        let env = Env::without_breaker();
        let task = format!("begin {} end", "x ".repeat(6_000));
        env.call(crate::env::Program::Ralph)
            .args(&["start", "--session", SESSION, "-"])
            .stdin(task.clone())
            .run()
            .ok();
        client.map(|client| env.var("AI_AGENT", client));
        let answer = env.at(60).turn(SESSION, "On it.");
        assert!(answer.continues().contains(&task), "whole");
        assert_eq!(answer.context, None);
        let next = env.at(120).turn(SESSION, "On it.");
        assert_eq!(next.block.is_some(), client.is_none(), "an ordinary turn is short again: {next:?}");
    }
    let env = started(Some(NEW));
    let output = "printf '%04000d\\n%.0s' 1 2 3; false";
    env.start("another", &["--replace", "--verify", output]);
    let answer = env.at(60).turn(SESSION, DONE);
    assert!(answer.context.unwrap().contains("Completion rejected"), "the output is cut, so it fits");
    assert_eq!(answer.block, None);
}

#[test]
fn what_ends_or_waits_has_no_context() {
    let env = started(Some(NEW));
    let waits = env.at(60).stop(SESSION).says("Building.").background("a build").run();
    assert!(waits.allows().contains("waiting for background work"));
    assert_eq!(waits.context, None);
    let answer = env.at(120).turn(SESSION, DONE);
    answer.ended("complete");
    assert_eq!(answer.context, None);
    env.at(180).turn(SESSION, "x").silent();
}

#[test]
fn idle_turns_end_before_the_clients_own_limit_also_by_context() {
    let env = started(Some(NEW));
    let transcript = env.transcript();
    for turn in 1..5 {
        transcript.context(turn * 10).text(turn * 10 + 5, &format!("Hm {turn}."));
        let answer = env.at(turn * 10 + 6).stop(SESSION).with(&transcript).says(&format!("Hm {turn}.")).run();
        assert!(answer.context.is_some(), "{turn}: {answer:?}");
    }
    transcript.context(60).text(65, "Hm 5.");
    let answer = env.at(66).stop(SESSION).with(&transcript).says("Hm 5.").run();
    assert!(answer.ended("stuck").contains("without a tool call"), "{answer:?}");
}

#[test]
fn a_long_answer_to_a_context_is_work() {
    let env = started(Some(NEW));
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").call(2, "t").result(4, "t").text(5, "On it.");
    env.at(6).stop(SESSION).with(&transcript).prompt_id("p").says("On it.").run();
    // The transcript lags behind: it shows what was sent, and not the answer yet.
    transcript.context(7);
    let event = env.at(HOUR + 1).stop(SESSION).with(&transcript).prompt_id("p");
    event.says("Thought for an hour.").run();
    let runtime = env.record(SESSION)["accumulated_runtime_seconds"].as_f64().unwrap();
    assert!(runtime > (59 * MINUTE) as f64, "{runtime}");
}

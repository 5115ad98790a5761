//! Iterations that fail or are denied their tools: what is shown, and when the run ends for it.

use crate::agents::summary;
use crate::env::{Env, Program, Run, SESSION, write_program};
use serde_json::{Value, json};
use std::fs;

/// An error of the client in a result, as the real one prints it, and its exit code.
fn error_result(words: &str, code: u8) -> String {
    let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": words});
    format!("printf '%s\\n' '{result}'; exit {code}")
}

/// A turn in which calls of these tools were denied.
fn denied(tools: &[&str]) -> String {
    let denials: Vec<Value> = tools.iter().map(|tool| json!({"tool_name": tool, "tool_input": {}})).collect();
    let result = json!({"type": "result", "is_error": false, "result": "I was not allowed to.", "permission_denials": denials});
    format!("printf '%s\\n' '{result}'; exit")
}

fn last_line_of_iteration(run: &Run, iteration: u32) -> &str {
    let beginning = format!("── iteration {iteration} ");
    let line = run.stdout.lines().rfind(|line| line.starts_with(&beginning) && !line.contains(" of "));
    line.unwrap_or_else(|| panic!("{run:?}"))
}

#[test]
fn a_failed_iteration_shows_the_agents_last_error_line_and_where_its_log_is() {
    let script = "echo 'Looking around.'; echo 'error: no route to the model' >&2; exit 3";
    let env = Env::new();
    let run = env.run_with(script, &["--max-iterations", "1", "x"]).run();
    let end = "exit code 3 · error: no route to the model · log: ralph/logs/iteration-001.log";
    let line = last_line_of_iteration(&run, 1);
    assert!(line.starts_with("── iteration 1 max-iterations · ") && line.ends_with(end), "{line}");
    let reason = "1 of 1 iterations done; last error: error: no route to the model";
    assert_eq!(summary(&run, "Reason"), reason);
    assert_eq!(env.history()[0]["reason"], reason);
    let shown = env.shown("ralph-run");
    assert_eq!(
        (&shown["reason"], &shown["last_error"]),
        (&reason.into(), &"error: no route to the model".into())
    );
    assert!(env.ralph(&["status"]).ok().contains("error: no route to the model"));
    let history = env.ralph(&["history"]).ok();
    let words: Vec<&str> = history.split_whitespace().collect();
    assert!(words.join(" ").contains("last error: error: no route to the model"), "{history}");

    let env = Env::new();
    let run = env.run_with(script, &["--json", "--max-iterations", "1", "x"]).run();
    let event = run.stdout.lines().find(|line| line.contains("iteration_ended")).unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    assert_eq!(event["error"], "error: no route to the model");
    assert_eq!(event["log"], "ralph/logs/iteration-001.log");
}

#[test]
fn an_error_result_is_a_failed_iteration_also_with_exit_0_and_the_same_one_three_times_ends_the_run() {
    for code in [0, 1] {
        let env = Env::git();
        env.write(".git/refs/heads/main", "a".repeat(40));
        let words = "Prompt is too long";
        let run = env.run_claude(&error_result(words, code), &["x"]).run();
        assert_eq!(
            (run.code, env.outcomes()),
            (Some(70), vec!["failed".into(), "failed".into(), "error".into()]),
            "{run:?}"
        );
        assert!(
            last_line_of_iteration(&run, 1)
                .ends_with(" · Prompt is too long · log: ralph/logs/iteration-001.log")
        );
        let reason = "same error 3 times in a row: Prompt is too long";
        assert_eq!((summary(&run, "Reason"), &env.history()[0]["reason"]), (reason, &reason.into()));
        assert_eq!(
            (&env.shown("ralph-run")["outcome"], &env.shown("ralph-run")["reason"]),
            (&"error".into(), &reason.into())
        );
        assert_eq!(env.shown("ralph-run")["circuit"]["state"], "ok", "the breaker has nothing to do with it");
    }
}

#[test]
fn a_bad_option_is_what_the_client_says_of_it() {
    let env = Env::new();
    let script = "echo \"error: unknown option '--frob'\" >&2; exit 1";
    let run = env.run_claude(script, &["--claude-arg=--frob", "x"]).run();
    assert_eq!((run.code, env.starts()), (Some(70), 3), "{run:?}");
    assert_eq!(summary(&run, "Reason"), "same error 3 times in a row: unknown option '--frob'");
}

#[test]
fn an_agent_that_gets_on_or_fails_otherwise_each_time_is_not_ended_for_its_errors() {
    let env = Env::git();
    let run =
        env.run_with("work; commit; echo 'error: flaky' >&2; exit 1", &["--max-iterations", "5", "x"]).run();
    assert_eq!((run.code, env.starts()), (Some(1), 5), "{run:?}");
    let env = Env::new();
    let script = "case $n in 1|3) w=one;; *) w=two;; esac; echo \"error: $w\" >&2; exit 1";
    let run = env.run_with(script, &["--max-stuck", "0", "--max-iterations", "4", "x"]).run();
    assert!(run.code != Some(70) && env.starts() > 2, "{run:?}");
}

#[test]
fn denied_tools_are_named_with_the_flags_that_allow_them_and_three_times_block_the_run() {
    let env = Env::git();
    env.write(".git/refs/heads/main", "a".repeat(40));
    let run = env.run_claude(&denied(&["Write", "Bash", "Write"]), &["x"]).run();
    assert_eq!(
        (run.code, env.outcomes()),
        (Some(2), vec!["denied".into(), "denied".into(), "blocked".into()]),
        "{run:?}"
    );
    let flags = "--permission-mode acceptEdits --allowed-tools Bash";
    let told = format!("Ralph: Claude Code denied Write and Bash; to allow them: {flags}");
    assert_eq!(run.stdout.matches(&told).count(), 1, "told after the first: {run:?}");
    assert!(run.stdout.find(&told) < run.stdout.find("── iteration 2 of "), "{run:?}");
    assert!(last_line_of_iteration(&run, 2).contains(" · denied: Write, Bash"), "{run:?}");
    let reason =
        format!("Claude Code denied Write and Bash in 3 iterations in a row; to allow them: {flags}");
    assert_eq!(
        (summary(&run, "Reason"), &env.history()[0]["reason"]),
        (reason.as_str(), &reason.as_str().into())
    );
    assert!(env.read("ralph/blocked.txt").contains(&reason));
    assert_eq!(env.shown("ralph-run")["circuit"]["state"], "ok");
}

#[test]
fn a_run_that_was_denied_tools_continues_with_the_flags_it_names() {
    let env = Env::new();
    let script = format!(
        "[ $n -lt 4 ] && {{ {}; }}; work; result '<promise>COMPLETE</promise>'",
        denied(&["Write", "Bash"])
    );
    let run = env.run_claude(&script, &["--allowed-tools", "WebFetch", "x"]).run();
    let flags =
        ["--allowed-tools", "WebFetch", "--permission-mode", "acceptEdits", "--allowed-tools", "Bash"];
    let next = format!("ralph run {}", flags.join(" "));
    assert_eq!((run.code, summary(&run, "Next")), (Some(2), next.as_str()), "{run:?}");
    let status = env.ralph(&["status"]).ok();
    let words: Vec<&str> = status.split_whitespace().collect();
    assert!(words.join(" ").contains(&format!("Next {next} Iterations")), "{status}");

    let run = env.call(Program::Ralph).args(&["run"]).args(&flags).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let told = "ralph/blocked.txt still exists: \"Claude Code denied Write and Bash in 3 iterations in a row";
    assert!(run.stdout.contains(told) && !run.stdout.contains("earlier run"), "{run:?}");
    let prompt = env.prompt(4);
    assert!(prompt.contains("ralph/blocked.txt says:\n## Blocked (from iteration 3"), "{prompt}");
    assert!(!prompt.contains("agent wrote") && !prompt.contains("earlier run"), "{prompt}");
    let args = std::fs::read_to_string(env.base.join("args")).unwrap();
    assert!(args.lines().last().unwrap().contains("WebFetch,Bash"), "{args}");
}

#[test]
fn tools_without_a_name_get_general_advice() {
    let env = Env::new();
    let run = env.run_claude(&denied(&[""]), &["x"]).run();
    let advice = "--permission-mode MODE or --allowed-tools TOOL";
    assert!(summary(&run, "Reason").ends_with(&format!("to allow it: {advice}")), "{run:?}");
    assert_eq!(summary(&run, "Next"), format!("ralph run {advice}"));
}

#[test]
fn a_text_agent_that_fails_with_words_on_stdout_is_quoted() {
    let env = Env::new();
    let run = env.run_with("echo 'Prompt is too long'; exit 1", &["x"]).run();
    assert_eq!(summary(&run, "Reason"), "same error 3 times in a row: Prompt is too long");
}

#[test]
fn an_agent_that_completes_without_the_tools_it_was_denied_is_complete() {
    let env = Env::new();
    let done = denied(&["WebFetch"]).replace("I was not allowed to.", "<promise>COMPLETE</promise>");
    let script = format!("[ $n = 3 ] && {{ {done}; }}; {}", denied(&["WebFetch"]));
    let run = env.run_claude(&script, &["x"]).run();
    assert_eq!(
        (run.code, env.outcomes()),
        (Some(0), vec!["denied".into(), "denied".into(), "complete".into()]),
        "{run:?}"
    );
}

#[test]
fn a_stock_client_is_told_of_before_the_first_iteration() {
    const NOTE: &str = "Ralph: in permission mode default, Claude Code denies edits and commands that would need your \
                        approval; to allow them: --permission-mode acceptEdits --allowed-tools Bash";
    let notes = |settings: &str, flags: &[&str]| {
        let env = Env::new();
        env.write(".claude/settings.json", settings);
        let run =
            env.run_claude("work; result '<promise>COMPLETE</promise>'", &[flags, &["x"]].concat()).run();
        assert_eq!(run.code, Some(0), "{run:?}");
        let start = run.stdout.split("── iteration 1").next().unwrap();
        start.lines().filter(|line| line.contains("permission mode")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(notes("{}", &[]), [NOTE]);
    assert_eq!(notes("{}", &["--claude-arg=--verbose"]), [NOTE]);
    let denies = "denies edits and commands that would need your approval; to allow them";
    let plan = NOTE.replace("mode default", "mode plan").replace(denies, "cannot edit files; to allow edits");
    assert_eq!(notes("{}", &["--permission-mode", "plan"]), [plan]);
    let none: [&str; 0] = [];
    for flags in [
        &["--permission-mode", "acceptEdits"][..],
        &["--allowed-tools", "Bash"],
        &["--claude-arg=--dangerously-skip-permissions"],
    ] {
        assert_eq!(notes("{}", flags), none, "{flags:?}");
    }
    assert_eq!(notes(r#"{"permissions": {"defaultMode": "acceptEdits"}}"#, &[]), none);
    assert_eq!(notes(r#"{"permissions": {"allow": ["Edit", "Bash(git *)"]}}"#, &[]), none);
    let other = Env::new();
    let run = other.run_with("work; promise COMPLETE", &["x"]).run();
    assert!(!run.stdout.contains("permission mode"), "another agent has no such modes: {run:?}");
}

#[test]
fn a_start_in_a_session_tells_of_a_mode_in_which_nothing_may_be_edited() {
    let types = |env: &Env, mode: Value| {
        let event = env
            .event(Program::SessionStartHook, SESSION, "UserPromptExpansion")
            .field("permission_mode", mode);
        let event = event.field("command_name", "ralph:start").field("command_args", "make it");
        event.run().message.unwrap()
    };
    for (mode, told) in [
        (json!("default"), Some("Note: in permission mode default, edits and commands that no rule allows")),
        (json!("plan"), Some("Note: in permission mode plan the agent cannot edit files; Shift+Tab")),
        (json!("auto"), None),
        (json!("acceptEdits"), None),
        (Value::Null, None),
    ] {
        let said = types(&Env::new(), mode.clone());
        assert_eq!(said.contains("permission mode"), told.is_some(), "{mode}: {said}");
        assert!(told.is_none_or(|told| said.contains(told)), "{mode}: {said}");
    }
    let env = Env::new();
    env.write(".claude/settings.local.json", r#"{"permissions": {"allow": ["Edit"]}}"#);
    assert!(!types(&env, json!("default")).contains("permission mode"));
}

#[test]
fn the_agent_is_not_told_that_it_runs_inside_a_session() {
    let env = Env::new();
    let script = "work; echo \"inside: ${CLAUDECODE-no}\"; promise COMPLETE";
    let run = env.run_with(script, &["x"]).var("CLAUDECODE", "1").run();
    assert!(run.stdout.contains("inside: no"), "{run:?}");
}

#[test]
fn half_a_character_in_a_result_loses_nothing() {
    let env = Env::new();
    let script = "work; result 'half \\ud83d of it\\n\\n<promise>COMPLETE</promise>'";
    let run = env.run_claude(script, &["x"]).run();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["complete".to_owned()]), "{run:?}");
}

/// A text agent that fails with these words, on stderr or stdout.
fn fails_with(words: &str, to: &str) -> String {
    format!("echo 'I read the code.'; printf '%s\\n' '{words}' {to}; exit 1")
}

#[test]
fn the_usage_limit_of_any_agent_is_seen_on_either_stream() {
    let limit = "ERROR: You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at 5:12 PM.";
    for to in ["", ">&2"] {
        let env = Env::new();
        env.var("TZ", "America/New_York");
        let run = env.run_with(&fails_with(limit, to), &["--on-limit", "stop", "x"]).run();
        assert_eq!((run.code, env.starts()), (Some(5), 1), "{run:?}");
        let reason = summary(&run, "Reason");
        assert!(
            reason.starts_with("usage limit reached, resets at 2026-11-16 22:12 UTC")
                && reason.ends_with(limit),
            "{reason}"
        );
    }
    let env = Env::new();
    let prose = "I wrote down what the client says:\nYou’ve hit your usage limit. Try again later.";
    let run = env
        .run_with(
            &format!("work; printf '%s\\n' '{prose}'; exit 0"),
            &["--on-limit", "stop", "--max-iterations", "1", "x"],
        )
        .run();
    assert_eq!(
        (run.code, env.outcomes()),
        (Some(1), vec!["max-iterations".to_owned()]),
        "it did not fail: {run:?}"
    );
}

#[test]
fn the_throttle_of_any_agent_is_waited_for() {
    for (words, reason) in [
        (
            "exceeded retry limit, last status: 429 Too Many Requests, request id: 9bd5",
            "the API limits requests (429)",
        ),
        (
            "API Error: 529 Overloaded. This is a server-side issue, usually temporary",
            "the API is overloaded (529)",
        ),
    ] {
        let env = Env::new();
        let script = format!("[ $n = 1 ] && {{ {}; }}; work; promise COMPLETE", fails_with(words, ">&2"));
        let (mut run, mut keyboard) = env.run_with(&script, &["--json", "x"]).spawn_typed();
        let wait: Value = serde_json::from_str(&run.until(r#""event":"waiting""#)).unwrap();
        assert_eq!((&wait["reason"], &wait["until"]), (&reason.into(), &Value::Null), "{words}");
        assert!(wait["seconds"].as_u64().unwrap() <= 10, "{wait}");
        std::io::Write::write_all(&mut keyboard, b"\n").unwrap();
        let run = run.wait();
        assert_eq!((run.code, env.outcomes()), (Some(0), vec!["complete".to_owned()]), "{run:?}");
    }
}

#[test]
fn an_agent_without_login_or_quota_ends_the_run_at_once_in_its_own_words() {
    for words in ["Not logged in · Please run /login", "Quota exceeded. Check your plan and billing details."]
    {
        let env = Env::new();
        let run = env.run_with(&fails_with(words, ">&2"), &["x"]).run();
        assert_eq!((run.code, env.starts()), (Some(70), 1), "{run:?}");
        assert!(summary(&run, "Reason").ends_with(words), "{run:?}");
        assert!(last_line_of_iteration(&run, 1).contains(words), "{run:?}");
    }
}

#[test]
fn a_docker_that_is_down_is_not_a_missing_container() {
    let said = |script: &str| {
        let env = Env::new();
        let bin = env.base.join("bin");
        fs::create_dir_all(&bin).unwrap();
        write_program(&bin.join("docker"), &format!("#!/bin/sh\n{script}\n"));
        env.var("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
        env.ralph(&["run", "--container", "box", "x"]).fails(69)
    };
    let down =
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";
    let told = said(&format!("echo '{down}' >&2; exit 1"));
    assert!(
        told.contains(&format!("docker does not work: {down}")) && told.contains("hint: start Docker"),
        "{told}"
    );
    for missing in ["Error: No such object: box", "Error response from daemon: No such container: box"] {
        let told = said(&format!("echo '{missing}' >&2; exit 1"));
        assert!(told.contains("there is no container box"), "{told}");
    }
}

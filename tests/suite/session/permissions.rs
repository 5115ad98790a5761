//! Permission prompts of a loop: open for the user for a while, then denied with words that the agent can use. Only a rule
//! of the user's allows a call.

use super::activity::{alive, client_says, process};
use crate::env::{Access, Answer, Clock, Env, Event, FileEvents, Program, Running, SESSION, wait_until};
use crate::notify::posts;
use crate::webhook::Webhook;
use serde_json::{Value, json};
use std::process::Command;

const FILE: &str = ".claude/ralph-config.json";

/// A world in the terminal's interface, with a clock that stands still.
fn interactive() -> (Env, Clock) {
    let env = Env::without_breaker();
    env.var("CLAUDE_CODE_ENTRYPOINT", "cli");
    let clock = env.clock();
    (env, clock)
}

fn asks<'e>(env: &'e Env, tool: &str, input: Value) -> Event<'e> {
    env.event(Program::StopHook, SESSION, "PermissionRequest")
        .field("tool_name", tool)
        .field("tool_input", input)
}

fn runs<'e>(env: &'e Env, command: &str) -> Event<'e> {
    asks(env, "Bash", json!({"command": command, "description": "d"}))
}

fn dialog_opens(env: &Env) {
    client_says(env, &alive(), json!({"status": "waiting", "waitingFor": "permission prompt"}));
}

/// Starts the hook and returns once the loop is noted to wait.
fn prompted(env: &Env, event: Event) -> Running {
    dialog_opens(env);
    let hook = event.call().spawn();
    wait_until("the wait is noted", || env.record(SESSION)["session"]["waiting"].is_object());
    hook
}

/// Lets time pass until the hook has answered.
fn unanswered(clock: &Clock, mut hook: Running) -> Answer {
    clock.advance_until(30, "the hook answers", || hook.has_ended());
    hook.wait().answer()
}

fn events(env: &Env) -> Vec<Value> {
    let run_id = env.record(SESSION)["run_id"].as_str().unwrap().to_owned();
    let text = std::fs::read_to_string(env.data().join(format!("runs/{run_id}/events.jsonl"))).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn decisions(env: &Env) -> Vec<Value> {
    let all = events(env).into_iter();
    all.filter(|event| event["event"] == "permission").map(|event| event["decision"].clone()).collect()
}

#[test]
fn a_prompt_that_the_user_does_not_answer_is_denied_and_the_agent_told_what_to_do() {
    let (env, clock) = interactive();
    env.start("task", &[]);
    let mut hook = prompted(&env, runs(&env, "npm publish"));
    let shown = env.shown(SESSION);
    assert_eq!((&shown["activity"], &shown["waiting"]["for"]), (&json!("waiting"), &json!("permission")));
    assert_eq!(shown["waiting"]["what"], "Bash(npm publish)");
    assert!(shown["waiting"]["until"].is_string(), "{shown}");
    let status = env.ralph(&["status"]).ok();
    assert!(status.contains("waiting: permission: Bash(npm publish), 5m left"), "{status}");
    assert!(status.contains("answer it in Claude Code"), "{status}");
    clock.advance(299);
    clock.wait_until_seen();
    assert!(!hook.has_ended(), "the user has five minutes");
    let answer = unanswered(&clock, hook);
    assert!(answer.denied().contains("Bash(npm publish) is denied: no answer within 5m"), "{answer:?}");
    assert!(answer.denied().contains("Continue without it"), "{answer:?}");
    let told = answer.message.unwrap();
    assert!(told.contains("to allow it: --allow-tool 'Bash(npm publish)'"), "{told}");
    assert!(env.record(SESSION)["session"]["waiting"].is_null());
    assert_eq!(decisions(&env), ["denied"]);
    let logs = env.ralph(&["logs"]).ok();
    assert!(logs.contains("denied: Bash(npm publish): no answer within 5m"), "{logs}");
    env.turn(SESSION, "I continue without it.").continues();
}

#[test]
fn the_users_answer_in_the_dialog_ends_the_wait_at_once() {
    let (env, _clock) = interactive();
    env.start("task", &[]);
    for status in ["busy", "idle", "shell"] {
        let hook = prompted(&env, runs(&env, "make"));
        client_says(&env, &alive(), json!({"status": status}));
        hook.wait().answer().silent();
        assert!(env.record(SESSION)["session"]["waiting"].is_null(), "{status}");
    }
    assert_eq!(decisions(&env), ["answered"; 3]);
    assert!(env.record(SESSION)["session"]["denials"].is_null());
}

/// Two prompts can follow each other faster than the first hook looks.
#[test]
fn a_later_prompt_or_the_end_of_the_turn_shows_that_the_earlier_one_was_answered() {
    let (env, clock) = interactive();
    env.start("task", &[]);
    let first = prompted(&env, runs(&env, "one"));
    let second = runs(&env, "two").call().spawn();
    first.wait().answer().silent();
    wait_until("the second is noted", || env.shown(SESSION)["waiting"]["what"] == "Bash(two)");
    assert!(unanswered(&clock, second).denied().contains("Bash(two)"));
    let third = prompted(&env, runs(&env, "three"));
    env.turn(SESSION, "done with three").continues();
    third.wait().answer().silent();
}

#[test]
fn a_loop_that_is_stopped_or_paused_leaves_the_dialog_to_the_user() {
    for command in [&["stop", "--session", SESSION][..], &["pause", "--session", SESSION], &["stop", "--all"]]
    {
        let (env, _clock) = interactive();
        env.start("task", &[]);
        let hook = prompted(&env, runs(&env, "make"));
        env.ralph(command).ok();
        if command.contains(&"--all") {
            env.write(".claude/STOP_LOOP", "");
        }
        hook.wait().answer().silent();
    }
}

#[test]
fn a_client_that_is_gone_ends_the_wait() {
    let (env, _clock) = interactive();
    env.start("task", &[]);
    let hook = prompted(&env, runs(&env, "make"));
    let mut gone = Command::new("true").spawn().unwrap();
    let entry = process(gone.id());
    gone.wait().unwrap();
    std::fs::remove_dir_all(env.base.join("home/.claude/sessions")).unwrap();
    client_says(&env, &entry, json!({"status": "waiting"}));
    hook.wait().answer().silent();
}

#[test]
fn a_hook_that_is_killed_while_it_waits_leaves_nothing_half_done() {
    let (env, _clock) = interactive();
    env.start("task", &[]);
    prompted(&env, runs(&env, "make")).kill();
    client_says(&env, &alive(), json!({"status": "busy"}));
    assert_eq!(env.shown(SESSION)["activity"], "working", "the client knows that the dialog is closed");
    env.turn(SESSION, "I go on.").continues();
    assert!(env.record(SESSION)["session"]["waiting"].is_null());
    assert_eq!(env.shown(SESSION)["iteration"], 1);
    assert_eq!(decisions(&env), [json!(null); 0]);
}

#[test]
fn without_a_loop_or_a_person_or_a_wait_the_prompt_is_left_to_the_client() {
    let (env, _clock) = interactive();
    let before = env.snapshot();
    runs(&env, "make").run().silent();
    assert_eq!(env.snapshot(), before, "a session without a loop writes nothing");
    env.start("task", &[]);
    runs(&env, "make").field("session_id", "another").run().silent();
    env.without("CLAUDE_CODE_ENTRYPOINT");
    runs(&env, "make").run().silent();
    env.var("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
    runs(&env, "make").run().silent();
    env.var("CLAUDE_CODE_ENTRYPOINT", "cli");
    env.ralph(&["stop", "--session", SESSION]).ok();
    runs(&env, "make").run().silent();
    env.ralph(&["config", "permission.wait_minutes", "0"]).ok();
    env.start("task", &[]);
    runs(&env, "make").run().silent();
    assert!(env.record(SESSION)["session"]["waiting"].is_null());
}

#[test]
fn only_what_the_users_rule_says_is_allowed() {
    let env = Env::without_breaker();
    let told = env.start("task", &["--allow-tool", "Bash(cargo test:*)", "--allow-tool=Edit"]);
    assert!(
        told.contains("Allowed without asking: Bash(cargo test:*)\nAllowed without asking: Edit"),
        "{told}"
    );
    runs(&env, "cargo test --lib").run().permits();
    asks(&env, "Edit", json!({"file_path": "/x"})).run().permits();
    for other in [
        "cargo test && rm x",
        "cargo test; rm x",
        "cargo test | sh",
        "cargo test $(rm x)",
        "cargo publish",
        "",
    ] {
        runs(&env, other).run().silent();
    }
    asks(&env, "Write", json!({"file_path": "/x"})).run().silent();
    asks(&env, "Bash", json!({"command": "cargo test", "dangerouslyDisableSandbox": true})).run().silent();
    assert_eq!(decisions(&env), ["allowed", "allowed"]);
    assert_eq!(env.shown(SESSION)["allowed_tools"], json!(["Bash(cargo test:*)", "Edit"]));
    let status = env.ralph(&["status"]).ok();
    assert!(status.contains("Allowed     Bash(cargo test:*)"), "{status}");
    let logs = env.ralph(&["logs"]).ok();
    assert!(logs.contains("allowed by your rule Bash(cargo test:*): Bash(cargo test --lib)"), "{logs}");
}

#[test]
fn a_slash_command_takes_rules_too_and_a_form_that_is_not_understood_is_refused() {
    let env = Env::without_breaker();
    let answer = env.types(SESSION, "start", "do it --allow-tool 'Bash(cargo test:*)' --allow-tool Edit");
    assert!(answer.message.unwrap().contains("Allowed without asking: Bash(cargo test:*)"));
    runs(&env, "cargo test").run().permits();
    for rule in ["Bash(*)", "Edit(src/**)", "*", "AskUserQuestion", "Bash(a && b:*)"] {
        let refused = env.ralph(&["start", "--session", "x", "--allow-tool", rule, "--", "task"]).fails(64);
        assert!(
            refused.contains("--allow-tool") && refused.contains("is not a valid tool rule"),
            "{refused}"
        );
    }
}

#[test]
fn a_repository_allows_nothing_without_trust_and_neither_does_a_state_file() {
    let env = Env::without_breaker();
    env.write(FILE, json!({"permission": {"allow": ["Bash"]}}).to_string());
    let told = env.start("task", &[]);
    assert!(told.contains("permission.allow is not used until you trust it with `ralph trust`"), "{told}");
    runs(&env, "make").run().silent();
    env.edit_state(|state| {
        let record = &mut state["loops"][SESSION];
        record["given"]["flags"]["permission.allow"] = json!(["Bash"]);
        record["given"]["files"]["user"]["permission.allow"] = json!(["Bash"]);
        record["commands"] = json!({"permission.allow": ["Bash"]});
        record["allowed_tools"] = json!(["Bash"]);
    });
    runs(&env, "make").run().silent();
    env.ralph(&["stop", "--session", SESSION]).ok();
    env.ralph(&["trust"]).ok();
    let told = env.start("task", &[]);
    assert!(told.contains("Allowed without asking: Bash"), "{told}");
    runs(&env, "make").run().permits();
    env.write(FILE, json!({"permission": {"allow": ["Bash", "Edit"]}}).to_string());
    asks(&env, "Edit", json!({})).run().silent();
    runs(&env, "make").run().permits();
}

#[test]
fn a_question_becomes_decide_and_is_answered_from_anywhere() {
    let (env, clock) = interactive();
    env.start("task", &[]);
    let question = json!({"questions": [{"question": "Tabs or spaces?", "header": "Style", "options": [
        {"label": "Tabs", "description": "use tabs"}, {"label": "Spaces", "description": "use \u{1b}[2Jspaces"}]}]});
    let hook = prompted(&env, asks(&env, "AskUserQuestion", question));
    assert_eq!(env.shown(SESSION)["waiting"]["for"], "answer");
    let status = env.ralph(&["status"]).ok();
    assert!(status.contains("waiting: your answer: Tabs or spaces?, 5m left"), "{status}");
    let answer = unanswered(&clock, hook);
    assert!(answer.denied().contains("End your turn now"), "{answer:?}");
    assert_eq!(env.shown(SESSION)["state"], "running", "the agent ends its turn first");
    let told = env.turn(SESSION, "I wait for the answer.");
    assert!(told.ended("decide").contains("Tabs or spaces?"), "{told:?}");
    let file = env.read("ralph/decide.txt");
    assert!(file.contains("\nTabs or spaces?\n- Tabs: use tabs\n- Spaces: use [2Jspaces\n"), "{file}");
    env.ralph(&["answer", "Spaces"]).ok();
    let resumed = env.ralph(&["start", "--resume", "--session", SESSION]).ok();
    assert!(resumed.contains("resumed"), "{resumed}");
    let prompt = env.turn(SESSION, "x");
    let prompt = [prompt.block.unwrap_or_default(), prompt.context.unwrap_or_default()].concat();
    assert!(prompt.contains("Tabs or spaces?") && prompt.contains("Spaces"), "{prompt}");
}

#[test]
fn a_question_that_the_user_answers_in_the_dialog_ends_nothing() {
    let (env, _clock) = interactive();
    env.start("task", &[]);
    let hook = prompted(&env, asks(&env, "AskUserQuestion", json!({"questions": [{"question": "A?"}]})));
    client_says(&env, &alive(), json!({"status": "busy"}));
    hook.wait().answer().silent();
    env.turn(SESSION, "thanks").continues();
    assert!(!env.exists("ralph/decide.txt"));
}

#[test]
fn a_loop_that_does_nothing_but_meet_the_same_denial_is_blocked_with_the_rule_that_helps() {
    let service = Webhook::start();
    let (env, clock) = interactive();
    env.var("RALPH_NOTIFY_URL", &service.url("/hook"));
    env.start("task", &[]);
    for count in 1..=3 {
        let answer = unanswered(&clock, prompted(&env, runs(&env, "npm publish")));
        assert_eq!(answer.denied().contains("denied 3 times: do not try it again"), count == 3, "{answer:?}");
        let turn = env.turn(SESSION, &format!("turn {count}"));
        if count < 3 {
            turn.continues();
            continue;
        }
        let told = turn.ended("blocked");
        assert!(told.contains("Bash(npm publish) was denied in 3 turns in a row"), "{told}");
        assert!(told.contains("Next: /ralph:start --resume --allow-tool 'Bash(npm publish)'"), "{told}");
    }
    // Each prompt once, the third denial, and the ending.
    let sent: Vec<Value> = posts(&service, 5).iter().map(|post| post.json()).collect();
    let reasons: Vec<&str> = sent.iter().map(|sent| sent["reason"].as_str().unwrap()).collect();
    let prompts = reasons.iter().filter(|reason| reason.contains("needs your permission")).count();
    assert_eq!(prompts, 3, "{reasons:?}");
    assert!(
        reasons.iter().any(|reason| reason.contains("denied 3 times: Bash(npm publish); to allow it")),
        "{reasons:?}"
    );
    assert_eq!(sent.iter().filter(|sent| sent["outcome"] == "blocked").count(), 1, "{reasons:?}");
}

/// They read alike or have no rule of their own, and none is answered by a rule for every command.
#[test]
fn different_calls_are_counted_apart_and_without_a_rule_the_clients_own_is_named() {
    let (env, clock) = interactive();
    env.start("task", &[]);
    for (count, command) in
        ["echo a\necho b", "ls *.rs", "git commit -F - <<EOF\nx\nEOF"].into_iter().enumerate()
    {
        let answer = unanswered(&clock, prompted(&env, runs(&env, command)));
        assert!(!answer.denied().contains("times"), "{answer:?}");
        let told = answer.message.unwrap();
        let way = "no tool rule can allow exactly this; use /permissions in Claude Code";
        assert!(told.contains(way) && !told.contains("--allow-tool"), "{told}");
        let turn = env.turn(SESSION, &format!("turn {count}"));
        if count < 2 {
            turn.continues();
            continue;
        }
        let told = turn.ended("blocked");
        assert!(told.contains("Bash(git commit -F - <<EOF x EOF) was denied in 3 turns in a row"), "{told}");
        let next = "Next: allow it with /permissions in Claude Code, then /ralph:start --resume";
        assert!(told.contains(next) && !told.contains("--allow-tool"), "{told}");
    }
}

#[test]
fn a_denial_in_a_turn_that_makes_progress_blocks_nothing() {
    let (env, clock) = interactive();
    env.start("task", &[]);
    for count in 1..=4 {
        unanswered(&clock, prompted(&env, runs(&env, "npm publish"))).denied();
        env.write(&format!("work-{count}.txt"), "done");
        env.turn(SESSION, &format!("turn {count}")).continues();
    }
}

#[test]
fn the_notification_of_the_client_tells_nothing_twice() {
    let service = Webhook::start();
    let (env, clock) = interactive();
    env.var("RALPH_NOTIFY_URL", &service.url("/hook"));
    env.start("task", &["--max-iterations", "1"]);
    let hook = prompted(&env, runs(&env, "make"));
    let notification = |kind: &str| {
        let event = env.event(Program::StopHook, SESSION, "Notification");
        event
            .field("notification_type", kind)
            .field("message", format!("the client's {kind}"))
            .run()
            .silent();
    };
    notification("permission_prompt");
    unanswered(&clock, hook).denied();
    notification("agent_needs_input");
    env.turn(SESSION, "x").ended("max-iterations");
    let sent: Vec<Value> = posts(&service, 3).iter().map(|post| post.json()["reason"].clone()).collect();
    assert!(sent.iter().all(|reason| reason != "the client's permission_prompt"), "{sent:?}");
    assert!(sent.contains(&json!("the client's agent_needs_input")), "{sent:?}");
}

/// The client opens the dialog of a background agent only after the hook has answered.
#[test]
fn a_subagent_whose_dialog_is_not_open_is_denied_soon_and_sent_to_the_main_agent() {
    let (env, clock) = interactive();
    env.start("task", &[]);
    client_says(&env, &alive(), json!({"status": "busy"}));
    let mut looks = FileEvents::of(&[env.base.join("home/.claude/sessions")], Access::Open);
    let mut hook = runs(&env, "make").field("agent_id", "a1").call().spawn();
    assert!(looks.wait_for_or_end(1, &mut hook), "it looks for the dialog");
    // The user would have minutes, and the clock stands still from here on.
    clock.advance(4);
    let answer = hook.wait().answer();
    assert!(answer.denied().contains("leave this call to the main agent"), "{answer:?}");

    let hook = prompted(&env, runs(&env, "make").field("agent_id", "a1"));
    assert!(
        unanswered(&clock, hook).denied().contains("no answer within 5m"),
        "an open dialog is waited for"
    );
}

#[test]
fn odd_requests_are_answered_like_any_other() {
    let (env, clock) = interactive();
    env.start("task", &["--allow-tool", "Bash(make:*)"]);
    let huge = "x".repeat(2 << 20);
    for (tool, input) in [
        (json!("FutureTool"), json!({"anything": [1, 2]})),
        (json!("Bash\u{1b}]0;x\u{7}"), json!({"command": "make\u{1b}[2J; rm x\n\u{202e}"})),
        (json!("Bash"), json!({"command": huge})),
        (json!("Bash"), json!({"command": 7})),
        (json!(null), json!(null)),
        (json!({"a": 1}), json!("make")),
        (json!(huge), json!([huge])),
        (json!("AskUserQuestion"), json!({"questions": "odd"})),
    ] {
        let event = env.event(Program::StopHook, SESSION, "PermissionRequest");
        let hook = prompted(&env, event.field("tool_name", tool.clone()).field("tool_input", input));
        let status = env.ralph(&["status"]).ok();
        assert!(status.contains("waiting: ") && !status.contains('\u{1b}'), "{status:?}");
        let answer = unanswered(&clock, hook);
        let text = format!("{answer:?}");
        assert!(answer.denied().len() < 1000 && text.len() < 4000, "{}", text.len());
        assert!(!text.contains("u{1b}") && !text.contains("u{202e}"), "{text}");
    }
    let state = env.read(".claude/ralph-state.json");
    assert!(state.len() < 40_000, "{} bytes", state.len());
}

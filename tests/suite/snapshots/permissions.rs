//! Permission prompts: what the user sees while one is open, what the agent reads when it is denied, and how it ends.

use super::{Page, replace, started};
use crate::env::{Access, Answer, Clock, Env, Event, FileEvents, Program, Run, SESSION, wait_until};
use crate::session::activity::{alive, client_says};
use serde_json::{Value, json};

#[test]
fn a_denied_call() {
    let mut page = Page::new();
    the_same_call(&mut page);
    check(page, "permissions_denied");
}

#[test]
fn other_calls() {
    let mut page = Page::new();
    rules(&mut page);
    other_denials(&mut page);
    questions(&mut page);
    modes(&mut page);
    of_the_runner(&mut page);
    check(page, "permissions");
}

/// How far the clock moves while a prompt is open depends on the machine.
fn check(page: Page, name: &str) {
    let mut text = page.text;
    for (pattern, by) in [
        (r"Runtime: [0-9.]+[hm]/9.0h \| Wall: [0-9.]+[hm]", "Runtime: [time]/9.0h | Wall: [time]"),
        (r"[0-9]{2}:[0-9]{2}:[0-9]{2}|[0-9]{2}:[0-9]{2} UTC", "[time]"),
        (r"paused [0-9hm ]+, not counted", "paused [time], not counted"),
    ] {
        text = replace(&text, pattern, by);
    }
    Page { text }.check(name);
}

fn asks<'e>(env: &'e Env, tool: &str, input: Value) -> Event<'e> {
    env.event(Program::StopHook, SESSION, "PermissionRequest")
        .field("tool_name", tool)
        .field("tool_input", input)
}

fn runs<'e>(env: &'e Env, command: &str) -> Event<'e> {
    asks(env, "Bash", json!({"command": command}))
}

/// A world in the terminal's interface, with a running loop.
fn interactive() -> (Env, Clock) {
    let env = Env::without_breaker();
    env.var("CLAUDE_CODE_ENTRYPOINT", "cli");
    let clock = env.clock();
    env.start("make the suite green", &["--allow-tool", "Bash(cargo test:*)"]);
    (env, clock)
}

/// The looks of hooks at the client's records of what it shows.
fn looks(env: &Env) -> FileEvents {
    FileEvents::of(&[env.base.join("home/.claude/sessions")], Access::Open)
}

/// Opens a prompt that gets no answer. `meanwhile` is called while it is open.
fn unanswered(env: &Env, clock: &Clock, event: Event, mut meanwhile: impl FnMut()) -> Answer {
    client_says(env, &alive(), json!({"status": "waiting", "waitingFor": "permission prompt"}));
    let hook = event.call().spawn();
    wait_until("the wait is noted", || env.record(SESSION)["session"]["waiting"].is_object());
    meanwhile();
    // Its five minutes have begun when it looks for the dialog after that.
    looks(env).wait_for(2);
    clock.advance(310);
    hook.wait().answer()
}

fn rules(page: &mut Page) {
    let env = Env::new();
    let start = ["start", "--session", SESSION, "--allow-tool", "Bash(cargo test:*)", "--allow-tool=Edit"];
    page.ralph(&env, &[&start[..], &["make the suite green"]].concat());
    for rule in ["Bash(*)", "Edit(src/**)", "*", "AskUserQuestion", "Bash(a && b:*)"] {
        page.ralph(&env, &["start", "--session", "x", "--allow-tool", rule, "task"]);
    }
    page.ralph(&env, &["config", "--user", "permission.allow", r#"["Bash(*)"]"#]);
    let env = Env::new();
    let allow = json!({"permission": {"allow": ["Bash"]}});
    env.write(".claude/ralph-config.json", allow.to_string());
    page.run(&env, "a rule in the project's file", &env.ralph(&["start", "--session", SESSION, "task"]));
}

fn the_same_call(page: &mut Page) {
    let (env, clock) = interactive();
    runs(&env, "cargo test --lib").run().permits();
    let publish = || runs(&env, "npm publish");
    let first = unanswered(&env, &clock, publish(), || {
        page.ralph(&env, &["status", "--session", SESSION]);
    });
    page.answer(&env, "a prompt that is not answered", &first);
    env.turn(SESSION, "I tried to publish.").continues();
    client_says(&env, &alive(), json!({"status": "busy"}));
    page.ralph(&env, &["status", "--session", SESSION]);
    unanswered(&env, &clock, publish(), || ()).denied();
    env.turn(SESSION, "I tried it again.").continues();
    let third = unanswered(&env, &clock, publish(), || ());
    page.answer(&env, "the same prompt for the third time", &third);
    page.answer(&env, "blocked", &env.turn(SESSION, "I tried it a third time."));
    page.ralph(&env, &["status", "--session", SESSION]);
    page.section(&env, "ralph/blocked.txt", &env.read("ralph/blocked.txt"));
    let logs = env.call(Program::Ralph).args(&["logs"]).var("TZ", "UTC").run();
    page.run(&env, "ralph logs", &logs);
}

fn other_denials(page: &mut Page) {
    let (env, clock) = interactive();
    let answer = unanswered(&env, &clock, runs(&env, "ls *.rs"), || ());
    page.answer(&env, "a call that no rule can allow", &answer);
    client_says(&env, &alive(), json!({"status": "busy"}));
    let mut looks = looks(&env);
    let mut hook = runs(&env, "make").field("agent_id", "a1").call().spawn();
    assert!(looks.wait_for_or_end(2, &mut hook), "it looks for the dialog");
    clock.advance(4);
    page.answer(&env, "a subagent whose dialog is not open", &hook.wait().answer());
}

fn questions(page: &mut Page) {
    let (env, clock) = interactive();
    let question = json!({"questions": [{"question": "Tabs or spaces?", "header": "Style", "options": [
        {"label": "Tabs", "description": "use tabs"}, {"label": "Spaces", "description": "use spaces"}]}]});
    let answer = unanswered(&env, &clock, asks(&env, "AskUserQuestion", question), || {
        page.ralph(&env, &["status", "--session", SESSION]);
    });
    page.answer(&env, "a question that is not answered", &answer);
    page.answer(&env, "the turn ends", &env.turn(SESSION, "I wait for the answer."));
    page.section(&env, "ralph/decide.txt", &env.read("ralph/decide.txt"));
}

/// What a start says about the client's permission mode.
fn modes(page: &mut Page) {
    for mode in ["default", "plan"] {
        let env = Env::new();
        let event = env.event(Program::SessionStartHook, SESSION, "UserPromptExpansion");
        let event = event.field("permission_mode", mode).field("command_name", "ralph:start");
        let answer = event.field("command_args", "make the suite green").run();
        page.message(&env, &format!("/ralph:start in permission mode {mode}"), &answer);
    }
    let env = started(&[]);
    let event = env.event(Program::StopHook, SESSION, "Notification");
    event.field("notification_type", "permission_prompt").field("message", "Claude needs you").run().silent();
    page.ralph(&env, &["status", "--session", SESSION]);
}

fn of_the_runner(page: &mut Page) {
    let turn = |tools: &[&str]| {
        let denials: Vec<Value> =
            tools.iter().map(|tool| json!({"tool_name": tool, "tool_input": {}})).collect();
        let result = json!({"type": "result", "is_error": false, "result": "I was not allowed to.", "permission_denials": denials});
        format!("printf '%s\\n' '{result}'; exit")
    };
    for (title, tools, flags) in [
        ("ralph run: denied tools", &["Write", "Bash", "Write"][..], &["--allowed-tools", "WebFetch"][..]),
        ("ralph run --permission-mode plan: tools without a name", &[""], &["--permission-mode", "plan"]),
    ] {
        let env = Env::new();
        let run = env.run_claude(&turn(tools), &[flags, &["make the suite green"]].concat()).run();
        page.run(&env, title, &run);
        page.ralph(&env, &["status"]);
        page.section(&env, "ralph/blocked.txt", &env.read("ralph/blocked.txt"));
        let next = env.run_claude("result '<promise>COMPLETE</promise>'", &["--allowed-tools", "Bash"]).run();
        let stdout = replace(&next.stdout, r"(?s)── iteration.*", "");
        page.run(&env, "ralph run: continued", &Run { stdout, ..next });
    }
}

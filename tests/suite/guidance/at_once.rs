//! What acts inside a running turn: the module in the client (`ralph module`), and the hook after a batch of tools.

use crate::env::{Answer, Env, MINUTE, OTHER, Program, SESSION};
use serde_json::{Value, json};
use std::path::Path;

const ESC: &str = "[Request interrupted by user for tool use]";

/// Tells `ralph module` an event of the session and returns its answer.
fn module(env: &Env, event: &str, fields: Value) -> Value {
    let mut input = json!({"event": event, "session_id": SESSION, "running": true, "usage": {}});
    input.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let printed = said(env, &input.to_string());
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{event}: {error}: {printed}"))
}

fn said(env: &Env, input: &str) -> String {
    let call = env.call(Program::Ralph).args(&["module"]).var("CLAUDE_PROJECT_DIR", &env.project);
    call.stdin(input).run().ok()
}

fn types(env: &Env, command: &str, text: &str) -> Value {
    module(env, "command", json!({"command": command, "args": text}))
}

/// The hook after a batch of tools.
fn after_tools(env: &Env, session: &str) -> Answer {
    env.event(Program::StopHook, session, "PostToolBatch").field("tool_calls", json!([])).run()
}

fn watched(answer: &Value) -> bool {
    Path::new(answer["watch"].as_str().unwrap()).exists()
}

#[test]
fn guidance_typed_in_a_running_turn_is_for_that_turn_and_told_once() {
    let env = Env::new();
    env.start("tidy up", &[]);
    let text = "never \"rm\" $(touch pwned) `touch pwned`; it's --force";
    let answer = types(&env, "forbid", text);
    assert!(answer["text"].as_str().unwrap().contains("1 active; for this session's loop"), "{answer}");
    let told = answer["append"].as_str().unwrap();
    assert!(told.starts_with("Ralph: new guidance from the user."), "{told}");
    assert!(told.contains(&format!("FORBIDDEN:\n- {text}")), "{told}");
    assert!(answer["status"].as_str().unwrap().contains("1 forbidden"), "{answer}");
    assert!(!env.exists("pwned"));
    assert_eq!(env.state()["guidance"]["forbidden"][0]["delivered_to"], json!([SESSION]));

    // No other way tells it as new again; the end of the turn repeats it like any other entry.
    after_tools(&env, SESSION).silent();
    assert_eq!(module(&env, "refresh", json!({}))["append"], Value::Null);
    let prompt = env.turn(SESSION, "working on it");
    assert!(prompt.continues().contains("FORBIDDEN:\n- never \"rm\""), "{prompt:?}");
    assert!(!prompt.continues().contains("new guidance"), "{prompt:?}");

    // An entry that was told is not told again beside a newer one.
    let told = types(&env, "encourage", "small steps")["append"].as_str().unwrap().to_owned();
    assert!(told.contains("ENCOURAGED:\n- small steps") && !told.contains("FORBIDDEN"), "{told}");
}

#[test]
fn guidance_from_elsewhere_reaches_the_turn_once_by_the_first_hook() {
    let env = Env::new();
    env.start("tidy up", &[]);
    env.guidance(&["forbid", "touching the API"]).ok();
    let told = after_tools(&env, SESSION).context.unwrap();
    assert!(told.contains("FORBIDDEN:\n- touching the API"), "{told}");
    assert_eq!(module(&env, "refresh", json!({}))["append"], Value::Null);
    env.guidance(&["encourage", "small steps"]).ok();
    let told = module(&env, "refresh", json!({}))["append"].as_str().unwrap().to_owned();
    assert!(told.contains("ENCOURAGED:\n- small steps"), "{told}");
    after_tools(&env, SESSION).silent();
    // No turn is running, so the guidance waits.
    env.guidance(&["forbid", "new files"]).ok();
    assert_eq!(module(&env, "refresh", json!({"running": false}))["append"], Value::Null);
    let prompt = env.turn(SESSION, "working on it");
    assert!(prompt.continues().contains("- new files"), "{prompt:?}");
}

#[test]
fn tools_of_other_agents_and_sessions_are_told_nothing() {
    let env = Env::new();
    env.guidance(&["forbid", "touching the API"]).ok();
    let before = env.snapshot();
    after_tools(&env, SESSION).silent();
    assert_eq!(env.snapshot(), before, "a session without a loop is only looked at");
    env.start("tidy up", &[]);
    env.guidance(&["forbid", "new files"]).ok();
    after_tools(&env, OTHER).silent();
    let subagent = env.event(Program::StopHook, SESSION, "PostToolBatch").field("agent_id", "a1");
    subagent.run().silent();
    env.at(MINUTE);
    module(&env, "aborted", json!({"last": ESC, "running": false}));
    assert_eq!(env.record(SESSION)["state"], "paused");
    after_tools(&env, SESSION).silent();
    let given = env.state()["guidance"]["forbidden"].clone();
    assert!(given.as_array().unwrap().iter().all(|entry| entry["delivered_to"].is_null()), "{given}");
}

#[test]
fn a_damaged_state_stops_no_tool() {
    let env = Env::new();
    env.start("tidy up", &[]);
    env.write(".claude/ralph-state.json", "{");
    after_tools(&env, SESSION).silent();
    let answer = types(&env, "forbid", "new files");
    assert!(answer["text"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
}

#[test]
fn escape_pauses_at_once_and_a_turn_cut_for_a_command_does_not() {
    let env = Env::new();
    env.start("tidy up", &[]);
    env.at(MINUTE);
    let queued =
        module(&env, "aborted", json!({"last": "(Bash completed with no output)", "running": false}));
    assert_eq!((env.record(SESSION)["state"].as_str(), &queued["log"]), (Some("running"), &Value::Null));
    let answer = module(&env, "aborted", json!({"last": ESC, "running": false}));
    assert_eq!(env.record(SESSION)["state"], "paused");
    assert!(answer["status"].as_str().unwrap().starts_with("paused: you interrupted the agent"), "{answer}");
    assert!(answer["log"].as_str().unwrap().contains("/ralph:start --resume"), "{answer}");
    env.at(2 * MINUTE);
    env.start("", &["--resume"]);
    env.at(3 * MINUTE);
    env.turn(SESSION, "working on it").continues();
}

#[test]
fn stop_and_status_act_in_a_running_turn() {
    let env = Env::new();
    env.start("tidy up", &[]);
    let answer = types(&env, "status", "");
    assert!(answer["text"].as_str().unwrap().contains("tidy up"), "{answer}");
    assert!(watched(&answer), "the loop can be seen by one look");
    let answer = types(&env, "stop", "");
    let told = answer["text"].as_str().unwrap();
    assert!(told.contains("ended (stopped)") && told.contains("Esc interrupts it"), "{told}");
    assert_eq!(env.record(SESSION)["outcome"], "stopped");
    assert!(
        !watched(&answer) && answer["status"].as_str().unwrap().starts_with("ended: stopped"),
        "{answer}"
    );
    env.turn(SESSION, "still there").silent();
    let refused = types(&env, "stop", "--nonsense");
    assert!(refused["text"].as_str().unwrap().contains("unknown flag: --nonsense"), "{refused}");
}

#[test]
fn an_answer_starts_a_turn_or_joins_the_running_one() {
    for (running, field, other) in [(false, "submit", "append"), (true, "append", "submit")] {
        let env = Env::new();
        env.start("tidy up", &[]);
        env.turn(SESSION, "<promise>DECIDE:tabs or spaces?</promise>").ended("decide");
        let answer =
            module(&env, "command", json!({"command": "answer", "args": "tabs", "running": running}));
        assert!(answer[field].as_str().unwrap().contains("tabs"), "{answer}");
        assert_eq!(answer[other], Value::Null);
        assert_eq!(env.record(SESSION)["state"], "running");
    }
}

#[test]
fn a_session_without_a_loop_is_told_what_to_watch_and_nothing_else() {
    let env = Env::new();
    let before = env.snapshot();
    let answer = module(&env, "session", json!({"running": false}));
    let names: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!((names.len(), &answer["pin"]), (3, &json!(true)), "{answer}");
    assert!(!watched(&answer));
    assert_eq!(module(&env, "refresh", json!({}))["status"], Value::Null);
    assert_eq!(env.snapshot(), before);
    env.start("tidy up", &[]);
    assert!(watched(&answer), "the file that the loop's start makes");
    assert_eq!(answer["state"], json!(env.path(".claude/ralph-state.json")));
}

#[test]
fn the_line_is_not_pinned_beside_our_status_line() {
    let env = Env::new();
    let line = json!({"statusLine": {"type": "command", "command": format!("{} statusline", Program::Ralph.path())}});
    let settings = env.base.join("home/.claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, line.to_string()).unwrap();
    assert_eq!(module(&env, "session", json!({}))["pin"], false);
}

#[test]
fn bad_input_is_answered_with_nothing() {
    let env = Env::new();
    env.start("tidy up", &[]);
    for input in [
        "",
        "{",
        "[]",
        "null",
        r#"{"event":"command"}"#,
        r#"{"event":"refresh","session_id":""}"#,
        r#"{"event":"refresh","session_id":7}"#,
        r#"{"event":"other","session_id":"s"}"#,
    ] {
        assert_eq!(said(&env, input), "", "{input}");
    }
    let unknown = types(&env, "start", "something else");
    assert_eq!(unknown["text"], Value::Null, "only the five commands run at once: {unknown}");
    env.var("RALPH_RUN_ID", "r1");
    assert_eq!(said(&env, &json!({"event": "refresh", "session_id": SESSION}).to_string()), "");
}

/// The client takes a command that is pasted whole for text, also one of the module's.
#[test]
fn a_pasted_command_of_the_module_is_run() {
    let env = Env::new();
    env.start("tidy up", &[]);
    let long = "never touch the quokka ".repeat(40);
    let answer = env.submits(SESSION, &format!("/ralph-forbid {long}")).run();
    assert!(answer.message.unwrap().contains("1 active; for this session's loop"));
    assert!(answer.context.unwrap().contains("never touch the quokka"));
    for other in ["/ralph-loop", "/ralph-start", "/ralph", "/ralphforbid"] {
        env.submits(SESSION, &format!("{other} {long}")).run().silent();
    }
}

/// What the user types must not become a part of a command line.
#[test]
fn the_module_starts_one_program_with_one_fixed_argument() {
    let code = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/hooks/register.js")).unwrap();
    assert_eq!(code.matches("$.process.").count(), 1, "one call");
    assert!(
        code.contains("$.process.run([`${$.plugin.root}/bin/ralph`, 'module'], { stdin, env, timeoutMs })")
    );
    for word in ["eval(", "Function(", "import", "$.http", "$.fs.write", "$.env"] {
        assert!(!code.contains(word), "{word}");
    }
    assert!(code.lines().count() <= 180, "rules belong into `ralph module`");
}

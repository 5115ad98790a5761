//! Guidance and constraints on their way to the agent.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::client::{Client, Session};
use crate::clock::wait_until;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, plugin, ralph, replies, session, status, working};
use crate::screen::queue;
use crate::tmux::{SIZES, Screen};

/// Runs `ralph-guidance` from another terminal, at a time of its own.
fn guidance(session: &Session, now: Option<&str>, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph-guidance"));
    command.args(args).env_clear().envs(session.variables()).current_dir(session.project());
    let output = command.envs(now.map(|now| ("RALPH_NOW", now))).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_forbidden_thing_arrives_to_the_letter_and_runs_nothing() {
    let text = "never \"rm\" $(touch pwned) `touch pwned` it's; touch pwned --force";
    let api = Api::start(vec![Reply::text("<promise>COMPLETE</promise>")]);
    let Some(session) = session(&api) else { return };

    let output = session.print(&format!("/ralph:forbid {text}"));

    assert!(api.requests().is_empty(), "no model call without a loop");
    assert!(output.stdout.contains("1 active"), "{}", output.stdout);
    assert_eq!(status(&session)["guidance"]["forbidden"][0]["text"], text);
    assert!(!session.project().join("pwned").exists());
    session.print("/ralph:start tidy up");
    let first = api.requests()[0].text();
    assert!(
        !first.contains(text),
        "given in another session before the start, it is not meant for this loop"
    );
}

#[test]
fn guidance_typed_in_mid_loop_is_in_the_next_prompt_and_the_loop_continues() {
    // In its second turn the agent waits for its reply, and the user types.
    let api = Api::start_holding((0..30).flat_map(|_| working("going on")).collect(), 3);
    let Some(session) = session(&api) else { return };
    if !Screen::available() {
        return;
    }
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --max-iterations 40");
    screen.wait_for("Ralph 1/40", SOON);
    api.wait_for_requests(4, SOON);

    queue(&session, &screen, "/ralph:forbid touching the quokka");
    api.answer(4);
    screen.wait_for("forbidden: touching the quokka; 1 active", SOON);
    api.wait_for_requests(5, SOON);

    let next = api.requests()[4].text();
    assert!(next.contains("FORBIDDEN:\n- touching the quokka"), "{next}");
    let iteration = status(&session)["loops"][0]["iteration"].as_u64().unwrap();
    api.answer_all();
    screen.wait_for(&format!("Ralph {}/40", iteration + 1), SOON);
    assert_eq!(status(&session)["guidance"]["forbidden"][0]["delivered"], true);
    ralph(&session, &["stop"]);
}

/// The command file of `/ralph:forbid` calls `ralph-guidance`; the client runs it without asking and without a rule of
/// the user's.
#[test]
fn the_client_may_run_the_program_of_the_command_file() {
    let id = "5a1c4a2e-0f57-4be4-9d5e-2f6f4a7e9b10";
    let api = Api::start_holding(vec![Reply::text("<promise>COMPLETE</promise>")], 0);
    let Some(claude) = Client::find() else { return };
    let session = Session::new(&claude, &api).plugin(plugin());
    let running = session.spawn_print("/ralph:start tidy up", &["--session-id", id]);
    api.wait_for_requests(1, SOON);
    // Killed before it has written its prompt, the client could not resume.
    wait_until("the prompt in the transcript", || {
        let projects = fs::read_dir(session.claude_config().join("projects")).into_iter().flatten().flatten();
        let mut files = projects.map(|project| project.path().join(format!("{id}.jsonl")));
        files.any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("tidy up")))
    });
    running.kill();
    api.answer_all();

    session.resume(id, "/ralph:forbid touching the quokka");

    let read = api.requests()[1].last_user_text();
    assert!(read.contains("The user ran a Ralph command"), "{read}");
    assert!(read.contains("FORBIDDEN:\n- touching the quokka"), "{read}");
    assert_eq!(status(&session)["loops"][0]["outcome"], "complete");
}

/// Two sessions in one project, each with its loop and its own scripted model.
#[test]
fn guidance_typed_in_one_of_two_sessions_reaches_that_one_and_can_be_removed() {
    for size in SIZES {
        let turns = || (0..30).flat_map(|_| working("still working")).collect();
        let (first_api, second_api) = (Api::start_holding(turns(), 3), Api::start_holding(turns(), 3));
        let Some(session) = session(&first_api) else { return };
        if !Screen::available() {
            return;
        }
        let first = Screen::start_sized(&session, &[], size);
        first.type_line("/ralph:start water the alpacas --max-iterations 40");
        first_api.wait_for_requests(4, SOON);
        let session = session.env("ANTHROPIC_BASE_URL", second_api.url());
        let second = Screen::start_sized(&session, &[], size);
        second.type_line("/ralph:start brush the badgers --max-iterations 40");
        second_api.wait_for_requests(4, SOON);

        queue(&session, &second, "/ralph:forbid touching the quokka");
        second_api.answer(4);
        second.wait_for_words("forbidden: touching the quokka; 1 active; for this session's loop", SOON);
        second_api.wait_for_requests(5, SOON);
        assert!(second_api.requests()[4].text().contains("FORBIDDEN:\n- touching the quokka"));
        let told = guidance(&session, None, &["encourage", "small steps"]);
        assert!(told.contains("; 2 active; for all loops of this project"), "{told}");

        // The first loop does two more turns.
        first_api.answer(8);
        first_api.wait_for_requests(9, SOON);
        let read = first_api.requests()[8].text();
        assert!(read.contains("water the alpacas") && read.contains("ENCOURAGED:\n- small steps"), "{read}");
        assert!(!read.contains("quokka"), "{read}");

        queue(&session, &second, "/ralph:forbid --remove 2");
        second_api.answer(6);
        second.wait_for_words("removed: touching the quokka; 1 active", SOON);
        second_api.wait_for_requests(7, SOON);
        let next = second_api.requests()[6].last_user_text();
        assert!(next.contains("ENCOURAGED:\n- small steps") && !next.contains("FORBIDDEN"), "{next}");
        ralph(&session, &["stop"]);
    }
}

#[test]
fn printed_guidance_for_one_of_two_sessions_reaches_that_one() {
    let ids = ["5a1c4a2e-0f57-4be4-9d5e-2f6f4a7e9b11", "5a1c4a2e-0f57-4be4-9d5e-2f6f4a7e9b12"];
    let turns = || {
        let mut script = replies([working("one"), working("two")]);
        script.push(Reply::text("<promise>COMPLETE</promise>"));
        script
    };
    let (first_api, second_api) = (Api::start_holding(turns(), 1), Api::start_holding(turns(), 1));
    let Some(session) = session(&first_api) else { return };
    let first = session.spawn_print("/ralph:start water the alpacas", &["--session-id", ids[0]]);
    first_api.wait_for_requests(2, SOON);
    let session = session.env("ANTHROPIC_BASE_URL", second_api.url());
    let second = session.spawn_print("/ralph:start brush the badgers", &["--session-id", ids[1]]);
    second_api.wait_for_requests(2, SOON);

    let told = guidance(&session, None, &["forbid", "touching the quokka", "--session", ids[1]]);
    assert!(told.contains("1 active; for this session's loop"), "{told}");
    first_api.answer_all();
    second_api.answer_all();
    first.wait();
    second.wait();

    let texts = |api: &Api| api.requests().iter().map(|request| request.text()).collect::<String>();
    assert!(texts(&second_api).contains("FORBIDDEN:\n- touching the quokka"), "{}", texts(&second_api));
    assert!(!texts(&first_api).contains("quokka"), "{}", texts(&first_api));
}

#[test]
fn a_finding_that_the_agent_fixes_is_gone_from_its_next_prompt() {
    let fix = json!({"command": "rm api.rs", "description": "remove the generated file"});
    let mut script = replies([working("looking")]);
    script.extend([
        Reply::tool("Bash", fix),
        Reply::text("removed"),
        Reply::text("<promise>COMPLETE</promise>"),
    ]);
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };
    fs::write(session.project().join("api.rs"), "// Code generated by apigen. DO NOT EDIT.\nfn f() {}\n")
        .unwrap();

    session.print("/ralph:start tidy up");

    let requests = api.requests();
    assert!(requests[0].text().contains("api.rs:1: generated file"), "{}", requests[0].text());
    assert!(
        requests[2].last_user_text().contains("FORBIDDEN:\n- api.rs:1: generated file"),
        "{}",
        requests[2].last_user_text()
    );
    assert!(!requests[4].last_user_text().contains("api.rs"), "{}", requests[4].last_user_text());
}

#[test]
fn last_weeks_guidance_does_not_come_back() {
    let api = Api::start(vec![Reply::text("<promise>COMPLETE</promise>")]);
    let Some(session) = session(&api) else { return };
    guidance(
        &session,
        Some("2026-01-02T03:04:05Z"),
        &["encourage", "migrate to RSSI", "--session", "long-gone"],
    );
    guidance(&session, None, &["encourage", "write tests"]);

    let output = session.print("/ralph:start tidy up");

    let first = api.requests()[0].text();
    assert!(first.contains("write tests") && !first.contains("RSSI"), "{first}");
    assert!(!output.system_messages().join("\n").contains("write tests\""), "{output:?}");
}

#[test]
fn a_critical_constraint_refuses_a_start_without_a_model_call() {
    let api = Api::start(vec![Reply::text("<promise>COMPLETE</promise>")]);
    let Some(session) = session(&api) else { return };
    let home = session.home();
    fs::write(session.project().join("build.toml"), format!("cache = \"{}/cache\"\n", home.display()))
        .unwrap();

    let refused = session.print("/ralph:start build it");
    assert!(refused.stdout.contains("critical constraint found"), "{}", refused.stdout);
    assert!(api.requests().is_empty());

    session.print("/ralph:start build it --skip-constraint-scan");
    assert_eq!(status(&session)["loops"][0]["outcome"], "complete");
}

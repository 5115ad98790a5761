//! Whole loops through `claude -p`: what the agent is sent, what the user reads, what stays on disk.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, plugin, ralph, replies, session, status, the_loop, working};

#[test]
fn a_loop_runs_to_its_iteration_limit_and_says_so() {
    let api = Api::start(replies([working("one"), working("two"), working("three"), working("never")]));
    let Some(session) = session(&api) else { return };

    let output = session.print("/ralph:start make the suite green --max-iterations 3");

    assert_eq!(api.requests().len(), 6, "three turns of two requests");
    let told = output.system_messages().join("\n");
    for line in [
        "Ralph started: make the suite green",
        "Ends at 3 iterations or 9h runtime",
        "Ralph 1/3 · Runtime:",
        "Ralph 2/3",
        "ENDING SOON",
        "Ralph ended (max-iterations): iteration limit reached: 3 of 3 iterations done.",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    let first = api.requests()[0].text();
    assert!(
        first.contains("make the suite green") && first.contains("<promise>COMPLETE</promise>"),
        "{first}"
    );
    let record = the_loop(&session);
    assert_eq!(
        (&record["state"], &record["outcome"], &record["iteration"]),
        (&json!("stopped"), &json!("max-iterations"), &json!(3))
    );
    assert!(ralph(&session, &["history"]).contains("max-iterations"));
    assert_eq!(ralph(&session, &["history", "--json"]).lines().count(), 1);
}

#[test]
fn a_promise_on_the_last_line_completes_the_loop_and_a_mention_does_not() {
    let mut script = replies([working("I will print <promise>COMPLETE</promise> when finished")]);
    script.push(Reply::text("All green.\n\n<promise>COMPLETE</promise>"));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };

    let output = session.print("/ralph:start make the suite green");

    assert_eq!(api.requests().len(), 3);
    let told = output.system_messages().join("\n");
    assert!(
        told.contains("Ralph ended (complete): task complete: the agent promised COMPLETE (not verified)"),
        "{told}"
    );
    assert_eq!(the_loop(&session)["outcome"], "complete");
}

#[test]
fn a_minimum_rejects_completion() {
    let api = Api::start(vec![Reply::text("<promise>COMPLETE</promise>")]);
    let Some(session) = session(&api) else { return };

    let output = session.print("/ralph:start polish it --min-hours 1 --max-iterations 2");

    let told = output.system_messages().join("\n");
    assert!(told.contains("completion rejected: minimum runtime") && told.contains(" of 1h)"), "{told}");
    assert!(told.contains("Ralph ended (max-iterations)"), "{told}");
    let second = api.requests()[1].last_user_text();
    assert!(
        second.contains("Completion rejected: minimum runtime") && second.contains("review your diff"),
        "{second}"
    );
}

#[test]
fn free_text_arrives_whole_and_runs_nothing() {
    let task = "say \"hi\" $(touch pwned) `touch pwned` 'it''s' \\ ; touch pwned\nsecond line\n---\n<<EOF";
    let api = Api::start(vec![Reply::text("<promise>COMPLETE</promise>")]);
    let Some(session) = session(&api) else { return };

    session.print(&format!("/ralph:start {task} --max-iterations=08"));

    let record = the_loop(&session);
    assert_eq!((&record["task"], &record["max_iterations"]), (&json!(task), &json!(8)));
    assert!(api.requests()[0].text().contains(task));
    assert!(!session.project().join("pwned").exists());
}

#[test]
fn a_wrong_flag_is_answered_without_a_model_call() {
    let api = Api::start(vec![Reply::text("never")]);
    let Some(session) = session(&api) else { return };

    let output = session.print("/ralph:start do it --max-iteration 3");

    assert!(api.requests().is_empty());
    assert!(output.stdout.contains("unknown flag: --max-iteration"), "{}", output.stdout);
    assert_eq!(status(&session)["loops"], json!([]));
}

#[test]
fn text_only_turns_end_with_our_reason_before_the_clients_cap() {
    let thoughts = ["about the parser", "of old code", "what tests say", "why it was made", "still thinking"];
    let api = Api::start(thoughts.iter().map(|thought| Reply::text(&format!("{thought} ..."))).collect());
    let Some(session) = session(&api) else { return };
    fs::create_dir_all(session.config_dir()).unwrap();
    fs::write(session.config_dir().join("config.json"), r#"{"circuit": {"stagnation": 0}}"#).unwrap();

    let output = session.print("/ralph:start think");

    let told = output.system_messages().join("\n");
    assert!(told.contains("Ralph ended (stuck): "), "{told}");
    assert!(told.contains("turns in a row without a tool call"), "{told}");
    assert!(output.answer().contains("still thinking"), "the client's own cap leaves an empty result");
    assert_eq!(api.requests().len(), 5);
    let warning = api.requests()[4].last_user_text();
    assert!(warning.contains("one more ends the loop"), "{warning}");
}

#[test]
fn a_session_without_a_loop_leaves_nothing_behind_and_hears_nothing() {
    let api = Api::start(replies([working("hello")]));
    let Some(session) = session(&api) else { return };

    let output = session.print("just say hello");

    assert_eq!(api.requests().len(), 2);
    assert_eq!(output.system_messages(), Vec::<&str>::new());
    assert!(!session.project().join(".claude").exists());
    assert_eq!(fs::read_dir(session.data_dir()).unwrap().count(), 0);
}

#[test]
fn status_and_stop_without_a_loop_cost_no_model_call() {
    let api = Api::start(vec![Reply::text("never")]);
    let Some(session) = session(&api) else { return };

    for (command, said) in [
        ("/ralph:status", "No loop in this project"),
        ("/ralph:stop", "no loop is running in this session"),
        ("/ralph:config", "loop_limits.max_hours"),
        ("/ralph:help", "/ralph:start TASK"),
    ] {
        let output = session.print(command);
        assert!(output.stdout.contains(said), "{command}: {}", output.stdout);
    }
    assert!(api.requests().is_empty());
}

#[test]
fn after_compaction_the_agent_is_given_its_task_again() {
    // Every reply but the last fills the context; one of them is taken for the summary, which must be text.
    let full = json!({"input_tokens": 195_000});
    let mut script: Vec<Reply> = working("one").into();
    script.extend(["two", "three"].map(Reply::text));
    script = script.into_iter().map(|reply| reply.usage(full.clone())).collect();
    script.push(Reply::text("four"));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };
    let session = session.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");

    session.print("/ralph:start remember the unusual word quokka --max-iterations 4");

    let transcript = fs::read_to_string(session.transcript()).unwrap();
    let boundary = transcript
        .lines()
        .position(|line| line.contains("\"compact_boundary\""))
        .expect("a compaction happened");
    let later: Vec<_> =
        transcript.lines().skip(boundary).filter(|line| line.contains("SessionStart")).collect();
    assert!(
        later.iter().any(|line| line.contains("quokka") && line.contains("You are in a Ralph loop")),
        "{later:?}"
    );
    assert_eq!(the_loop(&session)["outcome"], "max-iterations", "the loop went on after it");
}

#[test]
fn a_killed_client_resumes_its_loop_by_itself() {
    let never = Reply::text("never arrives").delay(Duration::from_secs(600));
    let mut script = replies([working("one")]);
    script.push(never);
    script.extend(replies([working("back"), working("again")]));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };

    let running = session.spawn_print("/ralph:start outlive the crash --max-iterations 3", &[]);
    api.wait_for_requests(3, SOON);
    let killed = running.kill();
    let record = the_loop(&session);
    assert_eq!((&record["state"], &record["iteration"]), (&json!("running"), &json!(1)));

    let resumed = session.resume(killed.session_id(), "where were we");

    let told = resumed.system_messages().join("\n");
    assert!(told.contains("Ralph ended (max-iterations)"), "{told}");
    let back = api.requests()[3].text();
    assert!(back.contains("You are in a Ralph loop") && back.contains("outlive the crash"), "{back}");
    assert_eq!(the_loop(&session)["iteration"], 3);
}

#[test]
fn background_work_is_waited_for_and_counts_nothing() {
    let build = json!({"command": "until [ -f go.txt ]; do sleep 0.1; done; echo built",
        "description": "the long build", "run_in_background": true});
    let api = Api::start(vec![
        Reply::tool("Bash", build),
        Reply::text("waiting for the build"),
        Reply::text("built\n<promise>COMPLETE</promise>"),
    ]);
    let Some(session) = session(&api) else { return };

    let mut running = session.spawn_print("/ralph:start build it", &[]);
    running.wait_until(|output| {
        output.system_messages().join("\n").contains("waiting for background work: the long build")
    });
    fs::write(session.project().join("go.txt"), "").unwrap();
    running.wait();

    let record = the_loop(&session);
    assert_eq!((&record["outcome"], &record["iteration"]), (&json!("complete"), &json!(1)));
}

#[test]
fn a_question_stops_the_loop_and_its_answer_reaches_the_next_one() {
    let mut script = replies([working("hm")]);
    script.push(Reply::text("<promise>DECIDE:tabs or spaces?</promise>"));
    script.push(Reply::text("<promise>COMPLETE</promise>"));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };

    let output = session.print("/ralph:start format the code");
    assert!(
        output
            .system_messages()
            .join("\n")
            .contains("Ralph ended (decide): waiting for a decision: tabs or spaces?")
    );
    let file = session.project().join("ralph/decide.txt");
    let refused = session.print("/ralph:start format the code");
    assert!(refused.stdout.contains("unanswered question in"), "{}", refused.stdout);
    fs::write(&file, fs::read_to_string(&file).unwrap() + "Spaces, of course.\n").unwrap();
    session.print("/ralph:start format the code");

    let answered = api.requests().last().unwrap().text();
    assert!(answered.contains("tabs or spaces?") && answered.contains("Spaces, of course."), "{answered}");
    assert!(!file.exists());
}

#[test]
fn a_stop_from_another_terminal_is_told_at_the_end_of_the_turn() {
    let mut script = replies([working("one")]);
    script.extend(["late", "never"].map(Reply::text));
    let api = Api::start_holding(script, 2);
    let Some(session) = session(&api) else { return };

    let running = session.spawn_print("/ralph:start go", &[]);
    api.wait_for_requests(3, SOON);
    ralph(&session, &["stop"]);
    api.answer_all();
    let output = running.wait();

    assert_eq!(api.requests().len(), 3);
    let told = output.system_messages().join("\n");
    assert!(told.contains("Ralph ended (stopped): stopped by you"), "{told}");
}

#[test]
fn the_client_finds_nothing_wrong_with_the_plugin_or_the_repository() {
    let Some(claude) = Client::find() else { return };
    for folder in [plugin(), env!("CARGO_MANIFEST_DIR").as_ref()] {
        let home = tempfile::tempdir().unwrap();
        let validate = std::process::Command::new(&claude)
            .args(["plugin", "validate"])
            .arg(folder)
            .env("HOME", home.path())
            .env("CLAUDE_CONFIG_DIR", home.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&validate.stdout);
        assert!(
            validate.status.success() && text.contains("Validation passed"),
            "{}: {text}",
            folder.display()
        );
        assert!(!text.contains("with warnings"), "{text}");
    }
}

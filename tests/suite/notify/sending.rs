//! Notifications reach the user's command and service, and delay nothing.

use super::{last_request, posts};
use crate::env::{Env, Program, SESSION, wait_until};
use crate::webhook::{Behaviour, Webhook};
use serde_json::json;

fn with_url(service: &Webhook) -> Env {
    let env = Env::without_breaker();
    env.var("RALPH_NOTIFY_URL", &service.url("/hook"));
    env
}

#[test]
fn an_ending_is_sent_to_a_webhook_as_json() {
    let service = Webhook::start();
    let env = with_url(&service);
    env.start("the \"task\"", &["--max-iterations", "1"]);
    env.turn(SESSION, "x").ended("max-iterations");
    let sent = &posts(&service, 1)[0];
    assert_eq!((sent.target.as_str(), sent.method.as_str()), ("/hook", "POST"));
    let body = sent.json();
    assert_eq!((&body["event"], &body["outcome"]), (&json!("ended"), &json!("max-iterations")));
    assert_eq!((&body["session_id"], &body["iteration"]), (&json!(SESSION), &json!(1)));
    assert_eq!(body["project"], env.project.to_str().unwrap());
    assert_eq!(body["title"], "Ralph: iteration limit reached · project");
    assert_eq!(body["run_id"], env.record(SESSION)["run_id"]);
    assert!(last_request(&env).ends_with("ended, to 127.0.0.1: status 200"));
}

#[test]
fn a_service_that_fails_is_tried_once_more() {
    let service = Webhook::start();
    let env = with_url(&service);
    service.then(&[Behaviour::Status(500)]);
    env.start("task", &[]);
    env.turn(SESSION, crate::env::DONE).ended("complete");
    posts(&service, 2);
    assert!(last_request(&env).ends_with("status 200"));
    assert_eq!(service.posts().len(), 2);
    // Refused for good, and not tried again.
    service.then(&[Behaviour::Status(403)]);
    env.start("task", &[]);
    env.turn(SESSION, crate::env::DONE).ended("complete");
    wait_until("the refusal is recorded", || last_request(&env).ends_with("failed: status 403"));
    assert_eq!(service.posts().len(), 3);
    // Failed twice: the third answer is not asked for.
    service.then(&[Behaviour::Status(500), Behaviour::Status(502)]);
    env.start("task", &[]);
    env.turn(SESSION, crate::env::DONE).ended("complete");
    wait_until("the failure is recorded", || last_request(&env).ends_with("failed: status 502"));
    assert_eq!(service.posts().len(), 5);
}

#[test]
fn a_service_that_never_answers_delays_no_hook() {
    let service = Webhook::start();
    let env = with_url(&service);
    env.var("RALPH_NOTIFY_TIMEOUT_SECONDS", "60");
    service.then(&[Behaviour::Hang]);
    env.start("task", &[]);
    env.turn(SESSION, crate::env::DONE).ended("complete");
    // The hook has answered, and the service still has the request.
    posts(&service, 1);
    assert_eq!(service.given_up(), 0, "the hook waited for the service");
}

#[test]
fn a_service_that_never_answers_is_given_up() {
    let service = Webhook::start();
    let env = with_url(&service);
    // Long enough for a sender on a busy machine to send its request before it gives up.
    env.var("RALPH_NOTIFY_TIMEOUT_SECONDS", "5");
    service.then(&[Behaviour::Hang, Behaviour::Hang]);
    env.start("task", &[]);
    env.turn(SESSION, crate::env::DONE).ended("complete");
    wait_until("both attempts were given up", || service.given_up() == 2);
    assert!(last_request(&env).ends_with("failed: no answer within the time limit"));
}

#[test]
fn a_redirect_takes_nothing_elsewhere() {
    let (service, other) = (Webhook::start(), Webhook::start());
    let env = with_url(&service);
    service.then(&[Behaviour::Redirect(other.url("/stolen"))]);
    env.start("task", &[]);
    env.turn(SESSION, crate::env::DONE).ended("complete");
    assert!(last_request(&env).contains("failed: status 302"));
    assert_eq!((service.posts().len(), other.posts().len()), (1, 0));
}

#[test]
fn hostile_words_of_an_agent_stay_in_the_body() {
    let service = Webhook::start();
    let env = with_url(&service);
    env.start("task", &[]);
    let question = "A\u{1b}]0;x\u{7}\r\nX-Evil: yes\r\n\r\nGET / \"; $(touch evil) \u{202e}?";
    env.turn(SESSION, &format!("<promise>DECIDE:{question}</promise>")).ended("decide");
    let sent = &posts(&service, 1)[0];
    assert!(sent.headers.iter().all(|line| !line.to_lowercase().starts_with("x-evil")), "{:?}", sent.headers);
    let body = sent.json();
    let told = body["question"].as_str().unwrap();
    assert!(told.contains("X-Evil: yes") && told.contains("$(touch evil)"), "{told}");
    assert!(!told.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']), "{told:?}");
    assert!(!env.exists("evil"));
}

#[test]
fn a_permission_prompt_is_told_only_while_a_loop_runs() {
    let service = Webhook::start();
    let env = with_url(&service);
    let words = "Claude needs your permission to use Bash";
    let prompts = |kind: &str| {
        let event = env.event(Program::StopHook, SESSION, "Notification");
        event.field("notification_type", kind).field("message", words).run().silent();
    };
    let before = env.snapshot();
    prompts("permission_prompt");
    assert_eq!(env.snapshot(), before, "without a loop nothing is written");
    env.start("task", &[]);
    prompts("idle_prompt");
    prompts("permission_prompt");
    let sent = posts(&service, 1);
    assert_eq!(sent[0].json()["event"], "permission");
    assert_eq!(sent[0].json()["reason"], words);
    let run_id = env.record(SESSION)["run_id"].as_str().unwrap().to_owned();
    let events = std::fs::read_to_string(env.data().join(format!("runs/{run_id}/events.jsonl"))).unwrap();
    assert!(events.lines().any(|line| line.contains(r#""for":"permission""#)), "{events}");
    env.ralph(&["stop", "--session", SESSION]).ok();
    let sent = posts(&service, 2);
    assert_eq!(sent[1].json()["outcome"], "stopped");
    prompts("permission_prompt");
    env.wait_until_nothing_runs();
    // A later event shows that nothing was sent for the prompts without a loop.
    env.start("task", &["--max-iterations", "1"]);
    env.turn(SESSION, "x").ended("max-iterations");
    let events: Vec<_> = posts(&service, 3).iter().map(|sent| sent.json()["event"].clone()).collect();
    assert_eq!(events, ["permission", "ended", "ended"]);
}

#[test]
fn a_loop_without_progress_is_told_once_until_there_is_some() {
    let service = Webhook::start();
    let env = with_url(&service);
    env.start("task", &["--max-idle", "0", "--gap-threshold", "1h"]);
    let turn = |minute: i64| drop(env.at(minute * 60).turn(SESSION, "still looking").continues().to_owned());
    // The first turn has nothing to be compared with.
    [10, 20, 30, 45, 50].into_iter().for_each(turn);
    let sent = posts(&service, 1);
    assert_eq!(sent[0].json()["event"], "no-progress");
    let reason = sent[0].json()["reason"].as_str().unwrap().to_owned();
    assert!(reason == "no progress for 35m" || reason == "no progress for 30m", "{reason}");
    env.write("src.txt", "progress");
    [55, 70, 80, 90].into_iter().for_each(turn);
    // Each is sent by a process of its own.
    posts(&service, 2);
    env.ralph(&["stop", "--session", SESSION]).ok();
    let events: Vec<_> = posts(&service, 3).iter().map(|sent| sent.json()["event"].clone()).collect();
    assert_eq!(events, ["no-progress", "no-progress", "ended"]);
}

#[test]
fn an_address_in_a_clone_is_not_used_before_it_is_trusted() {
    let (service, users) = (Webhook::start(), Webhook::start());
    let env = Env::without_breaker();
    let settings = json!({"notify": {"url": service.url("/theirs"), "answers": service.url("/answers")}});
    env.write(".claude/ralph-config.json", settings.to_string());
    let told = env.ralph(&["notify", "--test"]).ok();
    assert!(told.contains("url        none") && told.contains("Not used: notify.url"), "{told}");
    env.start("task", &["--notify-url", &users.url("/mine")]);
    env.turn(SESSION, "<promise>DECIDE:A or B?</promise>").ended("decide");
    assert_eq!(posts(&users, 1)[0].json()["answer"], json!(null), "no answer is taken from there");
    env.wait_until_nothing_runs();
    assert_eq!((service.posts().len(), service.polls()), (0, 0));
    env.ralph(&["trust"]).ok();
    let told = env.ralph(&["notify", "--test"]).ok();
    assert!(told.contains("url        127.0.0.1, format json\n           ok: status 200"), "{told}");
    assert_eq!((service.posts().len(), service.polls()), (1, 1));
}

#[test]
fn the_test_tries_every_way_and_names_the_format() {
    let service = Webhook::start();
    let env = Env::new();
    let told = env.ralph(&["notify", "--test"]).ok();
    assert!(told.contains("command    none") && told.contains("skipped: stdout is not a terminal"), "{told}");
    assert!(!told.contains('\u{1b}') && !told.contains('\u{7}'), "{told:?}");
    env.var("RALPH_NOTIFY_URL", &service.url("/topic")).var("RALPH_NOTIFY_FORMAT", "ntfy");
    env.var("RALPH_NOTIFY", "[ \"$RALPH_EVENT\" = test ] && touch told");
    let told = env.ralph(&["notify", "--test"]).ok();
    assert!(told.contains("ok: exit code 0") && told.contains("127.0.0.1, format ntfy"), "{told}");
    assert!(env.exists("told"));
    let sent = &service.posts()[0];
    assert_eq!((sent.target.as_str(), &sent.json()["topic"]), ("/", &json!("topic")));
    service.then(&[Behaviour::Status(403)]);
    env.var("RALPH_NOTIFY", "exit 3");
    let run = env.ralph(&["notify", "--test"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.stdout.contains("FAILED: exit code 3") && run.stdout.contains("FAILED: status 403"),
        "{run:?}"
    );
}

#[test]
fn a_bad_address_or_format_is_named_and_sends_nothing() {
    let env = Env::new();
    let told = env.ralph(&["config", "--user", "notify.url", "ntfy.sh/topic"]).fails(64);
    assert!(told.contains("does not begin with https://"), "{told}");
    let told = env.ralph(&["config", "--user", "notify.format", "teams"]).fails(64);
    assert!(told.contains("one of auto, json, ntfy, slack"), "{told}");
    env.var("RALPH_NOTIFY_URL", "https://ntfy.sh/");
    let run = env.ralph(&["notify", "--test"]);
    assert!(run.code == Some(1) && run.stdout.contains("the address has no ntfy topic"), "{run:?}");
}

#[test]
fn a_runner_without_progress_is_told_while_it_still_works() {
    let service = Webhook::start();
    let env = with_url(&service);
    let clock = env.clock();
    let flags = ["--heartbeat-threshold", "0", "--timeout", "0", "x"];
    let run = env.run_with("wait_for go; promise COMPLETE", &flags).spawn();
    env.wait_for_file("n");
    clock.advance(29 * 60);
    clock.wait_until_seen();
    assert_eq!(service.posts().len(), 0);
    clock.advance(2 * 60);
    assert_eq!(posts(&service, 1)[0].json()["event"], "no-progress");
    env.touch("go");
    assert_eq!(run.wait().code, Some(0));
    let events: Vec<_> = posts(&service, 2).iter().map(|sent| sent.json()["event"].clone()).collect();
    assert_eq!(events, ["no-progress", "ended"]);
}

/// The one line of the documentation, with our service in place of the public one.
#[test]
fn the_documented_command_sends_the_report_of_a_run_that_ended() {
    let docs =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/notifications.md")).unwrap();
    let line = docs.lines().find(|line| line.starts_with("ralph config --user notify.command '")).unwrap();
    let command = line.split('\'').nth(1).unwrap();
    let service = Webhook::start();
    let command = command.replace("https://ntfy.sh", &service.base);
    let env = Env::without_breaker();
    if !std::process::Command::new("curl").arg("--version").output().is_ok_and(|run| run.status.success()) {
        return crate::skip::skip("curl is not installed");
    }
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_ralph")).parent().unwrap();
    env.var("PATH", &format!("{}:/usr/bin:/bin", programs.display())).var("RALPH_NOTIFY", &command);
    env.ralph(&["notify", "--test"]).ok();
    env.run_with("work; promise COMPLETE", &["paint the shed"]).run().ok();
    wait_until("the report has come", || !service.uploads().is_empty());
    env.start("mow the lawn", &["--max-iterations", "1"]);
    env.turn(SESSION, "x").ended("max-iterations");
    wait_until("the second report has come", || service.uploads().len() == 2);
    let sent = service.uploads();
    assert!(sent[0].headers.iter().any(|line| line == "Filename: report.html"), "{:?}", sent[0].headers);
    for (page, task, outcome) in
        [(&sent[0], "paint the shed", "Task complete"), (&sent[1], "mow the lawn", "Iteration limit reached")]
    {
        assert!(page.body.contains(task) && page.body.contains(outcome), "{}", page.body);
    }
}

//! A question travels to a notification service, and the user's answer comes back from there.

use super::posts;
use crate::env::{Call, Env, Program, SESSION, wait_until};
use crate::webhook::Webhook;
use serde_json::{Value, json};

/// A project whose user has notifications and answers at one service.
fn asking() -> (Webhook, Env) {
    let (service, env) = (Webhook::start(), Env::without_breaker());
    env.var("RALPH_NOTIFY_URL", &service.url("/alerts")).var("RALPH_NOTIFY_FORMAT", "ntfy");
    env.var("RALPH_NOTIFY_ANSWERS", &service.url("/answers"));
    // Polls continue while nothing else happens.
    env.real_time();
    (service, env)
}

/// Returns the token of the question that was sent last.
fn token(service: &Webhook, count: usize) -> String {
    let body = posts(service, count).pop().unwrap().json();
    let button =
        body["actions"][0]["body"].as_str().unwrap_or_else(|| panic!("no buttons: {body}")).to_owned();
    assert_eq!(body["actions"][0]["url"], service.url("/answers"));
    button.split(' ').next().unwrap().to_owned()
}

fn events(env: &Env, run_id: &Value) -> String {
    let path = env.data().join(format!("runs/{}/events.jsonl", run_id.as_str().unwrap()));
    std::fs::read_to_string(path).unwrap()
}

/// The agent asks in its first iteration, and completes in the second.
const ASKS: &str = "case $n in 1) work; promise 'DECIDE:Tabs or spaces?';; *) work; promise COMPLETE;; esac";

fn run_asking(env: &Env) -> Call {
    env.run_with(ASKS, &["--max-stuck", "0", "x"])
}

#[test]
fn a_runner_waits_for_the_answer_and_continues_with_it() {
    let (service, env) = asking();
    let mut run = run_asking(&env).spawn();
    run.until("waiting for your answer from 127.0.0.1");
    let token = token(&service, 1);
    let shown = env.shown("ralph-run");
    assert_eq!((&shown["state"], &shown["waiting"]["for"]), (&json!("running"), &json!("answer")), "{shown}");
    service.publish("Spaces!");
    service.publish("nottoken00 Tabs, says a stranger");
    let seen = service.polls();
    wait_until("the forged answers were read", || service.polls() > seen + 1);
    assert!(!run.has_printed("Ralph: answer from"), "a forged answer was taken");
    service.publish(&format!("{} Spaces,\u{1b}[31m always", token.to_uppercase()));
    run.until("answer from 127.0.0.1: \"Spaces,[31m always\"");
    let run = run.wait();
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert!(env.prompt(2).contains("Tabs or spaces?") && env.prompt(2).contains("Spaces,[31m always"));
    assert!(!env.exists("ralph/decide.txt") && env.list("ralph/answered").len() == 1);
    let events = events(&env, &env.record("ralph-run")["run_id"]);
    assert!(events.contains(r#""from":"127.0.0.1""#), "{events}");
    assert_eq!(events.matches(r#""event":"ended""#).count(), 1, "{events}");
    let sent: Vec<Value> = posts(&service, 2).iter().map(|sent| sent.json()["title"].clone()).collect();
    assert_eq!(sent, ["Ralph: question · project", "Ralph: task complete · project"]);
}

#[test]
fn an_old_answer_does_not_answer_the_next_question() {
    let (service, env) = asking();
    let script = "work; promise 'DECIDE:Again?'";
    let mut run = env.run_with(script, &["--max-stuck", "0", "x"]).spawn();
    run.until("waiting for your answer");
    let first = token(&service, 1);
    service.publish(&format!("{first} yes"));
    run.until("answer from 127.0.0.1: \"yes\"");
    run.until("waiting for your answer");
    let second = token(&service, 2);
    assert_ne!(first, second);
    service.publish(&format!("{first} yes"));
    let seen = service.polls();
    wait_until("the topic was read again", || service.polls() > seen + 1);
    assert_eq!(run.times_printed("Ralph: answer from"), 1, "an old answer was taken");
    run.signal(rustix::process::Signal::INT);
    let run = run.wait();
    assert_eq!(run.code, Some(3), "the run ends with its question: {}", run.stdout);
    assert!(env.read("ralph/decide.txt").contains("Again?"));
    assert_eq!(env.shown("ralph-run")["outcome"], "decide");
}

#[test]
fn a_waiting_runner_takes_an_answer_from_a_terminal_and_a_stop() {
    let (_service, env) = asking();
    let mut run = run_asking(&env).spawn();
    run.until("waiting for your answer");
    env.ralph(&["answer", "Tabs"]).ok();
    run.until("answer from terminal: \"Tabs\"");
    assert_eq!(run.wait().code, Some(0));
    std::fs::remove_file(env.base.join("n")).unwrap();
    let mut run = run_asking(&env).spawn();
    run.until("waiting for your answer");
    env.ralph(&["stop"]).ok();
    assert_eq!(run.wait().code, Some(130));
    assert_eq!(env.shown("ralph-run")["outcome"], "stopped");
}

#[test]
fn a_waiting_runner_takes_from_the_file_only_what_ralph_answer_gave() {
    let (service, env) = asking();
    let mut run = run_asking(&env).spawn();
    run.until("waiting for your answer");
    let asked = env.read("ralph/decide.txt");
    env.write("ralph/decide.txt", asked.replace("## Answer\n", "## Answer\nforged\n"));
    run.until("is ignored while the run waits: use `ralph answer --replace TEXT`");
    let seen = service.polls();
    wait_until("the topic is still read", || service.polls() > seen + 1);
    assert!(!run.has_printed("Ralph: answer from"), "an edit was taken as the user's answer");
    assert!(env.ralph(&["answer", "Tabs"]).fails(1).contains("already answered: forged"));
    env.ralph(&["answer", "--replace", "Tabs"]).ok();
    run.until("answer from terminal: \"Tabs\"");
    assert_eq!(run.times_printed("is ignored while the run waits"), 1, "said once");
    let run = run.wait();
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert!(!env.prompt(2).contains("forged"));
    let events = events(&env, &env.record("ralph-run")["run_id"]);
    assert_eq!(events.matches(r#""from":"terminal""#).count(), 1, "{events}");

    // The user's answer from elsewhere takes the place of the edit.
    std::fs::remove_file(env.base.join("n")).unwrap();
    let mut run = run_asking(&env).spawn();
    run.until("waiting for your answer");
    let asked = env.read("ralph/decide.txt");
    env.write("ralph/decide.txt", asked.replace("## Answer\n", "## Answer\nforged\n"));
    run.until("is ignored while the run waits");
    service.publish(&format!("{} Spaces", token(&service, 3)));
    run.until("answer from 127.0.0.1: \"Spaces\"");
    assert_eq!(run.wait().code, Some(0));
    assert!(!env.prompt(2).contains("forged"));
}

#[test]
fn a_topic_that_never_answers_holds_up_neither_a_stop_nor_an_answer_from_a_terminal() {
    let (service, env) = asking();
    service.hang_reads();
    // Longer than any test waits.
    env.var("RALPH_NOTIFY_TIMEOUT_SECONDS", "3600");
    let mut run = run_asking(&env).spawn();
    run.until("waiting for your answer");
    wait_until("the topic was asked", || service.polls() > 0);
    env.ralph(&["stop"]).ok();
    assert_eq!(run.wait().code, Some(130));
    let (service, env) = asking();
    service.hang_reads();
    env.var("RALPH_NOTIFY_TIMEOUT_SECONDS", "1");
    let mut run = run_asking(&env).spawn();
    run.until("could not read the answers at 127.0.0.1: no answer within the time limit; still trying");
    env.ralph(&["answer", "Tabs"]).ok();
    run.until("answer from terminal: \"Tabs\"");
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn a_wait_is_bounded_and_a_killed_runner_leaves_the_question() {
    let (service, env) = asking();
    env.var("RALPH_NOTIFY_ANSWER_HOURS", "2");
    let clock = env.clock();
    let mut run = run_asking(&env).spawn();
    run.until("waiting for your answer");
    clock.advance(2 * 3600 + 1);
    let run = run.wait();
    assert_eq!(run.code, Some(3), "{}", run.stdout);
    let titles: Vec<Value> = posts(&service, 2).iter().map(|sent| sent.json()["title"].clone()).collect();
    assert_eq!(titles, ["Ralph: question · project", "Ralph: waiting for a decision · project"]);
    assert_eq!(env.list("ralph/answered"), Vec::<String>::new(), "the question was written once");
    env.ralph(&["answer", "Tabs"]).ok();
    std::fs::remove_file(env.base.join("n")).unwrap();
    let mut run = env.run_with(ASKS, &["--max-stuck", "0", "--new", "y"]).spawn();
    run.until("waiting for your answer");
    run.kill();
    let told = env.ralph(&["run"]).fails(3);
    assert!(told.contains("Tabs or spaces?"), "{told}");
    assert_eq!(env.shown("ralph-run")["outcome"], "decide");
}

#[test]
fn without_answers_a_question_ends_the_run_at_once() {
    let env = Env::without_breaker();
    let run = run_asking(&env).run();
    assert_eq!(run.code, Some(3), "{}", run.stdout);
    assert!(!run.stdout.contains("waiting for your answer"));
    assert!(!env.data().join("replies").exists());
}

/// A session whose loop has asked, and the payload of its last Stop.
fn session_asks(env: &Env) -> String {
    env.start("task", &[]);
    let event = env.at(10).stop(SESSION).says("<promise>DECIDE:Tabs or spaces?</promise>");
    let payload = event.payload();
    event.run().ended("decide");
    payload
}

fn waker(env: &Env, payload: String) -> Call {
    env.call(Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", "cli").stdin(payload)
}

#[test]
fn a_session_is_woken_by_the_answer() {
    let (service, env) = asking();
    let payload = session_asks(&env);
    let token = token(&service, 1);
    let waiting = waker(&env, payload.clone()).spawn();
    wait_until("the topic is read", || service.polls() > 0);
    // Another turn of the session brings another waker, which leaves the watch to the first.
    let second = waker(&env, payload).run();
    assert_eq!((second.code, second.stderr.as_str()), (Some(0), ""));
    service.publish(&format!("{token}: Spaces"));
    let woken = waiting.wait();
    assert_eq!((woken.code, woken.stdout.as_str()), (Some(2), ""));
    assert!(
        woken.stderr.contains("through 127.0.0.1") && woken.stderr.contains("Spaces"),
        "{}",
        woken.stderr
    );
    assert_eq!(env.record(SESSION)["state"], "running");
    let answer = env.at(30).turn(SESSION, "on it");
    answer.continues();
    let told = answer.message.unwrap();
    assert!(told.contains("answer from 127.0.0.1: \"Spaces\""), "{told}");
    assert!(events(&env, &env.record(SESSION)["run_id"]).contains(r#""from":"127.0.0.1""#));
}

#[test]
fn a_session_answered_by_its_user_is_not_woken_again() {
    let (service, env) = asking();
    let payload = session_asks(&env);
    let token = token(&service, 1);
    let waiting = waker(&env, payload.clone()).spawn();
    wait_until("the topic is read", || service.polls() > 0);
    env.at(20).types(SESSION, "answer", "Tabs");
    let left = waiting.wait();
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""));
    service.publish(&format!("{token} Spaces"));
    env.at(30).turn(SESSION, "<promise>DECIDE:And now?</promise>").ended("decide");
    let waiting = waker(&env, payload).spawn();
    let seen = service.polls();
    // The second read is asked for when the first was taken.
    wait_until("the topic is read again", || service.polls() > seen + 1);
    drop(waiting);
    assert_eq!(env.record(SESSION)["outcome"], "decide", "an old answer resumed the loop");
}

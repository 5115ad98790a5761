//! What a person is told outside the session: each notification in each form, `ralph notify`, and answers from elsewhere.

use super::{Page, replace, start};
use crate::env::{DONE, Env, SESSION, wait_until};
use crate::notify::{last_request, posts};
use crate::webhook::{Behaviour, Webhook};
use ralph::core::decide::turn::CheckResult;
use ralph::core::event::notice::terminal::{Terminal, sequence};
use ralph::core::event::notice::{Notice, ReplyTo, body};
use ralph::core::outcome::{OUTCOMES, Outcome};
use ralph::core::record::StoredLoop;
use ralph::core::time::Stamp;

#[test]
fn bodies() {
    let mut page = Page::new();
    let env = Env::new();
    let now = Stamp(crate::env::T0 * 1000);
    let run = |outcome: Option<Outcome>, reason: &str| StoredLoop {
        run_id: "0123456789abcdef0123456789abcdef".into(),
        task: "make the suite green".into(),
        iteration: 7,
        outcome,
        reason: Some(reason.into()),
        ..StoredLoop::default()
    };
    let check = |command: &str, passed: bool| CheckResult {
        command: command.into(),
        passed,
        exit_code: Some(if passed { 0 } else { 3 }),
        ..CheckResult::default()
    };
    let reply = || Some(ReplyTo { topic: "https://ntfy.example/answers".into(), token: "k7x2".into() });
    let complete = StoredLoop {
        checks: vec![check("cargo test", true)],
        ..run(Some(Outcome::Complete), "the agent promised COMPLETE, and `cargo test` passed")
    };
    let failed = StoredLoop {
        checks: vec![check("cargo test", false)],
        ..run(Some(Outcome::MaxIterations), "50 of 50 iterations done")
    };
    let decide = run(Some(Outcome::Decide), "Tabs or spaces?");
    let blocked = run(Some(Outcome::Blocked), "the key for staging is missing");
    let running = run(None, "");
    let project = "/home/sam/shop";
    for notice in [
        Notice::ended(&complete, project, now),
        Notice::ended(&failed, project, now),
        Notice::ended(&run(Some(Outcome::Stopped), "`ralph stop` was run"), project, now),
        Notice::question(&decide, project, None, now),
        Notice::question(&decide, project, reply(), now),
        Notice::question(&blocked, project, reply(), now),
        Notice::permission(&running, project, "Bash(npm publish) needs your permission", now),
        Notice::permission(&running, project, "", now),
        Notice::no_progress(&running, project, 35 * 60_000, now),
        Notice::outage(&running, project, "server_error", 6 * 60_000, now),
        Notice::usage_limit(&running, project, "limit resets 8:30am (UTC)", now),
        Notice::full_context(&running, project, now),
        Notice::test(project, now),
    ] {
        let notice = notice.in_session(SESSION);
        let title = notice.title.clone();
        let mut text = String::new();
        for (format, url) in [
            ("json", "https://hooks.example/ralph"),
            ("ntfy", "https://ntfy.sh/topic"),
            ("slack", "https://hooks.slack.com/services/a/b"),
        ] {
            let request = body::request(&notice, url, "auto").unwrap();
            assert_eq!(request.format.name(), format);
            let body = serde_json::to_string_pretty(&request.body).unwrap();
            text.push_str(&format!("--- {format}\n{body}\n"));
        }
        let terminal = Terminal { name: "xterm-256color".into(), ..Terminal::default() };
        let shown = sequence(&notice, &terminal).escape_default().to_string();
        page.section(&env, &title, &format!("{text}--- terminal\n{shown}"));
    }
    let titles = OUTCOMES.map(|(outcome, ..)| Notice::ended(&run(Some(outcome), ""), project, now).title);
    page.section(&env, "the titles of all outcomes", &titles.join("\n"));
    page.check("notices");
}

#[test]
fn the_command() {
    let mut page = Page::new();
    let env = Env::new();
    page.ralph(&env, &["notify"]).ralph(&env, &["notify", "--test"]).ralph(&env, &["notify", "--json"]);
    let service = Webhook::start();
    env.var("RALPH_NOTIFY_URL", &service.url("/topic")).var("RALPH_NOTIFY_FORMAT", "ntfy");
    env.var("RALPH_NOTIFY_ANSWERS", &service.url("/answers")).var("RALPH_NOTIFY", "true");
    page.ralph(&env, &["notify", "--test"]).ralph(&env, &["notify"]);
    service.then(&[Behaviour::Status(403)]);
    env.var("RALPH_NOTIFY", "echo no network >&2; exit 3");
    page.ralph(&env, &["notify", "--test"]).ralph(&env, &["notify"]);
    env.start("make the suite green", &[]);
    env.turn(SESSION, DONE).ended("complete");
    last_request(&env);
    page.run(&env, "ralph notify: after an ending", &env.ralph(&["notify"]));
    let env = Env::new();
    for (name, value) in [
        ("notify.url", "ntfy.sh/topic"),
        ("notify.url", "https://user:secret@ntfy.sh/topic"),
        ("notify.url", "http://ntfy.sh/topic"),
        ("notify.answers", "ntfy.sh/answers"),
        ("notify.format", "teams"),
        ("notify.timeout_seconds", "soon"),
    ] {
        page.ralph(&env, &["config", "--user", name, value]);
    }
    let env = Env::new();
    env.var("RALPH_NOTIFY_URL", "https://ntfy.sh/");
    page.run(&env, "ralph notify --test: no topic", &env.ralph(&["notify", "--test"]));
    let env = Env::new();
    let settings = serde_json::json!({"notify": {"url": "https://ntfy.sh/theirs", "command": "touch evil"}});
    env.write(".claude/ralph-config.json", settings.to_string());
    page.run(&env, "ralph notify: without trust", &env.ralph(&["notify"]));
    page.check("notify");
}

/// The agent asks in its first iteration, and completes in the second.
const ASKS: &str = "case $n in 1) work; promise 'DECIDE:Tabs or spaces?';; *) work; promise COMPLETE;; esac";

#[test]
fn answers_from_elsewhere() {
    let mut page = Page::new();
    let service = Webhook::start();
    let env = Env::without_breaker();
    env.var("RALPH_NOTIFY_URL", &service.url("/alerts")).var("RALPH_NOTIFY_FORMAT", "ntfy");
    env.var("RALPH_NOTIFY_ANSWERS", &service.url("/answers")).real_time();
    let token = |count: usize| {
        let body = posts(&service, count).pop().unwrap().json();
        body["actions"][0]["body"].as_str().unwrap().split(' ').next().unwrap().to_owned()
    };
    let mut run = env.run_with(ASKS, &["--max-stuck", "0", "make the suite green"]).spawn();
    run.until("waiting for your answer");
    let first = token(1);
    let status = env.ralph(&["status"]).ok();
    let asked = env.read("ralph/decide.txt");
    env.write("ralph/decide.txt", asked.replace("## Answer\n", "## Answer\nforged\n"));
    run.until("is ignored while the run waits");
    service.publish(&format!("{first} Spaces"));
    let run = run.wait();
    page.section(&env, "ralph status: waiting for an answer", &status);
    page.run(&env, "ralph run: an answer from a notification service", &run);
    let answered = format!("ralph/answered/{}", env.list("ralph/answered")[0]);
    page.section(&env, "ralph/answered", &env.read(&answered));

    let env = Env::new();
    env.var("RALPH_NOTIFY_URL", &service.url("/alerts")).var("RALPH_NOTIFY_FORMAT", "ntfy");
    env.var("RALPH_NOTIFY_ANSWERS", &service.url("/answers")).real_time();
    start(&env, &[]);
    let event = env.at(10).stop(SESSION).says("<promise>DECIDE:Tabs or spaces?</promise>");
    let payload = event.payload();
    let sent = posts(&service, 2).len();
    page.answer(&env, "a question in a session", &event.run());
    let second = token(sent + 1);
    let call = env.call(crate::env::Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", "cli");
    let seen = service.polls();
    let waiting = call.stdin(payload).spawn();
    wait_until("the topic is read", || service.polls() > seen);
    service.publish(&format!("{second}: Spaces"));
    page.run(&env, "the agent is woken", &waiting.wait());
    page.answer(&env, "its next turn", &env.at(30).turn(SESSION, "on it"));
    without_times(page).check("answers_from_elsewhere");
}

/// Time passes while the topic is read.
fn without_times(mut page: Page) -> Page {
    for (pattern, by) in [
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "[time]"),
        (r"(Runtime: |Wall: |runtime )[0-9.]+[hms]", "$1[time]"),
        (r"[0-9]+[hms]( [0-9]+[ms])? (left|ago)", "[time] $2"),
        (r"frees up in [0-9hms ]+", "frees up in [time]"),
    ] {
        page.text = replace(&page.text, pattern, by);
    }
    page
}

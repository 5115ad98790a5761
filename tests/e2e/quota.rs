//! The plan's usage level and a cost limit in the real client: what it tells its status line and its stream, and what
//! the loop does with that. Ralph's clock is moved past the reset, so that no test waits for it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::client::Session;
use crate::clock::{Clock, wait_until};
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, plugin, status, the_loop, with_running_clock, working};
use crate::runner::{DONE, SONNET, in_an_hour, session, start};
use crate::status_line::with_status_line;
use crate::tmux::Screen;

const HOUR: i64 = 3600;
const UNIFIED: &str = "anthropic-ratelimit-unified-";

/// Says that so much of the five hours is used.
fn at_level(reply: Reply, used: &str, resets: i64) -> Reply {
    let resets = resets.to_string();
    let unified = |name: &str| format!("{UNIFIED}{name}");
    let status = if used == "1" { "rejected" } else { "allowed" };
    [
        ("status", status),
        ("reset", resets.as_str()),
        ("representative-claim", "five_hour"),
        ("5h-status", status),
        ("5h-reset", resets.as_str()),
        ("5h-utilization", used),
        ("overage-status", "rejected"),
    ]
    .into_iter()
    .fold(reply, |reply, (name, value)| reply.header(&unified(name), value))
}

/// A user of a plan, whose Ralph has a clock that the test can set.
fn subscriber(api: &Api) -> Option<(Session, Clock)> {
    let session = session(api)?;
    let session = session.without("ANTHROPIC_API_KEY").env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-dummy");
    Some(with_running_clock(session))
}

#[test]
fn a_run_passes_50_92_and_100_percent_of_the_plan() {
    let (resets, moment) = in_an_hour();
    let level = |used: &'static str, resets, word| working(word).map(|reply| at_level(reply, used, resets));
    let later = resets + 5 * HOUR;
    let before = [level("0.5", resets, "one"), level("0.92", resets, "two"), level("0.93", resets, "landed")];
    let mut script = before.concat();
    script.push(at_level(Reply::error(429), "1", later));
    script.extend(level("0.02", later, DONE));
    let api = Api::start(script);
    let Some((session, clock)) = subscriber(&api) else { return };

    let mut running = start(&session, &["--land-at", "90", "--max-stuck", "0"]);
    running.wait_until(|output| output.stdout.contains("93% of the 5-hour limit"));
    wait_until("the run waits", || the_loop(&session)["waiting"]["for"] == "usage-limit");
    let record = the_loop(&session);
    assert_eq!((&record["iteration"], &record["quota"]["source"]), (&3.into(), &"stream".into()), "{record}");
    assert_eq!(record["quota"]["windows"][0]["percent"], 93.0, "{record}");
    assert!(api.requests()[4].text().contains("92% of the 5-hour limit"), "the agent is told to land");
    assert!(
        record["waiting"]["until"].as_str().unwrap().replace('T', " ").starts_with(&moment[..16]),
        "{record}"
    );

    clock.advance(HOUR + 60);
    running.wait_until(|output| output.stdout.contains("usage limit reached; continuing in 4h 5"));
    clock.advance(5 * HOUR);
    let output = running.wait();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(the_loop(&session)["iteration"], 4, "neither wait is an iteration");
}

/// A model that has used so much of the five hours since its first reply, and answers one.
fn at_92_percent() -> Api {
    let (resets, _) = in_an_hour();
    let replies = (0..8).flat_map(|_| working("a part is done")).map(|reply| at_level(reply, "0.92", resets));
    Api::start_holding(replies.collect(), 1)
}

/// Lets the agent land and the loop wait. The level is told before the turn ends, and a moment passes between two turns.
fn land(api: &Api, session: &Session, clock: &Clock) {
    let figures = || files_below(&session.data_dir().join("figures")).collect::<String>();
    wait_until("the client tells the level", || figures().contains("\"percent\":92"));
    api.answer(2);
    api.wait_for_requests(3, SOON);
    assert!(api.requests()[2].text().contains("92% of the 5-hour limit"), "the agent was told to land");
    clock.advance(10);
    api.answer_all();
    let waits = || status(session)["loops"][0]["waiting"]["for"] == "usage-limit";
    wait_until("the loop waits for the reset", waits);
}

#[test]
fn a_session_lands_waits_and_is_woken_after_the_reset() {
    let api = at_92_percent();
    let Some((session, clock)) = subscriber(&api) else { return };
    if !Screen::available() {
        return;
    }
    let session = session.plugin(plugin()).allow("Bash");
    with_status_line(&session);
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --land-at 90 --max-iterations 4");
    land(&api, &session, &clock);
    let record = the_loop(&session);
    assert!(["status-line", "module"].contains(&record["quota"]["source"].as_str().unwrap()), "{record}");
    assert_eq!(record["quota"]["windows"][0]["percent"], 92.0, "{record}");
    screen.wait_for("92% of the 5-hour limit", SOON);

    let asked = api.requests().len();
    clock.advance(HOUR + 60);
    api.wait_for_requests(asked + 1, SOON);
    screen.wait_for("Ralph ended (max-iterations)", SOON);
    assert_eq!(the_loop(&session)["iteration"], 4);
}

#[test]
fn a_printed_session_that_has_landed_waits_for_the_reset() {
    let api = at_92_percent();
    let Some((session, clock)) = subscriber(&api) else { return };
    let session = session.plugin(plugin()).allow("Bash");
    let mut running = session.spawn_print("/ralph:start keep going --land-at 90 --max-iterations 4", &[]);
    land(&api, &session, &clock);
    assert!(!running.has_ended());
    clock.advance(HOUR + 60);
    wait_until("the loop ends", || the_loop(&session)["outcome"] == "max-iterations");
    assert_eq!(the_loop(&session)["iteration"], 4);
    running.kill();
}

/// The client asks what to do about a limit that lasts for days, and stays idle after its reset.
#[test]
fn a_session_at_the_weekly_limit_is_notified_and_woken_after_the_reset() {
    let days = 3 * 24 * HOUR;
    let resets = (in_an_hour().0 + days).to_string();
    let header = |reply: Reply, name: &str, value: &str| reply.header(&format!("{UNIFIED}{name}"), value);
    let limit = [
        ("status", "rejected"),
        ("reset", &resets),
        ("representative-claim", "seven_day"),
        ("7d-status", "rejected"),
        ("7d-reset", &resets),
        ("7d-utilization", "1"),
        ("overage-status", "rejected"),
    ];
    let limit = limit.iter().fold(Reply::error(429), |reply, (name, value)| header(reply, name, value));
    let script = [working("a part is done").to_vec(), vec![limit], working(DONE).to_vec()].concat();
    let api = Api::start(script);
    let Some((session, clock)) = subscriber(&api) else { return };
    if !Screen::available() {
        return;
    }
    let session = session.plugin(plugin()).allow("Bash");
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --notify 'echo $RALPH_EVENT >> told'");
    screen.wait_for("What do you want to do?", SOON);
    let told = || fs::read_to_string(session.project().join("told")).unwrap_or_default();
    wait_until("the user is notified", || told() == "usage-limit\n");
    assert_eq!(status(&session)["loops"][0]["state"], "running");
    screen.key("Enter");
    let waits = || status(&session)["loops"][0]["waiting"]["for"] == "usage-limit";
    wait_until("the loop waits for the reset", waits);

    clock.advance(days + 2 * HOUR);
    screen.wait_for("Ralph ended (complete)", SOON);
    assert_eq!(the_loop(&session)["iteration"], 2, "the wait is no iteration");
}

#[test]
fn a_cost_limit_ends_a_live_session() {
    let usage = serde_json::json!({"input_tokens": 100_000, "output_tokens": 1000});
    let [tool, word] = working("a part is done").map(|reply| reply.usage(usage.clone()));
    let api = Api::start((0..100).map(|n| if n % 2 == 0 { tool.clone() } else { word.clone() }).collect());
    let Some(session) = session(&api) else { return };
    if !Screen::available() {
        return;
    }
    let session = session.plugin(plugin()).allow("Bash").arg("--model").arg(SONNET);
    with_status_line(&session);
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --max-cost 1 --max-iterations 50");
    screen.wait_for("Ralph ended (max-cost)", SOON);
    let record = the_loop(&session);
    assert!(
        ["status-line", "module"].contains(&record["usage"]["cost_source"].as_str().unwrap()),
        "{record}"
    );
    let cost = record["usage"]["cost_usd"].as_f64().unwrap();
    // A scripted model answers at once, so on a busy machine the client's figure comes some turns later.
    assert!(cost >= 1.0, "{record}");
}

/// Nothing but the plugin: its module tells the level and compacts, which takes the model longer than the loop's waker
/// waits in an idle session.
#[test]
fn a_full_context_is_compacted_and_the_agent_continues_from_its_handover() {
    let full = serde_json::json!({"input_tokens": 120_000, "output_tokens": 100});
    let turn = || working("a part is done").map(|reply| reply.usage(full.clone()));
    let summary = Reply::text("<summary>The session so far.</summary>").delay(Duration::from_secs(5));
    let script = [turn(), turn()].concat().into_iter().chain([summary, Reply::text(DONE)]);
    let api = Api::start_holding(script.collect(), 1);
    let Some(session) = session(&api) else { return };
    if !Screen::available() {
        return;
    }
    let session = session.plugin(plugin()).allow("Bash").arg("--model").arg(SONNET);
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --max-context 50 --max-iterations 9");
    let told = || {
        files_below(&session.data_dir().join("figures")).any(|text| text.contains("\"context_percent\":60"))
    };
    wait_until("the module tells the level", told);
    api.answer_all();
    screen.wait_for("compacting the context, then continuing", SOON);
    screen.wait_for("Ralph ended (complete)", SOON);
    let requests = api.requests();
    assert!(requests[2].text().contains("Write ralph/handover.md"), "{}", requests[2].text());
    let last = requests.last().unwrap().text();
    assert!(last.contains("Your handover from the earlier one is ralph/handover.md"), "{last}");
    assert!(last.contains("The session so far."), "{last}");
    assert!(!last.contains("Bash completed"), "the old context is gone: {last}");
    assert_eq!(requests.len(), 6, "the agent is not woken while the client compacts");
    assert!(!screen.text().contains("type /compact"), "{}", screen.text());
}

fn files_below(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_to_string(entry.path()).ok())
}

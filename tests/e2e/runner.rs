//! `ralph run` with the real client: iterations, a service that fails, limits, silence, cost, and our own plugin in
//! the client it drives.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::client::{Client, Session, runs};
use crate::clock::{Clock, wait_until};
use crate::messages_api::{Api, Reply};
use crate::ralph::{plugin, ralph, the_loop, with_clock_at};
use crate::run::{Output, Running};
use crate::skip::skip;

pub const DONE: &str = "All of it is there.\n\n<promise>COMPLETE</promise>";
/// Its price is known to the client.
pub const SONNET: &str = "claude-sonnet-4-5";
const DEADLINE: Duration = Duration::from_secs(300);

/// A user whose project is a repository with one commit, or nothing where there is no client. The client does not
/// try again by itself: waiting is the runner's part here.
pub fn session(api: &Api) -> Option<Session> {
    let session = Session::new(&Client::find()?, api).env("CLAUDE_CODE_MAX_RETRIES", "0");
    if !runs(Path::new("git"), "--version") {
        skip("git is not installed");
        return None;
    }
    let identity = "[user]\nname = t\nemail = t@example.org\n[init]\ndefaultBranch = main\n";
    fs::write(session.home().join(".gitconfig"), identity).unwrap();
    git(&session, &["init", "-q"]);
    git(&session, &["commit", "-q", "--allow-empty", "-m", "begin"]);
    Some(session)
}

pub fn git(session: &Session, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(args).env_clear().envs(session.variables()).current_dir(session.project());
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Starts `ralph run` as the session's user. What the session has for its client is passed on.
pub fn start(session: &Session, args: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
    command.args(["run", "make it", "--delay", "0", "--allowed-tools", "Bash", "--claude"]);
    command.arg(session.program());
    for arg in session.args() {
        command.arg("--claude-arg").arg(arg);
    }
    command.args(args).env_clear().envs(session.variables()).current_dir(session.project());
    Running::start(command, session.root(), DEADLINE)
}

fn run(session: &Session, args: &[&str]) -> Output {
    start(session, args).wait()
}

/// Runs a command line of the session's user, with `ralph` and the programs in `bin` on the path.
pub fn shell(session: &Session, bin: &Path, line: &str) -> Running {
    let built = Path::new(env!("CARGO_BIN_EXE_ralph")).parent().unwrap();
    let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", bin.display(), built.display());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).env_clear().envs(session.variables()).env("PATH", path);
    command.current_dir(session.project());
    Running::start(command, session.root(), DEADLINE)
}

pub fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "a step"}))
}

/// An iteration that brings a commit.
fn step(word: &str) -> [Reply; 2] {
    [bash("git commit -q --allow-empty -m step"), Reply::text(word)]
}

/// The rows of `summary.csv`, by column.
fn rows(session: &Session) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(session.project().join("ralph/logs/summary.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let header: Vec<String> = lines.next().expect("a header").collect();
    lines.map(|row| header.iter().cloned().zip(row).collect()).collect()
}

pub fn column(session: &Session, name: &str) -> Vec<String> {
    rows(session).iter().map(|row| row[name].clone()).collect()
}

/// What the client printed in an iteration.
fn events(session: &Session, iteration: u32) -> Vec<Value> {
    let log = session.project().join(format!("ralph/logs/iteration-{iteration:03}.log"));
    let text = fs::read_to_string(log).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn event(session: &Session, iteration: u32, kind: &str) -> Value {
    let mut events = events(session, iteration).into_iter().rev();
    events.find(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {iteration}"))
}

/// What the client says of itself at the beginning.
fn init(session: &Session, iteration: u32) -> Value {
    let init = events(session, iteration).into_iter().find(|event| event["subtype"] == "init");
    init.unwrap_or_else(|| panic!("no init in {iteration}"))
}

fn tokens(result: &Value) -> u64 {
    ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]
        .iter()
        .filter_map(|name| result["usage"][name].as_u64())
        .sum()
}

/// Processes of this session's user.
fn left_over(session: &Session) -> Vec<String> {
    let home = format!("HOME={}", session.home().display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ours = processes.filter(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    });
    ours.map(|process| {
        let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ")
    })
    .filter(|words| !words.is_empty())
    .collect()
}

#[test]
fn a_recommendation_and_an_ignored_signal_reach_the_next_iteration() {
    let block =
        "---RALPH_STATUS---\nSTATUS: COMPLETE\nRECOMMENDATION: write the parser next\n---END_RALPH_STATUS---";
    let mut script: Vec<_> = step(block).into();
    script.push(Reply::text(DONE));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };

    let output = run(&session, &[]);

    assert_eq!(output.code, Some(0), "{output:?}");
    let why = "STATUS: COMPLETE alone does not end the loop";
    assert!(output.stdout.contains(&format!("signal ignored: {why}")), "{output:?}");
    let prompt = api.requests().last().unwrap().last_user_text();
    assert!(prompt.contains(why) && prompt.contains("write the parser next"), "{prompt}");
}

#[test]
fn three_iterations_lead_to_complete_each_fresh_and_each_accounted_for() {
    let mut script: Vec<_> = step("the first step is done").map(priced).into();
    script.extend(step("the second step is done"));
    script.push(priced(Reply::text(DONE)));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };

    let output = run(&session, &["--model", SONNET, "--permission-mode", "acceptEdits"]);

    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("the first step is done"), "{output:?}");
    assert!(output.stdout.contains("  > Bash git commit"), "{output:?}");
    assert!(output.stdout.contains("COMPLETE (code 0)"), "{output:?}");
    let requests = api.requests();
    assert_eq!(requests.len(), 5);
    for first in [0, 2, 4] {
        let text = requests[first].text();
        assert!(text.contains("You are in a Ralph loop") && text.contains("make it"), "{text}");
        assert!(!text.contains("step is done"), "an iteration remembers nothing: {text}");
    }
    let init = init(&session, 1);
    assert_eq!(init["permissionMode"], "acceptEdits", "{init}");
    assert!(init["model"].as_str().unwrap_or_default().contains(SONNET), "{init}");

    assert_eq!(column(&session, "iteration"), ["1", "2", "3"]);
    assert_eq!(column(&session, "outcome"), ["ok", "ok", "complete"]);
    let rows = rows(&session);
    let head = git(&session, &["rev-parse", "HEAD"]);
    assert!(rows[1]["commit_hash"].len() == 7 && head.starts_with(&rows[1]["commit_hash"]), "{rows:?}");
    let mut cost = 0.0;
    for (row, iteration) in rows.iter().zip(1..) {
        let result = event(&session, iteration, "result");
        let told = result["total_cost_usd"].as_f64().unwrap();
        assert_eq!(row["cost_usd"], format!("{told:.4}"), "{rows:?}");
        assert_eq!(row["tokens"], tokens(&result).to_string(), "{rows:?}");
        cost += told;
    }
    assert!(cost > 0.5 && rows[0]["tokens"] == "202000", "{rows:?}");
    assert!(output.stdout.contains(&format!(" · ${cost:.2}")), "{output:?}");
    let record = the_loop(&session);
    assert_eq!(
        (&record["engine"], &record["outcome"], &record["iteration"]),
        (&json!("runner"), &json!("complete"), &json!(3))
    );
}

#[test]
fn a_service_that_fails_once_costs_no_iteration() {
    for (status, said) in [(500, "the API failed (500)"), (429, "the API limits requests (429)")] {
        let worked = priced(bash("true"));
        let api = Api::start(vec![worked, Reply::error(status), priced(Reply::text(DONE))]);
        let Some(session) = session(&api) else { return };

        let (session, clock) = with_clock(session);
        let mut running = start(&session, &["--model", SONNET]);
        running.wait_until(|output| output.stdout.contains(&format!("Ralph: {said}; continuing in ")));
        let tries = || running.so_far().stdout.matches("── iteration 1 of ").count();
        clock.advance_until(1, "the second try", || tries() == 2);
        let output = running.wait();

        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(api.requests().len(), 3);
        assert_eq!(column(&session, "iteration"), ["1"]);
        assert!(output.stdout.contains("202k tokens · $0.63"), "paid for all the same: {output:?}");
        assert_eq!(column(&session, "outcome"), ["complete"]);
        let results = events(&session, 1).into_iter().filter(|event| event["type"] == "result");
        assert_eq!(results.count(), 2, "the log holds both attempts");
    }
}

#[test]
fn a_client_that_is_not_logged_in_ends_the_run_with_a_hint() {
    let api = Api::start(vec![Reply::error(401)]);
    let Some(session) = session(&api) else { return };

    let output = run(&session, &[]);

    assert_eq!(output.code, Some(70), "{output:?}");
    assert!(output.stdout.contains("not logged in: start the agent program once"), "{output:?}");
    assert_eq!(column(&session, "outcome"), ["error"]);
}

/// A user of a plan whose limit is reached until then.
fn limited(resets: i64) -> (Api, Option<Session>) {
    limited_by("five_hour", Some(resets))
}

/// The same for one of the plan's limits, whose reset may not be stated.
pub fn limited_by(claim: &str, resets: Option<i64>) -> (Api, Option<Session>) {
    let mut limit = Reply::error(429)
        .header("anthropic-ratelimit-unified-status", "rejected")
        .header("anthropic-ratelimit-unified-representative-claim", claim)
        .header("anthropic-ratelimit-unified-overage-status", "rejected");
    if let Some(resets) = resets {
        limit = limit.header("anthropic-ratelimit-unified-reset", &resets.to_string());
    }
    let api = Api::start(vec![limit]);
    let session = session(&api).map(|session| {
        session.without("ANTHROPIC_API_KEY").env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-dummy")
    });
    (api, session)
}

pub fn in_an_hour() -> (i64, String) {
    let moment = chrono::DateTime::<chrono::Utc>::from(SystemTime::now() + Duration::from_secs(3600));
    (moment.timestamp(), moment.format("%Y-%m-%d %H:%M UTC").to_string())
}

#[test]
fn a_usage_limit_stops_the_run_where_it_was_told_to_and_says_when_it_resets() {
    let (resets, moment) = in_an_hour();
    let (_api, Some(session)) = limited(resets) else { return };

    let output = run(&session, &["--on-limit", "stop"]);

    assert_eq!(output.code, Some(5), "{output:?}");
    assert!(output.stdout.contains("USAGE-LIMIT (code 5)"), "{output:?}");
    assert!(output.stdout.contains(&format!("usage limit reached, resets at {moment}")), "{output:?}");
    let record = the_loop(&session);
    assert!(record["reason"].as_str().unwrap().contains(&moment), "{record}");
}

#[test]
fn a_wait_for_the_limit_to_reset_is_no_iteration_and_ends_with_ralph_stop() {
    let (resets, _) = in_an_hour();
    let (api, Some(session)) = limited(resets) else { return };
    let (session, _clock) = with_clock_at(session, resets - 3600);

    let mut running = start(&session, &[]);
    running.wait_until(|output| output.stdout.contains("Ralph: usage limit reached; continuing in 1h"));
    assert_eq!(the_loop(&session)["iteration"], 0);
    ralph(&session, &["stop"]);
    let output = running.wait();

    assert_eq!(output.code, Some(130), "{output:?}");
    assert!(output.stdout.contains("STOPPED"), "{output:?}");
    assert_eq!(api.requests().len(), 1);
}

/// A minute of silence is a stall.
const HEARTBEAT: [&str; 6] =
    ["--heartbeat-interval", "30", "--heartbeat-threshold", "2", "--startup-grace-period", "0"];

/// Returns the session with a clock that stands still unless the test moves it.
fn with_clock(session: Session) -> (Session, Clock) {
    with_clock_at(session, 1_794_816_000)
}

/// Lets the time pass until a stall is detected, and on until the agent has ended.
fn let_it_stall(running: &mut Running, clock: &Clock, iteration: u32) {
    clock.advance_slowly_until("a stall", || running.so_far().stderr.contains("event=stall_detected"));
    let ended = format!("── iteration {iteration} stalled");
    clock.advance_until(1, "the end of the iteration", || running.so_far().stdout.contains(&ended));
}

#[test]
fn a_stream_that_hangs_stalls_its_iteration_and_the_run_continues() {
    let never = Reply::text("never arrives").delay(Duration::from_secs(600));
    let api = Api::start(vec![never, Reply::text(DONE)]);
    let Some(session) = session(&api) else { return };

    let (session, clock) = with_clock(session);

    let mut running = start(&session, &HEARTBEAT);
    api.wait_for_requests(1, DEADLINE);
    let_it_stall(&mut running, &clock, 1);
    let output = running.wait();

    assert_eq!(output.code, Some(0), "{output:?}");
    for said in ["Warning: No agent output for ", " (1 heartbeat intervals). Stall detection in "] {
        assert!(output.stderr.contains(said), "{said}\n{output:?}");
    }
    for said in [
        "Agent stall detected: no output for ",
        " (exceeded 60s threshold). Terminating agent. (iteration 1)",
    ] {
        assert!(output.stderr.contains(said), "{said}\n{output:?}");
    }
    for event in ["event=heartbeat_warning elapsed_seconds=", "event=stall_detected elapsed_seconds="] {
        assert!(output.stderr.contains(event), "{event}\n{output:?}");
    }
    assert_eq!(column(&session, "outcome"), ["stalled", "complete"]);
    // Its reply would come in ten minutes.
    wait_until("the client that hung is gone, and what it started", || left_over(&session).is_empty());
}

/// Returns how often a silence ended after its warning.
fn resumed(session: &Session) -> usize {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
    command.args(["history", "--stalls", "--json"]).env_clear().envs(session.variables());
    let output = command.current_dir(session.project()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().matches(r#""event":"resumed""#).count()
}

#[test]
fn a_long_generation_with_pauses_is_a_sign_of_life() {
    let input = json!({"command": "git commit -q --allow-empty -m step", "description": "a, b, c, d"});
    let text = format!("Line 1\nLine 2\nLine 3\nLine 4\n{DONE}");
    let api = Api::start(vec![Reply::tool("Bash", input).paced(), Reply::text(&text).paced()]);
    let Some(session) = session(&api) else { return };
    let (session, clock) = with_clock(session);

    let mut running = start(&session, &HEARTBEAT);
    // The input comes in five pieces, between two events and three; so does the text.
    for (request, first) in [(1, 3), (2, 13)] {
        api.send_events(first);
        api.wait_for_requests(request, DEADLINE);
        for piece in 1..=3 {
            let warnings =
                |running: &Running| running.so_far().stderr.matches("event=heartbeat_warning").count();
            let (warned, before) = (warnings(&running), resumed(&session));
            clock.advance_slowly_until("a warning", || warnings(&running) > warned);
            api.send_events(first + piece);
            wait_until("the piece is a sign of life", || resumed(&session) > before);
        }
    }
    api.send_events(usize::MAX);
    running.wait_until(|output| output.stdout.contains("COMPLETE (code 0)"));
    let output = running.wait();

    assert_eq!(
        (output.code, column(&session, "outcome")),
        (Some(0), vec!["complete".to_owned()]),
        "{output:?}"
    );
    assert!(!output.stderr.contains("stall_detected"), "{output:?}");
    assert_eq!(output.stdout.matches("Line 3").count(), 1, "shown once: {output:?}");
    let log = events(&session, 1);
    assert!(log.iter().all(|event| event["type"] != "stream_event"), "{log:?}");
    assert!(
        log.iter().any(|event| event["type"] == "assistant" && event.to_string().contains("Line 3")),
        "{log:?}"
    );
}

/// A reply that costs as much as any other of its kind.
fn priced(reply: Reply) -> Reply {
    reply.usage(json!({"input_tokens": 100_000, "output_tokens": 1000}))
}

/// Each iteration costs as much as the replies it had, whatever the client adds up.
fn assert_paid(session: &Session, replies: &[f64]) {
    let costs: Vec<f64> =
        column(session, "cost_usd").iter().map(|cost| cost.parse().unwrap_or(0.0)).collect();
    let one = 100_000.0 * 3e-6 + 1000.0 * 15e-6;
    let expected: Vec<f64> = replies.iter().map(|replies| replies * one).collect();
    let close = costs.iter().zip(&expected).all(|(cost, expected)| (cost - expected).abs() < 0.01);
    assert!(close && costs.len() == expected.len(), "{costs:?} for {expected:?}");
}

#[test]
fn a_conversation_continues_by_its_id_and_is_paid_for_once() {
    let [commit, word] = step("the unusual word is quokka").map(priced);
    let never = Reply::text("never arrives").delay(Duration::from_secs(600));
    let api = Api::start(vec![commit, word, never, priced(Reply::text(DONE))]);
    let Some(session) = session(&api) else { return };

    let (session, clock) = with_clock(session);

    let args = [&["--context", "continue", "--model", SONNET][..], &HEARTBEAT].concat();
    let mut running = start(&session, &args);
    api.wait_for_requests(3, DEADLINE);
    let_it_stall(&mut running, &clock, 2);
    let output = running.wait();

    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = api.requests();
    for next in [2, 3] {
        assert!(requests[next].text().contains("quokka"), "{}", requests[next].text());
        let prompt = requests[next].last_user_text();
        assert!(prompt.contains("Continue the task: make it"), "{prompt}");
    }
    let [first, last] = [1, 3].map(|n| event(&session, n, "result")["session_id"].clone());
    assert_eq!(first, last);
    // The one in the middle was ended before it could say what it cost.
    assert_paid(&session, &[2.0, 0.0, 1.0]);
}

#[test]
fn a_conversation_that_others_came_between_is_still_the_one_that_continues() {
    let [commit, word] = [bash("git commit -q --allow-empty -m quokka"), Reply::text(DONE)].map(priced);
    let other = priced(Reply::text("somebody else"));
    let api = Api::start(vec![commit, word, other, priced(Reply::text(DONE))]);
    let Some(session) = session(&api) else { return };

    let claude = session.program().display();
    let verify = format!("test -f ok || {{ touch ok; {claude} -p hello >/dev/null; exit 1; }}");
    let output = run(&session, &["--context", "continue", "--model", SONNET, "--verify", &verify]);

    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = api.requests();
    assert!(requests[2].text().contains("hello"), "{}", requests[2].text());
    assert!(requests[3].text().contains("All of it is there"), "{}", requests[3].text());
    assert!(!requests[3].text().contains("somebody else"), "{}", requests[3].text());
    assert_paid(&session, &[2.0, 1.0]);
}

#[test]
fn a_conversation_that_is_lost_is_begun_anew() {
    let api = Api::start(vec![Reply::text(DONE)]);
    let Some(session) = session(&api) else { return };

    let verify = "test -f ok || { touch ok; rm -r \"$CLAUDE_CONFIG_DIR/projects\"; exit 1; }";
    let output = run(&session, &["--context", "continue", "--verify", verify]);

    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(column(&session, "outcome"), ["rejected", "failed", "complete"]);
    let last = api.requests()[1].text();
    assert!(last.contains("You are in a Ralph loop") && !last.contains("All of it is there"), "{last}");
}

#[test]
fn our_own_plugin_in_the_client_leaves_the_loop_to_the_runner() {
    let mut script = Vec::from(step("one"));
    script.extend(step("two"));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };
    let session = session.plugin(plugin());

    let output = run(&session, &["--max-iterations", "2"]);

    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(api.requests().len(), 4, "no turn but those of the two iterations");
    let init = init(&session, 1);
    assert!(init["plugins"].to_string().contains("ralph"), "{init}");
    assert!(
        !fs::read_to_string(session.project().join("ralph/logs/iteration-001.log"))
            .unwrap()
            .contains("Stop says")
    );
    assert_eq!(the_loop(&session)["engine"], "runner");
}

#[test]
fn the_plugin_holds_the_agent_to_its_tasks_until_the_work_is_committed() {
    let list = |story: Value| {
        let text = json!({"userStories": [story]}).to_string();
        format!("printf '%s\\n' '{text}' > ralph/tasks.json")
    };
    let passes =
        list(json!({"id": "US-1", "title": "Dates", "passes": true, "reviewStatus": "needs_review"}));
    let approved = list(
        json!({"id": "US-1", "title": "Dates", "passes": true, "reviewStatus": "approved", "reviewCount": 1}),
    );
    let commit = "git add -A && git commit -q -m work";
    let api = Api::start(vec![
        bash(&format!("{passes}; echo work > dates.txt")),
        Reply::text("implemented"),
        bash(commit),
        Reply::text("and committed"),
        bash(&format!("{approved}; {commit}")),
        Reply::text(DONE),
    ]);
    let Some(session) = session(&api) else { return };
    let session = session.plugin(plugin());
    fs::create_dir_all(session.project().join("ralph")).unwrap();
    let story = json!({"userStories": [{"id": "US-1", "title": "Dates", "passes": false}]});
    fs::write(session.project().join("ralph/tasks.json"), story.to_string()).unwrap();
    git(&session, &["add", "-A"]);
    git(&session, &["commit", "-q", "-m", "tasks"]);

    let output = run(&session, &[]);

    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = api.requests();
    assert_eq!(requests.len(), 6);
    let first = requests[0].text();
    assert!(first.contains("Mode of this iteration: implement. Story: US-1 (Dates)"), "{first}");
    let held = requests[2].last_user_text();
    assert!(held.contains("Before this iteration may end") && held.contains("dates.txt"), "{held}");
    assert!(requests[4].text().contains("Mode of this iteration: review"), "{}", requests[4].text());
    assert_eq!(column(&session, "mode"), ["implement", "review"]);
    assert_eq!(column(&session, "stories_complete"), ["1", "1"]);
    assert_eq!(git(&session, &["status", "--porcelain"]), "");
}

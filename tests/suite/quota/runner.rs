//! The same in `ralph run`, by what the agent prints.

use crate::env::Env;
use serde_json::Value;

/// `level PERCENT RESET`: the event that the client prints with each reply.
const LEVEL: &str = r#"level() { printf '{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":%s,"rateLimitType":"five_hour","isUsingOverage":false,"unifiedWindows":{"five_hour":{"utilization":%s,"resetsAt":%s,"status":"allowed"},"seven_day":{"utilization":0.4,"resetsAt":1794900000,"status":"allowed"}}}}\n' "$2" "$1" "$2"; }
"#;

#[test]
fn the_run_lands_waits_for_the_reset_and_continues() {
    let env = Env::new();
    let clock = env.clock();
    let script = format!(
        "{LEVEL}work; case $n in 1) level 0.5 1794819600;; 2|3) level 0.92 1794819600;; 4) level 0.02 1794837600; \
         result '<promise>COMPLETE</promise>'; exit;; esac; result step"
    );
    let mut run = env.run_claude(&script, &["--land-at", "90", "--json", "x"]).spawn();
    let wait: Value = serde_json::from_str(&run.until(r#""event":"waiting""#)).unwrap();
    assert_eq!(wait["reason"], "92% of the 5-hour limit (resets in 1h) used");
    assert_eq!(wait["until"], "2026-11-16T09:00:00.000Z");
    let shown = env.shown("ralph-run");
    assert_eq!((&shown["iteration"], &shown["waiting"]["for"]), (&3.into(), &"usage-limit".into()));
    assert_eq!(shown["quota"]["windows"][1]["percent"], 40.0);
    assert_eq!(shown["quota"]["source"], "stream");
    clock.advance(3600 + 31);
    let run = run.wait();
    assert_eq!((run.code, env.starts()), (Some(0), 4), "{run:?}");
    assert!(env.prompt(3).contains("92% of the 5-hour limit") && env.prompt(3).contains("safe point"));
    assert!(!env.prompt(2).contains("safe point") && !env.prompt(4).contains("safe point"));
    assert_eq!(env.outcomes(), ["ok", "ok", "ok", "complete"], "the wait is no iteration");
}

#[test]
fn a_continued_run_waits_for_a_reset_that_it_knows_of() {
    let env = Env::new();
    let clock = env.clock();
    let script = format!(
        "{LEVEL}work; case $n in 1) level 0.95 1794819600;; 2) result '<promise>COMPLETE</promise>'; exit;; esac; \
         result step"
    );
    let mut run = env.run_claude(&script, &["--reserve", "30", "--json", "x"]).spawn();
    run.until(r#""event":"waiting""#);
    env.ralph(&["stop", "--all"]).ok();
    run.wait();
    let mut run = env.run_claude(&script, &["--json"]).spawn();
    let wait: Value = serde_json::from_str(&run.until(r#""event":"waiting""#)).unwrap();
    assert_eq!((wait["until"].as_str(), env.starts()), (Some("2026-11-16T09:00:00.000Z"), 1));
    clock.advance(3600 + 31);
    let run = run.wait();
    assert_eq!((run.code, env.starts()), (Some(0), 2), "{run:?}");
}

#[test]
fn a_run_that_does_not_wait_ends_as_usage_limit() {
    let env = Env::new();
    let script = format!("{LEVEL}work; level 0.8 1794819600; result step");
    let run = env.run_claude(&script, &["--reserve", "30", "--on-limit", "stop", "x"]).run();
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.stdout.contains("80% of the 5-hour limit"), "{run:?}");
}

#[test]
fn extra_usage_continues_beyond_the_limit() {
    let env = Env::new();
    let overage = r#"printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794819600,"rateLimitType":"five_hour","isUsingOverage":true,"overageStatus":"allowed"}}\n'; work; result '<promise>COMPLETE</promise>'"#;
    let run = env.run_claude(overage, &["x"]).run();
    assert_eq!((run.code, env.starts()), (Some(0), 1), "{run:?}");
}

#[test]
fn a_token_limit_and_the_budget_of_a_day_hold_over_continuations() {
    let env = Env::new();
    let run = env.run_claude("work; commit; result step", &["--max-tokens", "30", "x"]).run();
    assert_eq!((run.code, env.starts()), (Some(1), 2), "15 tokens an iteration: {run:?}");
    assert!(run.stdout.contains("30 of 30 tokens used"), "{run:?}");
    let refused = env.run_claude("work; commit; result step", &[]).run();
    assert!(refused.stderr.contains("raise it with --max-tokens N"), "{refused:?}");
    // Two iterations have cost a dollar.
    env.ralph(&["config", "--user", "budget.daily_usd", "2"]).ok();
    let run = env.run_claude("work; commit; result step", &["--max-tokens", "300"]).run();
    assert_eq!((run.code, env.starts()), (Some(1), 4), "{run:?}");
    assert!(run.stdout.contains("today (UTC): $2.00 of $2.00 spent by all your loops"), "{run:?}");
}

#[test]
fn a_full_conversation_is_handed_over_to_a_new_one() {
    let env = Env::new();
    let script = r#"work; case $n in 4) result '<promise>COMPLETE</promise>'; exit;; esac
printf '{"type":"assistant","message":{"usage":{"input_tokens":%s,"output_tokens":1},"content":[{"type":"text","text":"x"}]},"session_id":"s-1"}\n' $((n * 80000))
printf '{"type":"result","subtype":"success","is_error":false,"result":"step","total_cost_usd":0.5,"usage":{"input_tokens":10},"modelUsage":{"m":{"inputTokens":10,"contextWindow":200000}},"session_id":"s-1"}\n'"#;
    let run = env.run_claude(script, &["--context", "continue", "--max-context", "75", "x"]).run();
    assert_eq!((run.code, env.starts()), (Some(0), 4), "{run:?}");
    let args = std::fs::read_to_string(env.base.join("args")).unwrap();
    let resumed: Vec<bool> = args.lines().map(|line| line.contains("--resume s-1")).collect();
    assert_eq!(resumed, [false, true, true, false], "{args}");
    assert!(env.prompt(3).contains("80% of the context is used"), "{}", env.prompt(3));
    assert!(
        env.prompt(4).contains("Your handover from the earlier one is ralph/handover.md"),
        "{}",
        env.prompt(4)
    );
}

#[test]
fn a_day_whose_cost_cannot_be_read_does_not_count_as_unspent() {
    let env = Env::new();
    env.ralph(&["config", "--user", "budget.daily_usd", "2"]).ok();
    let script =
        r#"work; for day in "$RALPH_DATA_DIR"/ledger/*.json; do rm "$day"; mkdir "$day"; done; result step"#;
    let run = env.run_claude("work; commit; result step", &["--max-iterations", "1", "x"]).run();
    assert_eq!(run.code, Some(1), "{run:?}");
    let run = env.run_claude(script, &["--new", "y"]).run();
    assert_eq!((run.code, env.starts()), (Some(70), 2), "{run:?}");
    assert!(run.stdout.contains("ledger") || run.stderr.contains("ledger"), "{run:?}");
}

#[test]
fn a_damaged_day_is_counted_from_the_events_and_told() {
    let env = Env::new();
    env.ralph(&["config", "--user", "budget.daily_usd", "1"]).ok();
    let script = r#"[ $n = 2 ] && for day in "$RALPH_DATA_DIR"/ledger/*.json; do : > "$day"; done; work; commit; result step"#;
    let run = env.run_claude(script, &["x"]).run();
    let told = format!("{}{}", run.stdout, run.stderr);
    assert!(told.contains("was damaged and moved to") && told.contains("$0.50"), "{told}");
    assert!(told.contains("of $1.00 spent by all your loops"), "{told}");
    assert_eq!(told.matches("was damaged").count(), 1, "{told}");
}

#[test]
fn a_reset_in_another_century_is_waited_for_as_an_unknown_one() {
    let env = Env::new();
    let clock = env.clock();
    let script = format!(
        "{LEVEL}work; case $n in 1|2) level 0.92 32503680000;; 3) result '<promise>COMPLETE</promise>'; exit;; esac; \
         result step"
    );
    let mut run = env.run_claude(&script, &["--land-at", "90", "--json", "x"]).spawn();
    let wait: Value = serde_json::from_str(&run.until(r#""event":"waiting""#)).unwrap();
    assert_eq!(wait["until"], "2026-11-16T08:15:00.000Z", "a quarter of an hour");
    clock.advance(900 + 31);
    let run = run.wait();
    assert_eq!((run.code, env.starts()), (Some(0), 3), "{run:?}");
}

//! How long guidance counts, and that every removed entry is reported.

use crate::env::{Env, HOUR, MINUTE, OTHER, Program, SESSION, stamp};
use serde_json::{Value, json};

fn entry(text: &str, seconds: i64, session: Option<&str>) -> Value {
    let mut entry = json!({"text": text, "timestamp": stamp(seconds)});
    if let Some(session) = session {
        entry["session_id"] = session.into();
    }
    entry
}

fn forbid(env: &Env, entries: Value) {
    env.edit_state(|state| state["guidance"] = json!({"encouraged": [], "forbidden": entries}));
}

/// Returns whether the text is in the agent's next prompt. Asserts that it is reported exactly if it is dropped.
fn reaches(env: &Env, text: &str) -> bool {
    let answer = env.turn(SESSION, "x");
    let there = answer.goes_on().contains(text);
    let named = answer.message.as_deref().unwrap().contains(text);
    assert_eq!(there, !named, "it arrives or its going is told: {answer:?}");
    there
}

/// A previous loop ended five hours before the clock's zero, this one started two hours before it.
fn loop_after_another() -> Env {
    let env = Env::new();
    env.at(-8 * HOUR).start_in(OTHER, "earlier", &[]);
    env.at(-5 * HOUR).ralph(&["stop", "--session", OTHER]).ok();
    env.at(-2 * HOUR).start("task", &[]);
    env.at(0);
    env
}

#[test]
fn freshness_by_age_session_and_loop() {
    let pinned = |mut entry: Value| {
        entry["pinned"] = true.into();
        entry
    };
    let lasting = |hours: i64, mut entry: Value| {
        entry["for_seconds"] = (hours * HOUR).into();
        entry
    };
    let dated = |stamp: Value| json!({"text": "word", "timestamp": stamp, "session_id": SESSION});
    let word = |hours: i64, session: Option<&str>| entry("word", -hours * HOUR, session);
    let cases: Vec<(&str, Value, bool)> = vec![
        ("in this loop, this session", word(1, Some(SESSION)), true),
        ("in this loop, a terminal", word(1, None), true),
        ("in this loop, another session", word(1, Some(OTHER)), true),
        ("before the start, this session", word(3, Some(SESSION)), true),
        ("before the start, a terminal", word(3, None), true),
        ("before the start, another session", word(3, Some(OTHER)), false),
        ("before the previous loop ended, a terminal", word(6, None), false),
        ("23 hours old, this session", word(23, Some(SESSION)), true),
        ("24 hours old, this session", word(24, Some(SESSION)), false),
        ("a week old, this session", word(168, Some(SESSION)), false),
        ("a week old, pinned", pinned(word(168, Some(OTHER))), true),
        ("for two hours, one passed", lasting(2, word(1, None)), true),
        ("for one hour, one passed", lasting(1, word(1, None)), false),
        ("no date", json!({"text": "word", "session_id": SESSION}), false),
        ("null for a date", dated(Value::Null), false),
        ("words for a date", dated("yesterday".into()), false),
        ("a date without an offset", dated("2026-11-16T07:30:00".into()), false),
        ("a month that is none", dated("2026-13-16T07:30:00Z".into()), false),
        ("an hour ago, east of here", dated("2026-11-16T12:30:00+05:30".into()), true),
        ("an hour ago, west of here", dated("2026-11-15T21:00:00-10:00".into()), true),
        ("24 hours ago, east of here", dated("2026-11-15T13:30:00+05:30".into()), false),
        ("23 hours ago, west of here", dated("2026-11-14T23:00:00.5-10:00".into()), true),
        ("lower case and fractions", dated("2026-11-16t07:00:00.123456z".into()), true),
        ("tomorrow", dated("2026-11-17T08:00:00Z".into()), true),
    ];
    for (name, entry, fresh) in cases {
        let env = loop_after_another();
        forbid(&env, json!([entry]));
        assert_eq!(reaches(&env, "word"), fresh, "{name}");
        let left = env.state()["guidance"]["forbidden"].as_array().unwrap().len();
        assert_eq!(left, usize::from(fresh), "{name}: ignored and purged");
        assert!(!env.turn(SESSION, "x").message.unwrap().contains("word"), "{name}: told once");
    }
}

#[test]
fn a_date_in_the_future_counts_as_now_and_ages_from_there() {
    let env = Env::new();
    env.start("task", &[]);
    forbid(&env, json!([entry("word", 3 * HOUR, Some(SESSION))]));
    assert!(env.turn(SESSION, "x").goes_on().contains("- word (0s ago)"));
    forbid(&env, json!([{"text": "immortal", "timestamp": "2199-01-01T00:00:00Z", "session_id": SESSION}]));
    assert!(env.at(60).turn(SESSION, "x").goes_on().contains("immortal"));
    let answer = env.at(25 * HOUR).turn(SESSION, "x");
    assert!(!answer.goes_on().contains("immortal"), "a day after it was seen it is a day old: {answer:?}");
}

#[test]
fn the_age_is_a_setting() {
    let env = Env::new();
    env.write(".claude/ralph-config.json", r#"{"guidance": {"max_age_hours": 1}}"#);
    env.start("task", &[]);
    env.guidance(&["forbid", "push"]).ok();
    env.guidance(&["forbid", "--pin", "merge"]).ok();
    assert!(env.at(59 * MINUTE).turn(SESSION, "x").goes_on().contains("push"));
    let answer = env.at(60 * MINUTE).turn(SESSION, "x");
    assert!(!answer.goes_on().contains("push") && answer.goes_on().contains("merge"), "{answer:?}");
    assert!(answer.message.unwrap().contains("\"push\""));
}

#[test]
fn a_start_purges_entries_of_other_loops_and_names_them_once() {
    let env = loop_after_another();
    env.ralph(&["stop", "--session", SESSION]).ok();
    forbid(
        &env,
        json!([
            entry("last week's", -168 * HOUR, None),
            entry("the old loop's", -HOUR, None),
            entry("another sitting's", -HOUR, Some(OTHER)),
            entry("mine", -HOUR, Some(SESSION)),
        ]),
    );
    let told = env.at(60).start("next", &[]);
    for gone in ["last week's", "the old loop's", "another sitting's"] {
        assert!(told.contains(gone), "{gone}: {told}");
    }
    assert!(!told.contains("\"mine\""), "{told}");
    let answer = env.at(70).turn(SESSION, "x");
    assert!(answer.goes_on().contains("mine"), "{answer:?}");
    for gone in ["last week's", "the old loop's", "another sitting's"] {
        assert!(!answer.goes_on().contains(gone) && !answer.message.as_deref().unwrap().contains(gone));
    }
}

#[test]
fn a_refused_start_purges_nothing() {
    let env = loop_after_another();
    forbid(&env, json!([entry("word", -168 * HOUR, None)]));
    env.ralph(&["start", "--session", SESSION, "second"]).fails(1);
    env.write("build.toml", format!("dir = \"{}/x\"\n", env.base.join("home").display()));
    env.ralph(&["start", "--session", OTHER, "third"]).fails(1);
    assert_eq!(env.state()["guidance"]["forbidden"][0]["text"], "word");
    assert!(
        env.turn(SESSION, "x").message.unwrap().contains("word"),
        "a removal is reported when it happens"
    );
}

#[test]
fn a_session_start_purges_only_what_is_too_old() {
    let env = loop_after_another();
    env.ralph(&["stop", "--session", SESSION]).ok();
    forbid(
        &env,
        json!([entry("over age", -25 * HOUR, None), entry("the old loop's", -6 * HOUR, Some(OTHER))]),
    );
    for source in ["startup", "resume", "clear"] {
        let answer = env.at(10).session_start("another-session", source).run();
        let told = answer.message.unwrap_or_default();
        assert_eq!(told.contains("over age"), source == "startup", "once: {told}");
        assert!(!told.contains("the old loop's"), "{told}");
    }
    assert_eq!(env.state()["guidance"]["forbidden"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_session_start_with_nothing_to_purge_writes_nothing() {
    let env = Env::new();
    env.guidance(&["forbid", "push"]).ok();
    let before = env.snapshot();
    env.at(HOUR).session_start(SESSION, "startup").run().silent();
    assert_eq!(env.snapshot(), before);
}

/// Two loops in one project: each has its own guidance.
#[test]
fn a_start_removes_no_guidance_of_another_running_loop() {
    let env = Env::new();
    env.start("mine", &[]);
    env.at(60).types(SESSION, "forbid", "push");
    env.at(120).start_in(OTHER, "theirs", &[]);
    env.at(130).turn(OTHER, "x").goes_on();
    let answer = env.at(140).turn(SESSION, "x");
    assert!(answer.goes_on().contains("- push"), "given in this loop by its own session: {answer:?}");
}

#[test]
fn an_allowed_finding_ends_with_its_loop_and_is_reported() {
    let env = Env::new();
    env.write("api.rs", "// Code generated by x. DO NOT EDIT.\n");
    env.start("task", &[]);
    let id = env.findings()[0]["id"].as_str().unwrap().to_owned();
    assert!(env.guidance(&["allow", &id]).ok().contains(&id));
    assert!(!env.at(HOUR).turn(SESSION, "x").goes_on().contains("api.rs"));
    env.ralph(&["stop", "--session", SESSION]).ok();
    let told = env.at(2 * HOUR).start_in(OTHER, "a later loop", &[]);
    assert!(told.contains(&id), "within the loop only: {told}");
    assert!(env.turn(OTHER, "x").goes_on().contains("api.rs"));
}

#[test]
fn odd_guidance_in_the_config_does_not_break_a_start() {
    for guidance in [
        json!({"encouraged": "text", "forbidden": {}, "timestamp": 5}),
        json!({"encouraged": [1, null, {}], "forbidden": null}),
        json!([]),
        json!("x"),
        json!({"encouraged": ["", " \u{1b}\n "], "timestamp": "2026-11-16T07:00:00Z"}),
    ] {
        let env = Env::new();
        env.write(".claude/ralph-config.json", json!({"guidance": guidance}).to_string());
        env.start("task", &[]);
        let prompt = env.turn(SESSION, "x").goes_on().to_owned();
        assert!(!prompt.contains("ENCOURAGED"), "{guidance}: nothing to say, nothing said: {prompt}");
    }
}

#[test]
fn a_slash_start_reports_what_it_purged_too() {
    let env = loop_after_another();
    env.ralph(&["stop", "--session", SESSION]).ok();
    forbid(&env, json!([entry("last week's", -168 * HOUR, None)]));
    let told = env.types(SESSION, "start", "next").message.unwrap();
    assert!(told.contains("last week's"), "{told}");
    let run = env.call(Program::Guidance).args(&["list"]).run().ok();
    assert!(run.contains("No guidance"), "{run}");
}

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
    env.set_guidance(json!({"encouraged": [], "forbidden": entries}));
}

/// Returns whether the text is in the agent's next prompt. Asserts that it is reported exactly if it is dropped.
fn reaches(env: &Env, text: &str) -> bool {
    let answer = env.turn(SESSION, "x");
    let there = answer.continues().contains(text);
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
        ("before the start, this session", word(3, Some(SESSION)), true),
        ("before the start, a terminal", word(3, None), true),
        ("before the previous loop ended, a terminal", word(6, None), false),
        ("23 hours old, this session", word(23, Some(SESSION)), true),
        ("24 hours old, this session", word(24, Some(SESSION)), false),
        ("a week old, this session", word(168, Some(SESSION)), false),
        ("a week old, pinned", pinned(word(168, None)), true),
        ("a week old, another session", word(168, Some(OTHER)), false),
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
    assert!(env.turn(SESSION, "x").continues().contains("- word (0s ago)"));
    forbid(&env, json!([{"text": "immortal", "timestamp": "2199-01-01T00:00:00Z", "session_id": SESSION}]));
    assert!(env.at(60).turn(SESSION, "x").continues().contains("immortal"));
    let answer = env.at(25 * HOUR).turn(SESSION, "x");
    assert!(!answer.continues().contains("immortal"), "a day after it was seen it is a day old: {answer:?}");
}

#[test]
fn the_age_is_a_setting() {
    let env = Env::new();
    env.write(".claude/ralph-config.json", r#"{"guidance": {"max_age_hours": 1}}"#);
    env.start("task", &[]);
    env.guidance(&["forbid", "push"]).ok();
    env.guidance(&["forbid", "--pin", "merge"]).ok();
    assert!(env.at(59 * MINUTE).turn(SESSION, "x").continues().contains("push"));
    let answer = env.at(60 * MINUTE).turn(SESSION, "x");
    assert!(!answer.continues().contains("push") && answer.continues().contains("merge"), "{answer:?}");
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
            entry("another session's", -HOUR, Some(OTHER)),
            entry("mine", -HOUR, Some(SESSION)),
        ]),
    );
    let told = env.at(60).start("next", &[]);
    for gone in ["last week's", "the old loop's"] {
        assert!(told.contains(gone), "{gone}: {told}");
    }
    assert!(!told.contains("\"mine\"") && !told.contains("another session's"), "{told}");
    let answer = env.at(70).turn(SESSION, "x");
    assert!(answer.continues().contains("mine"), "{answer:?}");
    for gone in ["last week's", "the old loop's", "another session's"] {
        assert!(!answer.continues().contains(gone) && !answer.message.as_deref().unwrap().contains(gone));
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

/// It said that it was for this session's loop, and a `ralph run` in the project was not told.
#[test]
fn guidance_of_a_session_without_a_loop_says_what_it_reaches() {
    let env = Env::new();
    let said = |command: &str| {
        format!(
            "; for the next loop of this session; `ralph-guidance {command}` in a terminal reaches all loops of the project"
        )
    };
    env.start_in(OTHER, "theirs", &[]);
    for (command, usage) in [("forbid", "forbid TEXT"), ("encourage", "encourage TEXT")] {
        let told = env.types(SESSION, command, &format!("{command} it")).block.unwrap();
        assert!(told.ends_with(&said(usage)), "{told}");
    }
    env.write("api.rs", "// Code generated by x. DO NOT EDIT.\n");
    let id = env.findings()[0]["id"].as_str().unwrap().to_owned();
    assert!(env.guidance(&["allow", "--session", SESSION, &id]).ok().trim_end().ends_with(&said("allow ID")));
    env.start("mine", &[]);
    assert!(env.at(10).turn(SESSION, "x").continues().contains("forbid it"), "as it said");
    env.turn(SESSION, "<promise>BLOCKED:no key</promise>").ended("blocked");
    let told = env.types(SESSION, "forbid", "more").block.unwrap();
    assert!(told.ends_with(&said("forbid TEXT")), "an ended loop is none: {told}");
}

/// `/ralph:forbid` in one session reached the loop of another.
#[test]
fn guidance_of_a_session_is_for_its_loop_and_guidance_of_a_terminal_for_all() {
    let env = Env::new();
    env.start("mine", &[]);
    env.start_in(OTHER, "theirs", &[]);
    let told = env.types(OTHER, "forbid", "--pin typed there").message.unwrap();
    assert!(told.ends_with("; 1 active; for this session's loop"), "{told}");
    let told = env.guidance(&["encourage", "--session", OTHER, "named there"]).ok();
    assert!(told.contains("; 2 active; for this session's loop"), "{told}");
    let told = env.var("CLAUDE_CODE_SESSION_ID", OTHER).guidance(&["encourage", "run there"]).ok();
    assert!(told.contains("for this session's loop"), "{told}");
    let told = env.without("CLAUDE_CODE_SESSION_ID").guidance(&["forbid", "for everyone"]).ok();
    assert!(told.contains("; 4 active; for all loops of this project"), "{told}");

    let (mine, theirs) = (env.at(10).turn(SESSION, "x"), env.turn(OTHER, "x"));
    for text in ["typed there", "named there", "run there"] {
        assert!(!mine.continues().contains(text), "{text}: {mine:?}");
        assert!(!mine.message.as_deref().unwrap().contains(text), "nor is it dropped: {mine:?}");
        assert!(theirs.continues().contains(text), "{text}: {theirs:?}");
    }
    for answer in [&mine, &theirs] {
        assert!(
            answer.continues().contains("for everyone"),
            "told to one, it is still new to the other: {answer:?}"
        );
    }
    let compacted = env.session_start(SESSION, "compact").run().context.unwrap();
    assert!(!compacted.contains("there") && compacted.contains("for everyone"), "{compacted}");
    let list = env.types(OTHER, "forbid", "").message.unwrap();
    assert!(list.contains("typed there (10s ago, this session only, pinned"), "{list}");
    let list = env.guidance(&["list"]).ok();
    assert!(list.contains("typed there (10s ago, session 7be0d3c2 only, pinned"), "{list}");
    let line = env.call(Program::Ralph).args(&["statusline"]);
    let line = line.stdin(json!({"session_id": SESSION, "cwd": env.project}).to_string()).run().ok();
    assert!(line.contains("1 forbidden") && !line.contains("encouraged"), "{line}");
}

#[test]
fn a_session_clears_replaces_and_contradicts_only_its_own() {
    let env = Env::new();
    env.start("mine", &[]);
    env.start_in(OTHER, "theirs", &[]);
    env.types(SESSION, "forbid", "push");
    env.at(5).guidance(&["forbid", "merge"]).ok();
    let told = env.types(OTHER, "encourage", "push").message.unwrap();
    assert!(!told.contains("before"), "{told}");
    env.types(OTHER, "forbid", "--replace rebase");
    assert!(env.guidance(&["clear", "--session", OTHER]).ok().starts_with("cleared: 2 removed; 1 active"));
    let prompt = env.at(10).turn(SESSION, "x").continues().to_owned();
    assert!(prompt.contains("FORBIDDEN:\n- merge (5s ago)\n- push (10s ago)\n"), "{prompt}");
    assert!(env.guidance(&["clear"]).ok().contains("2 removed"));
}

/// Another session's turn must not drop what was typed just before a start.
#[test]
fn guidance_typed_before_a_start_survives_the_turns_of_other_loops() {
    let env = Env::new();
    env.start("mine", &[]);
    env.types(OTHER, "forbid", "push");
    let answer = env.at(10).turn(SESSION, "x");
    assert!(!answer.continues().contains("push") && !answer.message.unwrap().contains("push"));
    env.start_in(OTHER, "theirs", &[]);
    assert!(env.at(20).turn(OTHER, "x").continues().contains("- push (20s ago)"));
}

#[test]
fn an_adopted_loop_brings_its_guidance() {
    let env = Env::new();
    env.start("task", &[]);
    env.types(SESSION, "forbid", "push");
    env.event(Program::StopHook, SESSION, "SessionEnd").field("reason", "clear").run();
    env.at(10).ralph(&["start", "--resume", "--session", OTHER]).ok();
    assert!(env.at(20).turn(OTHER, "x").continues().contains("- push (20s ago)"));
}

/// A loop reads its settings at every turn. Guidance there may be anyone's, so it is reported and not told.
#[test]
fn a_note_in_the_config_is_reported_once_and_not_told() {
    for (config, told) in [
        (r#"{"guidance": {"forbidden": ["push"]}}"#, "guidance.forbidden is not read; use `ralph-guidance"),
        (r#"{"note": "never push"}"#, "ralph-config.json: unknown setting note"),
    ] {
        let env = Env::new();
        env.start("task", &[]);
        env.turn(SESSION, "x").continues();
        env.write(".claude/ralph-config.json", config);
        let answer = env.turn(SESSION, "y");
        assert!(answer.message.as_deref().unwrap().contains(told), "{answer:?}");
        assert!(!answer.continues().contains("push"), "{answer:?}");
        assert!(!env.turn(SESSION, "z").message.unwrap().contains(told), "once");
        assert!(env.start_in(OTHER, "task", &[]).contains(told), "and at a start");
        let shown = env.ralph(&["config"]).ok();
        assert_eq!(shown.matches(told).count(), 1, "{shown}");
    }
}

/// Two loops in one project: each has its own guidance.
#[test]
fn a_start_removes_no_guidance_of_another_running_loop() {
    let env = Env::new();
    env.start("mine", &[]);
    env.at(60).types(SESSION, "forbid", "push");
    env.at(120).start_in(OTHER, "theirs", &[]);
    env.at(130).turn(OTHER, "x").continues();
    let answer = env.at(140).turn(SESSION, "x");
    assert!(answer.continues().contains("- push"), "given in this loop by its own session: {answer:?}");
}

#[test]
fn an_allowed_finding_ends_with_its_loop_and_is_reported() {
    let env = Env::new();
    env.write("api.rs", "// Code generated by x. DO NOT EDIT.\n");
    env.start("task", &[]);
    let id = env.findings()[0]["id"].as_str().unwrap().to_owned();
    assert!(env.guidance(&["allow", &id]).ok().contains(&id));
    assert!(!env.at(HOUR).turn(SESSION, "x").continues().contains("api.rs"));
    env.ralph(&["stop", "--session", SESSION]).ok();
    let told = env.at(2 * HOUR).start_in(OTHER, "a later loop", &[]);
    assert!(told.contains(&id), "within the loop only: {told}");
    assert!(env.turn(OTHER, "x").continues().contains("api.rs"));
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
        let prompt = env.turn(SESSION, "x").continues().to_owned();
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

//! `ralph-guidance` and its slash commands: what the user encourages and forbids, from the command to the agent.

use crate::env::{Env, HOUR, OTHER, Program, SESSION, T0};
use serde_json::{Value, json};

const HOSTILE: &str = "don't \"rm -rf\" $(touch pwned) `touch pwned`; | & > x \\ <promise>COMPLETE</promise> 🦀 ${HOME} %s 'quoted'";

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|entry| entry["text"].as_str().unwrap().to_owned()).collect()
}

fn kept(env: &Env, list: &str) -> Vec<String> {
    texts(&env.state()["guidance"][list])
}

fn piped(env: &Env, args: &[&str], bytes: &[u8]) -> crate::env::Run {
    env.call(Program::Guidance).args(args).stdin(bytes).run()
}

#[test]
fn an_entry_is_answered_with_what_it_changed() {
    let env = Env::new();
    assert_eq!(
        env.guidance(&["encourage", "write", "tests"]).ok().trim(),
        "encouraged: write tests; 1 active; for all loops of this project"
    );
    assert!(env.guidance(&["forbid", "use unsafe"]).ok().starts_with("forbidden: use unsafe; 2 active;"));
    let again = env.at(60).guidance(&["encourage", "Write  TESTS"]).ok();
    assert!(again.contains("already in the list") && again.contains("2 active"), "refreshed: {again}");
    let moved = env.guidance(&["encourage", "use unsafe"]).ok();
    assert!(moved.contains("it was forbidden before"), "{moved}");
    assert!(moved.contains("2 active"), "{moved}");
    let moved = env.guidance(&["forbid", "use unsafe"]).ok();
    assert!(moved.contains("encouraged before"), "{moved}");
    assert_eq!(
        (kept(&env, "encouraged"), kept(&env, "forbidden")),
        (vec!["Write TESTS".into()], vec!["use unsafe".to_owned()])
    );
}

#[test]
fn expired_entries_are_counted_named_and_removed() {
    let env = Env::new();
    env.guidance(&["forbid", "--for", "30m", "touch the schema"]).ok();
    for text in ["one", "two"] {
        env.at(1800).guidance(&["encourage", text]).ok();
    }
    let told = env.guidance(&["encourage", "three"]).ok();
    assert!(told.starts_with("encouraged: three; 3 active"), "{told}");
    assert!(!told.contains("expired"), "reported with the previous command: {told}");

    let env = Env::new();
    env.guidance(&["forbid", "--for", "30m", "touch the schema"]).ok();
    let told = env.at(1800).guidance(&["encourage", "one"]).ok();
    assert!(told.contains("1 active, 1 expired and removed") && told.contains("touch the schema"), "{told}");
    assert!(kept(&env, "forbidden").is_empty());
}

#[test]
fn entries_have_text_time_and_session_and_the_list_has_the_newest_time() {
    let env = Env::new();
    env.guidance(&["encourage", "--session", SESSION, "a"]).ok();
    env.at(90).var("CLAUDE_CODE_SESSION_ID", OTHER).guidance(&["encourage", "b"]).ok();
    env.guidance(&["forbid", "--session", SESSION, "c"]).ok();
    env.at(100).without("CLAUDE_CODE_SESSION_ID").guidance(&["forbid", "d"]).ok();
    let guidance = env.state()["guidance"].clone();
    assert_eq!(guidance["encouraged"][0]["timestamp"], "2026-11-16T08:00:00.000Z", "UTC");
    let session = |list: &str, at: usize| guidance[list][at]["session_id"].clone();
    assert_eq!((session("encouraged", 0), session("encouraged", 1)), (json!(SESSION), json!(OTHER)));
    assert_eq!((session("forbidden", 0), session("forbidden", 1)), (json!(SESSION), Value::Null));
    assert_eq!(guidance["timestamp"], "2026-11-16T08:01:40.000Z");
}

#[test]
fn entries_keep_the_order_they_were_given_in() {
    let env = Env::new();
    for (at, text) in ["c", "a", "b"].iter().enumerate() {
        env.at(at as i64).guidance(&["forbid", text]).ok();
    }
    assert_eq!(kept(&env, "forbidden"), ["c", "a", "b"]);
    env.at(10).guidance(&["encourage", "x"]).ok();
    env.guidance(&["remove", "a"]).ok();
    assert_eq!(kept(&env, "forbidden"), ["c", "b"]);
}

#[test]
fn remove_takes_the_numbers_of_list() {
    let env = Env::new();
    env.start("task", &[]);
    env.guidance(&["encourage", "one"]).ok();
    env.guidance(&["forbid", "--pin", "two"]).ok();
    env.guidance(&["forbid", "--for", "2h", "three"]).ok();
    let list = env.at(120).guidance(&["list"]).ok();
    for part in ["1. one (2m ago, not delivered yet)", "2. two (2m ago, pinned", "3. three (2m ago, for 2h"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    assert!(env.guidance(&["remove", "2"]).ok().contains("removed: two; 2 active"));
    assert!(env.guidance(&["remove", "THREE"]).ok().contains("removed: three; 1 active"));
    for which in ["7", "0", "nothing", "-1"] {
        let run = env.guidance(&["remove", "--", which]);
        assert!(run.fails(1).contains(which));
    }
    assert!(env.guidance(&["clear"]).ok().contains("1 removed; 0 active"));
    assert!(env.guidance(&["list"]).ok().contains("No guidance"));
    let json: Value = serde_json::from_str(&env.guidance(&["list", "--json"]).ok()).unwrap();
    assert_eq!(json, json!({"encouraged": [], "forbidden": [], "allowed": [], "ignored": []}));
}

#[test]
fn replace_clears_its_own_list_first_and_names_the_removed_entries() {
    let env = Env::new();
    env.guidance(&["encourage", "old one"]).ok();
    env.guidance(&["encourage", "old two"]).ok();
    env.guidance(&["forbid", "stays"]).ok();
    let told = env.guidance(&["encourage", "--replace", "new"]).ok();
    assert!(told.contains("replaces \"old one\", \"old two\"") && told.contains("2 active"), "{told}");
    assert_eq!(
        (kept(&env, "encouraged"), kept(&env, "forbidden")),
        (vec!["new".into()], vec!["stays".to_owned()])
    );
}

#[test]
fn json_prints_the_guidance_and_nothing_else() {
    let env = Env::new();
    for args in [&["encourage", "--json", "--pin", "a"][..], &["forbid", "--json", "b"], &["list", "--json"]]
    {
        let run = env.at(30).guidance(args).ok();
        let shown: Value =
            serde_json::from_str(&run).unwrap_or_else(|error| panic!("{args:?} {error}: {run}"));
        let entry = &shown["encouraged"][0];
        assert_eq!((&entry["text"], &entry["delivered"]), (&json!("a"), &json!(false)));
        assert_eq!(entry["age_seconds"].as_f64(), Some(0.0));
        assert!(entry["timestamp"].is_string() && entry["pinned"] == true, "{entry}");
    }
    for args in [&["remove", "--json", "1"][..], &["clear", "--json"]] {
        serde_json::from_str::<Value>(&env.guidance(args).ok()).unwrap();
    }
}

#[test]
fn text_is_read_from_stdin_too_and_white_space_is_folded() {
    let env = Env::new();
    piped(&env, &["forbid", "-"], b"  never \t push\nto main\x1b[31m\x07 \r\n").ok();
    piped(&env, &["encourage", "-"], HOSTILE.as_bytes()).ok();
    assert_eq!(kept(&env, "forbidden"), ["never push to main[31m"]);
    assert_eq!(kept(&env, "encouraged"), [HOSTILE]);
    assert!(!env.exists("pwned"));
}

/// Joiners belong to Persian words and to emoji; they are not control characters.
#[test]
fn any_script_is_stored_as_given() {
    let env = Env::new();
    for text in ["می\u{200c}خواهم", "👨\u{200d}👩\u{200d}👧", "日本語 ελληνικά עברית", "e\u{301}"]
    {
        env.guidance(&["encourage", "--replace", text]).ok();
        assert_eq!(kept(&env, "encouraged"), [text]);
    }
}

#[test]
fn a_text_that_looks_like_a_flag_is_kept_if_it_is_given_as_text() {
    let env = Env::new();
    env.guidance(&["forbid", "--", "--force"]).ok();
    env.guidance(&["forbid", "--", "git push --force"]).ok();
    env.guidance(&["forbid", "--", "-rf"]).ok();
    piped(&env, &["forbid", "-"], b"--replace").ok();
    assert_eq!(kept(&env, "forbidden"), ["--force", "git push --force", "-rf", "--replace"]);
    let unknown = env.guidance(&["forbid", "--force"]).fails(64);
    assert!(unknown.contains("--force"), "{unknown}");
}

/// After `--` and on stdin there are no flags of ours, not even at the end of the text.
#[test]
fn our_flags_at_the_end_of_a_given_text_stay_text() {
    let env = Env::new();
    env.guidance(&["forbid", "--", "never pass --pin"]).ok();
    env.guidance(&["forbid", "--", "git tag --replace"]).ok();
    piped(&env, &["forbid", "-"], b"sleep --for 2h").ok();
    piped(&env, &["forbid", "-"], b"run it --for ever").ok();
    let expected = ["never pass --pin", "git tag --replace", "sleep --for 2h", "run it --for ever"];
    assert_eq!(kept(&env, "forbidden"), expected);
    assert_eq!(env.state()["guidance"]["forbidden"][2]["for_seconds"], Value::Null);
}

#[test]
fn without_text_the_commands_list() {
    let env = Env::new();
    env.start("task", &[]);
    env.guidance(&["forbid", "push"]).ok();
    let before = env.read(".claude/ralph-state.json");
    for args in [&["encourage"][..], &["forbid"], &["encourage", "  "], &["forbid", "\u{1b}\u{7}\u{200b}"]] {
        let told = env.guidance(args).ok();
        assert!(told.contains("1. push"), "{args:?}: {told}");
    }
    assert!(piped(&env, &["forbid", "-"], b"").ok().contains("1. push"));
    assert!(env.types(OTHER, "forbid", "").block.unwrap().contains("1. push"));
    assert!(env.types(OTHER, "encourage", " \u{1b} \n").block.unwrap().contains("1. push"));
    assert!(env.types(SESSION, "forbid", "").message.unwrap().contains("1. push"), "also in the loop");
    assert!(env.read(".claude/ralph-state.json").contains("push") && before.contains("push"));
    assert_eq!(kept(&env, "forbidden"), ["push"]);
    for flags in [&["forbid", "--pin"][..], &["forbid", "--replace"], &["encourage", "--for", "2h"]] {
        env.guidance(flags).fails(64);
    }
    assert_eq!(kept(&env, "forbidden"), ["push"], "a flag without a text clears nothing");
}

#[test]
fn two_thousand_characters_are_kept_and_one_more_is_refused() {
    let env = Env::new();
    let longest = "ü".repeat(2000);
    env.guidance(&["encourage", &longest]).ok();
    assert_eq!(kept(&env, "encouraged"), [longest.as_str()]);
    let told = env.guidance(&["encourage", &format!("{longest}x")]).fails(64);
    assert!(told.contains("2001") && told.contains("2000"), "{told}");
    let told = piped(&env, &["forbid", "-"], "y".repeat(2001).as_bytes()).fails(64);
    assert!(told.contains("2001"), "{told}");
    let told = env.types(SESSION, "forbid", &"z".repeat(2001)).block.unwrap();
    assert!(told.contains("2001"), "{told}");
    assert_eq!((kept(&env, "encouraged").len(), kept(&env, "forbidden").len()), (1, 0));
}

#[test]
fn invalid_utf8_is_made_readable_or_refused() {
    let env = Env::new();
    let run = piped(&env, &["forbid", "-"], b"bad \xff\xfe bytes");
    assert!(matches!(run.code, Some(0 | 64)), "{run:?}");
    if run.code == Some(0) {
        assert_eq!(kept(&env, "forbidden"), ["bad \u{fffd}\u{fffd} bytes"]);
    }
    let odd = std::os::unix::ffi::OsStrExt::from_bytes(b"bad \xff");
    let run = env.call(Program::Guidance).args(&[std::ffi::OsStr::new("forbid"), odd]).run();
    assert!(run.fails(64).contains("UTF-8"));
}

#[test]
fn bad_flags_and_spans_are_usage_errors_that_change_nothing() {
    let env = Env::new();
    for args in [
        &["forbid", "--for", "soon", "x"][..],
        &["forbid", "--for", "-2h", "x"],
        &["forbid", "--for", "0", "x"],
        &["forbid", "--bogus", "x"],
        &["bogus"],
        &[],
        &["remove"],
        &["allow"],
    ] {
        env.guidance(args).fails(64);
    }
    assert!(env.guidance(&["allow", "nothing-00000000"]).fails(1).contains("nothing-00000000"));
    assert!(env.guidance(&["allow", ""]).fails(1).contains("no such finding"));
    assert!(!env.exists(".claude/ralph-state.json"));
}

#[test]
fn a_subdirectory_and_a_second_terminal_steer_the_same_loop() {
    let env = Env::git();
    env.start("task", &[]);
    env.write("deep/down/x", "");
    env.call(Program::Guidance).args(&["forbid", "push"]).cwd(&env.path("deep/down")).run().ok();
    assert!(env.turn(SESSION, "x").continues().contains("- push (0s ago)"));
    assert!(!env.exists("deep/down/.claude"));
}

#[test]
fn the_next_prompt_has_an_entry_with_its_age_and_status_shows_the_delivery() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).guidance(&["encourage", "write tests"]).ok();
    env.at(20).guidance(&["forbid", "push"]).ok();
    let delivered = |env: &Env| {
        let guidance = env.status()["guidance"].clone();
        (guidance["encouraged"][0]["delivered"].clone(), guidance["forbidden"][0]["delivered"].clone())
    };
    assert_eq!(delivered(&env), (json!(false), json!(false)));
    let answer = env.at(200).turn(SESSION, "x");
    let expected = "\nENCOURAGED:\n- write tests (3m ago)\nFORBIDDEN:\n- push (3m ago)\n";
    assert!(answer.continues().contains(expected), "{answer:?}");
    assert_eq!(delivered(&env), (json!(true), json!(true)));
    assert_eq!(env.status()["guidance"]["forbidden"][0]["age_seconds"].as_f64(), Some(180.0));
    let shown = env.ralph(&["status"]).ok();
    assert!(shown.contains("push (3m ago, delivered)"), "{shown}");
    env.guidance(&["forbid", "push"]).ok();
    assert_eq!(delivered(&env), (json!(true), json!(false)), "given again, to be delivered again");
    assert!(env.turn(SESSION, "x").continues().contains("- push (0s ago)"));
    env.guidance(&["clear"]).ok();
    let prompt = env.turn(SESSION, "x");
    assert!(
        !prompt.continues().contains("FORBIDDEN") && !prompt.continues().contains("ENCOURAGED"),
        "{prompt:?}"
    );
    assert!(prompt.continues().chars().count() < 600);
}

/// Beyond twelve entries, new ones were not told and pinned ones were left out.
#[test]
fn new_and_pinned_entries_are_always_told_and_older_ones_are_counted() {
    let env = Env::new();
    env.start(&format!("task {}", "long ".repeat(3000)), &[]);
    env.at(-1).guidance(&["forbid", "--pin", "pushing"]).ok();
    for n in 0..20 {
        env.at(n).guidance(&["forbid", &format!("thing {n:02}")]).ok();
    }
    let prompt = env.at(20).turn(SESSION, "x").continues().to_owned();
    let at = |text: &str| prompt.find(text).unwrap_or_else(|| panic!("{text}: {prompt}"));
    assert!(at("thing 19") < at("thing 18") && at("thing 18") < at("thing 00"), "{prompt}");
    assert!(at("thing 00") < at("pushing") && !prompt.contains("older"), "{prompt}");

    env.at(30).guidance(&["forbid", "one more"]).ok();
    let prompt = env.turn(SESSION, "x").continues().to_owned();
    for told in ["- one more (0s ago)", "- pushing (", "- thing 19 (", "- 10 older: `ralph-guidance list`"] {
        assert!(prompt.contains(told), "{told}: {prompt}");
    }
    assert!(!prompt.contains("thing 00"), "{prompt}");
    let compacted = env.session_start(SESSION, "compact").run().context.unwrap();
    for n in 0..20 {
        assert!(compacted.contains(&format!("- thing {n:02} (")), "in full: {compacted}");
    }
    assert!(compacted.chars().count() <= 10_000, "what is longer becomes a file: {compacted}");
    assert_eq!(kept(&env, "forbidden").len(), 22);
}

/// Delivered means that the agent was given the text, not that a prompt was written.
#[test]
fn a_start_from_a_terminal_has_delivered_nothing_yet() {
    let env = Env::new();
    env.guidance(&["forbid", "push"]).ok();
    env.start("task", &[]);
    let delivered = || env.status()["guidance"]["forbidden"][0]["delivered"].clone();
    assert_eq!(delivered(), false, "the agent has read nothing");
    assert!(env.turn(SESSION, "x").continues().contains("push"));
    assert_eq!(delivered(), true);
}

/// Another program can write more into the state than a loop takes.
#[test]
fn entries_that_do_not_fit_a_prompt_are_not_delivered_and_come_next() {
    let env = Env::new();
    env.start("task", &[]);
    let entry = |n: i64| json!({"text": format!("thing {n:02} {}", "x".repeat(400)), "timestamp": T0 + n});
    env.set_guidance(json!({"forbidden": (0..15).map(entry).collect::<Vec<_>>()}));
    let answer = env.at(20).turn(SESSION, "x");
    let read = format!("{}{}", answer.continues(), answer.context.as_deref().unwrap_or_default());
    for entry in env.status()["guidance"]["forbidden"].as_array().unwrap() {
        let text = entry["text"].as_str().unwrap();
        assert_eq!(entry["delivered"], read.contains(text), "{text}");
    }
    let count = |text: &str| text.matches("- thing").count();
    assert_eq!(count(answer.continues()), 9, "{answer:?}");
    let next = env.turn(SESSION, "x");
    assert!(next.continues().contains("- thing 00 ") && count(next.continues()) == 9, "{next:?}");
    let delivered = env.status()["guidance"]["forbidden"].clone();
    assert!(delivered.as_array().unwrap().iter().all(|entry| entry["delivered"] == true), "{delivered}");
}

/// 2,000 entries made a message of 127,000 characters.
#[test]
fn no_message_grows_with_the_number_of_entries() {
    let env = Env::new();
    env.start("task", &[]);
    let entry = |n: i64| json!({"text": format!("thing {n} {}", "long ".repeat(20)), "timestamp": T0});
    let fill = || {
        let entries: Vec<_> = (0..2000).map(entry).collect();
        env.set_guidance(json!({"encouraged": entries, "forbidden": []}));
    };
    fill();
    let listed = env.guidance(&["list"]).ok();
    assert!(listed.lines().count() < 205 && listed.contains("1800 more"), "{}", listed.len());
    let replaced = env.guidance(&["encourage", "--replace", "one"]).ok();
    assert!(replaced.chars().count() < 1500 && replaced.contains("and 1990 more"), "{replaced}");
    fill();
    let continued = env.turn(SESSION, "x");
    assert!(continued.continues().chars().count() < 6000, "{continued:?}");
    fill();
    let purged = env.at(25 * HOUR).turn(SESSION, "x").message.unwrap();
    assert!(purged.chars().count() < 1500 && purged.contains("\"thing 9 "), "{purged}");
    assert!(purged.contains(" and 1990 more"), "{purged}");
    assert_eq!(kept(&env, "encouraged").len(), 0);
}

#[test]
fn a_project_keeps_a_hundred_entries_and_refuses_more() {
    let env = Env::new();
    let entry = |n: i64| json!({"text": format!("{n}"), "timestamp": T0});
    env.start("task", &[]);
    let entries: Vec<_> = (0..99).map(entry).collect();
    env.set_guidance(json!({"encouraged": entries, "forbidden": []}));
    env.guidance(&["forbid", "the hundredth"]).ok();
    let told = env.guidance(&["forbid", "one more"]).fails(1);
    assert!(told.contains("at most 100") && told.contains("--remove N"), "{told}");
    assert!(env.types(OTHER, "encourage", "one more").block.unwrap().contains("at most 100"));
    assert!(env.guidance(&["forbid", "The hundredth"]).ok().contains("already in the list"));
    env.guidance(&["forbid", "--remove", "1"]).ok();
    env.guidance(&["forbid", "one more"]).ok();
}

/// Claude Code cuts what a hook adds to the context at 10,000 characters.
#[test]
fn a_loop_takes_as_much_as_fits_a_prompt_and_refuses_more() {
    let env = Env::new();
    env.start("task", &[]);
    env.guidance(&["forbid", "--pin", &format!("for all {}", "x".repeat(1900))]).ok();
    env.types(SESSION, "forbid", &format!("--pin mine {}", "y".repeat(1900)));
    env.types(OTHER, "forbid", &format!("--pin theirs {}", "z".repeat(1900)));
    let told = env.types(SESSION, "forbid", &"w".repeat(200)).message.unwrap();
    assert!(told.contains("too much guidance") && told.contains("at most 4000"), "{told}");
    env.guidance(&["forbid", &"w".repeat(200)]).fails(1);
    for n in 0..9 {
        env.write(&format!("generated/{n}.rs"), "// Code generated by x. DO NOT EDIT.\n");
        let prompt = env.turn(SESSION, "x").continues().to_owned();
        assert!(prompt.contains("- for all x") && prompt.contains("- mine y"), "{prompt}");
        assert!(!prompt.contains("theirs") && prompt.chars().count() < 6000, "{prompt}");
    }
}

#[test]
fn remove_takes_the_number_that_the_list_shows() {
    let env = Env::new();
    env.start("task", &[]);
    env.guidance(&["encourage", "--for", "1m", "soon over"]).ok();
    for text in ["two", "three", "four", "five", "six"] {
        env.guidance(&["forbid", text]).ok();
    }
    let list = env.at(120).types(SESSION, "forbid", "").message.unwrap();
    assert!(list.contains("- soon over (2m ago, for 1m, expired") && list.contains("2. three"), "{list}");
    let told = env.types(SESSION, "forbid", "--remove 2").message.unwrap();
    assert_eq!(told, "removed: three; 4 active");
    assert_eq!(env.types(SESSION, "encourage", "--remove=1").message.unwrap(), "removed: two; 3 active");
    assert_eq!(env.guidance(&["forbid", "--remove", "1"]).ok().trim(), "removed: four; 2 active");
    assert_eq!(env.ralph(&["encourage", "--remove", "2"]).ok().trim(), "removed: six; 1 active");
    for told in [
        env.types(SESSION, "forbid", "--remove 7").message.unwrap(),
        env.guidance(&["encourage", "--remove", "7"]).fails(1),
        env.ralph(&["forbid", "--remove", "7"]).fails(1),
    ] {
        assert!(told.contains("no such guidance: '7'") && told.contains("ralph-guidance list"), "{told}");
    }
    assert!(env.types(SESSION, "forbid", "--remove").message.unwrap().contains("--remove N"));
    assert!(
        env.types(SESSION, "forbid", "it --remove 1").message.unwrap().contains("cannot be used together")
    );
    env.guidance(&["forbid", "--remove", "1", "text"]).fails(64);
    assert_eq!(kept(&env, "forbidden"), ["five"]);
}

#[test]
fn ralph_gives_guidance_too() {
    let env = Env::new();
    env.ralph(&["forbid", "--pin", "push"]).ok();
    env.ralph(&["encourage", "small", "steps"]).ok();
    assert_eq!(
        (kept(&env, "forbidden"), kept(&env, "encouraged")),
        (vec!["push".into()], vec!["small steps".to_owned()])
    );
    assert!(env.ralph(&["forbid"]).ok().contains("2. push"));
}

#[test]
fn typed_in_a_loop_an_entry_is_shown_reaches_the_next_prompt_and_the_loop_continues() {
    let env = Env::new();
    env.start("the task", &[]);
    env.turn(SESSION, "x").continues();
    let answer = env.at(5).types(SESSION, "forbid", HOSTILE);
    assert_eq!(answer.block, None, "an answer without a turn would end the loop's turn");
    assert!(answer.message.as_deref().unwrap().contains("forbidden: don't \"rm -rf\" $(touch pwned)"));
    let relayed = env.guidance(&["forbid", "--slash", "--session", SESSION]).ok();
    assert!(
        relayed.contains(HOSTILE) && relayed.contains("the task"),
        "the agent reads it at once: {relayed}"
    );
    let answer = env.at(10).turn(SESSION, "x");
    assert!(answer.continues().contains(&format!("- {HOSTILE} (5s ago)")), "{answer:?}");
    env.at(15).types(SESSION, "encourage", "--for 2h small steps");
    assert!(env.turn(SESSION, "x").continues().contains("- small steps (0s ago)"));
    assert!(!env.exists("pwned"));
    assert_eq!(env.state()["guidance"]["forbidden"][0]["session_id"], SESSION);
}

#[test]
fn typed_without_a_loop_an_entry_is_answered_without_a_model_call_and_kept_for_the_start() {
    let env = Env::new();
    let told = env.types(SESSION, "forbid", HOSTILE).block.unwrap();
    assert!(told.starts_with("forbidden: ") && told.contains("1 active"), "{told}");
    let told = env.types(SESSION, "forbid", "--bogus x").block.unwrap();
    assert!(told.contains("--bogus"), "{told}");
    assert_eq!(kept(&env, "forbidden"), [HOSTILE]);
    let answer = env.at(60).types(SESSION, "start", "the task");
    assert_eq!(answer.block, None, "{answer:?}");
    let relayed = env.ralph(&["relay", "start", "--session", SESSION]).ok();
    assert!(relayed.contains(HOSTILE), "chosen just before the start, it counts: {relayed}");
    assert!(!env.exists("pwned"));
}

#[test]
fn an_older_client_passes_the_text_by_stdin() {
    let env = Env::new();
    env.start("task", &[]);
    let told = env.guidance(&["forbid", "--slash", "--session", SESSION]).ok();
    let line = told.lines().find(|line| line.contains("<<'RALPH_")).expect("a command");
    let command = format!("\"{}\" forbid --slash --session {SESSION} - <<", Program::Guidance.path());
    assert!(line.starts_with(&command), "{line}");
    assert!(told.contains("ARGUMENTS"), "{told}");

    let passed = |command: &str, text: &str| {
        piped(&env, &[command, "--slash", "--session", SESSION, "-"], format!("{text}\n").as_bytes()).ok()
    };
    assert!(passed("forbid", HOSTILE).contains("1 active; for this session's loop"));
    assert_eq!(kept(&env, "forbidden"), [HOSTILE]);
    assert!(passed("encourage", "").contains("rm -rf"), "no text lists");
    passed("encourage", "--pin small steps");
    let entry = env.state()["guidance"]["encouraged"][0].clone();
    assert_eq!((&entry["text"], &entry["pinned"]), (&json!("small steps"), &json!(true)), "flags count");
    assert!(passed("encourage", "--remove 1").contains("removed: small steps"));
}

#[test]
fn the_command_files_call_the_companion_program() {
    for command in ["encourage", "forbid"] {
        let file = format!("{}/commands/{command}.md", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).unwrap();
        let program = format!("\"${{CLAUDE_PLUGIN_ROOT}}/bin/ralph-guidance\" {command}");
        let call = format!("\n!`{program} --slash --session ${{CLAUDE_SESSION_ID}}`\n");
        assert!(text.ends_with(&call), "{text}");
        assert!(text.contains(&format!("allowed-tools: Bash({program} --slash:*)\n")), "{text}");
        assert!(text.contains("--remove N"), "{text}");
        assert!(!text.contains("/bin/ralph\"") && !text.contains("$ARGUMENTS"), "{text}");
    }
}

#[test]
fn escape_codes_in_guidance_do_not_reach_the_terminal() {
    let env = Env::new();
    env.start("task", &[]);
    let entry = json!({"text": "a\u{1b}[2Jb\u{9b}c\nd", "timestamp": T0, "session_id": SESSION});
    env.edit_state(|state| state["guidance"] = json!({"encouraged": [], "forbidden": [entry]}));
    let ignored =
        [env.guidance(&["list"]).ok(), env.guidance(&["list", "--json"]).ok(), env.ralph(&["status"]).ok()];
    env.record_guidance();
    let outputs = [
        env.guidance(&["list"]).ok(),
        env.guidance(&["list", "--json"]).ok(),
        env.ralph(&["status"]).ok(),
        env.stop(SESSION).says("x").call().run().stdout,
        env.guidance(&["remove", "1"]).ok(),
    ];
    for text in outputs.iter().chain(&ignored) {
        assert!(!text.contains(['\u{1b}', '\u{9b}']), "{text:?}");
    }
}

#[test]
fn what_was_given_before_the_start_counts_towards_the_limit() {
    let env = Env::new();
    env.types(SESSION, "forbid", &format!("--pin first {}", "x".repeat(1900)));
    env.guidance(&["forbid", "--pin", &format!("second {}", "y".repeat(1900))]).ok();
    let refused = env.guidance(&["forbid", "--pin", &format!("third {}", "z".repeat(1900))]).fails(1);
    assert!(refused.contains("too much guidance"), "{refused}");
    env.start("task", &[]);
    for _ in 0..3 {
        let prompt = env.turn(SESSION, "x").continues().to_owned();
        assert!(prompt.contains("- first x") && prompt.contains("- second y"), "{prompt}");
    }
}

#[test]
fn an_adopted_loop_says_that_the_guidance_of_both_sessions_does_not_fit() {
    let env = Env::new();
    env.start_in(OTHER, "task", &[]);
    for (session, name) in [(OTHER, "theirs"), (SESSION, "mine")] {
        for n in 0..2 {
            env.types(session, "forbid", &format!("--pin {name} {n} {}", "x".repeat(1900)));
        }
    }
    env.event(Program::StopHook, OTHER, "SessionEnd").field("reason", "clear").run();
    let told = env.types(SESSION, "start", "--resume").message.unwrap();
    assert!(told.contains("not all guidance fits in a prompt") && told.contains("--remove N"), "{told}");
}

#[test]
fn guidance_is_whole_after_compaction_whatever_the_checks() {
    let env = Env::new();
    let checks: Vec<String> = (0..40).map(|n| format!("--verify=true {n} {}", "x".repeat(280))).collect();
    env.start("task", &checks.iter().map(String::as_str).collect::<Vec<_>>());
    env.guidance(&["forbid", "--pin", "push to main"]).ok();
    let context = env.session_start(SESSION, "compact").run().context.unwrap();
    assert!(context.contains("FORBIDDEN:\n- push to main"), "{context}");
    assert!(context.contains("- and 30 more") && context.ends_with("Task:\n\ntask"), "{context}");
}

#[test]
fn the_answer_says_how_long_an_entry_counts() {
    let env = Env::new();
    for (text, told) in [
        ("--for 1h 30m push", "forbidden: push (for 1h 30m); "),
        ("--for 1 h 30 m push", "forbidden: push (for 1h 30m); "),
        ("--pin push", "forbidden: push (pinned); "),
        ("push", "forbidden: push; "),
    ] {
        let answer = env.types(SESSION, "forbid", text).block.unwrap();
        assert!(answer.starts_with(told), "{answer}");
    }
}

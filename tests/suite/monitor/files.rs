//! Files that grow, appear, vanish, are cut off or half written, and more runs than a screen has lines.

use super::worlds::{PAST, busy, ended, iteration};
use crate::env::{Access, Env, FileEvents, SESSION, stamp};
use serde_json::json;
use std::fs;
use std::io::Write;

/// Selects the past run and waits until its events are shown.
fn at_past_run(env: &Env) -> crate::env::Terminal {
    let terminal = env.monitor((120, 40), &[]);
    terminal.sees("▌● working");
    terminal.types("G").sees("·x·r·✓");
    terminal
}

#[test]
fn what_happens_is_shown_while_it_happens() {
    let env = busy();
    let terminal = env.monitor((120, 40), &[]);
    terminal.sees("  6/12  ");
    env.at(3360).turn(SESSION, "Moved another part, and here is what it was about.").continues();
    let text = terminal.sees("  7/12  ");
    assert!(text.contains("Last message · #7"), "{text}");
    env.at(3380).start_in("new-session", "A loop that began later", &["--ignore-open-questions"]);
    terminal.sees("● working   A loop that");
    env.at(3400).turn(SESSION, crate::env::DONE).continues();
    terminal.sees("failed test -e done.txt (exit code 1, now, took 0s)");
}

#[test]
fn a_file_that_grows_is_read_once() {
    let env = busy();
    let terminal = at_past_run(&env);
    // It is opened again and again, and what was read does not come twice.
    FileEvents::of_file(&env.events_file(PAST), Access::Open).wait_for(3);
    env.add_events(PAST, &[env.started(PAST, 3290, "continued")]);
    env.add_events(PAST, &[iteration(7, 3295, 90.0, "denied")]);
    terminal.sees("·x·r·✓d");
}

#[test]
fn a_file_that_is_cut_off_replaced_or_gone_costs_nothing_else() {
    let env = busy();
    let terminal = at_past_run(&env);
    let whole = fs::read(env.events_file(PAST)).unwrap();
    fs::write(env.events_file(PAST), &whole[..whole.len() / 2]).unwrap();
    terminal.loses("·x·r·✓");
    terminal.sees("unknown");
    fs::write(env.events_file(PAST), &whole).unwrap();
    terminal.sees("·x·r·✓");
    fs::remove_file(env.events_file(PAST)).unwrap();
    terminal.loses("·x·r·✓");
    fs::remove_dir_all(env.events_file(PAST).parent().unwrap()).unwrap();
    terminal.loses("Port the test suite");
    fs::create_dir(env.events_file(PAST).parent().unwrap()).unwrap();
    fs::write(env.events_file(PAST), &whole).unwrap();
    terminal.sees("Port the test suite");
    terminal.types("G").sees("·x·r·✓");
    // The project's own state, too.
    let state = env.read(".claude/ralph-state.json");
    env.write(".claude/ralph-state.json", &state[..state.len() / 2]);
    terminal.loses("● working");
    env.write(".claude/ralph-state.json", &state);
    terminal.sees("● working");
}

#[test]
fn half_a_line_waits_for_its_other_half() {
    let env = busy();
    let terminal = at_past_run(&env);
    let line = format!("\n{}\n", iteration(7, 3295, 90.0, "denied"));
    let (first, second) = line.split_at(line.len() / 2);
    let mut file = fs::OpenOptions::new().append(true).open(env.events_file(PAST)).unwrap();
    file.write_all(first.as_bytes()).unwrap();
    FileEvents::of_file(&env.events_file(PAST), Access::Open).wait_for(4);
    let text = terminal.text();
    assert!(text.contains("·x·r·✓") && !text.contains("·x·r·✓d"), "{text}");
    file.write_all(second.as_bytes()).unwrap();
    terminal.sees("·x·r·✓d");
}

#[test]
fn unknown_events_and_a_newer_version_are_named() {
    let env = busy();
    let newer = json!({"v": 9, "timestamp": stamp(3290), "event": "dreamt", "of": ["x"]});
    env.add_events(PAST, &[newer, json!({"v": 1, "timestamp": stamp(3291), "event": "sang"})]);
    let mut file = fs::OpenOptions::new().append(true).open(env.events_file(PAST)).unwrap();
    file.write_all(b"\nno event at all\n{\"timestamp\":\n\xff\xfe\n").unwrap();
    let terminal = at_past_run(&env);
    terminal.types("\tG");
    let text = terminal.sees("2 events of a kind unknown to this version");
    assert!(text.contains("a newer version of Ralph wrote these events"), "{text}");
}

#[test]
fn five_hundred_runs_are_listed_and_read_as_they_come_into_sight() {
    let env = Env::new();
    for number in 0..500 {
        let id = format!("{number:032x}");
        let at = -100_000 + number * 100;
        env.add_events(&id, &[env.started(&id, at, &format!("run number {number}"))]);
        env.add_events(
            &id,
            &[iteration(1, at + 10, 9.0, "ok"), ended(at + 20, "stopped", "`ralph stop` was run")],
        );
    }
    let terminal = env.monitor((80, 24), &[]);
    terminal.sees("0 working · 500 ended");
    terminal.sees("■ stopped");
    terminal.types("G");
    terminal.wait_until("the last row is read", |text| {
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("run number")).collect();
        rows.len() == 11 && rows.iter().all(|row| row.contains("■ stopped"))
    });
    terminal.types("/number 444").sees("▌■ stopped   run number 444");
}

#[test]
fn a_run_from_before_there_were_events_is_listed() {
    let env = busy();
    env.at(3310).turn(SESSION, "<promise>BLOCKED:no key for staging</promise>").ended("blocked");
    fs::remove_dir_all(env.data().join("runs")).unwrap();
    env.start("the next one", &["--ignore-open-questions"]);
    let terminal = env.monitor((120, 40), &[]);
    terminal.sees("▌● working   the next one");
    terminal.types("/blocked\r").sees("Ended       needs a person: no key for staging");
    terminal.types("\tG").sees("this run has no events");
}

#[test]
fn a_gigabyte_of_events_is_skipped_and_named() {
    let env = busy();
    let file = fs::OpenOptions::new().write(true).open(env.events_file(PAST)).unwrap();
    file.set_len(1 << 30).unwrap();
    env.add_events(PAST, &[ended(3300, "stopped", "at last")]);
    let terminal =
        env.call(crate::env::Program::Ralph).args(&["monitor"]).max_memory_mb(400).on_terminal((120, 40));
    terminal.sees("▌● working");
    terminal.types("G").sees("▌■ stopped   Port");
    terminal.sees("its events are too large");
}

#[test]
fn a_file_that_grows_by_a_gigabyte_while_it_is_watched_takes_no_memory() {
    let env = busy();
    let terminal =
        env.call(crate::env::Program::Ralph).args(&["monitor"]).max_memory_mb(400).on_terminal((120, 40));
    terminal.sees("▌● working");
    terminal.types("G").sees("▌■ complete  Port");
    terminal.sees("·x·r·✓");
    let file = fs::OpenOptions::new().write(true).open(env.events_file(PAST)).unwrap();
    file.set_len(1 << 30).unwrap();
    env.add_events(PAST, &[env.started(PAST, 3290, "continued"), iteration(7, 3295, 90.0, "denied")]);
    terminal.sees("d denied 1");
    terminal.sees("its events are too large");
}

//! Records that are there and cannot be read: an error, never absence.

use crate::env::{DONE, Env, OTHER, SESSION, names_in};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Puts a link to itself in the place of each file of a folder, which no user can read, not even root. Returns the
/// files with what they said.
fn make_unreadable(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files: Vec<PathBuf> = names_in(folder).into_iter().map(|name| folder.join(name)).collect();
    let broken = files.into_iter().map(|path| {
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&path, &path).unwrap();
        (path, bytes)
    });
    broken.collect()
}

fn repair(files: Vec<(PathBuf, Vec<u8>)>) {
    for (path, bytes) in files {
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_loop_whose_record_cannot_be_read_is_kept_and_the_user_is_told() {
    for folder in ["sessions", "circuit"] {
        let env = Env::new();
        env.start("the task", &[]);
        env.turn(SESSION, "one").continues();
        let before = env.read(".claude/ralph-state.json");
        let broken = make_unreadable(&env.data().join(folder));
        for answer in [env.turn(SESSION, DONE), env.session_start(SESSION, "resume").run()] {
            let told = answer.allows().to_owned();
            assert!(told.contains("Ralph failed") && told.contains(&format!("data/{folder}/")), "{told}");
        }
        env.ralph(&["start", "--session", SESSION, "--replace", "other"]).fails(70);
        assert!(env.ralph(&["stop"]).ok().contains("was not stopped"), "{folder}");
        assert!(env.ralph(&["status"]).ok().contains(&format!("data/{folder}/")));
        repair(broken);
        assert_eq!(env.read(".claude/ralph-state.json"), before, "{folder}: nothing was ended or counted");
        assert!(env.history().is_empty());
        assert!(env.turn(SESSION, "two").continues().contains("the task"));
        assert_eq!(env.shown(SESSION)["iteration"], 2);
    }
}

#[test]
fn an_unreadable_record_costs_no_other_loop() {
    let env = Env::new();
    env.start("mine", &[]);
    let broken = make_unreadable(&env.data().join("sessions"));
    env.start_in(OTHER, "another", &[]);
    env.turn(OTHER, "x").continues();
    env.write(".claude/STOP_LOOP", "");
    env.turn(OTHER, "x").ended("killed");
    assert!(env.exists(".claude/STOP_LOOP"), "the switch waits for the loop that cannot be read");
    repair(broken);
    env.turn(SESSION, "x").ended("killed");
    assert!(!env.exists(".claude/STOP_LOOP"));
}

#[test]
fn stop_all_says_which_record_it_could_not_read() {
    let env = Env::new();
    env.start("mine", &[]);
    let broken = make_unreadable(&env.data().join("sessions"));
    let told = env.at(5).ralph(&["stop", "--all"]).ok();
    assert!(told.contains("data/sessions/") && told.contains("stops when its turn ends"), "{told}");
    repair(broken);
    env.at(10).turn(SESSION, "x").ended("stopped");
}

#[test]
fn an_unreadable_stop_for_all_ends_no_loop() {
    let env = Env::new();
    env.ralph(&["stop", "--all"]).ok();
    env.at(10).start("the task", &[]);
    let path = env.data().join("stop-all");
    let text = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&path, &path).unwrap();
    assert!(env.turn(SESSION, "x").allows().contains("stop-all"));
    env.ralph(&["start", "--session", OTHER, "other"]).fails(70);
    repair(vec![(path, text)]);
    env.turn(SESSION, "x").continues();
}

#[test]
fn answers_that_cannot_be_read_are_not_replaced_by_none() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, "<promise>DECIDE:which?</promise>").ended("decide");
    env.ralph(&["answer", "the blue one"]).ok();
    env.start("task", &["--resume"]);
    let broken = make_unreadable(&env.data().join("answers"));
    assert_eq!(broken.len(), 2, "the answers, and which of them were given with `ralph answer`");
    env.ralph(&["start", "--session", OTHER, "other"]).fails(70);
    repair(broken);
    env.start_in(OTHER, "other", &[]);
    let told = format!("{:?}", env.turn(OTHER, "x"));
    assert!(told.contains("the blue one"), "{told}");
}

#[test]
fn a_trust_record_that_cannot_be_read_trusts_nothing_and_says_so() {
    let env = Env::new();
    env.write(".claude/ralph-config.json", r#"{"completion": {"verify": ["true"]}}"#);
    env.ralph(&["trust"]).ok();
    let broken = make_unreadable(&env.data().join("trust"));
    let told = env.ralph(&["config"]).ok();
    assert!(told.contains("is not run: could not read") && told.contains("data/trust/"), "{told}");
    repair(broken);
    assert!(!env.ralph(&["config"]).ok().contains("is not run"));
}

#[test]
fn what_a_killed_writer_left_is_no_record() {
    let env = Env::new();
    env.start("mine", &[]);
    let folder = env.data().join("sessions");
    let record = folder.join(&names_in(&folder)[0]);
    let gone = fs::read_to_string(&record).unwrap().replace("/project\"", "/elsewhere\"");
    fs::write(record.with_extension("json.tmp-new"), gone).unwrap();
    let told = env.ralph(&["stop", "--all"]).ok();
    assert!(told.contains("mine") && !told.contains("elsewhere"), "{told}");
    let told = env.ralph(&["doctor", "--json"]).stdout;
    assert!(!told.contains("which no longer exists"), "{told}");
}

//! `ralph pause` in a session: the turn ends by itself, and only the user resumes.

use crate::env::{DONE, Env, OTHER, SESSION};

#[test]
fn a_pause_from_outside_takes_effect_at_the_end_of_the_turn() {
    let env = Env::new();
    env.start("the task", &[]);
    env.start_in(OTHER, "another task", &[]);
    let told = env.at(10).ralph(&["pause", "--session", SESSION]).ok();
    assert!(told.contains("\"the task\" pauses at the end of this turn"), "{told}");
    assert!(told.contains(&format!("/ralph:start --resume in session {SESSION}")), "{told}");
    assert_eq!(env.shown(OTHER)["state"], "running", "another loop is not concerned");
    let answer = env.at(20).turn(SESSION, DONE);
    assert!(
        answer.allows().contains("PAUSED: paused by you. Resume with /ralph:start --resume"),
        "{answer:?}"
    );
    assert_eq!(env.shown(SESSION)["iteration"], 0, "a paused turn is no iteration");
    let refused = env.ralph(&["pause", "--resume", "--session", SESSION]).fails(1);
    assert!(refused.contains("its session waits for you") && refused.contains("hint: "), "{refused}");
    env.at(60).ralph(&["start", "--resume", "--session", SESSION]).ok();
    env.at(70).turn(SESSION, "on it").continues();
}

#[test]
fn a_pause_can_be_withdrawn_until_the_turn_ends() {
    let env = Env::new();
    env.start("the task", &[]);
    env.at(10).ralph(&["pause"]).ok();
    assert_eq!(env.shown(SESSION)["state"], "paused");
    let told = env.at(15).ralph(&["pause", "--resume"]).ok();
    assert!(told.contains("\"the task\" continues."), "{told}");
    env.at(20).turn(SESSION, "on it").continues();
    assert_eq!(env.shown(SESSION)["iteration"], 1);
}

#[test]
fn a_pause_without_a_loop_says_so() {
    let env = Env::new();
    for args in [&["pause"][..], &["pause", "--resume"], &["pause", "--session", OTHER]] {
        let refused = env.ralph(args).fails(1);
        assert!(refused.starts_with("error: no loop is ") && refused.contains("hint: "), "{refused}");
    }
    env.start("the task", &[]);
    env.at(5).ralph(&["pause"]).ok();
    env.at(6).ralph(&["pause"]).fails(1);
    env.at(7).ralph(&["stop"]).ok();
    env.at(8).ralph(&["pause", "--resume"]).fails(1);
}

//! `ralph statusline`: one line for the session's loop, and silence everywhere else.

use crate::env::{DONE, Env, HOUR, Program, SESSION};
use serde_json::json;
use std::fs;

/// Returns what the status line of a session shows.
pub fn status_line(env: &Env, session: &str) -> String {
    let transcript = env.base.join("transcript.jsonl");
    let input = json!({"session_id": session, "model": null, "cwd": "/", "transcript_path": transcript,
        "workspace": {"current_dir": "/", "project_dir": env.project}});
    env.call(Program::Ralph).args(&["statusline"]).stdin(input.to_string()).run().ok()
}

#[test]
fn the_status_line_shows_the_loop_of_its_session_only() {
    let env = Env::new();
    let line = |session: &str| status_line(&env, session);
    assert_eq!(line(SESSION), "");
    env.start("work", &[]);
    assert_eq!(line(SESSION), "working · Ralph 0/50 · Runtime: 0.0h/9.0h | Wall: 0.0h · circuit ok\n");
    assert_eq!(line("another"), "", "the loop of another session");

    env.guidance(&["forbid", "the API", "--session", SESSION]).ok();
    env.guidance(&["encourage", "tests", "--session", SESSION]).ok();
    env.at(60).turn(SESSION, "thinking");
    assert_eq!(
        line(SESSION),
        "working · Ralph 1/50 · Runtime: 0.0h/9.0h | Wall: 0.0h · no progress 1/5 · 1 encouraged, 1 forbidden\n"
    );
    env.ralph(&["config", "loop_limits.max_iterations", "4"]).ok();
    assert!(line(SESSION).ends_with("ENDING SOON\n"), "{}", line(SESSION));
    env.ralph(&["stop", "--all"]).ok();
    assert_eq!(line(SESSION), "ended: stopped · 1 iteration\n");
    assert_eq!(line("another"), "");
}

#[test]
fn after_an_ending_the_status_line_says_it_until_the_next_start() {
    let env = Env::new();
    env.start("work", &["--min-iterations", "12"]);
    for turn in 1..12 {
        env.write("work.txt", turn.to_string());
        env.at(turn)
            .turn(SESSION, &format!("Did part {turn} of it, and wrote down what is next."))
            .continues();
    }
    env.at(12).turn(SESSION, DONE).ended("complete");
    for seconds in [12, 20 * HOUR] {
        assert_eq!(status_line(env.at(seconds), SESSION), "ended: complete · 12 iterations\n");
    }
    env.start("more work", &[]);
    assert!(status_line(&env, SESSION).starts_with("working · Ralph 0/50 · "));
}

#[test]
fn an_ending_that_came_with_the_repository_is_not_shown() {
    let env = Env::new();
    env.start("work", &[]);
    env.at(10).turn(SESSION, DONE).ended("complete");
    fs::remove_dir_all(env.data().join("history")).unwrap();
    assert_eq!(status_line(&env, SESSION), "");
}

#[test]
fn the_status_line_never_fails() {
    let env = Env::new();
    env.start("work", &[]);
    env.write(".claude/ralph-state.json", "damaged");
    let good = json!({"session_id": SESSION, "workspace": {"project_dir": env.project}}).to_string();
    for input in ["", "{", "[1]", "{\"session_id\": 7}", "\u{0}", good.as_str()] {
        let run = env.call(Program::Ralph).args(&["statusline"]).stdin(input).run();
        assert_eq!(run.ok(), "", "{input}");
    }
    env.var("RALPH_NOW", "yesterday");
    assert_eq!(env.call(Program::Ralph).args(&["statusline"]).stdin(good).run().ok(), "");
    assert_eq!(
        fs::read_to_string(env.path(".claude/ralph-state.json")).unwrap(),
        "damaged",
        "and writes nothing"
    );
}

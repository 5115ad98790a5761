//! `ralph statusline`: one line for the session's loop, and silence everywhere else.

use crate::env::{Env, Program, SESSION};
use serde_json::json;
use std::fs;

#[test]
fn the_status_line_shows_the_loop_of_its_session_only() {
    let env = Env::new();
    let line = |session: &str| {
        let input = json!({"session_id": session, "model": null, "cwd": "/",
            "workspace": {"current_dir": "/", "project_dir": env.project}});
        env.call(Program::Ralph).args(&["statusline"]).stdin(input.to_string()).run().ok()
    };
    assert_eq!(line(SESSION), "");
    env.start("work", &[]);
    assert_eq!(line(SESSION), "Ralph 0/50 · Runtime: 0.0h/9.0h | Wall: 0.0h · circuit ok\n");
    assert_eq!(line("another"), "", "the loop of another session");

    env.guidance(&["forbid", "the API", "--session", SESSION]).ok();
    env.guidance(&["encourage", "tests", "--session", SESSION]).ok();
    env.at(60).turn(SESSION, "thinking");
    assert_eq!(
        line(SESSION),
        "Ralph 1/50 · Runtime: 0.0h/9.0h | Wall: 0.0h · no progress 1/5 · 1 encouraged, 1 forbidden\n"
    );
    env.ralph(&["config", "loop_limits.max_iterations", "4"]).ok();
    assert!(line(SESSION).ends_with("ENDING SOON\n"), "{}", line(SESSION));
    env.ralph(&["stop", "--all"]).ok();
    assert_eq!(line(SESSION), "");
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

//! The plugin under test and the `ralph` program beside it, in the world of a session.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, Session};
use crate::clock::{Clock, MAX_WAIT};
use crate::messages_api::{Api, Reply};

/// How long to wait for what is sure to happen.
pub const SOON: Duration = MAX_WAIT;

/// The plugin as `ralph install --to` lays it out, once for all tests; the folder's name has a space.
pub fn plugin() -> &'static Path {
    static PLUGIN: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PLUGIN.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("the plugin");
        let install = Command::new(env!("CARGO_BIN_EXE_ralph"))
            .arg("install")
            .arg("--to")
            .arg(&target)
            .output()
            .unwrap();
        assert!(install.status.success(), "{}", String::from_utf8_lossy(&install.stderr));
        (folder, target)
    });
    path
}

/// A session with the plugin, or nothing where there is no client.
pub fn session(api: &Api) -> Option<Session> {
    Some(session_of(&Client::find()?, api))
}

/// A session of this client with the plugin.
pub fn session_of(claude: &Path, api: &Api) -> Session {
    Session::new(claude, api).plugin(plugin()).allow("Bash")
}

/// Returns the session with a clock for its Ralph that stands still unless the test moves it. It begins now, because the
/// client writes the real time to its transcript.
pub fn with_clock(session: Session) -> (Session, Clock) {
    with_clock_at(session, chrono::DateTime::<chrono::Utc>::from(SystemTime::now()).timestamp())
}

/// The same with a clock that begins at this second.
pub fn with_clock_at(session: Session, now: i64) -> (Session, Clock) {
    let clock = Clock::new(session.root().join("clock"), now * 1000);
    (session.env("RALPH_NOW", clock.variable()), clock)
}

/// Returns the session with a clock for its Ralph that runs like that of the client, and that the test can set.
pub fn with_running_clock(session: Session) -> (Session, Clock) {
    let clock = Clock::running(session.root().join("clock"));
    (session.env("RALPH_NOW", clock.variable()), clock)
}

/// A turn that works: one command, then a word. Idle turns would end the loop as stuck.
pub fn working(word: &str) -> [Reply; 2] {
    let command = json!({"command": "echo work >> work.txt", "description": "work"});
    [Reply::tool("Bash", command), Reply::text(word)]
}

pub fn replies<const N: usize>(turns: [[Reply; 2]; N]) -> Vec<Reply> {
    turns.into_iter().flatten().collect()
}

/// Runs `ralph` from a second terminal of the same user, in the project.
pub fn ralph(session: &Session, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ralph"))
        .args(args)
        .env_clear()
        .envs(session.variables())
        .current_dir(session.project())
        .output()
        .unwrap();
    assert!(output.status.success(), "ralph {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub fn status(session: &Session) -> Value {
    serde_json::from_str(&ralph(session, &["status", "--json"])).unwrap()
}

/// The one loop there is.
pub fn the_loop(session: &Session) -> Value {
    let status = status(session);
    let loops = status["loops"].as_array().unwrap();
    assert_eq!(loops.len(), 1, "{status}");
    loops[0].clone()
}

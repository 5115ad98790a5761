//! `ralph statusline`: one line for Claude Code's status line, and never an error, because it runs all the time.

use crate::claude::settings::statusline::{self, Input};
use crate::cli::{Project, World};
use crate::store::user::armed;
use crate::store::{config, state};
use crate::view::statusline as view;
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

const MAX_INPUT_BYTES: u64 = 16 << 20;

/// Reads Claude Code's JSON on stdin and prints at most one line.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    let mut bytes = Vec::new();
    let stdin = std::io::stdin();
    // Started by hand, there is no input.
    if !stdin.is_terminal() {
        let _ = stdin.lock().take(MAX_INPUT_BYTES).read_to_end(&mut bytes);
    }
    if let Some(line) = line(&bytes) {
        let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
    }
    ExitCode::SUCCESS
}

fn line(bytes: &[u8]) -> Option<String> {
    let Input { session_id, folder } = statusline::parse(bytes)?;
    let world = World::from_env().ok()?;
    let project = Project::find(&world, folder.as_deref());
    // As in every hook: a session without a loop is found out by one look at a file that is not there.
    if !state::usable_session_id(&session_id) || !armed::exists(&world, &project, &session_id) {
        return None;
    }
    let document = state::peek(&project).ok()??;
    let run = armed::load_armed(&world, &project, &session_id, &document).filter(|run| run.is_alive())?;
    let settings = config::load_for(&world, &project, &run).settings_for(run.engine);
    Some(view::line(&run, &document.guidance(), &settings, world.now))
}

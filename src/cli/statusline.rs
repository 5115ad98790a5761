//! `ralph statusline`: one line for Claude Code's status line, and never an error: the client asks all the time.

use crate::claude::statusline::{self, Input};
use crate::core::record::Loop;
use crate::store::project::Project;
use crate::store::world::World;
use crate::store::{armed, circuit, config, state};
use crate::view::statusline as view;
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

const MOST_INPUT: u64 = 16 << 20;

/// The whole command: the client's JSON on stdin, at most one line on stdout.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    let mut bytes = Vec::new();
    let stdin = std::io::stdin();
    // Called by hand there is nobody to write to it.
    if !stdin.is_terminal() {
        let _ = stdin.lock().take(MOST_INPUT).read_to_end(&mut bytes);
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
    if !state::usable_session_id(&session_id) || !armed::any(&world, &project, &session_id) {
        return None;
    }
    let document = state::peek(&project).ok()??;
    let lap = armed::claim(&world, &project, &session_id, document.loop_of(&session_id)?)?;
    let mut lap = Some(lap).filter(Loop::is_alive)?;
    lap.circuit = circuit::load(&world, &project, &session_id, &lap.run_id);
    let settings = config::load(&world, &project, &lap.given).settings_for(lap.engine);
    Some(view::line(&lap, &document.guidance(), &settings, world.now))
}

//! `ralph statusline`: one line for Claude Code's status line, and never an error, because it runs all the time. What the
//! client tells of cost, context and quota is kept for the Stop hook.

use crate::claude::settings::statusline::{self, Input};
use crate::cli::loops::status::observe;
use crate::cli::{Project, World};
use crate::run;
use crate::store::user::{armed, figures, given_guidance, history};
use crate::store::{config, state};
use crate::view::activity::Activity;
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

/// Returns the line for the input of a status line, if there is a loop to show.
pub fn line(bytes: &[u8]) -> Option<String> {
    let Input { session_id, folder, transcript, told } = statusline::parse(bytes)?;
    let world = World::for_hook().ok()?;
    if !state::usable_session_id(&session_id) {
        return None;
    }
    // In every session: a loop that starts later must know what the session had cost before.
    let _ = figures::keep(&world, &session_id, &told);
    let project = Project::find(&world, folder.as_deref());
    // In a project without a loop this is one look at a file that is not there.
    let document = state::peek(&project).ok()??;
    let alive = |session: &str| {
        armed::load_armed(&world, &project, session, &document).ok()?.filter(|run| run.is_alive())
    };
    // A run in this project concerns every session here.
    let sessions = [session_id.as_str(), run::SESSION];
    let Some((shown, mut run)) = sessions.into_iter().find_map(|id| Some((id, alive(id)?))) else {
        let own = document.loop_of(&session_id).filter(|own| !own.is_alive())?;
        let is_ours = armed::is_armed(&world, &project, &session_id, &own.run_id).ok()?
            || history::contains(&world, &project, &own.run_id).ok()?;
        return is_ours.then(|| view::ended(&own, world.now));
    };
    let client = observe(&world, &project, &session_id, &mut run, transcript.as_deref());
    let settings = config::load_for(&world, &project, &run).settings_for(run.engine);
    let activity = Activity::of(&run, &client, world.now);
    let guidance =
        given_guidance::guidance(&world, &project, &document).unwrap_or_default().of_session(shown);
    Some(view::line(&run, &activity, &guidance, &settings, world.now))
}

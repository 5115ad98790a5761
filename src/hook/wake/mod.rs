//! The waker: an asynchronous hook that continues a loop whose session would sleep.
//!
//! It runs beside the hooks of Stop and StopFailure and waits for one thing, each in a file of its own: the turn that the user
//! queued, the user's answer from elsewhere, background commands, a service that failed, or the reset of a usage limit.
//! With `asyncRewake` the client wakes the agent for exit code 2 and the text on stderr.

mod answer;
mod background;
mod probe;
mod queue;
mod reset;
mod service;

use crate::claude::hook::input::{self, HookEvent, HookInput};
use crate::core::decide::Note;
use crate::core::prompt;
use crate::core::record::{ArmedLoop, LoopState};
use crate::core::time::Stamp;
use crate::scan::briefing::{self, BriefingContext};
use crate::store::user::armed;
use crate::store::world::World;
use crate::store::{Project, config, state};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

const WAKE: u8 = 2;
/// The name of the note that tells the user at the next end of a turn how the loop was woken.
pub(super) const WOKEN: &str = "woken";
/// How much later than the hook beside it this one may be started.
const MAX_START_DELAY_MS: i64 = 2000;
const POLL: Duration = Duration::from_millis(200);

pub fn main() -> ExitCode {
    // If anything fails here, the session behaves as if there were no waker.
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    match watch() {
        Some(text) => {
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
            ExitCode::from(WAKE)
        }
        None => ExitCode::SUCCESS,
    }
}

/// One session that the waker watches.
#[derive(Clone, Copy)]
struct WakeContext<'a> {
    world: &'a World,
    project: &'a Project,
    session: &'a str,
    input: &'a HookInput,
    /// In the terminal's interface this hook is asynchronous; elsewhere the client waits for it.
    is_interactive: bool,
}

/// Returns the prompt that wakes the agent, or nothing if it need not be woken.
fn watch() -> Option<String> {
    let bytes = super::read_stdin().ok()?;
    let is_interactive = super::is_interactive();
    let input = &input::parse(&bytes, "Stop").ok()?;
    let session = input.session_id.as_deref()?;
    let world = &World::for_hook().ok()?;
    let project = &Project::find(world, input.cwd.as_deref());
    let watch = WakeContext { world, project, session, input, is_interactive };
    let is_armed = armed::exists(world, project, session).ok()?;
    if matches!(input.event, HookEvent::StopFailure { .. }) {
        return if is_armed && is_interactive { service::wait_for_attempt(&watch) } else { None };
    }
    (is_interactive || (is_armed && watch.may_outlast_the_client())).then_some(())?;
    let Some(run) = is_armed.then(|| queue::wait_for_decision(&watch)).flatten() else {
        return reset::wait_for_reset(&watch)
            .or_else(|| is_interactive.then(|| answer::wait_for_answer(&watch)).flatten());
    };
    match background::limit(&run) {
        Some(until) => background::wait_for_limit(&watch, &run, until),
        None if is_interactive => queue::wait_for_queue(&watch, &run),
        None => None,
    }
}

impl WakeContext<'_> {
    /// Returns whether the loop may have to wait for longer than a client that waits for this hook: for a command in the
    /// background, or for a reset. Such a client has no queue.
    fn may_outlast_the_client(&self) -> bool {
        let waits_for_reset = || {
            let run = self.running_loop()?;
            let quota = config::load_for(self.world, self.project, &run).settings().quota;
            (quota.land_at_percent.is_some() || quota.reserve_percent.is_some()).then_some(())
        };
        self.input.background().iter().any(|task| !task.is_agent) || waits_for_reset().is_some()
    }

    /// Returns whether the hook that runs beside this one has done its part, or even a later one. It may have done so before
    /// this one was started, but not long before: an earlier turn may have ended with the same words.
    fn is_decided(&self, run: &ArmedLoop) -> bool {
        let since = Stamp::from_seconds(run.last_hook_timestamp) - self.world.now;
        let is_same = run.session.turn_end_id == self.input.turn_end_id();
        since >= 0 || (is_same && since >= -MAX_START_DELAY_MS)
    }

    fn running_loop(&self) -> Option<ArmedLoop> {
        let document = state::peek(self.project).ok()??;
        let run = armed::load_armed(self.world, self.project, self.session, &document).ok()?;
        run.filter(|run| run.state == LoopState::Running)
    }

    /// Returns the prompt that continues the loop.
    fn continuation(&self, run: &ArmedLoop) -> Option<String> {
        let WakeContext { world, project, session, .. } = *self;
        let document = state::peek(project).ok()??;
        let resolved = &config::load_for(world, project, run);
        let context = BriefingContext { world, project, session, run, resolved, told: true };
        Some(prompt::continuation(
            run,
            &Note { earlier_advice: run.pending.advice.clone(), ..Note::default() },
            &briefing::stored(&context, &document).ok()?,
            &resolved.settings(),
            world.later().now,
        ))
    }
}

//! `ralph demo`: a whole loop in seconds, in a throw-away project, with an agent that is a script.
//!
//! The demo is the user, the client and the agent. Ralph itself is met only from outside: its programs are started
//! as Claude Code, a terminal and the runner start them, and whatever the demo shows of them they have just said. It
//! checks every step it tells of, so it is a test of this copy of Ralph too.

pub mod agent;
mod call;
mod client;
mod interrupt;
mod show;
mod stage;
mod story;

pub use show::{PER_LINE, PER_SCENE};

use anyhow::{Result, anyhow};
use interrupt::{Cut, Interrupt};
use show::Show;
use stage::Stage;

use crate::core::time::Stamp;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Without pauses for reading.
    pub fast: bool,
    /// Leave the project behind, and say where.
    pub keep: bool,
    pub colour: bool,
}

const INTERRUPTED: u8 = 130;

/// Plays the demo, which ends at `now`; returns the exit code. Whatever comes of it, nothing is left behind
/// unless that was asked for.
pub fn play(now: Stamp, options: Options) -> Result<u8> {
    let interrupt = Interrupt::listen()?;
    let mut stage = Stage::build(options.keep)?;
    let mut show = Show::new(&options, interrupt.clone());
    let told = story::tell(&stage, &mut show, &interrupt, now);
    let used = stage.programs_used();
    let cleared = stage.clear();
    let told = told.and(cleared).and_then(|()| story::farewell(&stage, &mut show));
    let Err(error) = told else { return Ok(0) };
    match error.downcast_ref::<Cut>() {
        Some(Cut::ReaderGone) => Ok(0),
        Some(Cut::Interrupted) => {
            // On a line of its own, behind the ^C of a terminal; the last words may be cut off too.
            let _ = show.last_words(&format!("\n{}", stage.what_is_left()));
            Ok(INTERRUPTED)
        }
        Some(Cut::NotShown(_)) => Err(error),
        None => Err(anyhow!(
            "the demo did not go as told, at \"{}\": {error:#}\n{used}\n{}",
            show.scene_title(),
            stage.what_is_left()
        )),
    }
}

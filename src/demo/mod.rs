//! `ralph demo`: a whole loop in seconds, in a temporary project, with a scripted agent.
//!
//! The demo plays the user, Claude Code and the agent. It starts Ralph's programs as they are started in real use and
//! shows their output. Every scene checks what it shows, so the demo also tests the installed programs.

pub mod agent;
mod client;
mod sandbox;
mod scenes;
mod screen;

pub use screen::{PER_LINE, PER_SCENE};

use crate::core::outcome::Exit;
use crate::core::time::Stamp;
use crate::store::process::interrupt::Interrupt;
use anyhow::{Result, anyhow};
use sandbox::Sandbox;
use screen::DemoScreen;
use std::io::ErrorKind;

/// Plays the demo, whose story ends at `now`, and returns the exit code. `fast` is without pauses for reading, `keep`
/// keeps the temporary project.
pub fn play(now: Stamp, fast: bool, keep: bool) -> Result<Exit> {
    let interrupt = Interrupt::listen();
    let sandbox = Sandbox::create(interrupt.clone())?;
    let mut screen = DemoScreen::new(fast, interrupt.clone());
    let played = scenes::play(&sandbox, &mut screen, now);
    let (is_installed, programs) = (sandbox.has_all_programs(), sandbox.programs());
    let kept = sandbox.close(keep)?;
    let played = played.and_then(|()| scenes::end(&mut screen, kept.as_deref(), is_installed));
    let Err(error) = played else { return Ok(Exit::Success) };
    let project = kept.map_or("The temporary project was removed.".into(), |kept| {
        format!("The temporary project is in {}", kept.display())
    });
    if interrupt.is_set() {
        // On a new line, after the ^C of a terminal.
        let _ = screen.print(&format!("\n{project}"));
        return Ok(Exit::Interrupted);
    }
    if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        return Ok(Exit::Success);
    }
    let hint = if keep { "" } else { "\n`ralph demo --keep` keeps the project." };
    Err(anyhow!("the demo failed at \"{}\": {error:#}\n{programs}\n{project}{hint}", screen.title))
}

//! A text that is drawn again whenever it changes, until the user has seen enough.

use crate::cli::{CommandOutput, Failure};
use crate::core::outcome::Exit;
use std::io::IsTerminal;

/// Refuses to watch without a terminal: nothing could show or end it.
fn refuse_without_terminal() -> Result<(), Failure> {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if is_terminal {
        return Ok(());
    }
    Err(Failure::usage("--watch needs a terminal")
        .hint("run it without --watch, or with --json from a script"))
}

/// Draws what `draw` returns, at most once a second and only if it changed, until q or Ctrl-C.
#[cfg(unix)]
pub fn watch(mut draw: impl FnMut() -> Result<String, Failure>) -> CommandOutput {
    use crate::store::process::interrupt::Interrupt;
    use crate::view::terminal::screen::{Key, Screen, size};
    use std::time::{Duration, Instant};
    const BETWEEN_DRAWS: Duration = Duration::from_secs(1);
    refuse_without_terminal()?;
    // What cannot be shown at all is an error; later it may be a file that is just being written.
    let mut text = draw()?;
    let interrupt = Interrupt::listen();
    let screen = Screen::open().map_err(Failure::internal)?;
    let mut shown = None;
    while !interrupt.is_set() {
        let now = (text.clone(), size());
        if shown.as_ref() != Some(&now) {
            screen.show(&now.0, now.1);
            shown = Some(now);
        }
        let next = Instant::now() + BETWEEN_DRAWS;
        while let left @ 1.. = next.saturating_duration_since(Instant::now()).as_millis() {
            let left = Duration::from_millis(u64::try_from(left).unwrap_or(1));
            if interrupt.is_set() || screen.key(left) == Key::Leave {
                return Ok((String::new(), Exit::Success));
            }
        }
        text = draw().unwrap_or_else(|failure| failure.to_string());
    }
    Ok((String::new(), Exit::Success))
}

#[cfg(not(unix))]
pub fn watch(_: impl FnMut() -> Result<String, Failure>) -> CommandOutput {
    refuse_without_terminal()?;
    let hint = "run `ralph status` again instead";
    Err(Failure::unavailable("--watch is not available on this system").hint(hint))
        .map(|()| (String::new(), Exit::Success))
}

//! `ralph monitor`: a full-screen view of the loops of this project, or of all projects of the user.
//!
//! The screen and its keys are `view::monitor`. Here are the terminal, the files that are followed, and the functions of
//! other commands that a key calls.

mod actions;
mod activity;
mod screen;
mod watch;

use crate::cli::invocation::CommandOutput;
use crate::cli::{Failure, Invocation};
use crate::core::outcome::Exit;
use crate::view::monitor::{KeyAction, Monitor, Theme};
use crate::view::paint;
use actions::Actions;
use activity::ActivityReader;
use ratatui::crossterm::event::{self, Event};
use screen::{FullScreen, Signals, TerminalPoll};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use watch::Watch;

/// How often files are looked at.
const TICK: Duration = Duration::from_secs(1);
/// How soon a signal or the end of an action is noticed.
const MOMENT: Duration = Duration::from_millis(200);

pub fn run(call: &Invocation) -> CommandOutput {
    refuse_without_terminal()?;
    let world = &call.world;
    let project = (!call.flag("all")).then_some(&call.project);
    let mut watch = Watch::new(world, project);
    let theme = Theme { colour: paint::wanted() };
    let root = project.map(|project| project.root.as_path());
    let mut monitor = Monitor::new(theme, root, world.now);
    // Before the screen is taken: what cannot be read at all is an error on the terminal as it was.
    watch.load(&mut monitor)?;
    let signals = Signals::watch().map_err(Failure::internal)?;
    let mut screen = FullScreen::enter().map_err(|error| unusable(&error))?;
    let mut actions = Actions::default();
    let shown = show(&mut monitor, &mut watch, &mut screen, &signals, &mut actions);
    drop(screen);
    actions.wait();
    let is_interrupted = shown.map_err(|error| unusable(&error))?;
    Ok((String::new(), if is_interrupted { Exit::Interrupted } else { Exit::Success }))
}

fn refuse_without_terminal() -> Result<(), Failure> {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    match is_terminal && !is_dumb {
        true => Ok(()),
        false => Err(Failure::usage("ralph monitor needs a terminal")
            .hint("`ralph status` prints the same loops once")),
    }
}

fn unusable(error: &std::io::Error) -> Failure {
    Failure::internal(format!("the terminal cannot be used: {error}"))
        .hint("`ralph status` prints the same loops once")
}

/// Shows the monitor until the user leaves it. Returns whether a signal ended it.
fn show(
    monitor: &mut Monitor,
    watch: &mut Watch,
    screen: &mut FullScreen,
    signals: &Signals,
    actions: &mut Actions,
) -> std::io::Result<bool> {
    let mut activity = ActivityReader::default();
    let mut next_refresh = Instant::now();
    let mut is_changed = true;
    loop {
        if Instant::now() >= next_refresh {
            watch.refresh(monitor);
            activity.follow(watch.world(), monitor);
            next_refresh = Instant::now() + TICK;
            is_changed = true;
        }
        if let Some(notice) = actions.finished() {
            monitor.notice = Some(notice);
            (next_refresh, is_changed) = (Instant::now(), true);
        }
        if is_changed {
            screen.draw(monitor)?;
        }
        let left = next_refresh.saturating_duration_since(Instant::now());
        is_changed = match screen::wait(left.min(MOMENT))? {
            TerminalPoll::Nothing => false,
            TerminalPoll::Gone => return Ok(true),
            TerminalPoll::Event => {
                if take(event::read()?, monitor, watch, screen, actions, &mut activity)? {
                    return Ok(false);
                }
                true
            }
        };
        if signals.end() {
            return Ok(true);
        }
        if signals.stop() {
            screen.suspend()?;
        }
        if signals.continued() {
            screen.restore()?;
            is_changed = true;
        }
    }
}

/// Takes what the terminal reports. Returns whether the user leaves.
fn take(
    event: Event,
    monitor: &mut Monitor,
    watch: &mut Watch,
    screen: &mut FullScreen,
    actions: &mut Actions,
    activity: &mut ActivityReader,
) -> std::io::Result<bool> {
    let request = match event {
        Event::Key(key) => monitor.key(key),
        Event::Paste(text) => {
            monitor.paste(&text);
            None
        }
        _ => None,
    };
    match request {
        Some(KeyAction::Quit) => return Ok(true),
        Some(KeyAction::Suspend) => screen.suspend()?,
        Some(KeyAction::Redraw) => screen.clear()?,
        Some(KeyAction::Act(target, act)) => actions.begin(&watch.world().later(), target, act),
        None => {}
    }
    // Another run may be selected: what is known of it is shown at once.
    watch.read_visible(monitor);
    activity.follow(watch.world(), monitor);
    Ok(false)
}

//! `ralph history`: past runs of this project, newest first.

use crate::cli::{Failure, Invocation};
use crate::core::time::Stamp;
use crate::store::user::{circuit, history, stalls};
use crate::view;
use crate::view::paint::Paint;
use serde::Serialize;

/// Shows the runs, the trips and resets of the circuit breaker, or the stalls.
pub fn history(call: &Invocation) -> Result<String, Failure> {
    let Invocation { world, project, .. } = call;
    if call.flag("circuit") {
        let none = "The circuit breaker has never tripped in this project.\n";
        return show(call, circuit::events(world, project)?, view::history::event, none);
    }
    if call.flag("stalls") {
        let none = "No agent of this project was silent long enough for a warning.\n";
        let stalls = stalls::stalls(world, project)?;
        let newest = &stalls[stalls.len().saturating_sub(max(call))..];
        let counts = if call.flag("json") { String::new() } else { view::history::stall_counts(newest) };
        return Ok(counts + &show(call, stalls, view::history::stall, none)?);
    }
    show(call, history::runs(world, project)?, view::history::run, "No past runs in this project.\n")
}

fn max(call: &Invocation) -> usize {
    call.parsed::<u32>("last").map_or(usize::MAX, |last| last as usize)
}

/// Formats the newest records of a list that is oldest first.
fn show<T: Serialize>(
    call: &Invocation,
    mut list: Vec<T>,
    entry: fn(&T, Stamp, Paint) -> String,
    none: &str,
) -> Result<String, Failure> {
    list.reverse();
    list.truncate(max(call));
    if call.flag("json") {
        return Ok(view::history::json(&list)?);
    }
    if list.is_empty() {
        return Ok(none.into());
    }
    Ok(list.iter().map(|record| entry(record, call.world.now, Paint::for_stdout())).collect())
}

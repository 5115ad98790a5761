//! `ralph history`: past runs of this project, newest first.

use crate::cli::{Failure, Invocation};
use crate::core::time::Stamp;
use crate::store::user::{circuit, history};
use crate::view;
use crate::view::paint::Paint;
use serde::Serialize;

/// Shows the runs, or the trips and resets of the circuit breaker.
pub fn history(call: &Invocation) -> Result<String, Failure> {
    let Invocation { world, project, .. } = call;
    if call.flag("circuit") {
        let none = "The circuit breaker has never tripped in this project.\n";
        return show(call, circuit::events(world, project)?, view::history::event, none);
    }
    show(call, history::runs(world, project)?, view::history::run, "No past runs in this project.\n")
}

/// Formats the newest records of a list that is oldest first.
fn show<T: Serialize>(
    call: &Invocation,
    mut list: Vec<T>,
    entry: fn(&T, Stamp, Paint) -> String,
    none: &str,
) -> Result<String, Failure> {
    list.reverse();
    list.truncate(call.parsed::<u32>("last").map_or(usize::MAX, |last| last as usize));
    if call.flag("json") {
        return Ok(view::history::json(&list)?);
    }
    if list.is_empty() {
        return Ok(none.into());
    }
    Ok(list.iter().map(|record| entry(record, call.world.now, Paint::for_stdout())).collect())
}

//! `ralph history`: past runs of this project, newest first, or one of them in full.

use crate::cli::views::chosen_run;
use crate::cli::{Failure, Invocation, Project, World};
use crate::core::event::Event;
use crate::core::time::Stamp;
use crate::store::events::{self, Follower};
use crate::store::user::{circuit, history, stalls};
use crate::view;
use crate::view::paint::Paint;
use serde::Serialize;

/// What of the history to show.
#[derive(Clone, Copy, Debug, Default)]
pub struct HistoryArgs {
    /// Only so many of the newest.
    pub last: Option<u32>,
    /// The trips and resets of the circuit breaker instead.
    pub circuit: bool,
    /// The stalls instead.
    pub stalls: bool,
    pub json: bool,
}

pub fn command(call: &Invocation) -> Result<String, Failure> {
    let [circuit, stalls, json] = ["circuit", "stalls", "json"].map(|name| call.flag(name));
    if call.value("run-id").is_some() {
        return one(call, json);
    }
    let request = HistoryArgs { last: call.parsed("last"), circuit, stalls, json };
    request.show(&call.world, &call.project, Paint::for_stdout())
}

/// Shows one run, as its events tell it.
fn one(call: &Invocation, json: bool) -> Result<String, Failure> {
    let run = match chosen_run(call) {
        Ok(run) => run,
        Err(failure) => return recorded(call, json).ok_or(failure),
    };
    if json {
        let mut lines = String::new();
        let mut follower = Follower::new(&run.path);
        let mut add = |line: &[u8]| {
            if Event::parse(line).is_some() {
                lines.push_str(&format!("{}\n", String::from_utf8_lossy(line)));
            }
        };
        while follower.poll(&mut add)?.more {}
        return Ok(lines);
    }
    let timeline = events::load(&call.world, &run.run_id)?.unwrap_or_default();
    Ok(view::history::detail(&run.run_id, &timeline, call.world.now, Paint::for_stdout()))
}

/// Returns what is recorded of a run of this project that has no events.
fn recorded(call: &Invocation, json: bool) -> Option<String> {
    let id = call.value("run-id").filter(|id| !id.is_empty())?;
    let runs = history::runs(&call.world, &call.project).ok()?;
    let found: Vec<history::Run> = runs.into_iter().filter(|run| run.run_id.starts_with(id)).collect();
    match (&found[..], json) {
        ([run], true) => view::history::json(std::slice::from_ref(run)).ok(),
        ([run], false) => Some(view::history::run(run, call.world.now, Paint::for_stdout())),
        _ => None,
    }
}

impl HistoryArgs {
    pub fn show(self, world: &World, project: &Project, paint: Paint) -> Result<String, Failure> {
        if self.circuit {
            let none = "The circuit breaker has never tripped in this project.\n";
            return self.list(circuit::events(world, project)?, world.now, paint, view::history::event, none);
        }
        if self.stalls {
            let none = "No stalls or stall warnings in this project.\n";
            let stalls = stalls::stalls(world, project)?;
            let newest = &stalls[stalls.len().saturating_sub(self.max())..];
            let counts = if self.json { String::new() } else { view::history::stall_counts(newest) };
            return Ok(counts + &self.list(stalls, world.now, paint, view::history::stall, none)?);
        }
        let none = "No past runs in this project.\n";
        self.list(history::past(world, project)?, world.now, paint, view::history::run, none)
    }

    fn max(self) -> usize {
        self.last.map_or(usize::MAX, |last| last as usize)
    }

    /// Formats the newest records of a list that is oldest first.
    fn list<T: Serialize>(
        self,
        mut list: Vec<T>,
        now: Stamp,
        paint: Paint,
        entry: fn(&T, Stamp, Paint) -> String,
        none: &str,
    ) -> Result<String, Failure> {
        list.reverse();
        list.truncate(self.max());
        if self.json {
            return Ok(view::history::json(&list)?);
        }
        if list.is_empty() {
            return Ok(none.into());
        }
        Ok(list.iter().map(|record| entry(record, now, paint)).collect())
    }
}

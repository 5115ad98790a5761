//! `ralph history`: past runs of this project, newest first.

use crate::cli::failure::Failure;
use crate::store::project::Project;
use crate::store::user::{circuit, history, stalls};
use crate::store::world::World;
use crate::view;
use crate::view::paint::Paint;
use serde::Serialize;

/// How much is shown, and in which format.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    pub max: usize,
    pub json: bool,
    pub colour: bool,
}

impl Shown {
    /// Formats the newest records of a list that is oldest first.
    fn of<T: Serialize>(
        self,
        mut list: Vec<T>,
        table: impl Fn(&[T], Paint) -> String,
    ) -> Result<String, Failure> {
        list.reverse();
        list.truncate(self.max);
        Ok(if self.json { view::history::json(&list)? } else { table(&list, Paint::new(self.colour)) })
    }
}

pub fn run(world: &World, project: &Project, shown: Shown) -> Result<String, Failure> {
    shown.of(history::runs(world, project)?, |runs, paint| view::history::table(runs, world.now, paint))
}

/// Shows trips and resets of the circuit breaker, newest first.
pub fn events(world: &World, project: &Project, shown: Shown) -> Result<String, Failure> {
    shown
        .of(circuit::events(world, project)?, |events, paint| view::history::events(events, world.now, paint))
}

/// Shows silences of agents that were long enough for a warning, newest first.
pub fn stalls(world: &World, project: &Project, shown: Shown) -> Result<String, Failure> {
    shown.of(stalls::stalls(world, project)?, |stalls, paint| view::history::stalls(stalls, world.now, paint))
}

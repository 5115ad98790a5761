//! `ralph history`: past runs of this project, newest first.

use super::failure::Failure;
use crate::store::project::Project;
use crate::store::world::World;
use crate::store::{circuit, history};
use crate::view;
use crate::view::paint::Paint;
use serde::Serialize;

/// How much is shown, and in what dress.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    pub most: usize,
    pub json: bool,
    pub colour: bool,
}

impl Shown {
    /// The newest of a list that was written oldest first.
    fn of<T: Serialize>(
        self,
        mut list: Vec<T>,
        table: impl Fn(&[T], Paint) -> String,
    ) -> Result<String, Failure> {
        list.reverse();
        list.truncate(self.most);
        Ok(if self.json { view::history::json(&list)? } else { table(&list, Paint::new(self.colour)) })
    }
}

pub fn run(world: &World, project: &Project, shown: Shown) -> Result<String, Failure> {
    shown.of(history::runs(world, project)?, |runs, paint| view::history::table(runs, world.now, paint))
}

/// Trips and resets of the circuit breaker, newest first.
pub fn events(world: &World, project: &Project, shown: Shown) -> Result<String, Failure> {
    shown
        .of(circuit::events(world, project)?, |events, paint| view::history::events(events, world.now, paint))
}

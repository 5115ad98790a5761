//! `ralph history`: past runs of this project, newest first.

use super::failure::Failure;
use crate::store::project::Project;
use crate::store::world::World;
use crate::store::{circuit, history};
use crate::view;
use crate::view::paint::Paint;

pub fn run(
    world: &World,
    project: &Project,
    most: usize,
    json: bool,
    colour: bool,
) -> Result<String, Failure> {
    let mut runs = history::runs(world, project)?;
    runs.reverse();
    runs.truncate(most);
    Ok(if json {
        view::history::json(&runs)?
    } else {
        view::history::table(&runs, world.now, Paint::new(colour))
    })
}

/// Trips and resets of the circuit breaker, newest first.
pub fn events(
    world: &World,
    project: &Project,
    most: usize,
    json: bool,
    colour: bool,
) -> Result<String, Failure> {
    let mut events = circuit::events(world, project)?;
    events.reverse();
    events.truncate(most);
    Ok(if json {
        view::history::json(&events)?
    } else {
        view::history::events(&events, world.now, Paint::new(colour))
    })
}

pub mod answer;
pub mod guidance;
pub mod guidance_program;
pub mod history;
pub mod import;
pub mod reset;
pub mod scan;
pub mod slash;
pub mod start;
pub mod status;
pub mod stop;

use super::{Project, World};
use crate::core::record::ArmedLoop;
use crate::store::state;
use crate::store::user::armed;

/// Returns the loops here that this user armed and that have not ended, with their sessions.
pub fn alive(world: &World, project: &Project) -> Vec<(String, ArmedLoop)> {
    let document = state::peek(project).ok().flatten().unwrap_or_default();
    let mut loops = armed::load_all(world, project, &document);
    loops.retain(|(_, run)| run.is_alive());
    loops
}

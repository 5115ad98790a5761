pub mod answer;
pub mod guidance;
pub mod guidance_program;
pub mod history;
pub mod import;
pub mod pause;
pub mod refusals;
pub mod reset;
pub mod scan;
pub mod slash;
pub mod start;
pub mod status;
pub mod stop;

use super::{Project, World};
use crate::store::state;
use crate::store::user::armed::{self, Loaded};

/// Returns the loops here that this user armed and that have not ended, with their sessions.
pub fn alive(world: &World, project: &Project) -> Loaded {
    let document = state::peek(project).ok().flatten().unwrap_or_default();
    let mut loaded = armed::load_all(world, project, &document);
    loaded.loops.retain(|(_, run)| run.is_alive());
    loaded
}

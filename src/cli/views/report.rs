//! The report of a run, as the monitor opens it.

use crate::cli::{Failure, Project, World};
use crate::core::text::clean;
use std::path::PathBuf;

/// Writes the report of a run into its data folder and opens it.
pub fn open(_: &World, project: &Project, run_id: &str) -> Result<PathBuf, Failure> {
    let (run, root) = (clean::excerpt(run_id, 64), clean::visible(&project.root.display().to_string()));
    Err(Failure::unavailable(format!("this build of Ralph writes no report of run {run} in {root}"))
        .hint("`ralph history` and `ralph status` tell how it went"))
}

//! `ralph demo`, and `ralph demo-agent`, the scripted agent it starts.

use crate::cli::invocation::stdin;
use crate::cli::{CommandOutput, Failure, Invocation};
use crate::demo::{self, agent};

pub fn run(call: &Invocation) -> CommandOutput {
    Ok((String::new(), demo::play(call.world.now, call.flag("fast"), call.flag("keep"))?))
}

pub fn agent(call: &Invocation) -> Result<String, Failure> {
    Ok(agent::work(&call.world.working_dir, &stdin()?)?)
}

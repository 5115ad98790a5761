//! `ralph demo`, and `ralph demo-agent`, the scripted agent it starts.

use crate::cli::invocation::stdin;
use crate::cli::{Answer, Failure, Invocation};
use crate::demo::{self, Options, agent};

pub fn run(call: &Invocation) -> Answer {
    let options = Options { fast: call.flag("fast"), keep: call.flag("keep") };
    Ok((String::new(), demo::play(call.world.now, options)?))
}

pub fn agent(call: &Invocation) -> Result<String, Failure> {
    Ok(agent::work(&call.world.working_dir, &stdin()?)?)
}

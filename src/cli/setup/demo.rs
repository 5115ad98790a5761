//! `ralph demo`, and `ralph demo-agent`, the scripted agent it starts.

use crate::cli::command_line::flag;
use crate::cli::failure::Failure;
use crate::cli::program::stdin;
use crate::core::outcome::Exit;
use crate::demo::{self, Options, agent};
use crate::store::world::World;
use crate::view::paint;
use clap::{ArgMatches, Command};

pub fn run(world: &World, matches: &ArgMatches) -> Result<Exit, Failure> {
    let (fast, keep) = (matches.get_flag("fast"), matches.get_flag("keep"));
    Ok(demo::play(world.now, Options { fast, keep, colour: paint::wanted() })?)
}

pub fn agent(world: &World) -> Result<String, Failure> {
    Ok(agent::work(&world.working_dir, &stdin()?)?)
}

pub fn command() -> Command {
    Command::new("demo")
        .about("Show a whole loop in seconds, with a scripted agent")
        .after_help(
            "Needs no Claude Code, no key and no network. It runs the real hooks and the real runner in a temporary project\n\
             and checks every step; exit code 70 if one fails.",
        )
        .arg(flag("fast", "no pauses for reading"))
        .arg(flag("keep", "keep the temporary project"))
}

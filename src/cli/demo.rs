//! `ralph demo`: the arguments, and the scripted agent that its runner starts.

use super::command_line::flag;
use super::failure::Failure;
use super::program::stdin;
use crate::demo::{self, Options, agent};
use crate::store::world::World;
use crate::view::paint;
use clap::{ArgMatches, Command};

pub fn run(world: &World, matches: &ArgMatches) -> Result<u8, Failure> {
    let (fast, keep) = (matches.get_flag("fast"), matches.get_flag("keep"));
    Ok(demo::play(world.now, Options { fast, keep, colour: paint::wanted() })?)
}

pub fn agent(world: &World) -> Result<String, Failure> {
    Ok(agent::work(&world.working_dir, &stdin()?)?)
}

pub fn command() -> Command {
    Command::new("demo")
        .about("Show a whole loop in seconds, with a scripted agent: no Claude Code, no key, no network")
        .after_help(
            "It works in a throw-away project in the temporary folder, with folders of its own for everything, and removes\n\
             them. Hooks and runner are the real ones: the programs beside this one, or, where only ralph was built, ralph\n\
             under their names. Every step is checked; one that does not happen as told ends the demo with exit code 70.",
        )
        .arg(flag("fast", "no pauses for reading"))
        .arg(flag("keep", "leave the throw-away project behind, and say where"))
}

//! The `ralph-guidance` program.

use super::guidance::{self, Options, Request};
use crate::cli::command_line::{flag, session, with_capital_help};
use crate::cli::failure::Failure;
use crate::cli::program::{finish, text_or_stdin, words, world};
use crate::core::guidance::List;
use crate::core::outcome::Exit;
use crate::store::project::Project;
use clap::{Arg, ArgMatches, Command};
use std::process::ExitCode;

pub fn main() -> ExitCode {
    finish(command().try_get_matches().map(|matches| run(&matches).map(|text| (text, Exit::Success))))
}

fn run(matches: &ArgMatches) -> Result<String, Failure> {
    let mut world = world()?;
    let Some((name, matches)) = matches.subcommand() else { return Ok(String::new()) };
    if let Some(session) = matches.get_one::<String>("session") {
        world.session_id = Some(session.clone());
    }
    let request = match name {
        "encourage" => give(List::Encouraged, matches)?,
        "forbid" => give(List::Forbidden, matches)?,
        "remove" => Request::Remove(words(matches, "which").join(" ")),
        "clear" => Request::Clear,
        "allow" => Request::Allow(words(matches, "id").join(" ")),
        _ => Request::List,
    };
    let project = Project::find(&world, None);
    guidance::run(&world, &project, world.session_id.as_deref(), &request, matches.get_flag("json"))
}

fn give(list: List, matches: &ArgMatches) -> Result<Request, Failure> {
    let mut options =
        Options { pin: matches.get_flag("pin"), replace: matches.get_flag("replace"), ..Options::default() };
    if let Some(duration) = matches.get_one::<String>("for") {
        options.set_for(duration)?;
    }
    Request::give(list, &text_or_stdin(matches, "text")?, options)
}

pub fn command() -> Command {
    let common = |command: Command| command.arg(session()).arg(flag("json", "Print the guidance as JSON"));
    let give = |name: &'static str, about: &'static str| {
        let text = Arg::new("text").value_name("TEXT").num_args(0..).help(
            "The text; - reads it from stdin; without it, all guidance is listed. Put -- before a text with dashes",
        );
        let duration =
            Arg::new("for").long("for").value_name("DURATION").help("Drop it after this time: 30m, 2h, 1d");
        let command =
            Command::new(name).about(about).arg(text).arg(flag("pin", "Keep it past its maximum age"));
        common(command.arg(duration).arg(flag("replace", "Clear the list first")))
    };
    let remove = Command::new("remove").about("Remove one entry by its number in the list or by its text");
    let which = Arg::new("which").value_name("N|TEXT").num_args(1..).required(true);
    let allow = Command::new("allow").about("Allow a finding of the scan by its id, until it changes");
    let command = Command::new("ralph-guidance")
        .about("Steer a running Ralph loop")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands([
            give("encourage", "Tell the agent what to do more of"),
            give("forbid", "Tell the agent what not to do"),
            common(Command::new("list").about("Show all guidance with its age")),
            common(remove.arg(which)),
            common(Command::new("clear").about("Remove all guidance")),
            common(allow.arg(Arg::new("id").value_name("ID").required(true))),
        ]);
    with_capital_help(command)
}

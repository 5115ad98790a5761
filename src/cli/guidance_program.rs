//! The `ralph-guidance` program.

use super::command_line::{flag, session};
use super::failure::Failure;
use super::guidance::{self, Request};
use super::program::{finish, stdin, world};
use crate::core::guidance::List;
use crate::store::project::Project;
use clap::{Arg, ArgMatches, Command};
use std::process::ExitCode;

pub fn main() -> ExitCode {
    finish(command().try_get_matches().map(|matches| run(&matches).map(|text| (text, 0))))
}

fn run(matches: &ArgMatches) -> Result<String, Failure> {
    let mut world = world()?;
    let Some((name, matches)) = matches.subcommand() else { return Ok(String::new()) };
    if let Some(session) = matches.get_one::<String>("session") {
        world.session_id = Some(session.clone());
    }
    let words = |name: &str| {
        matches.try_get_many::<String>(name).ok().flatten().unwrap_or_default().cloned().collect::<Vec<_>>()
    };
    let request = match name {
        "encourage" => give(List::Encouraged, matches, &words("text"))?,
        "forbid" => give(List::Forbidden, matches, &words("text"))?,
        "remove" => Request::Remove(words("which").join(" ")),
        "clear" => Request::Clear,
        "allow" => Request::Allow(words("id").join(" ")),
        _ => Request::List,
    };
    let project = Project::find(&world, None);
    guidance::run(&world, &project, world.session_id.as_deref(), &request, matches.get_flag("json"))
}

fn give(list: List, matches: &ArgMatches, words: &[String]) -> Result<Request, Failure> {
    let text = if words == ["-"] { stdin()? } else { words.join(" ") };
    // The shell has told flags from text already: what is left is text, dashes and all.
    let mut request = Request::give(list, &format!("-- {text}"))?;
    let given_span = matches.get_one::<String>("for");
    let span = given_span.map(|span| Request::give(list, &format!("--for {span} x"))).transpose()?;
    if let Request::Give { pin, for_seconds, replace, .. } = &mut request {
        *pin = matches.get_flag("pin");
        *replace = matches.get_flag("replace");
        if let Some(Request::Give { for_seconds: Some(seconds), .. }) = span {
            *for_seconds = Some(seconds);
        }
    } else if matches.get_flag("pin") || matches.get_flag("replace") || given_span.is_some() {
        return Err(Failure::usage("no text given"));
    }
    Ok(request)
}

pub fn command() -> Command {
    let json = || flag("json", "print the guidance as one JSON object");
    let give = |name: &'static str, about: &'static str| {
        Command::new(name)
            .about(about)
            .arg(
                Arg::new("text")
                    .value_name("TEXT")
                    .num_args(0..)
                    .help("any text; - reads it from stdin; none lists. Put -- before a text with dashes"),
            )
            .arg(flag("pin", "keep it past its age"))
            .arg(
                Arg::new("for")
                    .long("for")
                    .value_name("SPAN")
                    .help("keep it no longer than this: 30m, 2h, 1d"),
            )
            .arg(flag("replace", "clear the list first"))
            .arg(session())
            .arg(json())
    };
    Command::new("ralph-guidance")
        .about("Steer a running Ralph loop: what to do more of, what not to do")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(give("encourage", "Tell the agent what to do more of"))
        .subcommand(give("forbid", "Tell the agent what not to do"))
        .subcommand(Command::new("list").about("Show all guidance with its age").arg(session()).arg(json()))
        .subcommand(
            Command::new("remove")
                .about("Remove one entry, by its number in the list or by its text")
                .arg(Arg::new("which").value_name("N|TEXT").num_args(1..).required(true))
                .arg(session())
                .arg(json()),
        )
        .subcommand(Command::new("clear").about("Remove everything").arg(session()).arg(json()))
        .subcommand(
            Command::new("allow")
                .about("Overrule a finding of the scan, by its id, while it stays as it is")
                .arg(Arg::new("id").value_name("ID").required(true))
                .arg(session())
                .arg(json()),
        )
}

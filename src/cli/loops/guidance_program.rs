//! The `ralph-guidance` program.

use super::guidance::{self, GuidanceCommand, Options};
use super::slash;
use crate::cli::command_line::{flag, program, session, value, words};
use crate::cli::program::finish;
use crate::cli::{CommandOutput, Failure, Invocation};
use crate::core::guidance::List;
use crate::core::outcome::Exit;
use crate::store::process::names;
use clap::{Arg, Command};
use std::process::ExitCode;

pub fn main() -> ExitCode {
    finish(command(), run)
}

pub fn run(call: &Invocation) -> CommandOutput {
    if call.flag(slash::FLAG) {
        return Ok((slash::guidance(call)?, Exit::Success));
    }
    let request = match call.command {
        "encourage" => give(List::Encouraged, call)?,
        "forbid" => give(List::Forbidden, call)?,
        "remove" => GuidanceCommand::Remove(call.words("which").join(" ")),
        "clear" => GuidanceCommand::Clear,
        "allow" => GuidanceCommand::Allow(call.words("id").join(" ")),
        "adopt" => GuidanceCommand::Adopt,
        _ => GuidanceCommand::List,
    };
    let text = guidance::run(&call.world, &call.project, call.session(), &request, call.flag("json"))?;
    Ok((text, Exit::Success))
}

fn give(list: List, call: &Invocation) -> Result<GuidanceCommand, Failure> {
    if let Some(which) = call.value("remove") {
        return GuidanceCommand::remove(which);
    }
    let mut options = Options { pin: call.flag("pin"), replace: call.flag("replace"), ..Options::default() };
    if let Some(duration) = call.value("for") {
        options.set_for(duration)?;
    }
    GuidanceCommand::give(list, &call.text_or_stdin("text")?, options)
}

fn common(command: Command) -> Command {
    let session = session().help(
        "The Claude Code session; without one, all loops of the project [default: $CLAUDE_CODE_SESSION_ID]",
    );
    command.args([session, flag("json", "Print the guidance as JSON")])
}

/// Returns the commands that `ralph` has too.
pub fn giving() -> [Command; 2] {
    let give = |name: &'static str, about: &'static str| {
        let text = "The text; - reads it from stdin; without it, all guidance is listed. Put -- before text that starts with a dash";
        common(
            Command::new(name).about(about).args([
                words("text", "TEXT", text),
                flag("pin", "Do not let it expire"),
                value("for", "DURATION", "Let it expire after this time: 30m, 2h, 1d"),
                flag("replace", "Clear the list first"),
                value("remove", "N", "Remove the entry with this number in the list")
                    .conflicts_with_all(["text", "pin", "for", "replace"]),
                flag(slash::FLAG, "Act for the slash command").hide(true),
            ]),
        )
    };
    [give("encourage", "Tell the agent what to do more of"), give("forbid", "Tell the agent what not to do")]
}

pub fn command() -> Command {
    let remove = Command::new("remove").about("Remove one entry by its number in the list or by its text");
    let which = Arg::new("which")
        .value_name("N|TEXT")
        .num_args(1..)
        .required(true)
        .help("The entry's number in the list, or its text");
    let allow = Command::new("allow").about("Allow a finding of the scan by its id, until it changes");
    let id =
        Arg::new("id").value_name("ID").required(true).help("The finding's id, as `ralph scan` shows it");
    let rest = [
        common(Command::new("list").about("Show all guidance with its age")),
        common(remove.arg(which)),
        common(Command::new("clear").about("Remove all guidance")),
        common(allow.arg(id)),
        common(Command::new("adopt").about("Accept guidance in the state file that is not from you")),
    ];
    let commands = giving().into_iter().chain(rest).collect();
    program(names::GUIDANCE, "Steer a running Ralph loop", commands)
}

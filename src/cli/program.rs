//! The `ralph` program: arguments to command, answer to stdout, failure to exit code.

use super::invocation::arguments;
use super::{CommandOutput, Failure, Invocation, command_line, help, run};
use crate::cli::loops::{answer, guidance_program, history, pause, reset, scan, slash, start, status, stop};
use crate::cli::run::{archive, init, run_args};
use crate::cli::setup::{config, demo, doctor, install, pages, statusline, trust, uninstall};
use crate::cli::views::{logs, monitor, notify, report};
use crate::core::outcome::Exit;
use crate::core::text::clean;
use crate::core::text::nearest::nearest;
use crate::store::state;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use clap_complete::Shell;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

pub fn main() -> ExitCode {
    // The client asks for the status line all the time: it does not pay for an argument parser.
    if std::env::args_os().skip(1).eq(["statusline"]) {
        return statusline::main();
    }
    finish(command_line::command().subcommands(command_line::internal()), answer)
}

/// Returns what to say about a flag of `ralph run` that another tool has.
fn foreign_flag(error: &clap::Error) -> Option<Failure> {
    let is_run = std::env::args_os().nth(1).is_some_and(|word| word == "run");
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if is_run => run_args::foreign_flag(flag),
        _ => None,
    }
}

/// Returns what to say about a command or flag that does not exist.
fn mistyped(error: &clap::Error, program: &Command) -> Option<Failure> {
    let given = |kind| match error.get(kind) {
        Some(ContextValue::String(given)) => Some(given.as_str()),
        _ => None,
    };
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let named = words.iter().skip(1).find_map(|word| program.find_subcommand(word));
    let command = named.unwrap_or(program);
    let help = match named {
        Some(named) => format!("see `{} {} --help`", program.get_name(), named.get_name()),
        None => format!("see `{} --help`", program.get_name()),
    };
    // Without the brackets that a usage line has around it: `--last N`, `SHELL`.
    let argument = |kind| match error.get(kind)? {
        ContextValue::String(argument) => Some(argument.replace(['<', '>', '[', ']', '.'], "")),
        ContextValue::Strings(arguments) => Some(arguments.join(", ").replace(['<', '>', '[', ']', '.'], "")),
        _ => None,
    };
    let flag_of = |argument: &str| argument.split(' ').next().unwrap_or_default().to_owned();
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = given(ContextKind::InvalidSubcommand)?;
            let known = program.get_subcommands().filter(|known| !known.is_hide_set()).map(Command::get_name);
            let failure = Failure::usage(format!("no such command: {}", clean::excerpt(name, 60)));
            Some(
                failure
                    .did_you_mean(nearest(name, known), format!("`{} help` lists them", program.get_name())),
            )
        }
        ErrorKind::UnknownArgument => {
            let word = given(ContextKind::InvalidArg)?;
            let shown = clean::excerpt(word, 60);
            if !word.starts_with('-') {
                return Some(Failure::usage(format!("unexpected argument: '{shown}'")).hint(help));
            }
            let flags = command.get_arguments().filter(|flag| !flag.is_hide_set());
            let flags: Vec<String> =
                flags.filter_map(|flag| Some(format!("--{}", flag.get_long()?))).collect();
            let meant = nearest(word, flags.iter().map(String::as_str));
            let help = match command.get_positionals().next() {
                Some(_) => format!("put -- before text that starts with a dash; {help}"),
                None => help,
            };
            Some(Failure::usage(format!("unknown flag: {shown}")).did_you_mean(meant, help))
        }
        ErrorKind::InvalidValue => {
            let (of, value) = (argument(ContextKind::InvalidArg)?, given(ContextKind::InvalidValue)?);
            let valid = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(valid)) => valid.as_slice(),
                _ => &[],
            };
            let hint = match valid {
                [] => format!("use {of}"),
                valid => format!("use one of: {}", valid.join(", ")),
            };
            if value.is_empty() {
                return Some(Failure::usage(format!("{} needs a value", flag_of(&of))).hint(hint));
            }
            let meant = nearest(value, valid.iter().map(String::as_str));
            Some(Failure::invalid_value(&flag_of(&of), value).did_you_mean(meant, hint))
        }
        // Every other value is a path or a number from 1.
        ErrorKind::ValueValidation => {
            let of = flag_of(&argument(ContextKind::InvalidArg)?);
            let failure = Failure::invalid_value(&of, given(ContextKind::InvalidValue)?);
            Some(failure.hint("use a whole number of 1 or more"))
        }
        ErrorKind::ArgumentConflict => {
            let (one, other) = (argument(ContextKind::InvalidArg)?, argument(ContextKind::PriorArg)?);
            let (one, other) = (flag_of(&one), flag_of(&other));
            Some(Failure::usage(format!("{one} cannot be used with {other}")).hint(help))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = argument(ContextKind::InvalidArg)?;
            Some(Failure::usage(format!("missing argument: {missing}")).hint(help))
        }
        ErrorKind::TooManyValues => {
            let of = flag_of(&argument(ContextKind::InvalidArg)?);
            Some(Failure::usage(format!("{of} takes no value")).hint(help))
        }
        _ => None,
    }
}

/// Parses the arguments, prints the answer or the failure, and returns the exit code.
pub fn finish(mut command: Command, answer: impl Fn(&Invocation) -> CommandOutput) -> ExitCode {
    let run = |matches: ArgMatches| Invocation::new(&matches).and_then(|call| answer(&call));
    let parsed = command.try_get_matches_from_mut(arguments(std::env::args_os()));
    let named = |error: clap::Error| {
        let failure = foreign_flag(&error).or_else(|| mistyped(&error, &command));
        failure.map(Err).ok_or(error)
    };
    let (text, exit) = match parsed.map(run).or_else(named) {
        Ok(Ok((text, exit))) => (Ok(text), exit),
        Ok(Err(failure)) => (Err(failure.to_string()), failure.exit),
        Err(error) if error.use_stderr() => (Err(error.to_string()), Exit::Usage),
        Err(help) => (Ok(help.to_string()), Exit::Success),
    };
    // Controls that JSON may hold raw, a terminal may obey.
    let text = text.map(|text| if text.starts_with('{') { escape_controls(&text) } else { text });
    let (Ok(said) | Err(said)) = &text;
    let notes = state::take_damage_notices(said);
    // A reader that went away is no error of ours.
    let _ = match text {
        Ok(text) => write_line(&mut std::io::stdout().lock(), &text),
        Err(text) => write_line(&mut std::io::stderr().lock(), &text),
    };
    for note in notes {
        let _ = write_line(&mut std::io::stderr().lock(), &format!("Note: {}", clean::line(&note)));
    }
    ExitCode::from(exit.code())
}

fn escape_controls(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out
}

pub fn write_line(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

fn answer(call: &Invocation) -> CommandOutput {
    let text = match call.command {
        "run" => return run::run(call),
        "demo" => return demo::run(call),
        "scan" => return scan::command(call),
        "doctor" => return doctor::run(call),
        "logs" => return logs::command(call),
        "status" => return status::command(call),
        "notify" => return notify::command(call),
        "monitor" => return monitor::run(call),
        "encourage" | "forbid" => return guidance_program::run(call),
        "start" => start::command(call),
        "stop" => stop::stop(&call.world, &call.project, &stop::scope(call), None),
        "pause" => pause::command(call),
        "reset" => reset::reset(&call.world, &call.project, &stop::scope(call)),
        "answer" => answer::command(call),
        "config" => config::command(call),
        "history" => history::command(call),
        "report" => report::command(call),
        "trust" => trust::run(call),
        "init" => init::init(call),
        "archive" => archive::archive(call),
        "completions" => {
            let shell = call.parsed("shell").unwrap_or(Shell::Bash);
            Ok(pages::completions(shell, call.value("program").unwrap_or(pages::PROGRAMS[0])))
        }
        "man" => match call.value("to") {
            Some(folder) => pages::write_pages(Path::new(folder)),
            None => pages::man(call.value("command")),
        },
        "demo-agent" => demo::agent(call),
        "install" => install::run(call),
        "uninstall" => uninstall::uninstall(call),
        "relay" => slash::relay(call),
        "slash" => slash::command(call),
        "help" => call.value("command").map_or_else(|| Ok(help::text()), help::of_command),
        other => Err(Failure::internal(format!("the command has no code: {other}"))),
    };
    // These colour what they print, and clean what they quote; JSON escapes it.
    let is_done =
        |text: &str| matches!(call.command, "status" | "history" | "install") || text.starts_with(['{', '[']);
    text.map(|text| (if is_done(&text) { text } else { clean::block(&text) }, Exit::Success))
}

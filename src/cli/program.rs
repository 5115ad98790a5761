//! The `ralph` program: arguments to command, answer to stdout, failure to exit code.

use super::failure::Failure;
use super::{command_line, help, run};
use crate::cli::loops::{answer, history, import, reset, scan, slash, start, status, stop};
use crate::cli::run::{archive, init, run_args};
use crate::cli::setup::{config, demo, doctor, install, pages, statusline, trust, uninstall};
use crate::core::guidance::finding::Severity;
use crate::core::outcome::Exit;
use crate::core::request::{SWITCHES, StartRequest};
use crate::core::settings::{KEYS, PRESETS};
use crate::store::project::Project;
use crate::store::world::World;
use crate::view::paint::{self, Paint};
use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue};
use clap_complete::Shell;
use std::io::{Read, Write};
use std::process::ExitCode;

const MAX_STDIN_BYTES: u64 = 16 << 20;

pub fn main() -> ExitCode {
    // The client asks for the status line all the time: it does not pay for an argument parser.
    if std::env::args_os().skip(1).eq(["statusline"]) {
        return statusline::main();
    }
    finish(
        command_line::command()
            .subcommands(command_line::internal())
            .try_get_matches()
            .map(|matches| run(&matches))
            .or_else(|error| foreign_flag(&error).map(Err).ok_or(error)),
    )
}

/// Returns what to say about a flag of `ralph run` that another tool has.
fn foreign_flag(error: &clap::Error) -> Option<Failure> {
    let is_run = std::env::args_os().nth(1).is_some_and(|word| word == "run");
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if is_run => run_args::foreign_flag(flag),
        _ => None,
    }
}

/// Prints the answer or the failure, and returns the exit code.
pub fn finish(outcome: Result<Result<(String, Exit), Failure>, clap::Error>) -> ExitCode {
    let (text, exit) = match outcome {
        Ok(Ok((text, exit))) => (Ok(text), exit),
        Ok(Err(failure)) => (Err(failure.to_string()), failure.exit),
        Err(error) if error.use_stderr() => (Err(error.to_string()), Exit::Usage),
        Err(help) => (Ok(help.to_string()), Exit::Success),
    };
    // Controls that JSON may hold raw, a terminal may obey.
    let text = text.map(|text| if text.starts_with('{') { escape_controls(&text) } else { text });
    // A reader that went away is no error of ours.
    let _ = match text {
        Ok(text) => write_line(&mut std::io::stdout().lock(), &text),
        Err(text) => write_line(&mut std::io::stderr().lock(), &text),
    };
    ExitCode::from(exit.code())
}

fn escape_controls(json: &str) -> String {
    let escape = |c: char| match c {
        '\u{7f}'..='\u{9f}' => format!("\\u{:04x}", u32::from(c)),
        other => other.to_string(),
    };
    if json.contains(|c: char| ('\u{7f}'..='\u{9f}').contains(&c)) {
        json.chars().map(escape).collect()
    } else {
        json.to_owned()
    }
}

pub fn write_line(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// The answer and the exit code.
fn run(matches: &ArgMatches) -> Result<(String, Exit), Failure> {
    if let Some(("run", matches)) = matches.subcommand() {
        let world = world()?;
        let args = run_args::parse(matches)?;
        return Ok((String::new(), run::run(&world, &Project::find(&world, None), args)?));
    }
    if let Some(("demo", matches)) = matches.subcommand() {
        return Ok((String::new(), demo::run(&world()?, matches)?));
    }
    if let Some(("scan", matches)) = matches.subcommand() {
        let world = world()?;
        let format = match (matches.get_flag("json"), matches.get_flag("ndjson")) {
            (true, _) => scan::Format::Json,
            (_, true) => scan::Format::Ndjson,
            _ => scan::Format::Human,
        };
        let least = Severity::named(text(matches, "severity")).unwrap_or_default();
        return scan::run(&world, &Project::find(&world, None), least, format, paint::wanted());
    }
    if let Some(("doctor", matches)) = matches.subcommand() {
        let world = world()?;
        let args = doctor::DoctorArgs {
            claude: matches.get_one::<String>("claude").cloned(),
            plugin_dir: matches.get_one::<String>("plugin-dir").map(Into::into),
            container: matches.get_one::<String>("container").cloned(),
            quick: matches.get_flag("quick"),
        };
        let json = matches.get_flag("json");
        return Ok(doctor::run(&world, &Project::find(&world, None), &args, json, paint::wanted()));
    }
    answer(matches).map(|text| (text, Exit::Success))
}

pub fn world() -> Result<World, Failure> {
    World::from_env().map_err(|error| Failure::usage(format!("{error:#}")))
}

fn answer(matches: &ArgMatches) -> Result<String, Failure> {
    let mut world = world()?;
    let Some((name, matches)) = matches.subcommand() else { return Ok(help::text()) };
    if let Ok(Some(session)) = matches.try_get_one::<String>("session") {
        world.session_id = Some(session.clone());
    }
    let project = Project::find(&world, None);
    let json = matches!(matches.try_get_one::<bool>("json"), Ok(Some(true)));
    let session = world.session_id.as_deref();
    match name {
        "start" => {
            let request = start_request(matches)?;
            let imported = || request.import.then(|| import::session(&world, &project))?;
            let session = session.map(str::to_owned).or_else(imported).unwrap_or_default();
            start::check_session(&session)?;
            Ok(start::start(&world, &project, &session, &request, false)?.user)
        }
        "stop" => stop::stop(&world, &project, &scope(matches, session), None),
        "reset" => reset::reset(&world, &project, &scope(matches, session)),
        "answer" => answer::answer(&project, &text_or_stdin(matches, "text")?, matches.get_flag("replace")),
        "status" => {
            let status = status::gather(&world, &project, session)?;
            Ok(if json { status.json().to_string() } else { status.human(Paint::new(paint::wanted())) })
        }
        "config" => config::run(&world, &project, &config_request(matches), json),
        "history" => {
            let max = matches.get_one::<u32>("last").map_or(usize::MAX, |last| *last as usize);
            let wanted = match (matches.get_flag("circuit"), matches.get_flag("stalls")) {
                (true, _) => history::events,
                (_, true) => history::stalls,
                _ => history::run,
            };
            wanted(&world, &project, history::Shown { max, json, colour: paint::wanted() })
        }
        "trust" => {
            let request = match (matches.get_flag("show"), matches.get_flag("revoke")) {
                (true, _) => trust::Request::Show,
                (_, true) => trust::Request::Revoke,
                _ => trust::Request::Trust,
            };
            trust::run(&world, &project, request, json)
        }
        "init" => {
            let name = matches.get_one::<String>("name").map(String::as_str);
            init::init(&project, name, matches.get_flag("force"))
        }
        "archive" => {
            let label = matches.get_one::<String>("label").map(String::as_str);
            archive::archive(&world, &project, label, matches.get_flag("include-logs"))
        }
        "completions" => {
            let shell = matches.get_one("shell").copied().unwrap_or(Shell::Bash);
            Ok(pages::completions(shell, text(matches, "program")))
        }
        "man" => match matches.get_one::<String>("to") {
            Some(dir) => pages::write_pages(std::path::Path::new(dir)),
            None => pages::man(matches.get_one::<String>("command").map(String::as_str)),
        },
        "demo-agent" => demo::agent(&world),
        "install" => install::run(&world, &install_request(matches)),
        "uninstall" => uninstall::uninstall(&world, &uninstall_request(matches)),
        "relay" => Ok(slash::relay(&world, session.unwrap_or_default(), slash_command(matches)?)),
        "slash" => {
            let words = stdin()?;
            let reply = slash::run(
                &world,
                &project,
                session.unwrap_or_default(),
                slash_command(matches)?,
                words.trim_end_matches('\n'),
            )?;
            Ok(reply.agent.map_or(reply.user.clone(), |agent| format!("{}\n\n{agent}", reply.user)))
        }
        _ => Ok(help::text()),
    }
}

fn scope(matches: &ArgMatches, session: Option<&str>) -> stop::Scope {
    match session {
        _ if matches.get_flag("all") => stop::Scope::All,
        Some(session) => stop::Scope::Session(session.to_owned()),
        None => stop::Scope::Project,
    }
}

pub fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}

fn slash_command(matches: &ArgMatches) -> Result<&'static str, Failure> {
    let name = text(matches, "command");
    slash::find(name).ok_or_else(|| Failure::usage(format!("no such slash command: {name}")))
}

/// Returns the words given for an argument.
pub fn words(matches: &ArgMatches, name: &str) -> Vec<String> {
    matches.get_many::<String>(name).unwrap_or_default().cloned().collect()
}

/// Returns the words given for an argument as one text; `-` alone reads stdin.
pub fn text_or_stdin(matches: &ArgMatches, name: &str) -> Result<String, Failure> {
    let words = words(matches, name);
    if words == ["-"] { stdin() } else { Ok(words.join(" ")) }
}

fn start_request(matches: &ArgMatches) -> Result<StartRequest, Failure> {
    let mut request = StartRequest::default();
    for flag in KEYS.iter().filter_map(|key| key.flag).chain(["run"]) {
        for value in matches.get_many::<String>(flag).unwrap_or_default() {
            request.set(flag, Some(value)).map_err(Failure::usage)?;
        }
    }
    for flag in PRESETS.iter().map(|preset| preset.name).chain(SWITCHES.iter().map(|(name, _)| *name)) {
        if matches.get_flag(flag) {
            request.set(flag, None).map_err(Failure::usage)?;
        }
    }
    request.task = text_or_stdin(matches, "task")?;
    request.checked().map_err(Failure::usage)
}

fn config_request(matches: &ArgMatches) -> config::Request {
    let (key, user) = (text(matches, "key").to_owned(), matches.get_flag("user"));
    match matches.get_one::<String>("value") {
        _ if key.is_empty() => config::Request::Show,
        _ if matches.get_flag("unset") => config::Request::Unset { key, user },
        Some(value) => config::Request::Set { key, value: value.clone(), user },
        None => config::Request::ShowOne(key),
    }
}

fn install_request(matches: &ArgMatches) -> install::InstallArgs {
    install::InstallArgs {
        to: matches.get_one::<std::path::PathBuf>("to").cloned(),
        settings: matches.get_flag("settings"),
        yes: matches.get_flag("yes"),
        force: matches.get_flag("force"),
        claude: matches.get_one::<String>("claude").cloned(),
    }
}

fn uninstall_request(matches: &ArgMatches) -> uninstall::UninstallArgs {
    uninstall::UninstallArgs {
        purge: matches.get_flag("purge"),
        force: matches.get_flag("force"),
        claude: matches.get_one::<String>("claude").cloned(),
    }
}

pub fn stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("could not read stdin: {error}")))?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        return Err(Failure::usage(format!("stdin is larger than {} MB", MAX_STDIN_BYTES >> 20)));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! The `ralph` program: arguments to command, answer to stdout, failure to exit code.

use super::failure::{Exit, Failure};
use super::{
    answer, archive, config, demo, doctor, help, history, import, init, install, pages, reset, run, run_args,
    scan, slash, start, status, statusline, stop, trust, uninstall,
};
use crate::core::finding::{SEVERITIES, Severity};
use crate::core::request::{SWITCHES, StartRequest};
use crate::core::settings::{self, KEYS, Kind, PRESETS};
use crate::hook;
use crate::store::project::Project;
use crate::store::world::World;
use crate::view::paint;
use clap::{Arg, ArgAction, ArgMatches, Command};
use clap_complete::Shell;
use std::io::{Read, Write};
use std::process::ExitCode;

const MOST_STDIN: u64 = 16 << 20;

pub fn main() -> ExitCode {
    // The waker is a hook and starts at every turn: it does not pay for an argument parser.
    if std::env::args_os().nth(1).is_some_and(|word| word == "wake") {
        return hook::wake::main();
    }
    // So is the status line, which the client asks for all the time.
    if std::env::args_os().skip(1).eq(["statusline"]) {
        return statusline::main();
    }
    finish(command().subcommands(internal()).try_get_matches().map(|matches| run(&matches)))
}

/// Prints what came of it, and turns it into an exit code.
pub fn finish(outcome: Result<Result<(String, u8), Failure>, clap::Error>) -> ExitCode {
    let (text, code) = match outcome {
        Ok(Ok((text, code))) => (Ok(text), ExitCode::from(code)),
        Ok(Err(failure)) => (Err(failure.to_string()), ExitCode::from(failure.exit as u8)),
        Err(error) if error.use_stderr() => (Err(error.to_string()), ExitCode::from(Exit::Usage as u8)),
        Err(asked) => (Ok(asked.to_string()), ExitCode::SUCCESS),
    };
    // Controls that JSON may hold raw, a terminal may obey.
    let text = text.map(|text| if text.starts_with('{') { escape_controls(&text) } else { text });
    // A reader that went away is no error of ours.
    let _ = match text {
        Ok(text) => write_line(&mut std::io::stdout().lock(), &text),
        Err(text) => write_line(&mut std::io::stderr().lock(), &text),
    };
    code
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
fn run(matches: &ArgMatches) -> Result<(String, u8), Failure> {
    if let Some(("run", matches)) = matches.subcommand() {
        let world = world()?;
        let asked = run_args::asked(matches)?;
        return Ok((String::new(), run::run(&world, &Project::find(&world, None), asked)?));
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
        let asked = doctor::Asked {
            claude: text(matches, "claude").to_owned(),
            plugin_dir: matches.get_one::<String>("plugin-dir").map(Into::into),
            container: matches.get_one::<String>("container").cloned(),
            quick: matches.get_flag("quick"),
        };
        let json = matches.get_flag("json");
        return doctor::run(&world, &Project::find(&world, None), &asked, json, paint::wanted());
    }
    answer(matches).map(|text| (text, 0))
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
        "answer" => {
            let words: Vec<_> = matches.get_many::<String>("text").into_iter().flatten().cloned().collect();
            let text = if words == ["-"] { stdin()? } else { words.join(" ") };
            answer::answer(&project, &text, matches.get_flag("replace"))
        }
        "status" if json => status::json(&world, &project, session),
        "status" => status::text(&world, &project, session, paint::wanted()),
        "config" => config::run(&world, &project, &config_request(matches), json),
        "history" => {
            let most = matches.get_one::<usize>("last").copied().unwrap_or(usize::MAX);
            let wanted = if matches.get_flag("circuit") { history::events } else { history::run };
            wanted(&world, &project, history::Shown { most, json, colour: paint::wanted() })
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

fn slash_command(matches: &ArgMatches) -> Result<slash::Command, Failure> {
    let name = text(matches, "command");
    slash::Command::named(name).ok_or_else(|| Failure::usage(format!("there is no slash command '{name}'")))
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
    let words: Vec<&str> =
        matches.get_many::<String>("task").unwrap_or_default().map(String::as_str).collect();
    request.task = if words == ["-"] { stdin()? } else { words.join(" ") };
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

fn install_request(matches: &ArgMatches) -> install::Asked {
    install::Asked {
        to: matches.get_one::<std::path::PathBuf>("to").cloned(),
        settings: matches.get_flag("settings"),
        yes: matches.get_flag("yes"),
        force: matches.get_flag("force"),
        claude: matches.get_one::<String>("claude").cloned(),
    }
}

fn uninstall_request(matches: &ArgMatches) -> uninstall::Asked {
    uninstall::Asked {
        purge: matches.get_flag("purge"),
        force: matches.get_flag("force"),
        claude: matches.get_one::<String>("claude").cloned(),
    }
}

pub fn stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MOST_STDIN + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("stdin could not be read: {error}")))?;
    if bytes.len() as u64 > MOST_STDIN {
        return Err(Failure::usage(format!("stdin holds more than {} MB", MOST_STDIN >> 20)));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

pub fn session() -> Arg {
    Arg::new("session")
        .long("session")
        .value_name("ID")
        .help("the Claude Code session [default: $CLAUDE_CODE_SESSION_ID]")
}

fn claude() -> Arg {
    Arg::new("claude")
        .long("claude")
        .value_name("PATH")
        .help("the client to register with [default: claude on the path]")
}

/// The one definition of the command line, as users see it.
pub fn command() -> Command {
    let mut start = Command::new("start")
        .about("Start a loop in a Claude Code session, or go on with one")
        .arg(
            Arg::new("task")
                .value_name("TASK")
                .num_args(0..)
                .help("what the agent is to do; - reads it from stdin"),
        )
        .arg(session());
    for key in &KEYS {
        if let Some(flag) = key.flag {
            let mut arg = Arg::new(flag)
                .long(flag)
                .value_name(help::value_name(flag))
                .help(key.help)
                .allow_hyphen_values(true);
            if key.kind == Kind::Commands {
                arg = arg.action(ArgAction::Append);
            }
            for alias in settings::aliases(flag) {
                arg = arg.alias(alias);
            }
            start = start.arg(arg);
        }
    }
    start = start.args(PRESETS.iter().map(|preset| flag(preset.name, preset.help)));
    start = start.args(SWITCHES.iter().map(|&(name, help)| flag(name, help)));
    start = start.arg(
        Arg::new("run")
            .long("run")
            .value_name("ID")
            .help("with --resume: which loop, by the beginning of its run id"),
    );
    Command::new("ralph")
        .about("Keeps Claude Code working on a task exactly as long as it should")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(start)
        .subcommand(run_args::command())
        .subcommand(
            Command::new("stop")
                .about("End a session's loop, every loop of this project, or every loop of yours")
                .arg(session())
                .arg(flag("all", "every loop of yours, in every project").conflicts_with("session")),
        )
        .subcommand(
            Command::new("reset")
                .about("Close a circuit breaker that has tripped, so that a loop may be started again")
                .arg(session())
                .arg(flag("all", "every breaker of yours, in every project").conflicts_with("session")),
        )
        .subcommand(
            Command::new("answer")
                .about("Answer the question that waits in ralph/decide.txt, or show it")
                .arg(
                    Arg::new("text")
                        .value_name("TEXT")
                        .num_args(0..)
                        .help("your answer; - reads it from stdin, nothing shows the question"),
                )
                .arg(flag("replace", "write it in place of an earlier answer")),
        )
        .subcommand(
            Command::new("status")
                .about("Show every loop of this project")
                .arg(session())
                .arg(flag("json", "one JSON object")),
        )
        .subcommand(
            Command::new("config")
                .about("Show the effective settings and where they come from, or set one")
                .arg(Arg::new("key").value_name("KEY"))
                .arg(Arg::new("value").value_name("VALUE").allow_hyphen_values(true))
                .arg(flag("unset", "remove the key from the file").requires("key").conflicts_with("value"))
                .arg(flag("user", "write your own file instead of the project's"))
                .arg(flag("json", "one JSON object").conflicts_with_all(["value", "unset"])),
        )
        .subcommand(
            Command::new("history")
                .about("List the past runs of this project, newest first")
                .arg(
                    Arg::new("last")
                        .long("last")
                        .value_name("N")
                        .value_parser(clap::value_parser!(usize))
                        .help("only the newest N"),
                )
                .arg(flag("circuit", "trips and resets of the circuit breaker instead"))
                .arg(flag("json", "one JSON object a run or event, one a line")),
        )
        .subcommand(
            Command::new("init")
                .about(
                    "Lay out ralph/ for the runner: prompt, PRD, task list and progress; keeps what is there",
                )
                .arg(
                    Arg::new("name")
                        .long("name")
                        .value_name("N")
                        .help("what the project is called [default: its folder]"),
                )
                .arg(flag("force", "replace the files that are there")),
        )
        .subcommand(
            Command::new("archive")
                .about("Move a finished run to ralph-archive/DATE-LABEL, with a summary, and reset ralph/")
                .arg(
                    Arg::new("label")
                        .long("label")
                        .value_name("L")
                        .help("what the archive is called [default: the project's name]"),
                )
                .arg(flag("include-logs", "keep the logs in the archive; without it they are removed")),
        )
        .subcommand(
            Command::new("install")
                .about("Lay out the plugin, register it with Claude Code, and prove that it runs")
                .arg(
                    Arg::new("to")
                        .long("to")
                        .value_name("DIR")
                        .value_parser(clap::value_parser!(std::path::PathBuf))
                        .conflicts_with_all(["settings", "claude"])
                        .help("only lay it out, in this folder: new, empty, or an earlier copy"),
                )
                .arg(flag(
                    "settings",
                    "also offer a status line for your Claude settings, showing the change first",
                ))
                .arg(flag("yes", "make that change without asking").requires("settings"))
                .arg(flag("force", "replace what somebody edited, keeping a copy, or put in another's place"))
                .arg(claude()),
        )
        .subcommand(
            Command::new("uninstall")
                .about("Take away what install brought")
                .arg(flag("purge", "and your records and settings; it says what it removes"))
                .arg(flag("force", "although a loop is running or the plugin was edited"))
                .arg(claude()),
        )
        .subcommand(
            Command::new("statusline")
                .about("One line on this session's loop, for Claude Code's status line; its JSON on stdin"),
        )
        .subcommand(
            Command::new("scan")
                .about(
                    "Show what in this project limits the agent; exit code 2 where something critical stands",
                )
                .arg(
                    Arg::new("severity")
                        .long("severity")
                        .value_name("S")
                        .value_parser(SEVERITIES.map(Severity::name))
                        .help("only findings of this severity or worse"),
                )
                .arg(flag("json", "one JSON object"))
                .arg(flag("ndjson", "a line of metadata, then one finding a line").conflicts_with("json")),
        )
        .subcommand(
            Command::new("trust")
                .about("Let this project's own file run its commands for you, exactly as they are now")
                .arg(flag("show", "only show what it would run, and whether you trust it"))
                .arg(flag("revoke", "forget what you trusted here").conflicts_with("show"))
                .arg(flag("json", "one JSON object")),
        )
        .subcommand(doctor())
        .subcommand(demo::command())
        .subcommand(Command::new("help").about("Explain the slash commands"))
        .subcommand(
            Command::new("completions")
                .about("Print a script that completes our commands in your shell")
                .arg(
                    Arg::new("shell")
                        .value_name("SHELL")
                        .required(true)
                        .value_parser(clap::value_parser!(Shell)),
                )
                .arg(
                    Arg::new("program")
                        .value_name("PROGRAM")
                        .value_parser(pages::PROGRAMS)
                        .default_value(pages::PROGRAMS[0])
                        .help("the program whose commands are completed"),
                ),
        )
        .subcommand(
            Command::new("man")
                .about("Print the man page of ralph or of one of its commands")
                .arg(Arg::new("command").value_name("COMMAND").help("the command, such as run"))
                .arg(
                    Arg::new("to")
                        .long("to")
                        .value_name("DIR")
                        .conflicts_with("command")
                        .help("write every page to this folder instead"),
                ),
        )
}

/// What our own files and programs call, and nobody types.
fn internal() -> [Command; 3] {
    let slash =
        |name: &'static str| Command::new(name).arg(Arg::new("command").required(true)).arg(session());
    [slash("relay"), slash("slash"), Command::new("demo-agent")].map(|command| command.hide(true))
}

fn doctor() -> Command {
    let value = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("doctor")
        .about("Check everything a loop depends on, and say the way out; exit code 1 where something failed")
        .arg(value("claude", "PATH", "the client's program").default_value("claude"))
        .arg(value("plugin-dir", "DIR", "a plugin that you load with `claude --plugin-dir DIR`"))
        .arg(value("container", "NAME", "also the container for `ralph run --container`"))
        .arg(flag("quick", "leave out the round trip through the client, which takes a few seconds"))
        .arg(flag("json", "one JSON object"))
}

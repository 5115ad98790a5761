//! The command line of `ralph`: every command, its flags and their help.

use super::{demo, help, pages, run_args};
use crate::core::finding::{SEVERITIES, Severity};
use crate::core::request::SWITCHES;
use crate::core::settings::{self, KEYS, Kind, PRESETS};
use clap::{Arg, ArgAction, Command};
use clap_complete::Shell;

/// The one definition of the command line, as users see it.
pub fn command() -> Command {
    Command::new("ralph")
        .about("Keeps Claude Code working on a task exactly as long as it should")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands([
            start(),
            run_args::command(),
            stop(),
            status(),
            answer(),
            reset(),
            history(),
            scan(),
            config(),
            trust(),
            init(),
            archive(),
            demo::command(),
            install(),
            uninstall(),
            doctor(),
            statusline(),
            completions(),
            man(),
            help(),
        ])
}

/// What our own files and programs call, and nobody types.
pub fn internal() -> [Command; 3] {
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

fn start() -> Command {
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
    start
}

fn stop() -> Command {
    Command::new("stop")
        .about("End a session's loop, every loop of this project, or every loop of yours")
        .arg(session())
        .arg(flag("all", "every loop of yours, in every project").conflicts_with("session"))
}

fn reset() -> Command {
    Command::new("reset")
        .about("Close a circuit breaker that has tripped, so that a loop may be started again")
        .arg(session())
        .arg(flag("all", "every breaker of yours, in every project").conflicts_with("session"))
}

fn answer() -> Command {
    Command::new("answer")
        .about("Answer the question that waits in ralph/decide.txt, or ralph/blocked.txt, or show it")
        .arg(
            Arg::new("text")
                .value_name("TEXT")
                .num_args(0..)
                .help("your answer; - reads it from stdin, nothing shows the question"),
        )
        .arg(flag("replace", "write it in place of an earlier answer"))
}

fn status() -> Command {
    Command::new("status")
        .about("Show every loop of this project")
        .arg(session())
        .arg(flag("json", "one JSON object"))
}

fn config() -> Command {
    Command::new("config")
        .about("Show the effective settings and where they come from, or set one")
        .arg(Arg::new("key").value_name("KEY"))
        .arg(Arg::new("value").value_name("VALUE").allow_hyphen_values(true))
        .arg(flag("unset", "remove the key from the file").requires("key").conflicts_with("value"))
        .arg(flag("user", "write your own file instead of the project's"))
        .arg(flag("json", "one JSON object").conflicts_with_all(["value", "unset"]))
}

fn history() -> Command {
    Command::new("history")
        .about("List the past runs of this project, newest first")
        .arg(
            Arg::new("last")
                .long("last")
                .value_name("N")
                .value_parser(clap::value_parser!(u32).range(1..))
                .help("only the newest N"),
        )
        .arg(flag("circuit", "trips and resets of the circuit breaker instead"))
        .arg(flag("json", "one JSON object a run or event, one a line"))
}

fn init() -> Command {
    Command::new("init")
        .about("Lay out ralph/ for the runner: prompt, PRD, task list and progress; keeps what is there")
        .arg(
            Arg::new("name")
                .long("name")
                .value_name("N")
                .help("what the project is called [default: its folder]"),
        )
        .arg(flag("force", "replace the files that are there"))
}

fn archive() -> Command {
    Command::new("archive")
        .about("Move a finished run to ralph-archive/DATE-LABEL, with a summary, and reset ralph/")
        .arg(
            Arg::new("label")
                .long("label")
                .value_name("L")
                .help("what the archive is called [default: the project's name]"),
        )
        .arg(flag("include-logs", "keep the logs in the archive; without it they are removed"))
}

fn install() -> Command {
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
        .arg(flag("settings", "also offer a status line for your Claude settings, showing the change first"))
        .arg(flag("yes", "make that change without asking").requires("settings"))
        .arg(flag("force", "replace what somebody edited, keeping a copy, or put in another's place"))
        .arg(claude())
}

fn uninstall() -> Command {
    Command::new("uninstall")
        .about("Take away what install brought")
        .arg(flag("purge", "and your records and settings; it says what it removes"))
        .arg(flag("force", "although a loop is running or the plugin was edited"))
        .arg(claude())
}

fn statusline() -> Command {
    Command::new("statusline")
        .about("One line on this session's loop, for Claude Code's status line; its JSON on stdin")
}

fn scan() -> Command {
    Command::new("scan")
        .about("Show what in this project limits the agent; exit code 2 where something critical stands")
        .arg(
            Arg::new("severity")
                .long("severity")
                .value_name("S")
                .value_parser(SEVERITIES.map(Severity::name))
                .help("only findings of this severity or worse"),
        )
        .arg(flag("json", "one JSON object"))
        .arg(flag("ndjson", "a line of metadata, then one finding a line").conflicts_with("json"))
}

fn trust() -> Command {
    Command::new("trust")
        .about("Let this project's own file run its commands for you, exactly as they are now")
        .arg(flag("show", "only show what it would run, and whether you trust it"))
        .arg(flag("revoke", "forget what you trusted here").conflicts_with("show"))
        .arg(flag("json", "one JSON object"))
}

fn help() -> Command {
    Command::new("help").about("Explain the slash commands")
}

fn completions() -> Command {
    Command::new("completions")
        .about("Print a script that completes our commands in your shell")
        .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(clap::value_parser!(Shell)))
        .arg(
            Arg::new("program")
                .value_name("PROGRAM")
                .value_parser(pages::PROGRAMS)
                .default_value(pages::PROGRAMS[0])
                .help("the program whose commands are completed"),
        )
}

fn man() -> Command {
    Command::new("man")
        .about("Print the man page of ralph or of one of its commands")
        .arg(Arg::new("command").value_name("COMMAND").help("the command, such as run"))
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("DIR")
                .conflicts_with("command")
                .help("write every page to this folder instead"),
        )
}

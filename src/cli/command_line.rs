//! The command line of `ralph`: every command, its flags and their help.

use super::help;
use crate::cli::run::run_args;
use crate::cli::setup::{demo, pages};
use crate::core::guidance::finding::{SEVERITIES, Severity};
use crate::core::request::SWITCHES;
use crate::core::settings::{self, KEYS, Kind, PRESETS};
use clap::{Arg, ArgAction, Command};
use clap_complete::Shell;

/// Returns the command line as users see it.
pub fn command() -> Command {
    let command = Command::new("ralph")
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
        ]);
    with_capital_help(command)
}

/// Starts every help line with a capital letter. Settings share theirs with tables, where they are lower-case.
pub fn with_capital_help(command: Command) -> Command {
    let command =
        command.mut_args(|arg| match arg.get_help().map(|text| help::capitalized(&text.to_string())) {
            Some(text) => arg.help(text),
            None => arg,
        });
    command.mut_subcommands(with_capital_help)
}

/// Returns the commands that only our own files and programs call.
pub fn internal() -> [Command; 3] {
    let slash =
        |name: &'static str| Command::new(name).arg(Arg::new("command").required(true)).arg(session());
    [slash("relay"), slash("slash"), Command::new("demo-agent")].map(|command| command.hide(true))
}

fn doctor() -> Command {
    Command::new("doctor")
        .about("Diagnose problems and suggest fixes (exits 1 on failure)")
        .arg(value("claude", "PATH", "the program of Claude Code").default_value("claude"))
        .arg(value("plugin-dir", "DIR", "check a plugin that you load with `claude --plugin-dir DIR`"))
        .arg(value("container", "NAME", "also check this container of `ralph run --container`"))
        .arg(flag("quick", "skip the loop through Claude Code, which takes a few seconds"))
        .arg(flag("json", "print JSON"))
}

pub fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn value(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

pub fn session() -> Arg {
    value("session", "ID", "the Claude Code session [default: $CLAUDE_CODE_SESSION_ID]")
}

fn claude() -> Arg {
    Arg::new("claude").long("claude").value_name("PATH").help("the program of Claude Code [default: claude]")
}

fn start() -> Command {
    let mut start = Command::new("start")
        .about("Start a loop in a Claude Code session, or resume one")
        .arg(
            Arg::new("task")
                .value_name("TASK")
                .num_args(0..)
                .help("what the agent should do; - reads it from stdin"),
        )
        .arg(session());
    for key in &KEYS {
        if let Some(flag) = key.flag {
            let mut arg = Arg::new(flag)
                .long(flag)
                .value_name(key.kind.value_name())
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
    start.arg(value("run", "ID", "with --resume: the loop to resume, by its run id or the beginning of it"))
}

fn stop() -> Command {
    Command::new("stop")
        .about("Stop the loop of this session, or every loop of this project")
        .arg(session())
        .arg(flag("all", "stop all your loops, in every project").conflicts_with("session"))
}

fn reset() -> Command {
    Command::new("reset")
        .about("Reset the circuit breaker of this session, or of every loop of this project")
        .arg(session())
        .arg(flag("all", "reset all your circuit breakers, in every project").conflicts_with("session"))
}

fn answer() -> Command {
    Command::new("answer")
        .about("Show or answer the agent's open question")
        .arg(
            Arg::new("text")
                .value_name("TEXT")
                .num_args(0..)
                .help("your answer; - reads it from stdin; without it, the question is shown"),
        )
        .arg(flag("replace", "overwrite an earlier answer"))
}

fn status() -> Command {
    Command::new("status")
        .about("Show every loop of this project")
        .arg(session())
        .arg(flag("json", "print JSON"))
}

fn config() -> Command {
    Command::new("config")
        .about("Show the settings and where they come from, or set one")
        .arg(Arg::new("key").value_name("KEY").help("the setting, such as loop_limits.max_hours"))
        .arg(Arg::new("value").value_name("VALUE").allow_hyphen_values(true).help("its new value"))
        .arg(flag("unset", "remove the key from the file").requires("key").conflicts_with("value"))
        .arg(flag("user", "change your own file instead of the project's"))
        .arg(flag("json", "print JSON").conflicts_with_all(["value", "unset"]))
}

fn history() -> Command {
    Command::new("history")
        .about("List past runs of this project, newest first")
        .arg(value("last", "N", "only the newest N").value_parser(clap::value_parser!(u32).range(1..)))
        .arg(flag("circuit", "list trips and resets of the circuit breaker instead"))
        .arg(
            flag("stalls", "list stalls instead: how often agents were silent for long, and for how long")
                .conflicts_with("circuit"),
        )
        .arg(flag("json", "print one JSON object per line"))
}

fn init() -> Command {
    Command::new("init")
        .about(
            "Create ralph/ for `ralph run`: prompt, PRD, task list and progress notes (keeps existing files)",
        )
        .arg(value("name", "N", "name of the project [default: its folder]"))
        .arg(flag("force", "overwrite existing files"))
}

fn archive() -> Command {
    Command::new("archive")
        .about("Move a finished run to ralph-archive/DATE-LABEL with a summary, and reset ralph/")
        .arg(value("label", "L", "label of the archive [default: the project's name]"))
        .arg(flag("include-logs", "move the logs into the archive too; without it they stay in ralph/logs"))
}

fn install() -> Command {
    Command::new("install")
        .about("Install the plugin in Claude Code and check that it works")
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("DIR")
                .value_parser(clap::value_parser!(std::path::PathBuf))
                .conflicts_with_all(["settings", "claude"])
                .help("only copy the plugin to this folder"),
        )
        .arg(flag("settings", "also add a status line to your Claude Code settings (shows the change first)"))
        .arg(flag("yes", "change the settings without asking").requires("settings"))
        .arg(flag("force", "replace an edited plugin (keeps a copy), another marketplace or status line"))
        .arg(claude())
}

fn uninstall() -> Command {
    Command::new("uninstall")
        .about("Remove the plugin")
        .arg(flag("purge", "also remove your records and settings, and list them"))
        .arg(flag("force", "even if a loop is running or the plugin was edited"))
        .arg(claude())
}

fn statusline() -> Command {
    Command::new("statusline").about(
        "Print one line about this session's loop, for Claude Code's status line (reads its JSON on stdin)",
    )
}

fn scan() -> Command {
    Command::new("scan")
        .about("Show what limits the agent in this project (exits 2 on a critical finding)")
        .arg(
            value("severity", "S", "only findings of this severity or higher")
                .value_parser(SEVERITIES.map(Severity::name)),
        )
        .arg(flag("json", "print JSON"))
        .arg(flag("ndjson", "print a line of metadata, then one finding per line").conflicts_with("json"))
}

fn trust() -> Command {
    Command::new("trust")
        .about("Trust the commands in this project's config")
        .arg(flag("show", "only show the commands and whether you trust them"))
        .arg(flag("revoke", "withdraw your trust").conflicts_with("show"))
        .arg(flag("json", "print JSON"))
}

fn help() -> Command {
    Command::new("help").about("Explain the slash commands")
}

fn completions() -> Command {
    Command::new("completions")
        .about("Print a completion script for your shell")
        .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(clap::value_parser!(Shell)))
        .arg(
            Arg::new("program")
                .value_name("PROGRAM")
                .value_parser(pages::PROGRAMS)
                .default_value(pages::PROGRAMS[0])
                .help("the program to complete"),
        )
}

fn man() -> Command {
    Command::new("man")
        .about("Print the man page of ralph or of one of its commands")
        .arg(Arg::new("command").value_name("COMMAND").help("the command, such as run"))
        .arg(value("to", "DIR", "write all pages to this folder instead").conflicts_with("command"))
}

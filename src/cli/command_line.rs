//! The command line of `ralph`: every command, its flags and their help.

use super::help;
use crate::cli::loops::guidance_program;
use crate::cli::run::run_args;
use crate::cli::setup::pages;
use crate::core::guidance::finding::{SEVERITIES, Severity};
use crate::core::request::SWITCHES;
use crate::core::settings::{self, KEYS, PRESETS, SettingKey};
use clap::{Arg, ArgAction, Command, value_parser};
use clap_complete::Shell;
use std::path::PathBuf;

/// Returns the command line as users see it.
pub fn command() -> Command {
    let about = "Keeps Claude Code working on a task until it is complete or a limit is reached";
    program("ralph", about, commands())
}

/// Returns a program that consists of commands. Every help line starts with a capital letter; settings share theirs
/// with tables, where they are lower-case.
pub fn program(name: &'static str, about: &'static str, commands: Vec<Command>) -> Command {
    let command = Command::new(name)
        .about(about)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true);
    command.subcommands(commands).mut_subcommands(|command| {
        command.mut_args(|arg| match arg.get_help().map(|text| help::capitalized(&text.to_string())) {
            Some(text) => arg.help(text),
            None => arg,
        })
    })
}

/// Returns the commands that only our own files and programs call.
pub fn internal() -> [Command; 3] {
    let slash = |name: &'static str| Command::new(name).args([Arg::new("command").required(true), session()]);
    [slash("relay"), slash("slash"), Command::new("demo-agent")].map(|command| command.hide(true))
}

pub fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

pub fn value(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Returns an argument without dashes.
fn word(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).value_name(value).help(help)
}

/// Returns an argument that takes all words of a text.
pub fn words(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    word(name, value, help).num_args(0..)
}

pub fn session() -> Arg {
    value("session", "ID", "the Claude Code session [default: $CLAUDE_CODE_SESSION_ID]")
}

/// Returns the flag of a setting; one whose values are commands may be given several times.
pub fn setting(flag: &'static str, key: &'static SettingKey) -> Arg {
    let action = if key.kind.is_repeatable() { ArgAction::Append } else { ArgAction::Set };
    value(flag, key.kind.value_name(), key.help).allow_hyphen_values(true).action(action)
}

fn commands() -> Vec<Command> {
    let json = || flag("json", "print JSON");
    let claude = || value("claude", "PATH", "the Claude Code program [default: claude]");
    let flags = KEYS.iter().filter_map(|key| Some((key.flag?, key)));
    let start = Command::new("start")
        .about("Start a loop in a Claude Code session, or resume one")
        .arg(words("task", "TASK", "what the agent should do; - reads it from stdin"))
        .arg(session())
        .args(flags.map(|(flag, key)| setting(flag, key).aliases(settings::aliases(flag))))
        .args(PRESETS.iter().map(|preset| flag(preset.name, preset.help)))
        .args(SWITCHES.iter().map(|&(name, help)| flag(name, help)))
        .arg(value("run", "ID", "run id (or a unique prefix) of the loop to resume; needs --resume"));
    let [encourage, forbid] = guidance_program::giving();
    // Help that is too long for its line below.
    let answer = "your answer; - reads it from stdin; without TEXT, the question is shown";
    let stalls = "list stalls instead: number and length of long silences of the agent";
    let severity = "show only findings of this severity or higher";
    let ndjson = "print a line of metadata, then one finding per line";
    let init =
        "Create ralph/ for `ralph run`: prompt, PRD, task list and progress notes (keeps existing files)";
    let settings = "also add a status line to your Claude Code settings (shows the change first)";
    vec![
        start,
        run_args::command(),
        Command::new("stop")
            .about("Stop the loop of this session, or every loop of this project")
            .arg(session())
            .arg(flag("all", "stop all your loops, in every project").conflicts_with("session")),
        Command::new("pause")
            .about("Pause the loop of this session, or every loop of this project, when its turn ends")
            .arg(session())
            .arg(flag("resume", "resume a paused `ralph run`, or cancel the pause of a session whose turn has not ended")),
        encourage,
        forbid,
        Command::new("status").about("Show every loop of this project").args([
            session(),
            flag("all", "also show the loops of your other projects"),
            flag("watch", "keep the screen up to date, until q or Ctrl-C").conflicts_with("json"),
            json(),
        ]),
        Command::new("logs")
            .about("Show what the agent of a run said and did")
            .arg(word("run-id", "RUN", "run id, or a unique prefix [default: this session's, else the newest]"))
            .arg(flag("follow", "follow the output until the run ends").short('f'))
            .arg(value("iteration", "N", "show only this iteration").value_parser(value_parser!(u64).range(1..)))
            .arg(flag("raw", "print the raw log or transcript")),
        Command::new("monitor")
            .about("Watch the loops of this project full screen, and steer them")
            .arg(flag("all", "watch the loops of all your projects")),
        Command::new("answer")
            .about("Show or answer the agent's open question")
            .arg(words("text", "TEXT", answer))
            .arg(flag("replace", "overwrite an earlier answer"))
            .arg(flag("adopt", "accept the question and answer in ralph/, even though none of your loops asked it").conflicts_with("text")),
        Command::new("reset")
            .about("Reset the circuit breaker of this session, or of every loop of this project")
            .arg(session())
            .arg(flag("all", "reset all your circuit breakers, in every project").conflicts_with("session")),
        Command::new("history")
            .about("List past runs of this project, newest first, or show one in full")
            .arg(
                word("run-id", "RUN", "run id, or a unique prefix, of the run to show")
                    .conflicts_with_all(["last", "circuit", "stalls"]),
            )
            .arg(value("last", "N", "show only the newest N runs").value_parser(value_parser!(u32).range(1..)))
            .arg(flag("circuit", "list trips and resets of the circuit breaker instead"))
            .arg(flag("stalls", stalls).conflicts_with("circuit"))
            .arg(flag("json", "print one JSON object per line")),
        Command::new("report")
            .about("Write an HTML report of a run: outcome, checks, changes to review, cost, every iteration")
            .arg(word("run", "RUN", "run id, or a unique prefix [default: the newest of this project]"))
            .arg(value("out", "FILE", "write it to this file [default: into the run's folder in your data folder]").value_parser(value_parser!(PathBuf)))
            .arg(flag("open", "open it in your browser"))
            .arg(flag("markdown", "write Markdown, to stdout unless --out is given").conflicts_with("open"))
            .arg(flag("all", "report on all your runs in every project, with trends").conflicts_with("run")),
        Command::new("scan")
            .about("Show the constraints of this project (exits 2 on a critical finding)")
            .arg(value("severity", "S", severity).value_parser(SEVERITIES.map(Severity::name)))
            .arg(json())
            .arg(flag("ndjson", ndjson).conflicts_with("json")),
        Command::new("config")
            .about("Show the settings and where they come from, or set one")
            .arg(word("key", "KEY", "the setting, such as loop_limits.max_hours"))
            .arg(word("value", "VALUE", "its new value").allow_hyphen_values(true))
            .arg(flag("unset", "remove the key from the file").requires("key").conflicts_with("value"))
            .arg(flag("user", "change your own file instead of the project's"))
            .arg(json().conflicts_with_all(["value", "unset"])),
        Command::new("trust")
            .about("Trust the commands in this project's config, or a symbolic link in it")
            .arg(flag("show", "only show the commands and whether you trust them"))
            .arg(flag("revoke", "withdraw your trust").conflicts_with("show"))
            .arg(value("link", "PATH", "follow this symbolic link as long as its target stays the same").conflicts_with_all(["show", "revoke"]))
            .arg(json()),
        Command::new("notify")
            .about("Show the notification settings, or send a test notification")
            .arg(flag("test", "send a test notification through every channel (exits 1 if one fails)")),
        Command::new("init")
            .about(init)
            .arg(value("name", "N", "name of the project [default: its folder]"))
            .arg(flag("force", "overwrite existing files")),
        Command::new("archive")
            .about("Move a finished run to ralph-archive/DATE-LABEL with a summary, and reset ralph/")
            .arg(value("label", "L", "label of the archive [default: the project's name]"))
            .arg(flag("include-logs", "move the logs into the archive too; without it they stay in ralph/logs")),
        Command::new("demo")
            .about("Show a whole loop in seconds, with a scripted agent")
            .after_help(
                "Needs no Claude Code, no key and no network. It runs the real hooks and the real runner in a temporary \
                 project\nand checks every step; exit code 70 if one fails.",
            )
            .arg(flag("fast", "skip the pauses for reading"))
            .arg(flag("keep", "keep the temporary project")),
        Command::new("install")
            .about("Install the plugin in Claude Code and check that it works")
            .arg(
                value("to", "DIR", "only copy the plugin to this folder")
                    .value_parser(value_parser!(PathBuf))
                    .conflicts_with_all(["settings", "claude"]),
            )
            .arg(flag("settings", settings))
            .arg(flag("yes", "change the settings without asking"))
            .arg(flag("force", "replace an edited plugin (keeps a copy), another marketplace or status line"))
            .arg(claude()),
        Command::new("uninstall")
            .about("Remove the plugin")
            .arg(flag("purge", "also remove your records and settings, and list them"))
            .arg(flag("force", "uninstall even if a loop is running or the plugin was edited"))
            .arg(claude()),
        Command::new("doctor")
            .about("Diagnose problems and suggest fixes (exits 1 on failure)")
            .arg(value("claude", "PATH", "the Claude Code program").default_value("claude"))
            .arg(value("plugin-dir", "DIR", "check a plugin that you load with `claude --plugin-dir DIR`"))
            .arg(value("container", "NAME", "also check this container of `ralph run --container`"))
            .arg(flag("quick", "skip the round trip through Claude Code, which takes a few seconds"))
            .arg(json()),
        Command::new("statusline").about(
            "Print one line about this session's loop, for Claude Code's status line (reads its JSON on stdin)",
        ),
        Command::new("completions")
            .about("Print a completion script for your shell")
            .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(Shell)))
            .arg(
                word("program", "PROGRAM", "the program to complete")
                    .value_parser(pages::PROGRAMS)
                    .default_value(pages::PROGRAMS[0]),
            ),
        Command::new("man")
            .about("Print the man page of ralph or of one of its commands")
            .arg(word("command", "COMMAND", "the command, such as run"))
            .arg(value("to", "DIR", "write all pages to this folder instead").conflicts_with("command")),
        Command::new("help")
            .about("Explain the slash commands, or one command")
            .arg(word("command", "COMMAND", "the command, such as run")),
    ]
}

//! The text of `ralph help`, from the same tables as the command line.

use super::{Failure, command_line};
use crate::cli::loops::guidance_program;
use crate::core::request::SWITCHES;
use crate::core::settings::{KEYS, PRESETS};
use crate::core::text::clean;
use crate::core::text::nearest::nearest;
use clap::Command;

/// Every slash command: how it is typed, and what it does.
const COMMANDS: &[(&str, &str)] = &[
    ("start TASK [flags]", "start a loop in this session"),
    ("start --resume", "resume a paused, ended or orphaned loop"),
    ("start --import", "import a loop of the official ralph-loop plugin"),
    ("status [--all]", "show the loops of this project, or all your loops"),
    ("stop [--all]", "stop the loop of this session, or all your loops"),
    ("encourage TEXT", "tell the agent what to do more of; without TEXT, list all guidance"),
    ("forbid TEXT", "tell the agent what not to do; [--pin] [--for 2h] [--replace] [--remove N]"),
    ("answer [TEXT]", "answer the agent's question and resume the loop, or show it; [--replace]"),
    ("scan [--severity S]", "show the constraints of this project"),
    ("config [KEY [VALUE]]", "show the settings, or set one"),
    ("history [--last N]", "list past runs of this project; [--circuit|--stalls]"),
    ("reset [--all]", "reset the circuit breaker of this session, or all your breakers"),
    ("help [COMMAND]", "show this text, or the part about one command"),
];

fn lines<'a>(commands: impl Iterator<Item = &'a (&'static str, &'static str)>) -> String {
    commands.map(|(usage, what)| format!("{:<28} {what}\n", format!("/ralph:{usage}"))).collect()
}

/// Returns the help about one slash command.
pub fn of_slash(name: &str) -> Result<String, Failure> {
    let is_it = |(usage, _): &&(&str, &str)| usage.split(' ').next() == Some(name);
    let text = lines(COMMANDS.iter().filter(is_it));
    if text.is_empty() {
        let names = COMMANDS.iter().filter_map(|(usage, _)| usage.split(' ').next());
        return Err(Failure::usage(format!("no such slash command: {}", clean::excerpt(name, 60)))
            .did_you_mean(nearest(name, names), "/ralph:help lists them"));
    }
    Ok(if name == "start" { format!("{text}\n{}", flags()) } else { text })
}

/// Returns the help about a command of one of our programs.
pub fn of_command(name: &str) -> Result<String, Failure> {
    let programs = [command_line::command(), guidance_program::command()];
    let found = programs.iter().find_map(|program| {
        let command = program.find_subcommand(name)?.clone();
        Some(command.bin_name(format!("{} {name}", program.get_name())).render_help().to_string())
    });
    found.ok_or_else(|| {
        let names = programs.iter().flat_map(Command::get_subcommands).map(Command::get_name);
        Failure::usage(format!("no such command: {}", clean::excerpt(name, 60)))
            .did_you_mean(nearest(name, names), "`ralph --help` lists the commands")
    })
}

pub fn text() -> String {
    let mut text = String::from(
        "Ralph keeps Claude Code working on a task until it is complete or a limit is reached.\n\n",
    );
    text.push_str(&lines(COMMANDS.iter()));
    text.push('\n');
    text.push_str(&flags());
    text.push_str(
        "\nEsc pauses the loop. `touch .claude/STOP_LOOP` stops every loop of the project.\n\
         Ralph ignores commands and addresses in a project's config (verify, notify) until you run `ralph trust` in a terminal.\n\
         In a terminal: `ralph --help`; `ralph init` creates a task list; with one, a loop completes only when every story passes.\n\n\
         Migrating from other loops:\n\
         \x20 /ralph-loop \"TASK\" --completion-promise X --max-iterations N   (the official plugin)\n\
         \x20   /ralph:start TASK --promise X --max-iterations N\n\
         \x20 /cancel-ralph\n\
         \x20   /ralph:stop\n\
         \x20 while :; do cat PROMPT.md | claude -p; done\n\
         \x20   ralph run -f PROMPT.md, in a terminal; with --tasks prd.json or --tasks fix_plan.md every task must be done",
    );
    text
}

fn flags() -> String {
    let mut text = String::from("Flags of start:\n");
    let settings = KEYS.iter().filter_map(|key| Some((key.flag?, key.kind.value_name(), key.help)));
    let presets = PRESETS.iter().map(|preset| (preset.name, "", preset.help));
    let switches = SWITCHES.iter().map(|&(name, help)| (name, "", help));
    for (name, value, help) in settings.chain(presets).chain(switches) {
        text.push_str(&format!("  {:<25} {}\n", format!("--{name} {value}"), capitalized(help)));
    }
    text
}

/// Returns a text with a capital first letter.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

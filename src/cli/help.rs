//! The help of the slash commands, made from the same tables the program goes by.

use crate::core::request::SWITCHES;
use crate::core::settings::{KEYS, PRESETS};

pub fn text() -> String {
    let mut text = String::from(
        "Ralph keeps Claude Code working on a task until it is done or a limit is reached.\n\n\
         /ralph:start TASK [flags]   start a loop in this session\n\
         /ralph:start --resume       go on with a paused, ended or orphaned loop\n\
         /ralph:start --import       take over a loop of the official ralph-loop plugin\n\
         /ralph:status               where the loops of this project are\n\
         /ralph:stop [--all]         end this session's loop, or every loop of yours\n\
         /ralph:encourage TEXT       what the agent should do more of; without text, the list\n\
         /ralph:forbid TEXT          what it must not do; [--pin] [--for 2h] [--replace]\n\
         /ralph:scan                 what in this project limits the agent\n\
         /ralph:config [KEY [VALUE]] show the settings, or set one\n\
         /ralph:help                 this text\n\nFlags of start:\n",
    );
    let mut row = |flag: String, help: &str| text.push_str(&format!("  {flag:<24} {help}\n"));
    for key in KEYS.iter() {
        if let Some(flag) = key.flag {
            row(format!("--{flag} {}", value_name(flag)), key.help);
        }
    }
    for preset in &PRESETS {
        row(format!("--{}", preset.name), preset.help);
    }
    for (switch, help) in SWITCHES {
        row(format!("--{switch}"), help);
    }
    text.push_str(
        "\nEsc pauses the loop. `touch .claude/STOP_LOOP` stops every loop of the project.\n\
         Commands in a project's own file (verify, notify) run only after `ralph trust`, in a terminal.\n\
         In a terminal: `ralph --help`; `ralph init` lays out a task list that a finish must pass.\n\n\
         Coming from elsewhere:\n\
         \x20 /ralph-loop \"TASK\" --completion-promise X --max-iterations N   (the official plugin)\n\
         \x20   /ralph:start TASK --promise X --max-iterations N\n\
         \x20 /cancel-ralph\n\
         \x20   /ralph:stop\n\
         \x20 while :; do cat PROMPT.md | claude -p; done\n\
         \x20   ralph run -f PROMPT.md, in a terminal; --tasks prd.json or --tasks fix_plan.md make a finish wait for every box",
    );
    text
}

pub fn value_name(flag: &str) -> &'static str {
    match flag {
        "promise" => "TEXT",
        "notify" | "verify" => "CMD",
        "max-cost" => "USD",
        _ => "N",
    }
}

//! The text of `ralph help`, from the same tables as the command line.

use crate::core::request::SWITCHES;
use crate::core::settings::{KEYS, PRESETS};

pub fn text() -> String {
    let mut text = String::from(
        "Ralph keeps Claude Code working on a task until it is complete or a limit is reached.\n\n\
         /ralph:start TASK [flags]    start a loop in this session\n\
         /ralph:start --resume        resume a paused, ended or orphaned loop\n\
         /ralph:start --import        import a loop of the official ralph-loop plugin\n\
         /ralph:status                show the loops of this project\n\
         /ralph:stop [--all]          stop the loop of this session, or all your loops\n\
         /ralph:encourage TEXT        tell the agent what to do more of; without TEXT, list all guidance\n\
         /ralph:forbid TEXT           tell the agent what not to do; [--pin] [--for 2h] [--replace]\n\
         /ralph:scan                  show what limits the agent in this project\n\
         /ralph:config [KEY [VALUE]]  show the settings, or set one\n\
         /ralph:help                  show this text\n\nFlags of start:\n",
    );
    let settings = KEYS.iter().filter_map(|key| Some((key.flag?, key.kind.value_name(), key.help)));
    let presets = PRESETS.iter().map(|preset| (preset.name, "", preset.help));
    let switches = SWITCHES.iter().map(|&(name, help)| (name, "", help));
    for (name, value, help) in settings.chain(presets).chain(switches) {
        text.push_str(&format!("  {:<25} {}\n", format!("--{name} {value}"), capitalized(help)));
    }
    text.push_str(
        "\nEsc pauses the loop. `touch .claude/STOP_LOOP` stops every loop of the project.\n\
         Commands in a project's config (verify, notify) run only after `ralph trust` in a terminal.\n\
         In a terminal: `ralph --help`; `ralph init` creates a task list that must pass before a loop is complete.\n\n\
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

/// Returns a text with a capital first letter.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

//! What the user submits, before the agent reads it: a pasted command that the client takes for text, or a reply to the
//! question with which a loop ended. Nothing else concerns us.

use super::HookCall;
use super::expansion::{self, SlashResult};
use super::module;
use crate::claude::hook::answer::HookOutput;
use crate::cli::loops::answer;
use crate::cli::loops::slash::{self, SlashReply};
use crate::core::text::clean;
use crate::store::World;
use crate::store::user::{handoff, open_question};
use anyhow::Result;

/// From about here on, the client submits a pasted text that begins with a slash command as plain text.
const PASTED_LINES: usize = 4;
const PASTED_UNITS: usize = 700;
/// The names of the notes about the prompt whose command was run at this event. Each event looks for the note of the
/// other one.
pub const SUBMITTED: &str = "submitted";
pub const EXPANDED: &str = "expanded";
/// How the prompt begins by which the client itself continues after a usage limit has reset.
const CONTINUED_BY_CLIENT: &str = "Your claude.ai usage limit has reset.";
const MAX_QUESTION_CHARS: usize = 2_000;

/// Why a prompt may concern us.
pub enum PromptKind<'a> {
    /// A command that was pasted: its name and its text.
    Command(&'a str, &'a str),
    /// A message to a session that asked a question, after the reply that the user was asked about, if any.
    Reply { prompt: &'a str, earlier: String },
}

/// Returns why a prompt may concern us, and takes the mark of a session that asked. Every prompt of every session
/// comes here.
pub fn classify_prompt<'a>(world: &World, session: &str, prompt: &'a str) -> Option<PromptKind<'a>> {
    if world.run_id.is_some() {
        // The prompts of a runner's agent are ours.
        return None;
    }
    if let Some((name, text)) = pasted_command(prompt) {
        return Some(PromptKind::Command(name, text));
    }
    let earlier = is_reply(prompt).then(|| open_question::take(world, session)).flatten()?;
    Some(PromptKind::Reply { prompt, earlier })
}

/// Answers a prompt that concerns us.
pub fn submitted(call: &HookCall, concern: PromptKind) -> Result<HookOutput> {
    match concern {
        PromptKind::Command(name, text) => match slash::find(name) {
            Some(command) => run_pasted(call, command, text),
            // The client would send it to the agent, as a task.
            None => Ok(HookOutput::block(slash::unknown(name).to_string())),
        },
        PromptKind::Reply { prompt, earlier } if earlier.is_empty() => ask_about(call, prompt),
        PromptKind::Reply { prompt, earlier } if is_yes(prompt) => take_answer(call, &earlier),
        // It was asked about once.
        PromptKind::Reply { .. } => Ok(HookOutput::silent()),
    }
}

/// Returns whether the user says yes, and nothing else.
fn is_yes(prompt: &str) -> bool {
    let words = prompt.to_lowercase().replace(|c: char| !c.is_alphabetic(), " ");
    let words: Vec<&str> = words.split_whitespace().collect();
    matches!(
        words[..],
        ["yes" | "y" | "yep" | "yeah" | "ok" | "okay" | "sure" | "correct"]
            | ["yes", "please"]
            | ["take", "it"]
            | ["yes", "take", "it"]
    )
}

/// Returns whether a prompt is a reply. A command is not, and neither is what the client submits itself, in tags.
fn is_reply(prompt: &str) -> bool {
    let prompt = prompt.trim_start();
    !prompt.starts_with(['/', '<', '!', '#']) && !prompt.starts_with(CONTINUED_BY_CLIENT)
}

/// Returns whether the client may take a command of this length for text, if it is pasted whole.
fn is_pasted(prompt: &str) -> bool {
    prompt.trim().lines().count() >= PASTED_LINES || prompt.encode_utf16().count() > PASTED_UNITS
}

/// Returns the name and the text of a pasted command. The module's commands do the same as those of the plugin; other
/// names that begin with `/ralph-` are not ours.
fn pasted_command(prompt: &str) -> Option<(&str, &str)> {
    let command = prompt.trim_start().strip_prefix("/ralph").filter(|_| is_pasted(prompt))?;
    let (name, text) = command.split_at(command.find(char::is_whitespace).unwrap_or(command.len()));
    let of_module = || name.strip_prefix('-').filter(|name| module::COMMANDS.contains(name));
    Some((name.strip_prefix(':').or_else(of_module)?, text.trim()))
}

/// Runs a pasted command. If the client takes it for a command after all, it expands too, before or after this event;
/// the id of the prompt tells that.
fn run_pasted(call: &HookCall, command: &str, text: &str) -> Result<HookOutput> {
    if was_run(call, EXPANDED, text) {
        return Ok(HookOutput::silent());
    }
    if call.input.prompt_id.is_none() {
        return Ok(say_how_to_type(command));
    }
    let SlashResult { told, for_agent, failed } = expansion::run(call, command, text)?;
    let Some(for_agent) = for_agent else { return Ok(HookOutput::block(told)) };
    note_run(call, SUBMITTED, text);
    let context = expansion::in_context(call, for_agent);
    let note = if failed { "" } else { "\nRalph ran the pasted command." };
    let answer = HookOutput::message(format!("{told}{note}"));
    Ok(HookOutput { context: Some(("UserPromptSubmit", context)), ..answer })
}

/// Answers a pasted command of a client that gives prompts no id (before 2.1.196) and has not expanded it yet. It may
/// still do that, so the command is neither run here nor blocked.
fn say_how_to_type(command: &str) -> HookOutput {
    let how = format!("type `/ralph:{command} ` and paste the rest after it");
    let answer = HookOutput::message(format!(
        "Ralph: Claude Code may treat a long pasted command as text. If nothing ran: {how}."
    ));
    let context = format!(
        "Ralph: Claude Code may have treated the user's /ralph:{command} command as text. Unless Ralph says more about \
         it, the command did not run: do not act on it, but tell the user to {how}."
    );
    HookOutput { context: Some(("UserPromptSubmit", context)), ..answer }
}

/// Notes that the command of this prompt was run at this event.
pub fn note_run(call: &HookCall, event: &str, text: &str) {
    let _ = handoff::save(call.world, call.session, event, prompt_of(call, text));
}

/// Returns whether the command of this prompt was run at this event.
pub fn was_run(call: &HookCall, event: &str, text: &str) -> bool {
    handoff::take(call.world, call.session, event).as_deref() == Some(prompt_of(call, text))
}

/// Returns what tells this prompt from others: its id, or the text of its command if the client gives none.
fn prompt_of<'a>(call: &HookCall<'a>, text: &'a str) -> &'a str {
    call.input.prompt_id.as_deref().unwrap_or(text.trim())
}

/// Has the agent ask whether a reply is the answer to the question with which the loop of this session ended.
fn ask_about(call: &HookCall, reply: &str) -> Result<HookOutput> {
    let HookCall { world, project, session, .. } = *call;
    let Some(open) = answer::of_session(world, project, session)? else {
        let told = |other| {
            HookOutput::message(format!(
                "Ralph: the question of this session's loop is no longer open; {other}"
            ))
        };
        return Ok(answer::asked_by(world, project)?.map_or_else(HookOutput::silent, told));
    };
    if !open.answer.is_empty() {
        return Ok(HookOutput::silent());
    }
    open_question::record(world, session, reply)?;
    let asked = open.asked();
    let short = clean::excerpt(asked, 160);
    let asked: String = asked.chars().take(MAX_QUESTION_CHARS).collect();
    let answer = HookOutput::message(format!(
        "Ralph: the loop ended with \"{short}\". If this is the answer, reply yes or type /ralph:answer TEXT: that saves it \
         and resumes the loop."
    ));
    let context = format!(
        "Ralph: the loop of this session ended and waits for the user's answer to this (the agent's words):\n{asked}\n\n\
         The user's message may be the answer. If so, ask the user once: \"Take this as the answer?\", and say that a \
         plain yes, or /ralph:answer TEXT, saves it and resumes the loop. Do not save it yourself and do not work on \
         the loop's task until then. If the message is about something else, just reply to it."
    );
    Ok(HookOutput { context: Some(("UserPromptSubmit", context)), ..answer })
}

/// Saves the reply that the user was asked about, and resumes the loop.
fn take_answer(call: &HookCall, reply: &str) -> Result<HookOutput> {
    let HookCall { world, project, session, .. } = *call;
    match answer::in_session(world, project, session, reply, false, "session") {
        Ok(SlashReply { user, agent }) => {
            let context = agent.map(|agent| ("UserPromptSubmit", expansion::in_context(call, agent)));
            Ok(HookOutput { context, ..HookOutput::message(user) })
        }
        Err(failure) => Ok(HookOutput::block(failure.to_string())),
    }
}

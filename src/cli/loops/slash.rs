//! Slash commands: the commands of the command line, from free text that no shell has read.

use super::{answer, guidance, history, reset, scan, start, status, stop};
use crate::cli::invocation::stdin;
use crate::cli::setup::{config, pages};
use crate::cli::{Failure, Invocation, Project, World, help};
use crate::core::guidance::List;
use crate::core::guidance::finding::Severity;
use crate::core::request::StartRequest;
use crate::core::settings;
use crate::core::text::clean;
use crate::core::text::nearest::nearest;
use crate::store::user::handoff;
use crate::store::world;
use crate::view;
use crate::view::paint::Paint;
use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;

pub const COMMANDS: &[&str] = &[
    "start",
    "stop",
    "status",
    "encourage",
    "forbid",
    "answer",
    "config",
    "scan",
    "history",
    "reset",
    "help",
];

/// The flag with which `ralph-guidance` acts for a slash command.
pub const FLAG: &str = "slash";

/// Finds a slash command by its name.
pub fn find(name: &str) -> Option<&'static str> {
    COMMANDS.iter().copied().find(|command| *command == name)
}

/// What a command tells the user, and the agent if there is work for it.
#[derive(Clone, Debug)]
pub struct SlashReply {
    pub user: String,
    pub agent: Option<String>,
}

impl From<String> for SlashReply {
    fn from(user: String) -> Self {
        SlashReply { user, agent: None }
    }
}

/// Runs a slash command whose text is on stdin.
pub fn command(call: &Invocation) -> Result<String, Failure> {
    passed(call, named(call)?)
}

/// Runs a command whose text the agent passed: the command file allows it to do so, so nothing proves that the user typed it.
fn passed(call: &Invocation, command: &str) -> Result<String, Failure> {
    let text = stdin()?;
    let session = call.session().unwrap_or_default();
    let is_foreign = world::text("CLAUDE_CODE_SESSION_ID").is_some_and(|own| own != session);
    if is_foreign || handoff::was_served(&call.world, session) {
        return Err(Failure::refused(format!(
            "/ralph:{command} does not take text from the agent in this session"
        ))
        .hint(format!("ask the user to type /ralph:{command} in Claude Code")));
    }
    if let Some(key) = reserved(command, &text) {
        return Err(Failure::refused(format!("{key} cannot be set by text that the agent passed"))
            .hint("ask the user to set it in a terminal with `ralph start` or `ralph config`"));
    }
    let reply = run(&call.world, &call.project, session, command, text.trim_end_matches('\n'))?;
    Ok(reply.agent.map_or(reply.user.clone(), |agent| format!("{}\n\n{agent}", reply.user)))
}

/// Returns the setting in a command's text that only the user may change: what runs a command, allows a tool or sends
/// something, and how long a permission waits for the user.
fn reserved(command: &str, text: &str) -> Option<&'static str> {
    let is_reserved = |key: &&settings::SettingKey| {
        key.kind.is_executed() || ["permission.", "notify."].iter().any(|group| key.name.starts_with(group))
    };
    let key = |name: &str| settings::find(name).filter(is_reserved).map(|key| key.name);
    match command {
        "start" => StartRequest::from_text(text).ok()?.flags.keys().find_map(|name| key(name)),
        "config" => {
            let (name, value) = text.trim().split_once(char::is_whitespace)?;
            config::find(name).ok().filter(|_| !value.trim().is_empty()).and_then(|found| key(found.name))
        }
        _ => None,
    }
}

fn named(call: &Invocation) -> Result<&'static str, Failure> {
    let name = call.value("command").unwrap_or_default();
    find(name).ok_or_else(|| unknown(name))
}

/// Returns the failure of a name that no slash command has.
pub fn unknown(name: &str) -> Failure {
    let meant = nearest(name, COMMANDS.iter().copied()).map(|meant| format!("/ralph:{meant}"));
    let name = clean::excerpt(name, 60);
    Failure::usage(format!("no such slash command: {name}")).did_you_mean(meant.as_deref(), "see /ralph:help")
}

/// Runs a slash command. The client shows the answer in the conversation, so its length is bounded; a terminal shows all.
pub fn run(
    world: &World,
    project: &Project,
    session: &str,
    command: &str,
    text: &str,
) -> Result<SlashReply, Failure> {
    let reply = answered(world, project, session, command, text)?;
    Ok(SlashReply { user: clean::message(&reply.user), ..reply })
}

fn answered(
    world: &World,
    project: &Project,
    session: &str,
    command: &str,
    text: &str,
) -> Result<SlashReply, Failure> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match command {
        "start" => {
            let hint =
                "use /ralph:start TASK [--max-hours N] [--max-iterations N] …; see /ralph:help for all flags";
            let request =
                StartRequest::from_text(text).map_err(|wrong| Failure::from(wrong).or_hint(hint))?;
            start::start(world, project, session, &request, true)
        }
        "stop" => {
            let scope = scope(session, &words, "/ralph:stop [--all]")?;
            Ok(stop::stop(world, project, &scope, Some(session))?.into())
        }
        "reset" => {
            let scope = scope(session, &words, "/ralph:reset [--all]")?;
            Ok(reset::reset(world, project, &scope)?.into())
        }
        "status" => match words[..] {
            [] => Ok(status::in_session(world, project, session, false)?.into()),
            ["--all"] => Ok(status::in_session(world, project, session, true)?.into()),
            _ => Err(unexpected(&words, &["--all"], "/ralph:status [--all]")),
        },
        "answer" => {
            let (text, replace) = answer_from(text)?;
            answer::in_session(world, project, session, text, replace, "session")
        }
        "history" => {
            let request = history_from(&words)?;
            Ok(request.show(world, project, Paint::new(false))?.into())
        }
        "config" => {
            let key = words.first().copied();
            let value = text.trim().strip_prefix(key.unwrap_or_default()).map(str::trim);
            let value = value.filter(|value| !value.is_empty());
            let unset = value == Some("--unset");
            if let Some(flag) =
                value.filter(|value| value.starts_with("--") && !value.contains(' ') && !unset)
            {
                return Err(Failure::unknown_flag(
                    flag,
                    &["--unset"],
                    "use /ralph:config [KEY [VALUE|--unset]]",
                ));
            }
            let session = Some(session);
            let request = config::ConfigArgs { key, value, unset, session, ..Default::default() };
            Ok(config::run(world, project, request)?.into())
        }
        "encourage" | "forbid" => {
            let list = if command == "encourage" { List::Encouraged } else { List::Forbidden };
            let request = guidance::GuidanceCommand::from_text(list, text)?;
            Ok(guidance::run(world, project, Some(session), &request, false)?.into())
        }
        "scan" => {
            let least = severity_from(&words)?;
            let plain =
                |scan: &_, allowed_ids: &[String]| view::scan::human(scan, allowed_ids, Paint::new(false));
            Ok(scan::run(world, project, least, plain, false).0.into())
        }
        "help" => match words[..] {
            [] => Ok(help::text().into()),
            [name, ..] => Ok(help::of_slash(name.trim_start_matches("/ralph:"))?.into()),
        },
        _ => Err(unknown(command)),
    }
}

/// Returns which loops `stop` and `reset` are for.
fn scope(session: &str, words: &[&str], usage: &str) -> Result<stop::StopScope, Failure> {
    match words {
        [] => Ok(stop::StopScope::Session(session.to_owned())),
        ["--all"] => Ok(stop::StopScope::All),
        _ => Err(unexpected(words, &["--all"], usage)),
    }
}

/// Takes the flag of an answer, which comes before or after the text.
fn answer_from(text: &str) -> Result<(&str, bool), Failure> {
    let text = text.trim();
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match first {
        "--" => Ok((rest.trim(), false)),
        "--replace" => Ok((rest.trim(), true)),
        flag if flag.starts_with("--") => {
            Err(Failure::unknown_flag(flag, &["--replace"], "put -- before text that starts with a dash"))
        }
        _ => match text.strip_suffix("--replace").filter(|text| text.ends_with(char::is_whitespace)) {
            Some(text) => Ok((text.trim(), true)),
            None => Ok((text, false)),
        },
    }
}

fn severity_from(words: &[&str]) -> Result<Severity, Failure> {
    const LEVELS: [&str; 4] = ["low", "medium", "high", "critical"];
    const USAGE: &str = "/ralph:scan [--severity low|medium|high|critical]";
    let name = match words {
        [] => return Ok(Severity::Low),
        ["--severity", name] => Some(*name),
        [flag] => flag.strip_prefix("--severity="),
        _ => None,
    };
    let name = name.ok_or_else(|| unexpected(words, &["--severity"], USAGE))?;
    Severity::named(name).ok_or_else(|| {
        Failure::invalid_value("--severity", name).did_you_mean(nearest(name, LEVELS), format!("use {USAGE}"))
    })
}

fn history_from(words: &[&str]) -> Result<history::HistoryArgs, Failure> {
    let flags = ["--last", "--circuit", "--stalls"];
    let usage = "/ralph:history [--last N] [--circuit|--stalls]";
    let mut request = history::HistoryArgs::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("--circuit", "") if !request.stalls => request.circuit = true,
            ("--stalls", "") if !request.circuit => request.stalls = true,
            ("--last", value) => {
                let value = if value.is_empty() { rest.next().copied().unwrap_or_default() } else { value };
                let number = value.parse().ok().filter(|number| *number > 0);
                request.last =
                    Some(number.ok_or_else(|| {
                        Failure::invalid_value("--last", value).hint(format!("use {usage}"))
                    })?);
            }
            _ => return Err(unexpected(&[word], &flags, usage)),
        }
    }
    Ok(request)
}

/// Returns the failure of words that a command does not take; `known` is what it does take.
fn unexpected(words: &[&str], known: &[&'static str], usage: &str) -> Failure {
    // `--flag=value` is two words that may be mistyped.
    let parts = words.iter().flat_map(|word| word.split('=')).filter(|word| !known.contains(word));
    let meant = parts.into_iter().find_map(|word| nearest(word, known.iter().copied()));
    let flag = words.iter().find(|word| word.starts_with('-') && !known.contains(word));
    let what = match flag {
        Some(flag) => format!("unknown flag: {}", clean::excerpt(flag, 60)),
        None => format!("unexpected argument: '{}'", clean::excerpt(&words.join(" "), 60)),
    };
    Failure::usage(what).did_you_mean(meant, format!("use {usage}"))
}

/// Returns what the command file shows the agent: what the hook left for it or, if the client has no such hook, how to
/// pass the text to us without a shell reading it.
pub fn relay(call: &Invocation) -> Result<String, Failure> {
    let (command, session) = (named(call)?, call.session().unwrap_or_default());
    Ok(handed(call, command, pages::PROGRAMS[0], &format!("slash {command} --session {session}")))
}

/// Does the same for the command files that call `ralph-guidance`; with `-` it takes the text that the agent passes.
pub fn guidance(call: &Invocation) -> Result<String, Failure> {
    let (command, session) = (call.command, call.session().unwrap_or_default());
    if call.words("text") == ["-"] {
        return passed(call, command);
    }
    Ok(handed(call, command, pages::PROGRAMS[1], &format!("{command} --{FLAG} --session {session} -")))
}

fn handed(call: &Invocation, command: &str, program: &str, arguments: &str) -> String {
    let session = call.session().unwrap_or_default();
    if let Some(text) = handoff::take(&call.world, session, command) {
        handoff::note_served(&call.world, session);
        return text;
    }
    if handoff::was_served(&call.world, session) {
        return format!("Ralph did not get the command's text. Ask the user to type /ralph:{command} again.");
    }
    let beside = |path: PathBuf| path.with_file_name(format!("{program}{EXE_SUFFIX}")).display().to_string();
    let program = std::env::current_exe().map_or_else(|_| program.to_owned(), beside);
    let marker = format!("RALPH_{:016X}", world::unique() as u64);
    format!(
        "Claude Code did not pass the command's text to Ralph. Pass it yourself: run exactly this with the Bash tool, \
         with the text after ARGUMENTS below inserted unchanged between the two markers (or nothing, if there is \
         none):\n\n\
         \"{program}\" {arguments} <<'{marker}'\n{marker}\n\n\
         Then show the user the output. If it gives you a task, do it."
    )
}

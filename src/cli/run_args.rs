//! The arguments of `ralph run`: what may be typed, and what it means.

use super::command_line::flag;
use super::failure::Failure;
use super::program::{stdin, text};
use super::{help, run};
use crate::core::request::{SWITCHES, StartRequest};
use crate::core::settings::{self, KEYS, Kind, RUN_FLAGS};
use crate::run::agent::{Agent, Claude};
use crate::run::screen::Style;
use crate::run::target::Target;
use crate::run::{Context, OnLimit};
use crate::store::task_source::Asked;
use crate::view::paint;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Flags that `run` shares with `start`: those of settings that mean the same there.
fn shared_flags() -> impl Iterator<Item = &'static settings::Key> {
    let own = |flag: &str| RUN_FLAGS.iter().any(|(name, ..)| *name == flag);
    KEYS.iter().filter(move |key| key.flag.is_some_and(|flag| !own(flag) && flag != "gap-threshold"))
}

const RUN_SWITCHES: [&str; 3] = ["reset", "ignore-open-questions", "skip-constraint-scan"];

pub fn asked(matches: &ArgMatches) -> Result<run::Asked, Failure> {
    let mut start = StartRequest::default();
    for flag in shared_flags().filter_map(|key| key.flag) {
        for value in matches.get_many::<String>(flag).unwrap_or_default() {
            start.set(flag, Some(value)).map_err(Failure::usage)?;
        }
    }
    for (flag, name, ..) in RUN_FLAGS {
        if let (Some(value), Some(key)) = (matches.get_one::<String>(flag), settings::find(name)) {
            let value = key
                .read(&value.as_str().into())
                .map_err(|wrong| Failure::usage(format!("--{flag}: {wrong}")))?;
            start.flags.insert(name.to_owned(), value);
        }
    }
    for switch in RUN_SWITCHES.into_iter().filter(|switch| matches.get_flag(switch)) {
        start.set(switch, None).map_err(Failure::usage)?;
    }
    let words: Vec<&str> =
        matches.get_many::<String>("prompt").unwrap_or_default().map(String::as_str).collect();
    start.task = if words == ["-"] { stdin()? } else { words.join(" ") };
    if !words.is_empty() && start.task.trim().is_empty() {
        let what = if words == ["-"] { "the prompt on stdin" } else { "the prompt" };
        return Err(Failure::usage(format!("{what} is empty")));
    }
    let own = |name: &str| matches.get_one::<String>(name).cloned();
    let agent = match own("agent-command") {
        Some(line) => Agent::Command(line),
        None => Agent::Claude(Claude {
            program: own("claude").unwrap_or_else(|| "claude".into()),
            model: own("model"),
            permission_mode: own("permission-mode"),
            allowed_tools: matches.get_many::<String>("allowed-tools").unwrap_or_default().cloned().collect(),
            extra: matches.get_many::<String>("claude-arg").unwrap_or_default().cloned().collect(),
        }),
    };
    let about_it = [
        "agent-command",
        "claude",
        "model",
        "permission-mode",
        "allowed-tools",
        "claude-arg",
        "container",
        "sandbox",
    ];
    let chosen = about_it.iter().any(|name| matches.contains_id(name));
    let target = match (own("container"), own("sandbox")) {
        (Some(name), _) => Target::Container { name, workdir: own("workdir") },
        (_, Some(name)) => Target::Sandbox { name },
        _ => Target::Local,
    };
    Ok(run::Asked {
        start,
        file: own("file").map(Into::into),
        agent,
        target,
        chosen,
        context: if text(matches, "context") == "continue" { Context::Continue } else { Context::Fresh },
        on_limit: if text(matches, "on-limit") == "stop" { OnLimit::Stop } else { OnLimit::Wait },
        skip_review: matches.get_flag("skip-review"),
        tasks: match own("tasks") {
            Some(file) => Asked::File(file.into()),
            None if matches.get_flag("no-tasks") => Asked::None,
            None => Asked::Usual,
        },
        style: Style::chosen(matches.get_flag("quiet"), matches.get_flag("json")),
        colour: paint::wanted(),
    })
}

pub fn command() -> Command {
    let value = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).allow_hyphen_values(true)
    };
    let mut run = Command::new("run")
        .about("Run the loop from outside: the agent program again and again until the task is done")
        .after_help(
            "Exit codes: 0 complete, 1 a limit was reached, 2 BLOCKED, 3 DECIDE, 4 stuck or tripped, 5 usage limit,\n\
             64 wrong usage, 69 agent program not found, 70 error, 130 interrupted or stopped. A run that is refused\n\
             exits with 4 for a tripped breaker, 3 for an open question, 1 at its limit, else 70.",
        )
        .arg(
            Arg::new("prompt")
                .value_name("PROMPT")
                .num_args(0..)
                .help("what the agent is to do; - reads it from stdin; without it, ralph/prompt.md"),
        )
        .arg(value("file", "FILE", "read the prompt from this file").short('f').conflicts_with("prompt"));
    for (flag, _, name, help) in RUN_FLAGS {
        run = run.arg(value(flag, name, help));
    }
    for key in shared_flags() {
        let flag = key.flag.unwrap_or_default();
        let mut arg = value(flag, help::value_name(flag), key.help);
        if key.kind == Kind::Commands {
            arg = arg.action(ArgAction::Append);
        }
        run = run.arg(arg);
    }
    run = run.args(
        SWITCHES.iter().filter(|(name, _)| RUN_SWITCHES.contains(name)).map(|&(name, help)| flag(name, help)),
    );
    run.arg(value("claude", "PATH", "the Claude Code program [default: claude]"))
        .arg(value("model", "MODEL", "passed to Claude Code"))
        .arg(value("permission-mode", "MODE", "passed to Claude Code"))
        .arg(
            value("allowed-tools", "TOOL", "passed to Claude Code; may be repeated")
                .action(ArgAction::Append),
        )
        .arg(
            value("claude-arg", "ARG", "passed to Claude Code as it is; may be repeated")
                .action(ArgAction::Append),
        )
        .arg(
            value(
                "agent-command",
                "CMD",
                "another agent: a command that reads the prompt on stdin and prints text",
            )
            .conflicts_with_all([
                "claude",
                "model",
                "permission-mode",
                "allowed-tools",
                "claude-arg",
            ]),
        )
        .arg(
            value("context", "HOW", "begin each iteration fresh, or continue the run's own conversation")
                .value_parser(["fresh", "continue"])
                .default_value("fresh"),
        )
        .arg(
            value("on-limit", "HOW", "at the plan's usage limit: wait until it resets, or stop")
                .value_parser(["wait", "stop"])
                .default_value("wait"),
        )
        .arg(value("container", "NAME", "run the agent in this running container").conflicts_with("sandbox"))
        .arg(value("workdir", "DIR", "the project's folder in the container").requires("container"))
        // A sandbox has an agent of its own, and takes arguments for it but no program.
        .arg(
            value("sandbox", "NAME", "run the sandbox's own Claude Code by `docker sandbox run`")
                .conflicts_with_all(["agent-command", "claude"]),
        )
        .arg(
            value(
                "tasks",
                "FILE",
                "the tasks: a prd.json or a Markdown checklist [default: ralph/tasks.json]",
            )
            .conflicts_with("no-tasks"),
        )
        .arg(flag("no-tasks", "run without a task list, whatever is there"))
        .arg(flag("skip-review", "no review iterations: a story that passes is done"))
        .arg(flag("quiet", "say only how it ended"))
        .arg(flag("json", "events, one JSON object a line").conflicts_with("quiet"))
}

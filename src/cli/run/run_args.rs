//! The arguments of `ralph run`.

use crate::cli::command_line::flag;
use crate::cli::failure::Failure;
use crate::cli::program::{stdin, text};
use crate::core::outcome::Exit;
use crate::core::request::{SWITCHES, StartRequest};
use crate::core::settings::{self, KEYS, Kind};
use crate::run::agent::{Agent, Claude, ShellCommand};
use crate::run::screen::Style;
use crate::run::target::Target;
use crate::run::{Context, OnLimit};
use crate::store::tasks::source::Selection;
use crate::view::paint;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::path::PathBuf;

/// Flags that `run` shares with `start`: those of settings that mean the same there.
fn shared_flags() -> impl Iterator<Item = &'static settings::Key> {
    let own = |flag: &str| KEYS.iter().any(|key| key.run_flag == Some(flag));
    KEYS.iter().filter(move |key| key.flag.is_some_and(|flag| !own(flag) && flag != "gap-threshold"))
}

const RUN_SWITCHES: [&str; 3] = ["reset", "ignore-open-questions", "skip-constraint-scan"];

/// Flags of the Claude Code agent; those that end in "may be repeated" take several values.
const CLAUDE_FLAGS: [(&str, &str, &str); 5] = [
    ("claude", "PATH", "the program of Claude Code [default: claude]"),
    ("model", "MODEL", "passed to Claude Code"),
    ("permission-mode", "MODE", "passed to Claude Code"),
    ("allowed-tools", "TOOL", "passed to Claude Code; may be repeated"),
    ("claude-arg", "ARG", "passed to Claude Code unchanged; may be repeated"),
];

/// Flags of Clawker's `ralph run`, and what to use instead.
const CLAWKER_FLAGS: [(&str, &str); 3] = [
    ("--max-loops", "use --max-iterations N"),
    ("--prompt", "give the prompt without a flag: ralph run \"TEXT\", or -f FILE"),
    ("--skip-permissions", "use --permission-mode bypassPermissions, or --allowed-tools TOOL for some tools"),
];

/// Returns the hint for a flag that is not ours, if it is known what it means elsewhere.
pub fn foreign_flag(flag: &str) -> Option<Failure> {
    let (name, hint) = CLAWKER_FLAGS.into_iter().find(|(name, _)| *name == flag)?;
    Some(Failure::usage(format!("unexpected argument: {name}")).hint(hint))
}

/// `ralph run` as it was typed.
pub struct RunArgs {
    /// Settings and switches that it shares with `start`; the task is the prompt.
    pub start: StartRequest,
    pub file: Option<PathBuf>,
    pub agent: Agent,
    pub target: Target,
    /// A flag about the agent or target was given; otherwise a continued run keeps its own.
    pub names_agent: bool,
    pub context: Context,
    pub on_limit: OnLimit,
    pub skip_review: bool,
    pub tasks: Selection,
    pub style: Style,
    pub colour: bool,
}

pub fn parse(matches: &ArgMatches) -> Result<RunArgs, Failure> {
    let mut start = StartRequest::default();
    for flag in shared_flags().filter_map(|key| key.flag) {
        for value in matches.get_many::<String>(flag).unwrap_or_default() {
            start.set(flag, Some(value)).map_err(Failure::usage)?;
        }
    }
    for (flag, key) in KEYS.iter().filter_map(|key| Some((key.run_flag?, key))) {
        if let Some(value) = matches.get_one::<String>(flag) {
            let value = key
                .read(&value.as_str().into())
                .map_err(|wrong| Failure::usage(format!("--{flag}: {wrong}")))?;
            start.flags.insert(key.name.to_owned(), value);
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
        Some(line) => Agent::Command(ShellCommand(line)),
        None => Agent::Claude(Claude {
            program: own("claude").unwrap_or_else(|| "claude".into()),
            model: own("model"),
            permission_mode: own("permission-mode"),
            allowed_tools: matches.get_many::<String>("allowed-tools").unwrap_or_default().cloned().collect(),
            extra: matches.get_many::<String>("claude-arg").unwrap_or_default().cloned().collect(),
        }),
    };
    let about_agent =
        CLAUDE_FLAGS.iter().map(|(name, ..)| *name).chain(["agent-command", "container", "sandbox"]);
    let names_agent = about_agent.into_iter().any(|name| matches.contains_id(name));
    let target = match (own("container"), own("sandbox")) {
        (Some(name), _) => Target::Container { name, workdir: own("workdir") },
        (_, Some(name)) => Target::Sandbox { name },
        _ => Target::Local,
    };
    Ok(RunArgs {
        start,
        file: own("file").map(Into::into),
        agent,
        target,
        names_agent,
        context: if text(matches, "context") == "continue" { Context::Continue } else { Context::Fresh },
        on_limit: if text(matches, "on-limit") == "stop" { OnLimit::Stop } else { OnLimit::Wait },
        skip_review: matches.get_flag("skip-review"),
        tasks: match own("tasks") {
            Some(file) => Selection::File(file.into()),
            None if matches.get_flag("no-tasks") => Selection::None,
            None => Selection::Default,
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
        .about("Run the agent in a loop, one fresh process per iteration")
        .after_help(Exit::help())
        .arg(
            Arg::new("prompt")
                .value_name("PROMPT")
                .num_args(0..)
                .help("the task for the agent; - reads it from stdin [default: ralph/prompt.md]"),
        )
        .arg(value("file", "FILE", "read the prompt from this file").short('f').conflicts_with("prompt"));
    for (flag, key) in KEYS.iter().filter_map(|key| Some((key.run_flag?, key))) {
        run = run.arg(value(flag, key.kind.value_name(), "").help(key.help_with_default()));
    }
    for key in shared_flags() {
        let flag = key.flag.unwrap_or_default();
        let mut arg = value(flag, key.kind.value_name(), key.help);
        if key.kind == Kind::Commands {
            arg = arg.action(ArgAction::Append);
        }
        run = run.arg(arg);
    }
    run = run.args(
        SWITCHES.iter().filter(|(name, _)| RUN_SWITCHES.contains(name)).map(|&(name, help)| flag(name, help)),
    );
    for (name, placeholder, help) in CLAUDE_FLAGS {
        let action = if help.ends_with("repeated") { ArgAction::Append } else { ArgAction::Set };
        run = run.arg(value(name, placeholder, help).action(action));
    }
    let agent_command = "another agent: a command that reads the prompt on stdin and prints text";
    let context = "begin each iteration fresh, or continue the run's own conversation";
    let on_limit = "at the usage limit: wait until it resets, or stop";
    let sandbox = "run the sandbox's own Claude Code with `docker sandbox run`";
    let tasks = "the tasks: a prd.json or a Markdown checklist [default: ralph/tasks.json]";
    run.args([
        value("agent-command", "CMD", agent_command).conflicts_with_all(CLAUDE_FLAGS.map(|(name, ..)| name)),
        value("context", "HOW", context).value_parser(["fresh", "continue"]).default_value("fresh"),
        value("on-limit", "HOW", on_limit).value_parser(["wait", "stop"]).default_value("wait"),
        value("container", "NAME", "run the agent in this running container").conflicts_with("sandbox"),
        value("workdir", "DIR", "the project's folder in the container").requires("container"),
        // A sandbox has an agent of its own, and takes arguments for it but no program.
        value("sandbox", "NAME", sandbox).conflicts_with_all(["agent-command", "claude"]),
        value("tasks", "FILE", tasks).conflicts_with("no-tasks"),
        flag("no-tasks", "run without a task list, even if there is one"),
        flag("skip-review", "no review iterations: a story that passes is done"),
        flag("quiet", "print only how it ended"),
        flag("json", "print events, one JSON object a line").conflicts_with("quiet"),
    ])
}

//! The arguments of `ralph run`.

use crate::cli::command_line::{self, flag, setting, words};
use crate::cli::{Failure, Invocation};
use crate::core::outcome::Exit;
use crate::core::request::{SWITCHES, StartRequest};
use crate::core::settings::{KEYS, SettingKey};
use crate::run::Context;
use crate::run::agent::{Agent, Claude, ShellCommand};
use crate::run::process::target::Target;
use crate::run::saved::RunOptions;
use crate::run::screen::Style;
use crate::store::tasks::source::Selection;
use crate::view::paint;
use clap::{ArgAction, Command};
use std::path::PathBuf;

/// Returns the flags of settings that only `run` has, or that mean something else for `start`.
fn own_flags() -> impl Iterator<Item = (&'static str, &'static SettingKey)> {
    KEYS.iter().filter_map(|key| Some((key.run_flag?, key)))
}

/// Returns the flags of settings that `run` shares with `start`.
fn shared_flags() -> impl Iterator<Item = (&'static str, &'static SettingKey)> {
    let is_own = |name: &str| own_flags().any(|(flag, _)| flag == name);
    let all = KEYS.iter().filter_map(|key| Some((key.flag?, key)));
    all.filter(move |(flag, _)| !is_own(flag) && *flag != "gap-threshold")
}

const RUN_SWITCHES: [&str; 3] = ["reset", "ignore-open-questions", "skip-constraint-scan"];

/// Flags of the Claude Code agent; those that end in "may be repeated" take several values.
const CLAUDE_FLAGS: [(&str, &str, &str); 5] = [
    ("claude", "PATH", "the Claude Code program [default: claude]"),
    ("model", "MODEL", "passed to Claude Code"),
    ("permission-mode", "MODE", "permission mode of Claude Code: acceptEdits allows edits without asking"),
    ("allowed-tools", "TOOL", "a tool Claude Code may use without asking, such as Bash; may be repeated"),
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
    Some(Failure::usage(format!("unknown flag: {name}")).hint(hint))
}

/// `ralph run` as it was typed.
pub struct RunArgs {
    /// Settings and switches that it shares with `start`; the task is the prompt.
    pub start: StartRequest,
    pub file: Option<PathBuf>,
    /// Begin a new run, even if there is one to continue.
    pub new: bool,
    agent_command: Option<String>,
    /// What was given for Claude Code; the program is empty if it was not.
    claude: Claude,
    target: Option<Target>,
    context: Option<Context>,
    skip_review: bool,
    pub tasks: Selection,
    pub style: Style,
    pub colour: bool,
}

impl RunArgs {
    /// Returns how the run works: as given now, else as the continued run did, else by default.
    pub fn options(&self, continued: Option<&RunOptions>) -> RunOptions {
        let agent = continued.map(|options| options.agent.clone());
        let Claude { program, model, permission_mode, allowed_tools, extra } = self.claude.clone();
        let is_given = self.claude != Claude::default();
        let agent = match (&self.agent_command, agent) {
            (Some(line), _) => Agent::Command(ShellCommand(line.clone())),
            (None, Some(Agent::Command(command))) if !is_given => Agent::Command(command),
            (None, agent) => {
                let own = if let Some(Agent::Claude(own)) = agent { own } else { Claude::default() };
                let or = |given: Vec<String>, own| if given.is_empty() { own } else { given };
                let named = |program: &String| !program.is_empty();
                Agent::Claude(Claude {
                    program: [program, own.program]
                        .into_iter()
                        .find(named)
                        .unwrap_or_else(|| "claude".into()),
                    model: model.or(own.model),
                    permission_mode: permission_mode.or(own.permission_mode),
                    allowed_tools: or(allowed_tools, own.allowed_tools),
                    extra: or(extra, own.extra),
                })
            }
        };
        let target = self.target.clone().or(continued.map(|options| options.target.clone()));
        let context = self.context.or(continued.map(|options| options.context));
        RunOptions {
            agent,
            target: target.unwrap_or_default(),
            context: context.unwrap_or_default(),
            skip_review: self.skip_review || continued.is_some_and(|options| options.skip_review),
            prompt_file: self.file.clone().or(continued.and_then(|options| options.prompt_file.clone())),
        }
    }
}

pub fn parse(call: &Invocation) -> Result<RunArgs, Failure> {
    let mut start = call.start_request(shared_flags().map(|(flag, _)| flag), RUN_SWITCHES.into_iter())?;
    for (flag, key) in own_flags() {
        if let Some(value) = call.value(flag) {
            let value =
                key.read(&value.into()).map_err(|wrong| Failure::usage(format!("--{flag}: {wrong}")))?;
            start.flags.insert(key.name.to_owned(), value);
        }
    }
    start.task = call.text_or_stdin("prompt")?;
    let words = call.words("prompt");
    if !words.is_empty() && start.task.trim().is_empty() {
        let what = if words == ["-"] { "the prompt on stdin" } else { "the prompt" };
        return Err(Failure::usage(format!("{what} is empty")));
    }
    let own = |name: &str| call.value(name).map(str::to_owned);
    let claude = Claude {
        program: own("claude").unwrap_or_default(),
        model: own("model"),
        permission_mode: own("permission-mode"),
        allowed_tools: call.words("allowed-tools"),
        extra: call.words("claude-arg"),
    };
    let target = match (own("container"), own("sandbox")) {
        (Some(name), _) => Some(Target::Container { name, workdir: own("workdir") }),
        (_, Some(name)) => Some(Target::Sandbox { name }),
        _ => None,
    };
    Ok(RunArgs {
        start,
        file: own("file").map(Into::into),
        new: call.flag("new"),
        agent_command: own("agent-command"),
        claude,
        target,
        context: own("context").map(|how| if how == "fresh" { Context::Fresh } else { Context::Continue }),
        skip_review: call.flag("skip-review"),
        tasks: match own("tasks") {
            Some(file) => Selection::File(file.into()),
            None if call.flag("no-tasks") => Selection::None,
            None => Selection::Default,
        },
        style: Style::chosen(call.flag("quiet"), call.flag("json")),
        colour: paint::wanted(),
    })
}

pub fn command() -> Command {
    let value =
        |name, placeholder, help| command_line::value(name, placeholder, help).allow_hyphen_values(true);
    let claude_flag = |(name, placeholder, help): (_, _, &'static str)| {
        let action = if help.ends_with("repeated") { ArgAction::Append } else { ArgAction::Set };
        value(name, placeholder, help).action(action)
    };
    let prompt = "the task for the agent; - reads it from stdin [default: continue the last unfinished run, else \
                  ralph/prompt.md]";
    let switches = SWITCHES.into_iter().filter(|(name, _)| RUN_SWITCHES.contains(name));
    let run = Command::new("run")
        .about("Run the agent in a loop, one fresh process per iteration")
        .after_help(Exit::help())
        .arg(words("prompt", "PROMPT", prompt))
        .arg(value("file", "FILE", "read the prompt from this file").short('f').conflicts_with("prompt"))
        .args(own_flags().map(|(flag, key)| setting(flag, key).help(key.help_with_default())))
        .args(shared_flags().map(|(flag, key)| setting(flag, key)))
        .args(switches.map(|(name, help)| flag(name, help)))
        .args(CLAUDE_FLAGS.map(claude_flag));
    let agent_command = "another agent: a command that reads the prompt on stdin and prints text";
    let context = "begin each iteration fresh, or continue the run's own conversation [default: fresh]";
    let sandbox = "run Claude Code in this Docker sandbox (`docker sandbox run`)";
    let tasks = "task list: a prd.json or a Markdown checklist [default: ralph/tasks.json]";
    run.args([
        value("agent-command", "CMD", agent_command).conflicts_with_all(CLAUDE_FLAGS.map(|(name, ..)| name)),
        value("context", "HOW", context).value_parser(["fresh", "continue"]),
        value("container", "NAME", "run the agent in this running container").conflicts_with("sandbox"),
        value("workdir", "DIR", "the project's folder in the container").requires("container"),
        // A sandbox has an agent of its own, and takes arguments for it but no program.
        value("sandbox", "NAME", sandbox).conflicts_with_all(["agent-command", "claude"]),
        value("tasks", "FILE", tasks).conflicts_with("no-tasks"),
        flag("new", "begin a new run, even if the last one is unfinished"),
        flag("no-tasks", "run without a task list, even if there is one"),
        flag("skip-review", "skip review iterations: a story is done when it passes"),
        flag("quiet", "print only the result"),
        flag("json", "print events, one JSON object per line").conflicts_with("quiet"),
    ])
}

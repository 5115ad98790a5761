//! `ralph module`: what the module in Claude Code (`hooks/register.js`) calls. It gets one event as JSON on stdin and
//! prints one answer, which the module carries out.
//!
//! Like a hook it fails open: whatever goes wrong, it exits 0, and the module does nothing.

use super::{expansion, news};
use crate::claude::hook::module::{self, ModuleEvent, ModuleInput};
use crate::claude::settings::settings_file::{SettingsFile, StatusLine};
use crate::claude::settings::statusline as line_settings;
use crate::claude::transcript;
use crate::cli::loops::slash;
use crate::cli::setup::statusline;
use crate::core::record::{ArmedLoop, LoopState, WaitingFor, is_default};
use crate::core::text::clean;
use crate::store::user::armed;
use crate::store::{Project, World, state};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The commands that the module registers, as `/ralph-stop` and so on.
pub const COMMANDS: [&str; 5] = ["stop", "forbid", "encourage", "status", "answer"];

/// What the module does, in this order.
#[derive(Debug, Default, PartialEq, Serialize)]
struct ModuleOutput {
    /// The file that is there while this session has a loop. Without it the module asks nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    watch: Option<PathBuf>,
    /// The file that changes whenever there is something to show or to tell the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<PathBuf>,
    /// Whether to pin the line: not if the user has it as the status line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<bool>,
    /// The line to pin under the prompt; null removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Option<String>>,
    /// A line for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    /// Whether to compact the context now, between two turns.
    #[serde(skip_serializing_if = "is_default")]
    compact: bool,
    /// What the agent reads in the running turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    append: Option<String>,
    /// A prompt that starts a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    submit: Option<String>,
    /// What a command prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    if let Some(answer) = super::read_stdin().ok().and_then(|bytes| answer(&bytes))
        && let Ok(text) = serde_json::to_string(&answer)
    {
        let _ = std::io::stdout().lock().write_all(format!("{text}\n").as_bytes());
    }
    ExitCode::SUCCESS
}

/// One event, with its project.
struct ModuleCall<'a> {
    world: &'a World,
    project: &'a Project,
    input: &'a ModuleInput,
}

fn answer(bytes: &[u8]) -> Option<ModuleOutput> {
    let input = module::parse(bytes).filter(|input| state::usable_session_id(&input.session_id))?;
    let world = World::for_hook().ok()?;
    // A runner steers its agent by prompts.
    if world.run_id.is_some() {
        return None;
    }
    let project = Project::find(&world, None);
    let call = ModuleCall { world: &world, project: &project, input: &input };
    let answer = match &input.event {
        ModuleEvent::Session => {
            ModuleOutput { pin: Some(!has_status_line(&world)), ..ModuleOutput::default() }
        }
        ModuleEvent::Refresh => {
            ModuleOutput { append: call.news(), compact: call.waits_for_compaction(), ..call.with_line() }
        }
        ModuleEvent::Aborted { last } => aborted(&call, last),
        ModuleEvent::Command { name, text } => command(&call, name, text),
    };
    let watch = armed::record_path(&world, &project, &input.session_id).ok();
    Some(ModuleOutput { watch, state: Some(project.state()), ..answer })
}

impl ModuleCall<'_> {
    /// Returns the guidance that is new for the agent, if a turn is running.
    fn news(&self) -> Option<String> {
        let ModuleInput { session_id, running, .. } = self.input;
        let news = running.then(|| news::take(self.world, self.project, session_id).ok().flatten()).flatten();
        news.map(|text| clean::block(&text))
    }

    /// Returns whether the agent has written its handover, and the loop waits for the context that reads it.
    fn waits_for_compaction(&self) -> bool {
        let ModuleCall { world, project, input } = *self;
        let run = || -> Option<ArmedLoop> {
            let document = state::peek(project).ok()??;
            armed::load_armed(world, project, &input.session_id, &document).ok()?
        };
        let waits = |run: &ArmedLoop| {
            let waiting = run.session.waiting.as_ref().map(|waiting| &waiting.what);
            waiting == Some(&WaitingFor::Compaction) && run.session.handover.is_some()
        };
        !input.running && run().filter(|run| run.state == LoopState::Running).is_some_and(|run| waits(&run))
    }

    /// Returns the line to pin: that of the status line, from the same figures.
    fn with_line(&self) -> ModuleOutput {
        let folder = self.world.launch_dir.as_ref().unwrap_or(&self.world.working_dir);
        let mut fields = self.input.figures.clone();
        fields.insert("session_id".into(), json!(self.input.session_id));
        fields.insert("module".into(), json!(true));
        fields.insert("workspace".into(), json!({"project_dir": folder}));
        let line = statusline::line(Value::Object(fields).to_string().as_bytes());
        ModuleOutput { status: Some(line), ..ModuleOutput::default() }
    }
}

/// Returns whether the user's settings have our status line already.
fn has_status_line(world: &World) -> bool {
    let program = std::env::current_exe().unwrap_or_default();
    let command = line_settings::command(&program);
    SettingsFile::read(world)
        .is_ok_and(|settings| matches!(settings.status_line(&command), StatusLine::Ours { .. }))
}

/// Pauses the loop at Esc. A turn that the user cuts short to run a queued command ends in the same way, but without the
/// client's note of an interruption, and the loop continues.
fn aborted(call: &ModuleCall, last: &str) -> ModuleOutput {
    let ModuleCall { world, project, input } = *call;
    let is_looping = || armed::exists(world, project, &input.session_id).unwrap_or(false);
    let told = if transcript::is_interruption(last) && is_looping() {
        expansion::pause_if_interrupted(world, project, &input.session_id, |_| Some(world.now)).ok().flatten()
    } else {
        None
    };
    ModuleOutput { log: told, ..call.with_line() }
}

/// Runs a command at once.
fn command(call: &ModuleCall, name: &str, text: &str) -> ModuleOutput {
    let ModuleCall { world, project, input } = *call;
    let Some(name) = COMMANDS.into_iter().find(|command| *command == name) else {
        return ModuleOutput::default();
    };
    let (told, agent) = match slash::run(world, project, &input.session_id, name, text.trim()) {
        Ok(reply) if name == "stop" && input.running => {
            (reply.user + "\nThe current turn continues to its end; Esc interrupts it.", reply.agent)
        }
        Ok(reply) => (reply.user, reply.agent),
        Err(failure) => (clean::message(&failure.to_string()), None),
    };
    let agent = agent.map(|text| clean::block(&text));
    let (append, submit) = if input.running { (agent, None) } else { (None, agent) };
    ModuleOutput { append: append.or_else(|| call.news()), submit, text: Some(told), ..call.with_line() }
}

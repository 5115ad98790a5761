//! What a session without a loop pays for each hook beside Stop.

use super::{Expected, HOOK, Limits, Outcome, PROMPT, RALPH, SESSION, Scenario, Transcript, World, said};
use crate::shared::shipped;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static SESSION_HOOK: LazyLock<PathBuf> = LazyLock::new(|| shipped("ralph-session-start-hook"));

/// One event, with the program that `hooks/*.json` names for it.
pub struct Event {
    pub name: &'static str,
    event: &'static str,
    program: &'static LazyLock<PathBuf>,
    args: &'static [&'static str],
    limits: Limits,
    /// The fields beside those that every event has.
    fields: fn() -> Value,
}

/// A start of a program and a look for the loop, with room for a newer toolchain.
const NO_LOOP: Limits = Limits { instructions: 700_000, ratio: 2.0 };
/// `ralph` is the largest of the programs.
const WAKE: Limits = Limits { instructions: 1_500_000, ratio: 2.5 };

pub static EVENTS: [Event; 7] = [
    Event {
        name: "no loop, UserPromptSubmit",
        event: "UserPromptSubmit",
        program: &SESSION_HOOK,
        args: &[],
        limits: NO_LOOP,
        fields: || json!({"prompt_id": PROMPT, "prompt": "Why does the parser reject an empty list?"}),
    },
    Event {
        name: "no loop, PermissionRequest",
        event: "PermissionRequest",
        program: &HOOK,
        args: &[],
        limits: NO_LOOP,
        fields: || json!({"prompt_id": PROMPT, "tool_name": "Bash", "tool_input": {"command": "cargo test"}}),
    },
    Event {
        name: "no loop, PostToolBatch",
        event: "PostToolBatch",
        program: &HOOK,
        args: &[],
        limits: NO_LOOP,
        fields: || json!({"prompt_id": PROMPT, "tool_calls": [{"tool_name": "Read", "tool_use_id": "t1", "tool_input": {"file_path": "/a"}, "tool_response": "text"}]}),
    },
    Event {
        name: "no loop, StopFailure",
        event: "StopFailure",
        program: &HOOK,
        args: &[],
        limits: NO_LOOP,
        fields: || json!({"error": "server_error", "last_assistant_message": said(0)}),
    },
    Event {
        name: "no loop, `ralph wake` on StopFailure",
        event: "StopFailure",
        program: &RALPH,
        args: &["wake"],
        limits: WAKE,
        fields: || json!({"error": "server_error", "last_assistant_message": said(0)}),
    },
    Event {
        name: "no loop, `ralph wake` on Stop",
        event: "Stop",
        program: &RALPH,
        args: &["wake"],
        limits: WAKE,
        fields: || json!({"prompt_id": PROMPT, "stop_hook_active": false, "last_assistant_message": said(0)}),
    },
    Event {
        name: "no loop, SessionStart",
        event: "SessionStart",
        program: &SESSION_HOOK,
        args: &[],
        limits: NO_LOOP,
        fields: || json!({"source": "startup", "model": "claude-opus-4-6"}),
    },
];

impl Event {
    pub fn scenario(&self, world: World, transcript: Transcript) -> Outcome<Scenario> {
        let mut input = (self.fields)();
        input["session_id"] = SESSION.into();
        input["transcript_path"] = path(&transcript.path);
        input["cwd"] = path(&world.project());
        input["permission_mode"] = "default".into();
        input["hook_event_name"] = self.event.into();
        let scenario = Scenario::new(self.name, Some(self.limits), world, Expected::Silence, transcript)?;
        fs::write(&scenario.input, input.to_string())?;
        let program: &'static LazyLock<PathBuf> = self.program;
        Ok(Scenario { program: program.as_path(), args: self.args, ..scenario })
    }
}

fn path(path: &Path) -> Value {
    path.to_string_lossy().into_owned().into()
}

//! Input of the hooks and of the module: only broken JSON is an error, and a text that is there arrives.

use ralph::claude::hook::input::{self, HookEvent, HookInput};
use ralph::claude::hook::module;
use ralph::claude::settings::statusline;
use ralph::core::request::StartRequest;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::Path;

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let fields: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_str(&text);
    match (input::parse(bytes, "Stop"), &fields) {
        (Ok(input), Ok(fields)) => arrives(&input, fields),
        (Ok(_), Err(error)) => panic!("taken although it is broken: {error}"),
        // The client never says a thing twice, and to refuse it is as good as any answer.
        (Err(error), Ok(_)) if error.contains("duplicate field") => {}
        (Err(error), Ok(_)) => panic!("whole JSON was refused: {error}"),
        (Err(_), Err(_)) => {}
    }
    if let Some(input) = module::parse(bytes) {
        let figures = serde_json::to_string(&input.figures).expect("it can be written");
        drop(statusline::parse(figures.as_bytes()));
    }
}

fn arrives(input: &HookInput, fields: &BTreeMap<String, &RawValue>) {
    let same = |name: &str, read: Option<&str>| {
        let given = fields.get(name).map(|raw| raw.get());
        match given.filter(|json| json.starts_with('"')) {
            None => assert_eq!(read, None, "{name} came from nowhere"),
            Some(json) => match serde_json::from_str::<String>(json) {
                Ok(text) => assert_eq!(read, Some(text.as_str()), "{name}"),
                // Half a character: the rest of the text is not lost for it.
                Err(_) => assert!(read.is_some_and(|text| text.contains('\u{fffd}')), "{name} is lost"),
            },
        }
    };
    same("session_id", input.session_id.as_deref());
    same("prompt_id", input.prompt_id.as_deref());
    for (name, path) in [("cwd", &input.cwd), ("transcript_path", &input.transcript)] {
        // An empty path is none.
        if let Some(path) = path.as_deref().and_then(Path::to_str) {
            same(name, Some(path));
        }
    }
    match &input.event {
        HookEvent::Stop { message, .. } => same("last_assistant_message", message.as_deref()),
        HookEvent::Expansion { arguments, .. } => drop(StartRequest::from_text(arguments)),
        HookEvent::Prompt { text } if !text.is_empty() => same("prompt", Some(text)),
        HookEvent::Other(name) => same("hook_event_name", Some(name)),
        HookEvent::Prompt { .. }
        | HookEvent::StopFailure { .. }
        | HookEvent::SessionStart { .. }
        | HookEvent::SessionEnd { .. }
        | HookEvent::Notification { .. }
        | HookEvent::Permission { .. }
        | HookEvent::ToolBatch { .. } => {}
    }
}

//! What an agent said and did, from one line of its stream or of a session's transcript.

use crate::core::event::account::{Entry, Kind};
use crate::core::text::clean;
use crate::core::time::Stamp;
use serde_json::Value;

const MAX_CHARS: usize = 2000;

/// Returns what a line tells; nothing if it is of another kind.
pub fn entries(line: &[u8]) -> Vec<Entry> {
    let Ok(value) = serde_json::from_slice::<Value>(line) else { return Vec::new() };
    let at = value["timestamp"].as_str().and_then(Stamp::parse);
    let kind = value["type"].as_str().unwrap_or_default();
    let entry = |kind: Kind, text: &str| {
        let bounded: String = text.chars().take(MAX_CHARS).collect();
        let text = clean::block(&bounded).trim().to_owned();
        (!text.is_empty()).then_some(Entry { at, kind, text })
    };
    match kind {
        "assistant" | "user" => {
            let content = &value["message"]["content"];
            if let Some(text) = content.as_str() {
                let kind = if kind == "user" { Kind::Told } else { Kind::Said };
                return entry(kind, text).into_iter().collect();
            }
            let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
            let of_block = |block: &Value| match block["type"].as_str()? {
                "text" if kind == "user" => entry(Kind::Told, block["text"].as_str()?),
                "text" => entry(Kind::Said, block["text"].as_str()?),
                "tool_use" => entry(Kind::Tool, &clean::line(&tool(block))),
                "tool_result" if block["is_error"] == true => {
                    entry(Kind::ToolFailed, &clean::line(&block["content"].to_string()))
                }
                _ => None,
            };
            blocks.iter().filter_map(of_block).collect()
        }
        "result" => entry(Kind::Reported, value["result"].as_str().unwrap_or("ended")).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn tool(block: &Value) -> String {
    let name = block["name"].as_str().unwrap_or("tool");
    let input = &block["input"];
    let wanted = ["command", "file_path", "path", "pattern", "url", "query", "description"];
    let what = wanted.iter().find_map(|key| input[*key].as_str()).unwrap_or_default();
    format!("{name} {what}")
}

//! What an agent said and did, from a line of its stream or of a session's transcript.

use super::object::Object;
use crate::core::event::account::{Entry, Kind};
use crate::core::text::clean;
use crate::core::time::Stamp;

/// Returns what a line tells, in its order. One that is no JSON tells nothing.
pub fn entries(line: &[u8]) -> Vec<Entry> {
    let Ok(line) = serde_json::from_slice::<Object>(line) else { return Vec::new() };
    if line.text("type").as_deref() != Some("assistant") {
        return Vec::new();
    }
    let at = line.read::<Stamp>("timestamp");
    let one = |block: &Object| match block.text("type").as_deref() {
        Some("text") => Some(Entry { at, kind: Kind::Said, text: clean::block(&block.text("text")?) }),
        Some("tool_use") => Some(Entry { at, kind: Kind::Tool, text: clean::line(&block.text("name")?) }),
        _ => None,
    };
    let blocks = line.object("message").objects("content");
    blocks.iter().filter_map(one).collect()
}

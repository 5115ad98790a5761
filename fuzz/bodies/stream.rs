//! What an agent prints: cut anywhere it gives the same events, and what is shown of it is safe.

use ralph::claude::agent_log;
use ralph::claude::stream::{Lines, StreamEvent, events};

pub fn check(bytes: &[u8]) {
    let whole = read(&[bytes]);
    for cut in [bytes.len() / 3, bytes.len() / 2, bytes.len().saturating_sub(1)] {
        assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
    }
    for event in &whole {
        if let StreamEvent::ToolStarted { name, summary, .. } = event {
            assert!(
                !name.chars().chain(summary.chars()).any(char::is_control),
                "not safe to show: {event:?}"
            );
        }
    }
    for entry in bytes.split(|&byte| byte == b'\n').flat_map(agent_log::entries) {
        let is_safe = |c: char| matches!(c, '\n' | '\t') || !c.is_control();
        assert!(entry.text.chars().all(is_safe), "not safe to show: {entry:?}");
    }
}

fn read(chunks: &[&[u8]]) -> Vec<StreamEvent> {
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    for chunk in chunks {
        lines.feed(chunk, |line| found.extend(events(line)));
    }
    lines.finish(|line| found.extend(events(line)));
    found
}

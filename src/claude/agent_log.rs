//! A readable account of what an agent did, from the lines of Claude Code's `stream-json` or of a session's transcript.
//!
//! The two formats have the same messages and differ in what surrounds them. Every version of the client adds types: what
//! is not known gives no entry.

use super::object::Object;
use super::stream::{Limit, StreamEvent, rate_limit, summary};
use crate::core::event::agent_log::{AgentLogEntry, EntryKind};
use crate::core::text::clean;
use crate::core::time::{self, Stamp};

/// What the agent said or was told is kept this long.
const MAX_TEXT_CHARS: usize = 16_000;
/// What a failed tool and the client report is one line of this width.
const REPORT_COLUMNS: usize = 300;

/// Returns what a line tells, in its order.
pub fn entries(line: &[u8]) -> Vec<AgentLogEntry> {
    if !line.starts_with(b"{") || is_beside_the_conversation(line) {
        return Vec::new();
    }
    let Ok(line) = serde_json::from_slice::<Object>(line) else { return Vec::new() };
    let found = match line.text("type").as_deref() {
        Some("assistant") => assistant(&line),
        Some("user") => user(&line),
        Some("attachment") => attachment(&line.object("attachment")),
        Some("system") => system(&line).map(reported).into_iter().collect(),
        Some("rate_limit_event") => {
            limit(&line.object("rate_limit_info")).map(reported).into_iter().collect()
        }
        Some("result") if line.is_true("is_error") => vec![reported(result(&line))],
        Some("result") => vec![(EntryKind::Finished, result(&line))],
        _ => Vec::new(),
    };
    let at = line.read::<Stamp>("timestamp");
    let is_empty = |text: &str| text.trim().is_empty();
    let found = found.into_iter().filter(|(_, text)| !is_empty(text));
    found.map(|(kind, text)| AgentLogEntry { at, kind, text }).collect()
}

/// Like `entries`, for a line that another program may have written. Returns nothing if it is not of Claude Code's stream.
pub fn of_stream(line: &[u8]) -> Option<Vec<AgentLogEntry>> {
    let is_claudes = |line: &Object| {
        const KINDS: [&str; 6] =
            ["assistant", "user", "system", "result", "rate_limit_event", "stream_event"];
        line.text("type").is_some_and(|kind| KINDS.contains(&kind.as_str()) || kind.starts_with("control_"))
    };
    let is_known = line.starts_with(b"{") && serde_json::from_slice(line).is_ok_and(|line| is_claudes(&line));
    is_known.then(|| entries(line))
}

/// Returns when a line was written, if it says so.
pub fn time_of(line: &[u8]) -> Option<Stamp> {
    serde_json::from_slice::<Object>(line).ok()?.read("timestamp")
}

/// Returns whether a line is a request to the model, which the client logs in addition to the conversation. It may have
/// megabytes, so only its first bytes are read.
fn is_beside_the_conversation(line: &[u8]) -> bool {
    const KINDS: [&[u8]; 3] = [b"stream_event\"", b"api-request", b"queue-operation\""];
    let kind = line.strip_prefix(b"{\"type\":\"");
    kind.is_some_and(|kind| KINDS.iter().any(|name| kind.starts_with(name)))
}

type Found = (EntryKind, String);

fn reported(text: String) -> Found {
    (EntryKind::Reported, text)
}

/// Returns a longer text as an account keeps it.
pub fn text(text: &str) -> String {
    let mut bounded: String = text.chars().take(MAX_TEXT_CHARS).collect();
    if bounded.len() < text.len() {
        bounded.push('…');
    }
    clean::output(&bounded).trim().to_owned()
}

fn report(text: &str) -> String {
    let beginning: String = text.chars().take(4096).collect();
    clean::excerpt(&clean::output(&beginning), REPORT_COLUMNS)
}

/// Returns whether a sub-agent is meant. Its words are the agent's business; what it does is not.
fn is_sub_agent(line: &Object) -> bool {
    line.raw("parent_tool_use_id").is_some() || line.is_true("isSidechain")
}

fn assistant(line: &Object) -> Vec<Found> {
    let message = line.object("message");
    let blocks = message.objects("content");
    let words = |block: &Object| block.text("text").filter(|_| is(block, "text"));
    let is_error = ["is_api_error_message", "isApiErrorMessage"].iter().any(|key| line.is_true(key));
    if is_error || line.raw("error").is_some() {
        return vec![reported(blocks.iter().find_map(words).map(|words| report(&words)).unwrap_or_default())];
    }
    // The client also speaks in the agent's place, and says so.
    let is_own = !is_sub_agent(line) && message.text("model").as_deref() != Some("<synthetic>");
    let prefix = if is_sub_agent(line) { "sub-agent: " } else { "" };
    let entry = |block: &Object| {
        if let Some(words) = words(block) {
            return is_own.then(|| (EntryKind::Said, text(&words)));
        }
        is(block, "tool_use").then(|| (EntryKind::Tool, format!("{prefix}{}", tool(block))))
    };
    match message.text("content") {
        Some(words) if is_own => vec![(EntryKind::Said, text(&words))],
        _ => blocks.iter().filter_map(entry).collect(),
    }
}

fn is(block: &Object, kind: &str) -> bool {
    block.text("type").as_deref() == Some(kind)
}

fn tool(block: &Object) -> String {
    let name = block.text("name").map(|name| clean::excerpt(&name, 80)).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| super::stream::UNKNOWN_TOOL.to_owned());
    match summary(&block.object("input")) {
        summary if summary.is_empty() => name,
        summary => format!("{name}: {summary}"),
    }
}

fn user(line: &Object) -> Vec<Found> {
    if line.is_true("isCompactSummary") {
        return vec![reported("the context was compacted".into())];
    }
    let message = line.object("message");
    if let Some(words) = message.text("content") {
        return prompt(&words, line).into_iter().collect();
    }
    let entry = |block: &Object| {
        if is(block, "text") {
            return prompt(&block.text("text")?, line);
        }
        let failed = is(block, "tool_result") && block.is_true("is_error");
        failed.then(|| (EntryKind::ToolFailed, failure(block)))
    };
    message.objects("content").iter().filter_map(entry).collect()
}

/// Returns what was said to the agent, or what the client reports in this place.
fn prompt(words: &str, line: &Object) -> Option<Found> {
    if is_sub_agent(line) {
        return None;
    }
    if words.starts_with("[Request interrupted by user") {
        return Some(reported("interrupted by the user".into()));
    }
    if let Some(name) = tagged(words, "command-name") {
        let arguments = tagged(words, "command-args").unwrap_or_default();
        return Some((EntryKind::Told, clean::excerpt(&format!("{name} {arguments}"), REPORT_COLUMNS)));
    }
    if words.starts_with("<local-command") {
        return tagged(words, "local-command-stdout").map(|words| reported(report(words)));
    }
    Some((EntryKind::Told, text(words)))
}

/// Returns what is between the tags of this name.
fn tagged<'a>(words: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = words.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner)
}

/// Returns what a failed tool said.
fn failure(block: &Object) -> String {
    let parts = block.objects("content");
    let words = block.text("content").or_else(|| parts.iter().find_map(|part| part.text("text")));
    let words = words.unwrap_or_else(|| "failed".to_owned());
    report(tagged(&words, "tool_use_error").unwrap_or(&words))
}

/// Returns what a hook added for the agent.
fn attachment(attachment: &Object) -> Vec<Found> {
    if !is(attachment, "hook_additional_context") {
        return Vec::new();
    }
    let parts: Vec<String> =
        attachment.read("content").or_else(|| Some(vec![attachment.text("content")?])).unwrap_or_default();
    vec![(EntryKind::Told, text(&parts.join("\n")))]
}

fn system(line: &Object) -> Option<String> {
    let number = |keys: [&str; 2]| keys.iter().find_map(|key| line.read::<u64>(key));
    match line.text("subtype")?.as_str() {
        // In a stream, and in a transcript.
        "api_retry" | "api_error" => {
            let error = line.object("error");
            let status = line.read::<u16>("error_status").or_else(|| error.read("status"));
            let words = error.text("formatted").or_else(|| line.text("error")).unwrap_or_default();
            let what = match status {
                Some(status) if !words.starts_with(&status.to_string()) => format!("{status} {words}"),
                _ => words,
            };
            let of =
                number(["max_retries", "maxRetries"]).map(|most| format!(" of {most}")).unwrap_or_default();
            let attempt = number(["attempt", "retryAttempt"]).unwrap_or(1);
            Some(report(&format!("no answer from the model ({}): retry {attempt}{of}", what.trim())))
        }
        "compact_boundary" => Some("the context was compacted".into()),
        _ => None,
    }
}

fn limit(info: &Object) -> Option<String> {
    let StreamEvent::RateLimit { status, resets_at } = rate_limit(info)? else { return None };
    let until = resets_at.map(|at| format!("; resets {}", at.minute())).unwrap_or_default();
    match status {
        Limit::Allowed => None,
        Limit::Warning if info.is_true("isUsingOverage") => {
            Some(format!("usage limit reached; extra usage pays{until}"))
        }
        Limit::Warning => Some(format!("near the usage limit{until}")),
        Limit::Rejected => Some(format!("usage limit reached{until}")),
    }
}

fn result(line: &Object) -> String {
    let failed = line.is_true("is_error");
    let errors: Vec<String> = line.read("errors").unwrap_or_default();
    let words = line.text("result").unwrap_or_else(|| errors.join("; "));
    let how = match (failed, line.text("subtype").unwrap_or_default().as_str()) {
        (false, _) => "the agent ended".to_owned(),
        (true, "success" | "") => "the agent failed".to_owned(),
        (true, subtype) => format!("the agent failed ({})", clean::excerpt(subtype, 80)),
    };
    let turns = line.read::<u64>("num_turns").map(|turns| match turns {
        1 => "1 turn".to_owned(),
        turns => format!("{turns} turns"),
    });
    let took = line.read::<i64>("duration_ms").filter(|ms| *ms > 0).map(time::span);
    let cost = line.read::<f64>("total_cost_usd").filter(|cost| cost.is_finite() && *cost >= 0.0);
    let cost = cost.map(|cost| format!("${cost:.2}"));
    let figures: Vec<String> = [turns, took, cost].into_iter().flatten().collect();
    let words = if failed && !words.is_empty() { format!(": {}", report(&words)) } else { String::new() };
    let figures = if figures.is_empty() { String::new() } else { format!(" · {}", figures.join(" · ")) };
    format!("{how}{words}{figures}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agent_log(lines: &str) -> Vec<(EntryKind, String)> {
        lines
            .lines()
            .flat_map(|line| entries(line.as_bytes()))
            .map(|entry| (entry.kind, entry.text))
            .collect()
    }

    fn found(kind: EntryKind, text: &str) -> (EntryKind, String) {
        (kind, text.to_owned())
    }

    #[test]
    fn a_stream_reads_as_what_was_said_and_done() {
        let told = agent_log(include_str!("stream/samples/tools.jsonl"));
        let expected = [
            found(EntryKind::Said, "working"),
            found(EntryKind::Tool, "Bash: echo 1 >> f; ls"),
            found(EntryKind::Tool, "Write: /proj/a.txt"),
            found(EntryKind::Tool, "Read: /proj/none.txt"),
            found(EntryKind::Tool, "Edit: /proj/a.txt"),
            found(EntryKind::Tool, "Grep: x"),
            found(
                EntryKind::ToolFailed,
                "File does not exist. Note: your current working directory is /proj.",
            ),
            found(EntryKind::ToolFailed, "String to replace not found in file. String: nope"),
            found(EntryKind::Tool, "Bash: exit 3"),
            found(EntryKind::ToolFailed, "Exit code 3"),
            found(EntryKind::Said, "finished"),
            found(EntryKind::Finished, "the agent ended · 7 turns · $0.00"),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn retries_limits_and_errors_are_reported_in_words() {
        for (name, sample, expected) in [
            (
                "a retry",
                include_str!("stream/samples/error-529.jsonl"),
                "no answer from the model (529 overloaded): retry 1 of 1",
            ),
            (
                "a limit",
                include_str!("stream/samples/usage-limit.jsonl"),
                "You've hit your 5-hour limit · resets 1pm (UTC)",
            ),
            (
                "a warning",
                include_str!("stream/samples/limit-warning.jsonl"),
                "near the usage limit; resets 2026-11-16 13:00 UTC",
            ),
            ("an interrupt", include_str!("stream/samples/interrupted.jsonl"), "interrupted by the user"),
        ] {
            let told = agent_log(sample);
            assert!(told.contains(&found(EntryKind::Reported, expected)), "{name}: {told:#?}");
        }
        let denied = agent_log(include_str!("stream/samples/denied.jsonl"));
        assert_eq!(denied[1], found(EntryKind::ToolFailed, "This command requires approval"), "{denied:#?}");
        let partial = agent_log(include_str!("stream/samples/partial.jsonl"));
        assert_eq!(partial.len(), 2, "pieces of a message are not told beside it: {partial:#?}");
        let sub_agent = agent_log(include_str!("stream/samples/sub-agent.jsonl"));
        assert!(sub_agent.contains(&found(EntryKind::Tool, "sub-agent: Bash: echo sub")), "{sub_agent:#?}");
        assert!(!sub_agent.contains(&found(EntryKind::Said, "sub speaking")), "{sub_agent:#?}");
    }

    #[test]
    fn a_transcript_reads_the_same_with_times() {
        let line = |line: &str| entries(line.as_bytes());
        let prompt = line(
            r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"do it"},"timestamp":"2026-11-18T11:02:29.665Z"}"#,
        );
        let at = Stamp::parse("2026-11-18T11:02:29.665Z");
        assert_eq!(prompt, [AgentLogEntry { at, kind: EntryKind::Told, text: "do it".into() }]);
        let cases = [
            (
                r#"{"type":"attachment","attachment":{"type":"hook_additional_context","content":["go","further"],"hookEvent":"Stop"}}"#,
                vec![found(EntryKind::Told, "go\nfurther")],
            ),
            (r#"{"type":"attachment","attachment":{"type":"environment","snapshot":{}}}"#, vec![]),
            (
                r#"{"type":"system","subtype":"api_error","level":"error","error":{"status":529,"formatted":"529 overloaded"},"retryAttempt":2,"maxRetries":10}"#,
                vec![found(EntryKind::Reported, "no answer from the model (529 overloaded): retry 2 of 10")],
            ),
            (
                r#"{"type":"user","message":{"content":"<command-name>/ralph:forbid</command-name>\n<command-args>touch x</command-args>"}}"#,
                vec![found(EntryKind::Told, "/ralph:forbid touch x")],
            ),
            (
                r#"{"type":"user","message":{"content":"<local-command-stdout>Compacted</local-command-stdout>"}}"#,
                vec![found(EntryKind::Reported, "Compacted")],
            ),
            (r#"{"type":"user","isSidechain":true,"message":{"content":"look around"}}"#, vec![]),
            (
                r#"{"type":"assistant","isApiErrorMessage":true,"message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error: 500"}]}}"#,
                vec![found(EntryKind::Reported, "API Error: 500")],
            ),
            (
                r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}"#,
                vec![],
            ),
            (r#"{"type":"dreamt","message":{"content":"x"}}"#, vec![]),
            (r#"{"type":"assistant","message":{"content":[{"type":"text","te"#, vec![]),
            ("not JSON at all", vec![]),
            ("", vec![]),
        ];
        for (line, expected) in cases {
            assert_eq!(agent_log(line), expected, "{line}");
        }
    }

    #[test]
    fn hostile_and_huge_texts_become_harmless() {
        let text = format!("a\\u001b[31mred\\u001b[0m\\u202e{}", "x".repeat(2 * MAX_TEXT_CHARS));
        let said = agent_log(&format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        ));
        assert!(said[0].1.starts_with("aredx") && said[0].1.chars().count() <= MAX_TEXT_CHARS + 1);
        let failed = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","is_error":true,"content":"é{text}"}}]}}}}"#
        );
        let failed = &agent_log(&failed)[0].1;
        assert!(clean::columns(failed) <= REPORT_COLUMNS && !failed.contains('\u{1b}'), "{failed}");
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(line in ".{0,200}") {
            entries(line.as_bytes());
            for (kind, key) in [("assistant", "message"), ("user", "message"), ("result", "errors"), ("system", "error")] {
                entries(format!(r#"{{"type":"{kind}","subtype":"api_retry","{key}":{}}}"#, serde_json::json!(line)).as_bytes());
            }
        }
    }
}

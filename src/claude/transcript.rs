//! Reads what the session's transcript gained since the last hook, whole lines only.
//!
//! The transcript lags behind the hooks, every version of Claude Code adds types, and lines can be megabytes long. Lines that
//! do not parse are skipped, and at most `MAX_BYTES` are read at once.

use crate::core::decide::turn::Gained;
use crate::core::record::{Queued, StoredLoop, Usage};
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::core::time::runtime::{Event, Evidence};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const MAX_BYTES: u64 = 32 << 20;
/// The first read goes back in growing steps, starting with this one, until it is before the loop's start.
const FIRST_STEP_BYTES: u64 = 32 << 10;
const MAX_QUEUED: usize = 32;
/// Tools that do not change the project; all others, also unknown ones, may write.
const READING_TOOLS: [&str; 9] =
    ["Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "ToolSearch", "TodoWrite"];

/// Tools that edit a file.
const EDITING_TOOLS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// Returns what the transcript gained since the loop last read it; `None` if it cannot be read.
pub fn read(path: &Path, run: &StoredLoop) -> Option<Gained> {
    let name = path.to_str()?;
    // Checked before opening, because opening a pipe would block.
    let length = path.metadata().ok().filter(|meta| meta.is_file())?.len();
    let mut file = File::open(path).ok()?;
    let known = &run.session.transcript;
    let mut reader = Reader { gained: Gained::default(), editing: Vec::new(), since: run.timing.armed_at };
    reader.gained.reading = if known.path == name { known.clone() } else { known.anew() };
    // A hook within the turn has read these, and they are not counted yet.
    let carried = std::mem::take(&mut reader.gained.reading.carried);
    reader.gained.tools_used = carried.tools_used;
    reader.gained.tools_that_write = carried.tools_that_write;
    reader.gained.edits = carried.edits;
    let from = match known.offset.filter(|offset| known.path == name && *offset <= length) {
        Some(offset) => {
            reader.since = Stamp(i64::MIN);
            offset.max(length.saturating_sub(MAX_BYTES))
        }
        None => position_before(&mut file, length, run.timing.armed_at)?,
    };
    let bytes = read_from(&mut file, from, length)?;
    // `from` may be inside a line, which then does not parse and is skipped.
    let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
    for line in lines(&bytes[..whole]) {
        reader.line(line);
    }
    let mut gained = reader.gained;
    if from == 0 {
        // The whole session was read, so without an earlier total nothing was spent before the loop.
        gained.reading.session_cost_usd.get_or_insert(0.0);
    }
    gained.reading.path = name.to_owned();
    gained.reading.offset = Some(from + whole as u64);
    Some(gained)
}

fn read_from(file: &mut File, from: u64, to: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(to - from).ok()?);
    file.seek(SeekFrom::Start(from)).ok()?;
    file.take(to - from).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
    ends.scan(0, |start, end| Some(&bytes[std::mem::replace(start, end + 1)..end]))
}

/// Finds a position before the loop's first entry, near to it: goes back in growing steps, then halves the last one.
fn position_before(file: &mut File, length: u64, since: Stamp) -> Option<u64> {
    let mut is_before = |from: u64| -> Option<bool> {
        let head = read_from(file, from, (from + FIRST_STEP_BYTES).min(length))?;
        let first = lines(&head).skip(1).filter_map(parse).find_map(|line| line.at());
        Some(first.is_some_and(|at| at < since))
    };
    let (mut from, mut to) = (length.saturating_sub(FIRST_STEP_BYTES), length);
    while from > 0 && length - from < MAX_BYTES && !is_before(from)? {
        to = from;
        from = length.saturating_sub((length - from) * 4);
    }
    while from > 0 && to - from > FIRST_STEP_BYTES {
        let middle = from + (to - from) / 2;
        if is_before(middle)? { from = middle } else { to = middle }
    }
    Some(from)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    prompt_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    operation: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(rename = "costUSD")]
    cost: Option<f64>,
    #[serde(rename = "totalCostUSD")]
    session_cost: Option<f64>,
}

impl<'a> Line<'a> {
    fn at(&self) -> Option<Stamp> {
        Stamp::parse(&serde_json::from_str::<String>(self.timestamp?.get()).ok()?)
    }

    fn message(&self) -> Option<Message<'a>> {
        serde_json::from_str(self.message?.get()).ok()
    }
}

fn parse(line: &[u8]) -> Option<Line<'_>> {
    if line.len() < 2 {
        return None;
    }
    serde_json::from_slice(line).ok()
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Content<'a>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

/// A message's content: one text, or blocks of three known kinds.
#[derive(Default)]
struct Content<'a> {
    text: Option<Cow<'a, str>>,
    calls: Vec<ToolCall>,
    /// The id of each result, and whether the tool failed.
    results: Vec<(String, bool)>,
}

struct ToolCall {
    id: String,
    writes: bool,
    edits: bool,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_use_id: Option<Cow<'a, str>>,
    is_error: Option<bool>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of blocks")
            }

            fn visit_unit<E>(self) -> Result<Content<'de>, E> {
                Ok(Content::default())
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content { text: Some(text.into()), ..Content::default() })
            }

            fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content { text: Some(text.to_owned().into()), ..Content::default() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'de>, A::Error> {
                let mut content = Content::default();
                while let Some(raw) = seq.next_element::<&'de RawValue>()? {
                    let Ok(block) = serde_json::from_str::<Block>(raw.get()) else { continue };
                    match block.kind.as_deref() {
                        Some("text") => content.text = block.text.or(content.text),
                        Some("tool_use") => {
                            let name = block.name.unwrap_or_default();
                            content.calls.push(ToolCall {
                                id: block.id.unwrap_or_default().into_owned(),
                                writes: !READING_TOOLS.contains(&name.as_ref()),
                                edits: EDITING_TOOLS.contains(&name.as_ref()),
                            });
                        }
                        Some("tool_result") => {
                            let id = block.tool_use_id.unwrap_or_default().into_owned();
                            content.results.push((id, block.is_error == Some(true)));
                        }
                        _ => {}
                    }
                }
                Ok(content)
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Content<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Content::default())
            }
        }
        deserializer.deserialize_any(Collect)
    }
}

/// Returns whether the line is a request or an attachment that Claude Code logs beside the conversation. Its first bytes
/// show that, so it need not be parsed.
fn is_irrelevant(line: &[u8]) -> bool {
    const RELEVANT: [&[u8]; 4] = [b"queue-operation\"", b"assistant\"", b"user\"", b"cost-state\""];
    if let Some(kind) = line.strip_prefix(b"{\"type\":\"") {
        return !RELEVANT.iter().any(|name| kind.starts_with(name));
    }
    let head = &line[..line.len().min(96)];
    head.starts_with(b"{\"parentUuid\":") && memchr::memmem::find(head, b",\"attachment\":{").is_some()
}

struct Reader {
    gained: Gained,
    /// Ids of edits without a result so far.
    editing: Vec<String>,
    /// Entries before this time do not belong to the loop.
    since: Stamp,
}

impl Reader {
    fn line(&mut self, bytes: &[u8]) {
        if is_irrelevant(bytes) {
            return;
        }
        let Some(line) = parse(bytes) else { return };
        if let Some(cost) = line.session_cost.filter(|_| line.kind.as_deref() == Some("cost-state")) {
            self.session_cost(cost);
        }
        let Some(at) = line.at().filter(|at| *at >= self.since) else { return };
        match line.kind.as_deref() {
            Some("queue-operation") => self.queue(&line, at),
            Some("assistant") if line.is_sidechain != Some(true) => self.assistant(&line, at),
            Some("user") if line.is_sidechain != Some(true) => self.user(&line, at),
            _ => {}
        }
    }

    fn assistant(&mut self, line: &Line, at: Stamp) {
        let Some(message) = line.message() else { return };
        self.evidence(at, Event::Answer);
        self.gained.tools_used += message.content.calls.len() as u64;
        for call in message.content.calls {
            self.gained.tools_that_write += u64::from(call.writes);
            self.gained.edits += u64::from(call.edits);
            if call.edits {
                self.editing.push(call.id.clone());
            }
            self.evidence(at, Event::Call(call.id));
        }
        if let Some(text) = message.content.text {
            self.gained.last_text = Some(text.into_owned());
        }
        self.add_cost(line.cost);
        // Each block of a message is an entry, and repeats the message's usage.
        let id = message.id.unwrap_or_default();
        if id.is_empty() || self.gained.reading.counted_message == id {
            return;
        }
        if let Some(tokens) = message.usage {
            let mut used = Usage {
                input_tokens: tokens.input_tokens.unwrap_or(0),
                cache_read_tokens: tokens.cache_read_input_tokens.unwrap_or(0),
                cache_write_tokens: tokens.cache_creation_input_tokens.unwrap_or(0),
                ..Usage::default()
            };
            used.context_tokens = used.tokens();
            used.output_tokens = tokens.output_tokens.unwrap_or(0);
            // A message that Claude Code made up has no context; the previous one still holds.
            self.gained.usage.add(&used);
            self.gained.reading.counted_message = id.into_owned();
        }
    }

    fn user(&mut self, line: &Line, at: Stamp) {
        let Some(message) = line.message() else { return };
        if line.is_compact_summary == Some(true) {
            return;
        }
        if let Some(id) = &line.prompt_id {
            self.gained.reading.prompt_id = id.clone().into_owned();
        }
        let content = message.content;
        for (id, failed) in &content.results {
            if let Some(edit) = self.editing.iter().position(|edit| edit == id) {
                self.editing.swap_remove(edit);
                // A failed edit changed nothing.
                self.gained.edits -= u64::from(*failed);
            }
            self.evidence(at, Event::Result(id.clone()));
        }
        let Some(text) = content.text else { return };
        // Claude Code answers `/compact` and `/clear` itself; the agent does not read them.
        if text.starts_with("<local-command") || text.starts_with("<command-name>") {
            return;
        }
        if text.starts_with("[Request interrupted by user") {
            self.gained.interrupted_at = Some(at);
            self.evidence(at, Event::Interrupt);
        } else if line.is_meta == Some(true) {
            self.evidence(at, Event::Sent);
        } else if content.results.is_empty() {
            self.evidence(at, Event::Prompt);
        }
    }

    fn evidence(&mut self, at: Stamp, event: Event) {
        self.gained.evidence.push(Evidence { at, event });
    }

    /// Follows Claude Code's queue of what the user typed while the agent works.
    fn queue(&mut self, line: &Line, at: Stamp) {
        let text = line.content.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let text = clean::excerpt(&text.unwrap_or_default(), 200);
        let queue = &mut self.gained.reading.queue;
        match line.operation.as_deref() {
            Some("enqueue") if queue.len() < MAX_QUEUED => queue.push(Queued { text, at }),
            Some("dequeue") if !queue.is_empty() => drop(queue.remove(0)),
            Some("remove") => match queue.iter().position(|queued| queued.text == text) {
                Some(at) => drop(queue.remove(at)),
                None => drop(queue.pop()),
            },
            Some("dequeue" | "enqueue") => {}
            // An unknown operation may have changed the queue in any way.
            _ => queue.clear(),
        }
    }

    /// Adds the increase of the session's total cost since the last total.
    fn session_cost(&mut self, total: f64) {
        if !total.is_finite() || total < 0.0 {
            return;
        }
        let before = self.gained.reading.session_cost_usd.replace(total);
        self.add_cost(before.map(|before| total - before));
    }

    fn add_cost(&mut self, cost: Option<f64>) {
        if let Some(cost) = cost.filter(|cost| cost.is_finite() && *cost > 0.0) {
            *self.gained.usage.cost_usd.get_or_insert(0.0) += cost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::record::{LoopState, Reading, Timing};
    use std::io::Write;

    fn run() -> StoredLoop {
        StoredLoop {
            state: LoopState::Running,
            timing: Timing { armed_at: Stamp::parse("2026-11-16T08:00:00Z").unwrap(), ..Timing::default() },
            ..StoredLoop::default()
        }
    }

    fn entry(kind: &str, second: u32, fields: &str) -> String {
        format!(r#"{{"type":"{kind}","timestamp":"2026-11-16T08:00:{second:02}.000Z",{fields}}}"#) + "\n"
    }

    fn assistant(second: u32, id: &str, block: &str) -> String {
        let usage = r#""usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100}"#;
        entry("assistant", second, &format!(r#""message":{{"id":"{id}","content":[{block}],{usage}}}"#))
    }

    fn user(second: u32, fields: &str) -> String {
        entry("user", second, fields)
    }

    fn queue(operation: &str, content: &str) -> String {
        entry("queue-operation", 5, &format!(r#""operation":"{operation}","content":"{content}""#))
    }

    const TEXT: &str = r#"{"type":"text","text":"done"}"#;
    const CALL: &str = r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"x"}}"#;

    struct Transcript(tempfile::NamedTempFile);

    impl Transcript {
        fn of(lines: &[String]) -> Self {
            let mut file = Transcript(tempfile::NamedTempFile::new().unwrap());
            file.add(lines);
            file
        }

        fn add(&mut self, lines: &[String]) {
            self.0.write_all(lines.concat().as_bytes()).unwrap();
        }

        fn read(&self, run: &StoredLoop) -> Gained {
            read(self.0.path(), run).unwrap()
        }
    }

    #[test]
    fn a_turn_becomes_evidence_tools_and_tokens() {
        let transcript = Transcript::of(&[
            user(1, r#""promptId":"p1","message":{"role":"user","content":"go"}"#),
            assistant(2, "m1", TEXT),
            assistant(3, "m1", CALL),
            user(
                9,
                r#""message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"[Request interrupted by user"}]}"#,
            ),
            assistant(10, "m2", TEXT),
            user(11, r#""isMeta":true,"message":{"content":"Stop hook feedback:\ngo on"}"#),
        ]);
        let gained = transcript.read(&run());
        let kinds: Vec<_> = gained.evidence.iter().map(|e| e.event.clone()).collect();
        let (call, result) = (Event::Call("t1".into()), Event::Result("t1".into()));
        assert_eq!(
            kinds,
            [Event::Prompt, Event::Answer, Event::Answer, call, result, Event::Answer, Event::Sent]
        );
        assert_eq!(gained.tools_used, 1);
        assert_eq!(
            (gained.usage.input_tokens, gained.usage.output_tokens, gained.usage.context_tokens),
            (20, 10, 110)
        );
        assert_eq!((gained.last_text.as_deref(), gained.reading.prompt_id.as_str()), (Some("done"), "p1"));
        assert_eq!(gained.interrupted_at, None, "a tool's output is not an interrupt");
    }

    #[test]
    fn a_message_made_up_by_claude_code_keeps_the_context() {
        let own = entry("assistant", 3, r#""message":{"id":"m2","content":[],"usage":{"input_tokens":0}}"#);
        let gained = Transcript::of(&[assistant(2, "m1", TEXT), own]).read(&run());
        assert_eq!((gained.usage.input_tokens, gained.usage.context_tokens), (10, 110));
    }

    #[test]
    fn only_new_and_complete_lines_are_read() {
        let mut transcript = Transcript::of(&[assistant(1, "m1", TEXT)]);
        let half = assistant(2, "m2", CALL);
        transcript.add(&[half[..40].to_owned()]);
        let mut run = run();
        let first = transcript.read(&run);
        assert_eq!((first.evidence.len(), first.tools_used), (1, 0));
        run.session.transcript = first.reading;
        transcript.add(&[half[40..].to_owned(), assistant(3, "m2", TEXT)]);
        let second = transcript.read(&run);
        assert_eq!((second.evidence.len(), second.tools_used, second.usage.input_tokens), (3, 1, 10));
        run.session.transcript = second.reading;
        assert_eq!(transcript.read(&run).evidence, []);
    }

    #[test]
    fn the_queue_is_followed() {
        let waiting = |operations: &[(&str, &str)]| {
            let lines: Vec<_> = operations.iter().map(|(operation, text)| queue(operation, text)).collect();
            let queue = Transcript::of(&lines).read(&run()).reading.queue;
            queue.into_iter().map(|queued| queued.text).collect::<Vec<_>>()
        };
        assert_eq!(waiting(&[("enqueue", "/a"), ("enqueue", "/b"), ("dequeue", "")]), ["/b"]);
        assert_eq!(waiting(&[("enqueue", "/a"), ("enqueue", "/b"), ("remove", "/b")]), ["/a"]);
        assert!(waiting(&[("dequeue", ""), ("remove", "x")]).is_empty());
        assert!(waiting(&[("enqueue", "/a"), ("popAll", "")]).is_empty());
        let hostile = Transcript::of(&[queue("enqueue", "/x \\u001b[2J\\u0007y")]).read(&run()).reading.queue;
        assert_eq!(hostile[0].text, "/x [2Jy");
    }

    #[test]
    fn an_interrupt_is_found_with_its_time() {
        let esc = user(
            7,
            r#""interruptedMessageId":"m","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}"#,
        );
        let at = Transcript::of(&[esc]).read(&run()).interrupted_at;
        assert_eq!(at, Stamp::parse("2026-11-16T08:00:07Z"));
    }

    #[test]
    fn cost_is_read_from_the_transcript() {
        let own = entry("assistant", 1, r#""costUSD":0.25,"message":{"id":"m","content":[]}"#);
        assert_eq!(Transcript::of(&[own]).read(&run()).usage.cost_usd, Some(0.25));
        let total = |usd: f64| format!("{{\"type\":\"cost-state\",\"totalCostUSD\":{usd}}}\n");
        let mut transcript = Transcript::of(&[total(1.5)]);
        let mut run = run();
        let gained = transcript.read(&run);
        assert_eq!(gained.usage.cost_usd, None, "spent before the loop");
        run.session.transcript = gained.reading;
        transcript.add(&[total(4.0)]);
        assert_eq!(transcript.read(&run).usage.cost_usd, Some(2.5));
    }

    #[test]
    fn invalid_lines_are_skipped() {
        let mut transcript = Transcript::of(&[
            "\n\n{}\n[]\nnull\n{\"type\":7}\n{\"type\":\"assistant\"\n".to_owned(),
            r#"{"type":"assistant","timestamp":5,"message":{"content":[]}}"#.to_owned() + "\n",
            r#"{"type":"user","timestamp":"2026-11-16T08:00:01Z","message":{"content":{"odd":1}}}"#.to_owned() + "\n",
            r#"{"type":"user","timestamp":"2026-11-16T08:00:01Z","message":"odd"}"#.to_owned() + "\n",
            entry("brand-new-type", 1, r#""x":1"#),
            r#"{"type":"assistant","isSidechain":true,"timestamp":"2026-11-16T08:00:01Z","message":{"content":[]}}"#.to_owned() + "\n",
        ]);
        transcript.0.write_all(b"\xff\xfe\x00\n").unwrap();
        transcript.add(&[assistant(2, "m", CALL)]);
        let gained = transcript.read(&run());
        assert_eq!((gained.tools_used, gained.evidence.len()), (1, 2), "{:?}", gained.evidence);
    }

    #[test]
    fn an_unreadable_file_gives_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path(), &run()).is_none(), "a directory");
        assert!(read(&dir.path().join("missing"), &run()).is_none());
        let mut shrunk = run();
        let transcript = Transcript::of(&[assistant(1, "m", CALL)]);
        shrunk.session.transcript = Reading {
            path: transcript.0.path().display().to_string(),
            offset: Some(1 << 40),
            ..Reading::default()
        };
        assert_eq!(
            transcript.read(&shrunk).tools_used,
            1,
            "a file that was replaced by a shorter one is read from the start"
        );
    }

    #[test]
    fn the_first_read_skips_what_came_before_the_loop() {
        let old = r#"{"type":"assistant","timestamp":"2026-11-16T07:00:00Z","message":{"id":"o","content":[{"type":"tool_use","id":"x"}]}}"#;
        let old = format!("{old}\n").repeat(20_000);
        let transcript = Transcript::of(&[old.clone(), assistant(1, "m", CALL)]);
        let gained = transcript.read(&run());
        assert_eq!((gained.tools_used, gained.evidence.len()), (1, 2));
        let mut file = File::open(transcript.0.path()).unwrap();
        let length = file.metadata().unwrap().len();
        let from = position_before(&mut file, length, run().timing.armed_at).unwrap();
        assert_eq!(from, length - FIRST_STEP_BYTES, "one step back is enough");
    }
}

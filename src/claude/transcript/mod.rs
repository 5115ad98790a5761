//! Reads what the session's transcript gained since the last hook, whole lines only.
//!
//! The transcript lags behind the hooks, every version of Claude Code adds types, and lines can be megabytes long. Lines that
//! do not parse are skipped. What decides (prompts, the queue, an interrupt, tokens) is found whatever lies between: a turn
//! may be of any length, and the longer it is, the less is parsed of it (`lines::ReadLevel`). What had to be passed over is told.

mod lines;
mod needles;

use crate::core::decide::figures;
use crate::core::decide::turn::TranscriptGain;
use crate::core::record::{QueuedPrompt, StoredLoop, Usage};
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::core::time::runtime::{TimedEvent, TranscriptEvent};
use crate::store::World;
use crate::store::file::parse_json;
use crate::store::file::walk::entries;
use lines::{Deadlines, LineUse, ReadExtent, ReadLevel};
use needles::Needles;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one read may take for all entries, how long more for those that decide, and again for commands.
const READ_BUDGET: Duration = Duration::from_millis(100);
/// More entries of one turn are not kept; the newest decide.
const MAX_TIMED_EVENTS: usize = 100_000;
/// Edits without a result at one time.
const MAX_OPEN_EDITS: usize = 64;
/// Longer than any id.
const MAX_ID_BYTES: usize = 256;
/// The first read goes back in growing steps, starting with this one, until it is before the loop's start.
const FIRST_STEP_BYTES: u64 = 32 << 10;
const MAX_QUEUED_PROMPTS: usize = 32;
/// Results of tools up to this length are parsed while long ones are not, because they end a tool's time.
const SHORT_ENTRY_BYTES: usize = 4 << 10;
/// Tools that do not change the project; all others, also unknown ones, may write.
const READING_TOOLS: [&str; 9] =
    ["Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "ToolSearch", "TodoWrite"];

/// Tools that edit a file.
const EDITING_TOOLS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// Returns what the transcript gained since the loop last read it; `None` if it cannot be read.
pub fn read(path: &Path, run: &StoredLoop) -> Option<TranscriptGain> {
    read_until(path, run, Deadlines::each(READ_BUDGET))
}

fn read_until(path: &Path, run: &StoredLoop, deadlines: Deadlines) -> Option<TranscriptGain> {
    let name = path.to_str()?;
    // Checked before opening, because opening a pipe would block.
    let length = path.metadata().ok().filter(|meta| meta.is_file())?.len();
    let mut file = File::open(path).ok()?;
    let known = &run.session.transcript;
    let mut reader = Reader {
        gained: TranscriptGain::default(),
        editing: Vec::new(),
        since: run.timing.armed_at,
        needles: None,
    };
    // A session that moves into another checkout takes its transcript along, under the same name.
    let is_known = Path::new(&known.path).file_name() == path.file_name();
    reader.gained.reading = if is_known { known.clone() } else { known.restarted() };
    // A hook within the turn has read these, and they are not counted yet.
    let carried = std::mem::take(&mut reader.gained.reading.carried);
    reader.gained.tools_used = carried.tools_used;
    reader.gained.tools_that_write = carried.tools_that_write;
    reader.gained.edits = carried.edits;
    let from = match known.offset.filter(|offset| is_known && *offset <= length) {
        Some(offset) => {
            reader.since = Stamp(i64::MIN);
            offset
        }
        None => position_before(&mut file, length, run.timing.armed_at)?,
    };
    // `from` may be inside a line, which then does not parse and is skipped.
    let visit = |line: &[u8], level| reader.visit(line, level);
    let read = lines::each_line(&mut file, (from, length), deadlines, is_irrelevant, visit)?;
    let ReadExtent { end, skipped, unread } = read;
    let mut gained = reader.gained;
    (gained.uncounted_bytes, gained.unread_bytes) = (skipped, unread);
    if skipped + unread > 0 {
        // What was skipped may have been anything.
        gained.tools_used = gained.tools_used.max(1);
        gained.tools_that_write = gained.tools_that_write.max(1);
    } else if from == 0 {
        // The whole session was read, so without an earlier total nothing was spent before the loop.
        gained.reading.session_cost_usd.get_or_insert(0.0);
    }
    gained.reading.path = name.to_owned();
    gained.reading.offset = Some(end);
    Some(gained)
}

/// Returns whether the text of a user's entry is what Claude Code writes there when the user presses Esc.
pub fn is_interruption(text: &str) -> bool {
    text.starts_with("[Request interrupted by user")
}

/// Finds the transcript of a session that no hook has named yet, or that has moved.
pub fn find(world: &World, session: &str) -> Option<PathBuf> {
    let is_plain = session.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let projects = entries(&world.claude_config.as_ref()?.join("projects"));
    let mut paths = projects.into_iter().map(|folder| folder.join(format!("{session}.jsonl")));
    paths.find(|path| is_plain && path.is_file())
}

fn read_from(file: &mut File, from: u64, to: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(to - from).ok()?);
    file.seek(SeekFrom::Start(from)).ok()?;
    file.take(to - from).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
    ends.scan(0, |start, end| Some(&bytes[std::mem::replace(start, end + 1)..end]))
}

/// Finds a position before the loop's first entry, near to it: goes back in growing steps, then halves the last one.
fn position_before(file: &mut File, length: u64, since: Stamp) -> Option<u64> {
    let mut is_before = |from: u64| -> Option<bool> {
        let head = read_from(file, from, (from + FIRST_STEP_BYTES).min(length))?;
        let first = split(&head).skip(1).filter_map(parse).find_map(|line| line.at());
        Some(first.is_some_and(|at| at < since))
    };
    let (mut from, mut to) = (length.saturating_sub(FIRST_STEP_BYTES), length);
    while from > 0 && !is_before(from)? {
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
    is_api_error_message: Option<bool>,
    #[serde(borrow)]
    prompt_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    quota_limits: Option<&'a RawValue>,
    #[serde(borrow)]
    operation: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    attachment: Option<&'a RawValue>,
    #[serde(rename = "costUSD")]
    cost: Option<f64>,
    #[serde(rename = "totalCostUSD")]
    session_cost: Option<f64>,
}

impl<'a> Line<'a> {
    fn at(&self) -> Option<Stamp> {
        Stamp::parse(&serde_json::from_str::<String>(self.timestamp?.get()).ok()?)
    }

    /// Returns the reset time from a usage-limit entry that replaced the model's answer.
    fn limit_resets_at(&self) -> Option<Stamp> {
        let limits: serde_json::Value = serde_json::from_str(self.quota_limits?.get()).ok()?;
        serde_json::from_value(limits["resetsAt"].clone()).ok()
    }

    /// Returns whether this is the context by which a Stop hook continued the turn.
    fn is_stop_context(&self) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Attachment<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            hook_event: Cow<'a, str>,
        }
        let parsed = self.attachment.and_then(|raw| serde_json::from_str::<Attachment>(raw.get()).ok());
        parsed.is_some_and(|it| it.kind == "hook_additional_context" && it.hook_event == "Stop")
    }

    fn message(&self) -> Option<Message<'a>> {
        serde_json::from_str(self.message?.get()).ok()
    }
}

fn parse(line: &[u8]) -> Option<Line<'_>> {
    if line.len() < 2 {
        return None;
    }
    parse_json(line).ok()
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
    calls: Vec<TranscriptToolCall>,
    /// The id of each result, and whether the tool failed.
    results: Vec<(String, bool)>,
}

struct TranscriptToolCall {
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

/// Returns an id, without what makes it too long to be one.
fn short(id: Option<Cow<str>>) -> String {
    let id = id.unwrap_or_default();
    if id.len() > MAX_ID_BYTES { id.chars().take(MAX_ID_BYTES / 4).collect() } else { id.into_owned() }
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
                            content.calls.push(TranscriptToolCall {
                                id: short(block.id),
                                writes: !READING_TOOLS.contains(&name.as_ref()),
                                edits: EDITING_TOOLS.contains(&name.as_ref()),
                            });
                        }
                        Some("tool_result") => {
                            let id = short(block.tool_use_id);
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
    const ATTACHMENT: &[u8] = b",\"attachment\":{";
    if let Some(kind) = line.strip_prefix(b"{\"type\":\"") {
        return !RELEVANT.iter().any(|name| kind.starts_with(name));
    }
    let head = &line[..line.len().min(96)];
    if !head.starts_with(b"{\"parentUuid\":") {
        return false;
    }
    let attachment = memchr::memmem::find(head, ATTACHMENT).map(|at| &line[at + ATTACHMENT.len()..]);
    attachment.is_some_and(|attachment| !attachment.starts_with(b"\"type\":\"hook_additional_context\""))
}

struct Reader {
    gained: TranscriptGain,
    /// Ids of edits without a result so far.
    editing: Vec<String>,
    /// Entries before this time do not belong to the loop.
    since: Stamp,
    /// Made when less than everything is asked for.
    needles: Option<Needles>,
}

impl Reader {
    fn visit(&mut self, bytes: &[u8], level: ReadLevel) -> LineUse {
        if is_irrelevant(bytes) {
            return LineUse::Irrelevant;
        }
        if level > ReadLevel::Everything {
            let needles = self.needles.get_or_insert_with(Needles::new);
            let is_asked_for = match level {
                ReadLevel::UserInputOnly => needles.is_command(bytes),
                _ => bytes.len() <= SHORT_ENTRY_BYTES || needles.decides(bytes),
            };
            if !is_asked_for {
                return if needles.is_result(bytes) { LineUse::Irrelevant } else { LineUse::Skipped };
            }
        }
        self.line(bytes);
        LineUse::Parsed
    }

    fn line(&mut self, bytes: &[u8]) {
        let Some(line) = parse(bytes) else { return };
        if let Some(cost) = line.session_cost.filter(|_| line.kind.as_deref() == Some("cost-state")) {
            self.session_cost(cost);
        }
        let Some(at) = line.at().filter(|at| *at >= self.since) else { return };
        match line.kind.as_deref() {
            Some("queue-operation") => self.queue(&line, at),
            Some("assistant") if line.is_sidechain != Some(true) => self.assistant(&line, at),
            Some("user") if line.is_sidechain != Some(true) => self.user(&line, at),
            Some("attachment") if line.is_stop_context() => self.evidence(at, TranscriptEvent::Sent),
            _ => {}
        }
    }

    fn assistant(&mut self, line: &Line, at: Stamp) {
        let Some(message) = line.message() else { return };
        self.evidence(at, TranscriptEvent::Answer);
        if line.is_api_error_message != Some(true) {
            self.gained.answered_at = self.gained.answered_at.max(Some(at));
        }
        self.gained.limit_resets_at = line.limit_resets_at();
        self.gained.tools_used += message.content.calls.len() as u64;
        for call in message.content.calls {
            self.gained.tools_that_write += u64::from(call.writes);
            self.gained.edits += u64::from(call.edits);
            if call.edits {
                self.editing.drain(..(self.editing.len() + 1).saturating_sub(MAX_OPEN_EDITS));
                self.editing.push(call.id.clone());
            }
            self.evidence(at, TranscriptEvent::Call(call.id));
        }
        if let Some(text) = message.content.text {
            self.gained.last_text = Some(text.into_owned());
        }
        self.add_cost(line.cost);
        // Each block of a message is an entry, and repeats the message's usage.
        let id = message.id.unwrap_or_default();
        if id.is_empty() || id.len() > MAX_ID_BYTES || self.gained.reading.counted_message == id {
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
        if let Some(id) = line.prompt_id.as_ref().filter(|id| id.len() <= MAX_ID_BYTES) {
            self.gained.reading.prompt_id = id.clone().into_owned();
        }
        let content = message.content;
        for (id, failed) in &content.results {
            if let Some(edit) = self.editing.iter().position(|edit| edit == id) {
                self.editing.swap_remove(edit);
                // A failed edit changed nothing.
                self.gained.edits -= u64::from(*failed);
            }
            self.evidence(at, TranscriptEvent::Result(id.clone()));
        }
        let Some(text) = content.text else { return };
        // Claude Code answers `/compact` and `/clear` itself; the agent does not read them.
        if text.starts_with("<local-command") || text.starts_with("<command-name>") {
            return;
        }
        if is_interruption(&text) {
            self.gained.interrupted_at = Some(at);
            self.evidence(at, TranscriptEvent::Interrupt);
        } else if line.is_meta == Some(true) {
            self.evidence(at, TranscriptEvent::Sent);
        } else if content.results.is_empty() {
            self.evidence(at, TranscriptEvent::Prompt);
        }
    }

    fn evidence(&mut self, at: Stamp, event: TranscriptEvent) {
        if self.gained.evidence.len() == MAX_TIMED_EVENTS {
            self.gained.evidence.drain(..MAX_TIMED_EVENTS / 2);
        }
        self.gained.evidence.push(TimedEvent { at, event });
    }

    /// Follows Claude Code's queue of what the user typed while the agent works.
    fn queue(&mut self, line: &Line, at: Stamp) {
        let text = line.content.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let text = clean::excerpt(&text.unwrap_or_default(), 200);
        let queue = &mut self.gained.reading.queue;
        match line.operation.as_deref() {
            Some("enqueue") if queue.len() < MAX_QUEUED_PROMPTS => queue.push(QueuedPrompt { text, at }),
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
        let Some(total) = figures::usable_usd(Some(total)) else { return };
        let before = self.gained.reading.session_cost_usd.replace(total);
        self.add_cost(before.map(|before| total - before));
    }

    fn add_cost(&mut self, cost: Option<f64>) {
        if let Some(cost) = figures::usable_usd(cost).filter(|cost| *cost > 0.0) {
            *self.gained.usage.cost_usd.get_or_insert(0.0) += cost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::record::{LoopState, Timing, TranscriptPosition};
    use crate::store::world::Instant;
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

        fn read(&self, run: &StoredLoop) -> TranscriptGain {
            read_until(self.0.path(), run, Deadlines::each(Duration::from_secs(600))).unwrap()
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
        let (call, result) = (TranscriptEvent::Call("t1".into()), TranscriptEvent::Result("t1".into()));
        assert_eq!(
            kinds,
            [
                TranscriptEvent::Prompt,
                TranscriptEvent::Answer,
                TranscriptEvent::Answer,
                call,
                result,
                TranscriptEvent::Answer,
                TranscriptEvent::Sent
            ]
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
    fn the_context_by_which_a_hook_continues_a_turn_was_sent_to_the_model() {
        let attachment = |kind: &str, event: &str| {
            let parent = "727777e4-3a5c-416b-a4af-2e37f4d401cd";
            let (fields, at) = (r#""type":"attachment","timestamp":"#, "2026-11-16T08:00:03.000Z");
            format!(
                r#"{{"parentUuid":"{parent}","isSidechain":false,"attachment":{{"type":"{kind}","content":["on"],"hookName":"Stop","hookEvent":"{event}"}},{fields}"{at}"}}"#
            ) + "\n"
        };
        for (kind, event, expected) in [
            ("hook_additional_context", "Stop", &[TranscriptEvent::Sent][..]),
            ("hook_additional_context", "SessionStart", &[]),
            ("hook_system_message", "Stop", &[]),
        ] {
            let gained = Transcript::of(&[attachment(kind, event)]).read(&run());
            let events: Vec<_> = gained.evidence.into_iter().map(|evidence| evidence.event).collect();
            assert_eq!(events, expected, "{kind} of {event}");
        }
    }

    #[test]
    fn a_transcript_that_moved_along_with_the_agent_is_read_on() {
        let lines = [assistant(1, "m1", CALL), assistant(2, "m2", TEXT)];
        let transcript = Transcript::of(&lines);
        let mut run = run();
        run.session.transcript = transcript.read(&run).reading;
        let other = tempfile::tempdir().unwrap();
        let moved = other.path().join(transcript.0.path().file_name().unwrap());
        std::fs::write(&moved, [lines.concat(), assistant(3, "m3", TEXT)].concat()).unwrap();
        let gained = read(&moved, &run).unwrap();
        assert_eq!((gained.tools_used, gained.usage.input_tokens), (0, 10), "nothing is counted twice");
        assert_eq!(gained.reading.path, moved.to_str().unwrap());
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
        shrunk.session.transcript = TranscriptPosition {
            path: transcript.0.path().display().to_string(),
            offset: Some(1 << 40),
            ..TranscriptPosition::default()
        };
        assert_eq!(
            transcript.read(&shrunk).tools_used,
            1,
            "a file that was replaced by a shorter one is read from the start"
        );
    }

    /// Adds so much that is no entry: a hole in the file, which takes no time to write.
    fn add_megabytes(transcript: &mut Transcript, count: i64) {
        let file = transcript.0.as_file_mut();
        let end = file.seek(SeekFrom::End(count << 20)).unwrap();
        file.set_len(end).unwrap();
        transcript.add(&["\n".to_owned()]);
    }

    #[test]
    fn what_decides_is_found_before_and_after_a_hundred_megabytes() {
        let esc = r#""message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}"#;
        let mut transcript =
            Transcript::of(&[assistant(1, "m1", TEXT), queue("enqueue", "/a"), user(2, esc)]);
        let mut known = run();
        known.session.transcript = TranscriptPosition {
            path: transcript.0.path().display().to_string(),
            offset: Some(0),
            ..TranscriptPosition::default()
        };
        add_megabytes(&mut transcript, 50);
        let output = format!(r#"{{"type":"file-history","x":"{}"}}"#, "y".repeat(1 << 20)) + "\n";
        transcript.add(&[assistant(3, "m2", CALL), output.repeat(3)]);
        add_megabytes(&mut transcript, 50);
        transcript.add(&[assistant(4, "m3", TEXT)]);
        for run in [known, run()] {
            let gained = transcript.read(&run);
            assert_eq!(gained.interrupted_at, Stamp::parse("2026-11-16T08:00:02Z"));
            assert_eq!(gained.reading.queue.len(), 1);
            assert_eq!((gained.tools_used, gained.usage.input_tokens), (1, 30));
            let length = transcript.0.path().metadata().unwrap().len();
            assert_eq!(gained.reading.offset, Some(length));
        }
    }

    /// Entries as the client writes them, with their type behind other fields: 1 KB each, as many as make megabytes.
    fn megabytes(count: usize, block: &str) -> String {
        let usage = r#""usage":{"input_tokens":1,"output_tokens":1}"#;
        let (parent, at) = ("727777e4-3a5c-416b-a4af-2e37f4d401cd", "2026-11-16T08:00:03.000Z");
        let entry = |n: usize| {
            let message = format!(r#"{{"id":"m{n}","content":[{block}],{usage}}}"#);
            let entry = format!(
                r#"{{"parentUuid":"{parent}","isSidechain":false,"message":{message},"type":"assistant","timestamp":"{at}""#
            );
            format!("{entry:<1022}}}\n")
        };
        (0..count << 10).map(entry).collect()
    }

    #[test]
    fn what_decides_is_found_amid_short_entries_of_any_number() {
        let (before, after) = (megabytes(40, TEXT), megabytes(24, TEXT));
        let esc = r#""promptId":"p7","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}"#;
        let deciding = [queue("enqueue", "/ralph:stop"), user(7, esc)];
        let transcript = Transcript::of(&[before, deciding.concat(), after, assistant(9, "last", TEXT)]);
        let gained = transcript.read(&run());
        assert_eq!(gained.usage.input_tokens, (64 << 10) + 10, "all tokens count");
        let (later, now) = (Duration::from_secs(600), Instant::now());
        let no_time = Deadlines { whole: now, deciding: now, ..Deadlines::each(later) };
        let searched = read_until(transcript.0.path(), &run(), no_time).unwrap();
        for gained in [&gained, &searched] {
            assert_eq!(gained.interrupted_at, Stamp::parse("2026-11-16T08:00:07Z"));
            assert_eq!(gained.reading.queue[0].text, "/ralph:stop");
            assert_eq!((gained.reading.prompt_id.as_str(), gained.unread_bytes), ("p7", 0));
        }
        assert_eq!((gained.uncounted_bytes, searched.uncounted_bytes >> 20), (0, 59), "it is told");
    }

    #[test]
    fn a_large_entry_of_the_conversation_is_read() {
        let large = "x".repeat(3 << 20);
        let prompt = format!(r#""promptId":"p9","message":{{"content":"{large}"}}"#);
        let text = format!(r#"{{"type":"text","text":"{large}"}}"#);
        let gained = Transcript::of(&[user(1, &prompt), assistant(2, "m", &text)]).read(&run());
        assert_eq!((gained.reading.prompt_id.as_str(), gained.usage.input_tokens), ("p9", 10));
        assert_eq!(gained.last_text, Some(large));
    }

    #[test]
    fn without_time_the_newest_entries_are_read_and_the_rest_is_unknown() {
        let mut transcript = Transcript::of(&[queue("enqueue", "/a")]);
        add_megabytes(&mut transcript, 20);
        transcript.add(&[queue("enqueue", "/b"), assistant(9, "m", TEXT)]);
        let gained = read_until(transcript.0.path(), &run(), Deadlines::each(Duration::ZERO)).unwrap();
        assert_eq!(gained.unread_bytes >> 20, 15, "it is told");
        assert_eq!(gained.reading.queue.last().map(|queued| queued.text.as_str()), Some("/b"));
        assert_eq!(gained.last_text.as_deref(), Some("done"));
        assert_eq!((gained.tools_used, gained.tools_that_write), (1, 1), "it may have been anything");
        assert_eq!(gained.reading.offset, Some(transcript.0.path().metadata().unwrap().len()));
    }

    #[test]
    fn entries_without_number_keep_the_newest() {
        let line = assistant(1, "m", r#"{"type":"tool_use","id":"t","name":"Edit"}"#);
        let mut transcript = Transcript::of(&[line.repeat(MAX_TIMED_EVENTS / 2 + 10)]);
        transcript.add(&[assistant(5, "n", TEXT)]);
        let gained = transcript.read(&run());
        assert!(gained.evidence.len() < MAX_TIMED_EVENTS);
        assert_eq!(gained.evidence.last().unwrap().at, Stamp::parse("2026-11-16T08:00:05Z").unwrap());
        assert_eq!(gained.tools_used, MAX_TIMED_EVENTS as u64 / 2 + 10);
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

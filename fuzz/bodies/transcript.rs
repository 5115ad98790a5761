//! The transcript: read in two parts it says what it says at once, and what came before the loop says
//! nothing.

use ralph::claude::transcript;
use ralph::core::decide::turn::TranscriptGain;
use ralph::core::record::{Session, StoredLoop, Timing, TranscriptPosition, Usage};
use ralph::core::time::Stamp;
use ralph::core::time::runtime::TimedEvent;
use std::io::Write;
use std::path::Path;
use tempfile::NamedTempFile;

/// 2026-11-16, 08:00 UTC.
const ARMED_AT: Stamp = Stamp(1_794_816_000_000);
/// So much is looked at first; what is longer may begin in the middle.
const FIRST_STEP: usize = 32 << 10;

pub fn check(bytes: &[u8]) {
    in_two_parts(bytes, cut(bytes));
    after_a_long_session(bytes);
}

/// Anywhere, but for the same bytes at the same place.
fn cut(bytes: &[u8]) -> usize {
    let sum = bytes.iter().fold(7usize, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    sum % (bytes.len() + 1)
}

fn in_two_parts(bytes: &[u8], cut: usize) {
    let mut file = NamedTempFile::new().expect("a temporary file");
    let mut run = from_the_beginning(file.path());
    file.write_all(&bytes[..cut]).expect("a transcript");
    let mut parts = Totals::default();
    run.session.transcript = parts.add(transcript::read(file.path(), &run).expect("the first part"));
    file.write_all(&bytes[cut..]).expect("a transcript");
    let last = parts.add(transcript::read(file.path(), &run).expect("the second part"));
    let mut whole = Totals::default();
    let reading =
        whole.add(transcript::read(file.path(), &from_the_beginning(file.path())).expect("the whole"));
    parts.is(&whole);
    reads_on_alike(&last, &reading);
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    assert_eq!(reading.offset, Some(end as u64), "half a line was read, or a whole one left");
}

/// A loop for which all entries count, and all that the session spends.
fn from_the_beginning(path: &Path) -> StoredLoop {
    let path = path.to_str().expect("a plain path").to_owned();
    let reading = TranscriptPosition { path, session_cost_usd: Some(0.0), ..TranscriptPosition::default() };
    StoredLoop {
        timing: Timing { armed_at: Stamp(i64::MIN), ..Timing::default() },
        session: Session { transcript: reading, ..Session::default() },
        ..StoredLoop::default()
    }
}

fn after_a_long_session(bytes: &[u8]) {
    let line = format!(
        r#"{{"type":"assistant","timestamp":"2026-11-16T07:00:00Z","message":{{"id":"old","content":"{}"}}}}"#,
        "x".repeat(1000)
    );
    let before = format!("{line}\n").repeat(FIRST_STEP / line.len() + 3);
    if bytes.len() > FIRST_STEP - 3 * line.len() {
        return;
    }
    let run =
        StoredLoop { timing: Timing { armed_at: ARMED_AT, ..Timing::default() }, ..StoredLoop::default() };
    let read = |parts: &[&[u8]]| {
        let mut file = NamedTempFile::new().expect("a temporary file");
        parts.iter().for_each(|part| file.write_all(part).expect("a transcript"));
        transcript::read(file.path(), &run).expect("a transcript that can be read")
    };
    let (mut alone, mut behind) = (Totals::default(), Totals::default());
    let reading = alone.add(read(&[bytes]));
    let long = behind.add(read(&[before.as_bytes(), bytes]));
    behind.is(&alone);
    assert_eq!(long.offset, reading.offset.map(|offset| offset + before.len() as u64));
    assert!(behind.evidence.iter().all(|evidence| evidence.at >= ARMED_AT), "older than the loop");
}

/// What one or several readings gave, put together as a loop does it.
#[derive(Default)]
struct Totals {
    evidence: Vec<TimedEvent>,
    tools: (u64, u64),
    interrupted_at: Option<Stamp>,
    last_text: Option<String>,
    usage: Usage,
}

impl Totals {
    fn add(&mut self, gained: TranscriptGain) -> TranscriptPosition {
        self.evidence.extend(gained.evidence);
        self.tools.0 += gained.tools_used;
        self.tools.1 += gained.tools_that_write;
        self.interrupted_at = gained.interrupted_at.or(self.interrupted_at);
        self.last_text = gained.last_text.or(self.last_text.take());
        self.usage.add(&gained.usage);
        gained.reading
    }

    fn is(&self, other: &Totals) {
        assert_eq!(self.evidence, other.evidence);
        assert_eq!(self.tools, other.tools);
        assert!(self.tools.1 <= self.tools.0);
        assert_eq!(self.interrupted_at, other.interrupted_at);
        assert_eq!(self.last_text, other.last_text);
        let tokens = |usage: &Usage| Usage { cost_usd: None, ..usage.clone() };
        assert_eq!(tokens(&self.usage), tokens(&other.usage));
        let (a, b) = (self.usage.cost_usd, other.usage.cost_usd);
        // Sums of fractions differ in their last digits with the order.
        let close = a == b || a.zip(b).is_some_and(|(a, b)| (a - b).abs() <= a.abs() * 1e-9);
        assert!(close, "cost {a:?} is not {b:?}");
    }
}

fn reads_on_alike(a: &TranscriptPosition, b: &TranscriptPosition) {
    assert_eq!(a, b, "what is remembered differs");
}

//! What the state file says: loops by session id, guidance, constraints.
//!
//! Values stay the text they were read as until they are asked for. So a hook parses only its own loop, damage inside
//! a loop costs only that loop, and what this version does not know survives to the letter.

use super::VERSION;
use super::fields::{Fields, needs_no_escape, pretty_inside, walk};
use crate::core::guidance::Guidance;
use crate::core::guidance::finding::Finding;
use crate::core::record::StoredLoop;
use crate::core::time::Stamp;
use anyhow::Result;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;

/// Longer than any id the client gives.
pub const MAX_SESSION_ID_BYTES: usize = 256;

/// Far above what we write: a hundred entries, a hundred findings.
const MAX_GUIDANCE_BYTES: usize = 4 << 20;
const MAX_FINDINGS_BYTES: usize = 1 << 20;

/// Returns whether a loop can be kept under this session id.
pub fn usable_session_id(id: &str) -> bool {
    !id.trim().is_empty() && id.len() <= MAX_SESSION_ID_BYTES && !id.chars().any(char::is_control)
}

#[derive(Clone, Debug, Default)]
pub struct Document {
    pub(super) version: Option<u64>,
    pub(super) loops: Fields,
    /// Every other field, in the order it was found.
    pub(super) rest: Fields,
    /// It says something else than the file.
    pub(super) changed: bool,
    /// The user's guidance as it was last set, for the record of it (`store::user::given`).
    given: Option<Guidance>,
}

impl Document {
    #[doc(hidden)]
    pub fn parse(bytes: &[u8]) -> Result<Document, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        Document::read(text.trim_ascii_start()).ok_or_else(|| {
            match serde_json::from_str::<IgnoredAny>(text) {
                Err(error) => error.to_string(),
                Ok(_) => "it is not an object with loops by session id".to_owned(),
            }
        })
    }

    fn read(text: &str) -> Option<Document> {
        let mut document = Document::default();
        let rest = walk(text, |name, value| {
            if name == "loops" && !value.starts_with("null") {
                let (loops, rest) = Fields::split(value)?;
                document.loops = loops;
                return Some(rest);
            }
            let mut values = serde_json::Deserializer::from_str(value).into_iter::<&RawValue>();
            let raw = values.next()?.ok()?.get();
            match name.as_str() {
                "loops" => {}
                // A version that is not a number can only come from a later Ralph.
                "version" => document.version = (raw != "null").then(|| raw.parse().unwrap_or(u64::MAX)),
                _ => document.rest.0.push((name, raw.into())),
            }
            value.get(values.byte_offset()..)
        })?;
        rest.trim_ascii().is_empty().then_some(document)
    }

    /// Renders the file: pretty-printed, except for values that came in another form and were not changed.
    #[doc(hidden)]
    pub fn write(&self) -> Vec<u8> {
        let fields = || self.loops.0.iter().chain(&self.rest.0);
        let mut out = String::with_capacity(
            64 + fields().map(|(name, raw)| name.len() + raw.len() + 16).sum::<usize>(),
        );
        out.push_str(&format!("{{\n  \"version\": {},\n  \"loops\": {{", self.version.unwrap_or(VERSION)));
        for (index, (session, raw)) in self.loops.0.iter().enumerate() {
            out.push_str(if index == 0 { "\n    " } else { ",\n    " });
            write_field(&mut out, session, raw);
        }
        out.push_str(if self.loops.0.is_empty() { "}" } else { "\n  }" });
        for (name, raw) in &self.rest.0 {
            out.push_str(",\n  ");
            write_field(&mut out, name, raw);
        }
        out.push_str("\n}\n");
        out.into_bytes()
    }

    pub fn version(&self) -> Option<u64> {
        self.version
    }

    pub fn newer_than_us(&self) -> bool {
        self.version.is_some_and(|version| version > VERSION)
    }

    pub fn loop_of(&self, session: &str) -> Option<StoredLoop> {
        if !usable_session_id(session) {
            return None;
        }
        serde_json::from_str(self.loops.get(session)?).ok()
    }

    /// Returns the session ids under which something is kept that cannot be read as a loop.
    pub fn unreadable(&self) -> impl Iterator<Item = &str> {
        let is_loop = |raw: &str| serde_json::from_str::<StoredLoop>(raw).is_ok();
        self.loops.0.iter().filter(move |(_, raw)| !is_loop(raw)).map(|(session, _)| session.as_str())
    }

    /// Returns whether something is kept for this session that cannot be read as a loop.
    pub fn is_unreadable(&self, session: &str) -> bool {
        self.loops.get(session).is_some_and(|raw| serde_json::from_str::<StoredLoop>(raw).is_err())
    }

    pub fn set_loop(&mut self, session: &str, run: &StoredLoop) -> Result<()> {
        self.changed |= self.loops.put(session, pretty_inside(run)?);
        Ok(())
    }

    pub fn remove_loop(&mut self, session: &str) {
        self.remove_loops(&HashSet::from([session.to_owned()]));
    }

    pub fn remove_loops(&mut self, sessions: &HashSet<String>) {
        let before = self.loops.0.len();
        self.loops.0.retain(|(id, _)| !sessions.contains(id));
        self.changed |= self.loops.0.len() < before;
    }

    /// Returns every loop that can be read, with its session id. A file may hold any number of them, so each is read
    /// when it is asked for.
    pub fn loops(&self) -> impl Iterator<Item = (String, StoredLoop)> {
        let read = |(id, raw): &(String, Box<str>)| Some((id.clone(), serde_json::from_str(raw).ok()?));
        self.loops.0.iter().filter_map(read)
    }

    /// Returns the loops whose session id and run id are wanted. Of the others nothing else is read.
    pub fn loops_where(
        &self,
        wanted: impl Fn(&str, &str) -> bool,
    ) -> impl Iterator<Item = (String, StoredLoop)> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow, default)]
            run_id: Cow<'a, str>,
        }
        self.loops.0.iter().filter_map(move |(id, raw)| {
            let head: Head = serde_json::from_str(raw).ok()?;
            let stored = wanted(id, &head.run_id).then(|| serde_json::from_str(raw).ok());
            Some((id.clone(), stored??))
        })
    }

    /// Returns the findings of the last scan as they were written.
    pub fn constraints(&self) -> Value {
        let raw = self.rest.get("constraints").filter(|raw| raw.len() <= MAX_FINDINGS_BYTES);
        let list = raw.and_then(|raw| serde_json::from_str(raw).ok());
        list.filter(Value::is_array).unwrap_or_else(|| Value::Array(Vec::new()))
    }

    /// Returns the findings of the last scan as this version understands them.
    pub fn findings(&self) -> Vec<Finding> {
        serde_json::from_value(self.constraints()).unwrap_or_default()
    }

    /// Returns when the last complete scan was.
    pub fn scanned_at(&self) -> Option<Stamp> {
        self.rest.get("scanned_at").and_then(|raw| serde_json::from_str(raw).ok())
    }

    /// Returns the git worktree that the last complete scan was of; empty for the project itself.
    pub fn scanned_in(&self) -> String {
        self.rest.get("scanned_in").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default()
    }

    pub fn set_scanned_in(&mut self, work_tree: &str) -> Result<()> {
        if self.scanned_in() != work_tree {
            self.changed |= self.rest.set("scanned_in", &work_tree.to_owned())?;
        }
        Ok(())
    }

    pub fn set_findings(&mut self, findings: &Vec<Finding>, at: Stamp) -> Result<()> {
        self.changed |= self.rest.set("constraints", findings)?;
        self.set_scanned_at(at)
    }

    /// Sets the time of the last scan. It alone is not worth a write; it goes with the next one.
    pub fn set_scanned_at(&mut self, at: Stamp) -> Result<()> {
        let first = self.scanned_at().is_none();
        self.changed |= self.rest.set("scanned_at", &at)? && first;
        Ok(())
    }

    /// Returns the guidance that the file states, which anyone may have written: `store::user::given` tells what of it
    /// the user gave. More bytes than we ever write are not ours.
    pub fn stated_guidance(&self) -> Guidance {
        let raw = self.rest.get("guidance").filter(|raw| raw.len() <= MAX_GUIDANCE_BYTES);
        raw.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default()
    }

    /// Returns the user's guidance if it was set here.
    pub fn given(&self) -> Option<&Guidance> {
        self.given.as_ref()
    }

    pub fn set_guidance(&mut self, guidance: &Guidance) -> Result<()> {
        self.given = Some(guidance.as_given());
        if self.rest.get("guidance").is_some() || !(guidance.is_empty() && guidance.foreign.is_empty()) {
            self.changed |= match guidance.foreign.is_empty() {
                true => self.rest.set("guidance", guidance)?,
                false => self.rest.set("guidance", &guidance.with_foreign())?,
            };
        }
        Ok(())
    }
}

fn write_field(out: &mut String, name: &str, raw: &str) {
    if needs_no_escape(name) {
        out.extend(["\"", name, "\""]);
    } else {
        out.push_str(&serde_json::to_string(name).unwrap_or_default());
    }
    out.push_str(": ");
    out.push_str(raw);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_survive_to_the_letter() {
        let text = r#"{"future":{"a": [1, 2.50]},"version":1,"loops":{"s 1":{"run_id":"r","x":  "y"},"odd":[1]},"guidance":null}"#;
        let mut document = Document::parse(text.as_bytes()).unwrap();
        let run = document.loop_of("s 1").unwrap();
        assert!(document.loop_of("odd").is_none());
        document.set_loop("s 2", &run).unwrap();
        let written = String::from_utf8(document.write()).unwrap();
        for kept in [r#""future": {"a": [1, 2.50]}"#, r#""s 1": {"run_id":"r","x":  "y"}"#, r#""odd": [1]"#] {
            assert!(written.contains(kept), "{written}");
        }
        let again = Document::parse(written.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(again.write()).unwrap(), written);
        assert_eq!(again.loop_of("s 2"), Some(run));
    }

    #[test]
    fn what_we_write_is_pretty_printed_json() {
        let mut document = Document::default();
        let run = StoredLoop { run_id: "r".into(), task: "line\nline".into(), ..StoredLoop::default() };
        document.set_loop("s", &run).unwrap();
        document.set_findings(&Vec::new(), Stamp(0)).unwrap();
        let written = String::from_utf8(document.write()).unwrap();
        let value: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written, serde_json::to_string_pretty(&value).unwrap() + "\n");
    }

    #[test]
    fn nulls_are_absent_and_wrong_shapes_are_damage() {
        assert!(Document::parse(br#"{"version":null,"loops":null}"#).unwrap().loops().next().is_none());
        for damaged in ["", "[]", "{", "{\"loops\":[]}", "null", "{} {}"] {
            assert!(Document::parse(damaged.as_bytes()).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_file_cut_short_is_damaged() {
        let text = r#"{"loops":{"s 1":{"run_id":"r"},"s 2":{"x":[{}]}},"guidance":{"encouraged":[]}}"#;
        let written = Document::parse(text.as_bytes()).unwrap().write();
        for end in 0..written.trim_ascii_end().len() {
            assert!(Document::parse(&written[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn a_session_id_is_any_short_text_of_one_line() {
        for id in ["", "  ", "a\nb", &"x".repeat(257)] {
            assert!(!usable_session_id(id), "{id:?}");
        }
        assert!(usable_session_id("../../etc/passwd"), "it is only ever a key");
    }
}

//! What the state file says: loops by session id, guidance, constraints.
//!
//! Values stay the text they were read as until they are asked for. So a hook parses only its own loop, and what
//! this version does not know survives to the letter.

use super::VERSION;
use crate::core::guidance::Guidance;
use crate::core::guidance::finding::Finding;
use crate::core::record::StoredLoop;
use crate::core::time::Stamp;
use anyhow::Result;
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// Longer than any id the client gives.
pub const MAX_SESSION_ID_BYTES: usize = 256;

/// Returns whether a loop can be kept under this session id.
pub fn usable_session_id(id: &str) -> bool {
    !id.trim().is_empty() && id.len() <= MAX_SESSION_ID_BYTES && !id.chars().any(char::is_control)
}

#[derive(Clone, Debug, Default)]
pub struct Document {
    version: Option<u64>,
    loops: Fields,
    /// Every other field, in the order it was found.
    rest: Fields,
    /// It says something else than the file.
    pub(super) changed: bool,
}

impl Document {
    #[doc(hidden)]
    pub fn parse(bytes: &[u8]) -> Result<Document, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Renders the file: pretty-printed, except for values that came in another form and were not changed.
    #[doc(hidden)]
    pub fn write(&self) -> Vec<u8> {
        let mut out = format!("{{\n  \"version\": {},\n  \"loops\": {{", self.version.unwrap_or(VERSION));
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

    pub fn set_loop(&mut self, session: &str, run: &StoredLoop) -> Result<()> {
        self.changed |= self.loops.put(session, pretty(run, 2)?);
        Ok(())
    }

    pub fn remove_loop(&mut self, session: &str) {
        self.loops.0.retain(|(id, _)| id != session);
        self.changed = true;
    }

    /// Returns every loop that can be read, with its session id.
    pub fn loops(&self) -> Vec<(String, StoredLoop)> {
        let read = |(id, raw): &(String, Box<str>)| Some((id.clone(), serde_json::from_str(raw).ok()?));
        self.loops.0.iter().filter_map(read).collect()
    }

    /// Returns the findings of the last scan as they were written.
    pub fn constraints(&self) -> Value {
        let list = self.rest.get("constraints").and_then(|raw| serde_json::from_str(raw).ok());
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

    pub fn guidance(&self) -> Guidance {
        self.rest.get("guidance").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default()
    }

    pub fn set_guidance(&mut self, guidance: &Guidance) -> Result<()> {
        if self.rest.get("guidance").is_some() || *guidance != Guidance::default() {
            self.changed |= self.rest.set("guidance", guidance)?;
        }
        Ok(())
    }
}

fn write_field(out: &mut String, name: &str, raw: &str) {
    out.push_str(&serde_json::to_string(name).unwrap_or_default());
    out.push_str(": ");
    out.push_str(raw);
}

/// Renders a value as it stands at this depth of the file.
fn pretty(value: &impl Serialize, depth: usize) -> Result<Box<str>> {
    // A newline inside a string is escaped, so every one of these begins a line.
    let text = serde_json::to_string_pretty(value)?;
    Ok(text.replace('\n', &format!("\n{}", "  ".repeat(depth))).into())
}

/// A JSON object whose values stay as they were written.
#[derive(Clone, Debug, Default)]
struct Fields(Vec<(String, Box<str>)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, raw)| raw.as_ref())
    }

    /// Sets a value and returns whether that is a change; the same value in another form is none.
    fn set<T: Serialize + DeserializeOwned + PartialEq>(&mut self, name: &str, value: &T) -> Result<bool> {
        let old = self.get(name).and_then(|raw| serde_json::from_str::<T>(raw).ok());
        Ok(old.is_none_or(|old| old != *value) && self.put(name, pretty(value, 1)?))
    }

    fn put(&mut self, name: &str, raw: Box<str>) -> bool {
        match self.0.iter_mut().rev().find(|(key, _)| key == name) {
            Some((_, slot)) if *slot == raw => return false,
            Some((_, slot)) => *slot = raw,
            None => self.0.push((name.to_owned(), raw)),
        }
        true
    }
}

/// Reads the file in one pass, without going through the loops' text twice.
impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Document;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let mut document = Document::default();
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        // A version that is not a number can only come from a later Ralph.
                        "version" => {
                            let version = map.next_value::<Value>()?;
                            document.version =
                                (!version.is_null()).then(|| version.as_u64().unwrap_or(u64::MAX));
                        }
                        "loops" => document.loops = map.next_value::<Option<Fields>>()?.unwrap_or_default(),
                        _ => document.rest.0.push((name, map.next_value::<&RawValue>()?.get().into())),
                    }
                }
                Ok(document)
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some((name, raw)) = map.next_entry::<String, &RawValue>()? {
                    fields.0.push((name, raw.get().into()));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Collect)
    }
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
        assert!(Document::parse(br#"{"version":null,"loops":null}"#).unwrap().loops().is_empty());
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

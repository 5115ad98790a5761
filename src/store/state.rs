//! `.claude/ralph-state.json`: loops by session id, guidance, constraints.
//!
//! The document is kept as raw pieces and only what is asked for is parsed, so that a hook costs the
//! same with a hundred sessions in the file, and what this version does not know survives to the letter.

use super::file::{self, Privacy};
use super::lock::Lock;
use super::project::Project;
use crate::core::finding::Finding;
use crate::core::guidance::Guidance;
use crate::core::record::Loop;
use crate::core::time::Stamp;
use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::path::{Path, PathBuf};

pub const VERSION: u64 = 1;
const LARGEST: u64 = 64 << 20;
/// Longer than any id the client gives; more would only bloat the file.
pub const LONGEST_SESSION_ID: usize = 256;

/// Session ids we keep a loop for: without one there is no loop.
pub fn usable_session_id(id: &str) -> bool {
    !id.trim().is_empty() && id.len() <= LONGEST_SESSION_ID && !id.chars().any(char::is_control)
}

#[derive(Clone, Debug, Default)]
pub struct Document {
    version: Option<u64>,
    loops: Fields,
    /// Everything else, in the order it was found.
    rest: Fields,
    /// It says something else than the file.
    changed: bool,
}

#[derive(Debug)]
pub enum StateError {
    /// Written by a newer Ralph: may be read, must not be written.
    Newer(PathBuf, u64),
    /// Does not parse.
    Damaged(PathBuf, String),
    Other(anyhow::Error),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::Newer(path, version) => write!(
                f,
                "{} was written by a newer Ralph (version {version}, this one knows {VERSION}): upgrade this one",
                path.display()
            ),
            StateError::Damaged(path, why) => write!(f, "{} is damaged: {why}", path.display()),
            StateError::Other(error) => write!(f, "{error:#}"),
        }
    }
}

impl std::error::Error for StateError {}

impl From<anyhow::Error> for StateError {
    fn from(error: anyhow::Error) -> Self {
        StateError::Other(error)
    }
}

/// A look without the lock, for readers. Writes replace the file whole, so a look is never torn.
pub fn peek(project: &Project) -> Result<Option<Document>, StateError> {
    let path = project.resolve(&project.state())?;
    read(path)
}

fn read(path: PathBuf) -> Result<Option<Document>, StateError> {
    let Some(bytes) = file::read_bounded(&path, LARGEST)? else { return Ok(None) };
    match Document::parse(&bytes) {
        Ok(document) => Ok(Some(document)),
        Err(error) => Err(StateError::Damaged(path, error.to_string())),
    }
}

/// The state under its lock, from load to save.
pub struct Locked {
    pub document: Document,
    /// What happened to a damaged file, to be told.
    pub moved_aside: Option<String>,
    path: PathBuf,
    _lock: Lock,
}

impl Locked {
    /// Locks and loads. A damaged file is moved aside, never deleted; the state then begins anew.
    pub fn open(project: &Project, now: Stamp) -> Result<Locked, StateError> {
        Locked::open_with(project, now, Document::parse)
    }

    /// The same, for a session that cares for no other: it costs the same however many there are.
    pub fn open_for(session: &str, project: &Project, now: Stamp) -> Result<Locked, StateError> {
        Locked::open_with(project, now, |bytes| Document::parse_for(session, bytes))
    }

    fn open_with(
        project: &Project,
        now: Stamp,
        parse: impl Fn(&[u8]) -> Result<Document, serde_json::Error>,
    ) -> Result<Locked, StateError> {
        project.resolve(&project.claude_dir())?;
        let dir = project.claude_dir();
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("could not create the folder {}", dir.display()))?;
        let lock = Lock::acquire(&project.resolve(&project.lock())?)?;
        let path = project.resolve(&project.state())?;
        let bytes = file::read_bounded(&path, LARGEST)?;
        let mut moved_aside = None;
        let document = match bytes.as_deref().map(parse) {
            None => Document::default(),
            Some(Ok(document)) => document,
            Some(Err(error)) => {
                let aside =
                    free_name(&path.with_file_name(format!("ralph-state.json.corrupt-{}", now.compact())));
                std::fs::rename(&path, &aside)
                    .with_context(|| format!("could not move the damaged {} aside", path.display()))?;
                moved_aside =
                    Some(format!("{} was damaged ({error}) and is now {}", path.display(), aside.display()));
                Document::default()
            }
        };
        if let Some(version) = document.version.filter(|version| *version > VERSION) {
            return Err(StateError::Newer(path, version));
        }
        Ok(Locked { document, moved_aside, path, _lock: lock })
    }

    /// Writes the document where it changed.
    pub fn save(&mut self) -> Result<()> {
        self.save_by(file::replace_alone)
    }

    /// The same for who can do with the one before after a power cut, and saves again soon.
    pub fn save_between(&mut self) -> Result<()> {
        self.save_by(file::exchange_alone)
    }

    fn save_by(&mut self, write: impl Fn(&Path, &[u8], Privacy) -> Result<()>) -> Result<()> {
        if std::mem::take(&mut self.document.changed) {
            let written = write(&self.path, &self.document.write(), Privacy::Private);
            self.document.changed = written.is_err();
            written?;
        }
        Ok(())
    }
}

/// The name itself, or the first of its numbered successors that is free.
fn free_name(path: &Path) -> PathBuf {
    let taken = |path: &Path| path.symlink_metadata().is_ok();
    let numbered = (2..).map(|number| PathBuf::from(format!("{}-{number}", path.display())));
    std::iter::once(path.to_owned())
        .chain(numbered)
        .find(|path| !taken(path))
        .unwrap_or_else(|| path.to_owned())
}

impl Document {
    #[doc(hidden)]
    pub fn parse(bytes: &[u8]) -> Result<Document, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// For one session: the records of the others are not looked into where the file is as [`Document::write`]
    /// leaves it. Damage inside one of them is carried along, for whoever reads that record to find.
    #[doc(hidden)]
    pub fn parse_for(session: &str, bytes: &[u8]) -> Result<Document, serde_json::Error> {
        Document::by_lines(session, bytes).map_or_else(|| Document::parse(bytes), Ok)
    }

    fn by_lines(session: &str, bytes: &[u8]) -> Option<Document> {
        // Cut at single characters: longer patterns cost more than the parser that is spared.
        let text = std::str::from_utf8(bytes).ok()?.strip_prefix("{\n  \"version\": ")?;
        let (version, text) = text.split_once('\n')?;
        let version = version.strip_suffix(',')?.parse().ok()?;
        let mut text = text.strip_prefix("  \"loops\": {\n")?;
        let mut loops = Fields::default();
        loop {
            let (line, after) = text.split_once('\n')?;
            let (record, last) = line.strip_suffix(',').map_or((line, true), |record| (record, false));
            let (name, record) = record.strip_prefix("    \"")?.split_once('"')?;
            let record = record.strip_prefix(": ")?;
            if name.contains('\\') || !record.starts_with('{') || !record.ends_with('}') {
                return None;
            }
            if name == session {
                serde_json::from_str::<IgnoredAny>(record).ok()?;
            }
            loops.0.push((name.to_owned(), record.into()));
            text = after;
            if last {
                break;
            }
        }
        let rest = match text.strip_prefix("  },") {
            Some(rest) => serde_json::from_str(&format!("{{{rest}")).ok()?,
            None if text.trim_end() == "  }\n}" => Fields::default(),
            None => return None,
        };
        Some(Document { version: Some(version), loops, rest, changed: false })
    }

    /// One line for each loop: readable in an editor, small in a diff.
    #[doc(hidden)]
    pub fn write(&self) -> Vec<u8> {
        let mut out = format!("{{\n  \"version\": {},\n  \"loops\": {{", self.version.unwrap_or(VERSION));
        for (index, (session, raw)) in self.loops.0.iter().enumerate() {
            out.push_str(if index == 0 { "\n    " } else { ",\n    " });
            out.push_str(&quote(session));
            out.push_str(": ");
            out.push_str(raw);
        }
        out.push_str(if self.loops.0.is_empty() { "}" } else { "\n  }" });
        for (name, raw) in &self.rest.0 {
            out.push_str(",\n  ");
            out.push_str(&quote(name));
            out.push_str(": ");
            out.push_str(raw);
        }
        out.push_str("\n}\n");
        out.into_bytes()
    }

    pub fn newer_than_us(&self) -> bool {
        self.version.is_some_and(|version| version > VERSION)
    }

    pub fn loop_of(&self, session: &str) -> Option<Loop> {
        if !usable_session_id(session) {
            return None;
        }
        serde_json::from_str(self.loops.get(session)?).ok()
    }

    pub fn set_loop(&mut self, session: &str, lap: &Loop) -> Result<()> {
        self.changed |= self.loops.put(session, serde_json::to_string(lap)?.into());
        Ok(())
    }

    pub fn remove_loop(&mut self, session: &str) {
        self.loops.0.retain(|(id, _)| id != session);
        self.changed = true;
    }

    /// Every loop that can be read, with its session id.
    pub fn loops(&self) -> Vec<(String, Loop)> {
        self.loops
            .0
            .iter()
            .filter_map(|(id, raw)| Some((id.clone(), serde_json::from_str(raw).ok()?)))
            .collect()
    }

    /// The findings of the last scan, as they were written.
    pub fn constraints(&self) -> Value {
        let list = self.rest.get("constraints").and_then(|raw| serde_json::from_str(raw).ok());
        list.filter(Value::is_array).unwrap_or_else(|| Value::Array(Vec::new()))
    }

    /// The same, as this version understands them.
    pub fn findings(&self) -> Vec<Finding> {
        serde_json::from_value(self.constraints()).unwrap_or_default()
    }

    /// When the last whole scan was.
    pub fn scanned_at(&self) -> Option<Stamp> {
        self.rest.get("scanned_at").and_then(|raw| serde_json::from_str(raw).ok())
    }

    pub fn set_findings(&mut self, findings: &Vec<Finding>, at: Stamp) -> Result<()> {
        self.changed |= self.rest.set("constraints", findings)?;
        self.set_scanned_at(at)
    }

    /// The moment alone is not worth a write; it goes with the next one.
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

fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// A JSON object whose values stay as they were written.
#[derive(Clone, Debug, Default)]
struct Fields(Vec<(String, Box<str>)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, raw)| raw.as_ref())
    }

    /// True where this is a change; the same value in another dress is none.
    fn set<T: Serialize + DeserializeOwned + PartialEq>(&mut self, name: &str, value: &T) -> Result<bool> {
        let old = self.get(name).and_then(|raw| serde_json::from_str::<T>(raw).ok());
        Ok(old.is_none_or(|old| old != *value) && self.put(name, serde_json::to_string(value)?.into()))
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

/// In one pass: the loops' texts are not gone through twice.
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
                        // A version that is no number can only come from somebody later.
                        "version" => {
                            let version = map.next_value::<Value>()?;
                            document.version =
                                (!version.is_null()).then(|| version.as_u64().unwrap_or(u64::MAX));
                        }
                        "loops" => document.loops = map.next_value::<Option<Fields>>()?.unwrap_or_default(),
                        _ => document.rest.0.push((name, map.next_value::<Box<RawValue>>()?.get().into())),
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
                while let Some((name, raw)) = map.next_entry::<String, Box<RawValue>>()? {
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
    fn what_we_do_not_know_survives_to_the_letter() {
        let text = r#"{"future":{"a": [1, 2.50]},"version":1,"loops":{"s 1":{"run_id":"r","x":  "y"},"odd":[1]},"guidance":null}"#;
        let mut document = Document::parse(text.as_bytes()).unwrap();
        let lap = document.loop_of("s 1").unwrap();
        assert!(document.loop_of("odd").is_none());
        document.set_loop("s 2", &lap).unwrap();
        let written = String::from_utf8(document.write()).unwrap();
        for kept in [r#""future": {"a": [1, 2.50]}"#, r#""s 1": {"run_id":"r","x":  "y"}"#, r#""odd": [1]"#] {
            assert!(written.contains(kept), "{written}");
        }
        let again = Document::parse(written.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(again.write()).unwrap(), written);
        assert_eq!(again.loop_of("s 2"), Some(lap));
    }

    #[test]
    fn nulls_are_absent_and_wrong_shapes_are_damage() {
        assert!(Document::parse(br#"{"version":null,"loops":null}"#).unwrap().loops().is_empty());
        for damaged in ["", "[]", "{", "{\"loops\":[]}", "null", "{} {}"] {
            assert!(Document::parse(damaged.as_bytes()).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_session_passes_over_the_records_of_the_others() {
        let text = r#"{"loops":{"s 1":{"run_id":"r","task":"a,\n  }b\": {"},"é":{},"s 2":{"x":[{}]}},"more":[1],"guidance":{}}"#;
        for text in [text, r#"{"loops":{"s 1":{"run_id":"r"}}}"#, r#"{"loops":{}}"#, r#"{"version":7}"#] {
            let written = Document::parse(text.as_bytes()).unwrap().write();
            let quick = Document::parse_for("s 1", &written).unwrap();
            let whole = Document::parse(&written).unwrap();
            assert_eq!(quick.write(), written);
            assert_eq!(quick.loops(), whole.loops());
            assert_eq!(quick.version, whole.version);
        }
        let written = String::from_utf8(Document::parse(text.as_bytes()).unwrap().write()).unwrap();
        assert!(Document::by_lines("s 1", written.as_bytes()).is_some(), "{written}");

        let elsewhere = written.replace(r#""x":[{}]"#, r#""x":[{]"#);
        let carried = Document::parse_for("s 1", elsewhere.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(carried.write()).unwrap(), elsewhere);
        assert!(carried.loop_of("s 1").is_some() && carried.loop_of("s 2").is_none());
        assert!(Document::parse_for("s 2", elsewhere.as_bytes()).is_err());
        assert!(Document::parse(elsewhere.as_bytes()).is_err());
    }

    #[test]
    fn a_file_cut_short_is_damaged_for_every_session() {
        let text = r#"{"loops":{"s 1":{"run_id":"r"},"s 2":{"x":[{}]}},"guidance":{"encouraged":[]}}"#;
        let written = Document::parse(text.as_bytes()).unwrap().write();
        for end in 0..written.trim_ascii_end().len() {
            let cut = &written[..end];
            assert!(Document::parse_for("s 1", cut).is_err(), "{}", String::from_utf8_lossy(cut));
        }
    }

    #[test]
    fn an_id_that_cannot_be_one_has_no_loop() {
        for id in ["", "  ", "a\nb", &"x".repeat(257)] {
            assert!(!usable_session_id(id), "{id:?}");
        }
        assert!(usable_session_id("../../etc/passwd"), "it is only ever a key");
    }
}

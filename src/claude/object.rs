//! A JSON object of Claude Code. Its values may be absent, `null` or of an unexpected type, and are read only when they
//! are needed.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Default, Deserialize)]
#[serde(transparent)]
pub struct Object<'a> {
    #[serde(borrow)]
    fields: BTreeMap<String, &'a RawValue>,
}

impl<'a> Object<'a> {
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    pub fn raw(&self, key: &str) -> Option<&'a RawValue> {
        self.fields.get(key).copied().filter(|raw| raw.get() != "null")
    }

    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_str(self.raw(key)?.get()).ok()
    }

    pub fn object(&self, key: &str) -> Object<'a> {
        self.raw(key).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// Reads the objects of a list.
    pub fn objects(&self, key: &str) -> Vec<Object<'a>> {
        let list = self.raw(key).and_then(|raw| serde_json::from_str(raw.get()).ok());
        let list: Vec<&RawValue> = list.unwrap_or_default();
        list.into_iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect()
    }

    pub fn text(&self, key: &str) -> Option<String> {
        let json = self.raw(key)?.get();
        serde_json::from_str(json).ok().or_else(|| serde_json::from_str(&replace_lone_surrogates(json)?).ok())
    }

    pub fn is_true(&self, key: &str) -> bool {
        self.read(key) == Some(true)
    }
}

/// Replaces each half of a surrogate pair (`\udXXX`), which JavaScript writes when it cuts a string inside a
/// character, by the replacement character.
fn replace_lone_surrogates(json: &str) -> Option<String> {
    json.starts_with('"').then_some(())?;
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut at) = (String::with_capacity(json.len()), 0);
    while let Some(c) = json[at..].chars().next() {
        let step = match (unit(at), c) {
            (Some(0xd800..=0xdbff), _) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push('\u{fffd}');
                at += 6;
                continue;
            }
            (Some(_), _) => 6,
            (None, '\\') => 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
            (None, c) => c.len_utf8(),
        };
        out.push_str(&json[at..at + step]);
        at += step;
    }
    Some(out)
}

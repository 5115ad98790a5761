//! A JSON object whose values stay as they were written.
//!
//! Values are not read here, only skipped: brackets are counted and strings stepped over. So damage
//! inside a record costs only that record, and a hook pays next to nothing for other sessions' loops.

use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Clone, Debug, Default)]
pub struct Fields(pub Vec<(String, Box<str>)>);

impl Fields {
    /// Reads the leading object. Returns it and what follows, or nothing for a damaged one.
    pub fn split(text: &str) -> Option<(Fields, &str)> {
        let mut fields = Fields::default();
        let rest = walk(text, |name, value| {
            let (raw, rest) = value.split_at_checked(value_length(value.as_bytes())?)?;
            fields.0.push((name, raw.into()));
            Some(rest)
        })?;
        Some((fields, rest))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, raw)| raw.as_ref())
    }

    /// Sets a value and returns whether that is a change; the same value in another form is none.
    pub fn set<T: Serialize + DeserializeOwned + PartialEq>(
        &mut self,
        name: &str,
        value: &T,
    ) -> serde_json::Result<bool> {
        let old = self.get(name).and_then(|raw| serde_json::from_str::<T>(raw).ok());
        Ok(old.is_none_or(|old| old != *value) && self.put(name, pretty(value)?))
    }

    /// Replaces a value's text and returns whether that is a change.
    pub fn put(&mut self, name: &str, raw: Box<str>) -> bool {
        match self.0.iter_mut().rev().find(|(key, _)| key == name) {
            Some((_, slot)) if *slot == raw => return false,
            Some((_, slot)) => *slot = raw,
            None => self.0.push((name.to_owned(), raw)),
        }
        true
    }
}

/// Renders a value, indented as a field of the file's top-level object.
pub fn pretty(value: &impl Serialize) -> serde_json::Result<Box<str>> {
    Ok(inside(&serde_json::to_string_pretty(&[value])?, "[\n  ", "\n]"))
}

/// Renders a value, indented as a field of an object in it.
pub fn pretty_inside(value: &impl Serialize) -> serde_json::Result<Box<str>> {
    Ok(inside(&serde_json::to_string_pretty(&[[value]])?, "[\n  [\n    ", "\n  ]\n]"))
}

fn inside(text: &str, before: &str, after: &str) -> Box<str> {
    text[before.len()..text.len() - after.len()].into()
}

/// Walks through the leading object and returns what follows it. `take` gets each name and the text from its value on,
/// and returns what follows the value.
pub fn walk<'a>(text: &'a str, mut take: impl FnMut(String, &'a str) -> Option<&'a str>) -> Option<&'a str> {
    let mut rest = text.strip_prefix('{')?.trim_ascii_start();
    let mut end = rest.strip_prefix('}');
    while end.is_none() {
        let (name, after) = rest.split_at_checked(string_length(rest.as_bytes())?)?;
        let value = after.trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
        let after = take(unescaped(name)?, value)?.trim_ascii_start();
        end = after.strip_prefix('}');
        rest = after.strip_prefix(',').unwrap_or_default().trim_ascii_start();
    }
    end
}

/// Returns the text of a string; most need no parser.
fn unescaped(quoted: &str) -> Option<String> {
    match quoted.get(1..quoted.len() - 1) {
        Some(text) if needs_no_escape(text) => Some(text.to_owned()),
        _ => serde_json::from_str(quoted).ok(),
    }
}

/// Returns whether JSON has this text as it is. Looks at all of it, which the compiler makes fast.
pub fn needs_no_escape(text: &str) -> bool {
    text.bytes().fold(true, |plain, byte| plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\'))
}

/// Returns the length of the leading value.
fn value_length(bytes: &[u8]) -> Option<usize> {
    match *bytes.first()? {
        b'"' => string_length(bytes),
        b'{' => nested_length(bytes, b'{', b'}'),
        b'[' => nested_length(bytes, b'[', b']'),
        _ => {
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",}]".contains(byte);
            bytes.iter().position(is_end).filter(|length| *length > 0)
        }
    }
}

/// Returns how long the object or array is. Brackets of the other kind need no count: in a whole value they match.
fn nested_length(bytes: &[u8], opening: u8, closing: u8) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        at += memchr::memchr3(b'"', opening, closing, bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            at = string_end(bytes, at)?;
            // Most values are as near to their names, and many are strings.
            if bytes.get(at..at + 3) == Some(b": \"") {
                at = string_end(bytes, at + 2)?;
            }
            continue;
        }
        depth = if bytes[at] == opening { depth + 1 } else { depth - 1 };
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Returns the length of the leading string, with its quotes.
fn string_length(bytes: &[u8]) -> Option<usize> {
    if bytes.first() == Some(&b'"') { string_end(bytes, 0) } else { None }
}

/// Returns what follows the string whose first quote is at `start`.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)? + 1;
        if bytes[at - 1] == b'"' {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn an_object_is_split_and_its_values_are_not_read() {
        let text = r#"{ "a" : {"b":"}\"{","c":[1,{}]} , "d\"":-1.5e3,"e":true,"f":"\\","g":{"h":@,} }, more"#;
        let (fields, rest) = Fields::split(text).unwrap();
        let expected = [
            ("a", r#"{"b":"}\"{","c":[1,{}]}"#),
            ("d\"", "-1.5e3"),
            ("e", "true"),
            ("f", r#""\\""#),
            ("g", r#"{"h":@,}"#),
        ];
        assert_eq!((fields.0.len(), rest), (expected.len(), ", more"));
        for (name, raw) in expected {
            assert_eq!(fields.get(name), Some(raw));
        }
        assert!(Fields::split("{}").unwrap().0.0.is_empty());
    }

    #[test]
    fn what_is_no_whole_object_is_damaged() {
        let cut = [
            "",
            "[]",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":[}",
            "{a:1}",
            "{\"a\":1 2}",
            "{\"a\\",
        ];
        for damaged in cut {
            assert!(Fields::split(damaged).is_none(), "{damaged}");
        }
    }

    #[test]
    fn whatever_serde_writes_is_split_alike() {
        let leaf = prop_oneof![any::<String>().prop_map(Value::from), any::<i64>().prop_map(Value::from)];
        let value = leaf.prop_recursive(3, 24, 5, |inner| {
            let object = prop::collection::btree_map(any::<String>(), inner.clone(), 0..5);
            let array = prop::collection::vec(inner, 0..5);
            prop_oneof![array.prop_map(Value::from), object.prop_map(Value::from_iter)]
        });
        proptest!(|(object in prop::collection::btree_map(any::<String>(), value, 0..6))| {
            for text in [serde_json::to_string(&object).unwrap(), serde_json::to_string_pretty(&object).unwrap()] {
                let (fields, _) = Fields::split(&text).unwrap();
                prop_assert_eq!(fields.0.len(), object.len());
                for (name, value) in &object {
                    let read: Value = serde_json::from_str(fields.get(name).unwrap()).unwrap();
                    prop_assert_eq!(&read, value);
                }
            }
        });
    }
}

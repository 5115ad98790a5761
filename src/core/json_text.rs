//! One member of a JSON object put in, replaced or taken out as text: every other byte stays as its writer left it.
//!
//! A file that belongs to somebody else is not parsed and printed again: its order, indentation, number
//! formats and line ends are theirs. What is put in can be taken out again without a trace.

use serde_json::Value;
use std::ops::Range;

/// A member of the outermost object, as places in the text.
struct Member {
    name: String,
    /// From the first quote of its name to the end of its value.
    whole: Range<usize>,
    value: Range<usize>,
}

const MARK: &str = "\u{feff}";

/// The document, where it is an object; a byte order mark at its start is no fault.
pub fn parse(text: &str) -> Result<serde_json::Map<String, Value>, String> {
    match serde_json::from_str(text.strip_prefix(MARK).unwrap_or(text)) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is not an object".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// The text of a member's value, as it stands there.
pub fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    parse(text).ok()?;
    last(text, name).map(|member| &text[member.value])
}

/// The text with this member: in the place of the one it has, else behind the others.
pub fn with(text: &str, name: &str, value: &str) -> Result<String, String> {
    parse(text)?;
    if let Some(member) = last(text, name) {
        return Ok(format!("{}{value}{}", &text[..member.value.start], &text[member.value.end..]));
    }
    let open = text.find('{').ok_or("it is not an object")? + 1;
    let members = members(text);
    // What stands before the first member stands before each: a line break and its indentation, or nothing.
    let (at, comma, gap) = match (members.first(), members.last()) {
        (Some(first), Some(last)) => (last.whole.end, ",", text[open..first.whole.start].to_owned()),
        _ => {
            let inner = &text[open..text[open..].find('}').map_or(open, |end| open + end)];
            let indent = if inner.is_empty() { "" } else { "  " };
            (open, "", format!("{inner}{indent}"))
        }
    };
    let name = Value::from(name);
    let space =
        if text[..at].contains('\n') || members.is_empty() || text.contains("\": ") { " " } else { "" };
    Ok(format!("{}{comma}{gap}{name}:{space}{value}{}", &text[..at], &text[at..]))
}

/// The text without this member, and whether there was one.
pub fn without(text: &str, name: &str) -> Option<String> {
    parse(text).ok()?;
    let members = members(text);
    let at = members.iter().rposition(|member| member.name == name)?;
    let open = text.find('{')? + 1;
    let gone = match (at.checked_sub(1).map(|before| &members[before]), members.get(at + 1)) {
        (Some(before), _) => before.whole.end..members[at].whole.end,
        (None, Some(next)) => members[at].whole.start..next.whole.start,
        (None, None) => open..members[at].whole.end,
    };
    Some(format!("{}{}", &text[..gone.start], &text[gone.end..]))
}

fn last(text: &str, name: &str) -> Option<Member> {
    // Of two with one name the last counts, as for every reader.
    members(text).into_iter().rev().find(|member| member.name == name)
}

/// The members of the outermost object of a text that is known to be valid.
fn members(text: &str) -> Vec<Member> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = text.find('{').map_or(bytes.len(), |open| open + 1);
    while let Some(start) = find(bytes, at, |byte| matches!(byte, b'"' | b'}')) {
        if bytes[start] == b'}' {
            break;
        }
        let name_end = string_end(bytes, start);
        let Some(colon) = find(bytes, name_end, |byte| byte == b':') else { break };
        let Some(value) = find(bytes, colon + 1, |byte| !byte.is_ascii_whitespace()) else { break };
        let end = value_end(bytes, value);
        let name = serde_json::from_str(&text[start..name_end]).unwrap_or_default();
        found.push(Member { name, whole: start..end, value: value..end });
        at = end;
    }
    found
}

fn find(bytes: &[u8], from: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
    bytes.get(from..)?.iter().position(|byte| wanted(*byte)).map(|found| from + found)
}

/// Behind the closing quote of the string that begins here.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Behind the last byte of the value that begins here.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALUE: &str = r#"{"type": "command", "command": "x"}"#;

    #[test]
    fn a_member_goes_in_as_the_others_stand() {
        let cases = [
            ("nothing in it", "{}", r#"{"statusLine": V}"#),
            ("nothing in it but lines", "{\n}\n", "{\n  \"statusLine\": V\n}\n"),
            ("on one line", r#"{"a":1}"#, r#"{"a":1,"statusLine":V}"#),
            ("on one line, roomy", r#"{ "a": 1 }"#, r#"{ "a": 1, "statusLine": V }"#),
            (
                "indented by four",
                "{\n    \"a\": [1, 2]\n}\n",
                "{\n    \"a\": [1, 2],\n    \"statusLine\": V\n}\n",
            ),
            (
                "lines of another system",
                "{\r\n\t\"a\": 1\r\n}",
                "{\r\n\t\"a\": 1,\r\n\t\"statusLine\": V\r\n}",
            ),
            ("a mark in front", "\u{feff}{\"a\":1}", "\u{feff}{\"a\":1,\"statusLine\":V}"),
            (
                "braces in strings, deep values",
                r#"{"a}\"":{"b":["}",{"statusLine":1}]},"n":-1.50e3}"#,
                r#"{"a}\"":{"b":["}",{"statusLine":1}]},"n":-1.50e3,"statusLine":V}"#,
            ),
        ];
        for (name, before, expected) in cases {
            let after = with(before, "statusLine", VALUE).unwrap();
            assert_eq!(after, expected.replace('V', VALUE), "{name}");
            assert_eq!(value_of(&after, "statusLine"), Some(VALUE), "{name}");
            assert_eq!(without(&after, "statusLine").as_deref(), Some(before), "{name}: and out again");
        }
    }

    #[test]
    fn a_member_that_is_there_is_replaced_where_it_stands() {
        let before = "{\"a\": 1, \"statusLine\" : {\"type\":\"x\"} , \"b\": 2}";
        assert_eq!(with(before, "statusLine", "7").unwrap(), "{\"a\": 1, \"statusLine\" : 7 , \"b\": 2}");
        assert_eq!(without(before, "statusLine").unwrap(), "{\"a\": 1 , \"b\": 2}");
        assert_eq!(without("{\"k\": 1, \"b\": 2}", "k").unwrap(), "{\"b\": 2}");
        assert_eq!(without("{\"b\": {\"k\": 1}}", "k"), None, "only the outermost object counts");
        assert_eq!(value_of("{\"k\": 1, \"\\u006b\": 2}", "k"), Some("2"), "the last of two counts");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "[]", "{", "{\"a\": 1,}", "// hi\n{}", "7", "{} {}", "null"] {
            assert!(with(text, "k", "1").is_err(), "{text}");
            assert_eq!(without(text, "k"), None, "{text}");
            assert_eq!(value_of(text, "k"), None, "{text}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~äß\\\\\"{}\\[\\],:\n]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-z{}\\\\\",:]{0,4}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_the_file_holds_only_the_member_changes(
            fields in prop::collection::hash_map("[a-zé{}\\\\\",:]{0,5}", any_json(), 0..5), pretty: bool
        ) {
            let fields: serde_json::Map<_, _> = fields.into_iter().collect();
            let before = Value::Object(fields.clone());
            let text = if pretty { serde_json::to_string_pretty(&before).unwrap() } else { before.to_string() };
            let after = with(&text, "statusLine", VALUE).unwrap();
            let mut expected = fields;
            expected.insert("statusLine".into(), serde_json::from_str(VALUE).unwrap());
            prop_assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), Value::Object(expected));
            prop_assert_eq!(without(&after, "statusLine").unwrap(), text);
        }
    }
}

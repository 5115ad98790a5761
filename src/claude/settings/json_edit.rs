//! Edits one member of a JSON object and keeps the order, indentation and line endings of the others.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Parses the text as strict JSON, the only kind that Claude Code reads. A byte order mark is ignored.
pub fn parse(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is not an object".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the text of a member's value.
pub fn get(text: &str, name: &str) -> Option<String> {
    Some(JsonText::read(text).ok()?.member(name)?.value()?.to_string())
}

/// Returns the text with this member replaced, or appended.
pub fn set(text: &str, name: &str, value: &str) -> Result<String, String> {
    let document = JsonText::read(text)?;
    let member = document.member(name).unwrap_or_else(|| document.object.append(name, CstInputValue::Null));
    // A string literal is the only node that takes raw text, which keeps the value exactly as given.
    member.set_value(CstInputValue::String(String::new()));
    let literal = member.value().and_then(|node| node.as_string_lit());
    literal.ok_or("the value could not be set")?.set_raw_value(value.to_owned());
    Ok(document.print())
}

/// Returns the text without this member; `None` if there is none.
pub fn remove(text: &str, name: &str) -> Option<String> {
    let document = JsonText::read(text).ok()?;
    document.member(name)?.remove();
    Some(document.print())
}

struct JsonText {
    byte_order_mark: &'static str,
    root: CstRootNode,
    object: CstObject,
}

impl JsonText {
    fn read(text: &str) -> Result<JsonText, String> {
        parse(text)?;
        let (byte_order_mark, json) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(json) => (BYTE_ORDER_MARK, json),
            None => ("", text),
        };
        let root = CstRootNode::parse(json, &ParseOptions::default()).map_err(|error| error.to_string())?;
        let object = root.object_value().ok_or("it is not an object")?;
        Ok(JsonText { byte_order_mark, root, object })
    }

    /// Returns the last member of this name, as JSON readers do.
    fn member(&self, name: &str) -> Option<CstObjectProp> {
        let mut members = self.object.properties().into_iter().rev();
        members.find(|member| member.decoded_name().is_some_and(|found| found == name))
    }

    fn print(&self) -> String {
        format!("{}{}", self.byte_order_mark, self.root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALUE: &str = r#"{"type": "command", "command": "x"}"#;

    #[test]
    fn an_added_member_follows_the_format_of_the_file_and_is_removed_without_a_trace() {
        let cases = [
            ("empty", "{}", "{\n  \"statusLine\": V\n}"),
            ("four spaces", "{\n    \"a\": [1, 2]\n}\n", "{\n    \"a\": [1, 2],\n    \"statusLine\": V\n}\n"),
            ("CRLF and tabs", "{\r\n\t\"a\": 1\r\n}", "{\r\n\t\"a\": 1,\r\n\t\"statusLine\": V\r\n}"),
            (
                "byte order mark",
                "\u{feff}{\n  \"a\": 1\n}\n",
                "\u{feff}{\n  \"a\": 1,\n  \"statusLine\": V\n}\n",
            ),
            (
                "braces in strings, nested values, unusual numbers",
                "{\n  \"a}\\\"\":{\"b\":[\"}\",{\"statusLine\":1}]},\n  \"n\" : -1.50e3\n}",
                "{\n  \"a}\\\"\":{\"b\":[\"}\",{\"statusLine\":1}]},\n  \"n\" : -1.50e3,\n  \"statusLine\": V\n}",
            ),
        ];
        for (name, before, expected) in cases {
            let after = set(before, "statusLine", VALUE).unwrap();
            assert_eq!(after, expected.replace('V', VALUE), "{name}");
            assert_eq!(get(&after, "statusLine").as_deref(), Some(VALUE), "{name}");
            assert_eq!(remove(&after, "statusLine").as_deref(), Some(before), "{name}: removed again");
        }
    }

    #[test]
    fn an_object_on_one_line_is_spread_over_several() {
        let after = set(r#"{ "a": 1.0, "b": [] }"#, "k", "7").unwrap();
        assert_eq!(after, "{\n  \"a\": 1.0,\n  \"b\": [],\n  \"k\": 7\n}");
    }

    #[test]
    fn an_existing_member_is_replaced_in_place() {
        let before = "{\"a\": 1, \"statusLine\" : {\"type\":\"x\"} , \"b\": 2}";
        assert_eq!(set(before, "statusLine", "7").unwrap(), "{\"a\": 1, \"statusLine\" : 7 , \"b\": 2}");
        assert_eq!(parse(&remove(before, "statusLine").unwrap()).unwrap().len(), 2);
        assert_eq!(remove("{\"b\": {\"k\": 1}}", "k"), None, "only members of the outermost object count");
        assert_eq!(get("{\"k\": 1, \"\\u006b\": 2}", "k").as_deref(), Some("2"), "the last of two counts");
    }

    #[test]
    fn anything_but_a_strict_json_object_is_refused() {
        for text in ["", "[]", "{", "{\"a\": 1,}", "// hi\n{}", "7", "{} {}", "null"] {
            assert!(set(text, "k", "1").is_err(), "{text}");
            assert_eq!(remove(text, "k"), None, "{text}");
            assert_eq!(get(text, "k"), None, "{text}");
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
        fn only_the_edited_member_changes(
            fields in prop::collection::hash_map("[a-zé{}\\\\\",:]{0,5}", any_json(), 0..5), pretty: bool
        ) {
            let fields: Map<_, _> = fields.into_iter().collect();
            let before = Value::Object(fields.clone());
            let text = if pretty { serde_json::to_string_pretty(&before).unwrap() } else { before.to_string() };
            let after = set(&text, "statusLine", VALUE).unwrap();
            let mut expected = fields.clone();
            expected.insert("statusLine".into(), serde_json::from_str(VALUE).unwrap());
            prop_assert_eq!(parse(&after).unwrap(), expected);
            let removed = remove(&after, "statusLine").unwrap();
            prop_assert_eq!(parse(&removed).unwrap(), fields);
            if pretty {
                prop_assert_eq!(removed, text);
            }
        }
    }
}

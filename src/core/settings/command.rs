//! Lists of texts that act for the user, command lines and rules for tools: how they are read.

use crate::core::settings::ValueKind;
use crate::core::text::clean;
use serde_json::Value;

pub fn is_valid(text: &str) -> bool {
    !clean::line(text).is_empty() && text.chars().count() <= 2000
}

/// Parses a list in which every element is valid, or says what is wrong.
pub fn all(kind: ValueKind, value: &Value) -> Result<Value, String> {
    let (list, wrong) = usable(kind, value);
    wrong.into_iter().next().map_or_else(|| Ok(list.unwrap_or_default()), Err)
}

/// Returns what can be used of a list, and what is wrong with each of the rest. A list without any valid element
/// is not an empty list.
pub fn usable(kind: ValueKind, value: &Value) -> (Option<Value>, Vec<String>) {
    let list = match value {
        Value::Array(list) => list.clone(),
        // Text is one element, or a JSON list: a variable can give a list in no other way.
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Array(list)) => list,
            _ => vec![value.clone()],
        },
        other => return (None, vec![format!("{} is not {kind}", shown(other))]),
    };
    let (mut valid, mut wrong) = (Vec::new(), Vec::new());
    for item in list {
        match item.as_str().map_or_else(|| Some(not_text(kind, &item)), |text| kind.wrong_element(text)) {
            Some(why) => wrong.push(why),
            None => valid.push(item),
        }
    }
    ((!valid.is_empty() || wrong.is_empty()).then_some(Value::Array(valid)), wrong)
}

fn not_text(kind: ValueKind, item: &Value) -> String {
    let what = if kind == ValueKind::ToolRules {
        "a rule for a tool".to_owned()
    } else {
        ValueKind::Command.to_string()
    };
    format!("{} is not {what}", shown(item))
}

pub fn shown(value: &Value) -> String {
    clean::excerpt(&value.to_string(), 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_is_read_as_json_and_a_text_as_one_command() {
        for (given, list) in [
            (json!(["cargo test", "x"]), json!(["cargo test", "x"])),
            (json!("cargo test"), json!(["cargo test"])),
            (json!("[\"a\", \"b\"]"), json!(["a", "b"])),
            (json!("[ -f done ]"), json!(["[ -f done ]"])),
            (json!("5"), json!(["5"])),
            (json!([]), json!([])),
        ] {
            assert_eq!(all(ValueKind::Commands, &given), Ok(list), "{given}");
        }
    }

    #[test]
    fn a_bad_command_is_left_out_alone_and_quoted_in_short() {
        let long = "x".repeat(2001);
        let (list, wrong) = usable(
            ValueKind::Commands,
            &json!(["cargo test", 5, "", " \t", null, ["a"], {"a": 1}, long, "last"]),
        );
        assert_eq!(list, Some(json!(["cargo test", "last"])));
        assert_eq!(wrong.len(), 7, "{wrong:?}");
        assert_eq!(wrong[0], "5 is not a command of 1 to 2000 characters");
        assert!(wrong.iter().all(|wrong| wrong.chars().count() < 120), "{wrong:?}");
        assert!(all(ValueKind::Commands, &json!(["a", 5])).is_err());
    }

    #[test]
    fn a_list_without_a_valid_command_is_not_an_empty_list() {
        for value in [json!([5]), json!(5), json!({"a": 1}), json!(true), json!(""), json!([""])] {
            let (list, wrong) = usable(ValueKind::Commands, &value);
            assert!(list.is_none() && !wrong.is_empty(), "{value}");
        }
        assert_eq!(usable(ValueKind::Commands, &json!([])), (Some(json!([])), vec![]));
    }
}

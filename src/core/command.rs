//! Command lines among the settings: what can be one, and what a list of them says.

use super::clean;
use super::settings::Kind;
use serde_json::Value;

pub fn is_sound(text: &str) -> bool {
    !clean::line(text).is_empty() && text.chars().count() <= 2000
}

/// A list in which every command is sound, or what is wrong.
pub fn all(value: &Value) -> Result<Value, String> {
    let (list, wrong) = usable(value);
    wrong.into_iter().next().map_or_else(|| Ok(list.unwrap_or_default()), Err)
}

/// What can be used of a list, and what is wrong with the rest, one by one. A list of which nothing is left
/// is no word for an empty one.
pub fn usable(value: &Value) -> (Option<Value>, Vec<String>) {
    let list = match value {
        Value::Array(list) => list.clone(),
        // As text it is one command, or the list as JSON: a variable has no other way to say it.
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Array(list)) => list,
            _ => vec![value.clone()],
        },
        other => return (None, vec![format!("{} is not {}", shown(other), Kind::Commands)]),
    };
    let (sound, bad): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|item| item.as_str().is_some_and(is_sound));
    let wrong: Vec<String> =
        bad.iter().map(|item| format!("{} is not {}", shown(item), Kind::Command)).collect();
    ((!sound.is_empty() || wrong.is_empty()).then_some(Value::Array(sound)), wrong)
}

fn shown(value: &Value) -> String {
    clean::excerpt(&value.to_string(), 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_is_taken_as_json_and_a_text_as_one_command() {
        for (given, list) in [
            (json!(["cargo test", "x"]), json!(["cargo test", "x"])),
            (json!("cargo test"), json!(["cargo test"])),
            (json!("[\"a\", \"b\"]"), json!(["a", "b"])),
            (json!("[ -f done ]"), json!(["[ -f done ]"])),
            (json!("5"), json!(["5"])),
            (json!([]), json!([])),
        ] {
            assert_eq!(all(&given), Ok(list), "{given}");
        }
    }

    #[test]
    fn a_bad_command_falls_alone_and_is_quoted_in_short() {
        let long = "x".repeat(2001);
        let (list, wrong) = usable(&json!(["cargo test", 5, "", " \t", null, ["a"], {"a": 1}, long, "last"]));
        assert_eq!(list, Some(json!(["cargo test", "last"])));
        assert_eq!(wrong.len(), 7, "{wrong:?}");
        assert_eq!(wrong[0], "5 is not a command of 1 to 2000 characters");
        assert!(wrong.iter().all(|wrong| wrong.chars().count() < 120), "{wrong:?}");
        assert!(all(&json!(["a", 5])).is_err());
    }

    #[test]
    fn nothing_usable_is_no_empty_list() {
        for value in [json!([5]), json!(5), json!({"a": 1}), json!(true), json!(""), json!([""])] {
            let (list, wrong) = usable(&value);
            assert!(list.is_none() && !wrong.is_empty(), "{value}");
        }
        assert_eq!(usable(&json!([])), (Some(json!([])), vec![]));
    }
}

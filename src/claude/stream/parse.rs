//! One line of the stream, read leniently.

use super::{Event, Limit, Outcome};
use crate::core::clean;
use crate::core::record::Usage;
use crate::core::time::Stamp;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What a line says: several events where it holds several blocks, none where it is blank.
pub fn events(line: &str) -> Vec<Event> {
    if line.trim().is_empty() {
        return Vec::new();
    }
    let Ok(wire) = serde_json::from_str::<Wire>(line) else { return vec![Event::Other] };
    let found = match text(wire.kind).as_deref() {
        Some("system") => system(&wire).into_iter().collect(),
        Some("assistant") => assistant(&wire),
        Some("user") => blocks(&wire).iter().filter_map(tool_ended).collect(),
        Some("rate_limit_event") => rate_limit(wire.rate_limit_info).into_iter().collect(),
        Some("result") => vec![Event::Result(Box::new(outcome(&wire)))],
        _ => Vec::new(),
    };
    if found.is_empty() { vec![Event::Other] } else { found }
}

/// A value that is looked at only where it is needed.
type Raw<'a> = Option<&'a RawValue>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    subtype: Raw<'a>,
    #[serde(borrow)]
    session_id: Raw<'a>,
    #[serde(borrow)]
    parent_tool_use_id: Raw<'a>,
    #[serde(borrow)]
    message: Raw<'a>,
    #[serde(borrow)]
    model: Raw<'a>,
    #[serde(borrow)]
    tools: Raw<'a>,
    #[serde(borrow)]
    plugin_errors: Raw<'a>,
    #[serde(borrow)]
    tasks: Raw<'a>,
    #[serde(borrow)]
    attempt: Raw<'a>,
    #[serde(borrow)]
    retry_delay_ms: Raw<'a>,
    #[serde(borrow)]
    error_status: Raw<'a>,
    #[serde(borrow)]
    rate_limit_info: Raw<'a>,
    #[serde(borrow)]
    is_api_error_message: Raw<'a>,
    #[serde(borrow)]
    error: Raw<'a>,
    #[serde(borrow)]
    api_error: Raw<'a>,
    #[serde(borrow)]
    api_error_params: Raw<'a>,
    #[serde(borrow)]
    api_error_status: Raw<'a>,
    #[serde(borrow)]
    is_error: Raw<'a>,
    #[serde(borrow)]
    result: Raw<'a>,
    #[serde(borrow)]
    errors: Raw<'a>,
    #[serde(borrow)]
    total_cost_usd: Raw<'a>,
    #[serde(borrow)]
    usage: Raw<'a>,
    #[serde(borrow)]
    num_turns: Raw<'a>,
    #[serde(borrow)]
    permission_denials: Raw<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    model: Raw<'a>,
    #[serde(borrow)]
    content: Raw<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    text: Raw<'a>,
    #[serde(borrow)]
    id: Raw<'a>,
    #[serde(borrow)]
    name: Raw<'a>,
    #[serde(borrow)]
    input: Raw<'a>,
    #[serde(borrow)]
    tool_use_id: Raw<'a>,
    #[serde(borrow)]
    is_error: Raw<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LimitInfo<'a> {
    #[serde(borrow)]
    status: Raw<'a>,
    #[serde(borrow, rename = "resetsAt")]
    resets_at: Raw<'a>,
    #[serde(borrow, rename = "isUsingOverage")]
    is_using_overage: Raw<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens<'a> {
    #[serde(borrow)]
    input_tokens: Raw<'a>,
    #[serde(borrow)]
    output_tokens: Raw<'a>,
    #[serde(borrow)]
    cache_read_input_tokens: Raw<'a>,
    #[serde(borrow)]
    cache_creation_input_tokens: Raw<'a>,
}

fn read<T: DeserializeOwned>(raw: Raw) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

fn part<'a, T: Deserialize<'a> + Default>(raw: Raw<'a>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn text(raw: Raw) -> Option<String> {
    read(raw)
}

fn is_true(raw: Raw) -> bool {
    read(raw) == Some(true)
}

/// A number that may be written with a fraction.
fn number(raw: Raw) -> Option<f64> {
    read::<f64>(raw).filter(|number| number.is_finite())
}

fn count(raw: Raw) -> u64 {
    // A float becomes the nearest number there is.
    number(raw).unwrap_or(0.0) as u64
}

fn length(raw: Raw) -> usize {
    read::<Vec<IgnoredAny>>(raw).map_or(0, |list| list.len())
}

/// An id of a tool call, of which nobody has seen one half as long.
fn id(raw: Raw) -> String {
    text(raw).unwrap_or_default().chars().take(128).collect()
}

/// A short word of the client's, fit to be shown.
fn word(raw: Raw) -> Option<String> {
    text(raw).map(|text| clean::excerpt(&text, 80)).filter(|text| !text.is_empty())
}

fn status(raw: Raw) -> Option<u16> {
    read::<u16>(raw).filter(|status| *status > 0)
}

/// An id is handed back to the client as an argument: what does not look like one is none.
fn session_id(raw: Raw) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_id =
        |id: &String| (1..=128).contains(&id.len()) && id.chars().all(is_plain) && !id.starts_with('-');
    text(raw).filter(is_id)
}

fn system(wire: &Wire) -> Option<Event> {
    match text(wire.subtype).as_deref()? {
        "init" => Some(Event::Init {
            session_id: session_id(wire.session_id).unwrap_or_default(),
            model: word(wire.model).unwrap_or_default(),
            tools: length(wire.tools),
            plugin_errors: plugin_errors(wire.plugin_errors),
        }),
        "api_retry" => Some(Event::Retry {
            attempt: count(wire.attempt),
            delay_ms: number(wire.retry_delay_ms).unwrap_or(0.0).max(0.0) as i64,
            error_status: status(wire.error_status),
        }),
        "background_tasks_changed" => Some(Event::Background { running: length(wire.tasks) }),
        _ => None,
    }
}

fn plugin_errors(raw: Raw) -> Vec<String> {
    const MOST: usize = 8;
    let errors = read::<Vec<Value>>(raw).unwrap_or_default();
    let shown = |error: &Value| {
        let part = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let whole = match error {
            Value::String(text) => text.clone(),
            Value::Object(_) if !part("message").is_empty() => {
                format!("{}: {}", part("plugin"), part("message"))
            }
            other => other.to_string(),
        };
        clean::excerpt(whole.trim_start_matches(": "), 200)
    };
    errors.iter().take(MOST).map(shown).collect()
}

/// The blocks of a message; a message that is one text has none.
fn blocks<'a>(wire: &Wire<'a>) -> Vec<Block<'a>> {
    let message: Message = part(wire.message);
    let list: Vec<&RawValue> = part(message.content);
    list.into_iter().map(|raw| part(Some(raw))).collect()
}

fn assistant(wire: &Wire) -> Vec<Event> {
    let is_sub_agent = wire.parent_tool_use_id.is_some();
    if is_true(wire.is_api_error_message) || wire.error.is_some() {
        return api_error(wire, is_sub_agent);
    }
    // The client also speaks in the agent's place, and says so.
    let is_synthetic = text(part::<Message>(wire.message).model).as_deref() == Some("<synthetic>");
    let is_own = !is_sub_agent && !is_synthetic;
    blocks(wire)
        .iter()
        .filter_map(|block| match text(block.kind)?.as_str() {
            "text" if is_own => text(block.text).filter(|text| !text.trim().is_empty()).map(Event::Text),
            "tool_use" => Some(Event::ToolStarted {
                id: id(block.id),
                name: word(block.name).unwrap_or_default(),
                summary: summary(block.input),
            }),
            _ => None,
        })
        .collect()
}

fn api_error(wire: &Wire, is_sub_agent: bool) -> Vec<Event> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Params<'a> {
        #[serde(borrow)]
        rate_limit_info: Raw<'a>,
    }
    let limit = rate_limit(part::<Params>(wire.api_error_params).rate_limit_info);
    let error =
        Event::ApiError { kind: word(wire.error).unwrap_or_default(), status: status(wire.api_error_status) };
    limit.into_iter().chain((!is_sub_agent).then_some(error)).collect()
}

/// What a tool is asked to do, in the words of the input that say most.
fn summary(input: Raw) -> String {
    const TELLING: [&str; 14] = [
        "command",
        "file_path",
        "notebook_path",
        "pattern",
        "query",
        "url",
        "skill",
        "description",
        "subject",
        "path",
        "prompt",
        "name",
        "id",
        "task_id",
    ];
    const WIDTH: usize = 120;
    // The input of a Write is the whole file: only the values that may be shown are read.
    let fields: BTreeMap<String, &RawValue> = part(input);
    let telling = TELLING.iter().filter_map(|key| scalar(fields.get(*key).copied()));
    let mut found = telling.map(|text| clean::excerpt(&text, WIDTH)).filter(|text| !text.is_empty());
    found.next().unwrap_or_default()
}

fn scalar(raw: Raw) -> Option<String> {
    text(raw).or_else(|| read::<i64>(raw).map(|number| number.to_string()))
}

fn tool_ended(block: &Block) -> Option<Event> {
    (text(block.kind)? == "tool_result")
        .then(|| Event::ToolEnded { id: id(block.tool_use_id), failed: is_true(block.is_error) })
}

fn rate_limit(raw: Raw) -> Option<Event> {
    /// Above this a number cannot be seconds.
    const MOST_SECONDS: f64 = 1e11;
    let info: LimitInfo = part(raw);
    let limit = match text(info.status)?.as_str() {
        "allowed" => Limit::Allowed,
        "allowed_warning" => Limit::Warning,
        // Extra usage pays for what the plan rejects.
        "rejected" if is_true(info.is_using_overage) => Limit::Warning,
        "rejected" => Limit::Rejected,
        _ => return None,
    };
    let resets_at = number(info.resets_at).filter(|at| *at > 0.0).map(|at| match at > MOST_SECONDS {
        true => Stamp(at as i64),
        false => Stamp::from_seconds(at),
    });
    Some(Event::RateLimit { status: limit, resets_at })
}

fn outcome(wire: &Wire) -> Outcome {
    let subtype = word(wire.subtype).unwrap_or_default();
    let errors: Vec<String> = read::<Vec<Value>>(wire.errors)
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_str)
        .map(String::from)
        .collect();
    let tokens: Tokens = part(wire.usage);
    Outcome {
        is_error: read(wire.is_error).unwrap_or_else(|| subtype.starts_with("error")),
        subtype,
        api_error_status: status(wire.api_error_status),
        api_error: word(wire.api_error),
        text: text(wire.result).unwrap_or_else(|| errors.join("\n")),
        cost_usd: number(wire.total_cost_usd).filter(|cost| *cost >= 0.0),
        usage: Usage {
            input_tokens: count(tokens.input_tokens),
            output_tokens: count(tokens.output_tokens),
            cache_read_tokens: count(tokens.cache_read_input_tokens),
            cache_write_tokens: count(tokens.cache_creation_input_tokens),
            ..Usage::default()
        },
        turns: count(wire.num_turns),
        session_id: session_id(wire.session_id),
        permission_denials: length(wire.permission_denials),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn tool(id: &str, name: &str, summary: &str) -> Event {
        Event::ToolStarted { id: id.into(), name: name.into(), summary: summary.into() }
    }

    fn ended(id: &str, failed: bool) -> Event {
        Event::ToolEnded { id: id.into(), failed }
    }

    #[test]
    fn a_real_turn_with_tools() {
        let found: Vec<Event> = include_str!("samples/tools.jsonl").lines().flat_map(events).collect();
        let usage = Usage { input_tokens: 40, output_tokens: 20, ..Usage::default() };
        let outcome = Outcome {
            subtype: "success".into(),
            text: "finished".into(),
            cost_usd: Some(0.0005600000000000001),
            usage,
            turns: 7,
            session_id: Some("s-tools".into()),
            ..Outcome::default()
        };
        let expected = [
            Event::Init {
                session_id: "s-tools".into(),
                model: "claude-opus-5-5".into(),
                tools: 3,
                plugin_errors: vec![],
            },
            Event::Text("working".into()),
            tool("t1_0", "Bash", "echo 1 >> f; ls"),
            tool("t2_0", "Write", "/proj/a.txt"),
            ended("t1_0", false),
            ended("t2_0", false),
            tool("t3_1", "Read", "/proj/none.txt"),
            tool("t4_1", "Edit", "/proj/a.txt"),
            tool("t5_1", "Grep", "x"),
            ended("t3_1", true),
            ended("t4_1", true),
            ended("t5_1", false),
            tool("t6_2", "Bash", "exit 3"),
            ended("t6_2", true),
            Event::Text("finished".into()),
            Event::Result(Box::new(outcome)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_and_what_they_say() {
        let limit = |status, at: Option<i64>| Event::RateLimit { status, resets_at: at.map(Stamp) };
        let error = |kind: &str, status| Event::ApiError { kind: kind.into(), status };
        let cases = [
            ("garbage", "Warning: no stdin data received", vec![Event::Other]),
            ("blank", " \t", vec![]),
            ("cut off", r#"{"type":"assistant","message":{"#, vec![Event::Other]),
            (
                "another type",
                r#"{"type":"stream_event","event":{"type":"message_stop"}}"#,
                vec![Event::Other],
            ),
            ("not an object", r#"["assistant"]"#, vec![Event::Other]),
            ("no type", "{}", vec![Event::Other]),
            ("nulls", r#"{"type":"system","subtype":null,"session_id":null}"#, vec![Event::Other]),
            (
                "init of nulls",
                r#"{"type":"system","subtype":"init","session_id":null,"model":7,"tools":{},"plugin_errors":null}"#,
                vec![Event::Init {
                    session_id: String::new(),
                    model: String::new(),
                    tools: 0,
                    plugin_errors: vec![],
                }],
            ),
            (
                "an id that is an option",
                r#"{"type":"system","subtype":"init","session_id":"--help"}"#,
                vec![Event::Init {
                    session_id: String::new(),
                    model: String::new(),
                    tools: 0,
                    plugin_errors: vec![],
                }],
            ),
            (
                "several blocks",
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"a"},7,{"type":"thinking"},{"type":"tool_use","id":"1","name":"Glob","input":{"pattern":"*.rs"}},{"type":"text","text":" "},{"type":"text","text":"b"}]}}"#,
                vec![Event::Text("a".into()), tool("1", "Glob", "*.rs"), Event::Text("b".into())],
            ),
            (
                "several results",
                r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1"},{"type":"tool_result","tool_use_id":"2","is_error":true,"content":[{}]}]}}"#,
                vec![ended("1", false), ended("2", true)],
            ),
            ("a prompt", r#"{"type":"user","message":{"content":"go on"}}"#, vec![Event::Other]),
            (
                "content of another type",
                r#"{"type":"assistant","message":{"content":{"type":"text"}}}"#,
                vec![Event::Other],
            ),
            (
                "a sub-agent's words",
                r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}"#,
                vec![Event::Other],
            ),
            (
                "a sub-agent's tool",
                r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls"}}]}}"#,
                vec![tool("1", "Bash", "ls")],
            ),
            (
                "the client in the agent's place",
                r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}"#,
                vec![Event::Other],
            ),
            (
                "an error",
                r#"{"type":"assistant","error":"billing_error","is_api_error_message":true,"api_error_status":400,"message":{"content":[{"type":"text","text":"Credit balance is too low"}]}}"#,
                vec![error("billing_error", Some(400))],
            ),
            (
                "a sub-agent's error",
                r#"{"type":"assistant","parent_tool_use_id":"t","error":"server_error","is_api_error_message":true}"#,
                vec![Event::Other],
            ),
            (
                "an error that names the limit",
                r#"{"type":"assistant","error":"rate_limit","api_error_params":{"rate_limit_info":{"status":"rejected","resetsAt":1794834014}}}"#,
                vec![limit(Limit::Rejected, Some(1_794_834_014_000)), error("rate_limit", None)],
            ),
            (
                "a retry",
                r#"{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":604.5,"error_status":500,"error":"server_error"}"#,
                vec![Event::Retry { attempt: 2, delay_ms: 604, error_status: Some(500) }],
            ),
            (
                "a retry without an answer",
                r#"{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":-5,"error_status":null}"#,
                vec![Event::Retry { attempt: 1, delay_ms: 0, error_status: None }],
            ),
            (
                "background",
                r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"a"},{"task_id":"b"}]}"#,
                vec![Event::Background { running: 2 }],
            ),
            (
                "allowed",
                r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","isUsingOverage":false}}"#,
                vec![limit(Limit::Allowed, None)],
            ),
            (
                "near the limit",
                r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1794834014}}"#,
                vec![limit(Limit::Warning, Some(1_794_834_014_000))],
            ),
            (
                "milliseconds",
                r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794834014000}}"#,
                vec![limit(Limit::Rejected, Some(1_794_834_014_000))],
            ),
            (
                "extra usage",
                r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":null,"isUsingOverage":true}}"#,
                vec![limit(Limit::Warning, None)],
            ),
            (
                "another state",
                r#"{"type":"rate_limit_event","rate_limit_info":{"status":"dreaming"}}"#,
                vec![Event::Other],
            ),
            (
                "a limit of nothing",
                r#"{"type":"rate_limit_event","rate_limit_info":null}"#,
                vec![Event::Other],
            ),
            ("an empty result", r#"{"type":"result"}"#, vec![Event::Result(Box::default())]),
        ];
        for (name, line, expected) in cases {
            assert_eq!(events(line), expected, "{name}");
        }
    }

    #[test]
    fn results() {
        let cases = [
            (
                json!({"subtype": "error_max_turns", "errors": ["Reached maximum number of turns (1)", 7]}),
                Outcome {
                    is_error: true,
                    subtype: "error_max_turns".into(),
                    text: "Reached maximum number of turns (1)".into(),
                    ..Outcome::default()
                },
            ),
            (
                json!({"subtype": "success", "is_error": true, "api_error_status": 429, "api_error": "usage_limit_reached",
                "result": null, "total_cost_usd": "free", "usage": 7, "num_turns": -1}),
                Outcome {
                    is_error: true,
                    subtype: "success".into(),
                    api_error_status: Some(429),
                    api_error: Some("usage_limit_reached".into()),
                    ..Outcome::default()
                },
            ),
            (
                json!({"is_error": false, "result": "\u{1b}[1mdone", "permission_denials": [{}, {}], "session_id": "a b",
                "usage": {"input_tokens": 1, "cache_read_input_tokens": 2.0, "cache_creation_input_tokens": 3, "output_tokens": null}}),
                Outcome {
                    text: "\u{1b}[1mdone".into(),
                    permission_denials: 2,
                    usage: Usage {
                        input_tokens: 1,
                        cache_read_tokens: 2,
                        cache_write_tokens: 3,
                        ..Usage::default()
                    },
                    ..Outcome::default()
                },
            ),
        ];
        for (mut line, expected) in cases {
            line["type"] = "result".into();
            assert_eq!(events(&line.to_string()), [Event::Result(Box::new(expected))], "{line}");
        }
    }

    #[test]
    fn a_tools_input_in_short() {
        let long = "x".repeat(1000);
        for (input, expected) in [
            (json!({"command": "cargo test", "description": "Run tests"}), "cargo test".to_owned()),
            (json!({"file_path": "/a.rs", "content": "fn main() {}"}), "/a.rs".to_owned()),
            (json!({"path": "src", "pattern": "todo!"}), "todo!".to_owned()),
            (json!({"url": "https://x.y", "prompt": "read"}), "https://x.y".to_owned()),
            (
                json!({"prompt": "p", "description": "look around", "subagent_type": "g"}),
                "look around".to_owned(),
            ),
            (json!({"command": "\u{1b}[2J  ls\n\trm", "x": 1}), "[2J ls rm".to_owned()),
            (json!({"command": "", "path": null, "task_id": 7}), "7".to_owned()),
            (json!({"command": long}), format!("{}…", "x".repeat(119))),
            (json!({"todos": [1, 2]}), String::new()),
            (json!("ls"), String::new()),
            (json!(null), String::new()),
        ] {
            let line = json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "1", "name": "\u{7}T", "input": input}]}});
            assert_eq!(events(&line.to_string()), [tool("1", "T", &expected)], "{input}");
        }
    }

    #[test]
    fn what_plugins_suffer_from() {
        let found = include_str!("samples/plugin-error.jsonl").lines().flat_map(events).next();
        let Some(Event::Init { plugin_errors, .. }) = found else { panic!("{found:?}") };
        assert_eq!(plugin_errors, ["inline[0]: Path not found: /tmp/stream-samples/nosuch"]);
        let line = json!({"type": "system", "subtype": "init", "plugin_errors": ["a\nb", {"message": "m"}, {"odd": 1}]});
        let found = events(&line.to_string());
        let [Event::Init { plugin_errors, .. }] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(plugin_errors, &["a b", "m", r#"{"odd":1}"#]);
    }

    #[test]
    fn a_huge_result_is_passed_over() {
        let big = "é\\n".repeat(2 << 20);
        let line = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"1","content":"{big}"}}]}},"tool_use_result":"{big}"}}"#
        );
        assert_eq!(events(&line), [ended("1", false)]);
    }

    proptest! {
        #[test]
        fn any_value_in_any_place_is_survived(sample in 0usize..4, line in 0usize..20, key in 0usize..12, odd in 0usize..7) {
            let samples = [
                include_str!("samples/tools.jsonl"), include_str!("samples/usage-limit.jsonl"),
                include_str!("samples/sub-agent.jsonl"), include_str!("samples/error-500.jsonl"),
            ];
            let odd = [json!(null), json!(7), json!(-1.5e300), json!("x"), json!([null, [], {}]), json!({"a": {}}), json!(true)][odd].clone();
            let lines: Vec<&str> = samples[sample].lines().collect();
            let mut value: Value = serde_json::from_str(lines[line % lines.len()]).unwrap();
            let keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            value[&keys[key % keys.len()]] = odd.clone();
            prop_assert!(!events(&value.to_string()).is_empty());
            if let Some(message) = value.get_mut("message").and_then(Value::as_object_mut) {
                for part in message.values_mut() {
                    *part = odd.clone();
                }
                prop_assert!(!events(&value.to_string()).is_empty());
            }
        }

        #[test]
        fn any_text_is_survived(text in any::<String>(), at in 0usize..400) {
            events(&text);
            let line = include_str!("samples/text.jsonl").lines().last().unwrap();
            prop_assert!(!events(&line.chars().take(at).chain(text.chars()).collect::<String>()).is_empty() || at == 0);
        }
    }
}

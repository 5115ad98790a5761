//! Reads one line of the stream, leniently.

use super::{Limit, StreamEvent, StreamResult, UNKNOWN_TOOL};
use crate::claude::object::Object;
use crate::core::decide::figures::{self, Window};
use crate::core::record::Usage;
use crate::core::text::clean;
use crate::core::time::Stamp;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Returns what a line says: several events if it holds several blocks, none if it is blank.
pub fn events(line: &str) -> Vec<StreamEvent> {
    if line.trim().is_empty() {
        return Vec::new();
    }
    let Ok(line) = serde_json::from_str::<Object>(line) else { return vec![StreamEvent::Other] };
    let found = match line.text("type").as_deref() {
        Some("system") => system(&line).into_iter().collect(),
        Some("assistant") => assistant(&line),
        Some("user") => blocks(&line).iter().filter_map(tool_ended).collect(),
        Some("rate_limit_event") => {
            let info = line.object("rate_limit_info");
            rate_limit(&info).into_iter().chain(quota(&info)).collect()
        }
        Some("result") => vec![StreamEvent::Result(Box::new(outcome(&line)))],
        _ => Vec::new(),
    };
    if found.is_empty() { vec![StreamEvent::Other] } else { found }
}

impl Object<'_> {
    /// Reads a number that may be written with a fraction.
    fn number(&self, key: &str) -> Option<f64> {
        self.read::<f64>(key).filter(|number| number.is_finite())
    }

    fn count(&self, key: &str) -> u64 {
        // A float that is out of range becomes the nearest number.
        self.number(key).unwrap_or(0.0) as u64
    }

    fn length(&self, key: &str) -> usize {
        self.read::<Vec<IgnoredAny>>(key).map_or(0, |list| list.len())
    }

    /// Reads the id of a tool call; real ones are far shorter than this bound.
    fn id(&self, key: &str) -> String {
        self.text(key).unwrap_or_default().chars().take(128).collect()
    }

    /// Reads a short word of the client, safe to show.
    fn word(&self, key: &str) -> Option<String> {
        self.text(key).map(|text| clean::excerpt(&text, 80)).filter(|text| !text.is_empty())
    }

    fn status(&self, key: &str) -> Option<u16> {
        self.read::<u16>(key).filter(|status| *status > 0)
    }

    /// Reads the session id. It is handed back to the client as an argument, so anything else is refused.
    fn session_id(&self) -> Option<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_id =
            |id: &String| (1..=128).contains(&id.len()) && id.chars().all(is_plain) && !id.starts_with('-');
        self.text("session_id").filter(is_id)
    }
}

fn system(line: &Object) -> Option<StreamEvent> {
    match line.text("subtype")?.as_str() {
        "init" => Some(StreamEvent::Init { session_id: line.session_id() }),
        "api_retry" => {
            let (attempt, error_status) = (line.count("attempt"), line.status("error_status"));
            Some(StreamEvent::Retry { attempt, error_status })
        }
        "background_tasks_changed" => Some(StreamEvent::Background { running: line.length("tasks") }),
        _ => None,
    }
}

/// Returns the blocks of a message; a message that is one text has none.
fn blocks<'a>(line: &Object<'a>) -> Vec<Object<'a>> {
    line.object("message").objects("content")
}

fn assistant(line: &Object) -> Vec<StreamEvent> {
    let is_sub_agent = line.raw("parent_tool_use_id").is_some();
    if line.is_true("is_api_error_message") || line.raw("error").is_some() {
        return api_error(line, is_sub_agent);
    }
    // The client also speaks in the agent's place, and says so.
    let is_synthetic = line.object("message").text("model").as_deref() == Some("<synthetic>");
    let is_own = !is_sub_agent && !is_synthetic;
    let event = |block: &Object| match block.text("type")?.as_str() {
        "text" if is_own => block.text("text").filter(|text| !text.trim().is_empty()).map(StreamEvent::Text),
        "tool_use" => Some(StreamEvent::ToolStarted {
            id: block.id("id"),
            name: block.word("name").unwrap_or_default(),
            summary: summary(&block.object("input")),
        }),
        _ => None,
    };
    let context = || context(&line.object("message").object("usage"));
    blocks(line).iter().filter_map(event).chain(is_own.then(context).flatten()).collect()
}

/// Returns how many tokens were in the context of an answer.
fn context(usage: &Object) -> Option<StreamEvent> {
    let parts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
    let tokens = parts.iter().map(|part| usage.count(part)).fold(0, u64::saturating_add);
    (tokens > 0).then_some(StreamEvent::Context { tokens })
}

fn api_error(line: &Object, is_sub_agent: bool) -> Vec<StreamEvent> {
    let limit = rate_limit(&line.object("api_error_params").object("rate_limit_info"));
    let error = StreamEvent::ApiError {
        kind: line.word("error").unwrap_or_default(),
        status: line.status("api_error_status"),
    };
    limit.into_iter().chain((!is_sub_agent).then_some(error)).collect()
}

/// Returns the value of a tool's input that says most about it.
pub fn summary(input: &Object) -> String {
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
    let scalar =
        |key: &&str| input.text(key).or_else(|| input.read::<i64>(key).map(|number| number.to_string()));
    let mut found = TELLING.iter().filter_map(scalar).map(|text| clean::excerpt(&text, WIDTH));
    found.find(|text| !text.is_empty()).unwrap_or_default()
}

fn tool_ended(block: &Object) -> Option<StreamEvent> {
    (block.text("type")? == "tool_result")
        .then(|| StreamEvent::ToolEnded { id: block.id("tool_use_id"), failed: block.is_true("is_error") })
}

/// Returns the windows of the user's plan whose level is told.
fn quota(info: &Object) -> Option<StreamEvent> {
    let window = |name: &str, window: &Object| {
        let percent = window.number("utilization").map(|part| part * 100.0);
        let resets_at = window.read("resetsAt").as_ref().and_then(Stamp::of_client);
        // The client's figure has two decimals.
        Window::new(name, percent.map(|percent| (percent * 100.0).round() / 100.0), resets_at)
    };
    let all = info.object("unifiedWindows");
    let mut windows = figures::usable_windows(all.keys().filter_map(|name| window(name, &all.object(name))));
    let main = info.text("rateLimitType").unwrap_or_default();
    if !windows.iter().any(|window| window.name == main) {
        windows.extend(window(&main, info));
    }
    (!windows.is_empty()).then_some(StreamEvent::Quota(windows))
}

/// Returns the state of the limits, if it is a known one.
pub fn rate_limit(info: &Object) -> Option<StreamEvent> {
    let status = match info.text("status")?.as_str() {
        "allowed" => Limit::Allowed,
        "allowed_warning" => Limit::Warning,
        // Extra usage pays for what the plan rejects.
        "rejected" if info.is_true("isUsingOverage") => Limit::Warning,
        "rejected" => Limit::Rejected,
        _ => return None,
    };
    let resets_at = info.read("resetsAt").as_ref().and_then(Stamp::of_client);
    Some(StreamEvent::RateLimit { status, resets_at })
}

fn outcome(line: &Object) -> StreamResult {
    let subtype = line.word("subtype").unwrap_or_default();
    let errors: Vec<Value> = line.read("errors").unwrap_or_default();
    let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
    let tokens = line.object("usage");
    StreamResult {
        is_error: line.read("is_error").unwrap_or_else(|| subtype.starts_with("error")),
        subtype,
        api_error_status: line.status("api_error_status"),
        api_error: line.word("api_error"),
        text: line.text("result").unwrap_or_else(|| errors.join("\n")),
        usage: Usage {
            input_tokens: tokens.count("input_tokens"),
            output_tokens: tokens.count("output_tokens"),
            cache_read_tokens: tokens.count("cache_read_input_tokens"),
            cache_write_tokens: tokens.count("cache_creation_input_tokens"),
            cost_usd: figures::usable_usd(line.number("total_cost_usd")),
            ..Usage::default()
        },
        session_id: line.session_id(),
        context_window: context_window(&line.object("modelUsage")),
        denied_tools: denied_tools(line),
    }
}

/// Returns the size of the context; with several models, of the one that was given most to read.
fn context_window(models: &Object) -> Option<u64> {
    let models = models.keys().map(|name| models.object(name)).map(|model| {
        let read = model.count("inputTokens") + model.count("cacheReadInputTokens");
        (read, model.count("contextWindow"))
    });
    models.filter(|(_, size)| *size > 0).max().map(|(_, size)| size)
}

/// Returns the names of the tools that were denied. They go into advice for the command line, so a name that no tool
/// has is left out of it.
fn denied_tools(line: &Object) -> Vec<String> {
    const MAX_TOOLS: usize = 20;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut tools = Vec::new();
    for denial in line.objects("permission_denials") {
        let name = denial.word("tool_name").filter(|name| name.chars().all(is_name));
        let name = name.unwrap_or_else(|| UNKNOWN_TOOL.to_owned());
        if tools.len() < MAX_TOOLS && !tools.contains(&name) {
            tools.push(name);
        }
    }
    tools
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn tool(id: &str, name: &str, summary: &str) -> StreamEvent {
        StreamEvent::ToolStarted { id: id.into(), name: name.into(), summary: summary.into() }
    }

    fn ended(id: &str, failed: bool) -> StreamEvent {
        StreamEvent::ToolEnded { id: id.into(), failed }
    }

    #[test]
    fn a_real_turn_with_tools() {
        let found = include_str!("samples/tools.jsonl").lines().flat_map(events);
        let (context, found): (Vec<StreamEvent>, Vec<StreamEvent>) =
            found.partition(|event| matches!(event, StreamEvent::Context { .. }));
        assert!(context.iter().all(|event| *event == StreamEvent::Context { tokens: 11 }), "{context:?}");
        let cost_usd = Some(0.0005600000000000001);
        let usage = Usage { input_tokens: 40, output_tokens: 20, cost_usd, ..Usage::default() };
        let outcome = StreamResult {
            subtype: "success".into(),
            text: "finished".into(),
            usage,
            session_id: Some("s-tools".into()),
            ..StreamResult::default()
        };
        let expected = [
            StreamEvent::Init { session_id: Some("s-tools".into()) },
            StreamEvent::Text("working".into()),
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
            StreamEvent::Text("finished".into()),
            StreamEvent::Result(Box::new(outcome)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_windows_of_a_plan_are_told_with_level_and_reset() {
        let told = |info: &str| {
            let line = format!(r#"{{"type":"rate_limit_event","rate_limit_info":{info}}}"#);
            let found = events(&line).into_iter();
            found
                .filter_map(
                    |event| if let StreamEvent::Quota(windows) = event { Some(windows) } else { None },
                )
                .next()
        };
        let at = Some(Stamp(1_794_834_014_000));
        let window = |name: &str, percent, at| Window::new(name, Some(percent), at).unwrap();
        for (name, info, expected) in [
            (
                "all windows",
                r#"{"status":"allowed","resetsAt":1794834014,"rateLimitType":"five_hour","isUsingOverage":false,
                    "unifiedWindows":{"five_hour":{"utilization":0.5,"resetsAt":1794834014,"status":"allowed"},
                                      "seven_day":{"utilization":0.125,"resetsAt":null}}}"#,
                Some(vec![window("five_hour", 50.0, at), window("seven_day", 12.5, None)]),
            ),
            (
                "an older client, and only near the limit",
                r#"{"status":"allowed_warning","resetsAt":1794834014,"rateLimitType":"five_hour","utilization":0.92}"#,
                Some(vec![window("five_hour", 92.0, at)]),
            ),
            (
                "rejected without a level",
                r#"{"status":"rejected","resetsAt":1794834014,"rateLimitType":"five_hour"}"#,
                None,
            ),
            ("250 %", r#"{"status":"allowed","rateLimitType":"five_hour","utilization":2.5}"#, None),
            (
                "odd types",
                r#"{"status":"allowed","unifiedWindows":{"five_hour":7,"x y":{"utilization":0.5}}}"#,
                None,
            ),
        ] {
            assert_eq!(told(info), expected, "{name}");
        }
        let result = r#"{"type":"result","modelUsage":{"small":{"inputTokens":5,"contextWindow":200000},
            "main":{"inputTokens":2,"cacheReadInputTokens":90,"contextWindow":1000000},"odd":null}}"#;
        let Some(StreamEvent::Result(outcome)) = events(result).pop() else { panic!() };
        assert_eq!(outcome.context_window, Some(1_000_000));
    }

    #[test]
    fn lines_and_what_they_say() {
        let limit = |status, at: Option<i64>| StreamEvent::RateLimit { status, resets_at: at.map(Stamp) };
        let error = |kind: &str, status| StreamEvent::ApiError { kind: kind.into(), status };
        let cases = [
            ("garbage", "Warning: no stdin data received", vec![StreamEvent::Other]),
            ("blank", " \t", vec![]),
            ("cut off", r#"{"type":"assistant","message":{"#, vec![StreamEvent::Other]),
            (
                "another type",
                r#"{"type":"stream_event","event":{"type":"message_stop"}}"#,
                vec![StreamEvent::Other],
            ),
            ("not an object", r#"["assistant"]"#, vec![StreamEvent::Other]),
            ("no type", "{}", vec![StreamEvent::Other]),
            ("nulls", r#"{"type":"system","subtype":null,"session_id":null}"#, vec![StreamEvent::Other]),
            (
                "init of nulls",
                r#"{"type":"system","subtype":"init","session_id":null,"model":7,"tools":{},"plugin_errors":null}"#,
                vec![StreamEvent::Init { session_id: None }],
            ),
            (
                "an id that is an option",
                r#"{"type":"system","subtype":"init","session_id":"--help"}"#,
                vec![StreamEvent::Init { session_id: None }],
            ),
            (
                "several blocks",
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"a"},7,{"type":"thinking"},{"type":"tool_use","id":"1","name":"Glob","input":{"pattern":"*.rs"}},{"type":"text","text":" "},{"type":"text","text":"b"}]}}"#,
                vec![StreamEvent::Text("a".into()), tool("1", "Glob", "*.rs"), StreamEvent::Text("b".into())],
            ),
            (
                "several results",
                r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1"},{"type":"tool_result","tool_use_id":"2","is_error":true,"content":[{}]}]}}"#,
                vec![ended("1", false), ended("2", true)],
            ),
            ("a prompt", r#"{"type":"user","message":{"content":"go on"}}"#, vec![StreamEvent::Other]),
            (
                "content of another type",
                r#"{"type":"assistant","message":{"content":{"type":"text"}}}"#,
                vec![StreamEvent::Other],
            ),
            (
                "a sub-agent's words",
                r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}"#,
                vec![StreamEvent::Other],
            ),
            (
                "a sub-agent's tool",
                r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls"}}]}}"#,
                vec![tool("1", "Bash", "ls")],
            ),
            (
                "the client in the agent's place",
                r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}"#,
                vec![StreamEvent::Other],
            ),
            (
                "an error",
                r#"{"type":"assistant","error":"billing_error","is_api_error_message":true,"api_error_status":400,"message":{"content":[{"type":"text","text":"Credit balance is too low"}]}}"#,
                vec![error("billing_error", Some(400))],
            ),
            (
                "a sub-agent's error",
                r#"{"type":"assistant","parent_tool_use_id":"t","error":"server_error","is_api_error_message":true}"#,
                vec![StreamEvent::Other],
            ),
            (
                "an error that names the limit",
                r#"{"type":"assistant","error":"rate_limit","api_error_params":{"rate_limit_info":{"status":"rejected","resetsAt":1794834014}}}"#,
                vec![limit(Limit::Rejected, Some(1_794_834_014_000)), error("rate_limit", None)],
            ),
            (
                "a retry",
                r#"{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":604.5,"error_status":500,"error":"server_error"}"#,
                vec![StreamEvent::Retry { attempt: 2, error_status: Some(500) }],
            ),
            (
                "a retry without an answer",
                r#"{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":-5,"error_status":null}"#,
                vec![StreamEvent::Retry { attempt: 1, error_status: None }],
            ),
            (
                "background",
                r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"a"},{"task_id":"b"}]}"#,
                vec![StreamEvent::Background { running: 2 }],
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
                vec![StreamEvent::Other],
            ),
            (
                "a limit of nothing",
                r#"{"type":"rate_limit_event","rate_limit_info":null}"#,
                vec![StreamEvent::Other],
            ),
            ("an empty result", r#"{"type":"result"}"#, vec![StreamEvent::Result(Box::default())]),
            (
                "half a character",
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"a\ud83d b"}]}}"#,
                vec![StreamEvent::Text("a\u{fffd} b".into())],
            ),
            (
                "a result with half a character",
                r#"{"type":"result","result":"a\ud83d b"}"#,
                vec![StreamEvent::Result(Box::new(StreamResult {
                    text: "a\u{fffd} b".into(),
                    ..StreamResult::default()
                }))],
            ),
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
                StreamResult {
                    is_error: true,
                    subtype: "error_max_turns".into(),
                    text: "Reached maximum number of turns (1)".into(),
                    ..StreamResult::default()
                },
            ),
            (
                json!({"subtype": "success", "is_error": true, "api_error_status": 429, "api_error": "usage_limit_reached",
                "result": null, "total_cost_usd": "free", "usage": 7, "num_turns": -1}),
                StreamResult {
                    is_error: true,
                    subtype: "success".into(),
                    api_error_status: Some(429),
                    api_error: Some("usage_limit_reached".into()),
                    ..StreamResult::default()
                },
            ),
            (
                json!({"is_error": false, "result": "\u{1b}[1mdone", "permission_denials": [{"tool_name": "Bash"}, {}, {"tool_name": "Bash"}, {"tool_name": "x; rm -r /"}], "session_id": "a b",
                "usage": {"input_tokens": 1, "cache_read_input_tokens": 2.0, "cache_creation_input_tokens": 3, "output_tokens": null}}),
                StreamResult {
                    text: "\u{1b}[1mdone".into(),
                    denied_tools: vec!["Bash".into(), UNKNOWN_TOOL.into()],
                    usage: Usage {
                        input_tokens: 1,
                        cache_read_tokens: 2,
                        cache_write_tokens: 3,
                        ..Usage::default()
                    },
                    ..StreamResult::default()
                },
            ),
        ];
        for (mut line, expected) in cases {
            line["type"] = "result".into();
            assert_eq!(events(&line.to_string()), [StreamEvent::Result(Box::new(expected))], "{line}");
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
    fn a_huge_result_is_skipped() {
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

//! What the module in Claude Code (`hooks/register.js`) tells us: one event as JSON, with the session's figures.

use crate::claude::object::Object;
use crate::core::time::Stamp;
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, PartialEq)]
pub struct ModuleInput {
    pub session_id: String,
    /// A turn of the agent is running.
    pub running: bool,
    pub event: ModuleEvent,
    /// Cost, context and usage limits, as the input of a status line has them. What the client does not tell is left out.
    pub figures: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ModuleEvent {
    /// The module is loaded, or the session has a new id.
    Session,
    /// Something may have changed: the figures, the loop or its guidance.
    Refresh,
    /// The turn was cut short; the last message of the conversation says by what.
    Aborted { last: String },
    /// The user typed one of the module's commands.
    Command { name: String, text: String },
}

/// Parses an event; `None` if it is none that we know, or names no session.
pub fn parse(bytes: &[u8]) -> Option<ModuleInput> {
    let text = String::from_utf8_lossy(bytes);
    let fields: Object = serde_json::from_str(&text).ok()?;
    let text = |name: &str| fields.text(name).unwrap_or_default();
    let event = match text("event").as_str() {
        "session" => ModuleEvent::Session,
        "refresh" => ModuleEvent::Refresh,
        "aborted" => ModuleEvent::Aborted { last: text("last") },
        "command" => ModuleEvent::Command { name: text("command"), text: text("args") },
        _ => return None,
    };
    let session_id = fields.text("session_id")?;
    Some(ModuleInput {
        session_id,
        running: fields.is_true("running"),
        event,
        figures: figures(&fields.object("usage")),
    })
}

fn figures(usage: &Object) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Some(usd) = usage.object("cost").read::<f64>("usd") {
        let started_at = usage.read::<f64>("startedAt");
        fields.insert("cost".into(), json!({"total_cost_usd": usd, "started_at": started_at}));
    }
    let context = usage.object("context");
    let names =
        [("used_percentage", "percent"), ("total_input_tokens", "tokens"), ("context_window_size", "window")];
    let known =
        names.into_iter().filter_map(|(name, own)| Some((name.to_owned(), context.read::<Value>(own)?)));
    let known: Map<String, Value> = known.filter(|(_, value)| value.is_number()).collect();
    if !known.is_empty() {
        fields.insert("context_window".into(), Value::Object(known));
    }
    let limits = usage.objects("rateLimits").into_iter().filter_map(|limit| {
        let used = limit.read::<f64>("percentUsed")?;
        let resets_at = limit.text("resetsAt").and_then(|at| Stamp::parse(&at)).map(|at| at.0 / 1000);
        Some((limit.text("kind")?, json!({"used_percentage": used, "resets_at": resets_at})))
    });
    let limits: Map<String, Value> = limits.collect();
    if !limits.is_empty() {
        fields.insert("rate_limits".into(), Value::Object(limits));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_figures_of_real_clients_are_read() {
        let seen = r#"{"event":"command","session_id":"s","running":true,"command":"forbid","args":"a \"b\" $(c)",
            "usage":{"startedAt":1795012486541,"context":{"tokens":10,"window":1000000,"percent":0},
            "rateLimits":[{"kind":"five_hour","percentUsed":92.5,"resetsAt":"2026-11-18T15:00:00.000Z"},{"kind":"seven_day","percentUsed":7}],
            "cost":{"usd":0.00028}}}"#;
        let input = parse(seen.as_bytes()).unwrap();
        assert_eq!(input.event, ModuleEvent::Command { name: "forbid".into(), text: "a \"b\" $(c)".into() });
        assert_eq!((input.session_id.as_str(), input.running), ("s", true));
        let expected = json!({
            "cost": {"total_cost_usd": 0.00028, "started_at": 1_795_012_486_541.0},
            "context_window": {"used_percentage": 0, "total_input_tokens": 10, "context_window_size": 1_000_000},
            "rate_limits": {
                "five_hour": {"used_percentage": 92.5, "resets_at": 1_795_014_000},
                "seven_day": {"used_percentage": 7.0, "resets_at": null},
            },
        });
        assert_eq!(Value::Object(input.figures), expected);
    }

    #[test]
    fn what_the_client_does_not_tell_is_left_out() {
        for (name, usage) in [
            ("nothing", "null"),
            ("before the first reply", r#"{"context":{},"rateLimits":[]}"#),
            (
                "other types",
                r#"{"context":{"percent":"x","window":null},"rateLimits":[7,{"kind":1}],"cost":{"usd":"1"}}"#,
            ),
            ("a limit without a figure", r#"{"rateLimits":[{"kind":"five_hour"}]}"#),
        ] {
            let text = format!(r#"{{"event":"refresh","session_id":"s","usage":{usage}}}"#);
            let input = parse(text.as_bytes()).unwrap();
            assert_eq!((input.running, input.figures.len()), (false, 0), "{name}: {:?}", input.figures);
        }
        for other in ["", "{", "[]", "{}", r#"{"event":"refresh"}"#, r#"{"event":"later","session_id":"s"}"#]
        {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }
}

//! The events of a run, a line each: what is read can be written and read again, and every list of them has a timeline.

use ralph::core::event::Event;
use ralph::core::event::timeline::Timeline;
use serde_json::Value;

pub fn check(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n');
    let events: Vec<Event> = lines.filter_map(Event::parse).collect();
    for event in &events {
        let line = serde_json::to_vec(event).expect("it can be written");
        let again = Event::parse(&line).expect("what we write can be read");
        let (before, after) = (to_value(event), to_value(&again));
        assert!(is_same(&before, &after), "{before}\n{after}");
    }
    let timeline = Timeline::of(events);
    let _ = (timeline.outcome(), timeline.last_iteration(), timeline.spent());
}

fn to_value(event: &Event) -> Value {
    serde_json::to_value(event).expect("it can be written")
}

/// Returns whether two values are the same but for the last digit of a fraction, which the JSON parser rounds in haste.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap_or_default(), other.as_f64().unwrap_or_default());
            (one - other).abs() <= one.abs() * 1e-12
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(name, value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}

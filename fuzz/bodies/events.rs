//! The events of a run, a line each: what is read can be written and read again, and every list of them has a timeline.

use ralph::core::event::Event;
use ralph::core::event::timeline::Timeline;

pub fn check(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n');
    let events: Vec<Event> = lines.filter_map(Event::parse).collect();
    for event in &events {
        let line = serde_json::to_vec(event).expect("it can be written");
        let again = Event::parse(&line).expect("what we write can be read");
        assert_eq!(serde_json::to_vec(&again).expect("it can be written"), line);
    }
    let timeline = Timeline::of(events);
    let _ = (timeline.outcome(), timeline.last_iteration(), timeline.spent());
}

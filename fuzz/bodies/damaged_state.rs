//! A state file that may be damaged: it is moved aside and never lost, what can be saved of it is, and the next one is whole.

use super::place::Place;
use ralph::core::time::Stamp;
use ralph::store::state::{Document, Locked, StateError};

/// 2026-11-16, 08:00 UTC.
const NOW: Stamp = Stamp(1_794_816_000_000);

pub fn check(bytes: &[u8]) {
    let place = Place::new();
    place.write("project/.claude/ralph-state.json", bytes);
    let mut state = match Locked::open(&place.project, NOW) {
        Ok(state) => state,
        Err(StateError::Newer(..)) => return,
        Err(error) => panic!("{error}"),
    };
    let files = || std::fs::read_dir(place.project.claude_dir()).expect("a folder").flatten();
    let is_kept = || files().any(|entry| std::fs::read(entry.path()).is_ok_and(|kept| kept == bytes));
    assert!(is_kept(), "the file is lost");
    let saved: Vec<_> = state.document.loops().collect();
    state.save().expect("it can be saved");
    drop(state);
    let again = Locked::open(&place.project, NOW).unwrap_or_else(|error| panic!("{error}"));
    assert!(again.moved_aside.is_none(), "what we saved is damaged");
    assert_eq!(again.document.loops().collect::<Vec<_>>(), saved);
    assert!(Document::parse(&again.document.write()).is_ok());
}

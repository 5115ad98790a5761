//! What this user gave in a project: guidance and answers. A damaged record is an error, never silence, and one that can
//! be read makes nothing the user's that the state does not say too.

use super::place::Place;
use ralph::store::state::Document;
use ralph::store::user::{answers, given_guidance};
use serde_json::{Value, json};

pub fn check(bytes: &[u8]) {
    let place = Place::new();
    let (world, project) = (&place.world, &place.project);
    let name = |folder: &str| format!("data/{folder}/{}.json", project.key());
    place.write(&name("answers"), bytes);
    if let Ok(mut list) = answers::load(world, project) {
        answers::add(&mut list, ["one more".to_owned()]);
        answers::save(world, project, &list).expect("it can be saved");
        assert_eq!(answers::load(world, project).expect("it can be read"), list);
    }
    let told: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let state = json!({"version": 1, "loops": {}, "guidance": told}).to_string();
    let Ok(document) = Document::parse(state.as_bytes()) else { return };
    let stated = document.stated_guidance();
    let count = |given: &ralph::core::guidance::Guidance| {
        given.encouraged.len() + given.forbidden.len() + given.allowed.len()
    };
    let root = project.real_root();
    for record in [bytes.to_vec(), json!({"project": root, "guidance": told}).to_string().into_bytes()] {
        place.write(&name("given"), &record);
        let Ok(ours) = given_guidance::guidance(world, project, &document) else { continue };
        assert!(count(&ours) + ours.foreign.len() <= count(&stated), "{ours:?}");
        let note = given_guidance::foreign_note(world, project, &document);
        assert!(note.is_none_or(|note| !note.contains(char::is_control)));
    }
}

//! Files in the user's own folders, which may be damaged: past runs, breakers, armed loops, the spending of a day, and what the client says of
//! its sessions and to a status line.

use super::place::Place;
use ralph::claude::client::sessions;
use ralph::claude::settings::statusline;
use ralph::store::user::{armed, circuit, history, ledger, stalls};
use std::collections::HashSet;

pub fn check(bytes: &[u8]) {
    let place = Place::new();
    let (world, project, key) = (&place.world, &place.project, place.project.key());
    for name in ["", ".circuit", ".stalls"] {
        place.write(&format!("data/history/{key}{name}.jsonl"), bytes);
    }
    for name in ["data/circuit/x.json", "data/sessions/x.json", "claude/sessions/1.json"] {
        place.write(name, bytes);
    }
    let runs = history::runs(world, project).expect("it can be read");
    let ids: HashSet<&str> = runs.iter().map(|run| run.run_id.as_str()).collect();
    assert_eq!(ids.len(), runs.len(), "a run is there twice");
    assert!(runs.iter().all(|run| history::contains(world, project, &run.run_id).expect("it can be read")));
    let _ = (circuit::events(world, project), circuit::records(world, None), stalls::stalls(world, project));
    let _ = (armed::records(world), armed::projects(world), history::projects(world));
    circuit::expire(world, project, "s", 1);
    let _ = sessions::status(world, "s");
    place.write(&format!("data/ledger/{}.json", world.now.date()), bytes);
    let (spent, _) = ledger::today(world).expect("a damaged day is counted again");
    assert!(spent.usd >= 0.0 && spent.usd.is_finite());
    assert_eq!(ledger::today(world).expect("it can be read"), (spent, None), "it is repaired once");
    let _ = statusline::parse(bytes);
}

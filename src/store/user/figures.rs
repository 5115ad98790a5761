//! What the client last told of a session's cost, context and quota: one small file for each session, written by
//! `ralph statusline` and `ralph module`, and read by the Stop hook. It is in the user's own folder, where no repository can write.

use crate::core::decide::figures::{FigureSource, Figures, Told, Window};
use crate::core::record::lenient_list;
use crate::core::time::Stamp;
use crate::store::file::lock::Lock;
use crate::store::project::fingerprint;
use crate::store::{World, file};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

const MAX_BYTES: u64 = 64 << 10;
/// A session that is older and continues begins a new file.
const EXPIRES_AFTER: Duration = Duration::from_secs(30 * 86_400);
/// The client measures its own time from a little after its start.
const START_SLACK_MS: i64 = 2_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    session_id: String,
    at: Stamp,
    source: FigureSource,
    has_module: bool,
    /// The running cost of the client's present process, which may begin at 0 when it is restarted.
    cost_usd: Option<f64>,
    /// What it was when the session was first looked at.
    first_usd: Option<f64>,
    /// The cost over all processes; it never shrinks.
    spent_usd: Option<f64>,
    duration_ms: Option<i64>,
    api_duration_ms: Option<i64>,
    context_percent: Option<f64>,
    #[serde(deserialize_with = "lenient_list")]
    windows: Vec<Window>,
}

fn path(world: &World, session: &str) -> Result<PathBuf> {
    let name = format!("{:016x}.json", fingerprint(session.as_bytes()));
    Ok(world.data_dir()?.join("figures").join(name))
}

/// Returns the record of a session; one that is damaged or of another session is none.
fn record(world: &World, session: &str) -> Option<Record> {
    let record: Record = file::read_json(&path(world, session).ok()?, MAX_BYTES)?;
    (record.session_id == session).then_some(record)
}

/// Keeps what the client told, if it is new.
pub fn keep(world: &World, session: &str, told: &Told) -> Result<()> {
    if told.is_empty() {
        return Ok(());
    }
    let before = record(world, session);
    let Some(next) = next(before.as_ref(), session, told, world.now) else { return Ok(()) };
    let path = path(world, session)?;
    if before.is_none() {
        let folder = path.parent().unwrap_or(&path);
        file::create_dir(folder)?;
        super::handoff::sweep(folder, EXPIRES_AFTER);
    }
    file::replace_unsynced(&path, &serde_json::to_vec(&next)?)
}

/// Returns the right to watch for a reset in a session, unless another process has it.
pub fn watch(world: &World, session: &str) -> Option<Lock> {
    let path = path(world, session).ok()?.with_extension("lock");
    file::create_dir(path.parent()?).ok()?;
    Lock::acquire_unless(&path, || true).ok()?
}

/// Returns the figures of a session.
pub fn load(world: &World, session: &str) -> Option<Figures> {
    let record = record(world, session)?;
    Some(Figures {
        at: record.at,
        source: record.source,
        spent_usd: record.spent_usd,
        first_usd: record.first_usd,
        context_percent: record.context_percent,
        windows: record.windows,
        has_module: record.has_module,
    })
}

/// Returns the record after this, or nothing if the client told nothing new: the same again, or something that a later
/// call has overtaken.
fn next(before: Option<&Record>, session: &str, told: &Told, now: Stamp) -> Option<Record> {
    let mut next = Record {
        session_id: session.to_owned(),
        at: now,
        source: told.source,
        has_module: told.source == FigureSource::Module,
        cost_usd: told.cost_usd,
        first_usd: told.cost_usd,
        spent_usd: told.cost_usd,
        duration_ms: told.duration_ms,
        api_duration_ms: told.api_duration_ms,
        context_percent: told.context_percent,
        windows: told.windows.clone(),
    };
    let Some(before) = before else { return Some(next) };
    // A client has both, and each tells the same.
    next.has_module |= before.has_module;
    let is_same = before.has_module == next.has_module
        && before.cost_usd == told.cost_usd
        && before.api_duration_ms == told.api_duration_ms
        && before.context_percent == told.context_percent
        && before.windows == told.windows;
    let is_late = match (before.duration_ms, told.duration_ms) {
        // A new process cannot be older than the time since the last call of the old one.
        (Some(earlier), Some(later)) => later < earlier && later > (now - before.at).max(0) + START_SLACK_MS,
        _ => false,
    };
    if is_same || is_late {
        return None;
    }
    (next.first_usd, next.spent_usd) = match (before.cost_usd, told.cost_usd) {
        (Some(earlier), Some(later)) => {
            let more = if later >= earlier { later - earlier } else { later };
            (before.first_usd, before.spent_usd.map(|spent| spent + more))
        }
        // A figure that is missing once does not take back the sum.
        (Some(_), None) => {
            next.cost_usd = before.cost_usd;
            (before.first_usd, before.spent_usd)
        }
        (None, later) => (later, later),
    };
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cost: f64, duration_ms: i64) -> Told {
        Told {
            cost_usd: Some(cost),
            duration_ms: Some(duration_ms),
            api_duration_ms: Some(duration_ms / 2),
            ..Told::default()
        }
    }

    fn at(second: i64, dir: &std::path::Path) -> World {
        let mut world = World::at(dir, dir);
        world.now = Stamp(1_000_000_000 + second * 1000);
        world
    }

    /// The sum after what the client told at these seconds.
    fn spent(calls: &[(i64, Told)]) -> Option<f64> {
        let dir = tempfile::tempdir().unwrap();
        for (second, told) in calls {
            keep(&at(*second, dir.path()), "s", told).unwrap();
        }
        load(&at(0, dir.path()), "s")?.spent_usd
    }

    #[test]
    fn cost_is_one_sum_over_restarts_of_the_client() {
        for (name, calls, expected) in [
            ("nothing told", vec![(0, Told::default())], None),
            ("one process", vec![(0, told(1.0, 10_000)), (60, told(1.5, 70_000))], Some(1.5)),
            (
                "restarted at 0",
                vec![(0, told(1.0, 900_000)), (60, told(0.25, 20_000)), (90, told(0.5, 50_000))],
                Some(1.5),
            ),
            (
                "restarted with its sum",
                vec![(0, told(1.0, 900_000)), (60, told(1.25, 20_000)), (90, told(1.5, 50_000))],
                Some(1.5),
            ),
            (
                "a call that a later one has overtaken",
                vec![(0, told(1.0, 900_000)), (1, told(2.0, 910_000)), (2, told(1.5, 905_000))],
                Some(2.0),
            ),
            (
                "missing once",
                vec![
                    (0, told(1.0, 10_000)),
                    (9, Told { context_percent: Some(5.0), ..Told::default() }),
                    (20, told(1.5, 30_000)),
                ],
                Some(1.5),
            ),
        ] {
            assert_eq!(spent(&calls), expected, "{name}");
        }
    }

    #[test]
    fn the_file_is_private_and_written_only_for_news() {
        let dir = tempfile::tempdir().unwrap();
        keep(&at(0, dir.path()), "s", &told(1.0, 1000)).unwrap();
        keep(&at(5, dir.path()), "s", &Told { duration_ms: Some(6000), ..told(1.0, 1000) }).unwrap();
        let world = at(9, dir.path());
        assert_eq!(load(&world, "s").unwrap().at, at(0, dir.path()).now, "nothing new was told");
        let path = path(&world, "s").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::write(&path, "{\"session_id\":\"s\",\"cost").unwrap();
        assert_eq!(load(&world, "s"), None, "half a file");
        keep(&world, "s", &told(3.0, 9000)).unwrap();
        assert_eq!(load(&world, "s").unwrap().spent_usd, Some(3.0), "and it is replaced");
        let other = std::fs::read_to_string(&path).unwrap().replace("\"s\"", "\"t\"");
        std::fs::write(&path, other).unwrap();
        assert_eq!(load(&world, "s"), None, "the file of another session");
    }
}

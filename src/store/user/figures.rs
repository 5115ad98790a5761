//! What the client last told of a session's cost, context and quota: one small file for each session, written by
//! `ralph statusline` and `ralph module`, and read by the Stop hook. It is in the user's own folder, where no repository can write.

use crate::core::decide::figures::{ClientFigures, FigureSource, Figures, Window};
use crate::core::record::lenient_list;
use crate::core::time::Stamp;
use crate::store::file::Privacy;
use crate::store::file::lock::Lock;
use crate::store::project::stable_hash;
use crate::store::{World, file};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

const MAX_BYTES: u64 = 64 << 10;
/// A session that is older and continues begins a new file.
const EXPIRES_AFTER: Duration = Duration::from_secs(30 * 86_400);
/// What the client told may reach us this much later, so that its process seems to have begun later too.
const MAX_LATE_MS: i64 = 30_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    session_id: String,
    at: Stamp,
    source: FigureSource,
    has_module: bool,
    /// When the client's present process began, as far as it was told.
    began_at: Option<Stamp>,
    /// The highest running cost of that process, which may begin at 0.
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
    let name = format!("{:016x}.json", stable_hash(session.as_bytes()));
    Ok(world.data_dir()?.join("figures").join(name))
}

/// Returns the record of a session; one that is damaged or of another session is none.
fn record(world: &World, session: &str) -> Option<Record> {
    let record: Record = file::read_json(&path(world, session).ok()?, MAX_BYTES)?;
    (record.session_id == session).then_some(record)
}

/// Keeps what the client told, if it is new.
pub fn keep(world: &World, session: &str, reported: &ClientFigures) -> Result<()> {
    if reported.is_empty() {
        return Ok(());
    }
    let news = || next(record(world, session).as_ref(), session, reported, world.now);
    // Most calls bring nothing new, and need no lock for that.
    if news().is_none() {
        return Ok(());
    }
    let path = path(world, session)?;
    let folder = path.parent().unwrap_or(&path);
    file::create_dir(folder)?;
    // The status line and the module tell at the same time.
    let _lock = Lock::acquire(&folder.join("lock"))?;
    if !path.exists() {
        super::handoff::remove_expired(folder, EXPIRES_AFTER);
    }
    let Some(next) = news() else { return Ok(()) };
    file::replace_locked_unflushed(&path, &serde_json::to_vec(&next)?, Privacy::Private)
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

/// Which process of the client a figure is of.
#[derive(PartialEq)]
enum Process {
    Same,
    /// It was started after the one that is known.
    New,
    /// A new one has told figures since.
    Earlier,
}

/// Tells processes of the client by when they began: a smaller cost alone may also be a figure that comes late.
fn process(before: &Record, began_at: Option<Stamp>, source: FigureSource, now: Stamp) -> Process {
    let (Some(known), Some(began)) = (before.began_at, began_at) else { return Process::Same };
    let is_just_told = (0..=MAX_LATE_MS).contains(&(now - before.at));
    // The clock was set back since.
    if began - known > MAX_LATE_MS || known - now > MAX_LATE_MS {
        return Process::New;
    }
    // The module tells the beginning of the session, which a process that continues one takes over.
    if known - began > MAX_LATE_MS && is_just_told && source != FigureSource::Module {
        return Process::Earlier;
    }
    Process::Same
}

/// Returns the record after this, or nothing if the client told nothing new: the same again, or something that a later
/// call has overtaken.
fn next(before: Option<&Record>, session: &str, reported: &ClientFigures, now: Stamp) -> Option<Record> {
    let began_at = reported.began_at.or_else(|| Some(now.plus_ms(reported.duration_ms?.checked_neg()?)));
    let mut next = Record {
        session_id: session.to_owned(),
        at: now,
        source: reported.source,
        has_module: reported.source == FigureSource::Module,
        began_at,
        cost_usd: reported.cost_usd,
        first_usd: reported.cost_usd,
        spent_usd: reported.cost_usd,
        duration_ms: reported.duration_ms,
        api_duration_ms: reported.api_duration_ms,
        context_percent: reported.context_percent,
        windows: reported.windows.iter().map(|window| window.clone().until_its_reset(now)).collect(),
    };
    let Some(before) = before else { return Some(next) };
    // A client has both, and each tells the same.
    next.has_module |= before.has_module;
    let process = process(before, began_at, reported.source, now);
    let is_overtaken =
        before.duration_ms.zip(reported.duration_ms).is_some_and(|(known, reported)| reported < known);
    if process == Process::Earlier || (process == Process::Same && is_overtaken) {
        return None;
    }
    (next.first_usd, next.spent_usd) = (before.first_usd, before.spent_usd);
    match (before.cost_usd, reported.cost_usd) {
        (Some(earlier), Some(later)) => {
            let is_new = process == Process::New;
            let more = if is_new && later < earlier { later } else { (later - earlier).max(0.0) };
            next.spent_usd = before.spent_usd.map(|spent| spent + more);
            next.cost_usd = Some(if is_new { later } else { later.max(earlier) });
        }
        // A figure that is missing once does not take back the sum.
        (Some(earlier), None) => next.cost_usd = Some(earlier),
        (None, later) => (next.first_usd, next.spent_usd) = (later, later),
    }
    // A new process is known by its first cost.
    if process == Process::Same || reported.cost_usd.is_none() {
        next.began_at = before.began_at.or(began_at);
        next.duration_ms = reported.duration_ms.or(before.duration_ms);
        next.api_duration_ms = reported.api_duration_ms.or(before.api_duration_ms);
    }
    let (at, source, duration_ms) = (before.at, before.source, before.duration_ms);
    let is_same = Record { at, source, duration_ms, ..next.clone() } == *before;
    (!is_same).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(cost: f64, duration_ms: i64) -> ClientFigures {
        ClientFigures {
            cost_usd: Some(cost),
            duration_ms: Some(duration_ms),
            api_duration_ms: Some(duration_ms / 2),
            ..ClientFigures::default()
        }
    }

    /// Returns the figures of the module, which knows when the session began and not how long it has run.
    fn by_module(cost: f64, began_second: i64) -> ClientFigures {
        let began_at = Some(Stamp(1_000_000_000 + began_second * 1000));
        ClientFigures {
            source: FigureSource::Module,
            cost_usd: Some(cost),
            began_at,
            ..ClientFigures::default()
        }
    }

    fn at(second: i64, dir: &std::path::Path) -> World {
        let mut world = World::at(dir, dir);
        world.now = Stamp(1_000_000_000 + second * 1000);
        world
    }

    /// The sum after what the client told at these seconds.
    fn spent(calls: &[(i64, ClientFigures)]) -> Option<f64> {
        let dir = tempfile::tempdir().unwrap();
        for (second, told) in calls {
            keep(&at(*second, dir.path()), "s", told).unwrap();
        }
        load(&at(0, dir.path()), "s")?.spent_usd
    }

    #[test]
    fn cost_is_one_sum_over_restarts_of_the_client() {
        for (name, calls, expected) in [
            ("nothing told", vec![(0, ClientFigures::default())], None),
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
                "a status line that the module has overtaken",
                vec![
                    (0, told(0.0, 1_000)),
                    (50, by_module(4.9, -1)),
                    (51, told(4.8, 50_000)),
                    (52, by_module(4.85, -1)),
                    (60, told(5.0, 61_000)),
                ],
                Some(5.0),
            ),
            (
                "a restarted client that only its module tells of",
                vec![(0, by_module(2.0, -900)), (100, by_module(0.25, 90)), (101, by_module(0.5, 90))],
                Some(2.5),
            ),
            (
                "a late call of the process before",
                vec![(0, told(5.0, 900_000)), (60, told(0.25, 10_000)), (61, told(4.9, 958_000))],
                Some(5.25),
            ),
            (
                "a restart whose first call tells no cost",
                vec![
                    (0, told(5.0, 900_000)),
                    (60, ClientFigures { cost_usd: None, context_percent: Some(1.0), ..told(0.0, 10_000) }),
                    (70, told(0.25, 20_000)),
                ],
                Some(5.25),
            ),
            (
                "missing once",
                vec![
                    (0, told(1.0, 10_000)),
                    (9, ClientFigures { context_percent: Some(5.0), ..ClientFigures::default() }),
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
        keep(&at(5, dir.path()), "s", &ClientFigures { duration_ms: Some(6000), ..told(1.0, 1000) }).unwrap();
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

    #[test]
    fn a_reset_beyond_its_window_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let world = at(0, dir.path());
        let hours = |hours: i64| Some(world.now.plus_ms(hours * 3_600_000));
        let cases = [("five_hour", 5, 7), ("seven_day", 7 * 24, 9 * 24), ("spend_limit", 31 * 24, 8_000_000)];
        for (name, near, far) in cases {
            for (reset, expected) in [(hours(near), hours(near)), (hours(far), None), (None, None)] {
                let windows = Window::new(name, Some(92.0), reset).into_iter().collect();
                keep(&world, name, &ClientFigures { windows, ..ClientFigures::default() }).unwrap();
                assert_eq!(load(&world, name).unwrap().windows[0].resets_at, expected, "{name} {reset:?}");
            }
        }
    }

    proptest! {
        /// Each process of the client tells a growing cost, by two tellers that may each come late.
        #[test]
        fn no_order_of_figures_counts_more_than_each_process_told(
            processes in prop::collection::vec(
                prop::collection::vec((1i64..60, 0.0f64..3.0, 0i64..20, any::<bool>()), 1..8),
                1..4,
            )
        ) {
            let mut calls = Vec::new();
            let (mut second, mut most) = (0, 0.0);
            for process in processes {
                let (began, mut cost) = (second, 0.0);
                let end = began + process.iter().map(|(more, ..)| more).sum::<i64>();
                for (more, usd, late, is_module) in process {
                    (second, cost) = (second + more, cost + usd);
                    let told = if is_module { by_module(cost, began) } else { told(cost, (second - began) * 1000) };
                    calls.push(((second + late).min(end), told));
                }
                most += cost;
                second += 60;
            }
            calls.sort_by_key(|(second, _)| *second);
            let dir = tempfile::tempdir().unwrap();
            for (second, told) in calls {
                let world = at(second, dir.path());
                keep(&world, "s", &told).unwrap();
                let spent = load(&world, "s").unwrap().spent_usd.unwrap();
                prop_assert!(spent <= most + 1e-6, "{spent} of {most}");
            }
        }
    }
}

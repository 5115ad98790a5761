//! What all loops of this user have spent today: one small file a day (UTC), added to under a lock.

use crate::core::event::{Event, EventKind};
use crate::core::message;
use crate::core::record::Spent;
use crate::store::events::{self, Follower};
use crate::store::file::lock::Lock;
use crate::store::file::{self, Privacy};
use crate::store::world::World;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

const MAX_BYTES: u64 = 4 << 10;
/// More than anyone spends in a day: larger figures are no money.
const MAX_USD: f64 = 1e9;
const KEPT_FOR: Duration = Duration::from_secs(60 * 86_400);

fn path(world: &World) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("ledger").join(format!("{}.json", world.now.date())))
}

/// Returns what was spent today, and what the user should know. A file that cannot be read is an error: a budget that is
/// forgotten would be none. One that is damaged is moved aside, and what it said is taken from the events of the runs.
pub fn today(world: &World) -> Result<(Spent, Option<String>)> {
    let path = path(world)?;
    match read(&path)? {
        Some(spent) => Ok((spent, None)),
        None => {
            let _lock = lock(&path)?;
            read_or_repair(world, &path)
        }
    }
}

/// Reads a day; `None` if its file is damaged.
fn read(path: &Path) -> Result<Option<Spent>> {
    let Some(bytes) = file::read_bounded(path, MAX_BYTES)? else { return Ok(Some(Spent::default())) };
    // A list would be read as a record without names.
    let spent = bytes.starts_with(b"{").then(|| file::parse_json(&bytes).ok()).flatten();
    Ok(spent.filter(|spent: &Spent| (0.0..=MAX_USD).contains(&spent.usd)))
}

/// Reads the day's spending. Moves a damaged file aside and computes it again. Requires the lock.
fn read_or_repair(world: &World, path: &Path) -> Result<(Spent, Option<String>)> {
    if let Some(spent) = read(path)? {
        return Ok((spent, None));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{name}.corrupt-{}", world.now.compact());
    let aside = file::free_name(|more| path.with_file_name(format!("{name}{more}")));
    let spent = by_events(world)?;
    std::fs::rename(path, &aside)
        .with_context(|| format!("could not move the damaged {} aside", path.display()))?;
    write(path, spent)?;
    let told = format!(
        "{} was damaged and moved to {}; today's spending was recalculated from the events of your runs: ${:.2}, {} tokens",
        path.display(),
        aside.display(),
        spent.usd,
        message::tokens(spent.tokens)
    );
    Ok((spent, Some(told)))
}

/// Adds up what the runs say they have spent today.
fn by_events(world: &World) -> Result<Spent> {
    let today = world.now.date();
    let mut spent = Spent::default();
    for run in events::all(world)? {
        let mut add = |line: &[u8]| {
            if let Some(Event { timestamp, what: EventKind::IterationEnded(ended), .. }) = Event::parse(line)
                && timestamp.date() == today
            {
                spent = spent.plus(Spent { usd: ended.cost_usd.unwrap_or_default(), tokens: ended.tokens });
            }
        };
        let mut follower = Follower::new(&run.path);
        while follower.poll(&mut add)?.more {}
    }
    Ok(spent)
}

fn lock(path: &Path) -> Result<Lock> {
    let folder = path.parent().unwrap_or(path);
    file::create_dir(folder)?;
    Lock::acquire(&folder.join("lock"))
}

/// Writes the day's spending. After a power cut the old file may come back, but never half of one.
fn write(path: &Path, spent: Spent) -> Result<()> {
    file::replace_locked_unsynced(path, &serde_json::to_vec(&spent)?, Privacy::Private)
}

/// Adds what a loop has spent. Returns what the user should know.
pub fn add(world: &World, spent: Spent) -> Result<Option<String>> {
    if spent == Spent::default() {
        return Ok(None);
    }
    let path = path(world)?;
    let _lock = lock(&path)?;
    let (before, told) = read_or_repair(world, &path)?;
    if before == Spent::default() {
        super::handoff::remove_expired(path.parent().unwrap_or(&path), KEPT_FOR);
    }
    write(&path, before.plus(spent)).map(|()| told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::{IterationEnded, RunStarted};
    use crate::core::time::Stamp;

    #[test]
    fn loops_add_up_and_a_day_begins_at_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let at = |time: &str| {
            let mut world = World::at(dir.path(), dir.path());
            world.now = Stamp::parse(time).unwrap();
            world
        };
        let (evening, morning) = (at("2026-11-16T23:59:59Z"), at("2026-11-17T00:00:00Z"));
        let today = |world: &World| today(world).unwrap().0;
        assert_eq!(today(&evening), Spent::default());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| add(&evening, Spent { usd: 0.25, tokens: 10 }).unwrap());
            }
        });
        assert_eq!(today(&evening), Spent { usd: 1.0, tokens: 40 });
        assert_eq!(today(&morning), Spent::default());
    }

    #[test]
    fn a_damaged_day_is_moved_aside_and_counted_from_the_events() {
        for damaged in
            ["", "{\"usd\": 1", "[1.5, 3]", "{\"usd\": -1, \"tokens\": 0}", "{\"usd\": 1e300}", "null"]
        {
            let dir = tempfile::tempdir().unwrap();
            let mut world = World::at(dir.path(), dir.path());
            world.now = Stamp::parse("2026-11-16T08:00:00Z").unwrap();
            let ended = |usd, tokens| {
                let ended = IterationEnded { cost_usd: Some(usd), tokens, ..IterationEnded::default() };
                EventKind::IterationEnded(Box::new(ended))
            };
            let started = EventKind::Started(RunStarted { run_id: "r".into(), ..RunStarted::default() });
            let mut yesterday = world.clone();
            yesterday.now = world.now.plus_ms(-86_400_000);
            events::append(&yesterday, "r", &[started, ended(9.0, 9)]).unwrap();
            events::append(&world, "r", &[ended(0.5, 10), ended(0.25, 5)]).unwrap();
            let path = path(&world).unwrap();
            file::create_dir(path.parent().unwrap()).unwrap();
            std::fs::write(&path, damaged).unwrap();
            let (spent, told) = today(&world).unwrap();
            assert_eq!(spent, Spent { usd: 0.75, tokens: 15 }, "{damaged}");
            assert!(told.unwrap().contains(".corrupt-20261116"), "{damaged}");
            assert_eq!(today(&world).unwrap(), (spent, None), "told once");
            let kept = std::fs::read_dir(path.parent().unwrap()).unwrap().flatten();
            let mut kept = kept.filter(|entry| entry.file_name().to_string_lossy().contains(".corrupt-"));
            assert_eq!(std::fs::read_to_string(kept.next().unwrap().path()).unwrap(), damaged);
            std::fs::write(&path, damaged).unwrap();
            let more = Spent { usd: 0.25, tokens: 5 };
            assert!(add(&world, more).unwrap().is_some());
            assert_eq!(today(&world).unwrap().0, spent.plus(more));
        }
        let dir = tempfile::tempdir().unwrap();
        let world = World::at(dir.path(), dir.path());
        std::fs::create_dir_all(path(&world).unwrap()).unwrap();
        assert!(today(&world).is_err(), "what cannot be read is not damaged");
    }
}

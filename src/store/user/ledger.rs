//! What all loops of this user have spent today: one small file a day (UTC), added to under a lock.

use crate::core::record::Spent;
use crate::store::file::lock::Lock;
use crate::store::file::{self, Privacy};
use crate::store::world::World;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MAX_BYTES: u64 = 4 << 10;
const KEPT_FOR: Duration = Duration::from_secs(60 * 86_400);

fn path(world: &World) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("ledger").join(format!("{}.json", world.now.date())))
}

/// Returns what was spent today. A damaged file is an error: a budget that is forgotten would be none.
pub fn today(world: &World) -> Result<Spent> {
    read(&path(world)?)
}

fn read(path: &Path) -> Result<Spent> {
    Ok(file::read_record(path, MAX_BYTES)?.unwrap_or_default())
}

/// Adds what a loop has spent.
pub fn add(world: &World, spent: Spent) -> Result<()> {
    if spent == Spent::default() {
        return Ok(());
    }
    let path = path(world)?;
    let folder = path.parent().unwrap_or(&path);
    file::create_dir(folder)?;
    let _lock = Lock::acquire(&folder.join("lock"))?;
    let before = read(&path)?;
    if before == Spent::default() {
        super::handoff::sweep(folder, KEPT_FOR);
    }
    file::replace_locked_unflushed(&path, &serde_json::to_vec(&before.plus(spent))?, Privacy::Private)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(today(&evening).unwrap(), Spent::default());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| add(&evening, Spent { usd: 0.25, tokens: 10 }).unwrap());
            }
        });
        assert_eq!(today(&evening).unwrap(), Spent { usd: 1.0, tokens: 40 });
        assert_eq!(today(&morning).unwrap(), Spent::default());
        std::fs::write(path(&evening).unwrap(), "{\"usd\": 1").unwrap();
        assert!(today(&evening).is_err());
    }
}

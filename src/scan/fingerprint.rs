//! What the file system tells about a file, and whether that alone shows every change.

use serde::{Deserialize, Serialize};
use std::fs::Metadata;

/// Times in whole seconds come from a file system that keeps no finer ones; FAT keeps only every second one.
const COARSE_GRANULARITY_NS: i64 = 2_000_000_000;
/// Other file systems take their times from a clock that advances every 10 ms or more often.
const FINE_GRANULARITY_NS: i64 = 100_000_000;

/// A hash of the size, times and inode of a file or directory. The default stands for "not known yet".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    pub fn is_known(self) -> bool {
        self != Fingerprint::default()
    }
}

/// The part of a file's metadata that a scan uses. Times are nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub is_file: bool,
    pub is_dir: bool,
    pub size: u64,
    /// On Unix the time of the last status change, which programs cannot set back.
    pub changed_at: i64,
    modified_at: i64,
    inode: u64,
}

impl Stat {
    pub fn fingerprint(&self) -> Fingerprint {
        let size = if self.is_dir { 0 } else { self.size };
        let parts = [self.modified_at as u64, self.changed_at as u64, self.inode, size];
        Fingerprint(parts.into_iter().fold(0x51_7cc1, mix).max(1))
    }

    /// Returns whether a change after `now` could leave the same fingerprint, because the clock of the file system
    /// has not advanced since the last one.
    pub fn is_recent(&self, now: i64) -> bool {
        let whole_seconds = self.changed_at % 1_000_000_000 == 0;
        let granularity = if whole_seconds { COARSE_GRANULARITY_NS } else { FINE_GRANULARITY_NS };
        now.saturating_sub(self.changed_at) <= granularity
    }
}

/// Mixes a number into a hash.
pub fn mix(hash: u64, part: u64) -> u64 {
    (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

impl From<&Metadata> for Stat {
    fn from(meta: &Metadata) -> Stat {
        let (changed_at, modified_at, inode) = times_and_inode(meta);
        let (is_file, is_dir) = (meta.is_file(), meta.is_dir());
        Stat { is_file, is_dir, size: meta.len(), changed_at, modified_at, inode }
    }
}

#[cfg(unix)]
fn times_and_inode(meta: &Metadata) -> (i64, i64, u64) {
    use std::os::unix::fs::MetadataExt;
    let changed_at = nanoseconds(meta.ctime(), meta.ctime_nsec());
    (changed_at, nanoseconds(meta.mtime(), meta.mtime_nsec()), meta.ino())
}

#[cfg(not(unix))]
fn times_and_inode(meta: &Metadata) -> (i64, i64, u64) {
    let modified_at = meta.modified().map_or(i64::MAX, crate::store::world::nanoseconds);
    (modified_at, modified_at, 0)
}

#[cfg(target_os = "linux")]
#[allow(clippy::unnecessary_cast, reason = "the types of these fields differ between architectures")]
impl From<&rustix::fs::Stat> for Stat {
    fn from(stat: &rustix::fs::Stat) -> Stat {
        use rustix::fs::FileType;
        let kind = FileType::from_raw_mode(stat.st_mode);
        Stat {
            is_file: kind == FileType::RegularFile,
            is_dir: kind == FileType::Directory,
            size: stat.st_size as u64,
            changed_at: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            modified_at: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            inode: stat.st_ino as u64,
        }
    }
}

#[cfg(unix)]
fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn stat(changed_at: i64) -> Stat {
        Stat { is_file: true, is_dir: false, size: 7, changed_at, modified_at: 5, inode: 3 }
    }

    #[test]
    fn every_part_of_a_file_is_in_its_fingerprint() {
        let file = stat(9);
        let others = [
            Stat { size: 8, ..file },
            Stat { changed_at: 10, ..file },
            Stat { modified_at: 6, ..file },
            Stat { inode: 4, ..file },
        ];
        assert!(file.fingerprint().is_known());
        assert!(others.iter().all(|other| other.fingerprint() != file.fingerprint()));
        let directory = Stat { is_file: false, is_dir: true, ..file };
        assert_eq!(directory.fingerprint(), Stat { size: 8, ..directory }.fingerprint());
    }

    #[test]
    fn a_file_is_recent_within_the_granularity_of_its_clock() {
        let now = 100 * SECOND;
        for (changed_at, recent) in [
            (now - 1, true),
            (now + 60 * SECOND, true),
            (now - 99_000_000, true),
            (now - 101_000_000, false),
            (now - SECOND, true),
            (now - 2 * SECOND, true),
            (now - 3 * SECOND, false),
            (now - 2 * SECOND + 1, false),
        ] {
            assert_eq!(stat(changed_at).is_recent(now), recent, "{changed_at}");
        }
    }
}

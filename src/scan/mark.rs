//! The print of a file or folder by which a change is noticed without reading it.

use std::fs::Metadata;

/// Two ticks of the coarsest clock a file system keeps.
const TICK: i64 = 2_000_000_000;

/// A print of what changes when a file or folder does.
pub type Mark = u64;
/// Not known, or too young to be remembered.
pub const UNKNOWN: Mark = 0;
/// Its name says all: it is never looked at.
pub const BY_NAME: Mark = 1;
/// It was there when its folder was listed.
pub const GONE: Mark = 2;

/// What the system tells about a file or folder. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub is_file: bool,
    pub is_dir: bool,
    pub size: u64,
    /// When the system saw the last change, where it tells: unlike the time of modification nobody can set it back.
    pub changed_at: i64,
    modified_at: i64,
    inode: u64,
}

impl Stat {
    pub fn mark(&self) -> Mark {
        let size = if self.is_dir { 0 } else { self.size };
        let parts = [self.modified_at as u64, self.changed_at as u64, self.inode, size];
        let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        parts.into_iter().fold(0x51_7cc1, mix).max(GONE + 1)
    }

    /// The mark, if it is fit to be remembered: not so young that a later change could look the same.
    pub fn settled(&self, now: i64) -> Mark {
        if now.saturating_sub(self.changed_at) > TICK { self.mark() } else { UNKNOWN }
    }
}

#[cfg(unix)]
impl From<&Metadata> for Stat {
    fn from(meta: &Metadata) -> Stat {
        use std::os::unix::fs::MetadataExt;
        Stat {
            is_file: meta.is_file(),
            is_dir: meta.is_dir(),
            size: meta.len(),
            changed_at: nanoseconds(meta.ctime(), meta.ctime_nsec()),
            modified_at: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            inode: meta.ino(),
        }
    }
}

#[cfg(not(unix))]
impl From<&Metadata> for Stat {
    fn from(meta: &Metadata) -> Stat {
        let modified_at = meta.modified().map_or(i64::MAX, crate::store::world::nanoseconds);
        Stat {
            is_file: meta.is_file(),
            is_dir: meta.is_dir(),
            size: meta.len(),
            changed_at: modified_at,
            modified_at,
            inode: 0,
        }
    }
}

#[cfg(target_os = "linux")]
#[allow(clippy::unnecessary_cast, reason = "their types differ from one machine to the next")]
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

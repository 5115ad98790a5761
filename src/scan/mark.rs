//! The print of a file or folder by which a change is noticed without reading it.

use crate::store::world::nanoseconds;
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

pub fn mark_of(meta: &Metadata) -> Mark {
    let modified = meta.modified().map_or(0, nanoseconds);
    let size = if meta.is_dir() { 0 } else { meta.len() };
    let parts = [modified as u64, changed_at(meta) as u64, inode(meta), size];
    let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    parts.into_iter().fold(0x51_7cc1, mix).max(GONE + 1)
}

/// The mark, if it is fit to be remembered: not so young that a later change could look the same.
pub fn settled(meta: &Metadata, now: i64) -> Mark {
    if now.saturating_sub(changed_at(meta)) > TICK { mark_of(meta) } else { UNKNOWN }
}

/// When the system saw the last change. Unlike the time of modification nobody can set it back.
#[cfg(unix)]
pub fn changed_at(meta: &Metadata) -> i64 {
    use std::os::unix::fs::MetadataExt;
    meta.ctime().saturating_mul(1_000_000_000).saturating_add(meta.ctime_nsec())
}

#[cfg(not(unix))]
pub fn changed_at(meta: &Metadata) -> i64 {
    meta.modified().map_or(i64::MAX, nanoseconds)
}

#[cfg(unix)]
fn inode(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

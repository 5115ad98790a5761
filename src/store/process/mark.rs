//! A mark that everything an agent starts inherits: a limit on resident memory, which Linux reports and does not enforce.
//! A cleared environment, `setsid` and a lost parent leave it as it is.
//!
//! The value follows from the run's id and is beyond any memory, so that a program which looks at it sees no bound. A run
//! inside another one's agent cannot exceed that run's limit, so each run has several values, one below the other.

use crate::store::project::stable_hash;
#[cfg(target_os = "linux")]
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::ops::RangeInclusive;

/// The bits that name the run, in KiB; the bit of the level is above them.
const ID_BITS: u32 = 36;
const LEVELS: RangeInclusive<u32> = ID_BITS..=TOP_LEVEL;
const TOP_LEVEL: u32 = 42;

/// Returns the limit, in KiB, for a run that is not inside another run.
pub fn limit_kib(run_id: &str) -> u64 {
    at_level(run_id, TOP_LEVEL)
}

fn at_level(run_id: &str, level: u32) -> u64 {
    (1 << level) | (stable_hash(run_id.as_bytes()) & ((1 << ID_BITS) - 1))
}

/// Returns whether a limit in bytes is one of this run's.
fn is_of(run_id: &str, bytes: u64) -> bool {
    LEVELS.into_iter().any(|level| at_level(run_id, level) * 1024 == bytes)
}

/// Marks what this process starts while this is there.
#[cfg(target_os = "linux")]
pub struct Marking {
    before: Rlimit,
    bytes: u64,
}

#[cfg(target_os = "linux")]
impl Marking {
    /// Returns nothing if the system allows no mark: then the environment has to do.
    pub fn begin(run_id: &str) -> Option<Marking> {
        let before = getrlimit(Resource::Rss);
        let fits = |bytes: &u64| before.maximum.is_none_or(|maximum| *bytes < maximum);
        let bytes = LEVELS.rev().map(|level| at_level(run_id, level) * 1024).find(fits)?;
        let marked = Rlimit { current: Some(bytes), maximum: before.maximum };
        setrlimit(Resource::Rss, marked).ok()?;
        Some(Marking { before, bytes })
    }

    /// Keeps a process that was just started, and what it starts, from taking the mark off.
    pub fn fix(&self, pid: u32) {
        let limit = Some(self.bytes);
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| prlimit(Some(pid), Resource::Rss, Rlimit { current: limit, maximum: limit }));
    }
}

#[cfg(target_os = "linux")]
impl Drop for Marking {
    fn drop(&mut self) {
        let _ = setrlimit(Resource::Rss, self.before);
    }
}

/// Other systems have no such limit, or do not report it.
#[cfg(not(target_os = "linux"))]
pub struct Marking;

#[cfg(not(target_os = "linux"))]
impl Marking {
    pub fn begin(_: &str) -> Option<Marking> {
        None
    }

    pub fn fix(&self, _: u32) {}
}

/// Returns whether this process was started by an agent of the run.
pub fn is_own(run_id: &str) -> bool {
    is_on("self", run_id)
}

/// Returns whether a process, by its number, has the mark of this run.
pub fn is_on(pid: &str, run_id: &str) -> bool {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let own = limits.lines().find_map(|line| line.strip_prefix("Max resident set"));
    // The limit in force, and what it may be raised to.
    own.is_some_and(|own| {
        own.split_whitespace().filter_map(|field| field.parse().ok()).any(|bytes| is_of(run_id, bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_run_at_every_level() {
        for level in LEVELS {
            let bytes = at_level("a", level) * 1024;
            assert!(is_of("a", bytes) && !is_of("b", bytes), "{level}");
            assert!(!is_of("a", bytes + 1) && !is_of("a", bytes / 1024), "{level}");
        }
        assert!(is_of("a", limit_kib("a") * 1024));
        assert!(!is_of("a", u64::MAX) && !is_of("a", 0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_is_known_by_its_mark() {
        let limit = limit_kib("a run of this test").to_string();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -m \"$1\"; exec env -i setsid sleep 600", "sh", &limit]);
        let mut child = command.spawn().unwrap();
        let pid = child.id().to_string();
        let began = std::time::Instant::now();
        while !is_on(&pid, "a run of this test") {
            assert!(began.elapsed() < std::time::Duration::from_secs(120), "it has no mark");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(!is_on(&pid, "another run") && !is_own("a run of this test"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

//! Clock, environment and the user's folders, read once at the edge and passed on.

use crate::core::time::Stamp;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::ops::Add;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug)]
pub struct World {
    pub now: Stamp,
    pub working_dir: PathBuf,
    /// `CLAUDE_PROJECT_DIR`: where the client was launched.
    pub launch_dir: Option<PathBuf>,
    pub session_id: Option<String>,
    /// `RALPH_RUN_ID`: the runner that started this process, or its agent.
    pub run_id: Option<String>,
    pub home: Option<PathBuf>,
    /// Git's folder of the user's settings.
    pub git_config: Option<PathBuf>,
    /// Claude Code's own folder of settings.
    pub claude_config: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    config_dir: Option<PathBuf>,
}

impl World {
    pub fn from_env() -> Result<Self> {
        Ok(World {
            now: now()?,
            working_dir: std::env::current_dir().unwrap_or_default(),
            launch_dir: path("CLAUDE_PROJECT_DIR"),
            session_id: text("CLAUDE_CODE_SESSION_ID"),
            run_id: text("RALPH_RUN_ID"),
            claude_config: path("CLAUDE_CONFIG_DIR").or_else(|| Some(dirs::home_dir()?.join(".claude"))),
            git_config: path("XDG_CONFIG_HOME")
                .or_else(|| Some(dirs::home_dir()?.join(".config")))
                .map(|dir| dir.join("git")),
            home: dirs::home_dir(),
            data_dir: data_dir(),
            config_dir: path("RALPH_CONFIG_DIR").or_else(|| Some(dirs::config_dir()?.join("ralph"))),
        })
    }

    /// The same world, later.
    pub fn later(&self) -> Self {
        World { now: now().unwrap_or(self.now).max(self.now), ..self.clone() }
    }

    /// A world of its own, at the beginning of time; for tests and fuzz targets.
    #[doc(hidden)]
    pub fn at(working_dir: &Path, data_dir: &Path) -> Self {
        World {
            now: Stamp(1),
            working_dir: working_dir.to_owned(),
            launch_dir: None,
            session_id: None,
            run_id: None,
            home: None,
            git_config: None,
            claude_config: None,
            data_dir: Some(data_dir.to_owned()),
            config_dir: None,
        }
    }

    pub fn data_dir(&self) -> Result<&Path> {
        self.data_dir
            .as_deref()
            .context("no home directory to keep Ralph's records in: set HOME or RALPH_DATA_DIR")
    }

    pub fn user_config(&self) -> Option<PathBuf> {
        Some(self.config_dir.as_ref()?.join("config.json"))
    }
}

/// The folder of the user's records.
pub fn data_dir() -> Option<PathBuf> {
    path("RALPH_DATA_DIR").or_else(|| Some(dirs::data_local_dir()?.join("ralph")))
}

/// A variable that is set, not empty, and text.
pub fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Every variable that may be a setting, with its value; folders and the clock are none.
pub fn variables_of_ours() -> Vec<(String, String)> {
    const OTHERS: [&str; 5] =
        ["RALPH_DATA_DIR", "RALPH_CONFIG_DIR", "RALPH_NOW", "RALPH_RUN_ID", "RALPH_VERIFYING"];
    let ours = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with("RALPH_"))?;
        let value = value.into_string().ok().filter(|value| !value.is_empty())?;
        (!OTHERS.contains(&name.as_str())).then_some((name, value))
    });
    ours.collect()
}

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from)
}

/// The clock, or `RALPH_NOW` in its place.
fn now() -> Result<Stamp> {
    if let Some(path) = clock_file() {
        return read_clock(path).with_context(|| format!("RALPH_NOW: no time in {}", path.display()));
    }
    match text("RALPH_NOW") {
        Some(text) => Stamp::parse(&text).with_context(|| {
            format!("RALPH_NOW is '{text}': expected RFC 3339 or Unix seconds, or unset it")
        }),
        None => Ok(clock()),
    }
}

/// The file named by `RALPH_NOW=@FILE`: tests write it to move the clock of a program that runs.
fn clock_file() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    FILE.get_or_init(|| text("RALPH_NOW")?.strip_prefix('@').map(PathBuf::from)).as_deref()
}

fn read_clock(path: &Path) -> Option<Stamp> {
    Stamp::parse(&std::fs::read_to_string(path).ok()?)
}

/// A moment of the monotonic clock, for limits and waits. `RALPH_NOW=@FILE` replaces this clock too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    pub fn now() -> Instant {
        static START: OnceLock<std::time::Instant> = OnceLock::new();
        let moved = clock_file().and_then(read_clock).and_then(|stamp| u64::try_from(stamp.0).ok());
        match moved {
            Some(ms) => Instant(Duration::from_millis(ms)),
            None => Instant(START.get_or_init(std::time::Instant::now).elapsed()),
        }
    }

    pub fn elapsed(self) -> Duration {
        Instant::now().saturating_duration_since(self)
    }

    pub fn saturating_duration_since(self, earlier: Instant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(span))
    }
}

fn clock() -> Stamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The clock that files are stamped with, which no variable replaces, in nanoseconds.
pub fn file_clock() -> i64 {
    nanoseconds(SystemTime::now())
}

pub fn nanoseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// A number no two processes share, for run ids and temporary names.
pub fn unique() -> u128 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // RandomState is seeded from the system's randomness, which needs no crate of its own.
    let word = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.write_i64(clock().0);
        u128::from(hasher.finish())
    };
    (word() << 64) | word()
}

//! Clock, environment and the user's folders, read once at startup and passed on.

use super::variables;
use crate::core::time::Stamp;
use crate::store::hinted::Hinted;
use anyhow::{Context, Result};
use std::fmt;
use std::ops::Add;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug)]
pub struct World {
    pub now: Stamp,
    /// How long the machine has slept since it was started, where the system tells it.
    pub slept_ms: Option<i64>,
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
    /// What was ignored of the environment, and why.
    pub ignored: Vec<String>,
    data_dir: Option<PathBuf>,
    config_dir: Option<PathBuf>,
}

/// A variable for a folder that names none: relative to wherever we are started it could be the project's.
#[derive(Debug)]
pub struct Relative {
    name: &'static str,
    value: PathBuf,
}

impl fmt::Display for Relative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not an absolute path: {}", self.name, self.value.display())
    }
}

impl std::error::Error for Relative {}

impl World {
    /// Reads the environment of a command.
    pub fn from_env() -> Result<Self> {
        FOLDERS.iter().try_for_each(|name| folder(name).map(drop))?;
        World::for_hook()
    }

    /// Reads the environment of a hook, which ignores what would refuse a command.
    pub fn for_hook() -> Result<Self> {
        let relative = FOLDERS.iter().filter_map(|name| folder(name).err());
        let relative = relative.map(|error| format!("{error}, ignored"));
        let home = dirs::home_dir();
        let below_home = |name: &str| home.as_ref().map(|home| home.join(name));
        Ok(World {
            ignored: variables::ignored().into_iter().chain(relative).collect(),
            now: now()?,
            slept_ms: slept_ms(),
            working_dir: std::env::current_dir().unwrap_or_default(),
            launch_dir: path("CLAUDE_PROJECT_DIR"),
            session_id: text("CLAUDE_CODE_SESSION_ID"),
            run_id: text("RALPH_RUN_ID"),
            claude_config: path("CLAUDE_CONFIG_DIR").or_else(|| below_home(".claude")),
            git_config: path("XDG_CONFIG_HOME").or_else(|| below_home(".config")).map(|dir| dir.join("git")),
            home,
            data_dir: data_dir(),
            config_dir: folder(CONFIG_DIR)
                .unwrap_or_default()
                .or_else(|| Some(dirs::config_dir()?.join("ralph"))),
        })
    }

    /// Returns this world with the current time.
    pub fn later(&self) -> Self {
        let slept_ms = slept_ms().or(self.slept_ms);
        World { now: now().unwrap_or(self.now).max(self.now), slept_ms, ..self.clone() }
    }

    /// Returns an isolated world near the Unix epoch, for tests and fuzz targets.
    #[doc(hidden)]
    pub fn at(working_dir: &Path, data_dir: &Path) -> Self {
        World {
            now: Stamp(1),
            slept_ms: None,
            working_dir: working_dir.to_owned(),
            launch_dir: None,
            session_id: None,
            run_id: None,
            home: None,
            git_config: None,
            claude_config: None,
            ignored: Vec::new(),
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

/// Returns the folder of the user's records.
pub fn data_dir() -> Option<PathBuf> {
    folder(DATA_DIR).unwrap_or_default().or_else(|| Some(dirs::data_local_dir()?.join("ralph")))
}

const DATA_DIR: &str = "RALPH_DATA_DIR";
const CONFIG_DIR: &str = "RALPH_CONFIG_DIR";
const FOLDERS: [&str; 2] = [DATA_DIR, CONFIG_DIR];

/// Returns the folder that a variable names.
fn folder(name: &'static str) -> Result<Option<PathBuf>, Relative> {
    match path(name) {
        Some(value) if value.is_relative() => Err(Relative { name, value }),
        value => Ok(value),
    }
}

/// Returns a variable if it is set, not empty and valid UTF-8.
pub fn text(name: &str) -> Option<String> {
    variables::get(name)?.into_string().ok()
}

fn path(name: &str) -> Option<PathBuf> {
    variables::get(name).map(PathBuf::from)
}

/// Returns the time of `RALPH_NOW` if it is set, else of the clock.
fn now() -> Result<Stamp> {
    if let Some(path) = clock_file() {
        let moment = read_clock(path).with_context(|| format!("RALPH_NOW: no time in {}", path.display()))?;
        return Ok(moment.at);
    }
    match text("RALPH_NOW") {
        Some(text) => Moment::parse(&text).map(|moment| moment.at).ok_or_else(|| {
            let what = format!("invalid value for RALPH_NOW: '{text}'");
            Hinted::error(what, "use RFC 3339 or Unix seconds, or unset it")
        }),
        None => Ok(clock()),
    }
}

/// What `RALPH_NOW` says: `TIME`, or `now+SECONDS` for a clock that is so far ahead; with ` slept SECONDS` behind it for a
/// machine that slept so long.
struct Moment {
    at: Stamp,
    slept_ms: i64,
}

impl Moment {
    fn parse(text: &str) -> Option<Moment> {
        let (at, slept) = text.split_once(" slept ").unwrap_or((text, "0"));
        // Less than nothing: the clock on the wall was set back.
        let slept = slept.trim().parse::<i32>().ok()?;
        let at = match at.strip_prefix("now") {
            Some(ahead) => clock().plus_ms(i64::from(ahead.parse::<i32>().ok()?) * 1000),
            None => Stamp::parse(at)?,
        };
        Some(Moment { at, slept_ms: i64::from(slept) * 1000 })
    }
}

/// Returns how long the machine has slept since it was started.
fn slept_ms() -> Option<i64> {
    let moved = match clock_file() {
        Some(path) => read_clock(path),
        None => text("RALPH_NOW").and_then(|text| Moment::parse(&text)),
    };
    moved.map(|moment| moment.slept_ms).or_else(system_slept_ms)
}

/// Returns how long the machine has slept: on Linux one clock counts sleep and the other does not. Other systems do not
/// tell a program that has just been started, so there only the transcript shows a pause.
#[cfg(target_os = "linux")]
fn system_slept_ms() -> Option<i64> {
    use rustix::time::{ClockId, clock_gettime};
    let ms = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
    };
    let awake = ms(ClockId::Monotonic);
    // Read one after the other, so a few milliseconds are no sleep.
    Some(ms(ClockId::Boottime).saturating_sub(awake)).map(|slept| if slept < 1000 { 0 } else { slept })
}

#[cfg(not(target_os = "linux"))]
fn system_slept_ms() -> Option<i64> {
    None
}

/// Returns the file in `RALPH_NOW=@FILE`: tests write it to move the clock of a running program.
fn clock_file() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    FILE.get_or_init(|| text("RALPH_NOW")?.strip_prefix('@').map(PathBuf::from)).as_deref()
}

fn read_clock(path: &Path) -> Option<Moment> {
    Moment::parse(&std::fs::read_to_string(path).ok()?)
}

/// A moment of the monotonic clock, for limits: it stands still while the machine sleeps. `RALPH_NOW=@FILE` replaces this
/// clock too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    pub fn now() -> Instant {
        static START: OnceLock<std::time::Instant> = OnceLock::new();
        let moved = clock_file().and_then(read_clock);
        let moved = moved.and_then(|moment| u64::try_from(moment.at.0.saturating_sub(moment.slept_ms)).ok());
        match moved {
            Some(ms) => Instant(Duration::from_millis(ms)),
            None => Instant(START.get_or_init(std::time::Instant::now).elapsed()),
        }
    }

    /// Returns a moment that is at most a little older than [`Instant::now`], for a loop that asks again and again: the
    /// clock of a test is a file, and is not read every time.
    pub fn lately() -> Instant {
        const AGE: Duration = Duration::from_millis(100);
        static LAST: Mutex<Option<(std::time::Instant, Instant)>> = Mutex::new(None);
        if clock_file().is_none() {
            return Instant::now();
        }
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        match *last {
            Some((read_at, moment)) if read_at.elapsed() < AGE => moment,
            _ => last.insert((std::time::Instant::now(), Instant::now())).1,
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

/// Returns the time by which files are stamped, in nanoseconds. No variable replaces this clock.
pub fn file_clock() -> i64 {
    nanoseconds(SystemTime::now())
}

pub fn nanoseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// Returns a number that no two processes share, for run ids and temporary names.
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

/// Returns a number from 0 to 1.
pub fn random() -> f64 {
    (unique() % 1000) as f64 / 1000.0
}

/// Returns a span of our settings and clocks for the system's; what is negative is none.
pub fn milliseconds(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

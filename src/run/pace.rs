//! The waiting between iterations: the limit of calls, the plan's limit, a service that fails. Every wait ends at
//! once on Ctrl-C or a stop; Enter goes on now, whatever is waited for: the limit of calls is the user's own.

use super::Runner;
use super::inbox::Cut;
use super::terminal;
use crate::core::backoff;
use crate::core::rate::Rate;
use crate::core::settings::RunSettings;
use crate::core::signal::Reset;
use crate::core::time::{self, Stamp};
use crate::store::world;
use crate::store::{file, zone};
use anyhow::Result;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub enum Pause {
    GoOn,
    /// The user does not want to wait.
    Hurried,
    Over,
}

/// A reason to wait before the same is tried again.
pub struct Wait {
    what: String,
    span: Duration,
    /// The moment it ends, where somebody stated one.
    until: Option<Stamp>,
}

/// Where nobody says when the plan's limit ends, it is tried again after this time.
const UNKNOWN_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The clock of the service is not ours.
const MARGIN: i64 = 30_000;
/// Where there is no line that is kept up to date, a wait is told about this often.
const TELL: Duration = Duration::from_secs(300);

impl Wait {
    pub fn for_limit(resets: Option<&Reset>, now: Stamp) -> Wait {
        let until = resets.and_then(|reset| zone::moment(reset, now));
        let span = until.map_or(UNKNOWN_LIMIT, |until| {
            Duration::from_millis(u64::try_from(until - now + MARGIN).unwrap_or(0))
        });
        Wait { what: "usage limit reached".into(), span, until }
    }

    pub fn after_failure(failures: u32, what: &str) -> Wait {
        let random = (world::unique() % 1000) as f64 / 1000.0;
        let span = Duration::from_millis(u64::try_from(backoff::delay_ms(failures, random)).unwrap_or(0));
        Wait { what: what.to_owned(), span, until: None }
    }

    fn for_calls(per_hour: u64, until: Stamp, now: Stamp) -> Wait {
        let span = Duration::from_millis(u64::try_from(until - now).unwrap_or(0));
        Wait { what: format!("{per_hour} iterations within the hour"), span, until: Some(until) }
    }

    /// The reason in words, with the moment it ends.
    pub fn reason(&self) -> String {
        match self.until {
            Some(until) => format!("{}, resets at {}", self.what, until.rfc3339()),
            None => format!("{}, and nobody said until when", self.what),
        }
    }

    /// Waits, and shows for how long still.
    pub fn hold(&self, runner: &mut Runner) -> Result<Pause> {
        let span = time::span(i64::try_from(self.span.as_millis()).unwrap_or(i64::MAX));
        // Offered where somebody can take it.
        let offer =
            if runner.keys && terminal::in_front(std::io::stdin()) { " (Enter tries now)" } else { "" };
        runner.screen.say(&format!("Ralph: {}; going on in {span}{offer}", self.what));
        let seconds = self.span.as_secs();
        runner.screen.event("waiting", json!({"reason": self.what, "seconds": seconds, "until": self.until}));
        let mut told = Instant::now();
        let began = Instant::now();
        let (inbox, screen, what) = (&runner.inbox, &mut runner.screen, &self.what);
        let cut = inbox.wait(began + self.span, |left| {
            let left = time::span(i64::try_from(left.as_millis()).unwrap_or(i64::MAX));
            screen.live(&format!("Ralph: {what}; {left} left{offer}"));
            if told.elapsed() >= TELL {
                told = Instant::now();
                screen.say(&format!("Ralph: {what}; {left} left"));
            }
        });
        match cut {
            Some(Cut::Key) => {
                runner.screen.entered();
                Ok(Pause::Hurried)
            }
            Some(cut) if runner.cut_short(cut)? => Ok(Pause::Over),
            _ => Ok(Pause::GoOn),
        }
    }
}

/// Waits until one more iteration may begin, and counts it.
pub fn under_the_limit(runner: &mut Runner, run: &RunSettings) -> Result<Pause> {
    if run.calls_per_hour == 0 {
        return Ok(Pause::GoOn);
    }
    let path = rate_path(runner);
    let bytes = path.as_ref().and_then(|path| file::read_bounded(path, 1 << 20).ok().flatten());
    let mut rate: Rate = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    while let Some(until) = rate.next_allowed(run.calls_per_hour, runner.world.later().now) {
        let wait = Wait::for_calls(run.calls_per_hour, until, runner.world.later().now);
        match wait.hold(runner)? {
            Pause::Over => return Ok(Pause::Over),
            // One more than the limit, because the user says so; it counts like the others.
            Pause::Hurried => break,
            Pause::GoOn => {}
        }
        if wait.span.is_zero() || runner.world.later().now == runner.world.now {
            // A clock that stands still would wait for ever.
            break;
        }
    }
    rate.record(run.calls_per_hour, runner.world.later().now);
    if let (Some(path), Ok(bytes)) = (path, serde_json::to_vec(&rate)) {
        let kept = path
            .parent()
            .map_or(Ok(()), file::create_dir)
            .and_then(|()| file::replace_quickly(&path, &bytes));
        if let Err(error) = kept {
            runner.screen.warn(&format!("the count of calls could not be kept: {error:#}"));
        }
    }
    Ok(Pause::GoOn)
}

fn rate_path(runner: &Runner) -> Option<PathBuf> {
    let name = format!("{}.json", runner.project.key());
    Some(runner.world.data_dir().ok()?.join("calls").join(name))
}

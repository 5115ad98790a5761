//! Reads the topic on which the user answers.

use super::http;
use crate::core::event::notice::address::Address;
use crate::core::event::notice::reply;
use crate::core::settings::NotifySettings;
use crate::store::user::reply::OpenReply;
use crate::store::world::milliseconds;
use std::time::Duration;

/// The service's clock may differ from ours.
const CLOCK_MARGIN_SECONDS: f64 = 600.0;
/// The pauses between two looks grow to this: a public service limits how often it may be asked.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(15);

/// The topic, and how far it was read.
pub struct Topic {
    address: Address,
    limit: Duration,
    token: String,
    since: String,
    pause: Duration,
}

impl Topic {
    /// Returns the topic that is configured, for one question.
    pub fn of(settings: &NotifySettings, open: &OpenReply) -> Option<Topic> {
        let address = Address::parse(settings.answers.as_deref()?).ok()?;
        address.topic().ok()?;
        let limit = milliseconds(settings.timeout_ms.max(1));
        let since = (open.asked_at.seconds() - CLOCK_MARGIN_SECONDS).max(0.0).floor() as u64;
        let (token, since) = (open.token.clone(), since.to_string());
        Some(Topic { address, limit, token, since, pause: Duration::from_millis(500) })
    }

    /// Returns where an answer from here comes from.
    pub fn host(&self) -> &str {
        &self.address.host
    }

    /// Returns how long to wait before the next look.
    pub fn pause(&mut self) -> Duration {
        self.pause = (self.pause * 2).min(MAX_POLL_INTERVAL);
        self.pause
    }

    /// Polls for the answer. What was read is not read again.
    pub fn poll(&mut self) -> Result<Option<String>, String> {
        let url = self.address.ntfy_poll(&self.since)?;
        let answer = http::get(&url, self.limit)?;
        if answer.status != 200 {
            return Err(format!("status {}", answer.status));
        }
        for line in answer.body.split(|byte| *byte == b'\n') {
            let message = reply::parse_message(line, &self.token);
            self.since = message.id.unwrap_or_else(|| std::mem::take(&mut self.since));
            if message.answer.is_some() {
                return Ok(message.answer);
            }
        }
        Ok(None)
    }
}

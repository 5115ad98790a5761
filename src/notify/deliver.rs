//! `ralph deliver`: sends one notification. A hook or a runner starts it with the request on stdin and does not wait.

use super::http;
use crate::core::outcome::Exit;
use crate::store::process::notify::Delivery;
use crate::store::user::deliveries::{self, Delivered};
use crate::store::world::World;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

const MAX_JOB_BYTES: u64 = 1 << 20;
const RETRY_PAUSE: Duration = Duration::from_secs(1);

pub fn main() -> ExitCode {
    let mut job = Vec::new();
    let read = std::io::stdin().lock().take(MAX_JOB_BYTES).read_to_end(&mut job);
    let failed = ExitCode::from(Exit::Failed.code());
    let (Ok(_), Ok(world)) = (read, World::from_env()) else { return failed };
    let Ok(delivery) = serde_json::from_slice::<Delivery>(&job) else { return failed };
    let sent = send(&delivery);
    let (status, error) = match &sent {
        Ok(status) => (Some(*status), None),
        Err(why) => (None, Some(why.clone())),
    };
    let Delivery { host, event, .. } = delivery;
    let _ = deliveries::record(&world, &Delivered { at: world.later().now, host, event, status, error });
    if sent.is_ok() { ExitCode::SUCCESS } else { failed }
}

/// Sends the request; once more if the service does not answer or has a problem of its own. Returns its status.
pub fn send(delivery: &Delivery) -> Result<u16, String> {
    let body = delivery.body.to_string();
    let limit = Duration::from_millis(delivery.timeout_ms);
    let attempt = || http::post(&delivery.url, body.as_bytes(), limit);
    let is_transient = |sent: &Result<http::Response, String>| match sent {
        Ok(answer) => answer.status >= 500 || matches!(answer.status, 408 | 429),
        Err(_) => true,
    };
    let mut sent = attempt();
    if is_transient(&sent) {
        std::thread::sleep(RETRY_PAUSE);
        sent = attempt();
    }
    match sent?.status {
        status @ 200..=299 => Ok(status),
        status @ 300..=399 => Err(format!("status {status}: redirects are not followed")),
        status => Err(format!("status {status}")),
    }
}

mod answers;
mod sending;
mod terminal;

use crate::env::{Env, wait_for};
use crate::webhook::{Request, Webhook};

/// Waits until the service got so many notifications, and returns them.
pub fn posts(service: &Webhook, count: usize) -> Vec<Request> {
    wait_for("a notification", || Some(service.posts()).filter(|posts| posts.len() >= count))
}

/// Returns what `ralph notify` says about the last request, once there is one.
pub fn last_request(env: &Env) -> String {
    wait_for("the record of a request", || {
        let told = env.ralph(&["notify"]).ok();
        told.lines().find(|line| line.starts_with("Last request")).map(str::to_owned)
    })
}

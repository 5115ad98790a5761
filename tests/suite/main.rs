//! Whole programs in a world of their own: what a user, a script or Claude Code would see.
//!
//! No real client here (that is `tests/e2e`): the hooks get the payloads the client sends, time is `RALPH_NOW`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::needless_pass_by_value,
    reason = "a test that cannot continue must say why"
)]
#![cfg(unix)]

#[path = "../support/signals.rs"]
mod signals;
#[path = "../support/skip.rs"]
mod skip;
#[path = "../support/webhook.rs"]
mod webhook;

mod agents;
mod env;
mod events;
mod transcript;

mod crash;
mod docs;
mod files;
mod guidance;
mod hostile;
mod logs;
mod monitor;
mod notify;
mod quota;
mod report;
mod runner;
mod session;
mod settings;
mod setup;
mod snapshots;
mod terminal;
mod views;

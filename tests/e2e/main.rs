//! End-to-end tests against the real Claude Code, with a scripted model.
//!
//! They need the client (`npm ci --prefix tests/e2e/client`, or `RALPH_E2E_CLAUDE=path/to/claude`) and tmux, those in
//! `docker` a Docker engine; a test says so and passes where one is missing, unless `RALPH_E2E_REQUIRED=1`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot continue must say why"
)]

#[path = "../support/client.rs"]
mod client;
#[path = "../support/clock.rs"]
mod clock;
#[path = "../support/messages_api.rs"]
mod messages_api;
#[path = "../support/run.rs"]
mod run;
#[path = "../support/signals.rs"]
mod signals;
#[path = "../support/skip.rs"]
mod skip;
#[path = "../support/tmux.rs"]
mod tmux;
#[path = "../support/webhook.rs"]
mod webhook;

mod at_once;
mod background;
mod continued;
mod continuing;
mod demo;
mod docker;
mod doctor;
mod failures;
mod import;
mod install;
mod judging;
mod monitor;
mod notifications;
mod outages;
mod permissions;
mod printed;
mod quota;
mod ralph;
mod release;
mod runner;
mod screen;
mod session_recording;
mod status_line;
mod steering;
mod submissions;
mod support;
mod terminal;
mod terminal_svg;
mod worktrees;

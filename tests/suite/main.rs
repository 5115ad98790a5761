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
    reason = "a test that cannot go on has to say so"
)]
#![cfg(unix)]

#[path = "../support/skip.rs"]
mod skip;

mod agents;
mod env;
mod transcript;

mod answers;
mod archive;
mod bad_input;
mod bad_paths;
mod breaker;
mod completion;
mod concurrency;
mod config_command;
mod constraints;
mod constraints_turns;
mod decisions;
mod demo;
mod demo_recording;
mod docs;
mod doctor;
mod endings;
mod from_git;
mod guidance;
mod guidance_freshness;
mod import;
mod init;
mod install;
mod large_projects;
mod official_failures;
mod projects;
mod regressions;
mod run_bad_agents;
mod run_endings;
mod run_lists;
mod run_prompts;
mod run_records;
mod run_resume;
mod run_sandbox;
mod run_stops;
mod run_supervision;
mod run_tasks;
mod run_waits;
mod sessions;
mod settings;
mod slash;
mod state_file;
mod statusline;
mod steering;
mod tasks_file;
mod time;
mod trust;
mod trusted_commands;
mod uninstall;
mod verify_setting;
mod views;

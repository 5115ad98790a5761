//! The pure middle: no files, no clock, no environment, no processes. `now` is an argument.

pub mod backoff;
pub mod circuit;
pub mod clean;
pub mod command;
pub mod completion;
pub mod decide;
pub mod finding;
pub mod guidance;
pub mod heartbeat;
pub mod keys;
pub mod limits;
pub mod merge;
pub mod message;
pub mod outcome;
pub mod progress;
pub mod prompt;
pub mod rate;
pub mod record;
pub mod request;
pub mod runtime;
pub mod settings;
pub mod signal;
pub mod similar;
pub mod tasks;
pub mod time;
pub mod turn;

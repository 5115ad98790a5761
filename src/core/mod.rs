//! The pure middle: no files, no clock, no environment, no processes. `now` is an argument.

pub mod circuit;
pub mod decide;
pub mod diagnosis;
pub mod event;
pub mod guidance;
pub mod message;
pub mod outcome;
pub mod prompt;
pub mod record;
pub mod request;
pub mod settings;
pub mod signal;
pub mod tasks;
pub mod text;
pub mod time;

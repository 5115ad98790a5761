//! What people look at.

pub mod activity;
pub mod archive;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod guidance;
pub mod history;
pub mod monitor;
pub mod paint;
pub mod scan;
pub mod status;
pub mod statusline;
pub mod trust;

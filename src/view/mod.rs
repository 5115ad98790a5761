//! What people look at.

pub mod config;
pub mod history;
pub mod paint;
pub mod scan;
pub mod status;
pub mod trust;

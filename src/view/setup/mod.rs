//! What commands print that set a project or an installation up.

pub mod archive;
pub mod config;
pub mod doctor;
pub mod trust;

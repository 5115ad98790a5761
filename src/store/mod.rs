//! The only writer of files, and the only reader of clock and environment.

pub mod config;
pub mod events;
pub mod file;
pub mod hinted;
pub mod process;
pub mod project;
pub mod runner;
pub mod state;
pub mod tasks;
pub mod user;
pub mod variables;
pub mod world;
pub mod zone;

pub use project::Project;
pub use world::World;

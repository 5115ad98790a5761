//! `ralph monitor` on a real terminal: what it shows, what its keys do, and what it survives.

mod files;
mod hostile;
mod keys;
mod terminal;
pub mod worlds;

pub mod answers;
pub mod armed;
pub mod circuit;
pub mod handoff;
pub mod history;
pub mod stalls;

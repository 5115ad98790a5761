pub mod answers;
pub mod armed;
pub mod asked;
pub mod circuit;
pub mod given;
pub mod handoff;
pub mod history;
pub mod stalls;

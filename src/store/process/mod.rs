pub mod checks;
pub mod command;
pub mod group;
pub mod interrupt;
pub mod lookup;
pub mod notify;
pub mod pid;
pub mod program;

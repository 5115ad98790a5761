pub mod monitor;
pub mod report;

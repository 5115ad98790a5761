//! Commands that show runs from their events.

pub mod report;
mod report_facts;

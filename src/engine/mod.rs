//! What both engines do with a turn that ended: gather what the project says about it, decide, record.
//!
//! The Stop hook and the runner learn of a turn in different ways and answer in different ways. Everything
//! between is here, so that a loop ends for the same reasons in both.

pub mod facts;
pub mod record;

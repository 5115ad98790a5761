//! Commands that show what happens, or have it shown elsewhere.

pub mod notify;

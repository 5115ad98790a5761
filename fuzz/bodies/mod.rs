//! What must hold for any bytes, one module for each fuzz target.
//!
//! The fuzzer calls them on nightly, `tests/fuzz_seeds.rs` with every seed on stable.

pub mod hook_input;
pub mod promise;
pub mod scan_snapshot;
pub mod settings;
pub mod state_file;
pub mod status_block;
pub mod task_list;
pub mod transcript;

type Check = fn(&[u8]);

/// Every target by its name, which is also the name of its binary and of its folder of seeds.
pub const TARGETS: [(&str, Check); 8] = [
    ("hook_input", hook_input::check),
    ("promise", promise::check),
    ("scan_snapshot", scan_snapshot::check),
    ("settings", settings::check),
    ("state_file", state_file::check),
    ("status_block", status_block::check),
    ("task_list", task_list::check),
    ("transcript", transcript::check),
];

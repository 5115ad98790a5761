//! What must hold for any bytes, one module for each fuzz target.
//!
//! The fuzzer calls them on nightly, `tests/fuzz_seeds.rs` with every seed on stable.

pub mod client_settings;
pub mod damaged_state;
pub mod events;
pub mod git_files;
pub mod given_records;
pub mod hook_input;
mod place;
pub mod project_files;
pub mod promise;
pub mod scan_rules;
pub mod scan_snapshot;
pub mod scanned_files;
pub mod settings;
pub mod state_file;
pub mod status_block;
pub mod stream;
pub mod task_list;
pub mod transcript;
pub mod user_files;

type Check = fn(&[u8]);

/// Every target by its name, which is also the name of its binary and of its folder of seeds.
pub const TARGETS: [(&str, Check); 18] = [
    ("client_settings", client_settings::check),
    ("damaged_state", damaged_state::check),
    ("events", events::check),
    ("git_files", git_files::check),
    ("given_records", given_records::check),
    ("hook_input", hook_input::check),
    ("project_files", project_files::check),
    ("promise", promise::check),
    ("scan_rules", scan_rules::check),
    ("scan_snapshot", scan_snapshot::check),
    ("scanned_files", scanned_files::check),
    ("settings", settings::check),
    ("state_file", state_file::check),
    ("status_block", status_block::check),
    ("stream", stream::check),
    ("task_list", task_list::check),
    ("transcript", transcript::check),
    ("user_files", user_files::check),
];

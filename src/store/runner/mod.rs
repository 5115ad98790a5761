pub mod calls;
pub mod logs;
pub mod run_lock;
pub mod runner_guard;
pub mod snapshot;
pub mod summary;

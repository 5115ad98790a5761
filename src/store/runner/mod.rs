pub mod calls;
pub mod logs;
pub mod run_lock;
pub mod snapshot;
pub mod summary;
pub mod task_list_guard;

//! A directory of the project, opened so that its files can be compared with the snapshot.
//!
//! On Linux the directory is held open: a name in it is found a third faster than a whole path, and no symbolic link
//! leads out of the project. Elsewhere files are found by their paths.

#[cfg(any(test, not(target_os = "linux")))]
mod by_path;
#[cfg(target_os = "linux")]
mod held;

#[cfg(not(target_os = "linux"))]
pub use by_path::OpenDirectory;
#[cfg(target_os = "linux")]
pub use held::OpenDirectory;

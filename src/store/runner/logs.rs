//! `ralph/logs`: everything the agents of a run wrote, one file an iteration, beside the summary.

use super::summary;
use crate::core::time::Stamp;
use crate::store::file::{self, Privacy};
use crate::store::project::Project;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns the folder of the logs, which it creates.
pub fn dir(project: &Project) -> Result<PathBuf> {
    let path = project.resolve(&project.work_dir().join("logs"))?;
    file::create_dir(&path).with_context(|| format!("could not create {}", path.display()))?;
    Ok(path)
}

/// Moves the logs of an earlier run into a folder of their own. Nothing is overwritten.
pub fn make_room(dir: &Path, now: Stamp) -> Result<()> {
    let is_log =
        |name: &str| name == summary::FILE || (name.starts_with("iteration-") && name.ends_with(".log"));
    let names = std::fs::read_dir(dir)?.flatten().map(|entry| entry.file_name());
    let earlier: Vec<_> = names.filter(|name| is_log(&name.to_string_lossy())).collect();
    if earlier.is_empty() {
        return Ok(());
    }
    let name = format!("until-{}", now.compact());
    let folder = file::free_name(|more| dir.join(format!("{name}{more}")));
    file::create_dir(&folder)?;
    for name in earlier {
        std::fs::rename(dir.join(&name), folder.join(&name))?;
    }
    Ok(())
}

/// The log of one iteration. A log that cannot be written does not end the run: the error is reported once.
pub struct Log {
    file: Option<File>,
    error: Option<String>,
}

impl Log {
    /// Opens the log of an iteration. An iteration that is repeated adds to it.
    pub fn open(dir: &Path, iteration: u64) -> Log {
        let path = dir.join(format!("iteration-{iteration:03}.log"));
        match file::creating(Privacy::Private).append(true).create(true).open(&path) {
            Ok(file) => Log { file: Some(file), error: None },
            Err(error) => {
                Log { file: None, error: Some(format!("could not open {}: {error}", path.display())) }
            }
        }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(bytes)
        {
            self.error = Some(format!("the log of this iteration is incomplete: {error}"));
            self.file = None;
        }
    }

    pub fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }
}

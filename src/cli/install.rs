//! `ralph install --to DIR`: lays the plugin out, ready for `claude --plugin-dir DIR`.

use super::failure::Failure;
use crate::claude::plugin;
use anyhow::Context;
use std::path::Path;

pub fn run(target: &Path) -> Result<String, Failure> {
    let program = std::env::current_exe().context("this program cannot find itself")?;
    let programs = program.canonicalize().unwrap_or(program);
    plugin::stage(target, programs.parent().unwrap_or(Path::new(".")))?;
    let target = target.canonicalize().unwrap_or_else(|_| target.to_owned());
    Ok(format!("The plugin is in {0}\nTry it: claude --plugin-dir \"{0}\"\n", target.display()))
}

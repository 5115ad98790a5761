//! The agent of the demo's runner: a program that takes a prompt on stdin, does a little, and prints text.
//!
//! It remembers nothing, as a fresh agent does not: what was done before it finds in the project.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// One iteration in this project. It works nowhere but in the demo's own.
pub fn work(project: &Path, prompt: &str) -> Result<String> {
    let prompts = project.join("../prompts");
    let number =
        fs::read_dir(&prompts).context("this agent works only in the project of `ralph demo`")?.count() + 1;
    fs::write(prompts.join(format!("{number}.txt")), prompt).context("the prompt could not be kept")?;
    let scones = project.join("scones.txt");
    let (text, says) = match fs::read_to_string(&scones) {
        Err(_) => ("two scones\n".to_owned(), "Two scones, baked. Somebody should think of jam."),
        Ok(found) => (
            format!("{found}jam\n"),
            "Found scones and no jam. Now there is jam.\n\n<promise>COMPLETE</promise>",
        ),
    };
    fs::write(&scones, text).with_context(|| format!("could not write {}", scones.display()))?;
    Ok(says.to_owned())
}

//! The scripted agent that `ralph run` starts in the demo: reads a prompt on stdin, changes a file and prints text.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Runs one iteration. Fails in any other project than the demo's.
pub fn work(project: &Path, prompt: &str) -> Result<String> {
    let prompts = project.join("../prompts");
    let number =
        fs::read_dir(&prompts).context("this agent works only in the project of `ralph demo`")?.count() + 1;
    fs::write(prompts.join(format!("{number}.txt")), prompt).context("could not save the prompt")?;
    let scones = project.join("scones.txt");
    let (text, answer) = match fs::read_to_string(&scones) {
        Err(_) => ("two scones\n".to_owned(), "Baked two scones. Jam is still missing."),
        Ok(found) => {
            (format!("{found}jam\n"), "Found scones without jam. Added jam.\n\n<promise>COMPLETE</promise>")
        }
    };
    fs::write(&scones, text).with_context(|| format!("could not write {}", scones.display()))?;
    Ok(answer.to_owned())
}

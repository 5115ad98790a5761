//! `ralph/blocked.txt` and `ralph/decide.txt`: what the human must settle before the work can go on.

use super::file::{self, Privacy};
use super::project::Project;
use crate::core::clean;
use crate::core::outcome::Outcome;
use crate::core::record::Loop;
use crate::core::time::Stamp;
use anyhow::Result;
use std::path::{Path, PathBuf};

const LARGEST: u64 = 1 << 20;
/// It is kept with the loop, which is read at every turn.
const LONGEST_TOLD: usize = 8000;
const SEPARATOR: &str = "---";
const ANSWER: &str = "## Answer";

/// A question the agent asked, and what the human wrote below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub path: PathBuf,
    pub question: String,
    pub answer: String,
}

impl Question {
    /// Both, as the agent is told.
    pub fn whole(&self) -> String {
        let text = format!("{}\n\nThe answer:\n{}", self.question, self.answer);
        text.chars().take(LONGEST_TOLD).collect()
    }
}

fn path(project: &Project, name: &str) -> Result<PathBuf> {
    project.resolve(&project.work_dir().join(name))
}

/// Writes the file that belongs to a BLOCKED or DECIDE ending; other endings have none.
pub fn ask(project: &Project, lap: &Loop, now: Stamp) -> Result<Option<PathBuf>> {
    let (name, title) = match lap.outcome {
        Some(Outcome::Blocked) => ("blocked.txt", "Blocked"),
        Some(Outcome::Decide) => ("decide.txt", "Question"),
        _ => return Ok(None),
    };
    let path = path(project, name)?;
    let reason = clean::block(lap.reason.as_deref().unwrap_or(""));
    let text = format!(
        "## {title} (from iteration {}, {})\n{reason}\n\n{SEPARATOR}\n{ANSWER}\n",
        lap.iteration,
        now.rfc3339()
    );
    std::fs::create_dir_all(project.work_dir())?;
    if path.exists() {
        // Somebody's open question or answer: it stays to be read.
        keep_aside(&path, now)?;
    }
    file::replace(&path, text.as_bytes(), Privacy::Private)?;
    Ok(Some(path))
}

/// The open question in `ralph/decide.txt`, with its answer so far.
pub fn decide(project: &Project) -> Result<Option<Question>> {
    read(project, "decide.txt")
}

/// What the agent could not get past, in `ralph/blocked.txt`, and what the human wrote below it.
pub fn blocked(project: &Project) -> Result<Option<Question>> {
    read(project, "blocked.txt")
}

fn read(project: &Project, name: &str) -> Result<Option<Question>> {
    let path = path(project, name)?;
    let Some(bytes) = file::read_bounded(&path, LARGEST)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    let (question, answer) = match text.split_once(&format!("\n{SEPARATOR}")) {
        Some((question, answer)) => (question, answer.trim().strip_prefix(ANSWER).unwrap_or(answer)),
        None => (text.as_ref(), ""),
    };
    Ok(Some(Question { question: clean::block(question.trim()), answer: clean::block(answer.trim()), path }))
}

/// Writes the answer below the question, in place of an earlier one.
pub fn answer(question: &Question, text: &str) -> Result<()> {
    let text = format!("{}\n\n{SEPARATOR}\n{ANSWER}\n{}\n", question.question, clean::block(text.trim()));
    file::replace(&question.path, text.as_bytes(), Privacy::Private)
}

/// Files an answered question away, out of the next start's sight.
pub fn file_away(question: &Question, now: Stamp) -> Result<()> {
    keep_aside(&question.path, now)
}

fn keep_aside(path: &Path, now: Stamp) -> Result<()> {
    let dir = path.with_file_name("answered");
    file::create_dir(&dir)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let stamped = |more: &str| dir.join(format!("{name}-{}{more}.txt", now.compact()));
    let mut target = stamped("");
    for count in 2.. {
        if !target.exists() {
            break;
        }
        target = stamped(&format!("-{count}"));
    }
    Ok(std::fs::rename(path, target)?)
}

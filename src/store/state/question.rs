//! `ralph/blocked.txt` and `ralph/decide.txt`: what a person must answer before the work can continue.

use crate::core::outcome::Outcome;
use crate::core::record::StoredLoop;
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::store::file::{self, Privacy};
use crate::store::project::Project;
use anyhow::Result;
use std::path::{Path, PathBuf};

const MAX_FILE_BYTES: u64 = 1 << 20;
/// A question is kept with the loop, which is read at every turn.
const MAX_PROMPT_CHARS: usize = 8000;
const SEPARATOR: &str = "---";
const ANSWER: &str = "## Answer";

/// A question of the agent, and what the user wrote below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub path: PathBuf,
    pub question: String,
    pub answer: String,
}

impl Question {
    /// Returns question and answer for the agent's prompt.
    pub fn whole(&self) -> String {
        let text = format!("{}\n\nThe answer:\n{}", self.question, self.answer);
        text.chars().take(MAX_PROMPT_CHARS).collect()
    }

    /// Returns the question alone for the agent's prompt.
    pub fn unanswered(&self) -> String {
        self.question.chars().take(MAX_PROMPT_CHARS).collect()
    }
}

fn path(project: &Project, name: &str) -> Result<PathBuf> {
    project.resolve(&project.work_dir().join(name))
}

/// Writes the file that belongs to a BLOCKED or DECIDE ending; other endings have none.
pub fn ask(project: &Project, run: &StoredLoop, now: Stamp) -> Result<Option<PathBuf>> {
    let (name, title) = match run.outcome {
        Some(Outcome::Blocked) => ("blocked.txt", "Blocked"),
        Some(Outcome::Decide) => ("decide.txt", "Question"),
        _ => return Ok(None),
    };
    let path = path(project, name)?;
    let reason = clean::block(run.reason.as_deref().unwrap_or(""));
    let text = format!(
        "## {title} (from iteration {}, {})\n{reason}\n\n{SEPARATOR}\n{ANSWER}\n",
        run.iteration,
        now.rfc3339()
    );
    std::fs::create_dir_all(project.work_dir())?;
    if path.exists() {
        // An earlier question or answer is kept.
        keep_aside(&path, now)?;
    }
    file::replace(&path, text.as_bytes(), Privacy::Private)?;
    Ok(Some(path))
}

/// Returns the question in `ralph/decide.txt`, with its answer so far.
pub fn decide(project: &Project) -> Result<Option<Question>> {
    read(project, "decide.txt")
}

/// Returns what blocked the agent, in `ralph/blocked.txt`, and what the user wrote below it.
pub fn blocked(project: &Project) -> Result<Option<Question>> {
    read(project, "blocked.txt")
}

fn read(project: &Project, name: &str) -> Result<Option<Question>> {
    let path = path(project, name)?;
    let Some(bytes) = file::read_bounded(&path, MAX_FILE_BYTES)? else { return Ok(None) };
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

/// Moves `ralph/blocked.txt` to `ralph/answered/`, if it is there.
pub fn clear_blocked(project: &Project, now: Stamp) -> Result<()> {
    blocked(project)?.map_or(Ok(()), |blocked| file_away(&blocked, now))
}

/// Moves an answered question to `ralph/answered/`.
pub fn file_away(question: &Question, now: Stamp) -> Result<()> {
    keep_aside(&question.path, now)
}

fn keep_aside(path: &Path, now: Stamp) -> Result<()> {
    let dir = path.with_file_name("answered");
    file::create_dir(&dir)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let target = file::free_name(|more| dir.join(format!("{name}-{}{more}.txt", now.compact())));
    Ok(std::fs::rename(path, target)?)
}

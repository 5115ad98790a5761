//! `ralph/blocked.txt` and `ralph/decide.txt`: what a person must answer before the work can continue.

use crate::core::outcome::Outcome;
use crate::core::record::{StoredLoop, WaitingFor};
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::store::file::{self, Privacy};
use crate::store::project::Project;
use crate::store::user::history;
use crate::store::world::World;
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
    /// No loop of this user asked it, so it came with the project: it counts for nothing until it is adopted.
    pub foreign: bool,
}

impl Question {
    /// Returns question and answer for the agent's prompt.
    pub fn whole(&self) -> String {
        let text = format!("{}\n\nThe answer:\n{}", self.question, self.answer);
        text.chars().take(MAX_PROMPT_CHARS).collect()
    }

    /// Returns the question with this answer, as the file will have it.
    pub fn with_answer(&self, text: &str) -> Question {
        Question { answer: trimmed(text), ..self.clone() }
    }

    /// Returns the question alone for the agent's prompt.
    pub fn unanswered(&self) -> String {
        self.question.chars().take(MAX_PROMPT_CHARS).collect()
    }

    /// Returns what the agent asked, without the line that says when.
    pub fn asked(&self) -> &str {
        self.question.split_once('\n').map_or(self.question.as_str(), |(_, asked)| asked).trim()
    }
}

/// Writes the file that belongs to a BLOCKED or DECIDE ending; other endings have none.
pub fn ask(project: &Project, run: &StoredLoop, now: Stamp) -> Result<Option<PathBuf>> {
    let Some((name, question)) = question_of(run) else { return Ok(None) };
    let path = project.file(&project.work_dir().join(name))?;
    let text = format!("{question}\n\n{SEPARATOR}\n{ANSWER}\n");
    file::create_shared_dir(&project.folder(&project.work_dir())?)?;
    if path.exists() {
        if read(project, name)?.is_some_and(|present| is_same(&present.question, &question)) {
            // It was asked before a wait for its answer.
            return Ok(Some(path));
        }
        // An earlier question or answer is kept.
        keep_aside(project, &path, now)?;
    }
    file::replace(&path, text.as_bytes(), Privacy::Private)?;
    Ok(Some(path))
}

/// Returns the name of the file that belongs to a loop's ending, and the question in it.
fn question_of(run: &StoredLoop) -> Option<(&'static str, String)> {
    let reason = run.reason.as_deref().unwrap_or_default();
    question_with(run.outcome?, run.iteration, run.ended_at.unwrap_or_default(), reason)
}

fn question_with(
    outcome: Outcome,
    iteration: u64,
    at: Stamp,
    reason: &str,
) -> Option<(&'static str, String)> {
    let (name, title) = match outcome {
        Outcome::Blocked => ("blocked.txt", "Blocked"),
        Outcome::Decide => ("decide.txt", "Question"),
        _ => return None,
    };
    let (at, reason) = (at.rfc3339(), clean::block(reason));
    Some((name, format!("## {title} (from iteration {iteration}, {at})\n{reason}")))
}

/// Returns whether both are the same question; the rest may have been edited, or cut at a separator in it.
fn is_same(found: &str, asked: &str) -> bool {
    let first = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).take(2).collect::<Vec<_>>();
    first(found) == first(clean::block(asked.trim()).as_str())
}

/// Returns whether a loop of this user asked it: the endings in the user's own history tell.
fn was_asked(world: &World, project: &Project, name: &str, question: &str) -> bool {
    let is_it = |ending: &history::Run| {
        let history::Run { outcome, iterations, ended_at, reason, .. } = ending;
        let asked = question_with(*outcome, *iterations, *ended_at, reason);
        asked.is_some_and(|(file, asked)| file == name && is_same(question, &asked))
    };
    history::endings(world, project).is_ok_and(|endings| endings.iter().any(is_it))
}

/// Returns the question with which a loop ended, if it is still there; another loop may have asked since.
pub fn of_loop(project: &Project, run: &StoredLoop) -> Result<Option<Question>> {
    let Some((name, asked)) = question_of(run) else { return Ok(None) };
    Ok(read(project, name)?.filter(|file| is_same(&file.question, &asked)))
}

/// Returns the question for whose answer a runner waits. Its record has no ending, but the user's history has one that asks.
pub fn of_waiting(world: &World, project: &Project, run: &StoredLoop) -> Result<Option<Question>> {
    let waiting = run.session.waiting.as_ref();
    if !waiting.is_some_and(|waiting| matches!(waiting.what, WaitingFor::Answer(_))) {
        return Ok(None);
    }
    let asked = history::endings(world, project)?.into_iter().rfind(|ending| ending.run_id == run.run_id);
    let Some(history::Run { outcome, iterations, ended_at, reason, .. }) = asked else { return Ok(None) };
    let Some((name, asked)) = question_with(outcome, iterations, ended_at, &reason) else { return Ok(None) };
    Ok(read(project, name)?.filter(|file| is_same(&file.question, &asked)))
}

/// Returns what is in `ralph/decide.txt` and `ralph/blocked.txt`, each with its answer so far.
pub fn all(world: &World, project: &Project) -> Result<[Option<Question>; 2]> {
    let read = |name: &str| -> Result<Option<Question>> {
        Ok(read(project, name)?.map(|mut found| {
            found.foreign = !was_asked(world, project, name, &found.question);
            found
        }))
    };
    Ok([read("decide.txt")?, read("blocked.txt")?])
}

/// Returns the question that a loop of this user asked, in `ralph/decide.txt`.
pub fn decide(world: &World, project: &Project) -> Result<Option<Question>> {
    let [decide, _] = all(world, project)?;
    Ok(decide.filter(|question| !question.foreign))
}

/// Returns what blocked a loop of this user, in `ralph/blocked.txt`, and what the user wrote below it.
pub fn blocked(world: &World, project: &Project) -> Result<Option<Question>> {
    let [_, blocked] = all(world, project)?;
    Ok(blocked.filter(|question| !question.foreign))
}

/// Names the questions that no loop of this user asked.
pub fn foreign_notes(world: &World, project: &Project) -> Vec<String> {
    let questions = all(world, project).unwrap_or_default().into_iter().flatten();
    let note = |question: Question| {
        format!(
            "ignored {}, because it is not from one of your loops: \"{}\"; see `ralph answer`",
            clean::visible(&question.path.display().to_string()),
            clean::excerpt(&question.question, 100)
        )
    };
    questions.filter(|question| question.foreign).map(note).collect()
}

/// Returns the text without control characters, and without the white space that these may have enclosed.
fn trimmed(text: &str) -> String {
    clean::block(text).trim().to_owned()
}

fn read(project: &Project, name: &str) -> Result<Option<Question>> {
    let path = project.work_dir().join(name);
    let Some(bytes) = project.read(&path, MAX_FILE_BYTES)? else { return Ok(None) };
    // Cleaned first: without a control character, a line may become the separator.
    let text = clean::block(&String::from_utf8_lossy(&bytes));
    let (question, answer) = match text.split_once(&format!("\n{SEPARATOR}")) {
        Some((question, answer)) => (question, answer.trim().strip_prefix(ANSWER).unwrap_or(answer)),
        None => (text.as_str(), ""),
    };
    let (question, answer) = (trimmed(question), trimmed(answer));
    Ok(Some(Question { path, question, answer, foreign: false }))
}

/// Writes the answer below the question, in place of an earlier one. Returns the question with it.
pub fn answer(project: &Project, question: &Question, text: &str) -> Result<Question> {
    let answered = question.with_answer(text);
    let text = format!("{}\n\n{SEPARATOR}\n{ANSWER}\n{}\n", answered.question, answered.answer);
    project.replace(&question.path, text.as_bytes(), Privacy::Private)?;
    Ok(answered)
}

/// Moves `ralph/blocked.txt` to `ralph/answered/`, if it is there.
pub fn clear_blocked(world: &World, project: &Project) -> Result<()> {
    blocked(world, project)?.map_or(Ok(()), |blocked| file_away(project, &blocked, world.now))
}

/// Moves an answered question to `ralph/answered/`.
pub fn file_away(project: &Project, question: &Question, now: Stamp) -> Result<()> {
    keep_aside(project, &project.file(&question.path)?, now)
}

fn keep_aside(project: &Project, path: &Path, now: Stamp) -> Result<()> {
    let dir = project.folder(&project.work_dir().join("answered"))?;
    file::create_dir(&dir)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let target = file::free_name(|more| dir.join(format!("{name}-{}{more}.txt", now.compact())));
    Ok(std::fs::rename(path, target)?)
}

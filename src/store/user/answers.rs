//! The answers this user gave to the agent's questions in a project. They are in the prompts of every run until one
//! completes, so they are kept beside the runs.

use crate::core::record::ArmedLoop;
use crate::store::file::{self, Privacy};
use crate::store::project::Project;
use crate::store::state::question::{self, Question};
use crate::store::world::World;
use anyhow::Result;
use std::path::PathBuf;

const MAX_FILE_BYTES: u64 = 1 << 20;
/// Older answers are left out: each is in every prompt.
const MAX_ANSWERS: usize = 20;

fn path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("answers").join(format!("{}.json", project.key())))
}

/// Returns the answers of earlier runs, oldest first. A file that cannot be read is an error: the next save would
/// replace it.
pub fn load(world: &World, project: &Project) -> Result<Vec<String>> {
    Ok(file::read_record(&path(world, project)?, MAX_FILE_BYTES)?.unwrap_or_default())
}

/// Adds answers to a list, each once.
pub fn add(list: &mut Vec<String>, answers: impl IntoIterator<Item = String>) {
    for answer in answers {
        if !list.contains(&answer) {
            list.push(answer);
        }
    }
    list.drain(..list.len().saturating_sub(MAX_ANSWERS));
}

pub fn save(world: &World, project: &Project, list: &[String]) -> Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let path = path(world, project)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace(&path, &serde_json::to_vec(list)?, Privacy::Private)
}

/// Gives the loop the answers to earlier questions, and what blocked an earlier run. Returns what was answered now.
pub fn hand_over(
    world: &World,
    project: &Project,
    run: &mut ArmedLoop,
    question: Option<&Question>,
) -> Result<Vec<Question>> {
    let left_over = question::blocked(world, project).ok().flatten();
    let (answered, open) = left_over.into_iter().partition::<Vec<_>, _>(|blocked| !blocked.answer.is_empty());
    let mut list = load(world, project)?;
    add(&mut list, run.pending.answers.drain(..));
    let handed: Vec<Question> = question.into_iter().cloned().chain(answered).collect();
    add(&mut list, handed.iter().map(Question::whole));
    run.pending.answers = list;
    run.pending.blocked = open.first().map(Question::unanswered);
    Ok(handed)
}

/// Records an answer that the user gave with `ralph answer`, before a run takes it: the file with it is in the project.
pub fn note_given(world: &World, project: &Project, answer: &str) -> Result<()> {
    let path = given_path(world, project)?;
    let mut list: Vec<String> = file::read_record(&path, MAX_FILE_BYTES)?.unwrap_or_default();
    add(&mut list, [answer.to_owned()]);
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace(&path, &serde_json::to_vec(&list)?, Privacy::Private)
}

/// Returns whether the user gave this very answer with `ralph answer`.
pub fn is_given(world: &World, project: &Project, answer: &str) -> Result<bool> {
    let list: Option<Vec<String>> = file::read_record(&given_path(world, project)?, MAX_FILE_BYTES)?;
    Ok(list.is_some_and(|list| list.iter().any(|given| given == answer)))
}

fn given_path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("answers").join(format!("{}-given.json", project.key())))
}

/// Forgets the answers, after a run that completed.
pub fn forget(world: &World, project: &Project) {
    for path in [path(world, project), given_path(world, project)].into_iter().flatten() {
        let _ = std::fs::remove_file(path);
    }
}

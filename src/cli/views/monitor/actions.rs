//! What a key does to a loop: the functions of the commands of that name, each in a thread, because a stop waits for the
//! agent to end.

use crate::cli::loops::stop::StopScope;
use crate::cli::loops::{answer, guidance, pause, reset, stop};
use crate::cli::views::report;
use crate::cli::{Failure, Project, World};
use crate::core::guidance::List;
use crate::store::state;
use crate::view::monitor::{Banner, LoopAction, RunRef};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

pub struct Actions {
    sender: Sender<Banner>,
    done: Receiver<Banner>,
    threads: Vec<JoinHandle<()>>,
}

impl Default for Actions {
    fn default() -> Actions {
        let (sender, done) = channel();
        Actions { sender, done, threads: Vec::new() }
    }
}

impl Actions {
    pub fn begin(&mut self, world: &World, target: RunRef, act: LoopAction) {
        let (world, sender) = (world.clone(), self.sender.clone());
        let thread = Builder::new().spawn(move || {
            let notice = match perform(&world, &target, &act) {
                Ok(told) => Banner::info(first_line(&told)),
                Err(failure) => {
                    let hint = failure.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                    Banner::error(format!("{}{hint}", failure.message))
                }
            };
            let _ = sender.send(notice);
        });
        match thread {
            Ok(thread) => self.threads.push(thread),
            Err(error) => drop(self.sender.send(Banner::error(format!("could not begin: {error}")))),
        }
    }

    /// Returns what the last action that ended said.
    pub fn finished(&mut self) -> Option<Banner> {
        self.threads.retain(|thread| !thread.is_finished());
        self.done.try_iter().last()
    }

    /// Waits until everything that was begun is done.
    pub fn wait(self) {
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

fn perform(world: &World, target: &RunRef, act: &LoopAction) -> Result<String, Failure> {
    let RunRef { run_id, session_id: session, project } = target;
    let project = &Project { root: project.clone() };
    if !matches!(act, LoopAction::OpenReport) {
        ensure_current(project, session, run_id)?;
    }
    let scope = StopScope::Session(session.clone());
    let give = |list: List, text: &str| {
        let request = guidance::GuidanceCommand::give(list, text, guidance::Options::default())?;
        guidance::run(world, project, Some(session), &request, false)
    };
    match act {
        LoopAction::Encourage(text) => give(List::Encouraged, text),
        LoopAction::Forbid(text) => give(List::Forbidden, text),
        LoopAction::Answer(text) => {
            let gone = || Failure::refused("the question is no longer open");
            let question = answer::of_session(world, project, session)?.ok_or_else(gone)?;
            answer::give(world, project, &question, text, false)
        }
        LoopAction::Pause => pause::pause(world, project, &scope),
        LoopAction::Resume => pause::resume(world, project, &scope),
        LoopAction::Stop => stop::stop(world, project, &scope, None),
        LoopAction::Reset => reset::reset(world, project, &scope),
        LoopAction::OpenReport => {
            let path = report::open(world, project, run_id)?;
            Ok(format!("opened {}", path.display()))
        }
    }
}

/// Refuses if the session has another loop by now than the one on the screen.
fn ensure_current(project: &Project, session: &str, run_id: &str) -> Result<(), Failure> {
    let present = state::peek(project)?.and_then(|document| document.loop_of(session));
    match present.is_some_and(|run| run.run_id == run_id) {
        true => Ok(()),
        false => Err(Failure::refused("this run is no longer the loop of its session")),
    }
}

/// Returns the line that says what was done; a stop says first which loop it was.
fn first_line(text: &str) -> String {
    text.lines().take(2).collect::<Vec<_>>().join(" ")
}

//! Follows what the agent of the selected run says and does: the log of a runner's iteration, or a session's transcript.

use crate::claude::{agent_log, transcript};
use crate::cli::{Project, World};
use crate::core::record::Engine;
use crate::run::agent;
use crate::store::events::Follower;
use crate::store::runner::logs;
use crate::view::monitor::{Monitor, RunView};
use std::path::{Path, PathBuf};

/// So much of what was there before is read.
const FIRST_BYTES: u64 = 256 << 10;

#[derive(Default)]
pub struct ActivityReader {
    run_id: String,
    follower: Option<Follower>,
    /// Found by looking through all projects of the client, which is not done twice.
    found: Option<PathBuf>,
}

impl ActivityReader {
    /// Reads what the selected run's agent did since the last look.
    pub fn follow(&mut self, world: &World, monitor: &mut Monitor) {
        let Some(run) = monitor.selected() else { return };
        if self.run_id != run.run_id {
            *self = ActivityReader { run_id: run.run_id.clone(), ..ActivityReader::default() };
        }
        let Some(path) = self.source(world, run) else { return };
        let read_entries = if run.engine == Engine::Runner { agent::log_entries } else { agent_log::entries };
        let mut entries = Vec::new();
        let mut read = |follower: &mut Follower| {
            // What cannot be read now may be there at the next look.
            let _ = follower.poll(|line| entries.extend(read_entries(line)));
        };
        // The end of an iteration is in its log when the next one has begun.
        self.follower.iter_mut().for_each(&mut read);
        if self.follower.as_ref().is_none_or(|follower| follower.path() != path) {
            self.follower = Some(Follower::from_end(&path, FIRST_BYTES));
            self.follower.iter_mut().for_each(&mut read);
        }
        monitor.add_entries(entries);
    }

    /// Returns the file that the agent's account is read from.
    fn source(&mut self, world: &World, run: &RunView) -> Option<PathBuf> {
        let last = run.timeline.as_ref().and_then(|timeline| timeline.last_iteration());
        match run.engine {
            Engine::Runner => {
                // The logs in the project are those of its newest run.
                let shown = run.shown.as_ref()?;
                let current = run.timeline.as_ref().and_then(|timeline| timeline.current);
                let number = current.map_or(shown.run.iteration, |(number, _)| number);
                let project = Project { root: run.project.clone() };
                project.file(&logs::path(&project).join(logs::name(number))).ok()
            }
            Engine::InSession => {
                let known = run.shown.as_ref().map(|shown| PathBuf::from(&shown.run.session.transcript.path));
                let told = last.and_then(|last| last.facts.transcript.as_ref()).map(PathBuf::from);
                let path = known.into_iter().chain(told).find(|path| path.is_file());
                path.or_else(|| {
                    let is_there = self.found.as_deref().is_some_and(Path::is_file);
                    if !is_there && self.follower.is_none() {
                        self.found = transcript::find(world, &run.session_id);
                    }
                    self.found.clone()
                })
            }
        }
    }
}

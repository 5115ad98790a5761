//! Follows the files of the loops: states of projects, events of runs. Looking changes nothing, and what has not changed
//! is not read again.

use crate::cli::loops::status;
use crate::cli::{Failure, Project, World};
use crate::core::event::Event;
use crate::core::event::timeline::Timeline;
use crate::core::record::{ArmedLoop, ClientStatus, TranscriptPosition, Waiting, WaitingFor};
use crate::core::time::Stamp;
use crate::store::events::{self, Follower, RunFile};
use crate::store::state::question;
use crate::store::user::history;
use crate::store::world;
use crate::view::monitor::{Monitor, ProjectView, RunView};
use crate::view::status::StatusView;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// A project with a living loop is looked at again after so many ticks, whether or not its state has changed: the client
/// tells in other files what it does. One without is looked at less often.
const LIVING_TICKS: u64 = 3;
const QUIET_TICKS: u64 = 15;
/// The events of a run that has ended may still grow, if it is continued.
const ENDED_TICKS: u64 = 5;
/// Event files that are read for the first time in one look.
const MAX_FIRST_READS: usize = 8;
/// Timelines kept for runs that are not visible.
const MAX_TIMELINES: usize = 64;
/// Runs of the history that are listed beside those with events.
const MAX_PAST_RUNS: usize = 500;

/// What tells one content of a file from another: time, size and inode.
type FileStamp = Option<(i64, u64, u64)>;

pub struct Watch {
    world: World,
    /// `None` for all projects.
    project: Option<Project>,
    ticks: u64,
    /// The folder of all runs, as it was when it was listed; listed again once more, in case it changed meanwhile.
    runs_seen: (FileStamp, bool),
    files: Vec<RunFile>,
    projects: HashMap<PathBuf, Watched>,
    followers: HashMap<String, Follower>,
    /// The list has to be put together again.
    is_stale: bool,
}

/// A project, as it was when it was last looked at.
struct Watched {
    seen: [FileStamp; 3],
    checked_at: Option<u64>,
    /// What is new, until the list has it.
    status: Option<StatusView>,
    past: Vec<history::Run>,
    observed: HashMap<String, Observed>,
    has_living: bool,
}

/// How far the transcript of a session was read after its last hook, and what it showed.
struct Observed {
    run_id: String,
    hook: f64,
    reading: TranscriptPosition,
    interrupted_at: Option<Stamp>,
    waiting: Option<Waiting>,
}

impl Watch {
    pub fn new(world: &World, project: Option<&Project>) -> Watch {
        Watch {
            world: world.clone(),
            project: project.cloned(),
            ticks: 0,
            runs_seen: (None, true),
            files: Vec::new(),
            projects: HashMap::new(),
            followers: HashMap::new(),
            is_stale: true,
        }
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    /// Reads everything for the first time. A state that cannot be read at all is an error.
    pub fn load(&mut self, monitor: &mut Monitor) -> Result<(), Failure> {
        self.refresh(monitor);
        if let Some(project) = &self.project {
            status::gather_observed(&self.world, project, None, &mut |_, _| ClientStatus::Unknown)?;
        }
        Ok(())
    }

    /// Reads what may have changed.
    pub fn refresh(&mut self, monitor: &mut Monitor) {
        self.world = self.world.later();
        monitor.now = self.world.now;
        self.list_runs();
        self.refresh_projects();
        if std::mem::take(&mut self.is_stale) {
            self.put_together(monitor);
        }
        self.read_visible(monitor);
        self.ticks += 1;
    }

    fn list_runs(&mut self) {
        let folder = self.world.data_dir().map(|dir| dir.join("runs")).unwrap_or_default();
        let seen = fingerprint(&folder);
        let (before, again) = self.runs_seen;
        if seen == before && !again {
            return;
        }
        self.runs_seen = (seen, seen != before);
        let listed = match &self.project {
            Some(project) => events::of_project(&self.world, project),
            None => events::all(&self.world),
        };
        self.files = listed.unwrap_or_default();
        self.is_stale = true;
        if self.project.is_none() {
            let known = status::projects(&self.world);
            let named = self.files.iter().map(|file| file.project().real_root());
            for root in known.into_iter().chain(named) {
                self.projects.entry(root).or_insert_with(Watched::new);
            }
        } else if let Some(project) = &self.project {
            self.projects.entry(project.root.clone()).or_insert_with(Watched::new);
        }
    }

    fn refresh_projects(&mut self) {
        for (root, watched) in &mut self.projects {
            let project = Project { root: root.clone() };
            let data = self.world.data_dir().unwrap_or(root);
            let given = data.join("given").join(format!("{}.json", project.key()));
            let past = data.join("history").join(format!("{}.jsonl", project.key()));
            let seen = [project.state(), given, past].map(|path| fingerprint(&path));
            let interval = if watched.has_living { LIVING_TICKS } else { QUIET_TICKS };
            let is_due = watched.checked_at.is_none_or(|checked| self.ticks >= checked + interval);
            if seen == watched.seen && !is_due {
                continue;
            }
            if seen[2] != watched.seen[2] {
                watched.past = history::runs(&self.world, &project).unwrap_or_default();
            }
            (watched.seen, watched.checked_at) = (seen, Some(self.ticks));
            let status = watched.gather(&self.world, &project);
            watched.has_living = status.loops.iter().any(|shown| shown.run.is_alive());
            watched.status = Some(status);
            self.is_stale = true;
        }
    }

    /// Makes the list of runs of what is known now. What was read of each run's events stays.
    fn put_together(&mut self, monitor: &mut Monitor) {
        let is_fresh =
            |root: &PathBuf| self.projects.get(root).is_some_and(|watched| watched.status.is_some());
        let files: HashSet<&str> = self.files.iter().map(|file| file.run_id.as_str()).collect();
        let (mut before, mut runs) = (HashMap::new(), Vec::new());
        for run in monitor.runs.drain(..) {
            if is_fresh(&run.project) {
                before.insert(run.run_id.clone(), run);
            } else if run.shown.is_some() || run.past.is_some() || files.contains(run.run_id.as_str()) {
                runs.push(run);
            }
        }
        let mut listed: HashSet<String> = runs.iter().map(|run| run.run_id.clone()).collect();
        for file in self.files.iter().filter(|file| !listed.contains(&file.run_id)).collect::<Vec<_>>() {
            let root = self.root_of(file);
            let mut run: RunView = before.remove(&file.run_id).unwrap_or_else(|| of_file(file, &root));
            (run.shown, run.question, run.past) = (None, None, None);
            listed.insert(run.run_id.clone());
            runs.push(run);
        }
        for (root, watched) in &mut self.projects {
            let project = Project { root: root.clone() };
            let Some(status) = watched.status.take() else { continue };
            for shown in status.loops {
                let id = shown.run.run_id.clone();
                let known = runs.iter().position(|run| run.run_id == id);
                let at = known.unwrap_or_else(|| {
                    let earlier = before.remove(&id);
                    runs.push(earlier.unwrap_or_else(|| of_loop(&shown.run, &shown.session_id, root)));
                    listed.insert(id);
                    runs.len() - 1
                });
                let run = &mut runs[at];
                run.session_id.clone_from(&shown.session_id);
                run.task.clone_from(&shown.run.task);
                run.question = open_question(&self.world, &project, &shown.run);
                run.shown = Some(shown);
            }
            let older = watched.past.iter().rev().filter(|past| !listed.contains(&past.run_id));
            for past in older.take(MAX_PAST_RUNS) {
                runs.push(of_past(past, root));
            }
            monitor.projects.insert(
                root.clone(),
                ProjectView {
                    guidance: status.guidance,
                    constraints: serde_json::from_value(status.constraints).unwrap_or_default(),
                    notes: status.notes,
                },
            );
        }
        monitor.set_runs(runs);
    }

    /// Returns the folder of a run's project, as the list of projects names it.
    fn root_of(&self, file: &RunFile) -> PathBuf {
        match &self.project {
            Some(project) => project.root.clone(),
            None => file.project().real_root(),
        }
    }

    /// Reads what the events of the runs on the screen gained.
    pub fn read_visible(&mut self, monitor: &mut Monitor) {
        let visible: Vec<String> = monitor.visible_run_ids().map(str::to_owned).collect();
        let order: HashMap<&str, usize> =
            visible.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
        let mut wanted: Vec<(usize, usize)> = Vec::new();
        for (index, run) in monitor.runs.iter().enumerate() {
            match order.get(run.run_id.as_str()) {
                Some(at) => wanted.push((*at, index)),
                // Read before, and out of sight.
                None if run.timeline.is_some() && run.is_alive() => wanted.push((usize::MAX, index)),
                None => {}
            }
        }
        wanted.sort_unstable();
        let mut first_reads = 0;
        for (order, index) in wanted {
            let run = &mut monitor.runs[index];
            let is_first = !self.followers.contains_key(&run.run_id);
            first_reads += usize::from(is_first);
            // The selected run comes first.
            let is_due = order == 0 || run.is_alive() || self.ticks.is_multiple_of(ENDED_TICKS);
            if run.past.is_some() || (is_first && first_reads > MAX_FIRST_READS) || !(is_first || is_due) {
                continue;
            }
            self.read(run);
        }
        self.forget_hidden(monitor, &visible);
    }

    fn read(&mut self, run: &mut RunView) {
        run.is_read = true;
        let Ok(folder) = events::folder(&self.world, &run.run_id) else { return };
        let follower = self
            .followers
            .entry(run.run_id.clone())
            .or_insert_with(|| Follower::new(&folder.join(events::FILE)));
        let mut gained = Vec::new();
        let news = follower.poll(|line| gained.extend(Event::parse(line)));
        run.fault = news.as_ref().err().map(|error| format!("{error:#}"));
        let Ok(news) = news else { return };
        if news.restarted {
            run.timeline = None;
        }
        if follower.skipped_bytes > 0 {
            run.fault =
                Some(format!("its events are too large: {} MB were skipped", follower.skipped_bytes >> 20));
        }
        if !gained.is_empty() {
            let timeline = run.timeline.get_or_insert_with(Timeline::default);
            gained.into_iter().for_each(|event| timeline.add(event));
        }
    }

    /// Keeps only so many timelines: a user may have hundreds of runs.
    fn forget_hidden(&mut self, monitor: &mut Monitor, visible: &[String]) {
        if self.followers.len() <= MAX_TIMELINES {
            return;
        }
        let visible: HashSet<&String> = visible.iter().collect();
        for run in &mut monitor.runs {
            if !run.is_alive() && !visible.contains(&run.run_id) {
                (run.timeline, run.is_read) = (None, run.past.is_some());
                self.followers.remove(&run.run_id);
            }
        }
        let listed: HashSet<&String> = monitor.runs.iter().map(|run| &run.run_id).collect();
        self.followers.retain(|id, _| listed.contains(id));
    }
}

impl Watched {
    fn new() -> Watched {
        Watched {
            seen: [None; 3],
            checked_at: None,
            status: None,
            past: Vec::new(),
            observed: HashMap::new(),
            has_living: false,
        }
    }

    fn gather(&mut self, world: &World, project: &Project) -> StatusView {
        let observed = &mut self.observed;
        let mut observe = |session: &str, run: &mut ArmedLoop| {
            let known = observed.remove(session);
            let known =
                known.filter(|known| known.run_id == run.run_id && known.hook == run.last_hook_timestamp);
            if let Some(known) = &known {
                run.session.transcript.clone_from(&known.reading);
                run.note_interruption(known.interrupted_at);
            }
            let before = run.session.transcript.offset;
            let client = status::observe(world, project, session, run, None);
            let has_more = run.session.transcript.offset != before;
            if let Some(known) = known.filter(|_| !has_more && run.session.waiting.is_none()) {
                run.session.waiting = known.waiting;
            }
            let is_limit = |waiting: &&Waiting| matches!(waiting.what, WaitingFor::UsageLimit(_));
            observed.insert(
                session.to_owned(),
                Observed {
                    run_id: run.run_id.clone(),
                    hook: run.last_hook_timestamp,
                    reading: run.session.transcript.clone(),
                    interrupted_at: run.session.interrupted_at,
                    waiting: run.session.waiting.as_ref().filter(is_limit).cloned(),
                },
            );
            client
        };
        status::gather_observed(world, project, None, &mut observe).unwrap_or_else(|failure| {
            StatusView::unreadable(project.root.clone(), failure.message, world.now)
        })
    }
}

fn of_file(file: &RunFile, root: &Path) -> RunView {
    let RunFile { run_id, started, started_at, .. } = file;
    RunView::new(run_id, root, &started.session_id, started.engine, &started.task, *started_at)
}

fn of_loop(run: &ArmedLoop, session: &str, root: &Path) -> RunView {
    RunView::new(&run.run_id, root, session, run.engine, &run.task, run.started_at)
}

fn of_past(past: &history::Run, root: &Path) -> RunView {
    let view = RunView::new(&past.run_id, root, &past.session_id, past.engine, &past.task, past.started_at);
    RunView { is_read: true, past: Some(past.clone()), ..view }
}

/// Returns the question with which a loop ended, while it has no answer.
fn open_question(world: &World, project: &Project, run: &ArmedLoop) -> Option<String> {
    let ended = question::of_loop(project, run).ok().flatten();
    let question = ended.or_else(|| question::of_waiting(world, project, run).ok().flatten())?;
    question.answer.is_empty().then(|| question.asked().to_owned())
}

fn fingerprint(path: &Path) -> FileStamp {
    let meta = std::fs::symlink_metadata(path).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let inode = 0;
    Some((meta.modified().map_or(0, world::nanoseconds), meta.len(), inode))
}

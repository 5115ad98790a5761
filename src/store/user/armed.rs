//! Which loops this user armed. A state file that came with a repository starts nothing: only a run recorded
//! here, for this project and session, is alive. This is the only place that makes an [`ArmedLoop`].
//!
//! The record's name follows from session and project, so a session without a loop learns that by looking for
//! one file.

use super::{circuit, history};
use crate::core::circuit::Circuit;
use crate::core::record::{ArmedLoop, GivenSettings, StoredLoop};
use crate::store::file::walk::{entries, list};
use crate::store::file::{self, Backup, Privacy};
use crate::store::project::{Project, stable_hash};
use crate::store::state::Document;
use crate::store::world::World;
use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::cell::{Cell, LazyCell};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
struct Record {
    session_id: String,
    /// For people; the record's name already tells the project.
    project: String,
    terms: TrustedFields,
    /// The loop as it was armed, so that an ending can be told even if the state file is lost.
    armed: Option<Box<RawValue>>,
    /// The run that was armed before, which counts until the state has this one: a start may be killed in between.
    #[serde(default)]
    before: Option<TrustedFields>,
}

/// What only the user's own folder may say about a run.
#[derive(Serialize, Deserialize)]
struct TrustedFields {
    run_id: String,
    /// Commands given as flags: only the user's own folder may hold what we run.
    #[serde(default)]
    commands: Map<String, Value>,
    /// The settings that the user gave.
    #[serde(default)]
    given: GivenSettings,
    /// The limits that the project's file gave at the start, and the user with `ralph config` since.
    #[serde(default)]
    limits: Option<Map<String, Value>>,
    /// The user's answers that its agent is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    answers: Vec<String>,
}

impl Record {
    /// Returns the terms of a run, if this record arms it.
    fn terms_of(self, run_id: &str) -> Option<TrustedFields> {
        [Some(self.terms), self.before].into_iter().flatten().find(|terms| terms.run_id == run_id)
    }

    /// Returns the task that the user gave to a run.
    fn task_of(&self, run_id: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Armed {
            run_id: String,
            task: String,
        }
        let armed: Armed = serde_json::from_str(self.armed.as_ref()?.get()).ok()?;
        (armed.run_id == run_id).then_some(armed.task)
    }
}

impl TrustedFields {
    fn of(run: &ArmedLoop) -> TrustedFields {
        TrustedFields {
            run_id: run.run_id.clone(),
            commands: run.commands.clone(),
            given: run.given.by_user(),
            limits: run.limits.clone(),
            answers: run.pending.answers.clone(),
        }
    }

    /// Makes the loop of what the state says about it and what only the user's own folder may say.
    fn attach(
        self,
        world: &World,
        project: &Project,
        session: &str,
        stored: StoredLoop,
    ) -> Result<ArmedLoop> {
        let mut run = load_parts(world, project, session, stored, (self.commands, self.limits))?;
        run.given.set_by_user(self.given);
        run.pending.answers = self.answers;
        Ok(run)
    }
}

const MAX_RECORD_BYTES: u64 = 1 << 20;

/// Makes a new loop, with a fresh breaker. It counts once it is armed and in the state file.
pub fn begin(stored: StoredLoop, commands: Map<String, Value>) -> ArmedLoop {
    ArmedLoop::attach(stored, Circuit::default(), commands, None)
}

/// Makes a loop that is not armed now of a record that the user's own folder holds, with its breaker if that is kept. Its
/// limits are taken anew when it is armed.
pub fn continued(
    world: &World,
    project: &Project,
    session: &str,
    stored: StoredLoop,
    commands: Map<String, Value>,
) -> Result<ArmedLoop> {
    load_parts(world, project, session, stored, (commands, None))
}

fn load_parts(
    world: &World,
    project: &Project,
    session: &str,
    stored: StoredLoop,
    (commands, limits): (Map<String, Value>, Option<Map<String, Value>>),
) -> Result<ArmedLoop> {
    let circuit = circuit::load(world, project, session, &stored.run_id)?;
    Ok(ArmedLoop::attach(stored, circuit, commands, limits))
}

/// Records that this user armed the loop, in the place of another one of the session. The caller holds the lock of the
/// state.
pub fn arm(
    world: &World,
    project: &Project,
    session: &str,
    run: &ArmedLoop,
    replaced: Option<&ArmedLoop>,
) -> Result<()> {
    let path = path(world, &project.real_root(), session)?;
    let record = Record {
        session_id: session.to_owned(),
        project: project.real_root().to_string_lossy().into_owned(),
        terms: TrustedFields::of(run),
        armed: Some(serde_json::value::to_raw_value::<StoredLoop>(run)?),
        before: replaced.map(TrustedFields::of),
    };
    let folder = path.parent().unwrap_or(&path);
    file::create_dir(folder)?;
    // A session that was killed here may never come back.
    file::sweep_temporary(folder);
    file::replace_locked(&path, serde_json::to_string(&record)?.as_bytes(), Privacy::Private)
}

/// Returns the session's record. One that cannot be read is an error, never absence: the loop may be armed.
fn record(world: &World, project: &Project, session: &str) -> Result<Option<Record>> {
    let root = project.real_root();
    let Ok(path) = path(world, &root, session) else { return Ok(None) };
    let record: Option<Record> = file::read_record(&path, MAX_RECORD_BYTES)?;
    Ok(record.filter(|record| record.session_id == session && record.project == root.to_string_lossy()))
}

/// Returns the path of the session's record, which is there while a run is armed.
pub fn record_path(world: &World, project: &Project, session: &str) -> Result<PathBuf> {
    path(world, &project.real_root(), session)
}

/// Returns whether a run is armed for this session here. It looks for the record without reading it.
pub fn exists(world: &World, project: &Project, session: &str) -> Result<bool> {
    path(world, &project.real_root(), session).map_or(Ok(false), |path| file::exists(&path))
}

/// Returns the session's loop from the state, if it is the one this user armed.
pub fn load_armed(
    world: &World,
    project: &Project,
    session: &str,
    document: &Document,
) -> Result<Option<ArmedLoop>> {
    document.loop_of(session).map_or(Ok(None), |stored| attach(world, project, session, stored))
}

/// The loops of a project with their session ids. A loop whose records cannot be read is not among them and costs only
/// itself, so callers that end loops leave it as it is.
#[derive(Debug, Default)]
pub struct Loaded {
    pub loops: Vec<(String, ArmedLoop)>,
    /// What could not be read.
    pub faults: Vec<String>,
}

impl Loaded {
    fn add(&mut self, session: String, attached: Result<Option<ArmedLoop>>) {
        match attached {
            Ok(run) => self.loops.extend(run.map(|run| (session, run))),
            Err(error) => self.faults.push(format!("{error:#}")),
        }
    }
}

/// Returns every loop in the state that this user armed.
pub fn load_all(world: &World, project: &Project, document: &Document) -> Loaded {
    let sessions = Sessions::of(world, project);
    let mut loaded = Loaded::default();
    for (id, stored) in document.loops_where(|id, _| sessions.may_contain(id)) {
        let attached = attach(world, project, &id, stored);
        loaded.add(id, attached);
    }
    loaded
}

/// The sessions that may have an armed loop in a project, by the names of their records: a state file may name any number
/// of others, for which no file is looked for. Nothing if the records cannot be listed.
struct Sessions(Option<HashSet<u64>>);

impl Sessions {
    fn of(world: &World, project: &Project) -> Sessions {
        let ending =
            format!("-{:016x}.json", stable_hash(project.real_root().as_os_str().as_encoded_bytes()));
        let session =
            |path: &PathBuf| u64::from_str_radix(path.file_name()?.to_str()?.strip_suffix(&ending)?, 16).ok();
        let folder = world.data_dir().map(|dir| dir.join("sessions"));
        let listed = folder.ok().and_then(|folder| list(&folder).ok());
        Sessions(listed.map(|paths| paths.iter().filter_map(session).collect()))
    }

    fn may_contain(&self, session: &str) -> bool {
        self.0.as_ref().is_none_or(|known| known.contains(&stable_hash(session.as_bytes())))
    }
}

/// Reads the state without its lock, and returns it with the loops in it that this user started. If one of them ends
/// meanwhile, both are read again, so that it is not missing.
pub fn read_started<E>(
    world: &World,
    project: &Project,
    read: impl Fn() -> Result<Document, E>,
) -> Result<(Document, Loaded), E> {
    let document = read()?;
    let (loaded, has_ended_since) = load_and_compare(world, project, &document);
    if !has_ended_since {
        return Ok((document, loaded));
    }
    let document = read()?;
    let loaded = load_started(world, project, &document);
    Ok((document, loaded))
}

/// Returns every loop in the state that this user started: armed ones, and ended ones that are in the user's
/// own history.
pub fn load_started(world: &World, project: &Project, document: &Document) -> Loaded {
    load_and_compare(world, project, document).0
}

/// Returns these loops, and whether one that is alive in the state has ended since: then it is not armed any more.
fn load_and_compare(world: &World, project: &Project, document: &Document) -> (Loaded, bool) {
    let sessions = Sessions::of(world, project);
    // The history is read only if there is a loop that is not armed.
    let past = LazyCell::new(|| {
        let runs = history::runs(world, project)?;
        let by_id = runs.into_iter().map(|run| (run.run_id.clone(), run));
        anyhow::Ok(by_id.collect::<HashMap<_, _>>())
    });
    let wanted = |id: &str, run_id: &str| {
        sessions.may_contain(id) || past.as_ref().map_or(true, |past| past.contains_key(run_id))
    };
    let (mut loaded, has_ended_since) = (Loaded::default(), Cell::new(false));
    for (id, stored) in document.loops_where(wanted) {
        let started = || {
            if let Some(run) = attach(world, project, &id, stored.clone())? {
                return Ok(Some(run));
            }
            if stored.is_alive() {
                has_ended_since.set(true);
                return Ok(None);
            }
            let past = past.as_ref().map_err(|error| anyhow!("{error:#}"))?;
            let Some(entry) = past.get(&stored.run_id) else { return Ok(None) };
            let mut run = continued(world, project, &id, stored.clone(), entry.commands.clone())?;
            run.given.set_by_user(entry.given.clone());
            // The user's own folder has those that still count.
            run.pending.answers.clear();
            Ok(Some(run))
        };
        let attached = started();
        loaded.add(id, attached);
    }
    loaded.faults.dedup();
    (loaded, has_ended_since.get())
}

/// Makes the armed loop of a record, if it is the one this user armed.
pub fn attach(
    world: &World,
    project: &Project,
    session: &str,
    stored: StoredLoop,
) -> Result<Option<ArmedLoop>> {
    let Some(record) = record(world, project, session)? else { return Ok(None) };
    let task = record.task_of(&stored.run_id);
    let Some(terms) = record.terms_of(&stored.run_id) else { return Ok(None) };
    let mut run = terms.attach(world, project, session, stored)?;
    run.task = task.unwrap_or(run.task.clone());
    Ok(Some(run))
}

/// Records that the user changed a limit of a loop that runs; without a value, that the project's file gives none.
pub fn set_limit(
    world: &World,
    project: &Project,
    session: &str,
    name: &str,
    value: Option<&Value>,
) -> Result<()> {
    let Some(mut record) = record(world, project, session)? else { return Ok(()) };
    let Some(limits) = &mut record.terms.limits else { return Ok(()) };
    match value {
        Some(value) => drop(limits.insert(name.to_owned(), value.clone())),
        None => drop(limits.shift_remove(name)),
    }
    file::replace_private(
        &path(world, &project.real_root(), session)?,
        serde_json::to_string(&record)?.as_bytes(),
    )
}

/// Returns the limits of a run that is armed here, as they are recorded now.
pub fn limits(
    world: &World,
    project: &Project,
    session: &str,
    run_id: &str,
) -> Result<Option<Map<String, Value>>> {
    let terms = record(world, project, session)?.and_then(|record| record.terms_of(run_id));
    Ok(terms.and_then(|terms| terms.limits))
}

/// Returns the loop that is armed here as it was at its start, for when the state file has lost it.
pub fn load_from_record(world: &World, project: &Project, session: &str) -> Result<Option<ArmedLoop>> {
    let Some(record) = record(world, project, session)? else { return Ok(None) };
    let Some(stored) = record.armed.and_then(|armed| serde_json::from_str::<StoredLoop>(armed.get()).ok())
    else {
        return Ok(None);
    };
    record.terms.attach(world, project, session, stored).map(Some)
}

/// Returns the record as it is now, to be restored if a start fails halfway.
pub fn backup(world: &World, project: &Project, session: &str) -> Result<Backup> {
    Backup::of(path(world, &project.real_root(), session)?, MAX_RECORD_BYTES)
}

/// Returns whether this user armed this very run, without reading its breaker.
pub fn is_armed(world: &World, project: &Project, session: &str, run_id: &str) -> Result<bool> {
    Ok(record(world, project, session)?.is_some_and(|record| record.terms_of(run_id).is_some()))
}

pub fn disarm(world: &World, project: &Project, session: &str) {
    let _ = path(world, &project.real_root(), session).map(std::fs::remove_file);
}

/// Returns every project in which this user has an armed loop.
pub fn projects(world: &World) -> Vec<Project> {
    let mut roots: Vec<PathBuf> = records(world).into_iter().map(|(_, root)| root).collect();
    roots.sort();
    roots.dedup();
    roots.into_iter().map(|root| Project { root }).collect()
}

/// Returns the path of every record that can be read, with the root of its project.
pub fn records(world: &World) -> Vec<(PathBuf, PathBuf)> {
    let read = |path: PathBuf| {
        let record: Record = file::read_json(&path, MAX_RECORD_BYTES)?;
        Some((path, PathBuf::from(record.project)))
    };
    paths(world).into_iter().filter_map(read).collect()
}

/// Says of each record that cannot be read that it is there: which loop it is of is unknown.
pub fn unreadable(world: &World) -> Vec<String> {
    let read = |path: &PathBuf| file::read_record::<Record>(path, MAX_RECORD_BYTES).err();
    paths(world).iter().filter_map(read).map(|error| format!("{error:#}")).collect()
}

/// Returns the records' paths: a killed writer leaves files of other names.
fn paths(world: &World) -> Vec<PathBuf> {
    let folder = world.data_dir().map(|dir| dir.join("sessions")).unwrap_or_default();
    let is_record = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "json");
    entries(&folder).into_iter().filter(is_record).collect()
}

fn path(world: &World, root: &Path, session: &str) -> Result<PathBuf> {
    let (session, root) = (stable_hash(session.as_bytes()), stable_hash(root.as_os_str().as_encoded_bytes()));
    let name = format!("{session:016x}-{root:016x}.json");
    Ok(world.data_dir()?.join("sessions").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::outcome::Outcome;
    use crate::core::record::LoopState;
    use crate::core::time::Stamp;

    #[test]
    fn a_loop_that_ends_while_the_state_is_read_is_not_missing() {
        let dir = tempfile::tempdir().unwrap();
        let (world, project) = (World::at(dir.path(), dir.path()), Project { root: dir.path().to_owned() });
        let stored = StoredLoop { run_id: "r".into(), state: LoopState::Running, ..StoredLoop::default() };
        let mut run = begin(stored, Map::new());
        arm(&world, &project, "s", &run, None).unwrap();
        let (mut before, mut after) = (Document::default(), Document::default());
        before.set_loop("s", &run).unwrap();
        run.end(Outcome::Stopped, "by the user", Stamp(1));
        after.set_loop("s", &run).unwrap();

        // What the hook does between the two reads.
        let end = || {
            history::record(&world, &project, "s", &run).unwrap();
            disarm(&world, &project, "s");
        };
        let reads = Cell::new(0);
        let read = || {
            reads.set(reads.get() + 1);
            if reads.get() > 1 {
                return anyhow::Ok(after.clone());
            }
            end();
            Ok(before.clone())
        };
        let (document, loaded) = read_started(&world, &project, read).unwrap();
        let outcomes: Vec<_> = loaded.loops.iter().map(|(id, run)| (id.as_str(), run.outcome)).collect();
        assert_eq!(outcomes, [("s", Some(Outcome::Stopped))]);
        assert_eq!(document.loop_of("s").unwrap().outcome, Some(Outcome::Stopped));
    }

    #[test]
    fn a_running_loop_that_this_user_did_not_arm_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let (world, project) = (World::at(dir.path(), dir.path()), Project { root: dir.path().to_owned() });
        let stored = StoredLoop { run_id: "r".into(), state: LoopState::Running, ..StoredLoop::default() };
        let mut document = Document::default();
        document.set_loop("s", &begin(stored, Map::new())).unwrap();
        let reads = Cell::new(0);
        let read = || {
            reads.set(reads.get() + 1);
            anyhow::Ok(document.clone())
        };
        let (_, loaded) = read_started(&world, &project, read).unwrap();
        assert_eq!((loaded.loops.len(), reads.get()), (0, 1));
    }
}

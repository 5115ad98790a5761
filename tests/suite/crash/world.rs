//! What a world says after a fault, read from its files alone.

use crate::env::Env;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A loop without what differs between two runs of the same command.
type Loop = (String, String, u64, String);

/// The state and the history of a project.
#[derive(Debug, Default)]
pub struct View {
    /// Task, state, iterations and outcome by session.
    pub loops: BTreeMap<String, Loop>,
    pub guidance: BTreeSet<(String, String)>,
    /// The ids of the runs that have not ended.
    pub alive: BTreeSet<String>,
    /// The ids of all runs in the state.
    pub present: BTreeSet<String>,
    pub outside: Outside,
}

/// What a command wrote outside the state: the text of each file of the user's in the project.
pub type Outside = BTreeMap<PathBuf, String>;

impl View {
    pub fn of(env: &Env) -> View {
        View::try_of(env).unwrap_or_else(|why| panic!("{why}"))
    }

    pub fn try_of(env: &Env) -> Result<View, String> {
        let mut view = View::default();
        for folder in ["ralph", "ralph-archive"] {
            for path in files(&env.path(folder)) {
                let text = fs::read_to_string(&path).unwrap_or_default();
                view.outside.insert(path.strip_prefix(&env.project).unwrap().to_owned(), text);
            }
        }
        let aside =
            files(&env.path(".claude")).into_iter().find(|path| path.to_string_lossy().contains("corrupt"));
        if let Some(aside) = aside {
            return Err(format!("a state was torn: {}", aside.display()));
        }
        let Ok(text) = fs::read(env.path(".claude/ralph-state.json")) else { return Ok(view) };
        let state: Value =
            serde_json::from_slice(&text).map_err(|error| format!("the state is torn: {error}"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for (session, run) in state["loops"].as_object().into_iter().flatten() {
            view.present.insert(text(&run["run_id"]));
            if run["state"] != "stopped" {
                view.alive.insert(text(&run["run_id"]));
            }
            let iteration = run["iteration"].as_u64().unwrap_or_default();
            let record = (text(&run["task"]), text(&run["state"]), iteration, text(&run["outcome"]));
            view.loops.insert(session.clone(), record);
        }
        for (list, entries) in state["guidance"].as_object().into_iter().flatten() {
            for entry in entries.as_array().into_iter().flatten() {
                view.guidance.insert((list.clone(), text(&entry["text"])));
            }
        }
        Ok(view)
    }

    /// Returns the ids of the runs in the history.
    pub fn past(env: &Env) -> Vec<String> {
        let lines =
            files(&env.data().join("history")).into_iter().filter_map(|path| fs::read_to_string(path).ok());
        let lines: Vec<String> =
            lines.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        let run =
            |line: &String| serde_json::from_str::<Value>(line).ok()?["run_id"].as_str().map(str::to_owned);
        lines.iter().filter_map(run).collect()
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let list = if is_folder { &mut folders } else { &mut found };
            list.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Returns what a killed writer left.
pub fn litter(env: &Env) -> Vec<PathBuf> {
    let is_litter = |path: &PathBuf| {
        let path = path.strip_prefix(&env.base).unwrap().to_string_lossy().into_owned();
        [".tmp-", ".partial-", ".ralph-new"].iter().any(|part| path.contains(part))
    };
    files(&env.base).into_iter().filter(is_litter).collect()
}

/// Makes what a killed writer left older than any write takes.
pub fn age_litter(env: &Env) {
    let past = SystemTime::now() - Duration::from_secs(120);
    for path in litter(env) {
        if let Ok(file) = fs::OpenOptions::new().write(true).open(path) {
            file.set_modified(past).unwrap();
        }
    }
}

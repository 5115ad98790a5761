//! `start --import`: imports a loop of the official ralph-loop plugin. The user's flags win over the plugin's file.

use crate::cli::{Failure, Project, World};
use crate::core::message;
use crate::core::record::ArmedLoop;
use crate::core::request::StartRequest;
use crate::core::request::import::{OfficialLoop, official as parse};
use crate::core::settings::Settings;
use crate::core::text::clean;
use crate::store::project::official;
use serde_json::Value;
use std::path::{Path, PathBuf};

const LIMIT_KEY: &str = "loop_limits.max_iterations";
const PROMISE: &str = "completion.promise";

/// A loop of the plugin that is imported.
#[derive(Debug)]
pub struct Import {
    pub path: PathBuf,
    found: OfficialLoop,
    /// Neither the file nor the user gives a limit.
    unlimited: bool,
}

/// Reads the plugin's file and adds its values to the request, where the user gave none.
pub fn read(world: &World, project: &Project, request: &mut StartRequest) -> Result<Import, Failure> {
    let Some(path) = official::path(project, &world.working_dir) else {
        let (name, root) = (official::NAME, project.root.display());
        let why = format!("no loop of the official plugin: .claude/{name} is not in {root}");
        return Err(Failure::refused(why).hint("start a new loop with /ralph:start TASK"));
    };
    let text = official::read(project, &path).map_err(Failure::refused)?;
    let refused = |what: String| {
        Failure::refused(format!("{}: {what}", path.display()))
            .hint("fix the file, or start a new loop with /ralph:start TASK; nothing was changed")
    };
    let found = parse(&text).map_err(|fault| refused(fault.to_string()))?;
    if request.task.is_empty() {
        request.task.clone_from(&found.prompt);
    }
    if request.task.is_empty() {
        return Err(refused("there is no prompt after the front matter".into()));
    }
    let given = request.clone();
    let is_given = |key: &str| given.flags.contains_key(key) || given.preset.contains_key(key);
    let limit = Some(found.max_iterations).filter(|limit| *limit > 0).map(|limit| limit.to_string());
    for (key, flag, field, value) in [
        (PROMISE, "promise", "completion_promise", &found.promise),
        (LIMIT_KEY, "max-iterations", "max_iterations", &limit),
    ] {
        if let Some(value) = value.as_deref().filter(|_| !is_given(key)) {
            request.set(flag, Some(value)).map_err(|wrong| {
                // The file has a field, not a flag.
                let wrong = wrong.strip_prefix(&format!("--{flag}: ")).unwrap_or(&wrong);
                refused(format!("{field}: {wrong}"))
            })?;
        }
    }
    let unlimited = found.max_iterations == 0 && !is_given(LIMIT_KEY);
    *request = request.clone().checked().map_err(|wrong| refused(wrong.message))?;
    Ok(Import { path, found, unlimited })
}

/// Returns the session of the plugin's loop, for a start from a terminal that names none.
pub fn session(world: &World, project: &Project) -> Option<String> {
    let path = official::path(project, &world.working_dir)?;
    parse(&official::read(project, &path).ok()?).ok()?.session_id
}

/// Returns a warning if a loop of the plugin would answer the same Stops.
pub fn official_loop_warning(world: &World, project: &Project, own: &str) -> Option<String> {
    let path = official::path(project, &world.working_dir)?;
    if session(world, project).is_some_and(|session| session != own) {
        return None;
    }
    Some(format!(
        "{} is a loop of the official plugin, and both loops would continue the session: cancel it with /cancel-ralph, \
         or import it with --import",
        path.display()
    ))
}

impl Import {
    /// Sets the iterations that the plugin counted. A loop without a limit gets ours, on top of them.
    pub fn count(&self, run: &mut ArmedLoop, settings: &Settings) {
        run.iteration = self.found.done;
        if self.unlimited && settings.max_iterations > 0 && self.found.done > 0 {
            let limit = self.found.done.saturating_add(settings.max_iterations);
            run.given.flags.insert(LIMIT_KEY.into(), Value::from(limit));
        }
    }

    /// Returns what was imported, a line each.
    pub fn messages(&self, session: &str, settings: &Settings, aside: &Path) -> Vec<String> {
        let found = &self.found;
        let promise = found
            .promise
            .as_ref()
            .map_or("no promise".into(), |promise| format!("promise \"{}\"", clean::excerpt(promise, 80)));
        let limit = match found.max_iterations {
            0 => "no limit".into(),
            limit => format!("limit {limit}"),
        };
        let started = found.started_at.map_or(String::new(), |at| format!(", started {}", at.minute()));
        let task = match clean::line(&found.prompt).chars().count() {
            0 => "no prompt".into(),
            count => format!("a prompt of {count} characters"),
        };
        let mut lines = vec![format!(
            "imported from the official plugin: {task}, {promise}, {} done, {limit}{started}",
            message::iterations(found.done)
        )];
        if found.promise.is_none() {
            let promise = clean::line(&settings.promise);
            lines.push(format!("it had no promise; it now ends when the agent promises \"{promise}\""));
        }
        if self.unlimited && settings.max_iterations > 0 {
            let limit = settings.max_iterations;
            lines.push(format!(
                "it had no iteration limit; it now ends at {limit} (--max-iterations 0: no limit)"
            ));
        }
        if !found.active {
            lines.push("it was marked active: false, which the plugin ignores".into());
        }
        if let Some(id) = found.session_id.as_ref().filter(|id| *id != session) {
            lines.push(format!("it no longer runs in session {}", clean::excerpt(id, 40)));
        }
        let mut ignored: String =
            found.unknown.iter().map(|name| format!("{}, ", clean::excerpt(name, 40))).collect();
        if !ignored.is_empty() {
            ignored.push_str("and ");
        }
        lines.push(format!("not imported: {ignored}the runtime so far, which the plugin does not record"));
        lines.push(format!("the old loop is disabled; its file is now {}", aside.display()));
        lines
    }
}

//! `start --import`: takes over a loop of the official ralph-loop plugin. What the user says now wins over what the file
//! says; everything that was understood, and what was not, is told.

use super::failure::Failure;
use crate::core::clean;
use crate::core::import::{OfficialLoop, official as parse};
use crate::core::record::Loop;
use crate::core::request::StartRequest;
use crate::core::settings::Settings;
use crate::store::official;
use crate::store::project::Project;
use crate::store::world::World;
use serde_json::Value;
use std::path::PathBuf;

const LIMIT: &str = "loop_limits.max_iterations";
const PROMISE: &str = "completion.promise";

/// A loop of the plugin's that is about to be ours.
#[derive(Debug)]
pub struct Import {
    path: PathBuf,
    found: OfficialLoop,
    /// The file had no limit, and nobody gave one now.
    unlimited: bool,
}

/// Reads the plugin's file and puts what it says where the user said nothing.
pub fn read(
    world: &World,
    project: &Project,
    request: &StartRequest,
) -> Result<(StartRequest, Import), Failure> {
    let Some(path) = official::path(project, &world.working_dir) else {
        return Err(Failure::refused(format!(
            "there is no loop of the official plugin here: no .claude/{} in {}",
            official::NAME,
            project.root.display()
        ))
        .hint("/ralph:start TASK begins a loop of ours."));
    };
    let text = official::read(project, &path).map_err(|error| Failure::refused(format!("{error:#}")))?;
    let refused = |what: String| {
        Failure::refused(format!("{}: {what}", path.display()))
            .hint("Mend the line, or start anew with /ralph:start TASK; nothing was changed.")
    };
    let found = parse(&text).map_err(|fault| refused(fault.to_string()))?;
    let mut merged = request.clone();
    if merged.task.is_empty() {
        merged.task.clone_from(&found.prompt);
    }
    if merged.task.is_empty() {
        return Err(refused("there is no prompt behind the front matter".into()));
    }
    let said = |key: &str| request.flags.contains_key(key) || request.preset.contains_key(key);
    if let Some(promise) = found.promise.as_deref().filter(|_| !said(PROMISE)) {
        let line = found.promise_line;
        merged.set("promise", Some(promise)).map_err(|wrong| refused(format!("line {line}: {wrong}")))?;
    }
    let unlimited = found.max_iterations == 0 && !said(LIMIT);
    if found.max_iterations > 0 && !said(LIMIT) {
        let (line, most) = (found.limit_line, found.max_iterations.to_string());
        merged
            .set("max-iterations", Some(&most))
            .map_err(|wrong| refused(format!("line {line}: {wrong}")))?;
    }
    let merged = merged.checked().map_err(refused)?;
    Ok((merged, Import { path, found, unlimited }))
}

/// The session the plugin's loop belongs to, for a start from a terminal that names none.
pub fn session(world: &World, project: &Project) -> Option<String> {
    let path = official::path(project, &world.working_dir)?;
    parse(&official::read(project, &path).ok()?).ok()?.session_id
}

/// A note for a start beside a loop of the plugin's that would answer the same Stops.
pub fn rival(world: &World, project: &Project, own: &str) -> Option<String> {
    let path = official::path(project, &world.working_dir)?;
    if session(world, project).is_some_and(|session| session != own) {
        return None;
    }
    Some(format!(
        "{} is a loop of the official plugin, and both would answer: /cancel-ralph ends it; --import takes over such a \
         loop",
        path.display()
    ))
}

impl Import {
    /// The turns that were made there count here. A loop that had no limit gets ours, on top of them.
    pub fn count(&self, lap: &mut Loop, settings: &Settings) {
        lap.iteration = self.found.done;
        if self.unlimited && settings.max_iterations > 0 && self.found.done > 0 {
            let most = self.found.done.saturating_add(settings.max_iterations);
            lap.given.flags.insert(LIMIT.into(), Value::from(most));
        }
    }

    /// Switches the old loop off.
    pub fn switch_off(&self, world: &World) -> anyhow::Result<PathBuf> {
        official::move_aside(&self.path, world.now)
    }

    pub fn switch_on_again(&self, aside: &std::path::Path) {
        official::put_back(&self.path, aside);
    }

    /// What was understood, a line each.
    pub fn told(&self, session: &str, settings: &Settings, aside: &std::path::Path) -> Vec<String> {
        let found = &self.found;
        let promise = found
            .promise
            .as_deref()
            .map_or("no promise".into(), |promise| format!("promise \"{}\"", clean::excerpt(promise, 80)));
        let limit = match found.max_iterations {
            0 => "no limit".into(),
            most => format!("limit {most}"),
        };
        let began = found.started_at.map_or(String::new(), |at| format!(", begun {}", at.minute()));
        let task = match clean::line(&found.prompt).chars().count() {
            0 => "no prompt".into(),
            count => format!("a prompt of {count} characters"),
        };
        let mut told = vec![format!(
            "imported from the official plugin: {task}, {promise}, {} iterations done, {limit}{began}",
            found.done
        )];
        if found.promise.is_none() {
            told.push(format!(
                "it had no promise to end by; here it ends when the agent promises \"{}\"",
                clean::line(&settings.promise)
            ));
        }
        if self.unlimited && settings.max_iterations > 0 {
            told.push(format!(
                "it had no iteration limit; here it ends at {} (--max-iterations 0 is none)",
                settings.max_iterations
            ));
        }
        if !found.active {
            told.push("it was marked active: false, which the plugin itself does not look at".into());
        }
        match &found.session_id {
            Some(id) if id != session => {
                told.push(format!("it was in session {} and is off there", clean::excerpt(id, 40)))
            }
            _ => {}
        }
        let mut without = vec!["its runtime so far, which it did not count: time begins now".to_owned()];
        without.extend(found.unknown.iter().map(|name| clean::excerpt(name, 40)));
        told.push(format!("without an equivalent here: {}", without.join(", ")));
        told.push(format!("the old loop is off: its file is now {}", aside.display()));
        told
    }
}

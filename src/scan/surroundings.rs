//! What is not in the files: an unfinished merge, and other hooks that could fight the loop.

use crate::core::finding::{Finding, Severity};
use crate::store::project::{Project, fingerprint};
use crate::store::world::World;
use crate::store::{file, git};
use serde_json::Value;
use std::path::{Path, PathBuf};

const LARGEST: u64 = 4 << 20;

pub fn findings(world: &World, project: &Project) -> Vec<Finding> {
    unfinished(project).into_iter().chain(stop_hooks(world, project)).collect()
}

fn finding(rule: &str, severity: Severity, file: String, description: &str, recommendation: &str) -> Finding {
    let print = fingerprint(format!("{rule}\0{file}\0{description}").as_bytes());
    Finding {
        id: format!("{rule}-{:08x}", print as u32),
        severity,
        category: rule.to_owned(),
        description: description.to_owned(),
        file,
        line: None,
        recommendation: recommendation.to_owned(),
    }
}

fn unfinished(project: &Project) -> Option<Finding> {
    let git_dir = git::dir(&project.root)?;
    let signs = [
        ("MERGE_HEAD", "a merge is unfinished"),
        ("rebase-merge", "a rebase is unfinished"),
        ("rebase-apply", "a rebase is unfinished"),
        ("CHERRY_PICK_HEAD", "a cherry-pick is unfinished"),
        ("REVERT_HEAD", "a revert is unfinished"),
    ];
    let (_, description) = signs.into_iter().find(|(name, _)| git_dir.join(name).exists())?;
    let advice = "Finish or abort it before anything else; do not commit over it";
    Some(finding("unfinished-merge", Severity::Critical, String::new(), description, advice))
}

pub fn stop_hooks(world: &World, project: &Project) -> Vec<Finding> {
    let project_files = ["settings.json", "settings.local.json"].map(|name| project.claude_dir().join(name));
    let users: Option<PathBuf> = world.claude_config.as_ref().map(|dir| dir.join("settings.json"));
    let mut found = Vec::new();
    for path in project_files.into_iter().chain(users) {
        if has_stop_hook(&path) {
            let shown = path.strip_prefix(&project.root).unwrap_or(&path).to_string_lossy().into_owned();
            let advice = "It runs beside Ralph's and may hold or end the loop";
            found.push(finding("other-stop-hook", Severity::Low, shown, "another Stop hook", advice));
        }
    }
    found
}

fn has_stop_hook(path: &Path) -> bool {
    let Ok(Some(bytes)) = file::read_bounded(path, LARGEST) else { return false };
    let settings: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    settings["hooks"]["Stop"].as_array().is_some_and(|hooks| !hooks.is_empty())
}

//! Constraints that are not in the project's files: an unfinished merge, and other hooks that could fight the loop.

use super::check::finding;
use crate::core::guidance::finding::{Finding, Severity};
use crate::store::project::git;
use crate::store::{Project, World, file};
use serde_json::Value;

const MAX_SETTINGS_BYTES: u64 = 4 << 20;

pub fn findings(world: &World, project: &Project) -> Vec<Finding> {
    unfinished_merge(project).into_iter().chain(stop_hooks(world, project)).collect()
}

fn unfinished_merge(project: &Project) -> Option<Finding> {
    let git_dir = git::dir(&project.root)?;
    let signs = [
        ("MERGE_HEAD", "a merge is unfinished"),
        ("rebase-merge", "a rebase is unfinished"),
        ("rebase-apply", "a rebase is unfinished"),
        ("CHERRY_PICK_HEAD", "a cherry-pick is unfinished"),
        ("REVERT_HEAD", "a revert is unfinished"),
    ];
    let (_, what) = signs.into_iter().find(|(name, _)| git_dir.join(name).exists())?;
    let advice = "Finish or abort it before anything else; do not commit over it";
    Some(finding("unfinished-merge", Severity::Critical, "", None, what, what.to_owned(), advice))
}

/// Returns the Stop hooks in the client's settings, which are not Ralph's.
pub fn stop_hooks(world: &World, project: &Project) -> Vec<Finding> {
    let of_project = ["settings.json", "settings.local.json"].map(|name| {
        let path = project.claude_dir().join(name);
        (project.read(&path, MAX_SETTINGS_BYTES), path)
    });
    let of_user = world.claude_config.as_ref().map(|dir| dir.join("settings.json"));
    let of_user = of_user.map(|path| (file::read_bounded(&path, MAX_SETTINGS_BYTES), path));
    let files = of_project.into_iter().chain(of_user);
    let found =
        files.filter(|(read, _)| matches!(read, Ok(Some(text)) if has_stop_hook(text))).map(|(_, path)| {
            let shown = path.strip_prefix(&project.root).unwrap_or(&path).to_string_lossy();
            let (what, advice) =
                ("another Stop hook", "It also runs at the end of each turn and may block or end the loop");
            finding("other-stop-hook", Severity::Low, &shown, None, what, what.to_owned(), advice)
        });
    found.collect()
}

fn has_stop_hook(text: &[u8]) -> bool {
    let settings: Value = serde_json::from_slice(text).unwrap_or_default();
    settings["hooks"]["Stop"].as_array().is_some_and(|hooks| !hooks.is_empty())
}

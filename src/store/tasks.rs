//! `ralph/tasks.json`: how many of the tasks pass.

use super::file;
use super::project::Project;
use crate::core::clean;
use crate::core::turn::Tasks;
use serde_json::Value;

const LARGEST: u64 = 8 << 20;
const MOST_NAMED: usize = 5;

/// The tasks, where the file is there. One that cannot be used says so: nobody can prove what it asks for.
pub fn read(project: &Project) -> Option<Tasks> {
    let unusable = |why: String| Some(Tasks { unusable: Some(why), ..Tasks::default() });
    let path = match project.resolve(&project.work_dir().join("tasks.json")) {
        Ok(path) => path,
        Err(error) => return unusable(format!("cannot be used: {error:#}")),
    };
    let bytes = match file::read_bounded(&path, LARGEST) {
        Ok(bytes) => bytes?,
        Err(error) => return unusable(format!("cannot be read: {error:#}")),
    };
    let document: Value = match serde_json::from_slice(&bytes) {
        Ok(document) => document,
        Err(error) => return unusable(format!("is not valid JSON: {error}")),
    };
    let Some(stories) = document["userStories"].as_array() else {
        return unusable("has no list \"userStories\"".into());
    };
    let open: Vec<String> = stories
        .iter()
        .enumerate()
        .filter(|(_, story)| story["passes"] != Value::Bool(true))
        .map(|(at, story)| {
            story["id"].as_str().map_or(format!("story {}", at + 1), |id| clean::excerpt(id, 40))
        })
        .collect();
    let (total, passing) = (stories.len() as u64, (stories.len() - open.len()) as u64);
    Some(Tasks { total, passing, open: open.into_iter().take(MOST_NAMED).collect(), unusable: None })
}

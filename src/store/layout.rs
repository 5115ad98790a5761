//! The folder `ralph/` as a new run finds it: its files from templates, and the lines that keep the rest out of git.

use super::file::{self, Privacy};
use super::project::Project;
use crate::core::clean;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// A file of the layout: its name below `ralph/`, and its template.
struct Template {
    name: &'static str,
    text: &'static str,
}

pub const PROMPT: &str = "prompt.md";
const TEMPLATES: [Template; 4] = [
    Template { name: PROMPT, text: include_str!("../../templates/prompt.md") },
    Template { name: "prd.md", text: include_str!("../../templates/prd.md") },
    Template { name: "tasks.json", text: include_str!("../../templates/tasks.json") },
    Template { name: "progress.txt", text: include_str!("../../templates/progress.txt") },
];
const IGNORED: [&str; 5] =
    ["ralph/logs/", "ralph/run.lock", "ralph/blocked.txt", "ralph/decide.txt", "ralph/answered/"];
const LARGEST: u64 = 16 << 20;

/// What became of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    Created,
    /// It was there and stays as it is.
    Kept,
    /// It was there, and the user said that it may go.
    Replaced,
    /// It was there and is what it would be.
    Unchanged,
}

/// Lays the folder out and says what became of each file. What is there stays, unless it may be replaced.
pub fn lay_out(project: &Project, name: &str, replace: bool) -> Result<Vec<(String, Made)>> {
    // Every place is looked at before anything is written.
    let places: Result<Vec<(&Template, PathBuf)>> =
        TEMPLATES.iter().map(|one| Ok((one, project.resolve(&project.work_dir().join(one.name))?))).collect();
    let places = places?;
    let logs = project.resolve(&project.work_dir().join("logs"))?;
    let ignore = project.resolve(&project.root.join(".gitignore"))?;
    let dir = project.work_dir();
    std::fs::create_dir_all(&dir)
        .with_context(|| format!("could not create the folder {}", dir.display()))?;
    let mut told = Vec::new();
    for (template, path) in places {
        let text = filled(template, name);
        let before = file::read_bounded(&path, LARGEST);
        let made = match before {
            Ok(None) => Made::Created,
            Ok(Some(bytes)) if bytes == text.as_bytes() => Made::Unchanged,
            Ok(Some(_)) if replace => Made::Replaced,
            Err(error) if replace => return Err(error),
            _ => Made::Kept,
        };
        if matches!(made, Made::Created | Made::Replaced) {
            file::replace(&path, text.as_bytes(), Privacy::Shared)?;
        }
        told.push((format!("ralph/{}", template.name), made));
    }
    let made = if logs.is_dir() { Made::Unchanged } else { Made::Created };
    file::create_dir(&logs)?;
    told.push(("ralph/logs/".into(), made));
    told.push((".gitignore".into(), keep_out_of_git(&ignore)?));
    Ok(told)
}

/// Adds the lines that are missing, and touches no other.
fn keep_out_of_git(path: &std::path::Path) -> Result<Made> {
    let found = file::read_bounded(path, LARGEST)?;
    let made = if found.is_some() { Made::Replaced } else { Made::Created };
    let mut bytes = found.unwrap_or_default();
    let present = String::from_utf8_lossy(&bytes).into_owned();
    let bare = |line: &str| line.trim().trim_start_matches('/').trim_end_matches('/').to_owned();
    let missing: Vec<_> =
        IGNORED.iter().filter(|line| !present.lines().any(|have| bare(have) == bare(line))).collect();
    if missing.is_empty() {
        return Ok(Made::Unchanged);
    }
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    for line in missing {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    file::replace(path, &bytes, Privacy::Shared)?;
    Ok(made)
}

/// The file as `ralph init` writes it, where it comes from a template.
pub fn fresh(file: &str, name: &str) -> Option<String> {
    TEMPLATES.iter().find(|one| one.name == file).map(|one| filled(one, name))
}

fn filled(template: &Template, name: &str) -> String {
    let name = clean::excerpt(name, 80);
    let branch = format!("ralph/{}", slug(&name).unwrap_or("run".into()));
    let fit = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        // The template has the quotation marks.
        let json = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        json.filter(|_| template.name.ends_with(".json")).unwrap_or(text).to_owned()
    };
    template.text.replace("{{branch}}", &fit(&branch)).replace("{{name}}", &fit(&name))
}

/// A name made of it for files and branches: nothing that means something to a path, a shell or git.
pub fn slug(text: &str) -> Option<String> {
    let mut out = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if out.len() >= 60 {
            break;
        }
        if c.is_alphanumeric() || c == '_' {
            out.push(c);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    let out = out.trim_matches('-');
    (!out.is_empty()).then(|| out.to_owned())
}

/// What a project is called where nobody says so: its folder.
pub fn default_name(project: &Project) -> String {
    let name = project.real_root().file_name().map(|name| clean::line(&name.to_string_lossy()));
    name.filter(|name| !name.is_empty()).unwrap_or("project".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tasks::{Mode, mode, pick, validate};

    #[test]
    fn names_become_harmless_in_paths() {
        let cases = [
            ("My Project", Some("my-project")),
            ("../../etc/passwd", Some("etc-passwd")),
            ("-rf $(x) `y`", Some("rf-x-y")),
            ("Größe 2.0_b", Some("größe-2-0_b")),
            ("..", None),
            (" \u{1b}[31m", Some("31m")),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(slug(text).as_deref(), expected, "{text:?}");
        }
        assert!(slug(&"ü".repeat(500)).unwrap().len() <= 61);
    }

    #[test]
    fn a_fresh_list_is_valid_whatever_the_project_is_called() {
        for name in ["plain", "end\"", "quo\"te \\ {{branch}} {{name}}", "\u{7f}línea\n2", ""] {
            let text = fresh("tasks.json", name).unwrap();
            let list = validate(&serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(list.project, clean::line(name));
            assert_eq!(mode(&list, false), Mode::Implement);
            assert_eq!(pick(&list, Mode::Implement).map(|story| story.id.as_str()), Some("US-1"));
            assert_eq!(list.text(&text), text, "our own rewrite keeps its layout");
        }
    }

    #[test]
    fn templates_say_what_they_are_for() {
        let prompt = fresh(PROMPT, "x").unwrap();
        let needed = [
            "### implement",
            "### review\n",
            "### review-fix",
            "<promise>COMPLETE</promise>",
            "<promise>BLOCKED:",
            "<promise>DECIDE:",
            "---RALPH_STATUS---",
            "---END_RALPH_STATUS---",
            "reviewCount",
            "dependsOn",
            "verifyCommands",
        ];
        for part in needed {
            assert!(prompt.contains(part), "{part}");
        }
        for template in &TEMPLATES {
            assert!(!filled(template, "x").contains("{{"), "{}", template.name);
        }
        assert!(prompt.len() < 5000, "it is paid for in every iteration: {}", prompt.len());
    }
}

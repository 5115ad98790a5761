//! The folder `ralph/` of a new project: files from templates, and the lines of `.gitignore` for the others.

use crate::core::decide::handover;
use crate::core::text::clean;
use crate::store::file::{self, Privacy};
use crate::store::project::Project;
use anyhow::Result;

pub const PROMPT: &str = "prompt.md";
/// The files below `ralph/` and their templates.
const TEMPLATES: [(&str, &str); 4] = [
    (PROMPT, include_str!("../../../templates/prompt.md")),
    ("prd.md", include_str!("../../../templates/prd.md")),
    ("tasks.json", include_str!("../../../templates/tasks.json")),
    ("progress.txt", include_str!("../../../templates/progress.txt")),
];
/// What Ralph writes below `ralph/` or has its agent write there, and git ignores.
pub const IGNORED: [&str; 6] = [
    "ralph/logs/",
    "ralph/run.lock",
    "ralph/blocked.txt",
    "ralph/decide.txt",
    "ralph/answered/",
    handover::FILE,
];
const MAX_BYTES: u64 = 16 << 20;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateResult {
    Created,
    /// It existed and differs from the template.
    Kept,
    Replaced,
    /// It existed and equals the template.
    Unchanged,
}

/// Creates the folder and returns what happened to each file. Existing files are kept unless `replace` is set.
pub fn lay_out(project: &Project, name: &str, replace: bool) -> Result<Vec<(String, TemplateResult)>> {
    // All paths are checked before anything is written.
    let place = |(file, _): &(&str, &str)| project.file(&project.work_dir().join(file));
    let places = TEMPLATES.iter().map(place).collect::<Result<Vec<_>>>()?;
    let logs = project.folder(&project.work_dir().join("logs"))?;
    let ignore = project.file(&project.root.join(".gitignore"))?;
    file::create_shared_dir(&project.folder(&project.work_dir())?)?;
    let mut created = Vec::new();
    for ((file, template), path) in TEMPLATES.into_iter().zip(places) {
        let text = filled(file, template, name);
        let made = match file::read_unlinked(&path, MAX_BYTES) {
            Ok(None) => TemplateResult::Created,
            Ok(Some(bytes)) if bytes == text.as_bytes() => TemplateResult::Unchanged,
            Ok(Some(_)) if replace => TemplateResult::Replaced,
            Err(error) if replace => return Err(error),
            _ => TemplateResult::Kept,
        };
        if matches!(made, TemplateResult::Created | TemplateResult::Replaced) {
            file::replace(&path, text.as_bytes(), Privacy::Shared)?;
        }
        created.push((format!("ralph/{file}"), made));
    }
    let made = if logs.is_dir() { TemplateResult::Unchanged } else { TemplateResult::Created };
    file::create_dir(&logs)?;
    created.push(("ralph/logs/".into(), made));
    created.push((".gitignore".into(), add_ignored(&ignore)?));
    Ok(created)
}

/// Adds the missing lines to `.gitignore`.
fn add_ignored(path: &std::path::Path) -> Result<TemplateResult> {
    let found = file::read_unlinked(path, MAX_BYTES)?;
    let made = if found.is_some() { TemplateResult::Replaced } else { TemplateResult::Created };
    let mut bytes = found.unwrap_or_default();
    let present = String::from_utf8_lossy(&bytes).into_owned();
    let bare = |line: &str| line.trim().trim_start_matches('/').trim_end_matches('/').to_owned();
    let missing: Vec<_> =
        IGNORED.iter().filter(|line| !present.lines().any(|have| bare(have) == bare(line))).collect();
    if missing.is_empty() {
        return Ok(TemplateResult::Unchanged);
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

/// Returns the file as `ralph init` writes it; `None` if it has no template.
pub fn fresh(file: &str, name: &str) -> Option<String> {
    let (_, template) = TEMPLATES.iter().find(|(template, _)| *template == file)?;
    Some(filled(file, template, name))
}

fn filled(file: &str, template: &str, name: &str) -> String {
    let name = clean::excerpt(name, 80);
    let branch = format!("ralph/{}", slug(&name).unwrap_or("run".into()));
    let fit = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        // The template contains the quotes.
        let json = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        json.filter(|_| file.ends_with(".json")).unwrap_or(text).to_owned()
    };
    template.replace("{{branch}}", &fit(&branch)).replace("{{name}}", &fit(&name))
}

/// Returns a name for files and branches, without characters that are special in paths, shells or git.
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

/// Returns the name of the project's folder.
pub fn default_name(project: &Project) -> String {
    let name = project.real_root().file_name().map(|name| clean::line(&name.to_string_lossy()));
    name.filter(|name| !name.is_empty()).unwrap_or("project".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tasks::{Mode, mode, pick, validate};

    #[test]
    fn slugs_are_safe_in_paths() {
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
    fn a_fresh_list_is_valid_for_every_project_name() {
        for name in ["plain", "end\"", "quo\"te \\ {{branch}} {{name}}", "\u{7f}línea\n2", ""] {
            let text = fresh("tasks.json", name).unwrap();
            let list = validate(&serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(list.project, clean::line(name));
            assert_eq!(mode(&list, false), Mode::Implement);
            assert_eq!(pick(&list, Mode::Implement).map(|story| story.id.as_str()), Some("US-1"));
            assert_eq!(list.text(&text), text, "rewriting keeps its format");
        }
    }

    #[test]
    fn templates_contain_what_the_runner_needs() {
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
        for (file, template) in TEMPLATES {
            assert!(!filled(file, template, "x").contains("{{"), "{file}");
        }
        assert!(prompt.len() < 5000, "every iteration pays for it: {}", prompt.len());
    }
}

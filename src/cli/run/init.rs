//! `ralph init`: creates `ralph/` for the runner and keeps existing files.

use crate::cli::{Failure, Invocation};
use crate::core::text::clean;
use crate::store::project::layout::{self, TemplateResult};
use crate::store::runner::run_lock;

pub fn init(call: &Invocation) -> Result<String, Failure> {
    let (project, force) = (&call.project, call.flag("force"));
    if let Some(holder) = run_lock::holder(&call.world, project).filter(|_| force) {
        return Err(Failure::refused(format!("a run is active in this project (process {})", holder.pid))
            .hint("stop it first: it uses the files that --force replaces"));
    }
    let name = match call.value("name").map(clean::line) {
        Some(name) if name.is_empty() => return Err(Failure::usage("--name is empty")),
        Some(name) => name,
        None => layout::default_name(project),
    };
    let made = layout::lay_out(project, &name, force)?;
    let mut text =
        format!("{} in {}\n", clean::excerpt(&name, 80), clean::line(&project.root.to_string_lossy()));
    for (path, made) in &made {
        let what = match (path.as_str(), made) {
            (".gitignore", TemplateResult::Replaced) => "lines added",
            (_, TemplateResult::Created) => "created",
            (_, TemplateResult::Kept) => "kept",
            (_, TemplateResult::Replaced) => "replaced",
            (_, TemplateResult::Unchanged) => "unchanged",
        };
        text.push_str(&format!("  {path:<20} {what}\n"));
    }
    text.push_str(if made.iter().any(|(_, made)| *made == TemplateResult::Kept) {
        "--force replaces what was kept.\n"
    } else {
        "Next: describe in ralph/prd.md what you want, then `ralph run`. Its first story turns that into a task list.\n"
    });
    Ok(text)
}

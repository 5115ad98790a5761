//! What to review first: weakened tests, files by churn, constraints, commits.

use super::{none, state};
use crate::core::text::clean;
use crate::view::report::escape::html;
use crate::view::report::summary::Tone;
use crate::view::report::words::count;
use crate::view::report::{FileChurn, OfIteration, ReviewSection};

/// So many files are shown at once; the rest on demand.
const FILES_AT_ONCE: usize = 12;
const MAX_FILES: usize = 300;

pub fn section(review: &ReviewSection) -> String {
    let mut out = String::new();
    match &review.commits {
        Err(why) => out.push_str(&format!("<p class=\"none\">Commits and changed files are unknown: {}.</p>\n", html(why.trim_end_matches('.')))),
        Ok(0) => out.push_str(&none("No commit was made, so git cannot tell what this run changed. `git status` shows what is not committed.")),
        Ok(_) => {
            out.push_str(&weakened(review));
            out.push_str(&format!("<h3>Files by churn ({})</h3>\n", review.files.len()));
            out.push_str(&files(&review.files));
        }
    }
    if !review.constraints.is_empty() {
        let items = review.constraints.iter().map(|(how, found)| {
            format!("<li>{} <span class=\"q\">{}</span></li>\n", state(Tone::Warn, how), html(found))
        });
        out.push_str(&format!(
            "<h3>Constraints touched</h3>\n<ul class=\"plain small\">\n{}</ul>\n",
            items.collect::<String>()
        ));
    } else if review.commits.as_ref().is_ok_and(|count| *count > 0) {
        out.push_str("<h3>Constraints touched</h3>\n<p class=\"none\">None.</p>\n");
    }
    out.push_str(&commits(review));
    out
}

fn weakened(review: &ReviewSection) -> String {
    let found = &review.weakened;
    if found.is_empty() {
        return "<h3>Tests deleted or skipped</h3>\n<p class=\"none\">None that the changed lines show.</p>\n".into();
    }
    let mut items = String::new();
    for path in &found.deleted {
        items.push_str(&format!("<li>{} <code>{}</code></li>\n", state(Tone::Bad, "deleted"), html(path)));
    }
    for (path, line) in &found.skipped {
        items.push_str(&format!(
            "<li>{} <code>{}</code> <code>{}</code></li>\n",
            state(Tone::Bad, "skipped"),
            html(path),
            html(line)
        ));
    }
    for (path, fewer) in &found.fewer {
        let fewer = count(*fewer, "test fewer", "tests fewer");
        items.push_str(&format!("<li>{} <code>{}</code></li>\n", state(Tone::Warn, &fewer), html(path)));
    }
    format!("<h3>Tests deleted or skipped</h3>\n<ul class=\"plain small\">\n{items}</ul>\n")
}

fn files(files: &[FileChurn]) -> String {
    let most = files.first().map_or(1, |file| file.lines().max(1));
    let row = |file: &FileChurn| {
        let width = file.lines() as f64 / most as f64 * 100.0;
        format!(
            "<tr><td><code>{}</code></td><td class=\"n\"><span class=\"plus\">+{}</span> <span class=\"minus\">−{}</span></td>\
             <td class=\"n\" data-l=\"commits\">{}</td><td style=\"width:22%\"><span class=\"churn\" style=\"width:{width:.1}%\"></span></td></tr>\n",
            html(&clean::excerpt(&file.path, 160)),
            file.added,
            file.removed,
            file.commits
        )
    };
    let table = |files: &[FileChurn], head: &str| {
        format!(
            "<table class=\"fold\">{head}<tbody>\n{}</tbody></table>\n",
            files.iter().map(row).collect::<String>()
        )
    };
    let (first, rest) = files.split_at(files.len().min(FILES_AT_ONCE));
    let head = "<thead><tr><th>file</th><th class=\"n\">lines</th><th class=\"n\">commits</th><th></th></tr></thead>";
    let mut out = table(first, head);
    if !rest.is_empty() {
        let shown = &rest[..rest.len().min(MAX_FILES)];
        let left = rest.len() - shown.len();
        let left = if left > 0 { format!("<p class=\"none\">and {left} more</p>") } else { String::new() };
        out.push_str(&format!(
            "<details class=\"more\"><summary>{} more</summary>\n{}{left}</details>\n",
            rest.len(),
            table(shown, "")
        ));
    }
    out
}

fn commits(review: &ReviewSection) -> String {
    if review.by_iteration.is_empty() {
        return String::new();
    }
    let row = |(number, own): (&u64, &OfIteration)| {
        let commits = own.commits.iter().map(|(id, subject)| {
            format!("<li><code>{}</code> <span class=\"q\">{}</span></li>", html(id), html(subject))
        });
        format!(
            "<tr><td class=\"n\">{number}</td><td><ul class=\"plain\">{}</ul></td></tr>\n",
            commits.collect::<String>()
        )
    };
    let rows: Vec<String> = review.by_iteration.iter().map(row).collect();
    let head = "<thead><tr><th class=\"n\">iteration</th><th>commits</th></tr></thead>";
    let table = |rows: &[String]| {
        format!("<table class=\"commits\">{head}<tbody>\n{}</tbody></table>\n", rows.concat())
    };
    if rows.len() > 2 * FILES_AT_ONCE {
        return format!(
            "<details class=\"more\"><summary>Commits by iteration</summary>\n{}</details>\n",
            table(&rows)
        );
    }
    format!("<h3>Commits by iteration</h3>\n{}", table(&rows))
}

//! The report of `ralph doctor`, for people and as JSON.

use crate::core::diagnosis::{Diagnosis, Health};
use crate::core::text::clean;
use crate::view::paint::{Paint, plural};
use serde_json::{Value, json};
use std::path::Path;

const WORD: usize = 8;
const ID: usize = 14;

pub fn human(report: &Diagnosis, project: &Path, paint: Paint) -> String {
    let title =
        format!("Ralph {} · {}", env!("CARGO_PKG_VERSION"), clean::line(&project.display().to_string()));
    let mut out = format!("{}\n\n", paint.bold(title));
    for check in &report.checks {
        for (index, note) in check.notes.iter().enumerate() {
            let id = if index == 0 { check.id } else { "" };
            // Not wrapped, so that paths can be copied.
            out.push_str(&format!("{} {id:ID$} {}\n", word(note.verdict, paint), note.message));
            if let Some(hint) = &note.hint {
                out.push_str(&format!("{:1$} → {hint}\n", "", WORD + ID));
            }
        }
    }
    out.push_str(&format!("\n{}\n", summary(report)));
    out
}

fn word(verdict: Health, paint: Paint) -> String {
    let padded = |word: &str| format!("{word:WORD$}");
    match verdict {
        Health::Skipped => paint.dim(padded("-")),
        Health::Ok => paint.green(padded("OK")),
        Health::Warning => paint.yellow(padded("warning")),
        Health::Failure => paint.red(padded("FAILURE")),
    }
}

fn summary(report: &Diagnosis) -> String {
    let problems = [(Health::Failure, "failure"), (Health::Warning, "warning")]
        .map(|(verdict, word)| (report.count(verdict), word))
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| plural(count, word));
    let problems = problems.collect::<Vec<_>>().join(", ");
    match problems.is_empty() {
        true => "No problems found.".into(),
        false if report.is_healthy() => format!("{problems}; loops work."),
        false => format!("{problems}."),
    }
}

pub fn json(report: &Diagnosis, project: &Path) -> String {
    let checks: Vec<Value> = report
        .checks
        .iter()
        .map(|check| json!({"id": check.id, "verdict": check.verdict(), "notes": check.notes}))
        .collect();
    let whole = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "project": project.to_string_lossy(),
        "healthy": report.is_healthy(),
        "verdict": report.verdict(),
        "checks": checks,
    });
    format!("{whole}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::diagnosis::{CheckNote, DoctorCheck};

    #[test]
    fn a_report_has_a_line_for_each_note() {
        let notes = vec![CheckNote::failure("two", "do this"), CheckNote::warning("three", "do that")];
        let checks = vec![
            DoctorCheck::one("client", CheckNote::ok("one")),
            DoctorCheck { id: "hooks", notes },
            DoctorCheck::one("docker", CheckNote::skipped("four")),
        ];
        let expected = format!(
            "Ralph {} · /p\n\n\
             OK       client         one\n\
             FAILURE  hooks          two\n                       → do this\n\
             warning                 three\n                       → do that\n\
             -        docker         four\n\n\
             1 failure, 1 warning.\n",
            env!("CARGO_PKG_VERSION")
        );
        let report = Diagnosis { checks };
        assert_eq!(human(&report, Path::new("/p"), Paint::new(false)), expected);
        let told: Value = serde_json::from_str(&json(&report, Path::new("/p"))).unwrap();
        assert_eq!((&told["healthy"], &told["verdict"]), (&json!(false), &json!("failure")));
        assert_eq!(told["checks"][1]["notes"][0]["hint"], "do this");
        assert!(
            human(&Diagnosis::default(), Path::new("/p"), Paint::new(false))
                .ends_with("No problems found.\n")
        );
    }
}

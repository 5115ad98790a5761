//! A checkup for people, a line for each thing seen, and for programs.

use super::paint::Paint;
use crate::core::checkup::{Report, Verdict};
use crate::core::clean;
use serde_json::{Value, json};
use std::path::Path;

const WORD: usize = 8;
const ID: usize = 14;

pub fn human(report: &Report, project: &Path, paint: Paint) -> String {
    let title =
        format!("Ralph {} · {}", env!("CARGO_PKG_VERSION"), clean::line(&project.display().to_string()));
    let mut out = format!("{}\n\n", paint.bold(title));
    for check in &report.checks {
        for (index, note) in check.notes.iter().enumerate() {
            let id = if index == 0 { check.id } else { "" };
            let word = format!("{:WORD$}", word(note.verdict));
            // Long lines stay whole: a path that is broken in two cannot be copied.
            out.push_str(&format!("{} {id:ID$} {}\n", colour(paint, note.verdict, &word), note.message));
            if let Some(way_out) = &note.way_out {
                out.push_str(&format!("{:1$} → {way_out}\n", "", WORD + ID));
            }
        }
    }
    out.push_str(&format!("\n{}\n", verdict(report)));
    out
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Skipped => "-",
        Verdict::Ok => "OK",
        Verdict::Warning => "warning",
        Verdict::Failure => "FAILURE",
    }
}

fn colour(paint: Paint, verdict: Verdict, text: &str) -> String {
    match verdict {
        Verdict::Skipped => paint.dim(text),
        Verdict::Ok => paint.green(text),
        Verdict::Warning => paint.yellow(text),
        Verdict::Failure => paint.red(text),
    }
}

fn verdict(report: &Report) -> String {
    let count = |verdict: Verdict, word: &str| match report.count(verdict) {
        0 => None,
        1 => Some(format!("1 {word}")),
        count => Some(format!("{count} {word}s")),
    };
    let bad = [count(Verdict::Failure, "failure"), count(Verdict::Warning, "warning")];
    match bad.into_iter().flatten().collect::<Vec<_>>() {
        none if none.is_empty() => "All is well.".into(),
        some if report.is_healthy() => {
            format!("{}; nothing that keeps a loop from working.", some.join(", "))
        }
        some => format!("{}.", some.join(", ")),
    }
}

pub fn json(report: &Report, project: &Path) -> String {
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
    use crate::core::checkup::{Check, Note};

    #[test]
    fn a_report_reads_line_by_line() {
        let notes = vec![Note::failure("two", "do this"), Note::warning("three", "do that")];
        let checks = vec![
            Check::one("client", Note::ok("one")),
            Check { id: "hooks", notes },
            Check::one("docker", Note::skipped("four")),
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
        let report = Report { checks };
        assert_eq!(human(&report, Path::new("/p"), Paint::new(false)), expected);
        let told: Value = serde_json::from_str(&json(&report, Path::new("/p"))).unwrap();
        assert_eq!((&told["healthy"], &told["verdict"]), (&json!(false), &json!("failure")));
        assert_eq!(told["checks"][1]["notes"][0]["way_out"], "do this");
        assert!(human(&Report::default(), Path::new("/p"), Paint::new(false)).ends_with("All is well.\n"));
    }
}

//! Findings for people, grouped by severity, and for programs.

use super::paint::Paint;
use crate::core::clean;
use crate::core::finding::{Finding, SEVERITIES, Severity};
use crate::scan::Scan;
use serde_json::{Value, json};

const WIDTH: usize = 80;

pub fn human(scan: &Scan, waived: &[String], paint: Paint) -> String {
    let mut out = String::new();
    for severity in SEVERITIES {
        let findings: Vec<_> = scan.findings.iter().filter(|finding| finding.severity == severity).collect();
        if findings.is_empty() {
            continue;
        }
        let title = format!("{} ({})", severity.name().to_uppercase(), findings.len());
        out.push_str(&format!(
            "{}{}\n",
            colour(paint, severity, &title),
            paint.dim(format!(" · {}", consequence(severity)))
        ));
        for finding in findings {
            let place = place(finding);
            let allowed = if waived.contains(&finding.id) { " (allowed by you)" } else { "" };
            let head = if place.is_empty() {
                finding.description.clone()
            } else {
                format!("{place}: {}", finding.description)
            };
            for line in clean::wrap(&format!("{head}{allowed}"), WIDTH - 2) {
                out.push_str(&format!("  {line}\n"));
            }
            out.push_str(&format!("    {}\n", clean::excerpt(&finding.recommendation, WIDTH - 4)));
            out.push_str(&format!("    {}\n", paint.dim(clean::excerpt(&finding.id, WIDTH - 4))));
        }
        out.push('\n');
    }
    for warning in &scan.warnings {
        out.push_str(&format!("Note: {}\n", clean::line(warning)));
    }
    let left = if scan.complete { "" } else { ", not all: time ran out, scan again" };
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    out.push_str(&format!(
        "{} in {}{left}\n",
        plural(scan.findings.len(), "finding"),
        plural(scan.files, "file")
    ));
    out
}

fn colour(paint: Paint, severity: Severity, text: &str) -> String {
    match severity {
        Severity::Critical | Severity::High => paint.red(text),
        Severity::Medium => paint.yellow(text),
        Severity::Low => paint.bold(text),
    }
}

fn consequence(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "a start is refused, the agent is told at every turn",
        Severity::High => "the agent is told at every turn",
        Severity::Medium => "shown here and in the status",
        Severity::Low => "shown here only",
    }
}

pub fn place(finding: &Finding) -> String {
    let file = clean::line(&finding.file);
    finding.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}"))
}

fn metadata(scan: &Scan) -> Value {
    let count =
        |severity: Severity| scan.findings.iter().filter(|finding| finding.severity == severity).count();
    json!({
        "scanned_at": scan.at,
        "files": scan.files,
        "complete": scan.complete,
        "counts": SEVERITIES.map(|severity| (severity.name().to_owned(), Value::from(count(severity)))).into_iter().collect::<serde_json::Map<_, _>>(),
        "warnings": scan.warnings,
    })
}

fn shown(finding: &Finding, waived: &[String]) -> Value {
    let mut value = json!(finding);
    value["allowed"] = waived.contains(&finding.id).into();
    value
}

pub fn json(scan: &Scan, waived: &[String]) -> String {
    let findings: Vec<Value> = scan.findings.iter().map(|finding| shown(finding, waived)).collect();
    format!("{}\n", json!({"metadata": metadata(scan), "findings": findings}))
}

pub fn ndjson(scan: &Scan, waived: &[String]) -> String {
    let mut out = format!("{}\n", json!({"type": "metadata", "metadata": metadata(scan)}));
    for finding in &scan.findings {
        out.push_str(&format!("{}\n", shown(finding, waived)));
    }
    out
}

//! Findings for people, grouped by severity, and for scripts.

use super::paint::{Paint, plural};
use crate::core::guidance::finding::{Finding, SEVERITIES, Severity};
use crate::core::text::clean;
use crate::scan::Scan;
use serde_json::{Value, json};

const WIDTH: usize = 80;

pub fn human(scan: &Scan, allowed_ids: &[String], paint: Paint) -> String {
    let mut out = String::new();
    let mut group = |title: String, consequence: &str, findings: &[&Finding]| {
        if !findings.is_empty() {
            let entries: String = findings.iter().map(|finding| entry(finding, paint)).collect();
            out.push_str(&format!("{title}{}\n{entries}\n", paint.dim(format!(" · {consequence}"))));
        }
    };
    let (allowed, standing): (Vec<_>, Vec<_>) =
        scan.findings.iter().partition(|finding| allowed_ids.contains(&finding.id));
    for severity in SEVERITIES {
        let findings = standing.iter().copied().filter(|finding| finding.severity == severity);
        let findings: Vec<&Finding> = findings.collect();
        let title = format!("{} ({})", severity.name().to_uppercase(), findings.len());
        let (title, consequence) = match severity {
            Severity::Critical => {
                (paint.red(title), "blocks `ralph start`; shown to the agent at every turn")
            }
            Severity::High => (paint.red(title), "shown to the agent at every turn"),
            Severity::Medium => (paint.yellow(title), "shown here and in `ralph status`"),
            Severity::Low => (paint.bold(title), "only shown here"),
        };
        group(title, consequence, &findings);
    }
    let title = paint.bold(format!("ALLOWED ({})", allowed.len()));
    group(title, "until the finding changes; undo with `ralph-guidance remove ID`", &allowed);
    for warning in &scan.warnings {
        out.push_str(&format!("Note: {}\n", clean::line(warning)));
    }
    let left = if scan.complete { "" } else { " (incomplete: timed out; run it again)" };
    let (findings, files) = (plural(scan.findings.len(), "finding"), plural(scan.files, "file"));
    out + &format!("{findings} in {files}{left}\n")
}

fn entry(finding: &Finding, paint: Paint) -> String {
    let place = finding.place();
    let head = match place.is_empty() {
        true => finding.description.clone(),
        false => format!("{place}: {}", finding.description),
    };
    let mut lines: Vec<String> =
        clean::wrap(&head, WIDTH - 2).iter().map(|line| format!("  {line}\n")).collect();
    lines.push(format!("    {}\n", clean::excerpt(&finding.recommendation, WIDTH - 4)));
    lines.push(format!("    {}\n", paint.dim(clean::excerpt(&finding.id, WIDTH - 4))));
    lines.concat()
}

fn metadata(scan: &Scan) -> Value {
    let counts = SEVERITIES.map(|severity| {
        let count = scan.findings.iter().filter(|finding| finding.severity == severity).count();
        (severity.name().to_owned(), Value::from(count))
    });
    json!({
        "scanned_at": scan.at,
        "files": scan.files,
        "complete": scan.complete,
        "counts": Value::Object(counts.into_iter().collect()),
        "warnings": scan.warnings,
    })
}

fn shown(finding: &Finding, allowed_ids: &[String]) -> Value {
    let mut value = json!(finding);
    value["allowed"] = allowed_ids.contains(&finding.id).into();
    value
}

pub fn json(scan: &Scan, allowed_ids: &[String]) -> String {
    let findings: Vec<Value> = scan.findings.iter().map(|finding| shown(finding, allowed_ids)).collect();
    format!("{}\n", json!({"metadata": metadata(scan), "findings": findings}))
}

pub fn ndjson(scan: &Scan, allowed_ids: &[String]) -> String {
    let mut out = format!("{}\n", json!({"type": "metadata", "metadata": metadata(scan)}));
    for finding in &scan.findings {
        out.push_str(&format!("{}\n", shown(finding, allowed_ids)));
    }
    out
}

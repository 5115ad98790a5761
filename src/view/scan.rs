//! Findings for people, grouped by severity, and for scripts.

use super::paint::Paint;
use crate::core::guidance::finding::{Finding, SEVERITIES, Severity};
use crate::core::text::clean;
use crate::scan::Scan;
use serde_json::{Value, json};

const WIDTH: usize = 80;

pub fn human(scan: &Scan, waived: &[String], paint: Paint) -> String {
    let mut out = String::new();
    let (allowed, standing): (Vec<_>, Vec<_>) =
        scan.findings.iter().partition(|finding| waived.contains(&finding.id));
    for severity in SEVERITIES {
        let findings: Vec<_> = standing.iter().filter(|finding| finding.severity == severity).collect();
        if !findings.is_empty() {
            let title = format!("{} ({})", severity.name().to_uppercase(), findings.len());
            out.push_str(&heading(&colour(paint, severity, &title), consequence(severity), paint));
            findings.iter().for_each(|finding| out.push_str(&entry(finding, paint)));
            out.push('\n');
        }
    }
    if !allowed.is_empty() {
        let title = paint.bold(format!("ALLOWED ({})", allowed.len()));
        out.push_str(&heading(&title, "until they change; undo with `ralph-guidance remove ID`", paint));
        allowed.iter().for_each(|finding| out.push_str(&entry(finding, paint)));
        out.push('\n');
    }
    for warning in &scan.warnings {
        out.push_str(&format!("Note: {}\n", clean::line(warning)));
    }
    let left = if scan.complete { "" } else { " (incomplete: time ran out, run it again)" };
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    out.push_str(&format!(
        "{} in {}{left}\n",
        plural(scan.findings.len(), "finding"),
        plural(scan.files, "file")
    ));
    out
}

fn heading(title: &str, consequence: &str, paint: Paint) -> String {
    format!("{title}{}\n", paint.dim(format!(" · {consequence}")))
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

fn colour(paint: Paint, severity: Severity, text: &str) -> String {
    match severity {
        Severity::Critical | Severity::High => paint.red(text),
        Severity::Medium => paint.yellow(text),
        Severity::Low => paint.bold(text),
    }
}

fn consequence(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "blocks `ralph start`; the agent is told at every turn",
        Severity::High => "the agent is told at every turn",
        Severity::Medium => "shown here and in `ralph status`",
        Severity::Low => "only shown here",
    }
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

//! A report as one HTML page: no script, no request, nothing outside the file.

mod course;
mod iteration;
mod review;
mod style;

use super::escape::{html, html_with_code, html_words};
use super::summary::{CheckRow, Tone};
use super::{Need, NextStep, Report};
use crate::core::message;
use crate::core::text::clean;
use crate::core::time::Stamp;
use style::STYLE;

pub fn page(report: &Report) -> String {
    let name = report.project.rsplit('/').next().unwrap_or_default();
    let title = format!("{}: {}", report.outcome, clean::excerpt(&report.task, 70));
    let mut out = head(&title, report.tone);
    out.push_str(&format!(
        "<header>\n<p class=\"kicker\"><b>{}</b><span>run {}</span><span>{}</span><span>{}</span></p>\n<h1>{}</h1>\n",
        html(name),
        html(&message::short_id(&report.run_id)),
        report.engine,
        times(report),
        html_words(&report.sentence)
    ));
    if !report.task.is_empty() {
        out.push_str(&format!("<p class=\"task\">{}</p>\n", html(&report.task)));
    }
    let figures = report.figures.iter().map(|figure| {
        let limit = figure
            .limit
            .as_ref()
            .map_or_else(String::new, |limit| format!(" <small>of {}</small>", html(limit)));
        format!("<div><dt>{}</dt><dd>{}{limit}</dd></div>\n", figure.name, html(&figure.value))
    });
    out.push_str(&format!("<dl class=\"figures\">\n{}</dl>\n</header>\n", figures.collect::<String>()));
    for note in &report.notes {
        out.push_str(&format!("<p class=\"soft small\">{}</p>\n", html(note)));
    }
    section(&mut out, "What needs you", "", &needs(&report.needs));
    section(&mut out, "Evidence", "", &evidence(report));
    section(&mut out, "Review first", "long", &review::section(&report.review));
    section(&mut out, "Timeline", "", &course::timeline_section(report));
    section(&mut out, "Cost", "long", &course::money(report));
    section(&mut out, "Iterations", "long", &iteration::all(report));
    section(&mut out, "What next", "", &steps(&report.steps));
    out.push_str(&foot(report.made_at));
    out
}

/// Returns everything before the content of a page.
pub fn head(title: &str, tone: Tone) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
         base-uri 'none'; form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main class=\"{}\">\n",
        html(title),
        tone.name()
    )
}

pub fn foot(made_at: Stamp) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<footer>Ralph {version} made this page on {}. It is one file and loads nothing.</footer>\n</main>\n</body>\n</html>\n",
        made_at.minute()
    )
}

pub fn section(out: &mut String, title: &str, class: &str, content: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    out.push_str(&format!("<section{class}>\n<h2>{title}</h2>\n{content}</section>\n"));
}

fn none(text: &str) -> String {
    format!("<p class=\"none\">{}</p>\n", html(text))
}

fn times(report: &Report) -> String {
    let from = report.timeline.started_at.map_or_else(|| "start unknown".into(), Stamp::minute);
    match &report.timeline.ended {
        Some((at, _)) => {
            let until = at.minute();
            let is_same_day = until.get(..10) == from.get(..10);
            format!(
                "{} to {}",
                from.trim_end_matches(" UTC"),
                if is_same_day { &until[11..] } else { &until }
            )
        }
        None => format!("since {from}"),
    }
}

fn needs(needs: &[Need]) -> String {
    if needs.is_empty() {
        return none("Nothing.");
    }
    let one = |need: &Need| {
        let command = need.command.as_ref();
        let command = command.map_or_else(String::new, |command| {
            format!(" <span class=\"do\"><code>{}</code></span>", html(command))
        });
        format!("<li>{}{command}</li>\n", html_words(&need.what))
    };
    format!("<ul class=\"needs\">\n{}</ul>\n", needs.iter().map(one).collect::<String>())
}

fn state(tone: Tone, text: &str) -> String {
    format!("<span class=\"state {}\">{}</span>", tone.name(), html(text))
}

fn evidence(report: &Report) -> String {
    if report.evidence.is_empty() {
        let mut out = none("No check was set (--verify): review the result yourself.");
        out.push_str(&rejected(report));
        return out;
    }
    let row = |check: &CheckRow| {
        let tone = match check.passed {
            Some(true) => Tone::Good,
            Some(false) => Tone::Bad,
            None => Tone::Warn,
        };
        let tail = if check.tail.trim().is_empty() {
            String::new()
        } else {
            format!(
                "<details class=\"more\"><summary>its last output</summary><pre>{}</pre></details>",
                html(&check.tail)
            )
        };
        format!(
            "<tr><td><code>{}</code>{tail}</td><td>{}</td><td data-l=\"first failed\">{}</td><td data-l=\"last passed\">{}</td>\
             <td class=\"n\" data-l=\"runs\">{}</td></tr>\n",
            html(&check.command),
            state(tone, &check.last),
            html(&check.first_failed),
            html(&check.last_passed),
            check.runs.map_or_else(|| "unknown".into(), |runs| runs.to_string())
        )
    };
    format!(
        "<table class=\"fold\"><thead><tr><th>check</th><th>newest result</th><th>first failed</th><th>last passed</th><th class=\"n\">runs</th></tr></thead>\n\
         <tbody>\n{}</tbody></table>\n{}",
        report.evidence.iter().map(row).collect::<String>(),
        rejected(report)
    )
}

fn rejected(report: &Report) -> String {
    if report.rejected.is_empty() {
        return String::new();
    }
    let items = report.rejected.iter().map(|(number, why)| {
        format!("<li>iteration {number}: <span class=\"q\">{}</span></li>\n", html_with_code(why))
    });
    format!(
        "<h3>Claims of completion that were rejected</h3>\n<ul class=\"plain small\">\n{}</ul>\n",
        items.collect::<String>()
    )
}

fn steps(steps: &[NextStep]) -> String {
    let row = |step: &NextStep| {
        format!("<tr><td>{}</td><td><code>{}</code></td></tr>\n", html(step.what), html(&step.command))
    };
    format!(
        "<table class=\"steps fold\"><tbody>\n{}</tbody></table>\n",
        steps.iter().map(row).collect::<String>()
    )
}

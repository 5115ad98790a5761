//! How the time was spent, and the money.

use super::iteration::{left_out, shown};
use super::none;
use crate::core::event::BreakerAction;
use crate::core::message;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::view::report::escape::html;
use crate::view::report::words::{count, dollars};
use crate::view::report::{IterationRow, Report, strip};

pub fn section(report: &Report) -> String {
    let Some(strip) = strip::timeline_svg(&report.timeline) else {
        return none("How the time was spent is unknown.");
    };
    if !report.has_events {
        return none("How the time was spent is unknown: the run has no events.");
    }
    let mut legend = String::new();
    for (class, name, ms) in strip::spent(&report.timeline) {
        legend.push_str(&format!("<span><i class=\"{class}\"></i>{name} {}</span>\n", time::span(ms)));
    }
    let warned = report.timeline.breaker.len();
    if warned > 0 {
        let events = count(warned, "event", "events");
        legend.push_str(&format!("<span><svg class=\"mark warned\"><path d=\"M6 0l5 9h-10z\"/></svg>circuit breaker, {events}</span>\n"));
    }
    if !report.timeline.guidance.is_empty() {
        legend.push_str("<span><svg class=\"guidance\" style=\"width:24px\"><g class=\"guidance\"><line x1=\"4\" x2=\"20\" y1=\"5\" y2=\"5\"/><circle class=\"given\" cx=\"4\" cy=\"5\" r=\"3\"/><circle cx=\"20\" cy=\"5\" r=\"3.5\"/></g></svg>guidance, given to delivered</span>\n");
    }
    format!("{strip}<p class=\"legend\">\n{legend}</p>\n{}", events(report))
}

/// Returns what the marks of the strip say, for those who cannot point at them.
fn events(report: &Report) -> String {
    let mut items: Vec<(Stamp, String)> = Vec::new();
    for entry in &report.timeline.guidance {
        let given = entry
            .given_at
            .map_or_else(|| "given before the start".into(), |at| format!("given {}", clock(at)));
        let delivered = match entry.delivered {
            Some((at, after)) => format!("delivered {} after iteration {after}", clock(at)),
            None => "not delivered".into(),
        };
        let text = format!(
            "{}: <span class=\"q\">{}</span> <span class=\"soft\">{given}, {delivered}</span>",
            html(&clean::excerpt(&entry.list, 20)),
            html(&clean::excerpt(&entry.text, 300))
        );
        items.push((entry.given_at.unwrap_or_default(), text));
    }
    for (at, step) in &report.timeline.breaker {
        let word = match step.step {
            BreakerAction::Warned => "warned",
            BreakerAction::Tripped => "tripped",
            BreakerAction::Reset => "was reset",
        };
        let reason = clean::excerpt(&step.reason, 300);
        items.push((*at, format!("circuit breaker {word} in iteration {}: <span class=\"q\">{}</span> <span class=\"soft\">{}</span>", step.iteration, html(&reason), clock(*at))));
    }
    for (at, answered) in &report.timeline.answers {
        let from = clean::excerpt(&answered.from, 60);
        items.push((
            *at,
            format!(
                "answered: <span class=\"q\">{}</span> <span class=\"soft\">{} from {}</span>",
                html(&clean::excerpt(&answered.answer, 300)),
                clock(*at),
                html(&from)
            ),
        ));
    }
    if items.is_empty() {
        return String::new();
    }
    items.sort_by_key(|(at, _)| *at);
    let list: String = items.iter().take(100).map(|(_, text)| format!("<li>{text}</li>\n")).collect();
    format!("<ul class=\"plain small\">\n{list}</ul>\n")
}

pub fn clock(at: Stamp) -> String {
    at.minute().get(11..16).unwrap_or_default().to_owned()
}

pub fn money(report: &Report) -> String {
    let total = &report.total;
    let mut words = match total.cost {
        Some(cost) => format!("{} in all", dollars(cost)),
        None => "The cost is unknown".to_owned(),
    };
    if let Some(max) = total.max_cost {
        words.push_str(&format!("; limit {}", dollars(max)));
    }
    if total.repeated_cost >= 0.005 {
        words.push_str(&format!("; {} in repeated attempts", dollars(total.repeated_cost)));
    }
    words.push_str(&match total.tokens {
        0 => "; tokens are unknown.".to_owned(),
        tokens => format!("; {} tokens", message::tokens(tokens)),
    });
    if !total.kinds.is_empty() {
        let kinds: Vec<String> =
            total.kinds.iter().map(|(name, tokens)| format!("{name} {}", message::tokens(*tokens))).collect();
        words.push_str(&format!(" ({}).", kinds.join(", ")));
    } else if total.tokens > 0 {
        words.push('.');
    }
    let mut out = format!("<p>{}</p>\n", html(&words));
    let Some(picture) = strip::money(&report.iterations) else { return out };
    let what = if report.iterations.iter().any(|row| row.cost.is_some()) { "cost" } else { "tokens" };
    out.push_str(&format!("{picture}<p class=\"legend\"><span><i class=\"work\"></i>{what} per iteration</span><span>line: cumulative</span></p>
"));
    let row = |row: &IterationRow| {
        format!(
            "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            row.number,
            row.cost.map_or_else(|| "unknown".into(), dollars),
            dollars(row.cost_so_far),
            message::tokens(row.tokens),
            message::tokens(row.tokens_so_far)
        )
    };
    out.push_str(&format!(
        "<details class=\"more screen-only\"><summary>as a table</summary>\n{}<table><thead><tr><th class=\"n\">iteration</th><th class=\"n\">cost</th>\
         <th class=\"n\">so far</th><th class=\"n\">tokens</th><th class=\"n\">so far</th></tr></thead>\n<tbody>\n{}</tbody></table></details>\n",
        left_out(report),
        shown(report).iter().map(row).collect::<String>()
    ));
    out
}

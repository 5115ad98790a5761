//! All runs of a user on one page, with their trends.

use super::escape::{html, span};
use super::html::{foot, head, section};
use super::markdown::table;
use super::summary::Tone;
use super::words::{count, dollars};
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use std::collections::BTreeMap;

/// So many runs are drawn, the newest; so many are listed.
const MAX_DRAWN_RUNS: usize = 60;
const MAX_LISTED_RUNS: usize = 500;
/// Trends compare a period with the one before.
const PERIOD_MS: i64 = 30 * 86_400_000;

#[derive(Clone, Debug)]
pub struct RunLine {
    pub run_id: String,
    pub project: String,
    pub task: String,
    pub started_at: Stamp,
    /// `None` if no ending was recorded.
    pub outcome: Option<Outcome>,
    pub iterations: u64,
    pub runtime_seconds: f64,
    pub cost: Option<f64>,
    pub tokens: u64,
    /// Whether every check passed at the end; `None` if there was none.
    pub verified: Option<bool>,
}

impl RunLine {
    fn tone(&self) -> Tone {
        self.outcome.map_or(Tone::Calm, Tone::of)
    }

    fn word(&self) -> &'static str {
        self.outcome.map_or("not ended", Outcome::name)
    }

    fn is_complete(&self) -> bool {
        self.outcome == Some(Outcome::Complete)
    }
}

/// What a period brought.
#[derive(Clone, Debug, Default, PartialEq)]
struct Period {
    runs: usize,
    complete: usize,
    verified: usize,
    median_iterations: Option<u64>,
    median_seconds: Option<f64>,
    cost: Option<f64>,
}

fn period<'a>(runs: impl Iterator<Item = &'a RunLine>) -> Period {
    let runs: Vec<&RunLine> = runs.collect();
    let costs: Vec<f64> = runs.iter().filter_map(|run| run.cost).collect();
    let mut iterations: Vec<u64> = runs.iter().map(|run| run.iterations).collect();
    let mut seconds: Vec<f64> = runs.iter().map(|run| run.runtime_seconds).collect();
    iterations.sort_unstable();
    seconds.sort_by(f64::total_cmp);
    Period {
        runs: runs.len(),
        complete: runs.iter().filter(|run| run.is_complete()).count(),
        verified: runs.iter().filter(|run| run.is_complete() && run.verified == Some(true)).count(),
        median_iterations: iterations.get(iterations.len() / 2).copied(),
        median_seconds: seconds.get(seconds.len() / 2).copied(),
        cost: (!costs.is_empty()).then(|| costs.iter().sum()),
    }
}

impl Period {
    fn values(&self) -> [String; 6] {
        let unknown = || "-".to_owned();
        let share = |part: usize| match self.runs {
            0 => unknown(),
            runs => format!("{part} ({}%)", part * 100 / runs),
        };
        [
            self.runs.to_string(),
            share(self.complete),
            share(self.verified),
            self.median_iterations.map_or_else(unknown, |count| count.to_string()),
            self.median_seconds.map_or_else(unknown, span_of),
            self.cost.map_or_else(unknown, dollars),
        ]
    }
}

const MEASURES: [&str; 6] =
    ["runs", "complete", "complete and verified by checks", "median iterations", "median runtime", "cost"];

fn span_of(seconds: f64) -> String {
    time::span(Stamp::from_seconds(seconds).0)
}

/// Returns the rows of the comparison: measure, last period, the one before.
fn trends(runs: &[RunLine], now: Stamp) -> Vec<[String; 3]> {
    let within = |run: &&RunLine, periods: i64| {
        let age = now - run.started_at;
        age >= (periods - 1) * PERIOD_MS && age < periods * PERIOD_MS
    };
    let last = period(runs.iter().filter(|run| within(run, 1) || run.started_at > now)).values();
    let before = period(runs.iter().filter(|run| within(run, 2))).values();
    let rows = MEASURES.iter().zip(last).zip(before);
    rows.map(|((name, last), before)| [(*name).to_owned(), last, before]).collect()
}

/// Returns a row for each project, the one with most runs first.
fn projects(runs: &[RunLine]) -> Vec<(String, Period)> {
    let mut by_project: BTreeMap<&str, Vec<&RunLine>> = BTreeMap::new();
    runs.iter().for_each(|run| by_project.entry(&run.project).or_default().push(run));
    let rows = by_project.into_iter().map(|(project, runs)| (project.to_owned(), period(runs.into_iter())));
    let mut rows: Vec<(String, Period)> = rows.collect();
    rows.sort_by_key(|(_, period)| std::cmp::Reverse(period.runs));
    rows
}

fn sentence(runs: &[RunLine]) -> String {
    let all = period(runs.iter());
    let projects = projects(runs).len();
    let cost = all.cost.map_or_else(String::new, |cost| format!(", for {}", dollars(cost)));
    format!(
        "{} in {}: {} complete, {} of them verified by checks{cost}.",
        count(all.runs, "run", "runs"),
        count(projects, "project", "projects"),
        all.complete,
        all.verified
    )
}

pub fn page(runs: &[RunLine], now: Stamp) -> String {
    let mut out = head("Ralph: all runs", Tone::Calm);
    out.push_str(&format!(
        "<header>\n<p class=\"kicker\"><b>All runs</b></p>\n<h1>{}</h1>\n</header>\n",
        html(&sentence(runs))
    ));
    if !runs.is_empty() {
        section(&mut out, "Trend", "", &trend(runs, now));
        section(&mut out, "Projects", "", &project_table(runs));
    }
    section(&mut out, "Runs", "long", &run_table(runs, now));
    out.push_str(&foot(now));
    out
}

fn trend(runs: &[RunLine], now: Stamp) -> String {
    let row = |[name, last, before]: &[String; 3]| {
        format!("<tr><td>{name}</td><td class=\"n\">{last}</td><td class=\"n\">{before}</td></tr>\n")
    };
    let rows: String = trends(runs, now).iter().map(row).collect();
    format!(
        "{}{}<table><thead><tr><th></th><th class=\"n\">last 30 days</th><th class=\"n\">30 days before</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n",
        bars(runs, "Runtime of each run", |run| run.runtime_seconds, |run| span_of(run.runtime_seconds)),
        bars(
            runs,
            "Cost of each run",
            |run| run.cost.unwrap_or_default(),
            |run| run.cost.map_or_else(|| "unknown".into(), dollars)
        ),
    )
}

/// Returns a bar for each of the newest runs, oldest first, coloured by outcome.
fn bars(
    runs: &[RunLine],
    title: &str,
    value: impl Fn(&RunLine) -> f64,
    shown: impl Fn(&RunLine) -> String,
) -> String {
    const HEIGHT: f64 = 64.0;
    let drawn: Vec<&RunLine> = runs.iter().take(MAX_DRAWN_RUNS).rev().collect();
    let highest = drawn.iter().map(|run| value(run)).fold(0.0, f64::max);
    if highest <= 0.0 || drawn.len() < 2 {
        return String::new();
    }
    let step = (100.0 / drawn.len() as f64).min(5.0);
    let bar = |(index, run): (usize, &&RunLine)| {
        let height = (value(run) / highest * HEIGHT).max(1.0);
        let title = format!("{}: {}, {}", run.started_at.date(), run.word(), shown(run));
        format!(
            "<rect class=\"{}\" x=\"{:.3}%\" width=\"{:.3}%\" y=\"{:.1}\" height=\"{height:.1}\"><title>{}</title></rect>\n",
            run.tone().name(),
            index as f64 * step + step * 0.12,
            step * 0.76,
            HEIGHT - height,
            html(&title)
        )
    };
    let bars: String = drawn.iter().enumerate().map(bar).collect();
    format!(
        "<h3>{title}</h3>\n<svg class=\"trend\" width=\"100%\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n{bars}\
         <line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"{HEIGHT}\" y2=\"{HEIGHT}\"/></svg>\n"
    )
}

fn project_table(runs: &[RunLine]) -> String {
    let row = |(project, period): &(String, Period)| {
        let [runs, complete, proven, iterations, runtime, cost] = period.values();
        format!(
            "<tr><td><code>{}</code></td><td class=\"n\" data-l=\"runs\">{runs}</td><td class=\"n\" data-l=\"complete\">{complete}</td>\
             <td class=\"n\" data-l=\"verified\">{proven}</td><td class=\"n\" data-l=\"iterations\">{iterations}</td>\
             <td class=\"n\" data-l=\"runtime\">{runtime}</td><td class=\"n\" data-l=\"cost\">{cost}</td></tr>\n",
            html(&clean::excerpt(project, 120))
        )
    };
    let rows: String = projects(runs).iter().map(row).collect();
    format!(
        "<table class=\"fold\"><thead><tr><th>project</th><th class=\"n\">runs</th><th class=\"n\">complete</th><th class=\"n\">verified</th>\
         <th class=\"n\">iterations</th><th class=\"n\">runtime</th><th class=\"n\">cost</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n\
         <p class=\"soft small\">Iterations and runtime are medians.</p>\n"
    )
}

fn run_table(runs: &[RunLine], now: Stamp) -> String {
    if runs.is_empty() {
        return "<p class=\"none\">None yet.</p>\n".into();
    }
    let row = |run: &RunLine| {
        format!(
            "<tr><td><span class=\"q\">{}</span><br><span class=\"soft small\">{} · {} · {} ago</span></td>\
             <td><span class=\"state {}\">{}</span></td><td class=\"n\" data-l=\"iterations\">{}</td><td class=\"n\" data-l=\"runtime\">{}</td>\
             <td class=\"n\" data-l=\"cost\">{}</td></tr>\n",
            html(&clean::excerpt(&run.task, 120)),
            html(&message::short_id(&run.run_id)),
            html(&name(run)),
            time::span(now - run.started_at),
            run.tone().name(),
            run.word(),
            run.iterations,
            span_of(run.runtime_seconds),
            run.cost.map_or_else(|| "-".into(), dollars)
        )
    };
    let rows: String = runs.iter().take(MAX_LISTED_RUNS).map(row).collect();
    let left = runs.len().saturating_sub(MAX_LISTED_RUNS);
    let left = if left > 0 { format!("<p class=\"none\">and {left} older</p>\n") } else { String::new() };
    format!(
        "<table class=\"fold\"><thead><tr><th>task</th><th>outcome</th><th class=\"n\">iterations</th><th class=\"n\">runtime</th>\
         <th class=\"n\">cost</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n{left}"
    )
}

/// Returns the name of a run's project.
fn name(run: &RunLine) -> String {
    clean::excerpt(run.project.rsplit(['/', '\\']).next().unwrap_or_default(), 40)
}

pub fn markdown(runs: &[RunLine], now: Stamp) -> String {
    let mut out = format!("## Ralph: all runs\n\n{}\n\n", sentence(runs));
    let rows: Vec<Vec<String>> = trends(runs, now).into_iter().map(|row| row.to_vec()).collect();
    table(&mut out, &["", "last 30 days", "30 days before"], &rows);
    let rows = projects(runs)
        .into_iter()
        .map(|(project, period)| [vec![span(&project)], period.values().to_vec()].concat());
    table(&mut out, &[&["project"][..], &MEASURES].concat(), &rows.collect::<Vec<_>>());
    let row = |run: &RunLine| {
        vec![
            run.started_at.date(),
            span(&message::short_id(&run.run_id)),
            span(&name(run)),
            run.word().to_owned(),
            run.iterations.to_string(),
            span_of(run.runtime_seconds),
            run.cost.map_or_else(String::new, dollars),
            span(&clean::excerpt(&run.task, 80)),
        ]
    };
    let rows: Vec<_> = runs.iter().take(100).map(row).collect();
    table(
        &mut out,
        &["started", "run", "project", "outcome", "iterations", "runtime", "cost", "task"],
        &rows,
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(days: i64, outcome: Outcome, cost: Option<f64>, project: &str) -> RunLine {
        RunLine {
            run_id: format!("r{days}"),
            project: project.into(),
            task: "<b>make</b> | it".into(),
            started_at: Stamp(0).plus_ms(-days * 86_400_000),
            outcome: Some(outcome),
            iterations: 4,
            runtime_seconds: 90.0,
            cost,
            tokens: 10,
            verified: Some(outcome == Outcome::Complete),
        }
    }

    #[test]
    fn a_period_is_compared_with_the_one_before() {
        let runs = [
            run(1, Outcome::Complete, Some(1.0), "/a"),
            run(2, Outcome::Stuck, Some(0.5), "/a"),
            run(31, Outcome::Complete, None, "/b"),
            run(90, Outcome::Complete, Some(9.0), "/b"),
        ];
        let rows = trends(&runs, Stamp(0));
        assert_eq!(rows[0], ["runs", "2", "1"].map(String::from));
        assert_eq!(rows[1], ["complete", "1 (50%)", "1 (100%)"].map(String::from));
        assert_eq!(rows[5], ["cost", "$1.50", "-"].map(String::from));
        assert_eq!(
            sentence(&runs),
            "4 runs in 2 projects: 3 complete, 3 of them verified by checks, for $10.50."
        );
    }

    #[test]
    fn text_of_others_is_inert_and_no_run_is_no_error() {
        let runs = [run(1, Outcome::Complete, None, "/x/<i>"), run(2, Outcome::Error, None, "/x/<i>")];
        let page = page(&runs, Stamp(0));
        assert!(!page.contains("<b>make") && !page.contains("<i>") && page.contains("&lt;b&gt;make"));
        assert!(markdown(&runs, Stamp(0)).contains("`<b>make</b> ¦ it`"));
        assert!(
            super::page(&[], Stamp(0)).contains("None yet") && markdown(&[], Stamp(0)).contains("0 runs")
        );
    }
}

//! Past runs as a table, or one JSON object a line.

use super::paint::Paint;
use crate::core::outcome::Outcome;
use crate::core::time::{self, Stamp};
use crate::core::{clean, message};
use crate::store::history::Run;
use anyhow::Result;

pub fn table(runs: &[Run], now: Stamp, paint: Paint) -> String {
    if runs.is_empty() {
        return "No run has ended in this project yet.\n".into();
    }
    let mut out = String::new();
    for run in runs {
        let outcome = format!("{:<15}", run.outcome.name());
        let outcome = match run.outcome {
            Outcome::Complete => paint.green(outcome),
            Outcome::Stopped | Outcome::Killed => paint.dim(outcome),
            _ => paint.yellow(outcome),
        };
        let what = format!(
            "{:>4} iterations · runtime {} · wall {} · {} ago",
            run.iterations,
            time::span(Stamp::from_seconds(run.runtime_seconds).0),
            time::span(Stamp::from_seconds(run.wall_seconds).0),
            time::span(now - run.ended_at)
        );
        out.push_str(&format!("{outcome} {what}\n"));
        let id = clean::excerpt(&run.run_id, 9).replace('…', "");
        out.push_str(&format!("  {} {}\n", paint.dim(id), clean::excerpt(&run.task, 68)));
        out.push_str(&format!(
            "  {}\n",
            clean::excerpt(&format!("{}: {}", run.outcome.words(), run.reason), 78)
        ));
        if run.usage.tokens() > 0 {
            let cost = run.usage.cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
            out.push_str(&format!("  {} tokens{cost}\n", message::tokens(run.usage.tokens())));
        }
    }
    out
}

pub fn json(runs: &[Run]) -> Result<String> {
    let lines: Result<Vec<String>, _> = runs.iter().map(serde_json::to_string).collect();
    Ok(lines?.into_iter().map(|line| line + "\n").collect())
}

//! Guidance of an older Ralph: plain texts in `.claude/ralph-config.json` under one timestamp.
//!
//! It is taken over once where it is fresh and reported once where it is not; the file stays as it is.

use super::file;
use super::project::Project;
use super::state::Document;
use crate::core::clean;
use crate::core::guidance::{self, Entry, LONGEST_TEXT, List, Sitting};
use crate::core::record::Loop;
use crate::core::settings::Settings;
use crate::core::time::Stamp;
use anyhow::Result;
use serde_json::Value;

const LARGEST: u64 = 1 << 20;
const DONE: &str = "legacy_taken";

pub fn take_over(
    project: &Project,
    session: &str,
    lap: &Loop,
    settings: &Settings,
    document: &mut Document,
    now: Stamp,
) -> Result<Option<String>> {
    let Ok(Some(bytes)) = file::read_bounded(&project.config(), LARGEST) else { return Ok(None) };
    let config: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let old = &config["guidance"];
    let texts = |name: &str| {
        old[name]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|text| clean::line(text).chars().take(LONGEST_TEXT).collect::<String>())
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
    };
    let lists = [(List::Encouraged, texts("encouraged")), (List::Forbidden, texts("forbidden"))];
    let stamp = old["timestamp"].as_str().unwrap_or_default();
    let mark = Value::from(format!("{stamp} {lists:?}"));
    let mut guidance = document.guidance();
    if lists.iter().all(|(_, texts)| texts.is_empty()) || guidance.extra.get(DONE) == Some(&mark) {
        return Ok(None);
    }
    let entry =
        |text: &String| Entry { text: text.clone(), timestamp: Stamp::parse(stamp), ..Entry::default() };
    let all: Vec<Entry> = lists.iter().flat_map(|(_, texts)| texts).map(entry).collect();
    let sitting = Sitting { session, started_at: lap.started_at, previous_ended_at: lap.previous_ended_at };
    let fresh = all.iter().all(|entry| entry.is_fresh(&sitting, now, settings.guidance_max_age_ms));
    if fresh {
        for (list, texts) in &lists {
            for text in texts {
                guidance.give(*list, entry(text));
            }
        }
    }
    guidance.extra.insert(DONE.into(), mark);
    document.set_guidance(&guidance)?;
    let listed = guidance::purged(&all).unwrap_or_default();
    let path = project.config().display().to_string();
    Ok(Some(if fresh {
        let of = |(list, texts): &(List, Vec<String>)| {
            let texts: Vec<_> =
                texts.iter().map(|text| format!("\"{}\"", clean::excerpt(text, 60))).collect();
            let word = if *list == List::Encouraged { "encouraged" } else { "forbidden" };
            (!texts.is_empty()).then(|| format!("{word} {}", texts.join(", ")))
        };
        let understood: Vec<_> = lists.iter().filter_map(of).collect();
        format!("took over {} texts of guidance from {path}: {}", all.len(), understood.join("; "))
    } else {
        format!("{listed} (from {path}, where it still stands)")
    }))
}

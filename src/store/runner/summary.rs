//! `ralph/logs/summary.csv`: one row an iteration. This is its only reader and writer.

use super::logs;
use crate::core::outcome::IterationOutcome;
use crate::core::time::Stamp;
use crate::store::project::Project;
use anyhow::{Context, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::io::Write;
use std::path::PathBuf;

pub const FILE: &str = "summary.csv";
const MAX_FILE_BYTES: u64 = 64 << 20;

/// One iteration. The fields are the columns, in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryRow {
    pub iteration: u64,
    pub mode: String,
    #[serde(deserialize_with = "number")]
    pub duration_seconds: u64,
    /// Empty if nothing was committed.
    pub commit_hash: String,
    #[serde(deserialize_with = "number")]
    pub stories_complete: u64,
    #[serde(deserialize_with = "number")]
    pub stories_total: u64,
    #[serde(deserialize_with = "number")]
    pub stuck_count: u64,
    #[serde(deserialize_with = "csv::invalid_option")]
    pub timestamp: Option<Stamp>,
    #[serde(deserialize_with = "csv::invalid_option")]
    pub outcome: Option<IterationOutcome>,
    #[serde(serialize_with = "four_decimals", deserialize_with = "csv::invalid_option")]
    pub cost_usd: Option<f64>,
    #[serde(deserialize_with = "number")]
    pub tokens: u64,
    /// `passed`, or the check that failed; empty if none ran.
    pub check: String,
    /// How often the agent was started: more than once after an error of the service or a usage limit.
    #[serde(deserialize_with = "number")]
    pub attempts: u64,
    /// What the iteration took beside `duration_seconds`, the time of its last attempt: earlier attempts, waits and
    /// checks. The two add up to the duration of the run.
    #[serde(deserialize_with = "number")]
    pub other_seconds: u64,
}

impl SummaryRow {
    /// Returns the time of the run that this row stands for.
    pub fn seconds(&self) -> u64 {
        self.duration_seconds.saturating_add(self.other_seconds)
    }
}

fn four_decimals<S: Serializer>(cost: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&cost.map_or_else(String::new, |cost| format!("{cost:.4}")))
}

/// Reads a number; anything else is 0, so that a row of another version still counts.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(String::deserialize(deserializer)?.parse().unwrap_or(0))
}

/// Returns the rows in their order, without a torn last line. Rows that cannot be read are skipped.
pub fn read(project: &Project) -> Vec<SummaryRow> {
    parse(&whole_lines(project).unwrap_or_default())
}

/// Returns the time that the rows stand for, in seconds, and how many iterations were stuck.
pub fn totals(project: &Project) -> (u64, u64) {
    let rows = read(project);
    let stuck = rows.iter().filter(|row| row.stuck_count > 0).count();
    (rows.iter().map(SummaryRow::seconds).fold(0, u64::saturating_add), stuck as u64)
}

/// Parses the rows, each from one line, so that an unclosed quote affects no other row.
fn parse(bytes: &[u8]) -> Vec<SummaryRow> {
    let mut records = bytes.split(|byte| *byte == b'\n').filter_map(record);
    let Some(header) = records.next() else { return Vec::new() };
    records.filter_map(|record| record.deserialize(Some(&header)).ok()).collect()
}

fn record(line: &[u8]) -> Option<csv::StringRecord> {
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).buffer_capacity(line.len().max(1)).from_reader(line);
    reader.into_records().next()?.ok()
}

/// Returns the file up to its last line end: a crash may have torn the line after it.
fn whole_lines(project: &Project) -> Result<Vec<u8>> {
    let mut bytes = project.read(&path(project), MAX_FILE_BYTES)?.unwrap_or_default();
    bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1));
    Ok(bytes)
}

fn path(project: &Project) -> PathBuf {
    logs::path(project).join(FILE)
}

/// Adds a row to the summary, in a single write, with the header before the first.
pub fn add(project: &Project, row: &SummaryRow) -> Result<()> {
    let mut file = project.append(&path(project))?;
    let whole = whole_lines(project)?.len() as u64;
    if file.metadata()?.len() > whole {
        file.set_len(whole)?;
    }
    let mut writer = csv::WriterBuilder::new().has_headers(whole == 0).from_writer(Vec::new());
    let one_line = |text: &str| text.replace('\n', " ");
    writer.serialize(SummaryRow { mode: one_line(&row.mode), check: one_line(&row.check), ..row.clone() })?;
    let written = file.write_all(&writer.into_inner()?);
    written.with_context(|| format!("could not write {}", path(project).display()))
}

/// Writes the rows of a run that ends to the disk. Before that, only a power cut could lose them.
pub fn flush(project: &Project) {
    let path = path(project);
    if path.exists() {
        let _ = project.append(&path).map(|file| file.sync_data());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::outcome::Outcome;

    const HEADER: &str = "iteration,mode,duration_seconds,commit_hash,stories_complete,stories_total,stuck_count,\
                          timestamp,outcome,cost_usd,tokens,check,attempts,other_seconds";

    #[test]
    fn rows_are_read_by_the_names_of_their_columns() {
        let text = format!(
            "{HEADER}\n1,implement,127,abc1234,0,5,0,2026-11-16T08:00:00Z,ok,0.5000,7,,2,67\n\
             2,review,8,,0,5,1,,\"a, b\",,0,,1,0\nnot a row\n{HEADER}\n3,review,9,,0\n4,review,x,,,,,x,max-cost,x,,,x,\n"
        );
        let found = parse(text.as_bytes());
        let first = SummaryRow {
            iteration: 1,
            mode: "implement".into(),
            duration_seconds: 127,
            commit_hash: "abc1234".into(),
            stories_total: 5,
            timestamp: Stamp::parse("2026-11-16T08:00:00Z"),
            outcome: Some(IterationOutcome::Ok),
            cost_usd: Some(0.5),
            tokens: 7,
            attempts: 2,
            other_seconds: 67,
            ..SummaryRow::default()
        };
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], first);
        assert_eq!(found[0].seconds(), 194);
        assert_eq!((found[1].duration_seconds, found[1].outcome), (8, None), "an outcome of another version");
        let outcome = Some(IterationOutcome::Run(Outcome::MaxCost));
        assert_eq!(
            found[2],
            SummaryRow { iteration: 4, mode: "review".into(), outcome, ..SummaryRow::default() }
        );
        let moved = parse(b"timestamp,mode,iteration,other\n2026-11-16T08:00:00Z,review,4,x\n");
        assert_eq!((moved[0].iteration, moved[0].mode.as_str()), (4, "review"));
        assert!(parse(b"").is_empty());
    }

    /// The name of a check is the user's or the repository's text.
    #[test]
    fn a_field_of_any_content_stays_one_field() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project { root: dir.path().canonicalize().unwrap() };
        let logs = project.work_dir().join("logs");
        std::fs::create_dir_all(&logs).unwrap();
        let contents = ["a, b", "say \"hi\"", "two\nlines", "=cmd|' /C calc'!A0", "\r", ",", "\""];
        let row =
            |check: &&str| SummaryRow { check: (*check).to_owned(), tokens: 7, ..SummaryRow::default() };
        let rows: Vec<SummaryRow> = contents.iter().map(row).collect();
        rows.iter().for_each(|row| add(&project, row).unwrap());
        let one_line = |row: &SummaryRow| SummaryRow { check: row.check.replace('\n', " "), ..row.clone() };
        assert_eq!(read(&project), rows.iter().map(one_line).collect::<Vec<_>>());
    }

    #[test]
    fn a_quote_without_its_end_costs_no_other_row() {
        let rest = |iteration: u32| format!("{iteration},implement,1,,0,0,0,,ok,,0,,1,0\n");
        let torn = "2,implement,1,,0,0,0,,ok,,0,\"no end\n2,a\"b,\"c\n";
        let found = parse(format!("{HEADER}\n{}{torn}{}", rest(1), rest(3)).as_bytes());
        assert_eq!(found.iter().map(|row| row.iteration).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn a_torn_row_is_neither_read_nor_kept() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project { root: dir.path().canonicalize().unwrap() };
        let logs = project.work_dir().join("logs");
        std::fs::create_dir_all(&logs).unwrap();
        assert!(read(&project).is_empty());
        let row = |iteration| SummaryRow { iteration, timestamp: Some(Stamp(0)), ..SummaryRow::default() };
        add(&project, &row(1)).unwrap();
        let text = std::fs::read_to_string(logs.join(FILE)).unwrap();
        std::fs::write(logs.join(FILE), format!("{text}2,implem")).unwrap();
        assert_eq!(read(&project), [row(1)]);
        add(&project, &row(2)).unwrap();
        let line = |n| format!("{n},,0,,0,0,0,1970-01-01T00:00:00.000Z,,,0,,0,0\n");
        let text = std::fs::read_to_string(logs.join(FILE)).unwrap();
        assert_eq!(text, format!("{HEADER}\n{}{}", line(1), line(2)));
    }
}

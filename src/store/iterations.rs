//! `ralph/logs/summary.csv`, as far as a summary needs it: the columns are found by their names.

use super::file;
use super::project::Project;
use crate::core::time::Stamp;

const LARGEST: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Iteration {
    pub mode: String,
    pub duration_seconds: f64,
    /// Empty where nothing was committed.
    pub commit_hash: String,
    pub timestamp: Option<Stamp>,
}

/// One a row, in their order. What cannot be read is no iteration.
pub fn read(project: &Project) -> Vec<Iteration> {
    let path = project.resolve(&project.work_dir().join("logs").join("summary.csv"));
    let bytes = path.ok().and_then(|path| file::read_bounded(&path, LARGEST).ok()?).unwrap_or_default();
    parse(&String::from_utf8_lossy(&bytes))
}

fn parse(text: &str) -> Vec<Iteration> {
    let mut lines = text.lines();
    // Our own columns hold no quoted commas; what comes behind them is not asked for.
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').map(str::trim).collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let cell = |name: &str| {
            let at = header.iter().position(|column| *column == name);
            at.and_then(|at| cells.get(at)).copied().unwrap_or_default()
        };
        cell("iteration").parse::<u64>().ok()?;
        let duration: f64 = cell("duration_seconds").parse().unwrap_or(0.0);
        Some(Iteration {
            mode: cell("mode").to_owned(),
            duration_seconds: if duration.is_finite() { duration.max(0.0) } else { 0.0 },
            commit_hash: cell("commit_hash").to_owned(),
            timestamp: Stamp::parse(cell("timestamp")),
        })
    };
    lines.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_by_the_names_of_their_columns() {
        let header = "iteration,mode,duration_seconds,commit_hash,stories_complete,stories_total,stuck_count,timestamp,outcome";
        let found = parse(&format!(
            "{header}\n1,implement,127,abc1234,0,5,0,2026-11-16T08:00:00Z,\n2,review,8.5,,0,5,1,,\"a, b\"\n\
             not a row\n{header}\n3,review,x,,0\n"
        ));
        let first = Iteration {
            mode: "implement".into(),
            duration_seconds: 127.0,
            commit_hash: "abc1234".into(),
            timestamp: Stamp::parse("2026-11-16T08:00:00Z"),
        };
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], first);
        assert_eq!((found[1].duration_seconds, found[1].commit_hash.as_str()), (8.5, ""));
        assert_eq!(found[2], Iteration { mode: "review".into(), ..Iteration::default() });
        assert!(parse("").is_empty());
    }
}

//! What every benchmark needs.
#![allow(dead_code, reason = "each benchmark uses its own part")]

use std::error::Error;
use std::io::{StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::LazyLock;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// Runs the benchmark, or tells `cargo test` that it is one. `run` says whether every figure is within its limit.
pub fn main(name: &str, run: impl FnOnce(&mut StdoutLock) -> Outcome<bool>) -> ExitCode {
    let mut out = std::io::stdout().lock();
    if !std::env::args().any(|argument| argument == "--bench") {
        let _ = writeln!(out, "{name}: measured only by `cargo bench --bench {name}`");
        return ExitCode::SUCCESS;
    }
    match run(&mut out) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How many rounds are timed: `RALPH_BENCH_ROUNDS`, or as many as the benchmark thinks right.
pub fn rounds(usual: usize) -> usize {
    let wanted = std::env::var("RALPH_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(usual).max(1)
}

pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A program as users get it, or the one in `RALPH_BENCH_PROGRAMS`. Those that cargo builds beside a bench are not
/// optimised, and have the features of the tests' own dependencies mixed in.
pub fn shipped(name: &str) -> PathBuf {
    static DIR: LazyLock<PathBuf> = LazyLock::new(|| match std::env::var_os("RALPH_BENCH_PROGRAMS") {
        Some(chosen) => chosen.into(),
        None => build(),
    });
    DIR.join(name)
}

fn build() -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = project.join("target/shipped");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked", "--manifest-path"])
        .arg(project.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        // Those that a benchmark starts: each takes a minute to link.
        .args(["--bin", "ralph", "--bin", "ralph-stop-hook", "--bin", "ralph-session-start-hook"])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the programs could not be built");
    target.join("release")
}

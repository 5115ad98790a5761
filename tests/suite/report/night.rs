//! A night of `ralph run` in a real repository, with a scripted agent: commits, a rejected claim, a usage limit, guidance,
//! a warning of the circuit breaker, an agent that fails, and checks that pass in the end. The clock is moved, so the
//! night takes a few seconds.

use crate::env::{Clock, Env, wait_until};
use crate::skip::skip;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

pub const TASK: &str = "Accept every date format of ISO 8601 in the importer, and cover each with a test.";
const AGENT: &str = include_str!("agent.sh");
const CHECK: &str = "#!/bin/sh\nfor test in tests/*_test.sh; do sh \"$test\" || exit 1; done\n\
                     ./parses 2026-W47-1 || { echo '2026-W47-1: not parsed'; exit 1; }\n";
const TEST: &str = ". ./src/dates.sh\n\
                    is() { [ \"$(parse \"$2\")\" = \"$1\" ] || { echo \"$2: expected $1\"; exit 1; }; }\n";

const LEGACY: &str = ". ./src/dates.sh\nif parse 16.11.26 >/dev/null; then echo '16.11.26: two digits are no year'; exit 1; fi\n";

/// What is written about the night.
pub struct Night {
    pub run_id: String,
    pub page: String,
    pub markdown: String,
    pub all: String,
}

/// Returns the night, which is run once for all tests.
pub fn night() -> &'static Night {
    static NIGHT: OnceLock<Night> = OnceLock::new();
    NIGHT.get_or_init(run)
}

fn run() -> Night {
    let env = Env::named("importer");
    // The evening before: 2026-11-16T21:30:00Z.
    let clock = env.at(13 * 3600 + 1800).clock();
    repository(&env);
    let flags =
        ["--json", "--verify", "./check.sh", "--timeout", "10h", "--max-cost", "8", "--max-iterations", "20"];
    let call = env.run_claude(AGENT, &flags).args(&["--permission-mode", "acceptEdits", TASK]);
    let mut run = call.var("GIT_CONFIG_NOSYSTEM", "1").spawn();
    run.until(r#""event":"waiting""#);
    // The wait has begun once the runner looks at the clock again and again.
    clock.wait_until_seen();
    advance(&clock, 5700 + 120);
    wait_until("the agent is at its sixth start", || env.base.join("at-6").exists());
    env.guidance(&["forbid", "changing the signature of parse"]).ok();
    env.guidance(&["encourage", "one commit per format"]).ok();
    env.touch("go-6");
    let run = run.wait();
    assert_eq!(run.code, Some(0), "{run:?}");
    let path = env.ralph(&["report"]).ok();
    let path = Path::new(path.trim());
    let run_id = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let page = fs::read_to_string(path).unwrap();
    let [markdown, all] = [["report", "--markdown"], ["report", "--all"]].map(|args| env.ralph(&args).ok());
    let all = fs::read_to_string(all.trim()).unwrap();
    Night { run_id, page, markdown, all }
}

/// Moves the clock on from where the agent left it.
fn advance(clock: &Clock, seconds: i64) {
    let text = fs::read_to_string(&clock.path).unwrap();
    let now: f64 = text.trim().parse().unwrap();
    let new = clock.path.with_extension("test");
    fs::write(&new, format!("{:.3}", now + seconds as f64)).unwrap();
    fs::rename(new, &clock.path).unwrap();
}

fn repository(env: &Env) {
    env.write("src/dates.sh", "# Prints a date as year, month and day.\nparse() { return 1; }\n");
    env.write(
        "src/import.sh",
        ". ./src/dates.sh\nwhile read -r when what; do parse \"$when\" && echo \"$what\"; done\n",
    );
    env.write("tests/dates_test.sh", format!("{TEST}is \"2026 11 16\" 2026-11-16\n"));
    env.write("tests/legacy_test.sh", LEGACY);
    env.write("README.md", "# Dates\n");
    env.write("parses", "#!/bin/sh\n. ./src/dates.sh\n[ -n \"$(parse \"$1\")\" ]\n");
    env.write("check.sh", CHECK);
    for name in ["check.sh", "parses"] {
        let path = env.path(name);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    git(env, &["init", "-q", "-b", "main"]);
    git(env, &["add", "."]);
    git(env, &["commit", "-q", "-m", "a parser of dates"]);
}

/// Returns whether the machine has git; if not, says that the test is skipped.
pub fn has_git() -> bool {
    let found = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        skip("git is not installed");
    }
    found
}

pub fn git(env: &Env, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(args)
        .current_dir(&env.project)
        .env("HOME", env.base.join("home"))
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "user").env(format!("GIT_{who}_EMAIL"), "user@example.com");
        git.env(format!("GIT_{who}_DATE"), "1794850000 +0000");
    }
    let output = git.output().expect("git is there");
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

//! The system calls of a command, and a run in which one of them is killed or fails.

use super::scenarios::Scenario;
use crate::env::{Env, Run};
use std::collections::BTreeMap;
use std::fmt;
use std::process::Command;

/// The calls that change files or could.
const WRITING: &str = "open,openat,openat2,creat,write,pwrite64,writev,ftruncate,truncate,fsync,fdatasync,rename,renameat,\
                       renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat,\
                       flock,copy_file_range,sendfile";
/// The calls that read records; they only fail.
const READING: &str = "statx,newfstatat,stat,lstat,read,getdents64";
const WRITE_ERRORS: [&str; 4] = ["ENOSPC", "EIO", "EACCES", "EMFILE"];

/// The nth call of its name.
#[derive(Clone, Debug)]
pub struct Point {
    call: String,
    nth: usize,
    writes: bool,
    /// As `strace` shows it.
    line: String,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.call, self.nth, self.line)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Kill,
    Write(&'static str),
    Read(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Kill => f.write_str("killed"),
            Fault::Write(error) | Fault::Read(error) => write!(f, "failed with {error}"),
        }
    }
}

impl Fault {
    pub fn is_kill(self) -> bool {
        self == Fault::Kill
    }

    pub fn is_write_error(self) -> bool {
        matches!(self, Fault::Write(_))
    }

    pub fn is_read_error(self) -> bool {
        matches!(self, Fault::Read(_))
    }
}

impl Point {
    pub fn faults(&self) -> Vec<Fault> {
        match self.writes {
            true => [Fault::Kill].into_iter().chain(WRITE_ERRORS.map(Fault::Write)).collect(),
            false => vec![Fault::Read("EIO")],
        }
    }
}

/// Returns the path of `strace`, if it may trace here.
pub fn strace() -> Option<String> {
    let works = |path: &&str| {
        Command::new(path).args(["-o", "/dev/null", "true"]).status().is_ok_and(|run| run.success())
    };
    ["/usr/bin/strace", "/usr/local/bin/strace", "/bin/strace"].into_iter().find(works).map(str::to_owned)
}

/// Runs the command and returns its calls on files of this world. Only its main thread is traced: it does the saving, and
/// a signal for it ends all.
pub fn list(env: &Env, strace: &str, scenario: &Scenario) -> Vec<Point> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let trace = format!("trace={WRITING},{READING}");
    let args = ["-y", "-s", "0", "-o", log.to_str().unwrap(), "-e", &trace];
    let run = (scenario.call)(env).through(strace, &args).run();
    assert_eq!(run.code, Some(0), "the command works: {run:?}");
    parse(&std::fs::read_to_string(log).unwrap(), env.base.to_str().unwrap())
}

fn parse(log: &str, base: &str) -> Vec<Point> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for line in log.lines() {
        let Some((call, rest)) = line.split_once('(') else { continue };
        let nth = counts.entry(call).or_default();
        *nth += 1;
        if !rest.contains(base) {
            continue;
        }
        let opens = matches!(call, "open" | "openat" | "openat2");
        let changes = ["O_CREAT", "O_WRONLY", "O_RDWR", "O_TRUNC"].iter().any(|flag| rest.contains(flag));
        let writes = if opens { changes } else { WRITING.split(',').any(|name| name == call) };
        // Of what is only read, our records matter.
        let is_record = || {
            ["/data/", "/project/.claude/ralph"].iter().any(|part| rest.contains(&format!("{base}{part}")))
        };
        if !writes && !is_record() {
            continue;
        }
        let line = rest.replace(base, "").chars().take(120).collect();
        found.push(Point { call: call.to_owned(), nth: *nth, writes, line });
    }
    found
}

/// Runs the command with a fault at this call.
pub fn inject(env: &Env, strace: &str, scenario: &Scenario, point: &Point, fault: Fault) -> Run {
    let what = match fault {
        Fault::Kill => "signal=KILL".to_owned(),
        Fault::Write(error) | Fault::Read(error) => format!("error={error}"),
    };
    let inject = format!("inject={}:{what}:when={}", point.call, point.nth);
    let trace = format!("trace={}", point.call);
    (scenario.call)(env).through(strace, &["-o", "/dev/null", "-e", &trace, "-e", &inject]).run()
}

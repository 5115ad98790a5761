//! Keeps the house in order: which part may know which, and what the pure middle must not touch.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot continue must say why"
)]

use std::fs;
use std::path::{Path, PathBuf};

const MAX_FILE_LINES: usize = 500;
const MAX_BINARY_LINES: usize = 15;
const MAX_FOLDER_ENTRIES: usize = 16;

/// A source file: its path below `src`, and its lines without comments and tests.
struct Source {
    path: String,
    lines: Vec<String>,
}

impl Source {
    /// Lines with their number, for messages.
    fn with<'a>(&'a self, part: &'a str) -> impl Iterator<Item = String> + 'a {
        let found = self.lines.iter().enumerate().filter(move |(_, line)| line.contains(part));
        found.map(|(index, line)| format!("  src/{}:{}: {}", self.path, index + 1, line.trim()))
    }
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn sources() -> Vec<Source> {
    let (mut folders, mut found) = (vec![src()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let lines = production(&text);
                let path = path.strip_prefix(src()).unwrap().to_str().unwrap().to_owned();
                found.push(Source { path, lines });
            }
        }
    }
    assert!(found.len() > 30, "the sources were not found");
    found
}

/// Returns the lines of a file with comments and everything that only tests see blanked, so that line numbers stay true.
/// A module of tests ends the file.
fn production(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut source = text.lines();
    while let Some(line) = source.next() {
        if line.trim() != "#[cfg(test)]" {
            lines.push(if line.trim_start().starts_with("//") { String::new() } else { line.to_owned() });
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let mut item = source.next().unwrap_or_default();
        while item.trim_start().starts_with("#[") {
            item = source.next().unwrap_or_default();
            lines.push(String::new());
        }
        if item.contains("mod tests") && indent.is_empty() {
            break;
        }
        lines.extend([String::new(), String::new()]);
        if item.trim_end().ends_with('{') {
            let end = format!("{indent}}}");
            while source.next().is_some_and(|line| line != end) {
                lines.push(String::new());
            }
            lines.push(String::new());
        }
    }
    lines
}

fn below(folder: &str) -> Vec<Source> {
    let prefix = format!("{folder}/");
    let found: Vec<_> = sources().into_iter().filter(|source| source.path.starts_with(&prefix)).collect();
    assert!(!found.is_empty(), "src/{folder} is empty or has moved: tell this test where");
    found
}

fn refuse(sources: &[Source], parts: &[&str], why: &str) {
    let offences: Vec<_> =
        sources.iter().flat_map(|source| parts.iter().flat_map(|part| source.with(part))).collect();
    assert!(offences.is_empty(), "{why}\n{}", offences.join("\n"));
}

/// Both ways to name a sibling of one's own folder.
fn refuse_modules(folder: &str, modules: &[&str], why: &str) {
    let paths: Vec<String> = modules
        .iter()
        .flat_map(|name| {
            [format!("crate::{name}"), format!("super::super::{name}"), format!("ralph::{name}")]
        })
        .collect();
    let grouped: Vec<String> = below(folder)
        .iter()
        .flat_map(|source| source.with("use crate::{").collect::<Vec<_>>())
        .filter(|line| modules.iter().any(|name| line.contains(name)))
        .collect();
    assert!(grouped.is_empty(), "{why}\n{}", grouped.join("\n"));
    refuse(&below(folder), &paths.iter().map(String::as_str).collect::<Vec<_>>(), why);
}

#[test]
fn the_core_touches_nothing_outside_itself() {
    let touching = [
        "std::fs",
        "std::env",
        "std::process",
        "std::net",
        "std::io",
        "std::os",
        "std::thread",
        "use std::{",
        "fs2::",
        "dirs::",
        "File::",
    ];
    refuse(
        &below("core"),
        &touching,
        "src/core decides and must be testable with values alone: files, environment, processes and threads are \
         read in src/store or src/hook and handed in as arguments",
    );
}

#[test]
fn the_core_has_no_clock() {
    refuse(
        &below("core"),
        &["SystemTime", "Instant", "Utc::now", "Local::now", "chrono::Local", "std::time::", "RandomState"],
        "src/core gets `now` as an argument, so that a night can be tested in a millisecond and RALPH_NOW rules \
         every decision: the clock is read in src/store/world.rs only",
    );
}

#[test]
fn the_core_knows_nobody() {
    refuse_modules(
        "core",
        &["store", "claude", "scan", "engine", "hook", "run", "view", "cli"],
        "src/core is the middle: every folder may use it and it uses none, so that the rules can be read alone",
    );
}

#[test]
fn the_store_knows_only_the_core() {
    refuse_modules(
        "store",
        &["claude", "hook", "view", "cli"],
        "src/store keeps files for every engine: what it knew of Claude Code or of screens, the runner would inherit",
    );
}

#[test]
fn claudes_formats_know_only_core_and_store() {
    refuse_modules(
        "claude",
        &["hook", "view", "cli"],
        "src/claude translates Claude Code's formats: what is done with them is the hooks' and the commands' business",
    );
}

#[test]
fn only_one_folder_opens_network_connections() {
    let others: Vec<_> = sources().into_iter().filter(|source| !source.path.starts_with("notify/")).collect();
    refuse(&others, &["ureq::"], "only src/notify connects to other machines, see SECURITY.md");
    let hooks: Vec<_> = below("hook")
        .into_iter()
        .filter(|source| source.path != "hook/wake/answer.rs")
        .chain(below("store"))
        .collect();
    refuse(
        &hooks,
        &["notify::answers", "notify::deliver", "notify::http"],
        "a hook never waits for a network: it starts `ralph deliver`; only the asynchronous waker looks for answers",
    );
}

#[test]
fn views_know_only_core_and_store() {
    refuse_modules(
        "view",
        &["claude", "hook", "cli"],
        "src/view shows what it is given: a view that fetched or changed things could not be shown elsewhere",
    );
    refuse(
        &below("view"),
        &["std::fs", "std::process", "SystemTime", "Instant"],
        "src/view prints what it is given: reading, writing and the clock are the store's",
    );
}

#[test]
fn commands_do_not_know_the_hooks() {
    refuse_modules(
        "cli",
        &["hook"],
        "a slash command's hook calls the command, so a command that called a hook would close a circle",
    );
}

#[test]
fn the_engine_knows_neither_hooks_nor_screens() {
    refuse_modules(
        "engine",
        &["claude", "hook", "run", "view", "cli", "demo"],
        "src/engine is what the hook and the runner share: it cannot depend on one of them",
    );
}

#[test]
fn only_the_claude_agent_knows_claudes_stream() {
    let others: Vec<_> = sources()
        .into_iter()
        .filter(|source| source.path != "run/agent/claude.rs" && !source.path.starts_with("claude/stream/"))
        .collect();
    refuse(
        &others,
        &["claude::stream", "stream::Lines", "stream::events"],
        "src/run/agent is the seam for agents: what Claude Code prints becomes our own events in its module, and \
         nothing else depends on it",
    );
}

#[test]
fn agents_are_known_by_their_seam_alone() {
    let others: Vec<_> = sources()
        .into_iter()
        .filter(|source| source.path.starts_with("run/") && !source.path.starts_with("run/agent/"))
        .collect();
    refuse(
        &others,
        &["crate::claude", "agent::claude", "Agent::Claude", "Agent::Command"],
        "the runner uses an agent through AgentProgram, so that adding one is one module and one line in src/run/agent",
    );
}

#[test]
fn run_lock_and_summary_have_one_owner() {
    let without =
        |owner: &str| sources().into_iter().filter(move |source| source.path != owner).collect::<Vec<_>>();
    refuse(
        &without("store/runner/summary.rs"),
        &["\"summary.csv\"", "csv::"],
        "src/store/runner/summary.rs is the only reader and writer of ralph/logs/summary.csv",
    );
    refuse(
        &without("store/runner/run_lock.rs"),
        &["\"run.lock\""],
        "src/store/runner/run_lock.rs is the only reader and writer of ralph/run.lock",
    );
}

#[test]
fn programs_are_found_in_one_place() {
    let others = sources().into_iter().filter(|source| {
        let uses_processes =
            source.lines.iter().any(|line| line.contains("process::") && line.contains("Command"));
        source.path != "store/process/lookup.rs" && uses_processes
    });
    refuse(
        &others.collect::<Vec<_>>(),
        &["Command::new"],
        "src/store/process/lookup.rs finds every program we start, by an absolute path: a bare name would be looked for \
         in the project too where PATH has an empty or relative entry",
    );
    refuse(&sources(), &["process::Command::new"], "use store::process::lookup::command");
}

#[test]
fn git_is_started_in_one_place() {
    let others = sources().into_iter().filter(|source| source.path != "store/project/git_process.rs");
    refuse(
        &others.collect::<Vec<_>>(),
        &["command(\"git\")"],
        "src/store/project/git_process.rs is the only place that starts git: it switches off what a repository's \
         settings would start",
    );
}

#[test]
fn the_demo_meets_ralph_from_outside() {
    refuse_modules(
        "demo",
        &["claude", "hook", "run", "scan", "cli"],
        "the demo shows what the real programs say: it starts them, and what it knew of their inside it could make up",
    );
}

#[test]
fn hooks_and_views_stay_apart() {
    refuse_modules(
        "hook",
        &["view"],
        "a hook runs at every turn and answers in JSON: screens, colours and tables are not its business",
    );
}

#[test]
fn only_the_store_arms_a_loop() {
    let others: Vec<_> = sources()
        .into_iter()
        .filter(|source| !matches!(source.path.as_str(), "store/user/armed.rs" | "core/record/armed.rs"))
        .collect();
    refuse(
        &others,
        &["ArmedLoop::attach"],
        "an ArmedLoop promises that this user armed it and that breaker and commands are attached: only \
         src/store/user/armed.rs knows that",
    );
}

#[test]
fn only_the_store_writes_files() {
    let others: Vec<_> = sources()
        .into_iter()
        .filter(|source| !source.path.starts_with("store/") && !source.path.starts_with("demo/"))
        .collect();
    refuse(
        &others,
        &["fs::write", "File::create", "OpenOptions", "fs::rename", "fs::copy", "create_new"],
        "src/store writes files whole or not at all and keeps them private: use store::file (the demo writes its own \
         temporary project)",
    );
}

#[test]
fn files_of_the_project_are_opened_through_the_door() {
    let opening = ["read_bounded(", "read_json(", "File::open(", "fs::read", "creating(", "append_line("];
    let why = "a repository may make any of our files a link, a pipe or an endless file: open it with Project::read, \
               replace or append, or where Project::file says that it is (src/store/project/door.rs)";
    let owners = [
        "store/state/",
        "store/tasks/",
        "store/project/archive.rs",
        "store/project/git.rs",
        "store/project/layout.rs",
        "store/project/official.rs",
        "store/runner/logs.rs",
        "store/runner/summary.rs",
    ];
    let places = [".state()", ".config()", ".lock()", ".kill_switch()", ".work_dir()", ".claude_dir()"];
    let mut found = Vec::new();
    for source in sources().into_iter().filter(|source| source.path != "store/project/door.rs") {
        let is_owner = owners.iter().any(|owner| source.path.starts_with(owner));
        for line in opening.iter().flat_map(|part| source.with(part)) {
            let is_users = line.contains("data_dir") || line.contains("fs::read_dir");
            if (is_owner && !is_users) || places.iter().any(|place| line.contains(place)) {
                found.push(line);
            }
        }
    }
    assert!(found.is_empty(), "{why}\n{}", found.join("\n"));
}

#[test]
fn every_record_of_the_user_is_on_the_list_that_uninstall_purges() {
    let known = ralph::store::project::leftovers::RECORDS;
    for source in sources() {
        for line in source.with("data_dir") {
            let Some((_, rest)) = line.split_once(".join(\"") else { continue };
            let name = rest.split('"').next().unwrap();
            let is_known = known.contains(&name) || ["plugin", "ralph", "data"].contains(&name);
            assert!(is_known, "add it to RECORDS in src/store/project/leftovers.rs:\n{line}");
        }
    }
}

#[test]
fn a_folder_shows_one_idea() {
    let mut folders = vec![src()];
    while let Some(folder) = folders.pop() {
        let entries: Vec<PathBuf> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        let is_code = entries.iter().any(|path| path.extension().is_some_and(|ending| ending == "rs"));
        assert!(
            !is_code || entries.len() <= MAX_FOLDER_ENTRIES,
            "{} has {} entries: group them by idea",
            folder.display(),
            entries.len()
        );
        folders.extend(entries.into_iter().filter(|path| path.is_dir()));
    }
}

#[test]
fn fs2_stays_behind_one_module() {
    let others: Vec<_> = sources().into_iter().filter(|source| source.path != "store/file/lock.rs").collect();
    refuse(
        &others,
        &["fs2"],
        "src/store/file/lock.rs is the one place that locks, so that every wait is bounded",
    );
}

#[test]
fn the_clock_is_read_in_one_place() {
    let others: Vec<_> = sources().into_iter().filter(|source| source.path != "store/world.rs").collect();
    refuse(
        &others,
        &["SystemTime", "Utc::now", "Local::now"],
        "only src/store/world.rs reads the calendar clock, else RALPH_NOW would not replace it in every binary",
    );
}

#[test]
fn limits_and_waits_follow_the_clock_of_the_tests() {
    let folders = [
        "claude",
        "cli/loops",
        "cli/run",
        "cli/setup",
        "demo",
        "engine",
        "hook",
        "notify",
        "run",
        "scan",
        "store",
    ];
    for folder in folders {
        let sources: Vec<_> =
            below(folder).into_iter().filter(|source| source.path != "store/world.rs").collect();
        refuse(
            &sources,
            &["std::time::Instant", "Duration, Instant", "time::{Instant"],
            "use store::world::Instant: a test moves it with RALPH_NOW=@FILE and waits for no second of its own",
        );
    }
}

#[test]
fn hooks_use_no_argument_parser() {
    for folder in ["core", "store", "claude", "hook", "view"] {
        refuse(&below(folder), &["clap"], "clap costs a hook more than its work does: it belongs to src/cli");
    }
}

#[test]
fn nothing_is_printed_behind_an_answers_back() {
    refuse(
        &sources(),
        &["println!", "print!(", "eprintln!", "dbg!("],
        "a hook's stdout holds its one JSON answer and nothing else, and a reader may be gone: use write! on purpose",
    );
}

#[test]
fn a_file_holds_one_idea() {
    for source in sources() {
        let length = source.lines.len();
        assert!(
            length <= MAX_FILE_LINES,
            "src/{} has {length} lines without its tests: over {MAX_FILE_LINES} a file holds two ideas, split it",
            source.path
        );
    }
}

#[test]
fn binaries_only_call_the_library() {
    for source in below("bin") {
        let length = source.lines.len();
        assert!(
            length <= MAX_BINARY_LINES,
            "src/{} has {length} lines: what is in a binary cannot be tested as a library, keep it to {MAX_BINARY_LINES}",
            source.path
        );
    }
}

//! Keeps the house in order: which part may know which, and what the pure middle must not touch.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot continue must say why"
)]

use std::collections::{BTreeMap, BTreeSet};
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

/// Returns the modules at the top of the crate that a file names, in any form of a path.
fn uses(source: &Source) -> BTreeSet<String> {
    let text = source.lines.join("\n");
    let depth = source.path.trim_end_matches("/mod.rs").matches('/').count() + 1;
    let above = "super::".repeat(depth);
    let mut found = BTreeSet::new();
    for root in ["crate::", "ralph::", above.as_str()] {
        for (at, _) in text.match_indices(root) {
            let is_whole = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            let path = &text[at + root.len()..];
            match path.strip_prefix('{') {
                _ if !is_whole => {}
                Some(group) => found.extend(names_in(group)),
                None => found.extend(word(path)),
            }
        }
    }
    found
}

/// Returns the first names in a group of imports, up to its closing brace.
fn names_in(group: &str) -> Vec<String> {
    let (mut depth, mut begins, mut found) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && c.is_alphanumeric() => {
                begins = false;
                found.extend(word(&group[at..]));
            }
            _ => {}
        }
    }
    found
}

fn word(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    Some(word).filter(|word| !word.is_empty())
}

/// The rows of the table of folders in ARCHITECTURE.md: a folder or file at the top, and what it may use.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells.get(1)?.strip_prefix("`src/")?.strip_suffix('`')?.trim_end_matches(['/']);
        let uses = cells.get(3)?.split(", ").filter(|used| *used != "nothing").map(str::to_owned).collect();
        Some((name.trim_end_matches(".rs").to_owned(), uses))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn folders_use_what_the_table_in_the_architecture_says() {
    let table = table();
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for source in sources().iter().filter(|source| source.path != "lib.rs") {
        let folder = source.path.split(['/', '.']).next().unwrap().to_owned();
        for name in uses(source) {
            if name != folder && src().join(&name).exists() | src().join(format!("{name}.rs")).exists() {
                places.insert((folder.clone(), name.clone()), source.path.clone());
                used.entry(folder.clone()).or_default().insert(name);
            }
        }
        used.entry(folder).or_default();
    }
    for ((folder, name), place) in &places {
        assert!(
            table.get(folder).is_some_and(|allowed| allowed.contains(name)),
            "src/{place} uses {name}: the table in ARCHITECTURE.md does not let {folder} use it. Dependencies point \
             inward, so that a folder can be read without those around it"
        );
    }
    assert_eq!(table, used, "the table in ARCHITECTURE.md names what is not used, or leaves a folder out");
}

#[test]
fn folders_use_each_other_without_a_cycle() {
    let mut left = table();
    while !left.is_empty() {
        let names: BTreeSet<String> = left.keys().cloned().collect();
        let before = left.len();
        left.retain(|_, uses| !uses.is_disjoint(&names));
        let cycle: Vec<&String> = left.keys().collect();
        assert!(left.len() < before, "the table in ARCHITECTURE.md has a cycle among {cycle:?}");
    }
}

#[test]
fn what_the_architecture_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let all = sources();
    let text: String = all.iter().flat_map(|source| source.lines.clone()).collect::<Vec<_>>().join("\n");
    let words: BTreeSet<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    for quoted in page.split('`').skip(1).step_by(2) {
        if ["src/", "tests/", "docs/", "scripts/", "hooks/", "commands/"]
            .iter()
            .any(|top| quoted.starts_with(top))
        {
            let path = quoted.split("/NAME").next().unwrap();
            assert!(root.join(path).exists(), "ARCHITECTURE.md names {quoted}, which is not there");
        } else if quoted.contains("::") && !quoted.contains(' ') {
            let names: Vec<&str> = quoted.split("::").collect();
            for name in &names {
                let is_module = all
                    .iter()
                    .any(|source| source.path.split('/').any(|part| part.trim_end_matches(".rs") == *name));
                assert!(
                    is_module || words.contains(name),
                    "ARCHITECTURE.md names {quoted}: there is no {name}"
                );
            }
            if let [.., owner, member] = names[..]
                && owner.starts_with(char::is_uppercase)
            {
                assert!(
                    all.iter().any(|source| has_member(source, owner, member)),
                    "ARCHITECTURE.md names {quoted}: {owner} has no {member}"
                );
            }
        }
    }
}

/// Returns whether a file defines a type, or adds to it, and has this function or variant of it.
fn has_member(source: &Source, owner: &str, member: &str) -> bool {
    let words = |line: &str| -> Vec<String> {
        line.split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_owned).collect()
    };
    let defines = source.lines.iter().map(|line| words(line)).any(|words| {
        let is_item =
            ["struct", "enum", "trait", "impl"].iter().any(|item| words.iter().any(|word| word == item));
        is_item && words.iter().any(|word| word == owner)
    });
    let is_member = |line: &String| {
        line.contains(&format!("fn {member}("))
            || words(line.trim()).first().is_some_and(|word| word == member)
    };
    defines && source.lines.iter().any(is_member)
}

#[test]
fn a_name_in_the_architecture_needs_its_own_type() {
    let lines = "pub struct HookOutput;\nimpl HookOutput {\n    pub fn continue_turn() {}\n}\nenum Kind {\n    Url,\n}";
    let source = Source { path: "x.rs".into(), lines: lines.lines().map(str::to_owned).collect() };
    assert!(has_member(&source, "HookOutput", "continue_turn") && has_member(&source, "Kind", "Url"));
    assert!(!has_member(&source, "Answer", "continue_turn") && !has_member(&source, "Kind", "Text"));
}

#[test]
fn every_form_of_a_path_is_seen() {
    let text = "use crate::{\n    core::{a, b},\n    store,\n};\nfn f() { crate::view::show(); super::super::hook::x() }";
    let lines = text.lines().map(str::to_owned).collect();
    let found = uses(&Source { path: "run/agent.rs".into(), lines });
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["core", "hook", "store", "view"]);
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
fn only_one_folder_opens_network_connections() {
    let others: Vec<_> = sources().into_iter().filter(|source| !source.path.starts_with("notify/")).collect();
    refuse(&others, &["ureq::"], "only src/notify connects to other machines, see SECURITY.md");
    // The scripted model of the doctor listens on this machine alone.
    let others: Vec<_> =
        others.into_iter().filter(|source| !source.path.starts_with("claude/round_trip/")).collect();
    refuse(
        &others,
        &["std::net", "net::{", "TcpStream", "TcpListener", "UdpSocket", "UnixStream"],
        "only src/notify opens connections, and the doctor's scripted model in src/claude/round_trip",
    );
    refuse(
        &below("claude/round_trip"),
        &["UNSPECIFIED", "0.0.0.0", "to_socket_addrs", "UdpSocket"],
        "the doctor's scripted model is for this machine alone: Ipv4Addr::LOCALHOST",
    );
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
fn views_print_what_they_are_given() {
    refuse(
        &below("view"),
        &["std::fs", "std::env", "std::process", "SystemTime", "Instant"],
        "src/view prints what it is given: reading, writing and the clock are the store's",
    );
}

#[test]
fn only_the_claude_agent_and_its_log_know_claudes_stream() {
    let knows = |path: &str| {
        path.starts_with("run/agent/") || path.starts_with("claude/stream/") || path == "claude/agent_log.rs"
    };
    let others: Vec<_> = sources().into_iter().filter(|source| !knows(&source.path)).collect();
    refuse(
        &others,
        &["claude::stream", "stream::Lines", "stream::events", "super::stream", "agent_log::of_stream"],
        "src/run/agent is the seam for agents: what Claude Code prints becomes our own events and entries there, and \
         nothing else depends on it",
    );
}

#[test]
fn agents_are_known_by_their_seam_alone() {
    let others: Vec<_> = sources()
        .into_iter()
        .filter(|source| !source.path.starts_with("run/agent/") && source.path != "cli/run/run_args.rs")
        .collect();
    refuse(
        &others,
        &["agent::claude", "agent::command"],
        "a run uses its agent through AgentProgram, so that adding one is one module and the lines in src/run/agent; \
         only src/cli/run/run_args.rs chooses one by flags",
    );
    let named: Vec<_> =
        others.iter().flat_map(|source| source.with("Agent::")).filter(|line| names_agent(line)).collect();
    assert!(
        named.is_empty(),
        "only src/cli/run/run_args.rs chooses an agent by its flags\n{}",
        named.join("\n")
    );
    let runner: Vec<_> =
        below("run").into_iter().filter(|source| !source.path.starts_with("run/agent/")).collect();
    refuse(&runner, &["crate::claude"], "the runner knows Claude Code only through src/run/agent");
}

/// Returns whether a line names a variant of the runner's `Agent`, not something of another type with such an ending.
fn names_agent(line: &str) -> bool {
    line.match_indices("Agent::").any(|(at, found)| {
        let before = line[..at].chars().next_back();
        let is_whole =
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && !line[..at].ends_with("ureq::");
        is_whole && line[at + found.len()..].starts_with(char::is_uppercase)
    })
}

#[test]
fn a_variant_of_the_agent_is_seen() {
    for line in ["match agent { Agent::Codex(_) => 1 }", "use crate::run::agent::Agent::Claude;"] {
        assert!(names_agent(line), "{line}");
    }
    for line in ["ureq::Agent::New", "Agent::default()", "Trusted::UserAgent::X"] {
        assert!(!names_agent(line), "{line}");
    }
}

#[test]
fn processes_are_started_in_few_places() {
    let starts = [
        "store/process/program.rs",
        // Their guards.
        "store/process/group.rs",
        "run/process/reaper.rs",
        // What it does not wait for.
        "store/process/notify.rs",
        "store/process/opener.rs",
        // `ps`, outside Linux.
        "store/process/pid.rs",
    ];
    // A response and a session have a status too.
    let others: [(&str, &[&str]); 2] =
        [("notify/http.rs", &["answer.status()"]), ("claude/client/sessions.rs", &["entry.status()"])];
    let mut found = Vec::new();
    for source in sources().into_iter().filter(|source| !starts.contains(&source.path.as_str())) {
        let known = others.iter().find(|(path, _)| *path == source.path).map_or(&[][..], |(_, known)| known);
        for line in [".spawn()", ".output()", ".status()"].iter().flat_map(|part| source.with(part)) {
            if !known.iter().any(|known| line.contains(known)) {
                found.push(line);
            }
        }
    }
    assert!(
        found.is_empty(),
        "src/store/process/program.rs starts programs, with a limit and bounded output: use its functions, or name the \
         place here and in ARCHITECTURE.md\n{}",
        found.join("\n")
    );
}

#[test]
fn run_lock_and_summary_have_one_owner() {
    refuse(
        &others_than("store/runner/summary.rs"),
        &["\"summary.csv\"", "csv::"],
        "src/store/runner/summary.rs is the only reader and writer of ralph/logs/summary.csv",
    );
    refuse(
        &others_than("store/runner/run_lock.rs"),
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
    for (part, place) in [("armed::begin", "cli/loops/start.rs"), ("armed::continued", "cli/run/plan.rs")] {
        refuse(
            &others_than(place),
            &[part],
            "only src/cli/loops/start.rs begins a loop, and only src/cli/run/plan.rs continues one of the user's folder",
        );
    }
    let mut imports =
        sources().iter().flat_map(|source| source.with("armed::{").collect::<Vec<_>>()).collect::<Vec<_>>();
    imports.retain(|line| line.contains("begin") || line.contains("continued"));
    assert!(
        imports.is_empty(),
        "call them as armed::begin and armed::continued, so that this test sees who does\n{}",
        imports.join("\n")
    );
}

fn others_than(place: &str) -> Vec<Source> {
    sources().into_iter().filter(|source| source.path != place).collect()
}

#[test]
fn only_the_store_changes_files() {
    let others: Vec<_> = sources()
        .into_iter()
        .filter(|source| !source.path.starts_with("store/") && !source.path.starts_with("demo/"))
        .collect();
    let changing = [
        "fs::write",
        "fs::rename",
        "fs::copy",
        "fs::remove",
        "fs::create",
        "fs::set_permissions",
        "fs::hard_link",
        "fs::symlink(",
        "File::create",
        "OpenOptions",
        "DirBuilder",
        "create_new",
        "set_len(",
        "set_modified",
        "tempfile::",
    ];
    refuse(
        &others,
        &changing,
        "src/store writes files whole or not at all, keeps them private and removes only ours: use store::file (the \
         demo writes its own temporary project)",
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

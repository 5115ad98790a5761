//! The command: which run it is about, where the page goes, and what it does not touch.

use crate::env::{DONE, Env, OTHER, SESSION, write_program};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the report of the newest run, or of the one that is named, from its default place.
fn page(env: &Env, args: &[&str]) -> (PathBuf, String) {
    let path = PathBuf::from(env.ralph(&[&["report"], args].concat()).ok().trim());
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

fn run_ids(env: &Env) -> Vec<String> {
    crate::env::names_in(&env.data().join("runs")).into_iter().filter(|name| name.len() == 32).collect()
}

#[test]
fn it_is_about_the_newest_run_of_the_project_or_the_one_that_is_named() {
    let env = Env::new();
    env.start("the first task", &[]);
    env.at(60).turn(SESSION, DONE);
    env.at(120).start_in(OTHER, "the second task", &[]);
    let (path, text) = page(env.at(200), &[]);
    assert!(text.contains("the second task") && text.contains("Still running"), "{text}");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "only the user reads it");
    let first = run_ids(&env).into_iter().find(|id| !path.to_str().unwrap().contains(id.as_str())).unwrap();
    let (_, text) = page(&env, &[&first[..8]]);
    assert!(text.contains("the first task") && text.contains("Task complete after 1 iteration"), "{text}");
    let run = env.ralph(&["report", "nothing-like-it"]);
    assert_eq!(run.code, Some(64));
    assert!(run.stderr.starts_with("error: no such run: nothing-like-it\nhint: "), "{run:?}");
    let run = env.ralph(&["report", ""]);
    assert!(run.stderr.starts_with("error: 2 runs begin with"), "{run:?}");
}

#[test]
fn a_project_without_a_run_says_so() {
    let env = Env::new();
    let run = env.ralph(&["report"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("error: no run of this project yet"), "{run:?}");
    let all = env.ralph(&["report", "--all", "--markdown"]).ok();
    assert!(all.contains("0 runs in 0 projects"), "{all}");
    assert!(!env.exists(".claude") && !env.exists("ralph"));
}

#[test]
fn it_goes_where_the_user_says() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(60).turn(SESSION, DONE);
    let printed = env.ralph(&["report", "--out", "night.html"]).ok();
    assert_eq!(printed.trim(), env.path("night.html").to_str().unwrap());
    assert!(env.read("night.html").starts_with("<!doctype html>"));
    env.ralph(&["report", "--markdown", "--out", "night.md"]).ok();
    assert!(env.read("night.md").starts_with("## Ralph: complete\n"));
    fs::create_dir(env.path("folder")).unwrap();
    for (out, what) in [("folder", "--out is a folder"), ("/dev/stdout", "--out is not a regular file")] {
        let run = env.ralph(&["report", "--out", out]);
        assert_eq!(run.code, Some(64), "{run:?}");
        assert!(run.stderr.contains(what), "{run:?}");
    }
    let run = env.ralph(&["report", "--out", "no/such/folder/x.html"]);
    assert!(run.code == Some(70) && run.stderr.contains("could not write"), "{run:?}");
}

#[test]
fn it_is_opened_by_the_platforms_own_program() {
    let env = Env::new();
    env.start("task", &[]);
    let bin = env.base.join("bin");
    fs::create_dir(&bin).unwrap();
    env.var("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let opened = env.base.join("opened");
    write_program(&bin.join(opener), &format!("#!/bin/sh\nprintf '%s' \"$1\" > {}\n", opened.display()));
    let printed = env.ralph(&["report", "--open"]).ok();
    assert_eq!(fs::read_to_string(&opened).unwrap(), printed.trim());
    write_program(&bin.join(opener), "#!/bin/sh\nexit 3\n");
    let run = env.ralph(&["report", "--open"]);
    assert_eq!(run.code, Some(69), "{run:?}");
    assert!(
        run.stderr.contains("could not open the report") && run.stderr.contains(printed.trim()),
        "{run:?}"
    );
}

#[test]
fn a_run_without_events_tells_what_is_known() {
    let env = Env::git();
    env.start("an old task", &["--verify", "true"]);
    env.at(60).turn(SESSION, DONE);
    for id in run_ids(&env) {
        fs::remove_dir_all(env.data().join("runs").join(id)).unwrap();
    }
    let markdown = env.ralph(&["report", "--markdown"]).ok();
    for part in [
        "Task complete after 1 iteration, verified by `true`",
        "This run has no events",
        "| `true` | passed | unknown | unknown | unknown |",
        "How the time was spent is unknown.",
        "Unknown: the run has no events.",
        "Commits and changed files are unknown",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    assert!(env.ralph(&["report", "--all", "--markdown"]).ok().contains("1 run in 1 project: 1 complete"));
}

#[test]
fn an_open_question_comes_first_with_the_command_that_answers() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(60).turn(SESSION, "<promise>DECIDE:SQLite or <b>Postgres</b>?</promise>");
    let (_, text) = page(&env, &[]);
    let needs = &text[text.find("What needs you").unwrap()..text.find("<h2>Evidence").unwrap()];
    assert!(needs.contains("SQLite or &lt;b&gt;Postgres&lt;/b&gt;?"), "{needs}");
    assert!(needs.contains("<code>/ralph:answer TEXT</code>"), "{needs}");
    env.at(90).ralph(&["answer", "SQLite"]).ok();
    let markdown = env.ralph(&["report", "--markdown"]).ok();
    assert!(markdown.contains("You answered: `SQLite`") && !markdown.contains("answer TEXT"), "{markdown}");
}

#[test]
fn what_the_agent_did_in_a_session_is_there_on_demand() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.worked(5);
    env.at(20).stop(SESSION).with(&transcript).says("the first step is done").run();
    let (_, text) = page(env.at(30), &[]);
    let iterations = &text[text.find("<h2>Iterations").unwrap()..];
    assert!(
        iterations.contains("the first step is done") && iterations.contains("end of the log"),
        "{iterations}"
    );
}

#[test]
fn text_of_others_is_never_markup() {
    let env = Env::new();
    let hostile =
        "</script><script>alert(1)</script><img src=x onerror=alert(1)> \u{202e}gnp\u{200b}\u{1b}[31m \"'`|";
    env.start(hostile, &["--verify", "echo '<script>alert(2)</script>'; false"]);
    env.guidance(&["forbid", hostile]).ok();
    env.at(60).turn(SESSION, &format!("{hostile}\n\n<promise>COMPLETE</promise>"));
    env.at(90).turn(SESSION, &format!("<promise>BLOCKED:{hostile}</promise>"));
    let (_, text) = page(&env, &[]);
    for part in ["<script", "<img", "onerror=alert(1)>", "\u{202e}", "\u{200b}", "\u{1b}"] {
        assert!(!text.contains(part), "{part:?}: {text}");
    }
    assert!(text.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    let markdown = env.ralph(&["report", "--markdown"]).ok();
    let outside = outside_code(&markdown);
    assert!(!outside.contains("<script") && !outside.contains("<img"), "{outside}");
    env.ralph(&["report", "--all"]).ok();
}

/// Returns Markdown without its code: from each row of back-quotes to the next one of the same length.
fn outside_code(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('`') {
        out.push_str(&rest[..at]);
        let fence: String = rest[at..].chars().take_while(|c| *c == '`').collect();
        rest = &rest[at + fence.len()..];
        let ends = rest.match_indices(&fence).map(|(end, _)| end);
        let is_whole =
            |end: &usize| !rest[..*end].ends_with('`') && !rest[end + fence.len()..].starts_with('`');
        let end = ends.into_iter().find(is_whole).unwrap_or_else(|| panic!("code without an end: {rest}"));
        rest = &rest[end + fence.len()..];
    }
    out + rest
}

/// A repository's settings are the agent's to write.
#[test]
fn settings_of_a_repository_start_no_program_and_hide_no_commit() {
    if !crate::report::night::has_git() {
        return;
    }
    let env = Env::new();
    super::night::git(&env, &["init", "-q", "-b", "main"]);
    env.write("a.txt", "one\n");
    super::night::git(&env, &["add", "."]);
    super::night::git(&env, &["commit", "-q", "-m", "one"]);
    env.start("task", &[]);
    env.write("a.txt", "two\n");
    super::night::git(&env, &["commit", "-q", "-a", "-m", "two"]);
    env.at(60).turn(SESSION, "a step");
    let trap = env.base.join("trap");
    write_program(&env.base.join("trap.sh"), &format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", trap.display()));
    let trap_program = env.base.join("trap.sh");
    for key in [
        "diff.external",
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "pager.diff",
        "diff.t.textconv",
        "diff.t.command",
        "gpg.program",
        "core.sshCommand",
    ] {
        super::night::git(&env, &["config", key, trap_program.to_str().unwrap()]);
    }
    for (key, value) in [
        ("log.showSignature", "true"),
        ("diff.orderFile", "/no/such/file"),
        ("color.ui", "always"),
        ("diff.noprefix", "true"),
        ("diff.renames", "copies"),
        ("i18n.logOutputEncoding", "UTF-16"),
    ] {
        super::night::git(&env, &["config", key, value]);
    }
    super::night::git(&env, &["replace", "HEAD", "HEAD~1"]);
    env.write(".gitattributes", "* diff=t\n");
    let markdown = env.ralph(&["report", "--markdown"]).ok();
    assert!(markdown.contains("| `a.txt` | +1 −1 | 1 |"), "{markdown}");
    assert!(markdown.contains("- iteration 1: ") && markdown.contains("`two`"), "{markdown}");
    assert!(!trap.exists(), "{}", fs::read_to_string(&trap).unwrap_or_default());
}

#[test]
fn a_report_changes_nothing_in_the_project() {
    let env = Env::git();
    env.start("task", &[]);
    env.at(60).turn(SESSION, "a step");
    let state = |root: &Path| {
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let meta = entry.metadata().unwrap();
                if meta.is_dir() {
                    folders.push(entry.path())
                } else {
                    files.push((entry.path(), meta.modified().unwrap()))
                }
            }
        }
        files.sort();
        files
    };
    let before = state(&env.project);
    for args in [&["report"][..], &["report", "--markdown"], &["report", "--all"]] {
        env.ralph(args).ok();
    }
    assert_eq!(state(&env.project), before);
}

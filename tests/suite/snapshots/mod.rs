//! Everything that a person or an agent reads, as snapshots: a change of wording is a diff to review.
//!
//! Each test writes one page, in `pages/`. After a change of words:
//! `INSTA_UPDATE=always cargo test --test suite snapshots`, then read the diff.

mod breaker;
mod doctor;
mod endings;
mod guidance;
mod help;
mod logs;
mod monitor;
mod notices;
mod permissions;
mod prompts;
mod refusals;
mod scan;
mod settings;
mod setup;
mod supervision;
mod tasks;
mod turns;
mod views;
mod waits;

use crate::env::{Answer, Env, Program, Run, SESSION};
use regex::Regex;
use serde_json::Value;

/// Texts with their titles, without what differs from machine to machine.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn new() -> Page {
        Page::default()
    }

    fn section(&mut self, env: &Env, title: &str, text: &str) -> &mut Page {
        let text = masked(env, &format!("=== {title}\n{}", text.trim_end()));
        self.text.push_str(&format!("{text}\n\n"));
        self
    }

    /// Adds what a program printed, and its exit code unless it is 0.
    fn run(&mut self, env: &Env, title: &str, run: &Run) -> &mut Page {
        let mut text = with_readable_json(&run.stdout);
        for part in [&run.stderr, &exit(run)] {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(part);
        }
        self.section(env, title, &text)
    }

    fn ralph(&mut self, env: &Env, args: &[&str]) -> &mut Page {
        self.run(env, &format!("ralph {}", shown(args)), &env.ralph(args))
    }

    fn ralph_guidance(&mut self, env: &Env, args: &[&str]) -> &mut Page {
        self.run(env, &format!("ralph-guidance {}", shown(args)), &env.guidance(args))
    }

    /// Adds the answer of a hook: what the user reads, and what the agent reads.
    fn answer(&mut self, env: &Env, title: &str, answer: &Answer) -> &mut Page {
        let parts =
            [("user", &answer.message), ("agent", &answer.block), ("agent's context", &answer.context)];
        let parts =
            parts.into_iter().filter_map(|(who, text)| Some(format!("--- {who}\n{}\n", text.as_ref()?)));
        let denied = answer.permission.as_ref().filter(|(behavior, _)| behavior == "deny");
        let denied = denied.map(|(_, text)| format!("--- agent, in place of the tool\n{text}\n"));
        self.section(env, title, &parts.chain(denied).collect::<String>())
    }

    /// Adds what a slash command answers; the agent reads the rest through `ralph relay`.
    fn command(&mut self, env: &Env, command: &str, text: &str) -> &mut Page {
        let answer = env.types(SESSION, command, text);
        let text = format!("/ralph:{command} {text}");
        match answer.block {
            Some(block) => self.section(env, &format!("{} (no model call)", text.trim()), &block),
            None => self.message(env, text.trim(), &answer),
        }
    }

    /// Adds only what the user reads.
    fn message(&mut self, env: &Env, title: &str, answer: &Answer) -> &mut Page {
        self.section(env, title, answer.message.as_deref().unwrap_or("(nothing)"))
    }

    fn check(&self, name: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("pages");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, self.text));
    }
}

fn exit(run: &Run) -> String {
    match run.code {
        Some(0) => String::new(),
        code => format!("[exit code {}]", code.map_or_else(|| "none".into(), |code| code.to_string())),
    }
}

fn shown(args: &[&str]) -> String {
    let quoted = |arg: &&str| match arg {
        arg if arg.is_empty() || arg.contains([' ', '\n', '|']) => format!("'{arg}'"),
        arg => (*arg).to_owned(),
    };
    args.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn started(flags: &[&str]) -> Env {
    let env = Env::new();
    start(&env, flags);
    env
}

/// Starts a loop in its session, so that the agent has read the whole task.
fn start(env: &Env, flags: &[&str]) {
    let quoted = |flag: &&str| if flag.contains(' ') { format!("\"{flag}\"") } else { (*flag).to_owned() };
    let flags = flags.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let answer = env.types(SESSION, "start", &format!("make the suite green {flags}"));
    assert!(answer.block.is_none(), "{answer:?}");
}

/// Spreads lines that are JSON objects over several lines.
fn with_readable_json(text: &str) -> String {
    let readable = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(value) if value.is_object() => serde_json::to_string_pretty(&value).unwrap(),
        _ => line.to_owned(),
    };
    text.lines().map(readable).collect::<Vec<_>>().join("\n")
}

fn masked(env: &Env, text: &str) -> String {
    let programs = std::path::Path::new(Program::Ralph.path()).parent().unwrap().to_str().unwrap();
    // A long path of the temporary folder may have been cut.
    let mut text = replace(text, r"(?m)^Ralph · /.*$", "Ralph · [base]/project");
    for (what, by) in [
        (env.base.to_str().unwrap(), "[base]"),
        (programs, "[bin]"),
        (env!("CARGO_PKG_VERSION"), "[version]"),
    ] {
        text = text.replace(what, by);
    }
    for (pattern, by) in [
        (r"(?-u:\b)[0-9a-f]{32}(?-u:\b)", "[run id]"),
        (r"(?m)((?-u:\b)run |--run |^  )[0-9a-f]{7,8}(?-u:\b)", "$1[run id]"),
        (r"RALPH_[0-9A-F]{16}", "[marker]"),
        (r"(process|pid) [0-9]+", "$1 [pid]"),
        (r"(?-u:\b)[0-9]+ ?ms(?-u:\b)", "[n] ms"),
        (r"(?m)^(Duration:|Avg/iter:)( +)[0-9]+s", "$1$2[n]s"),
        // On a busy machine what takes no time takes some.
        (r#"("(?:duration|other)_seconds": )[0-9](?-u:\b)"#, "$1[n]"),
        (r"(?m)^(── iteration .* · )[0-9]+s", "$1[n]s"),
    ] {
        text = replace(&text, pattern, by);
    }
    text
}

fn replace(text: &str, pattern: &str, by: &str) -> String {
    Regex::new(pattern).unwrap().replace_all(text, by).into_owned()
}

//! The reference pages and the code they describe. `scripts/update-docs` writes what is generated.

use super::{page, pages, quoted, root, rows, user};
use crate::env::{SESSION, command_file, names_in};
use clap::{Arg, Command};
use ralph::cli::command_line;
use ralph::cli::loops::{guidance_program, slash};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// Compares the part of a page between two comments with what the code says now, or writes it.
fn assert_generated(name: &str, part: &str, now: &str) {
    let (begin, end) =
        (format!("<!-- begin {part}: scripts/update-docs -->\n"), format!("<!-- end {part} -->"));
    let text = page(name);
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{name}: no `{begin}`"));
    let (written, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{name}: no `{end}`"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(name), format!("{before}{begin}{now}{end}{after}")).unwrap();
    } else {
        assert!(written == now, "{name}: {part} is out of date: run scripts/update-docs");
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Returns a command's name with its arguments, and a table of its flags.
fn reference(program: &str, command: &Command) -> String {
    let mut command = command.clone().bin_name(format!("{program} {}", command.get_name()));
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace(" [OPTIONS]", "");
    let about = command.get_about().unwrap().to_string();
    let mut text = format!("### `{program} {}`\n\n{about}.\n\n    {usage}\n", command.get_name());
    let shown: Vec<&Arg> =
        command.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_id() != "help").collect();
    if !shown.is_empty() {
        text.push_str("\n| argument | meaning |\n|---|---|\n");
    }
    for arg in shown {
        text.push_str(&format!("| {} | {} |\n", escaped(&name(arg)), escaped(&meaning(arg))));
    }
    text + "\n"
}

fn name(arg: &Arg) -> String {
    let values: Vec<String> = arg.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
    let Some(long) = arg.get_long() else { return format!("`{}`", values.join(" ")) };
    let short = arg.get_short().map_or_else(String::new, |short| format!("`-{short}`, "));
    let takes_value = arg.get_action().takes_values();
    let value = if takes_value { format!(" {}", values.join(" ")) } else { String::new() };
    format!("{short}`--{long}{value}`")
}

fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let takes_value = arg.get_action().takes_values();
    let values: Vec<String> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if takes_value && !values.is_empty() {
        text.push_str(&format!(": {}", values.join(", ")));
    }
    let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_value && !default.is_empty() {
        text.push_str(&format!(" [default: {}]", default.join(" ")));
    }
    text.trim_start_matches(": ").to_owned()
}

#[test]
fn the_command_reference_is_generated_from_the_command_line() {
    for (program, part, command) in [
        ("ralph", "ralph", command_line::command()),
        ("ralph-guidance", "ralph-guidance", guidance_program::command()),
    ] {
        let now: String = command.get_subcommands().map(|sub| reference(program, sub)).collect();
        assert_generated("docs/commands.md", part, &format!("\n{now}"));
    }
}

/// The frontmatter of the command files is what the client shows in its menu.
#[test]
fn the_slash_commands_are_generated_from_their_files() {
    let mut names = slash::COMMANDS.to_vec();
    names.sort_unstable();
    let mut now = String::from("\n| command | what it does |\n|---|---|\n");
    for name in names {
        let path = command_file(root(), name);
        let text = fs::read_to_string(&path).unwrap();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_else(|| panic!("{}: no {name}", path.display())).trim_matches('"').to_owned()
        };
        let usage = format!("/ralph:{name} {}", field("argument-hint"));
        now.push_str(&format!("| `{}` | {} |\n", escaped(usage.trim()), escaped(&field("description"))));
    }
    assert_generated("docs/commands.md", "slash commands", &format!("{now}\n"));
}

/// The names of the slash commands in the files, the installed plugin, the help and the docs.
#[test]
fn everything_that_lists_slash_commands_agrees() {
    let mut known = slash::COMMANDS.to_vec();
    known.sort_unstable();
    let in_plugin = |plugin: &std::path::Path| -> Vec<String> {
        let files = names_in(&plugin.join("commands"));
        files.iter().map(|name| name.trim_end_matches(".md").to_owned()).collect()
    };
    // A client loads the commands that the manifest names, and skills, which can register hooks.
    let manifest: Value = serde_json::from_str(&page(".claude-plugin/plugin.json")).unwrap();
    let named = manifest["commands"].as_array().unwrap().iter().filter_map(Value::as_str);
    let named = named.map(|path| path.trim_start_matches("./commands/").trim_end_matches(".md").to_owned());
    let loaded: BTreeSet<String> = named.chain(names_in(&root().join("skills"))).collect();
    assert_eq!(loaded.into_iter().collect::<Vec<_>>(), known);
    assert_eq!(in_plugin(root()), known);
    let env = user();
    let target = env.base.join("plugin");
    env.ralph(&["install", "--to", target.to_str().unwrap()]).ok();
    assert_eq!(in_plugin(&target), known);
    let listed = |text: &str| -> Vec<String> {
        let names =
            text.lines().filter_map(|line| line.trim_start_matches(['|', ' ', '`']).strip_prefix("/ralph:"));
        let names = names.filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase()).next());
        names.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    };
    assert_eq!(listed(&env.ralph(&["help"]).ok()), known);
    assert_eq!(listed(&page("docs/commands.md")), known);
    for name in known {
        let text = fs::read_to_string(command_file(root(), name)).unwrap();
        let flag = if matches!(name, "encourage" | "forbid") { " --slash" } else { "" };
        let call = format!("{name}{flag} --session ${{CLAUDE_SESSION_ID}}");
        assert!(text.contains(&call), "{name}: {text}");
        let help = env.types(SESSION, "help", name).block.unwrap();
        assert!(help.starts_with(&format!("/ralph:{name}")), "{name}: {help}");
    }
}

/// Returns the long flags of a command.
fn flags(command: &Command) -> Vec<String> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect()
}

/// Flags of other programs that the docs mention.
const OTHER_FLAGS: [&str; 16] = [
    "--help",
    "--version",
    "--bins",
    "--release",
    "--locked",
    "--path",
    "--marketplace",
    "--completion-promise",
    "--bench",
    "--exclude-standard",
    "--prefix",
    "--lib",
    "--test",
    "--plugin-dir",
    "--worktree",
    "--bg",
];

#[test]
fn the_docs_name_no_flag_that_does_not_exist() {
    let commands = [command_line::command(), guidance_program::command()];
    let ours = commands.iter().flat_map(|command| command.get_subcommands()).flat_map(flags);
    let known: BTreeSet<String> = ours.chain(OTHER_FLAGS.map(String::from)).collect();
    let mut unknown: Vec<String> = Vec::new();
    let pages =
        pages().into_iter().filter(|(page, _)| page != "CONTRIBUTING.md" && page != "ARCHITECTURE.md");
    for (page, text) in pages {
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
            let flag = word.starts_with("--") && word.len() > 3 && word.as_bytes()[2].is_ascii_lowercase();
            unknown.extend((flag && !known.contains(word)).then(|| format!("{page}: {word}")));
        }
    }
    assert_eq!(unknown, [""; 0], "no command has it");
}

#[test]
fn every_check_of_the_doctor_is_in_its_page() {
    let shown: Value = serde_json::from_str(&user().ralph(&["doctor", "--json", "--quick"]).stdout).unwrap();
    let ids: Vec<String> =
        shown["checks"].as_array().unwrap().iter().map(|check| text(&check["id"])).collect();
    let page = page("docs/doctor.md");
    let section = page.split("\n## ").find(|section| section.starts_with("Checks")).unwrap();
    let named: Vec<String> = rows(section).iter().flat_map(|row| quoted(&row[0])).collect();
    assert_eq!(named, ids);
}

#[test]
fn every_event_of_a_run_is_in_its_page() {
    let page = page("docs/runner.md");
    let run = user().ralph(&["run", "--json", "--verify", "true", "do it"]).ok();
    for event in run.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let name = text(&event["event"]);
        assert!(page.contains(&format!("`{name}`")), "docs/runner.md: {name}");
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

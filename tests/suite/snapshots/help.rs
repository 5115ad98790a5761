//! The help of every program and command.

use super::Page;
use crate::env::{Env, Run};

/// Returns the names of the commands that a program's help lists.
fn commands(help: &Run) -> Vec<String> {
    let lines = help.stdout.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.map(str::to_owned).collect();
    assert!(names.len() > 5, "{help:?}");
    names
}

#[test]
fn help() {
    let env = Env::new();
    let mut page = Page::new();
    page.ralph(&env, &["--help"]);
    for command in commands(&env.ralph(&["--help"])) {
        page.ralph(&env, &[&command, "--help"]);
    }
    page.ralph_guidance(&env, &["--help"]);
    for command in commands(&env.guidance(&["--help"])) {
        page.ralph_guidance(&env, &[&command, "--help"]);
    }
    page.ralph(&env, &["help"]).check("help");
}

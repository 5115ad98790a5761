//! Completions and man pages, generated from the definition of the command line.

use crate::cli::loops::guidance_program;
use crate::cli::{Failure, command_line};
use crate::core::text::nearest::nearest;
use crate::store::file::{self, Privacy};
use crate::store::process::names;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::path::Path;

pub const PROGRAMS: [&str; 2] = [names::RALPH, names::GUIDANCE];

/// Returns the completion script of one of our programs.
pub fn completions(shell: Shell, name: &str) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(name), name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the man page of `ralph`, or of one of its commands.
pub fn man(command: Option<&str>) -> Result<String, Failure> {
    let wanted = match command {
        None => PROGRAMS[0].to_owned(),
        Some(page) if PROGRAMS.contains(&page) => page.to_owned(),
        Some(command) => format!("ralph-{command}"),
    };
    let page = pages().into_iter().find(|page| page.get_name() == wanted);
    let page = page.ok_or_else(|| {
        let pages = pages();
        let meant = nearest(&wanted, pages.iter().map(Command::get_name));
        Failure::usage(format!("there is no man page {wanted}"))
            .did_you_mean(meant, "`ralph --help` lists the commands")
    })?;
    Ok(rendered(page)?)
}

/// Writes every page to a folder.
pub fn write_pages(dir: &Path) -> Result<String, Failure> {
    file::create_shared_dir(dir)?;
    let pages = pages();
    let count = pages.len();
    for page in pages {
        let path = dir.join(format!("{}.1", page.get_name()));
        file::replace(&path, rendered(page)?.as_bytes(), Privacy::Shared)?;
    }
    Ok(format!("Wrote {count} man pages to {}\n", dir.display()))
}

fn rendered(page: Command) -> anyhow::Result<String> {
    let mut text = Vec::new();
    Man::new(page).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn definition(name: &str) -> Command {
    if name == PROGRAMS[1] { guidance_program::command() } else { command_line::command() }
}

/// Returns each program and each command of `ralph`, named like its page.
fn pages() -> Vec<Command> {
    let mut pages: Vec<Command> = PROGRAMS.map(definition).into();
    for command in definition(PROGRAMS[0]).get_subcommands() {
        let [page, typed] = ["ralph-", "ralph "].map(|head| format!("{head}{}", command.get_name()));
        pages.push(command.clone().name(page).bin_name(typed).version(env!("CARGO_PKG_VERSION")));
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_command_has_a_page_and_completions() {
        for command in command_line::command().get_subcommands().map(Command::get_name) {
            assert!(man(Some(command)).unwrap().contains("SYNOPSIS"), "{command}");
            for shell in Shell::value_variants() {
                assert!(completions(*shell, "ralph").contains(command), "{shell}: {command}");
            }
        }
        assert!(man(Some("run")).unwrap().contains("\\fBralph run\\fR"), "as typed");
        assert!(man(None).unwrap().contains("ralph\\-run(1)"));
        assert_eq!(man(Some("ralph-guidance")).unwrap(), man(Some("guidance")).unwrap());
        assert!(man(Some("guidance")).unwrap().contains("encourage"));
        assert!(man(Some("relay")).is_err(), "it is hidden");
        assert!(completions(Shell::Bash, "ralph-guidance").contains("forbid"));
    }

    #[test]
    fn hidden_commands_are_not_completed() {
        for shell in Shell::value_variants() {
            assert!(!completions(*shell, "ralph").contains("relay"), "{shell}");
        }
    }
}

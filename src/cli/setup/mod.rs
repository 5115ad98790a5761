pub mod config;
pub mod demo;
pub mod doctor;
pub mod install;
pub mod pages;
pub mod statusline;
pub mod trust;
pub mod uninstall;

use crate::core::text::clean;

/// Lists the first few names, and counts the others.
fn first_few(names: impl IntoIterator<Item = String>) -> String {
    let mut names = names.into_iter();
    let shown: Vec<_> = names.by_ref().take(5).map(|name| clean::line(&name)).collect();
    let more = names.count();
    shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

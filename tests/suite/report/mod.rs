//! `ralph report`: a page about a run, in files, on stdout and in a browser.

mod browser;
mod command;
pub mod night;
mod page;
mod text;

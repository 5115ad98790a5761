//! The command line: one file per command, named after it.

pub mod answer;
pub mod archive;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod failure;
pub mod guidance;
pub mod guidance_program;
pub mod help;
pub mod history;
pub mod import;
pub mod init;
pub mod install;
pub mod pages;
pub mod program;
pub mod reset;
pub mod run;
pub mod run_args;
pub mod scan;
pub mod slash;
pub mod start;
pub mod status;
pub mod statusline;
pub mod stop;
pub mod trust;
pub mod uninstall;

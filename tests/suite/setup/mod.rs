mod demo;
pub mod demo_recording;
mod doctor;
mod from_git;
mod import;
mod init;
pub mod install;
mod uninstall;

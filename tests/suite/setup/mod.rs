mod demo;
pub mod demo_recording;
pub mod doctor;
mod from_git;
mod import;
mod init;
pub mod install;
mod uninstall;

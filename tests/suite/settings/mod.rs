mod config_command;
mod durations;
mod limits;
mod trust;
mod trusted_commands;
mod values;
mod variables;
mod verify_setting;

mod config_command;
mod trust;
mod trusted_commands;
mod values;
mod verify_setting;

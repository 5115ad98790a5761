mod archive;
mod bad_input;
mod bad_paths;
mod concurrency;
mod projects;
mod state_file;

mod at_once;
mod constraints;
mod constraints_turns;
mod entries;
mod file_changes;
mod freshness;
mod ownership;

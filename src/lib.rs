//! Ralph keeps Claude Code working on a task exactly as long as it should.
//!
//! Data flows one way: bytes in, a typed event, facts, a decision, text out. The disk is touched before
//! and after, never in between. Dependencies point inward, and `tests/architecture.rs` keeps it so.
//!
//! - [`core`]: the pure middle: time, limits, signals, breaker, the decision, all texts
//! - [`store`]: the only writer of files; clock and environment enter here
//! - [`claude`]: Claude Code's formats: hook input and output, transcript, plugin
//! - [`scan`]: constraints in the project, found at every turn
//! - [`engine`]: what both engines do with a turn: facts, decision, record
//! - [`hook`]: what each hook event does
//! - [`notify`]: the only network connections: notifications and answers to them
//! - [`run`]: the loop from outside: agent processes, heartbeat, pace, logs, summary
//! - [`view`]: what people look at
//! - [`cli`]: one file per command
//! - [`demo`]: a whole loop with a scripted agent; meets all of the above from outside
//! - [`multicall`]: runs `ralph` as another program, by the name it was started with

pub mod claude;
pub mod cli;
pub mod core;
pub mod demo;
pub mod engine;
pub mod hook;
pub mod multicall;
pub mod notify;
pub mod run;
pub mod scan;
pub mod store;
pub mod view;

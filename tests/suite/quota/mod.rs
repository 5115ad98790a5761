//! Budgets and the windows of the user's plan: what a loop does with the figures that the client tells.

mod budgets;
mod landing;
mod runner;

use crate::env::{Env, Program};
use serde_json::{Value, json};

/// What the client tells its status line.
pub struct Told<'e> {
    env: &'e Env,
    input: Value,
}

/// Begins what the client tells the status line of a session.
pub fn told<'e>(env: &'e Env, session: &str) -> Told<'e> {
    let input = json!({"session_id": session, "workspace": {"project_dir": env.project}});
    Told { env, input }
}

impl Told<'_> {
    /// The running cost, and for how many seconds this process of the client has had the session.
    pub fn cost(mut self, usd: f64, seconds: i64) -> Self {
        self.input["cost"] = json!({"total_cost_usd": usd, "total_duration_ms": seconds * 1000,
            "total_api_duration_ms": seconds * 500});
        self
    }

    pub fn context(mut self, percent: f64) -> Self {
        self.input["context_window"] = json!({"used_percentage": percent});
        self
    }

    pub fn window(mut self, name: &str, percent: f64, resets_at: Option<i64>) -> Self {
        self.input["rate_limits"][name] = json!({"used_percentage": percent, "resets_at": resets_at});
        self
    }

    /// Calls the status line as the client does.
    pub fn line(self) -> String {
        self.env.call(Program::Ralph).args(&["statusline"]).stdin(self.input.to_string()).run().ok()
    }
}

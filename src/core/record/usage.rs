//! What a loop has used of tokens and money.

use super::Usage;
use serde::{Deserialize, Serialize};

impl Usage {
    pub fn tokens(&self) -> u64 {
        [self.output_tokens, self.cache_read_tokens, self.cache_write_tokens]
            .into_iter()
            .fold(self.input_tokens, u64::saturating_add)
    }

    /// Adds what a turn used.
    pub fn add(&mut self, turn: &Usage) {
        let sum = |total: &mut u64, more: u64| *total = total.saturating_add(more);
        sum(&mut self.input_tokens, turn.input_tokens);
        sum(&mut self.output_tokens, turn.output_tokens);
        sum(&mut self.cache_read_tokens, turn.cache_read_tokens);
        sum(&mut self.cache_write_tokens, turn.cache_write_tokens);
        if turn.context_tokens > 0 {
            self.context_tokens = turn.context_tokens;
        }
        self.context_percent = turn.context_percent.or(self.context_percent);
        if let Some(cost) = turn.cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
            self.cost_source = turn.cost_source.or(self.cost_source);
        }
    }

    /// Returns what was used since an earlier moment: dollars and tokens.
    pub fn since(&self, before: &Usage) -> Spent {
        let cost = |usage: &Usage| usage.cost_usd.unwrap_or_default();
        Spent {
            usd: (cost(self) - cost(before)).max(0.0),
            tokens: self.tokens().saturating_sub(before.tokens()),
        }
    }
}

/// An amount of money and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub usd: f64,
    pub tokens: u64,
}

impl Spent {
    pub fn plus(self, more: Spent) -> Spent {
        Spent { usd: self.usd + more.usd, tokens: self.tokens.saturating_add(more.tokens) }
    }
}

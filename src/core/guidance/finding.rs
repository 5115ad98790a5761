//! A constraint the scanner found: what limits the agent's freedom, or what it must not touch.

use crate::core::text::clean;
use serde::{Deserialize, Serialize};

/// From least to most: what follows from a finding depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Only in `ralph scan`.
    #[default]
    Low,
    /// Shown by `scan` and `status`.
    Medium,
    /// Forbidden to the agent at each turn.
    High,
    /// Forbidden to the agent at each turn, and a start is refused.
    Critical,
}

pub const SEVERITIES: [Severity; 4] = [Severity::Critical, Severity::High, Severity::Medium, Severity::Low];

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }

    pub fn named(name: &str) -> Option<Severity> {
        SEVERITIES.into_iter().find(|severity| severity.name() == name)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// From rule, path and content: it survives line shifts, and changes with what was found.
    pub id: String,
    pub severity: Severity,
    pub category: String,
    pub description: String,
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub recommendation: String,
}

impl Finding {
    /// Returns `file:line`, as far as they are known.
    pub fn place(&self) -> String {
        let file = clean::line(&self.file);
        match self.line {
            Some(line) if !file.is_empty() => format!("{file}:{line}"),
            _ => file,
        }
    }

    /// Returns the key by which findings are sorted: worst first, then by place.
    pub fn rank(&self) -> (std::cmp::Reverse<Severity>, &str, Option<u64>, &str) {
        (std::cmp::Reverse(self.severity), &self.file, self.line, &self.id)
    }
}

//! The texts of a report: our own words, and what others wrote. A writer shows the second kind so that it cannot act.

use crate::core::text::clean;

/// A command, a path or an id is shown as long as this.
const MAX_CODE_COLUMNS: usize = 300;
/// A sentence of the agent, a client or a user is shown as long as this where it stands in a line.
const MAX_QUOTE_COLUMNS: usize = 600;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextSpan {
    /// Our own words.
    Plain(String),
    /// A command, a path or an id.
    Code(String),
    /// Prose of others.
    Quote(String),
}

pub type Words = Vec<TextSpan>;

pub fn plain(text: impl Into<String>) -> TextSpan {
    TextSpan::Plain(text.into())
}

pub fn code(text: &str) -> TextSpan {
    TextSpan::Code(clean::excerpt(text, MAX_CODE_COLUMNS))
}

pub fn quote(text: &str) -> TextSpan {
    TextSpan::Quote(clean::excerpt(text, MAX_QUOTE_COLUMNS))
}

/// Returns the words without any mark, for titles.
pub fn bare(words: &[TextSpan]) -> String {
    words
        .iter()
        .map(|(TextSpan::Plain(text) | TextSpan::Code(text) | TextSpan::Quote(text))| text.as_str())
        .collect()
}

/// Joins lists of words with a comma, and the last with "and".
pub fn listed(items: Vec<TextSpan>) -> Words {
    let last = items.len().saturating_sub(1);
    let mut words = Words::new();
    for (index, item) in items.into_iter().enumerate() {
        match index {
            0 => {}
            index if index == last => words.push(plain(" and ")),
            _ => words.push(plain(", ")),
        }
        words.push(item);
    }
    words
}

/// Returns `1 file` or `3 files`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Returns `$1.20`, or more digits for less than a cent.
pub fn dollars(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { format!("${cost:.4}") } else { format!("${cost:.2}") }
}

/// Returns the beginning of a commit's id, as git shows it.
pub fn short_commit(id: &str) -> String {
    id.chars().take(7).collect()
}

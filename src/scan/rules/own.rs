//! The project's own rules. A repository may bring any number of them, so they have limits in count, length and
//! compiled size, which bound their sum; what is over a limit is left out and named.

use crate::core::guidance::finding::Severity;
use crate::core::text::clean;
use globset::{Glob, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

pub const MAX_RULES: usize = 100;
pub const MAX_EXCLUDES: usize = 100;
/// The longest pattern or glob.
pub const MAX_PATTERN_BYTES: usize = 1000;
/// The compiled form of one pattern.
const MAX_COMPILED_BYTES: usize = 32 << 10;
/// What each thread may remember to search faster for one pattern.
const MAX_CACHE_BYTES: usize = 64 << 10;
const MAX_ID_CHARS: usize = 100;
const MAX_MESSAGE_CHARS: usize = 500;
/// More rules that are left out are counted, not named.
const MAX_NAMED: usize = 10;

/// A rule from the project's settings: a pattern in files, or files by their path.
pub struct OwnRule {
    pub id: String,
    pub severity: Severity,
    pub message: String,
    pub pattern: Option<Regex>,
    pub glob: Option<GlobMatcher>,
}

/// Returns the rules that can be used, and what to say about the others.
pub fn rules(given: &[Value]) -> (Vec<OwnRule>, Vec<String>) {
    let (mut rules, mut warnings) = (Vec::new(), Vec::new());
    for (index, value) in given.iter().enumerate().take(MAX_RULES) {
        match rule(value) {
            Ok(rule) => rules.push(rule),
            Err(wrong) => {
                let id = value["id"].as_str().map_or_else(|| format!("number {}", index + 1), str::to_owned);
                let id = clean::excerpt(&id, 60);
                warnings.push(clean::line(&format!("scan.rules: rule {id} is skipped: {wrong}")));
            }
        }
    }
    if warnings.len() > MAX_NAMED {
        let more = warnings.len() - MAX_NAMED;
        warnings.truncate(MAX_NAMED);
        warnings.push(format!("scan.rules: {more} more rules are skipped"));
    }
    if given.len() > MAX_RULES {
        let more = given.len() - MAX_RULES;
        warnings.push(format!("scan.rules: the last {more} rules are skipped: at most {MAX_RULES} are used"));
    }
    (rules, warnings)
}

/// Returns the globs that exclude files, and what to say if some are left out.
pub fn exclude(given: &[Value]) -> (Vec<String>, Option<String>) {
    let globs = given.iter().filter_map(Value::as_str).filter(|glob| glob.len() <= MAX_PATTERN_BYTES);
    let used: Vec<String> = globs.take(MAX_EXCLUDES).map(str::to_owned).collect();
    let given = given.iter().filter(|value| value.is_string()).count();
    let left_out = (used.len() < given).then(|| {
        let more = given - used.len();
        format!(
            "scan.exclude: {more} globs are skipped: at most {MAX_EXCLUDES} are used, each of at most \
             {MAX_PATTERN_BYTES} bytes"
        )
    });
    (used, left_out)
}

impl OwnRule {
    /// Returns whether it searches the content of this file.
    pub fn reads(&self, path: &str) -> bool {
        self.pattern.is_some() && self.glob.as_ref().is_none_or(|glob| glob.is_match(path))
    }

    /// Returns whether it matches this file by its path alone.
    pub fn names(&self, path: &str) -> bool {
        self.pattern.is_none() && self.glob.as_ref().is_some_and(|glob| glob.is_match(path))
    }

    pub fn hits<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        self.pattern.iter().flat_map(|pattern| pattern.find_iter(bytes)).map(|hit| hit.start())
    }
}

fn rule(value: &Value) -> Result<OwnRule, String> {
    let text = |name: &str| value[name].as_str().filter(|text| !text.trim().is_empty());
    let short = |text: &str, what: &str| match text.len() <= MAX_PATTERN_BYTES {
        true => Ok(()),
        false => Err(format!("its {what} has {} bytes, at most {MAX_PATTERN_BYTES}", text.len())),
    };
    let id = text("id").ok_or("it has no id")?;
    let severity = match text("severity") {
        None => Severity::High,
        Some(name) => Severity::named(name).ok_or_else(|| format!("'{name}' is not a severity"))?,
    };
    let pattern = text("pattern").map(|pattern| short(pattern, "pattern").and_then(|()| compile(pattern)));
    let glob = text("glob").or(text("path")).map(|glob| {
        short(glob, "glob")?;
        Glob::new(glob).map(|glob| glob.compile_matcher()).map_err(|error| error.to_string())
    });
    if pattern.is_none() && glob.is_none() {
        return Err("it has neither a pattern nor a glob".into());
    }
    Ok(OwnRule {
        id: clean::excerpt(id, MAX_ID_CHARS),
        severity,
        message: clean::excerpt(text("message").unwrap_or(id), MAX_MESSAGE_CHARS),
        pattern: pattern.transpose()?,
        glob: glob.transpose()?,
    })
}

fn compile(pattern: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(pattern);
    builder.unicode(false).size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_CACHE_BYTES);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            format!("its pattern is too large, at most {MAX_COMPILED_BYTES} bytes compiled")
        }
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_over_a_limit_are_left_out_and_named() {
        let mut given = vec![
            json!({"id": "long", "pattern": "x".repeat(MAX_PATTERN_BYTES + 1)}),
            json!({"id": "wide", "pattern": "[01]*1[01]{30000}x"}),
            json!({"id": "glob", "glob": "*".repeat(MAX_PATTERN_BYTES + 1)}),
        ];
        given.extend((0..MAX_RULES).map(|n| json!({"id": format!("r{n}"), "pattern": "todo"})));
        let (rules, warnings) = rules(&given);
        assert_eq!(rules.len(), MAX_RULES - 3);
        let expected = [
            "scan.rules: rule long is skipped: its pattern has 1001 bytes, at most 1000",
            "scan.rules: rule wide is skipped: its pattern is too large, at most 32768 bytes compiled",
            "scan.rules: rule glob is skipped: its glob has 1001 bytes, at most 1000",
            "scan.rules: the last 3 rules are skipped: at most 100 are used",
        ];
        assert_eq!(warnings, expected);
    }

    #[test]
    fn many_wrong_rules_are_counted() {
        let (_, warnings) = rules(&vec![json!({}); 90]);
        assert_eq!(warnings.len(), MAX_NAMED + 1);
        assert_eq!(warnings[MAX_NAMED], "scan.rules: 80 more rules are skipped");
    }

    #[test]
    fn globs_over_a_limit_exclude_nothing() {
        let given: Vec<_> = (0..MAX_EXCLUDES + 2).map(|n| json!(format!("g{n}"))).collect();
        let (used, told) = exclude(&given);
        assert_eq!(used.len(), MAX_EXCLUDES);
        assert!(told.is_some_and(|told| told.starts_with("scan.exclude: 2 globs are skipped")));
        assert_eq!(exclude(&given[..3]).1, None);
    }
}

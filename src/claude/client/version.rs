//! The version of Claude Code, and the oldest ones that work.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u64, pub u64, pub u64);

/// The oldest version whose output the runner understands.
pub const OLDEST: Version = Version(2, 0, 0);
/// The oldest version in which every part of the plugin works.
pub const OLDEST_FOR_PLUGIN: Version = Version(2, 1, 163);
/// The oldest version in which the `additionalContext` of a Stop hook continues the turn; an older one stops.
pub const OLDEST_WITH_STOP_CONTEXT: Version = Version(2, 1, 163);
/// The oldest version that loads a plugin's module.
pub const OLDEST_WITH_MODULES: Version = Version(2, 1, 286);

impl Version {
    /// Parses the output of `claude --version`, e.g. `2.1.325 (Claude Code)`.
    pub fn parse(text: &str) -> Option<Version> {
        let mut parts = text.split_whitespace().next()?.splitn(3, '.');
        let first = parts.next()?.parse().ok()?;
        let second = parts.next()?.parse().ok()?;
        let third = parts.next().unwrap_or("0");
        let digits = third.find(|c: char| !c.is_ascii_digit()).map_or(third, |end| &third[..end]);
        Some(Version(first, second, digits.parse().ok()?))
    }

    /// Parses the variable `AI_AGENT` that Claude Code gives its hooks, e.g. `claude-code_2-1-325_harness`.
    pub fn of_agent(text: &str) -> Option<Version> {
        let version = text.strip_prefix("claude-code_")?.split('_').next()?;
        let mut parts = version.split('-').map(|part| part.parse().ok());
        Some(Version(parts.next()??, parts.next()??, parts.next()??))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared_by_number() {
        for (text, version) in [
            ("2.1.325 (Claude Code)\n", Some(Version(2, 1, 325))),
            ("1.0.7", Some(Version(1, 0, 7))),
            ("2.2", Some(Version(2, 2, 0))),
            ("2.1.9-beta.1 (Claude Code)", Some(Version(2, 1, 9))),
            ("claude native binary not installed", None),
            ("2", None),
            ("", None),
        ] {
            assert_eq!(Version::parse(text), version, "{text}");
        }
        for (text, version) in [
            ("claude-code_2-1-325_harness", Some(Version(2, 1, 325))),
            ("claude-code_2-1-163_harness", Some(Version(2, 1, 163))),
            ("claude-code_2-2-0", Some(Version(2, 2, 0))),
            ("claude-code_2-1-9-beta-1_harness", Some(Version(2, 1, 9))),
            ("claude-code_2-1_harness", None),
            ("claude-code_2-1-x_harness", None),
            ("claude-code_harness", None),
            ("other_2-1-325_harness", None),
            ("claude-code", None),
            ("", None),
        ] {
            assert_eq!(Version::of_agent(text), version, "{text}");
        }
        assert!(Version(2, 1, 99) < OLDEST_FOR_PLUGIN && OLDEST < Version(2, 1, 0));
    }
}

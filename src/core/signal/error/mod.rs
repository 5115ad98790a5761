//! The error a message reports, as a signature that is the same whenever the error is.
//!
//! A line is an error by its form: a label ("error[E0308]: …"), an exception ("TypeError: …"), a log level, a tool's
//! complaint. Prose about errors has none of these forms. The first error line counts: it is usually the cause, and
//! the last is often a summary that is the same for every cause.

use super::prose;

mod line;
mod signature;

/// Begins the message of a turn in which the agent program failed, so that the failure counts as an error.
pub const AGENT_FAILED: &str = "error: the agent failed: ";

/// Returns an error without the labels that only say that it is one.
pub fn without_label(error: &str) -> &str {
    [AGENT_FAILED, "error: "].into_iter().fold(error, |rest, label| rest.strip_prefix(label).unwrap_or(rest))
}

/// Returns the first error line of the agent's prose, without what changes from run to run.
pub fn error_signature(message: &str) -> Option<String> {
    let mut lines = prose::lines(message);
    let found = lines.find_map(|line| line::error(line))?;
    // The line after this one names the cause.
    let next = if found == line::CAUSES { lines.find(|line| !line.trim().is_empty()) } else { None };
    Some(signature::signature(&next.map_or_else(|| found.to_owned(), |next| format!("{found} {next}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_left_out_and_nothing_else_is() {
        for (error, expected) in [
            ("error: the agent failed: error: disk on fire", "disk on fire"),
            ("error: the agent failed: no such model", "no such model"),
            ("error: disk on fire", "disk on fire"),
            ("error[E0308]: mismatched types", "error[E0308]: mismatched types"),
            ("TypeError: error: x", "TypeError: error: x"),
        ] {
            assert_eq!(without_label(error), expected);
        }
    }

    #[test]
    fn the_first_error_line_counts() {
        let message = "I ran the build.\n\nerror[E0308]: mismatched types\nerror: could not compile `x` due to 2 errors\n";
        assert_eq!(error_signature(message).as_deref(), Some("error[E0308]: mismatched types"));
    }

    #[test]
    fn causes_on_lines_of_their_own_belong_to_the_signature() {
        let first = error_signature("Caused by:\n\n    no route to host 12\n");
        assert_eq!(first.as_deref(), Some("Caused by: no route to host <n>"));
        assert_ne!(first, error_signature("Caused by:\n    the disk is full\n"));
        assert_eq!(error_signature("Caused by:").as_deref(), Some("Caused by:"));
    }

    #[test]
    fn a_fenced_or_quoted_error_does_not_count() {
        for message in [
            "```\nerror: x is broken\n```",
            "> error: x is broken",
            "`error: x is broken`",
            "The build says `error: x is broken`.",
        ] {
            assert_eq!(error_signature(message), None, "{message}");
        }
    }
}

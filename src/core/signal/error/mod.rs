//! The error a message reports, as a signature that stays the same while the error does.
//!
//! Only a line that is an error counts, by its form: a label ("error[E0308]: …"), an exception
//! ("TypeError: …"), a log level, a tool's complaint. Prose about errors has none of these forms. Of
//! several the first counts: it is mostly the cause, those behind it follow from it, and the last is
//! often a summary that is the same for every cause.

use super::own;

mod form;
mod normal;

/// The first line among the agent's own words that is an error, without what changes from run to run.
pub fn error_signature(message: &str) -> Option<String> {
    own::lines(message).find_map(|line| form::error(line)).map(normal::signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_line_counts() {
        let message = "I ran the build.\n\nerror[E0308]: mismatched types\nerror: could not compile `x` due to 2 errors\n";
        assert_eq!(error_signature(message).as_deref(), Some("error[E0308]: mismatched types"));
    }

    #[test]
    fn what_is_fenced_or_quoted_is_no_error() {
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

//! What the agent says about itself, read from the prose of its last message: never from a code fence or a
//! quotation.

mod error;
mod ignored;
mod phrases;
mod promise;
mod prose;
mod status;
mod usage_limit;

pub use error::{AGENT_FAILED, error_signature, without_label};
pub use ignored::Ignored;
pub use phrases::completion_phrases;
pub use promise::{Promise, promise};
pub use prose::{Fence, item};
pub use status::{MAX_RECOMMENDATION_COLUMNS, State, StatusBlock, Work, status};
pub use usage_limit::{Reset, UsageLimit, usage_limit};

/// Returns whether a `|`-separated list contains the word.
fn is_one_of(word: &str, list: &str) -> bool {
    list.split('|').any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write;

    /// Pieces of input that reach deep into every parser.
    const PIECES: &[&str] = &[
        "```",
        "~~~",
        "`",
        "``",
        "\"",
        "“",
        "”",
        "\n",
        "\r\n",
        "\n\n",
        " ",
        "\u{a0}",
        "> ",
        "- ",
        "* ",
        "1. ",
        "[ ] ",
        "# ",
        "**",
        "_",
        ":",
        ": ",
        ".",
        "?",
        "!",
        ", ",
        "·",
        "∙",
        "|",
        "(",
        ")",
        "(UTC)",
        "é",
        "测试",
        "\u{1b}[31m",
        "\u{0}",
        "---RALPH_STATUS---",
        "---END_RALPH_STATUS---",
        "STATUS: ",
        "COMPLETE",
        "EXIT_SIGNAL: true",
        "FILES_MODIFIED: ",
        "99999999999999999999999",
        "<promise>",
        "</promise>",
        "all tasks are complete",
        "not ",
        "if ",
        "the work is done",
        "everything's",
        "nothing left to do",
        "error: ",
        "error[E0308]: ",
        "TypeError: ",
        "FAILED ",
        "npm ERR! ",
        "/tmp/",
        "C:\\Temp\\",
        "0x",
        "deadbeef1",
        "550e8400-e29b-41d4-a716-446655440000",
        "12:34:56",
        "3pm",
        "permission denied",
        "thread 'main' panicked at ",
        "You've hit your limit",
        "usage limit reached",
        "|1736035200",
        "resets ",
        "Oct 6, ",
    ];

    fn joined() -> impl Strategy<Value = String> {
        let piece =
            prop_oneof![4 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => any::<String>()];
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
    }

    fn read(message: &str) {
        promise(message, "COMPLETE");
        status(message);
        completion_phrases(message);
        error_signature(message);
        usage_limit(message);
    }

    fn quoted(message: &str) -> String {
        message.lines().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "> {line}");
            text
        })
    }

    fn has_no_signal(message: &str) -> Result<(), TestCaseError> {
        prop_assert!(!matches!(promise(message, "COMPLETE"), Some(Ok(_))));
        prop_assert_eq!(status(message), None);
        prop_assert_eq!(completion_phrases(message), 0);
        prop_assert_eq!(error_signature(message), None);
        prop_assert_eq!(usage_limit(message), None);
        Ok(())
    }

    proptest! {
        #[test]
        fn no_text_panics(message in joined()) {
            read(&message);
        }

        #[test]
        fn a_quotation_is_never_a_signal(message in joined()) {
            let message = quoted(&message);
            has_no_signal(&message)?;
        }

        #[test]
        fn a_fence_is_never_a_signal(message in joined()) {
            let message = format!("~~~~~~~~~~~~\n{message}");
            prop_assume!(!message[12..].contains("~~~~~~~~~~~~"));
            has_no_signal(&message)?;
        }
    }

    /// Each of these makes a naive parser quadratic, which would not end within a test run.
    #[test]
    fn a_huge_message_is_read_in_linear_time() {
        let rising: String = (1..450).map(|length| "`".repeat(length) + " ").collect();
        for unit in [
            "`",
            "` ``",
            "\"",
            "“",
            "“ \"",
            "all ",
            "all tasks are complete and ",
            "error: ",
            "a: ",
            "1",
            "1:",
            "x\n",
            "\n",
            "- ",
            "[1] ",
            "a1 ",
            "/tmp/",
            "f",
            "---RALPH_STATUS---\n",
            "STATUS: COMPLETE\n",
            "the remaining ",
            "nothing else ",
        ] {
            let message = unit.repeat(100_000 / unit.len());
            read(&message);
        }
        read(&rising);
    }
}

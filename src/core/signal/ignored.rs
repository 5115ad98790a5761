//! A signal that was seen and does not count, and why.

use crate::core::text::clean;

/// Why a signal does not count. The agent reads it in its next prompt, the user in the turn's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// There is other text on the tag's line.
    TagNotAlone,
    /// The agent wrote on after the tag.
    TagNotLast,
    TagInCodeBlock,
    TagInQuotation,
    /// The tag was opened and never closed.
    TagNotClosed,
    /// A claim of completion over more than one line.
    TagOverLines,
    /// `<promise>BLOCKED:</promise>`: a person could not tell what to do.
    TagWithoutReason,
    TagWithOtherText {
        text: String,
        expected: String,
    },
    /// `EXIT_SIGNAL: true` with fewer phrases of completion than it needs.
    ExitSignal {
        phrases: u64,
        needed: u64,
    },
    /// `STATUS: COMPLETE` without `EXIT_SIGNAL`.
    StatusComplete,
    /// A claim of completion by an agent program that then failed.
    AgentFailed,
}

const MAX_TEXT_COLUMNS: usize = 40;

impl Ignored {
    /// Returns the reason in a few words, for the user's line.
    pub fn brief(&self) -> String {
        let tag = |what: &str| format!("the promise tag {what}");
        match self {
            Ignored::TagNotAlone => tag("is not alone on its line"),
            Ignored::TagNotLast => tag("is not at the end of the message"),
            Ignored::TagInCodeBlock => tag("is in a code block"),
            Ignored::TagInQuotation => tag("is in a quotation"),
            Ignored::TagNotClosed => tag("is not closed"),
            Ignored::TagOverLines => tag("is not on one line"),
            Ignored::TagWithoutReason => tag("has no reason or question after the colon"),
            Ignored::TagWithOtherText { text, expected } => {
                let short = |text| clean::excerpt(text, MAX_TEXT_COLUMNS);
                tag(&format!("says \"{}\" instead of \"{}\"", short(text), short(expected)))
            }
            Ignored::ExitSignal { needed: 0, .. } => {
                "EXIT_SIGNAL: true is turned off (circuit.completion is 0)".into()
            }
            Ignored::ExitSignal { phrases, needed } => {
                format!(
                    "EXIT_SIGNAL: true needs at least {needed} completion phrases in the message, found {phrases}"
                )
            }
            Ignored::StatusComplete => "STATUS: COMPLETE alone does not end the loop".into(),
            Ignored::AgentFailed => "the agent claimed completion and then failed".into(),
        }
    }

    /// Returns what the agent is told.
    pub fn advice(&self) -> String {
        format!("Signal ignored: {}.", self.brief())
    }
}

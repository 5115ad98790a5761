//! The agent program's own message that a usage limit was reached.
//!
//! Structured events come first; this is for programs that only print text. The whole text has to be the message: a
//! headline in the program's words, then nothing but the reset time and known advice. Prose about limits has other
//! words and is none. A throttle of seconds, a warning that a limit is near and an empty balance are no usage limits.

use super::{is_one_of, prose};
use crate::core::text::clean;

mod reset;

pub use reset::Reset;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageLimit {
    /// When it ends, if the message states it in a known form.
    pub resets: Option<Reset>,
}

/// More than any such message with its advice.
const MAX_BYTES: usize = 600;
const MAX_LINES: usize = 3;

/// Recognises a text that is the program's limit message and nothing else.
pub fn usage_limit(text: &str) -> Option<UsageLimit> {
    let text = text.trim();
    if text.len() > MAX_BYTES || prose::lines(text).count() < text.lines().count() {
        return None;
    }
    let lines: Vec<String> = text.lines().map(undecorated).filter(|line| !line.is_empty()).collect();
    if lines.len() > MAX_LINES {
        return None;
    }
    let mut parts = lines.iter().flat_map(|line| sentences(line));
    let headline = parts.next()?;
    // Many things have a limit; only one that resets is the program's.
    let is_bare = headline.eq_ignore_ascii_case("limit reached");
    (is_bare || is_headline(headline)).then_some(())?;
    let mut resets = None;
    for part in parts {
        let (advice, part) = after_advice(part);
        let found = reset::epoch(part).or_else(|| reset::phrase(part).and_then(reset::when));
        let is_known = found.is_some() || reset::phrase(part).is_some() || is_advice(part);
        (is_known && is_advice(advice)).then_some(())?;
        resets = resets.or(found);
    }
    (!is_bare || resets.is_some()).then_some(UsageLimit { resets })
}

/// Splits "Upgrade to Pro (…) or try again at 5:12 AM" before the time. A sentence without one is its own advice.
fn after_advice(part: &str) -> (&str, &str) {
    const TIME: &str = "or try again ";
    match part.rfind(TIME) {
        Some(at) => (part[..at].trim_end_matches([' ', ',']), &part[at + 3..]),
        None => ("/", part),
    }
}

/// Returns a line with white space folded and straight apostrophes, without the signs a terminal puts around it.
fn undecorated(line: &str) -> String {
    let line = clean::line(line).replace('’', "'");
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || "⎿└●•▸■⚠❌*\u{fe0f}".contains(c));
    line.trim_end_matches('*').trim_end().to_owned()
}

/// Splits a line at the separators that versions of the program used.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let dots = line.split(['·', '∙', '•', '|', '–', '—', '!']);
    let dashes = dots.flat_map(|part| part.split(" - "));
    let stops = dashes.flat_map(|part| part.split(". "));
    stops.map(|part| part.trim().trim_end_matches('.')).filter(|part| !part.is_empty())
}

/// Recognises "You've hit your session limit", "5-hour limit reached", "You're out of extra usage".
fn is_headline(text: &str) -> bool {
    let text = text.to_lowercase().replace("you have ", "you've ").replace("you are ", "you're ");
    let text = text.trim_end_matches(" for claude messages");
    let mut words: Vec<&str> = text.split_whitespace().collect();
    // "… your usage limit for gpt-5.3-codex"
    if let [.., "limit", "for", model] = words[..]
        && model.contains(|c: char| c.is_ascii_digit())
    {
        words.truncate(words.len() - 2);
    }
    match words.as_slice() {
        ["you've", "hit" | "reached" | "exceeded", "your", kinds @ .., "limit" | "limits"] => {
            are_kinds(kinds)
        }
        ["you're", "out", "of", rest @ ..]
        | ["your", "org" | "organization", "is", "out", "of", rest @ ..] => {
            matches!(rest, ["usage"] | ["extra", "usage"] | ["usage", "credits"])
        }
        [kinds @ .., "limit", "reached"] => {
            kinds.iter().any(|word| is_one_of(word, NAMES)) && are_kinds(kinds)
        }
        ["you've", "exhausted", "your", kinds @ .., "quota" | "capacity", "on", "this", "model"] => {
            are_kinds(kinds)
        }
        _ => false,
    }
}

fn are_kinds(words: &[&str]) -> bool {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    words.iter().all(|word| is_one_of(word, NAMES) || is_one_of(word, OWNERS) || is_number(word))
}

/// What limits are called, by window, model and plan.
const NAMES: &str =
    "usage|session|weekly|monthly|daily|5-hour|five-hour|hour|opus|sonnet|haiku|fable|spend|plan|claude";
/// Words beside those names.
const OWNERS: &str =
    "ai|code|model|extra|credit|credits|individual|specified|workspace|api|org's|organization's|team's";

/// Recognises what the program advises after the headline.
fn is_advice(text: &str) -> bool {
    const BEGINNINGS: &str = "/|run /|or /|raise it at|contact your admin|contact an admin|ask your admin|progress saved|\
        upgrade|[upgrade|switch to|continuing|view your usage|visit |reset your session limit|please |\
        you will regain access|to get more access now";
    let text = text.to_lowercase();
    BEGINNINGS.split('|').any(|beginning| text.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Stamp;
    use chrono::NaiveTime;
    use proptest::prelude::*;

    fn clock(hour: u32, minute: u32, zone: Option<&str>, date: Option<(u32, u32)>) -> Option<Reset> {
        let time = NaiveTime::from_hms_opt(hour, minute, 0).unwrap();
        Some(Reset::Clock { time, date, zone: zone.map(str::to_owned) })
    }

    fn date(month: u32, day: u32) -> Option<(u32, u32)> {
        Some((month, day))
    }

    #[test]
    fn limit_messages_are_recognised() {
        let cases: Vec<(&str, Option<Reset>)> = vec![
            ("Claude AI usage limit reached|1736035200", Some(Reset::At(Stamp(1_736_035_200_000)))),
            ("Claude AI usage limit reached|1736035200000", Some(Reset::At(Stamp(1_736_035_200_000)))),
            ("Claude AI usage limit reached", None),
            (
                "Claude usage limit reached. Your limit will reset at 3pm (America/Bogota).",
                clock(15, 0, Some("America/Bogota"), None),
            ),
            (
                "Claude usage limit reached. Your limit will reset at 5pm (Europe/Warsaw).\n\n • /upgrade to increase your usage limit.",
                clock(17, 0, Some("Europe/Warsaw"), None),
            ),
            (
                "You've reached your usage limit. Your limit will reset at 7pm (America/New_York).",
                clock(19, 0, Some("America/New_York"), None),
            ),
            ("5-hour limit reached ∙ resets 11pm", clock(23, 0, None, None)),
            (
                "5-hour limit reached ∙ resets 5am\n     /upgrade to increase your usage limit.",
                clock(5, 0, None, None),
            ),
            ("Session limit reached ∙ resets 9:30pm", clock(21, 30, None, None)),
            ("Weekly limit reached ∙ resets Oct 6, 1pm", clock(13, 0, None, date(10, 6))),
            ("Weekly limit reached", None),
            ("Opus weekly limit reached ∙ resets Oct 31, 9am", clock(9, 0, None, date(10, 31))),
            ("Opus weekly limit reached ∙ resets Oct 24", clock(0, 0, None, date(10, 24))),
            ("You've hit your limit · resets 3pm (Europe/Berlin)", clock(15, 0, Some("Europe/Berlin"), None)),
            ("You’ve hit your limit · resets 12am (UTC)", clock(0, 0, Some("UTC"), None)),
            ("You've hit your limit · resets 12pm (UTC)", clock(12, 0, Some("UTC"), None)),
            ("You've hit your session limit · resets 3:45pm (UTC)", clock(15, 45, Some("UTC"), None)),
            (
                "You've hit your session limit · resets 12:50am (America/Los_Angeles)",
                clock(0, 50, Some("America/Los_Angeles"), None),
            ),
            (
                "  ⎿ \u{a0}You've hit your session limit · resets 6:50pm (Europe/Berlin)",
                clock(18, 50, Some("Europe/Berlin"), None),
            ),
            (
                "You've hit your session limit · resets 8:10pm (Europe/Berlin)\n/upgrade or /usage-credits to finish what you're working on.",
                clock(20, 10, Some("Europe/Berlin"), None),
            ),
            (
                "You've hit your session limit · resets 3pm (UTC) · progress saved",
                clock(15, 0, Some("UTC"), None),
            ),
            ("You've hit your weekly limit · resets Mon 12:00am", None),
            ("You've hit your weekly limit · resets Monday", None),
            (
                "You've hit your weekly limit · resets Sep 21, 6pm (America/Toronto)",
                clock(18, 0, Some("America/Toronto"), date(9, 21)),
            ),
            (
                "You've hit your limit · resets May 5 at 9pm (America/New_York)",
                clock(21, 0, Some("America/New_York"), date(5, 5)),
            ),
            (
                "You've hit your Opus limit · resets Feb 29, 2028, 3pm (UTC)",
                clock(15, 0, Some("UTC"), date(2, 29)),
            ),
            ("You've hit your Opus limit · resets tomorrow at 6am", None),
            (
                "You've hit your limit · resets Dec 17 at 6am (Europe/Oslo)",
                clock(6, 0, Some("Europe/Oslo"), date(12, 17)),
            ),
            (
                "You’ve hit your usage limit. Try again at Nov 19th, 2026 9:53 AM.",
                clock(9, 53, None, date(11, 19)),
            ),
            ("You've hit your Sonnet limit", None),
            ("You've hit your Fable 5 limit · resets 3pm (Etc/GMT+5)", clock(15, 0, Some("Etc/GMT+5"), None)),
            (
                "You've reached your Fable 5.1 limit. Run /usage-credits to continue or switch models with /model.",
                None,
            ),
            ("You've hit your usage limit · contact your admin to increase it", None),
            (
                "You've hit your limit - resets Feb 7, 11am (Asia/Seoul)/login to switch to an API usage-billed account.",
                clock(11, 0, Some("Asia/Seoul"), date(2, 7)),
            ),
            (
                "You’ve hit your limit for Claude messages. Limits will reset at 9:30 AM.  View your usage details.",
                clock(9, 30, None, None),
            ),
            ("You've hit your limit · resets 3:00\u{202f}PM (UTC)", clock(15, 0, Some("UTC"), None)),
            (
                "You've hit your limit · resets 15:30 (Europe/Berlin)",
                clock(15, 30, Some("Europe/Berlin"), None),
            ),
            (
                "You're out of extra usage · resets 7:30pm (Asia/Calcutta)",
                clock(19, 30, Some("Asia/Calcutta"), None),
            ),
            (
                "You're out of extra usage. Resets at 4pm (America/Chicago).",
                clock(16, 0, Some("America/Chicago"), None),
            ),
            ("You're out of usage credits", None),
            (
                "Usage limit reached · resets 8:10pm\nContinuing automatically when your limit resets",
                clock(20, 10, None, None),
            ),
            ("Usage limit reached · resets in 30h", Some(Reset::In { minutes: 1_800 })),
            ("Usage limit reached · resets in 4h 51m", Some(Reset::In { minutes: 291 })),
            ("Usage limit reached · resets in 4h51m", Some(Reset::In { minutes: 291 })),
            (
                "You've hit your usage limit. Try again in 3 days 2 hours.",
                Some(Reset::In { minutes: 3 * 1440 + 120 }),
            ),
            ("You've hit your usage limit. Try again at 8:10 PM.", clock(20, 10, None, None)),
            ("Usage limit reached. Your limit will reset at 2026-09-21 18:55:29", None),
            ("You've hit your monthly spend limit · raise it at claude.ai/settings/usage", None),
            (
                "**You've hit your monthly spend limit.**\n/usage-credits to adjust your monthly spend limit.",
                None,
            ),
            (
                "You've hit your monthly spend limit · your session limit resets 2:40pm (Asia/Jakarta)\n/usage-credits to adjust your monthly spend limit.",
                clock(14, 40, Some("Asia/Jakarta"), None),
            ),
            ("You've hit your org's monthly usage limit", None),
            (
                "You have reached your specified workspace API usage limits. You will regain access on 2025-06-01 at 00:00 UTC.",
                Some(Reset::At(Stamp(1_748_736_000_000))),
            ),
            ("You have reached your specified API usage limits. You will regain access on the first.", None),
            ("Limit reached · resets 4pm (Europe/Oslo)", clock(16, 0, Some("Europe/Oslo"), None)),
            ("You've hit your session limit · resets at the next full moon", None),
            ("You've hit your session limit · resets 25pm", None),
            ("You've hit your usage limit. Try again later.", None),
        ];
        for (text, resets) in cases {
            assert_eq!(usage_limit(text), Some(UsageLimit { resets }), "{text}");
        }
    }

    #[test]
    fn prose_and_other_messages_are_no_limit() {
        let cases = [
            "",
            "I implemented the RateLimiter; requests are limited to 100 per 15 hours.",
            "usage limit reached in the test fixture",
            "Usage limit reached in the test fixture.",
            "Usage limit reached. I added a test for it.",
            "The usage limit was reached.",
            "The test prints: You've hit your limit · resets 3pm",
            "When you've hit your limit, wait.",
            "You've hit your limit on what I can explain.",
            "You've hit your limit. Now the message is shown in red.",
            "You've hit your limit · resets 3pm is what the banner says.\nI parse it now.",
            "\"You've hit your session limit\"",
            "`You've hit your session limit · resets 3pm`",
            "> You've hit your session limit · resets 3pm",
            "```\nYou've hit your session limit · resets 3pm\n```",
            "You've hit your session limit · resets 3pm\n\nAll tests pass.",
            "All tests pass.\nYou've hit your session limit · resets 3pm",
            "You've hit your fast limit",
            "You've hit your rate limit. Try again in 20 seconds.",
            "You've hit your head",
            "You've hit your limit?",
            "GitHub usage limit reached",
            "OrchidDB weekly limit reached",
            "Storage limit reached",
            "Recursion limit reached",
            "5 limit reached",
            "Limit reached",
            "Limit reached · resets when the cache is empty",
            "You've hit your usage limit for the day",
            "You've hit your usage limit. I would wait or try again at 3pm.",
            "You've exhausted your options on this model",
            "Rate limit reached for requests",
            "Approaching usage limit · resets at 7pm",
            "Approaching 5-hour limit",
            "You've used 90% of your session limit · resets 3pm",
            "API Error: Server is temporarily limiting requests (not your usage limit)",
            "API Error: Request rejected (429) · this may be a temporary capacity issue.",
            "API Error: Usage credits required for 1M context · run /usage-credits to turn them on",
            "Credit balance is too low",
            "Not logged in · Please run /login",
            "You're out of luck",
            "Usage limit has reset · press enter to continue",
            "Your limit will reset at 3pm",
            "resets 3pm",
            "|1736035200",
            "Claude AI usage limit reached|soon",
            "Claude AI usage limit reached|17",
            "Weekly limit reached ∙ resets Oct 6, 1pm ∙ I will wait for it",
        ];
        for text in cases {
            assert_eq!(usage_limit(text), None, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_prose() {
        let text = format!("You've hit your limit · resets 3pm\n/{}", "upgrade ".repeat(200));
        assert_eq!(usage_limit(&text), None);
        assert_eq!(usage_limit(&"usage limit reached\n".repeat(4)), None);
    }

    proptest! {
        #[test]
        fn every_time_of_day_is_parsed(hour in 0u32..24, minute in 0u32..60, upper in any::<bool>(), gap in any::<bool>()) {
            let half = match (hour < 12, upper) { (true, false) => "am", (true, true) => "AM", (false, false) => "pm", _ => "PM" };
            let twelve = match hour % 12 { 0 => 12, hour => hour };
            let minutes = if minute == 0 { String::new() } else { format!(":{minute:02}") };
            let gap = if gap { " " } else { "" };
            let text = format!("You've hit your limit · resets {twelve}{minutes}{gap}{half} (UTC)");
            prop_assert_eq!(usage_limit(&text), Some(UsageLimit { resets: clock(hour, minute, Some("UTC"), None) }));
            let text = format!("You've hit your limit · resets {hour}:{minute:02}");
            prop_assert_eq!(usage_limit(&text), Some(UsageLimit { resets: clock(hour, minute, None, None) }));
        }

        #[test]
        fn an_unknown_sentence_makes_it_prose(words in "[a-z]{2,8}( [a-z]{2,8}){2,6}") {
            prop_assume!(!is_advice(&words) && reset::phrase(&words).is_none());
            for text in [
                format!("You've hit your session limit · resets 3pm (UTC)\n{words}"),
                format!("Usage limit reached. {words}"),
                format!("{words} usage limit reached"),
            ] {
                prop_assert_eq!(usage_limit(&text), None);
            }
        }
    }
}

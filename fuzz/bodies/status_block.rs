//! The status block and the other parsers of what the agent says: only its own words count.

use ralph::core::signal::{completion_phrases, error_signature, status, usage_limit};

pub fn check(bytes: &[u8]) {
    let message = String::from_utf8_lossy(bytes);
    let said = status(&message);
    let fence = "`".repeat(message.split(|c| c != '`').map(str::len).max().unwrap_or(0).max(2) + 1);
    let fenced = format!("{fence}\n{message}\n{fence}");
    assert_eq!(status(&fenced), None, "taken from a fence");
    assert_eq!(completion_phrases(&fenced), 0, "taken from a fence");
    assert_eq!(error_signature(&fenced), None, "taken from a fence");
    let quoted: String = message.lines().map(|line| format!("> {line}\n")).collect();
    assert_eq!((status(&quoted), error_signature(&quoted)), (None, None), "taken from a quotation");
    if let Some(recommendation) = said.and_then(|said| said.recommendation) {
        assert!(!recommendation.chars().any(char::is_control), "not safe to show: {recommendation:?}");
    }
    if let Some(signature) = error_signature(&message) {
        assert!(!signature.contains('\n') && signature.chars().count() <= 400, "{signature}");
    }
    usage_limit(&message);
}

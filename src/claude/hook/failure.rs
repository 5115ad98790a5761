//! What a StopFailure's error means for the loop. The names are those of Claude Code 2.1.325.

use crate::core::time::outage::Passing;

/// Returns whether an error passes by itself. A name that is missing or not known yet may be anything. A usage limit has
/// the name of a throttle; its words tell it.
pub fn passing(error: &str) -> Passing {
    match error {
        "overloaded" | "server_error" | "rate_limit" => Passing::Yes,
        "authentication_failed"
        | "oauth_org_not_allowed"
        | "account_on_hold"
        | "verification_required"
        | "billing_error"
        | "cloud_credential_error"
        | "invalid_request"
        | "model_not_found" => Passing::No,
        // "unknown", "max_output_tokens"
        _ => Passing::Maybe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_apart_by_their_names() {
        for (error, expected) in [
            ("server_error", Passing::Yes),
            ("rate_limit", Passing::Yes),
            ("authentication_failed", Passing::No),
            ("billing_error", Passing::No),
            ("unknown", Passing::Maybe),
            ("max_output_tokens", Passing::Maybe),
            ("", Passing::Maybe),
            ("an_error_of_next_year", Passing::Maybe),
        ] {
            assert_eq!(passing(error), expected, "{error}");
        }
    }
}

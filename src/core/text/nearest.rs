//! What a mistyped word was probably meant to be.

/// Returns the candidate that a word was probably meant to be: one that it begins, or one a few letters away.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.trim_start_matches('-').to_lowercase().replace('_', "-");
    let word = plain(word);
    let length = word.chars().count();
    // Longer than any candidate by far: a text, not a word.
    if !(2..=64).contains(&length) {
        return None;
    }
    let distance = |candidate: &str| match plain(candidate) {
        candidate if length >= 3 && candidate.starts_with(&word) => 1,
        candidate => strsim::osa_distance(&word, &candidate),
    };
    let near = candidates.into_iter().map(|candidate| (distance(candidate), candidate));
    let near = near.filter(|(distance, _)| *distance <= (length / 3).max(1));
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let commands = ["start", "stop", "status", "history", "max-iterations", "loop_limits.max_hours"];
        for (word, meant) in [
            ("statsu", Some("status")),
            ("hist", Some("history")),
            ("STOP", Some("stop")),
            ("stpo", Some("stop")),
            ("--max-iteration", Some("max-iterations")),
            ("max_iterations", Some("max-iterations")),
            ("--max-iter", Some("max-iterations")),
            ("loop_limits.max_hour", Some("loop_limits.max_hours")),
            ("nonsense", None),
            ("bogus", None),
            ("s", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, commands), meant, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), commands), None);
    }
}

//! How alike two messages are: 1 minus the share of their text in words that differ.

/// How much of a message is compared. Messages that begin alike for so long count as alike.
pub const COMPARED_CHARS: usize = 1_000;

/// Returns the part of a text that is compared.
pub fn head(text: &str) -> &str {
    text.char_indices().nth(COMPARED_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// Returns whether the similarity of two heads reaches `threshold`, from 0 (nothing alike) to 1 (the same). Stops at the
/// first word that rules it out.
pub fn is_similar(a: &str, b: &str, threshold: f64) -> bool {
    let allowed = (1.0 - threshold) * a.len().max(b.len()) as f64;
    let mut differing = 0;
    let (mut a, mut b) = (a.split_whitespace().peekable(), b.split_whitespace().peekable());
    loop {
        let (x, y) = (a.next(), b.next());
        let (x_length, y_length) = (x.map_or(0, str::len), y.map_or(0, str::len));
        differing += if x == y {
            0
        } else if a.peek() == b.peek() {
            x_length.max(y_length)
        } else if b.next_if(|next| x == Some(*next)).is_some() {
            // A word was inserted.
            y_length
        } else if a.next_if(|next| y == Some(*next)).is_some() {
            x_length
        } else {
            x_length.max(y_length)
        };
        if x.is_none() && y.is_none() {
            return true;
        }
        if differing as f64 > allowed {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_same_words_are_similar_and_others_are_not() {
        let long = |word: &str| format!("{word} {}", "the build waits for the lock ".repeat(20));
        for (name, a, b, expected) in [
            ("nothing", "", "", true),
            ("the same", "At it.", "At it.", true),
            ("other white space", "Still\n at it.", " Still at it.\n", true),
            ("another word", "Looked into a.", "Looked into b.", false),
            ("another number", "Looked into part 1.", "Looked into part 2.", false),
            ("another number in a long text", &long("Attempt 9"), &long("Attempt 10"), true),
            ("another word in a long text", &long("Now"), &long("Then"), true),
            ("a word more in a long text", &long(""), &long("Then"), true),
            ("several words in a long text", &long("Now I see"), &long("Again we look"), false),
            ("more words", "At it.", "At it. At it.", false),
            ("nothing in common", "abc", "", false),
        ] {
            assert_eq!(is_similar(a, b, 0.99), expected, "{name}");
            assert_eq!(is_similar(b, a, 0.99), expected, "{name}, swapped");
        }
    }

    #[test]
    fn one_character_in_a_hundred_is_the_border_of_0_99() {
        let text = |changed: usize| "y ".repeat(changed) + &"x ".repeat(100 - changed);
        assert!(is_similar(&text(0), &text(2), 0.99), "of 200 characters");
        assert!(!is_similar(&text(0), &text(3), 0.99));
    }

    #[test]
    fn only_the_first_thousand_characters_count() {
        let base = "é".repeat(COMPARED_CHARS);
        assert_eq!(head(&format!("{base}more")), base);
        assert_eq!(head(" a\n b "), " a\n b ");
    }

    proptest! {
        #[test]
        fn one_word_removed_inserted_or_replaced_is_the_difference(
            count in 1..40usize, at: prop::sample::Index, space in "[ \n\t]{1,3}",
        ) {
            let words: Vec<String> = (10..10 + count).map(|n| n.to_string()).collect();
            let text = words.join(" ");
            prop_assert!(is_similar(&text, &words.join(&space), 1.0));
            let at = at.index(words.len());
            let (mut shorter, mut longer, mut changed) = (words.clone(), words.clone(), words.clone());
            shorter.remove(at);
            longer.insert(at, "de".into());
            changed[at] = "de".into();
            for other in [shorter, longer, changed] {
                let other = other.join(" ");
                let length = text.len().max(other.len()) as f64;
                for (a, b) in [(&text, &other), (&other, &text)] {
                    prop_assert!(is_similar(a, b, 1.0 - 2.001 / length), "{} | {}", a, b);
                    prop_assert!(!is_similar(a, b, 1.0 - 1.999 / length), "{} | {}", a, b);
                }
            }
        }
    }
}

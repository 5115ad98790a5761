//! How alike two messages are: 1 minus the edit distance over the longer length, both cut to their
//! first 1,000 characters.

/// How much of a message is compared. Beyond it two messages that begin alike count as alike.
pub const COMPARED_CHARACTERS: usize = 1_000;

/// What is compared of a text, as it stands.
pub fn head(text: &str) -> String {
    let end = text.char_indices().nth(COMPARED_CHARACTERS).map_or(text.len(), |(at, _)| at);
    text[..end].to_owned()
}

/// From 0, nothing in common, to 1, the same; two empty texts are the same.
pub fn similarity(a: &str, b: &str) -> f64 {
    let (a, b) = (characters(a), characters(b));
    let longer = a.len().max(b.len());
    // No distance exceeds the longer length, so this bound never cuts.
    distance_within(&a, &b, longer).map_or(0.0, |distance| ratio(distance, longer))
}

/// Whether [`similarity`] reaches `threshold`, without finding out how far apart the two are beyond it.
pub fn is_similar(a: &str, b: &str, threshold: f64) -> bool {
    let (a, b) = (characters(a), characters(b));
    let longer = a.len().max(b.len());
    furthest(longer, threshold).is_some_and(|bound| distance_within(&a, &b, bound).is_some())
}

fn characters(text: &str) -> Vec<char> {
    text.chars().take(COMPARED_CHARACTERS).collect()
}

fn ratio(distance: usize, longer: usize) -> f64 {
    if longer == 0 { 1.0 } else { 1.0 - distance as f64 / longer as f64 }
}

/// The largest distance that still reaches the threshold. Asked of `ratio` itself, so that rounding
/// cannot make the two disagree.
fn furthest(longer: usize, threshold: f64) -> Option<usize> {
    let reaches = |distance: &usize| ratio(*distance, longer) >= threshold;
    // `as` turns what is negative or no number into 0.
    let guess = ((1.0 - threshold) * longer as f64) as usize;
    (guess.saturating_sub(1)..=guess.saturating_add(1)).rev().map(|bound| bound.min(longer)).find(reaches)
}

/// The edit distance if it is at most `bound`. Only cells that near the diagonal are visited, and it
/// stops at the first row from which the bound cannot be kept.
fn distance_within(a: &[char], b: &[char], bound: usize) -> Option<usize> {
    let (a, b) = trim(a, b);
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if long.len() - short.len() > bound {
        return None;
    }
    let far = bound + 1;
    let mut row: Vec<usize> = (0..=short.len()).map(|column| column.min(far)).collect();
    for (index, character) in long.iter().enumerate() {
        let (from, to) = (index.saturating_sub(bound), (index + bound + 1).min(short.len()));
        // The cell left of the band, and the one its diagonal leaves behind.
        let mut diagonal = row[from];
        row[from] = if from == 0 { (index + 1).min(far) } else { far };
        let mut nearest = row[from];
        for column in from..to {
            let above = row[column + 1];
            let cell =
                if short[column] == *character { diagonal } else { 1 + diagonal.min(row[column]).min(above) };
            diagonal = above;
            row[column + 1] = cell.min(far);
            nearest = nearest.min(cell);
        }
        if nearest > bound {
            return None;
        }
    }
    Some(row[short.len()]).filter(|&distance| distance <= bound)
}

/// Without what both begin and end with: no edit is needed there.
fn trim<'a>(a: &'a [char], b: &'a [char]) -> (&'a [char], &'a [char]) {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    (&a[..a.len() - end], &b[..b.len() - end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, as in a textbook.
    fn plain(a: &str, b: &str) -> f64 {
        let (a, b) = (head(a), head(b));
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut next = vec![i + 1];
            for (j, y) in b.iter().enumerate() {
                next.push((row[j] + usize::from(x != y)).min(row[j + 1] + 1).min(next[j] + 1));
            }
            row = next;
        }
        let longer = a.len().max(b.len());
        if longer == 0 { 1.0 } else { 1.0 - row[b.len()] as f64 / longer as f64 }
    }

    #[test]
    fn known_distances() {
        for (a, b, expected) in [
            ("", "", 1.0),
            ("", "abc", 0.0),
            ("abc", "abc", 1.0),
            ("kitten", "sitting", 1.0 - 3.0 / 7.0),
            ("größer", "grösser", 1.0 - 2.0 / 7.0),
            ("测试测试", "测试", 0.5),
            ("abc", "xyz", 0.0),
        ] {
            assert_eq!(similarity(a, b), expected, "{a} {b}");
            assert_eq!(similarity(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn one_edit_in_a_hundred_is_the_border_of_0_99() {
        let base = "x".repeat(100);
        let one = format!("y{}", "x".repeat(99));
        let two = format!("y{}y", "x".repeat(98));
        assert!(is_similar(&base, &one, 0.99));
        assert!(!is_similar(&base, &two, 0.99));
    }

    #[test]
    fn thresholds_out_of_range() {
        for (threshold, same, other) in [
            (0.0, true, true),
            (-1.0, true, true),
            (1.0, true, false),
            (1.5, false, false),
            (f64::NAN, false, false),
        ] {
            assert_eq!(is_similar("same", "same", threshold), same, "{threshold}");
            assert_eq!(is_similar("same", "ten other", threshold), other, "{threshold}");
        }
        assert!(is_similar("", "", 1.0));
        assert!(is_similar("a", "b", f64::NEG_INFINITY));
        assert!(!is_similar("a", "a", f64::INFINITY));
    }

    #[test]
    fn only_the_first_thousand_characters_count() {
        let base = "é".repeat(COMPARED_CHARACTERS);
        assert_eq!(similarity(&format!("{base}one"), &format!("{base}another")), 1.0);
        assert_eq!(head(&format!("{base}more")), base);
        assert_eq!(head(" a\n b "), " a\n b ");
        assert!(is_similar(&"x".repeat(5_000_000), &"x".repeat(4_000_000), 1.0));
    }

    #[derive(Clone, Debug)]
    enum Edit {
        Insert(prop::sample::Index, char),
        Remove(prop::sample::Index),
        Replace(prop::sample::Index, char),
    }

    fn letter() -> impl Strategy<Value = char> {
        prop::sample::select(vec!['a', 'b', ' ', 'é', '测', '🦀'])
    }

    fn edit() -> impl Strategy<Value = Edit> {
        prop_oneof![
            (any::<prop::sample::Index>(), letter()).prop_map(|(at, c)| Edit::Insert(at, c)),
            any::<prop::sample::Index>().prop_map(Edit::Remove),
            (any::<prop::sample::Index>(), letter()).prop_map(|(at, c)| Edit::Replace(at, c)),
        ]
    }

    /// Two texts that differ by a few edits, so that both sides of a border are met.
    fn pair(length: std::ops::Range<usize>) -> impl Strategy<Value = (String, String)> {
        (prop::collection::vec(letter(), length), prop::collection::vec(edit(), 0..8)).prop_map(
            |(base, edits)| {
                let mut other = base.clone();
                for edit in edits {
                    match edit {
                        Edit::Insert(at, c) => other.insert(at.index(other.len() + 1), c),
                        Edit::Remove(at) if !other.is_empty() => drop(other.remove(at.index(other.len()))),
                        Edit::Replace(at, c) if !other.is_empty() => {
                            let at = at.index(other.len());
                            other[at] = c;
                        }
                        _ => {}
                    }
                }
                (base.into_iter().collect(), other.into_iter().collect())
            },
        )
    }

    proptest! {
        #[test]
        fn the_fast_way_agrees_with_the_definition(
            (a, b) in prop_oneof![pair(0..12), pair(90..130)],
            threshold in prop_oneof![Just(0.99), Just(0.95), Just(0.9), 0.0..=1.0],
        ) {
            let expected = plain(&a, &b);
            prop_assert_eq!(similarity(&a, &b), expected);
            for threshold in [threshold, expected, expected.next_up(), expected.next_down()] {
                prop_assert_eq!(is_similar(&a, &b, threshold), expected >= threshold, "{} {}", threshold, expected);
                prop_assert_eq!(is_similar(&b, &a, threshold), expected >= threshold, "{} {}", threshold, expected);
            }
        }

        #[test]
        fn unrelated_texts_agree_too(a in "[abé]{0,30}", b in "[abé]{0,30}", threshold in 0.0..=1.0) {
            let expected = plain(&a, &b);
            prop_assert_eq!(similarity(&a, &b), expected);
            prop_assert_eq!(is_similar(&a, &b, threshold), expected >= threshold);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn long_texts_agree_across_the_cut((a, b) in pair(980..1_020)) {
            prop_assert_eq!(is_similar(&a, &b, 0.995), plain(&a, &b) >= 0.995);
        }
    }
}

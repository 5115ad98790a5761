//! The changed lines of a text.

use super::paint::Paint;
use crate::core::text::clean;

const MAX_COLUMNS: usize = 160;

/// Returns the removed and the added lines, without the common beginning and end.
pub fn lines(before: &str, after: &str, paint: Paint) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let rest = old.len().min(new.len()) - same;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(one, other)| one == other).count();
    let removed = old[same..old.len() - tail].iter().map(|line| paint.red(format!("  - {}", shown(line))));
    let added = new[same..new.len() - tail].iter().map(|line| paint.green(format!("  + {}", shown(line))));
    removed.chain(added).map(|line| line + "\n").collect()
}

fn shown(line: &str) -> String {
    let indent: String = line.chars().take_while(|c| *c == ' ').take(20).collect();
    format!("{indent}{}", clean::excerpt(line, MAX_COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_lines_are_shown() {
        let plain = Paint::new(false);
        assert_eq!(
            lines("{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", plain),
            "  -   \"a\": 1\n  +   \"a\": 1,\n  +   \"b\": 2\n"
        );
        assert_eq!(lines("", "{}\n", plain), "  + {}\n");
        assert_eq!(lines("a\na\n", "a\n", plain), "  - a\n");
        assert_eq!(lines("x\n", "\u{1b}[31mx\n", plain), "  - x\n  + [31mx\n");
    }
}

//! A line that is typed in place.

use super::text;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// More than any text that is taken here may have.
const MAX_CHARS: usize = 4000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextInput {
    text: Vec<char>,
    cursor: usize,
}

impl TextInput {
    pub fn new(text: &str) -> TextInput {
        let text: Vec<char> = text.chars().collect();
        TextInput { cursor: text.len(), text }
    }

    pub fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Takes a key that edits the line; returns whether it was one.
    pub fn edit(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if control => drop(self.text.drain(..std::mem::take(&mut self.cursor))),
            KeyCode::Char('k') if control => self.text.truncate(self.cursor),
            KeyCode::Char('w') if control => self.delete_word(),
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Char(c) if !control => self.insert(&c.to_string()),
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            KeyCode::Delete if self.cursor < self.text.len() => drop(self.text.remove(self.cursor)),
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => return false,
        }
        true
    }

    /// Inserts typed or pasted text. Line ends become spaces, what is invisible goes.
    pub fn insert(&mut self, typed: &str) {
        let folded: String = typed.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        // `line` trims, and a space that is typed is wanted.
        let shown = folded.split(' ').map(text::line).collect::<Vec<_>>().join(" ");
        for c in shown.chars().take(MAX_CHARS.saturating_sub(self.text.len())) {
            self.text.insert(self.cursor, c);
            self.cursor += 1;
        }
    }

    fn delete_word(&mut self) {
        let before = &self.text[..self.cursor];
        let end = before.iter().rposition(|c| *c != ' ').map_or(0, |at| at + 1);
        let begin = before[..end].iter().rposition(|c| *c == ' ').map_or(0, |at| at + 1);
        self.text.drain(begin..self.cursor);
        self.cursor = begin;
    }

    /// Returns the part around the cursor that fits into `width` columns, and the cursor's column in it.
    pub fn view(&self, width: usize) -> (String, usize) {
        let columns = |text: &[char]| crate::core::text::clean::columns(&text.iter().collect::<String>());
        let width = width.max(1);
        let mut from = 0;
        while columns(&self.text[from..self.cursor]) >= width {
            from += 1;
        }
        let mut to = self.cursor;
        while to < self.text.len() && columns(&self.text[from..=to]) <= width {
            to += 1;
        }
        (self.text[from..to].iter().collect(), columns(&self.text[from..self.cursor]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[(KeyCode, KeyModifiers)]) -> TextInput {
        let mut input = TextInput::default();
        for (code, modifiers) in keys {
            input.edit(KeyEvent::new(*code, *modifiers));
        }
        input
    }

    #[test]
    fn a_line_is_edited_as_in_a_shell() {
        let (plain, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
        let text = |text: &str| text.chars().map(|c| (KeyCode::Char(c), plain)).collect::<Vec<_>>();
        for (name, more, expected) in [
            ("nothing", vec![], "no new  deps"),
            ("a word back", vec![(KeyCode::Char('w'), control)], "no new  "),
            ("two words back", vec![(KeyCode::Char('w'), control); 2], "no "),
            ("all", vec![(KeyCode::Char('u'), control)], ""),
            ("one back", vec![(KeyCode::Backspace, plain)], "no new  dep"),
            ("in front", vec![(KeyCode::Home, plain), (KeyCode::Char('x'), plain)], "xno new  deps"),
            ("the rest", vec![(KeyCode::Home, plain), (KeyCode::Char('k'), control)], ""),
            ("beyond the ends", vec![(KeyCode::Delete, plain), (KeyCode::Right, plain)], "no new  deps"),
        ] {
            assert_eq!(typed(&[text("no new  deps"), more].concat()).text(), expected, "{name}");
        }
    }

    #[test]
    fn what_is_pasted_is_one_harmless_line() {
        let mut input = TextInput::default();
        input.insert("a\nb\u{1b}[2J\u{202e} c");
        assert_eq!(input.text(), "a b[2J c");
        input.insert(&"x".repeat(MAX_CHARS * 2));
        assert_eq!(input.text().chars().count(), MAX_CHARS);
    }

    #[test]
    fn the_cursor_stays_in_sight() {
        let mut input = TextInput::new("abcdefgh");
        assert_eq!(input.view(4), ("fgh".into(), 3));
        input.edit(KeyCode::Home.into());
        assert_eq!(input.view(4), ("abcd".into(), 0));
        assert_eq!(TextInput::new("测试").view(3), ("试".into(), 2));
        assert_eq!(TextInput::new("").view(0), (String::new(), 0));
    }
}

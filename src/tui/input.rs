//! A one-line text field: text, cursor, editing keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    chars: Vec<char>,
    cursor: usize,
}

impl Input {
    pub fn of(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        Self { cursor: chars.len(), chars }
    }

    pub fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// Text before, under and after the cursor.
    pub fn around_cursor(&self) -> (String, String, String) {
        let under = self.chars.get(self.cursor).map_or_else(|| " ".to_owned(), char::to_string);
        let after = self.chars.get(self.cursor + 1..).unwrap_or_default().iter().collect();
        (self.chars[..self.cursor].iter().collect(), under, after)
    }

    pub fn insert(&mut self, text: &str) {
        for c in crate::text::sanitize(text).replace('\n', " ").chars() {
            self.chars.insert(self.cursor, c);
            self.cursor += 1;
        }
    }

    /// True when the key was an editing key.
    pub fn edit(&mut self, key: KeyEvent) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('a') => self.cursor = 0,
                KeyCode::Char('e') => self.cursor = self.chars.len(),
                KeyCode::Char('u') => {
                    self.chars.drain(..self.cursor);
                    self.cursor = 0;
                }
                KeyCode::Char('w') => self.delete_word(),
                KeyCode::Char('h') => self.backspace(),
                _ => return false,
            }
            return true;
        }
        match key.code {
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::ALT) => {
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace => self.backspace(),
            KeyCode::Delete if self.cursor < self.chars.len() => {
                self.chars.remove(self.cursor);
            }
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.chars.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.chars.len(),
            _ => return false,
        }
        true
    }

    fn backspace(&mut self) {
        if self.cursor > 0 {
            self.cursor -= 1;
            self.chars.remove(self.cursor);
        }
    }

    fn delete_word(&mut self) {
        let start = self.chars[..self.cursor]
            .iter()
            .rposition(|c| !c.is_whitespace())
            .and_then(|last| self.chars[..last].iter().rposition(|c| c.is_whitespace()))
            .map_or(0, |space| space + 1);
        self.chars.drain(start..self.cursor);
        self.cursor = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(input: &mut Input, code: KeyCode, modifiers: KeyModifiers) {
        input.edit(KeyEvent::new(code, modifiers));
    }

    #[test]
    fn edits_at_the_cursor() {
        let mut input = Input::of("too specific");
        press(&mut input, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(input.text(), "too ");
        press(&mut input, KeyCode::Home, KeyModifiers::NONE);
        press(&mut input, KeyCode::Char('é'), KeyModifiers::NONE);
        press(&mut input, KeyCode::Right, KeyModifiers::NONE);
        press(&mut input, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(input.text(), "éoo ");
        press(&mut input, KeyCode::End, KeyModifiers::NONE);
        press(&mut input, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(input, Input::default());
    }

    #[test]
    fn pasted_text_is_one_inert_line() {
        let mut input = Input::default();
        input.insert("a\nb\x1b[2Jc");
        assert_eq!(input.text(), "a bc");
    }
}

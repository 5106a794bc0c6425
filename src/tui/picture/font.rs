//! The bitmap font of pictures: which glyph a character has (PC Screen Font, version 1). Draws nothing.

use std::collections::HashMap;

use spleen_font::FONT_8X16;

use super::marks::marks;

/// Rows of a glyph, one byte each, the leftmost pixel first.
const ROWS: usize = 16;
const HEADER: usize = 4;
const MAGIC: [u8; 2] = [0x36, 0x04];
/// Bits of the mode byte.
const HAS_512: u8 = 1;
const HAS_TABLE: u8 = 2;
/// In the table: the end of a glyph's characters, and the start of a sequence of several.
const END: u16 = 0xffff;
const SEQUENCE: u16 = 0xfffe;

pub struct Font {
    glyphs: &'static [u8],
    of: HashMap<char, usize>,
    /// Shapes that go before the font's.
    marks: HashMap<char, [u8; ROWS]>,
}

impl Font {
    /// # Errors
    /// The font that comes with the program is not one.
    pub fn spleen() -> Result<Self, String> {
        Self::parse(FONT_8X16).ok_or_else(|| "the bitmap font is damaged".to_owned())
    }

    fn parse(bytes: &'static [u8]) -> Option<Self> {
        let header = bytes.get(..HEADER)?;
        if header[..2] != MAGIC || header[2] & HAS_TABLE == 0 || usize::from(header[3]) != ROWS {
            return None;
        }
        let count = if header[2] & HAS_512 == 0 { 256 } else { 512 };
        let glyphs = bytes.get(HEADER..HEADER + count * ROWS)?;
        let table =
            bytes[HEADER + count * ROWS..].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let (mut of, mut glyph, mut in_sequence) = (HashMap::new(), 0, false);
        for value in table {
            match value {
                END => (glyph, in_sequence) = (glyph + 1, false),
                SEQUENCE => in_sequence = true,
                value if !in_sequence => {
                    if let Some(c) = char::from_u32(u32::from(value)) {
                        of.entry(c).or_insert(glyph);
                    }
                }
                _ => {}
            }
        }
        Some(Self { glyphs, of, marks: marks().collect() })
    }

    pub fn glyph(&self, c: char) -> Option<&[u8]> {
        if let Some(mark) = self.marks.get(&c) {
            return Some(mark);
        }
        let at = self.of.get(&c)? * ROWS;
        self.glyphs.get(at..at + ROWS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_lines_have_their_shapes() {
        let font = Font::spleen().unwrap();
        let line = font.glyph('─').unwrap();
        assert!(line.contains(&0xff), "a rule crosses the whole cell: {line:?}");
        assert!(font.glyph('│').unwrap().iter().all(|row| row.count_ones() > 0), "and this one too");
        assert!(font.glyph(' ').unwrap().iter().all(|row| *row == 0));
        assert_ne!(font.glyph('O'), font.glyph('Q'));
        assert_eq!(font.glyph('東'), None);
    }

    #[test]
    fn no_mark_of_the_workbench_is_drawn_as_another() {
        let font = Font::spleen().unwrap();
        let marks: Vec<char> = "Δ△▲▴▼▾▶▸◀◂↑↓→←✓√✗x★*◌◐○●■◆‼↻o⚠!☠X⇠⇤⇄✎".chars().collect();
        for (at, mark) in marks.iter().enumerate() {
            let glyph = font.glyph(*mark).unwrap();
            assert!(glyph.iter().any(|row| *row != 0), "{mark} is blank");
            for other in &marks[at + 1..] {
                assert_ne!(Some(glyph), font.glyph(*other), "{mark} looks like {other}");
            }
        }
    }
}

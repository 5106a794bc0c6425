//! Cells as text, without and with colours.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use super::characters;
use crate::tui::colour::rgb;

pub fn text(buf: &Buffer, area: Rect) -> String {
    let mut out = String::new();
    for y in area.top()..area.bottom() {
        let row: String = characters(buf, area, y).map(|(_, _, cell)| cell.symbol()).collect();
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

/// Blanks at the end of a row are kept where they are coloured.
pub fn ansi(buf: &Buffer, area: Rect) -> String {
    let plain = Cell::default();
    let mut out = String::new();
    for y in area.top()..area.bottom() {
        let mut row = String::new();
        let (mut last, mut kept) = (style(&plain), 0);
        for (_, _, cell) in characters(buf, area, y) {
            let style = style(cell);
            if style != last {
                row.push_str(&style);
                last = style;
            }
            row.push_str(cell.symbol());
            let blank = cell.symbol() == " " && cell.bg == Color::Reset && cell.modifier.is_empty();
            if !blank {
                kept = row.len();
            }
        }
        row.truncate(kept);
        out.push_str(&row);
        if row.contains('\x1b') {
            out.push_str("\x1b[0m");
        }
        out.push('\n');
    }
    out
}

fn style(cell: &Cell) -> String {
    let mut out = String::from("\x1b[0");
    for (modifier, code) in [
        (Modifier::BOLD, ";1"),
        (Modifier::ITALIC, ";3"),
        (Modifier::UNDERLINED, ";4"),
        (Modifier::REVERSED, ";7"),
    ] {
        if cell.modifier.contains(modifier) {
            out.push_str(code);
        }
    }
    for (colour, code) in [(cell.fg, 38), (cell.bg, 48)] {
        if let Some((r, g, b)) = rgb(colour) {
            out.push_str(&format!(";{code};2;{r};{g};{b}"));
        }
    }
    out.push('m');
    out
}

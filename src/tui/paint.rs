//! The one way text reaches the screen buffer: sanitised, measured, cut, styled by role. Knows no pane.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::theme::{Role, Theme};
use crate::text::{sanitize_line, truncate, width};

/// A piece of one line.
pub type Span = (Role, String);

pub fn span(role: Role, text: impl Into<String>) -> Span {
    (role, text.into())
}

/// Total width of a line of spans.
pub fn spans_width(spans: &[Span]) -> usize {
    spans.iter().map(|(_, text)| width(&sanitize_line(text))).sum()
}

pub struct Canvas<'a> {
    pub buf: &'a mut Buffer,
    pub theme: &'a Theme,
    /// The last row that was laid under a selection bar.
    pub selected: Option<Rect>,
}

impl Canvas<'_> {
    /// Writes one line into the first row of `area` and says how many columns it took.
    pub fn line(&mut self, area: Rect, spans: &[Span]) -> u16 {
        let area = area.intersection(self.buf.area);
        if area.is_empty() {
            return 0;
        }
        let mut used = 0;
        for (role, text) in spans {
            let room = area.width - used;
            let text = truncate(&sanitize_line(text), room as usize);
            if text.is_empty() {
                continue;
            }
            let (end, _) =
                self.buf.set_stringn(area.x + used, area.y, &text, room as usize, self.theme.style(*role));
            used = end - area.x;
        }
        used
    }

    /// [`line`](Self::line) flush right. Nothing is written when it does not fit.
    pub fn line_right(&mut self, area: Rect, spans: &[Span]) -> u16 {
        let needed = spans_width(spans) as u16;
        if needed > area.width {
            return 0;
        }
        self.line(Rect { x: area.x + area.width - needed, width: needed, ..area }, spans)
    }

    /// Lays a role over what is there (a selection bar).
    pub fn overlay_style(&mut self, area: Rect, role: Role) {
        let area = area.intersection(self.buf.area);
        if role == Role::Selection {
            self.selected = Some(area);
        }
        self.buf.set_style(area, self.theme.style(role));
    }

    /// Blanks an area, so that what lies under an overlay does not show through.
    pub fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buf.area);
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                self.buf[(x, y)].reset();
            }
            // A wide character cut in half by the edge would push the rest of its row.
            if area.left() > self.buf.area.left() {
                let before = &mut self.buf[(area.left() - 1, y)];
                if width(before.symbol()) > 1 {
                    before.reset();
                }
            }
        }
    }

    /// A box with a title on its upper edge; gives the inside, one column of air left and right.
    pub fn boxed(&mut self, area: Rect, focused: bool, title: &[Span], right: &[Span]) -> Rect {
        let area = area.intersection(self.buf.area);
        if area.width < 4 || area.height < 2 {
            return Rect::ZERO;
        }
        let style = self.theme.style(if focused { Role::Focus } else { Role::Border });
        let (x0, y0, x1, y1) = (area.x, area.y, area.right() - 1, area.bottom() - 1);
        for x in x0 + 1..x1 {
            self.glyph(x, y0, "─", style);
            self.glyph(x, y1, "─", style);
        }
        for y in y0 + 1..y1 {
            self.glyph(x0, y, "│", style);
            self.glyph(x1, y, "│", style);
        }
        for (x, y, corner) in [(x0, y0, "╭"), (x1, y0, "╮"), (x0, y1, "╰"), (x1, y1, "╯")] {
            self.glyph(x, y, corner, style);
        }
        let top = Rect { x: x0 + 2, y: y0, width: area.width - 4, height: 1 };
        let used = self.line(top, &padded(title));
        let rest = Rect { x: top.x + used, width: top.width - used, ..top };
        if !right.is_empty() && rest.width > 2 {
            self.line_right(Rect { x: rest.x + 1, width: rest.width - 1, ..rest }, &padded(right));
        }
        Rect { x: x0 + 2, y: y0 + 1, width: area.width - 4, height: area.height - 2 }
    }

    fn glyph(&mut self, x: u16, y: u16, symbol: &str, style: Style) {
        self.buf[(x, y)].set_symbol(symbol).set_style(style);
    }
}

/// One space before and after, so that the border does not touch the words.
fn padded(spans: &[Span]) -> Vec<Span> {
    let mut out = vec![span(Role::Text, " ")];
    out.extend_from_slice(spans);
    out.push(span(Role::Text, " "));
    out
}

/// The rows of an area, top to bottom.
pub fn rows_of(area: Rect) -> impl Iterator<Item = Rect> {
    (area.y..area.bottom()).map(move |y| Rect { y, height: 1, ..area })
}

/// First line shown so that `selected` of `total` is inside `visible` lines, in the middle where possible.
pub fn window(selected: usize, total: usize, visible: usize) -> usize {
    selected.saturating_sub(visible / 2).min(total.saturating_sub(visible))
}

/// A styled line in exactly `columns`: cut, or padded on the right.
pub fn fitted(spans: &[Span], columns: usize) -> Vec<Span> {
    let mut out = Vec::with_capacity(spans.len() + 1);
    let mut room = columns;
    for (role, text) in spans {
        let text = truncate(&sanitize_line(text), room);
        room -= width(&text);
        out.push((*role, text));
    }
    out.push(span(Role::Text, " ".repeat(room)));
    out
}

/// Breaks a styled line into lines of at most `columns`: at spaces where it can, inside a word where it must.
pub fn wrap_spans(spans: &[Span], columns: usize) -> Vec<Vec<Span>> {
    use unicode_segmentation::UnicodeSegmentation;
    let columns = columns.max(1);
    let mut pieces: Vec<(Role, String)> = Vec::new();
    for (role, text) in spans {
        pieces.extend(sanitize_line(text).graphemes(true).map(|grapheme| (*role, grapheme.to_owned())));
    }
    let mut out = Vec::new();
    let mut start = 0;
    while start < pieces.len() {
        let (mut end, mut used, mut space) = (start, 0, None);
        while end < pieces.len() && used + width(&pieces[end].1) <= columns {
            used += width(&pieces[end].1);
            if pieces[end].1 == " " {
                space = Some(end + 1);
            }
            end += 1;
        }
        if end < pieces.len()
            && let Some(after) = space
        {
            end = after;
        }
        // A character wider than the line still has to go somewhere.
        end = end.max(start + 1);
        out.push(joined(&pieces[start..end]));
        start = end;
    }
    if out.is_empty() {
        out.push(Vec::new());
    }
    out
}

fn joined(pieces: &[Span]) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    for (role, text) in pieces {
        match out.last_mut() {
            Some((last, so_far)) if last == role => so_far.push_str(text),
            _ => out.push((*role, text.clone())),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styled_lines_wrap_at_spaces_and_keep_their_roles() {
        let line = [span(Role::Added, "- say "), span(Role::AddedWord, "country"), span(Role::Added, " now")];
        let wrapped = wrap_spans(&line, 8);
        assert_eq!(wrapped[0], [span(Role::Added, "- say ")]);
        assert_eq!(wrapped[1], [span(Role::AddedWord, "country"), span(Role::Added, " ")]);
        assert_eq!(wrap_spans(&[span(Role::Text, "abcdef")], 4).len(), 2);
        assert_eq!(wrap_spans(&[], 4), [Vec::new()]);
    }

    #[test]
    fn the_window_keeps_the_selection_inside() {
        for selected in 0..20 {
            let first = window(selected, 20, 7);
            assert!(first <= selected && selected < first + 7 && first + 7 <= 20);
        }
        assert_eq!(window(2, 3, 7), 0);
    }
}

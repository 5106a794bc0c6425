//! A drawn screen, or one pane of it, as text, text with colours, SVG or PNG. Turns cells into bytes; writes no file and
//! knows no app.

mod font;
mod marks;
mod raster;
mod vector;
mod words;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::colour::{Rgb, rgb};
use super::theme::Theme;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Text,
    Ansi,
    Svg,
    Png,
}

impl Format {
    pub const ALL: [Format; 4] = [Format::Text, Format::Ansi, Format::Svg, Format::Png];

    pub fn extension(self) -> &'static str {
        match self {
            Format::Text => "txt",
            Format::Ansi => "ansi",
            Format::Svg => "svg",
            Format::Png => "png",
        }
    }

    pub fn doc(self) -> &'static str {
        match self {
            Format::Text => "plain text",
            Format::Ansi => "text with colours, for `cat` and `less -R`",
            Format::Svg => "a drawing for web pages and papers",
            Format::Png => "a picture",
        }
    }

    /// By the ending of a file's name.
    pub fn of_extension(extension: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.extension() == extension)
    }
}

/// The cells of `area` in this format. The buffer must be drawn with `theme`.
///
/// # Errors
/// Only the encoder of pictures has any.
pub fn picture(buf: &Buffer, area: Rect, theme: &Theme, format: Format) -> Result<Vec<u8>, String> {
    let area = area.intersection(buf.area);
    Ok(match format {
        Format::Text => words::text(buf, area).into_bytes(),
        Format::Ansi => words::ansi(buf, area).into_bytes(),
        Format::Svg => vector::svg(buf, area, theme).into_bytes(),
        Format::Png => raster::png(buf, area, theme)?,
    })
}

/// The cells of a row that begin a character: column, columns taken, cell. What a wide character covers is left out.
fn characters(buf: &Buffer, area: Rect, y: u16) -> impl Iterator<Item = (u16, u16, &Cell)> {
    let mut x = area.left();
    std::iter::from_fn(move || {
        (x < area.right()).then(|| {
            let (at, cell) = (x, &buf[(x, y)]);
            let columns = (crate::text::width(cell.symbol()) as u16).clamp(1, 2);
            x += columns;
            (at, columns, cell)
        })
    })
}

/// Colours of ink and paper, reverse video done.
fn colours(cell: &Cell, theme: &Theme) -> (Rgb, Rgb) {
    let ink = rgb(cell.fg).unwrap_or(theme.foreground);
    let paper = rgb(cell.bg).unwrap_or(theme.background);
    if cell.modifier.contains(Modifier::REVERSED) { (paper, ink) } else { (ink, paper) }
}

#[cfg(test)]
mod tests {
    use ratatui::style::{Color, Style};

    use super::*;
    use crate::tui::Depth;

    fn drawn() -> (Buffer, Theme) {
        let mut buf = Buffer::empty(Rect::new(0, 0, 12, 2));
        let bold = Style::new().fg(Color::Rgb(200, 10, 20)).add_modifier(Modifier::BOLD);
        buf.set_string(0, 0, "a<&東京⠿█", bold);
        buf.set_string(0, 1, "plain", Style::new());
        (buf, Theme::dark(Depth::True).unwrap())
    }

    fn made(format: Format) -> String {
        let (buf, theme) = drawn();
        String::from_utf8(picture(&buf, buf.area, &theme, format).unwrap()).unwrap()
    }

    #[test]
    fn text_has_every_character_once_and_no_trailing_blanks() {
        assert_eq!(made(Format::Text), "a<&東京⠿█\nplain\n");
    }

    #[test]
    fn colours_are_set_once_and_reset_at_the_end_of_a_row() {
        let ansi = made(Format::Ansi);
        assert_eq!(ansi, "\x1b[0;1;38;2;200;10;20ma<&東京⠿█\x1b[0m\nplain\n");
    }

    #[test]
    fn a_drawing_is_escaped_and_says_its_size() {
        let svg = made(Format::Svg);
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        assert!(
            svg.contains("a&lt;&amp;東京⠿█")
                && svg.contains("#c80a14")
                && svg.contains("font-weight=\"bold\"")
        );
        assert!(!svg.contains("a<&"));
    }

    #[test]
    fn a_picture_has_the_pixels_of_its_cells() {
        let (buf, theme) = drawn();
        let bytes = picture(&buf, buf.area, &theme, Format::Png).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (12 * 8, 2 * 16));
        let at = |x: usize, y: usize| {
            let start = (y * 96 + x) * 3;
            (pixels[start], pixels[start + 1], pixels[start + 2])
        };
        // The full block is in column 8, the paper below it.
        assert_eq!(at(8 * 8 + 4, 8), (200, 10, 20));
        assert_eq!(at(8 * 8 + 4, 24), theme.background);
        // Six of the eight dots of the braille cell in column 7 are set.
        let lit =
            (0..16).flat_map(|y| (56..64).map(move |x| (x, y))).filter(|(x, y)| at(*x, *y) == (200, 10, 20));
        assert_eq!(lit.count(), 6 * 4);
    }

    #[test]
    fn a_part_of_the_screen_is_cut_out() {
        let (buf, theme) = drawn();
        let part = picture(&buf, Rect::new(0, 1, 3, 9), &theme, Format::Text).unwrap();
        assert_eq!(part, b"pla\n");
        assert_eq!(Format::of_extension("svg"), Some(Format::Svg));
        assert_eq!(Format::of_extension("gif"), None);
    }
}

//! Cells as pixels: letters of a bitmap font, dots of braille and parts of blocks drawn by their meaning.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::font::Font;
use super::{characters, colours};
use crate::tui::colour::Rgb;
use crate::tui::theme::Theme;

/// Pixels of a cell.
const WIDTH: usize = 8;
const HEIGHT: usize = 16;
const UNDERLINE: usize = 14;

struct Canvas {
    pixels: Vec<u8>,
    width: usize,
}

impl Canvas {
    fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, (r, g, b): Rgb) {
        for row in y..y + height {
            for column in x..(x + width).min(self.width) {
                let at = (row * self.width + column) * 3;
                if let Some(pixel) = self.pixels.get_mut(at..at + 3) {
                    pixel.copy_from_slice(&[r, g, b]);
                }
            }
        }
    }
}

pub fn png(buf: &Buffer, area: Rect, theme: &Theme) -> Result<Vec<u8>, String> {
    let (width, height) = (usize::from(area.width) * WIDTH, usize::from(area.height) * HEIGHT);
    let mut canvas = Canvas { pixels: vec![0; width * height * 3], width };
    let font = Font::spleen()?;
    for y in area.top()..area.bottom() {
        for (x, columns, cell) in characters(buf, area, y) {
            let (ink, paper) = colours(cell, theme);
            let left = usize::from(x - area.left()) * WIDTH;
            let top = usize::from(y - area.top()) * HEIGHT;
            let wide = usize::from(columns) * WIDTH;
            canvas.fill(left, top, wide, HEIGHT, paper);
            if let Some(c) = cell.symbol().chars().next() {
                character(&mut canvas, &font, c, (left, top, wide), ink, cell.modifier);
            }
            if cell.modifier.contains(Modifier::UNDERLINED) {
                canvas.fill(left, top + UNDERLINE, wide, 1, ink);
            }
        }
    }
    encoded(&canvas, width as u32, height as u32).map_err(|error| error.to_string())
}

fn character(
    canvas: &mut Canvas,
    font: &Font,
    c: char,
    (left, top, wide): (usize, usize, usize),
    ink: Rgb,
    modifier: Modifier,
) {
    match c {
        ' ' => {}
        '\u{2800}'..='\u{28ff}' => {
            for (column, row) in dots(c) {
                canvas.fill(left + column * 4 + 1, top + row * 4 + 1, 2, 2, ink);
            }
        }
        '\u{2580}'..='\u{259f}' => {
            if let Some((x, y, width, height)) = block(c) {
                canvas.fill(left + x, top + y, width, height, ink);
            } else {
                letter(canvas, font, c, (left, top, wide), ink, false);
            }
        }
        _ => letter(canvas, font, c, (left, top, wide), ink, modifier.contains(Modifier::BOLD)),
    }
}

/// Column and row of each dot that is set.
fn dots(c: char) -> impl Iterator<Item = (usize, usize)> {
    // The order in which the character's bits name the dots.
    const PLACES: [(usize, usize); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
    let bits = u32::from(c) - 0x2800;
    PLACES.into_iter().enumerate().filter(move |(bit, _)| bits >> bit & 1 == 1).map(|(_, place)| place)
}

/// The part of a cell that a block covers, for those that are one rectangle.
fn block(c: char) -> Option<(usize, usize, usize, usize)> {
    Some(match c {
        '▀' => (0, 0, WIDTH, HEIGHT / 2),
        '▁'..='█' => {
            let eighths = (u32::from(c) - 0x2580) as usize;
            (0, HEIGHT - eighths * 2, WIDTH, eighths * 2)
        }
        '▉'..='▏' => (0, 0, 8 - (u32::from(c) - 0x2588) as usize, HEIGHT),
        '▐' => (WIDTH / 2, 0, WIDTH / 2, HEIGHT),
        '▔' => (0, 0, WIDTH, 2),
        '▕' => (WIDTH - 1, 0, 1, HEIGHT),
        _ => return None,
    })
}

/// A character the font does not have is an empty box as wide as it is.
fn letter(
    canvas: &mut Canvas,
    font: &Font,
    c: char,
    (left, top, wide): (usize, usize, usize),
    ink: Rgb,
    bold: bool,
) {
    let Some(glyph) = font.glyph(c) else {
        for (x, y, width, height) in
            [(1, 3, wide - 2, 1), (1, 13, wide - 2, 1), (1, 3, 1, 10), (wide - 2, 3, 1, 10)]
        {
            canvas.fill(left + x, top + y, width, height, ink);
        }
        return;
    };
    for (y, row) in glyph.iter().enumerate() {
        for x in 0..WIDTH {
            if row << x & 0x80 != 0 {
                canvas.fill(left + x, top + y, if bold && x + 1 < WIDTH { 2 } else { 1 }, 1, ink);
            }
        }
    }
}

fn encoded(canvas: &Canvas, width: u32, height: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&canvas.pixels)?;
    writer.finish()?;
    Ok(out)
}

//! Cells as SVG: one rectangle per stretch of paper, one text per stretch of ink.

use std::fmt::Write;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::{characters, colours};
use crate::tui::colour::Rgb;
use crate::tui::theme::Theme;

/// Units of a cell.
const WIDTH: u32 = 8;
const HEIGHT: u32 = 17;
/// From the top of a cell to the line that letters stand on.
const BASELINE: u32 = 13;

/// Cells alike, side by side.
struct Stretch {
    x: u32,
    columns: u32,
    text: String,
    ink: Rgb,
    paper: Rgb,
    modifier: Modifier,
}

pub fn svg(buf: &Buffer, area: Rect, theme: &Theme) -> String {
    let (width, height) = (u32::from(area.width) * WIDTH, u32::from(area.height) * HEIGHT);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        hex(theme.background)
    );
    for y in area.top()..area.bottom() {
        let top = u32::from(y - area.top()) * HEIGHT;
        for stretch in stretches(buf, area, y, theme) {
            // Writing to a string cannot fail.
            let _ = draw(&mut out, &stretch, top, theme);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn stretches(buf: &Buffer, area: Rect, y: u16, theme: &Theme) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    for (x, columns, cell) in characters(buf, area, y) {
        let (ink, paper) = colours(cell, theme);
        let modifier = cell.modifier - Modifier::REVERSED;
        match out.last_mut() {
            Some(last) if (last.ink, last.paper, last.modifier) == (ink, paper, modifier) => {
                last.columns += u32::from(columns);
                last.text.push_str(cell.symbol());
            }
            _ => out.push(Stretch {
                x: u32::from(x - area.left()),
                columns: u32::from(columns),
                text: cell.symbol().to_owned(),
                ink,
                paper,
                modifier,
            }),
        }
    }
    out
}

fn draw(out: &mut String, stretch: &Stretch, top: u32, theme: &Theme) -> std::fmt::Result {
    let (x, length) = (stretch.x * WIDTH, stretch.columns * WIDTH);
    if stretch.paper != theme.background {
        writeln!(
            out,
            "<rect x=\"{x}\" y=\"{top}\" width=\"{length}\" height=\"{HEIGHT}\" fill=\"{}\"/>",
            hex(stretch.paper)
        )?;
    }
    if stretch.text.trim().is_empty() {
        return Ok(());
    }
    write!(
        out,
        "<text x=\"{x}\" y=\"{}\" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\" fill=\"{}\"",
        top + BASELINE,
        hex(stretch.ink)
    )?;
    for (modifier, attribute) in [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::ITALIC, " font-style=\"italic\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
    ] {
        if stretch.modifier.contains(modifier) {
            out.push_str(attribute);
        }
    }
    writeln!(out, ">{}</text>", escaped(&stretch.text))
}

fn hex((r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

//! Colours as numbers: how many a terminal shows, the notation of themes, and the nearest colour of a smaller palette.
//! Knows no role.

use ratatui::style::Color;

pub type Rgb = (u8, u8, u8);

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    True,
    Ansi256,
    Ansi16,
    /// `NO_COLOR`: bold, reverse and underline only.
    None,
}

impl Depth {
    /// From the environment variables `NO_COLOR`, `COLORTERM` and `TERM`.
    pub fn detect(no_color: Option<&str>, colorterm: Option<&str>, term: Option<&str>) -> Self {
        if no_color.is_some_and(|value| !value.is_empty()) {
            return Depth::None;
        }
        let term = term.unwrap_or_default();
        // Inside screen the variable is inherited from a terminal that is not the one asked.
        let inherited = term.starts_with("screen");
        match colorterm {
            Some("truecolor" | "24bit") if !inherited => Depth::True,
            _ if term.contains("256color") || term.contains("direct") => Depth::Ansi256,
            _ => Depth::Ansi16,
        }
    }
}

/// A colour as a theme states it: in full, and by name for 16 colours where the nearest would not do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    pub full: Option<Rgb>,
    pub named: Option<Color>,
}

impl Stated {
    /// `None` at [`Depth::None`], and where nothing is stated.
    pub fn at(self, depth: Depth) -> Option<Color> {
        match depth {
            Depth::None => None,
            Depth::Ansi16 => self.named.or_else(|| self.full.map(nearest_16)),
            Depth::True => self.full.map(|(r, g, b)| Color::Rgb(r, g, b)).or(self.named),
            Depth::Ansi256 => self.full.map(nearest_256).or(self.named),
        }
    }
}

pub fn hex(text: &str) -> Result<Rgb, String> {
    let value = text.strip_prefix('#').filter(|digits| digits.len() == 6);
    let value = value.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let value = value.ok_or_else(|| format!("`{text}` is not a colour like `#6cb6c9`"))?;
    Ok(((value >> 16) as u8, (value >> 8) as u8, value as u8))
}

/// The 16 colours: name, and what xterm shows for it.
const ANSI: [(&str, Color, Rgb); 16] = [
    ("black", Color::Black, (0, 0, 0)),
    ("red", Color::Red, (205, 0, 0)),
    ("green", Color::Green, (0, 205, 0)),
    ("yellow", Color::Yellow, (205, 205, 0)),
    ("blue", Color::Blue, (0, 0, 238)),
    ("magenta", Color::Magenta, (205, 0, 205)),
    ("cyan", Color::Cyan, (0, 205, 205)),
    ("white", Color::Gray, (229, 229, 229)),
    ("bright_black", Color::DarkGray, (127, 127, 127)),
    ("bright_red", Color::LightRed, (255, 0, 0)),
    ("bright_green", Color::LightGreen, (0, 255, 0)),
    ("bright_yellow", Color::LightYellow, (255, 255, 0)),
    ("bright_blue", Color::LightBlue, (92, 92, 255)),
    ("bright_magenta", Color::LightMagenta, (255, 0, 255)),
    ("bright_cyan", Color::LightCyan, (0, 255, 255)),
    ("bright_white", Color::White, (255, 255, 255)),
];

pub fn named(text: &str) -> Result<Color, String> {
    ANSI.iter()
        .find(|(name, _, _)| *name == text)
        .map(|(_, colour, _)| *colour)
        .ok_or_else(|| format!("`{text}` is not one of the 16 ANSI colours (`cyan`, `bright_black`, …)"))
}

/// What a colour of a buffer looks like in a picture; `None`: the default of whoever shows it.
pub fn rgb(colour: Color) -> Option<Rgb> {
    match colour {
        Color::Rgb(r, g, b) => Some((r, g, b)),
        Color::Indexed(index) => Some(indexed(index)),
        Color::Reset => None,
        other => ANSI.iter().find(|(_, named, _)| *named == other).map(|(_, _, rgb)| *rgb),
    }
}

const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn indexed(index: u8) -> Rgb {
    match index {
        0..16 => ANSI[index as usize].2,
        16..232 => {
            let at = |n: u8| LEVELS[usize::from(n % 6)];
            (at((index - 16) / 36), at((index - 16) / 6), at(index - 16))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}

fn distance(a: Rgb, b: Rgb) -> u32 {
    [(a.0, b.0), (a.1, b.1), (a.2, b.2)].iter().map(|(x, y)| u32::from(x.abs_diff(*y)).pow(2)).sum()
}

fn nearest_16(colour: Rgb) -> Color {
    ANSI.iter().min_by_key(|(_, _, ansi)| distance(*ansi, colour)).map_or(Color::Reset, |row| row.1)
}

/// Nearest entry of the xterm palette's colour cube (16-231) and grey ramp (232-255).
fn nearest_256(colour: Rgb) -> Color {
    let best = (16..=255).min_by_key(|index| distance(indexed(*index), colour)).unwrap_or(16);
    Color::Indexed(best)
}

#[cfg(test)]
/// WCAG contrast ratio, 1 to 21.
pub fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
    if a > b { a / b } else { b / a }
}

/// A background on which dark text reads better than light text.
pub fn is_light(background: Rgb) -> bool {
    luminance(background) > 0.18
}

fn luminance((r, g, b): Rgb) -> f64 {
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

/// Light of an sRGB channel.
pub fn linear(value: u8) -> f64 {
    let value = f64::from(value) / 255.0;
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_follows_the_environment() {
        assert_eq!(Depth::detect(Some("1"), Some("truecolor"), None), Depth::None);
        assert_eq!(Depth::detect(Some(""), Some("truecolor"), Some("xterm")), Depth::True);
        assert_eq!(Depth::detect(None, Some("truecolor"), Some("screen-256color")), Depth::Ansi256);
        assert_eq!(Depth::detect(None, None, Some("xterm")), Depth::Ansi16);
    }

    #[test]
    fn smaller_palettes_get_the_nearest_colour() {
        let amber = Stated { full: Some((215, 175, 95)), named: None };
        assert_eq!(amber.at(Depth::Ansi256), Some(Color::Indexed(179)));
        assert_eq!(amber.at(Depth::Ansi16), Some(Color::Yellow));
        let grey = Stated { full: Some((29, 33, 38)), named: None };
        assert_eq!(grey.at(Depth::Ansi256), Some(Color::Indexed(235)));
        let stated = Stated { named: Some(Color::Cyan), ..amber };
        assert_eq!(stated.at(Depth::Ansi16), Some(Color::Cyan));
        assert_eq!(stated.at(Depth::None), None);
        for index in 16..=255 {
            assert_eq!(rgb(nearest_256(indexed(index))), Some(indexed(index)));
        }
    }

    #[test]
    fn contrast_is_that_of_the_guideline() {
        assert!((contrast((0, 0, 0), (255, 255, 255)) - 21.0).abs() < 1e-9);
        assert!((contrast((119, 119, 119), (255, 255, 255)) - 4.48).abs() < 0.01);
        assert!(is_light((250, 250, 245)) && !is_light((29, 33, 38)));
    }
}

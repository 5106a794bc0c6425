//! Roles and the styles a theme gives them. The only place that knows colours; what a role means is said by
//! glyphs and words elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

const DARK: &str = include_str!("../../themes/dark.toml");

/// What a piece of the screen is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Text,
    /// Secondary words.
    Dim,
    /// Rules, gutters, placeholders.
    Faint,
    Strong,
    Border,
    Focus,
    Title,
    TitleFocus,
    Brand,
    Key,
    Selection,
    /// The phase or row at work.
    Active,
    Good,
    Bad,
    Warn,
    /// A decision that waits.
    Review,
    Added,
    Removed,
    AddedWord,
    RemovedWord,
    #[serde(rename = "series_1")]
    Series1,
    #[serde(rename = "series_2")]
    Series2,
    #[serde(rename = "series_3")]
    Series3,
    #[serde(rename = "series_4")]
    Series4,
    /// The baseline run that curves are compared with.
    Pinned,
    Crosshair,
    /// Where an alert was raised.
    AlertMark,
    /// Words a model thought, not said.
    Thinking,
    /// Tool calls and their results.
    Tool,
    SynHeading,
    SynStrong,
    SynCode,
    SynKeyword,
    SynString,
    SynComment,
    SynNumber,
}

impl Role {
    pub const ALL: [Role; 36] = [
        Role::Text,
        Role::Dim,
        Role::Faint,
        Role::Strong,
        Role::Border,
        Role::Focus,
        Role::Title,
        Role::TitleFocus,
        Role::Brand,
        Role::Key,
        Role::Selection,
        Role::Active,
        Role::Good,
        Role::Bad,
        Role::Warn,
        Role::Review,
        Role::Added,
        Role::Removed,
        Role::AddedWord,
        Role::RemovedWord,
        Role::Series1,
        Role::Series2,
        Role::Series3,
        Role::Series4,
        Role::Pinned,
        Role::Crosshair,
        Role::AlertMark,
        Role::Thinking,
        Role::Tool,
        Role::SynHeading,
        Role::SynStrong,
        Role::SynCode,
        Role::SynKeyword,
        Role::SynString,
        Role::SynComment,
        Role::SynNumber,
    ];
}

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

#[derive(Debug, thiserror::Error)]
pub enum ThemeError {
    #[error("{}: cannot read the theme: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{name}: {message}")]
    Content { name: String, message: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeFile {
    name: String,
    roles: BTreeMap<Role, Look>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Look {
    fg: Option<String>,
    bg: Option<String>,
    fg16: Option<String>,
    bg16: Option<String>,
    bold: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

/// Styles by role, resolved for one colour depth.
#[derive(Clone, Debug)]
pub struct Theme {
    pub name: String,
    styles: [Style; Role::ALL.len()],
}

impl Theme {
    /// The built-in dark theme.
    ///
    /// # Errors
    /// Only if the built-in file is broken, which a test rules out.
    pub fn dark(depth: Depth) -> Result<Self, ThemeError> {
        Self::parse("themes/dark.toml", DARK, &[], depth)
    }

    /// A user's theme file; roles it leaves out are those of the dark theme.
    pub fn load(path: &Path, depth: Depth) -> Result<Self, ThemeError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ThemeError::Read { path: path.to_owned(), error })?;
        Self::parse(&path.display().to_string(), &text, &[DARK], depth)
    }

    fn parse(name: &str, text: &str, under: &[&str], depth: Depth) -> Result<Self, ThemeError> {
        let broken = |message: String| ThemeError::Content { name: name.to_owned(), message };
        let read = |text: &str| toml::from_str::<ThemeFile>(text).map_err(|error| broken(error.to_string()));
        let file = read(text)?;
        let mut looks = BTreeMap::new();
        for base in under {
            looks.extend(read(base)?.roles);
        }
        looks.extend(file.roles);
        let mut styles = [Style::new(); Role::ALL.len()];
        for (style, role) in styles.iter_mut().zip(Role::ALL) {
            let look = looks.get(&role).ok_or_else(|| broken(format!("role {role:?} is missing")))?;
            *style = look.style(role, depth).map_err(broken)?;
        }
        Ok(Self { name: file.name, styles })
    }

    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }
}

impl Look {
    fn style(&self, role: Role, depth: Depth) -> Result<Style, String> {
        let mut style = Style::new();
        for (on, modifier) in [
            (self.bold, Modifier::BOLD),
            (self.italic, Modifier::ITALIC),
            (self.underline, Modifier::UNDERLINED),
            (self.reverse, Modifier::REVERSED),
        ] {
            if on {
                style = style.add_modifier(modifier);
            }
        }
        if depth == Depth::None {
            // A background said "selected" or "look here": reverse video says it without colour.
            let marked = self.bg.is_some() || self.bg16.is_some();
            let word = matches!(role, Role::AddedWord | Role::RemovedWord);
            return Ok(match (marked, word) {
                (true, true) => style.add_modifier(Modifier::UNDERLINED),
                (true, false) => style.add_modifier(Modifier::REVERSED),
                (false, _) => style,
            });
        }
        style.fg = colour(self.fg.as_deref(), self.fg16.as_deref(), depth)?;
        style.bg = colour(self.bg.as_deref(), self.bg16.as_deref(), depth)?;
        Ok(style)
    }
}

fn colour(full: Option<&str>, ansi: Option<&str>, depth: Depth) -> Result<Option<Color>, String> {
    match depth {
        Depth::None => Ok(None),
        Depth::Ansi16 => ansi.map(named).transpose(),
        Depth::True => full.map(hex).transpose().map(|rgb| rgb.map(|(r, g, b)| Color::Rgb(r, g, b))),
        Depth::Ansi256 => full.map(hex).transpose().map(|rgb| rgb.map(nearest_256)),
    }
}

fn hex(text: &str) -> Result<(u8, u8, u8), String> {
    let value = text.strip_prefix('#').filter(|digits| digits.len() == 6);
    let value = value.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let value = value.ok_or_else(|| format!("`{text}` is not a colour like `#6cb6c9`"))?;
    Ok(((value >> 16) as u8, (value >> 8) as u8, value as u8))
}

fn named(text: &str) -> Result<Color, String> {
    Ok(match text {
        "black" => Color::Black,
        "red" => Color::Red,
        "green" => Color::Green,
        "yellow" => Color::Yellow,
        "blue" => Color::Blue,
        "magenta" => Color::Magenta,
        "cyan" => Color::Cyan,
        "white" => Color::Gray,
        "bright_black" => Color::DarkGray,
        "bright_red" => Color::LightRed,
        "bright_green" => Color::LightGreen,
        "bright_yellow" => Color::LightYellow,
        "bright_blue" => Color::LightBlue,
        "bright_magenta" => Color::LightMagenta,
        "bright_cyan" => Color::LightCyan,
        "bright_white" => Color::White,
        _ => return Err(format!("`{text}` is not one of the 16 ANSI colours (`cyan`, `bright_black`, …)")),
    })
}

/// Nearest entry of the xterm palette's colour cube (16-231) and grey ramp (232-255).
fn nearest_256((r, g, b): (u8, u8, u8)) -> Color {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let nearest = |value: u8| (0..6).min_by_key(|i| LEVELS[*i].abs_diff(value)).unwrap_or(0);
    let distance = |a: (u8, u8, u8)| {
        [(a.0, r), (a.1, g), (a.2, b)].iter().map(|(x, y)| u32::from(x.abs_diff(*y)).pow(2)).sum::<u32>()
    };
    let cube = (nearest(r), nearest(g), nearest(b));
    let cube_distance = distance((LEVELS[cube.0], LEVELS[cube.1], LEVELS[cube.2]));
    let mean = (u32::from(r) + u32::from(g) + u32::from(b)) / 3;
    let grey = (mean.saturating_sub(3) / 10).min(23) as u8;
    if distance((8 + 10 * grey, 8 + 10 * grey, 8 + 10 * grey)) < cube_distance {
        Color::Indexed(232 + grey)
    } else {
        Color::Indexed((16 + 36 * cube.0 + 6 * cube.1 + cube.2) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dark_theme_is_complete_at_every_depth() {
        for depth in [Depth::True, Depth::Ansi256, Depth::Ansi16, Depth::None] {
            let theme = Theme::dark(depth).unwrap();
            for role in Role::ALL {
                let style = theme.style(role);
                if depth == Depth::None {
                    assert_eq!((style.fg, style.bg), (None, None), "{role:?}");
                }
            }
        }
    }

    #[test]
    fn role_order_matches_its_table() {
        for (index, role) in Role::ALL.into_iter().enumerate() {
            assert_eq!(role as usize, index);
        }
    }

    #[test]
    fn without_colour_meaning_is_kept_by_reverse_and_underline() {
        let theme = Theme::dark(Depth::None).unwrap();
        assert!(theme.style(Role::Selection).add_modifier.contains(Modifier::REVERSED));
        assert!(theme.style(Role::AddedWord).add_modifier.contains(Modifier::UNDERLINED));
    }

    #[test]
    fn depth_follows_the_environment() {
        assert_eq!(Depth::detect(Some("1"), Some("truecolor"), None), Depth::None);
        assert_eq!(Depth::detect(Some(""), Some("truecolor"), Some("xterm")), Depth::True);
        assert_eq!(Depth::detect(None, Some("truecolor"), Some("screen-256color")), Depth::Ansi256);
        assert_eq!(Depth::detect(None, None, Some("xterm")), Depth::Ansi16);
    }

    #[test]
    fn a_users_theme_overrides_roles_and_errors_name_it() {
        let own = "name = \"own\"\n[roles]\ngood = { fg = \"#ffffff\" }";
        let theme = Theme::parse("own.toml", own, &[DARK], Depth::True).unwrap();
        assert_eq!(theme.style(Role::Good).fg, Some(Color::Rgb(255, 255, 255)));
        let bad = "name = \"own\"\n[roles]\ngood = { fg = \"mauve\" }";
        let error = Theme::parse("own.toml", bad, &[DARK], Depth::True).unwrap_err().to_string();
        assert!(error.contains("own.toml") && error.contains("mauve"), "{error}");
        let unknown = "name = \"own\"\n[roles]\nglitter = {}";
        assert!(Theme::parse("own.toml", unknown, &[DARK], Depth::True).is_err());
    }

    #[test]
    fn text_is_readable_on_a_dark_background() {
        let theme = Theme::dark(Depth::True).unwrap();
        for role in [Role::Dim, Role::Good, Role::Bad, Role::Warn, Role::Key, Role::Active, Role::Title] {
            let Some(Color::Rgb(r, g, b)) = theme.style(role).fg else { panic!("{role:?} has no colour") };
            let contrast = contrast((r, g, b), (0x1d, 0x21, 0x26));
            assert!(contrast >= 4.5, "{role:?}: {contrast:.1}");
        }
    }

    /// WCAG contrast ratio.
    fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
        let channel = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        let light =
            |c: (u8, u8, u8)| 0.2126 * channel(c.0) + 0.7152 * channel(c.1) + 0.0722 * channel(c.2) + 0.05;
        let (a, b) = (light(a), light(b));
        if a > b { a / b } else { b / a }
    }
}

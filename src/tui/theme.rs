//! Roles, and the styles a theme gives them. With `colour` and `theme_file` the only place that knows colours; what a
//! role means is said by glyphs and words elsewhere.

use std::path::Path;

use ratatui::style::{Modifier, Style};

use super::colour::{Depth, Rgb, Stated};
use super::theme_file::{Look, Stating, built_in, load};
use super::toml_rows::FileError;

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident $name:literal;)*) => {
        /// What a piece of the screen is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Role {
            $($(#[$doc])* $role,)*
        }

        impl Role {
            pub const ALL: [Role; [$($name),*].len()] = [$(Role::$role),*];

            /// As theme files write it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Role::$role => $name,)*
                }
            }
        }
    };
}

roles! {
    Text "text";
    /// Secondary words.
    Dim "dim";
    /// Rules, gutters, placeholders.
    Faint "faint";
    Strong "strong";
    Border "border";
    Focus "focus";
    Title "title";
    TitleFocus "title_focus";
    Brand "brand";
    Key "key";
    Selection "selection";
    /// The phase or row at work.
    Active "active";
    Good "good";
    Bad "bad";
    Warn "warn";
    /// A decision that waits.
    Review "review";
    Added "added";
    Removed "removed";
    AddedWord "added_word";
    RemovedWord "removed_word";
    Series1 "series_1";
    Series2 "series_2";
    Series3 "series_3";
    Series4 "series_4";
    /// The baseline run that curves are compared with.
    Pinned "pinned";
    Crosshair "crosshair";
    /// Where an alert was raised.
    AlertMark "alert_mark";
    /// Words a model thought, not said.
    Thinking "thinking";
    /// Tool calls and their results.
    Tool "tool";
    SynHeading "syn_heading";
    SynStrong "syn_strong";
    SynCode "syn_code";
    SynKeyword "syn_keyword";
    SynString "syn_string";
    SynComment "syn_comment";
    SynNumber "syn_number";
}

/// Styles by role, resolved for one colour depth.
#[derive(Clone, Debug)]
pub struct Theme {
    pub name: String,
    /// What the theme is made for; the terminal's own background is not painted over.
    pub background: Rgb,
    /// Words without a colour of their own, in pictures of the screen.
    pub foreground: Rgb,
    styles: [Style; Role::ALL.len()],
}

impl Theme {
    /// The built-in dark theme.
    ///
    /// # Errors
    /// Only if the built-in file is broken, which a test rules out.
    pub fn dark(depth: Depth) -> Result<Self, FileError> {
        Self::named("dark", depth)
    }

    /// A built-in theme.
    ///
    /// # Errors
    /// There is no theme of that name.
    pub fn named(name: &str, depth: Depth) -> Result<Self, FileError> {
        built_in(name).map(|stating| Self::of(&stating, depth))
    }

    /// A user's theme file; what it leaves out is that of the theme it inherits from.
    ///
    /// # Errors
    /// Everything wrong in it, with file, line and key.
    pub fn load(path: &Path, depth: Depth) -> Result<Self, FileError> {
        load(path).map(|stating| Self::of(&stating, depth))
    }

    pub(super) fn of(stating: &Stating, depth: Depth) -> Self {
        let styles = Role::ALL.map(|role| stating.look(role).style(role, depth));
        Self {
            name: stating.name.clone(),
            background: stating.background,
            foreground: stating.foreground,
            styles,
        }
    }

    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }
}

impl Look {
    fn style(&self, role: Role, depth: Depth) -> Style {
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
            let marked = self.bg != Stated::default();
            let word = matches!(role, Role::AddedWord | Role::RemovedWord);
            return match (marked, word) {
                (true, true) => style.add_modifier(Modifier::UNDERLINED),
                (true, false) => style.add_modifier(Modifier::REVERSED),
                (false, _) => style,
            };
        }
        style.fg = self.fg.at(depth);
        style.bg = self.bg.at(depth);
        style
    }
}

#[cfg(test)]
#[path = "theme_tests.rs"]
mod tests;

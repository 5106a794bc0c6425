//! How the workbench looks and behaves on this terminal: `ui.toml`, the keymap and the theme, with what the command
//! line says over them. Reading again gives the settings anew, or says what is wrong and changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::app::Prefs;
use super::colour::Depth;
use super::keymap::Keymap;
use super::theme::Theme;
use super::theme_file::BUILT_IN;
use super::toml_rows::{FileError, Plain, Row, config_file, read, rows};
use crate::config::nearest;

/// Frames a second for news of the run.
const FPS: u16 = 10;
const MOST_FPS: u16 = 60;
const LOW_BANDWIDTH_FPS: u16 = 2;

/// A theme by name, or by the path of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThemeChoice {
    /// Dark or light, as the terminal's background says.
    Auto,
    Named(String),
    File(PathBuf),
}

impl ThemeChoice {
    /// `folder`: where a relative path begins.
    pub fn parse(text: &str, folder: &Path) -> Self {
        match text {
            "auto" => Self::Auto,
            path if path.ends_with(".toml") || path.contains('/') => Self::File(folder.join(path)),
            name => Self::Named(name.to_owned()),
        }
    }

    /// # Errors
    /// No such theme, or a file that cannot be used.
    pub fn load(&self, light: bool, depth: Depth) -> Result<Theme, FileError> {
        match self {
            Self::Auto => Theme::named(if light { "light" } else { "dark" }, depth),
            Self::Named(name) => Theme::named(name, depth),
            Self::File(path) => Theme::load(path, depth),
        }
    }
}

/// A theme as the terminal shows it, and with all its colours.
#[derive(Clone, Debug)]
pub struct Themes {
    pub shown: Theme,
    pub full: Theme,
}

impl Themes {
    /// # Errors
    /// No such theme, or a file that cannot be used.
    pub fn load(choice: &ThemeChoice, light: bool, depth: Depth) -> Result<Self, FileError> {
        Ok(Self { shown: choice.load(light, depth)?, full: choice.load(light, Depth::True)? })
    }
}

/// What the command line says; `None` leaves it to the files.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    pub theme: Option<String>,
    pub keymap: Option<PathBuf>,
    pub fps: Option<u16>,
    pub low_bandwidth: bool,
    pub reduced_motion: bool,
    pub mouse: bool,
}

/// All of it, resolved.
#[derive(Clone, Debug)]
pub struct Settings {
    pub theme: ThemeChoice,
    pub keymap: Arc<Keymap>,
    pub fps: u16,
    pub mouse: bool,
    pub prefs: Prefs,
    /// Files that were read, or would be if they were there.
    pub files: Vec<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: ThemeChoice::Named("dark".into()),
            keymap: Arc::default(),
            fps: FPS,
            mouse: false,
            prefs: Prefs::default(),
            files: Vec::new(),
        }
    }
}

/// One setting of `ui.toml`.
pub struct UiKey {
    pub key: &'static str,
    pub default: &'static str,
    pub doc: &'static str,
}

pub const UI_KEYS: [UiKey; 5] = [
    UiKey {
        key: "theme",
        default: "\"dark\"",
        doc: "name of a theme, path of a theme file, or \"auto\": light or dark as the terminal's background",
    },
    UiKey {
        key: "fps",
        default: "10",
        doc: "most frames a second for news of the run, 1 to 60; keys are always answered at 30",
    },
    UiKey {
        key: "low_bandwidth",
        default: "false",
        doc: "2 frames a second, sparse charts, no moving marks, no syntax colour, no mouse",
    },
    UiKey { key: "reduced_motion", default: "false", doc: "nothing moves by itself" },
    UiKey {
        key: "mouse",
        default: "false",
        doc: "click and wheel go to the workbench; shift-drag still selects text",
    },
];

/// `ui.toml` with every key at its default.
pub fn ui_reference() -> String {
    let mut out =
        String::from("# How the workbench looks on this machine: $XDG_CONFIG_HOME/planish/ui.toml\n[ui]\n");
    for UiKey { key, default, doc } in UI_KEYS {
        out.push_str(&format!("# {doc}\n{key} = {default}\n"));
    }
    out
}

impl Settings {
    /// Reads the user's files, where they are, and lays `wishes` over them.
    ///
    /// # Errors
    /// What is wrong in the first file that is.
    pub fn load(wishes: &Wishes) -> Result<Self, FileError> {
        let mut settings = Self::default();
        if let Some(path) = config_file("ui.toml") {
            if path.exists() {
                settings.take_ui(&path, &read(&path)?)?;
            }
            settings.files.push(path);
        }
        let keymap =
            wishes.keymap.clone().or_else(|| config_file("keymap.toml").filter(|path| path.exists()));
        if let Some(path) = keymap {
            settings.keymap = Arc::new(Keymap::load(&path)?);
            settings.files.push(path);
        } else {
            settings.files.extend(config_file("keymap.toml"));
        }
        if let Some(theme) = &wishes.theme {
            settings.theme = ThemeChoice::parse(theme, Path::new(""));
        }
        settings.fps = wishes.fps.unwrap_or(settings.fps);
        settings.mouse |= wishes.mouse;
        settings.prefs.low_bandwidth |= wishes.low_bandwidth;
        settings.prefs.reduced_motion |= wishes.reduced_motion;
        if settings.prefs.low_bandwidth {
            settings.fps = settings.fps.min(LOW_BANDWIDTH_FPS);
            settings.mouse = false;
        }
        if let ThemeChoice::File(path) = &settings.theme {
            settings.files.push(path.clone());
        }
        // A theme that cannot be used is said now, not when it is first shown.
        settings.theme.load(false, Depth::True)?;
        Ok(settings)
    }

    fn take_ui(&mut self, path: &Path, text: &str) -> Result<(), FileError> {
        let file = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new(""));
        let faults: Vec<_> = rows(&file, text)?
            .iter()
            .filter_map(|row| self.take(row, folder).err().map(|message| row.fault(&file, message)))
            .collect();
        if faults.is_empty() { Ok(()) } else { Err(FileError(faults)) }
    }

    fn take(&mut self, row: &Row, folder: &Path) -> Result<(), String> {
        if row.key == "ui" && row.value == Plain::Nothing {
            return Ok(());
        }
        let Some(key) = row.key.strip_prefix("ui.") else {
            return Err("no such section: settings stand under [ui]".to_owned());
        };
        match (key, &row.value) {
            ("theme", Plain::Text(text)) => self.theme = ThemeChoice::parse(text, folder),
            ("fps", Plain::Number(n)) if n.fract() == 0.0 && (1.0..=f64::from(MOST_FPS)).contains(n) => {
                self.fps = *n as u16;
            }
            ("low_bandwidth", Plain::Flag(on)) => self.prefs.low_bandwidth = *on,
            ("reduced_motion", Plain::Flag(on)) => self.prefs.reduced_motion = *on,
            ("mouse", Plain::Flag(on)) => self.mouse = *on,
            ("theme", _) => return Err("give a text in quotes, as \"light\"".to_owned()),
            ("fps", _) => return Err(format!("give a whole number from 1 to {MOST_FPS}")),
            ("low_bandwidth" | "reduced_motion" | "mouse", _) => return Err("give true or false".to_owned()),
            _ => {
                return Err(match nearest(key, UI_KEYS.iter().map(|known| known.key)) {
                    Some(near) => format!("no such key, did you mean {near}?"),
                    None => "no such key; `planish schema --ui` prints them".to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// # Errors
/// Words for the command line.
pub fn parse_fps(text: &str) -> Result<u16, String> {
    let fps = text.parse().ok().filter(|fps| (1..=MOST_FPS).contains(fps));
    fps.ok_or_else(|| format!("give a whole number from 1 to {MOST_FPS}"))
}

/// The chooser's rows: name and what it is for.
pub fn theme_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.into_iter().map(|(name, doc, _)| (name, doc))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Result<Settings, FileError> {
        let mut settings = Settings::default();
        settings.take_ui(Path::new("/home/ann/ui.toml"), text).map(|()| settings)
    }

    #[test]
    fn every_key_of_the_reference_is_read_and_is_the_default() {
        let settings = taken(&ui_reference()).unwrap();
        let default = Settings::default();
        assert_eq!(
            (settings.theme, settings.fps, settings.mouse),
            (default.theme, default.fps, default.mouse)
        );
        assert_eq!(settings.prefs, default.prefs);
    }

    #[test]
    fn values_are_taken_and_paths_are_those_of_the_file() {
        assert!(taken("[ui]\n").is_ok() && taken("").is_ok());
        let settings = taken("[ui]\ntheme = \"own.toml\"\nfps = 5\nmouse = true\n").unwrap();
        assert_eq!(settings.theme, ThemeChoice::File("/home/ann/own.toml".into()));
        assert_eq!((settings.fps, settings.mouse), (5, true));
    }

    #[test]
    fn errors_name_file_line_and_key() {
        let told = |text: &str| taken(text).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(
            told("[ui]\nfps = 0").contains("/home/ann/ui.toml:2: ui.fps: give a whole number from 1 to 60")
        );
        assert!(told("[ui]\nfsp = 1").contains("ui.fsp: no such key, did you mean fps?"));
        assert!(told("[ui]\nmouse = 1").contains("give true or false"));
        assert!(told("fps = 1").contains("stand under [ui]"));
        assert!(told("[ui]\ntheme = 1\nmouse = 2").lines().count() == 2, "all faults at once");
    }

    #[test]
    fn wishes_go_over_the_files_and_low_bandwidth_over_both() {
        let wishes = Wishes { fps: Some(30), mouse: true, low_bandwidth: true, ..Wishes::default() };
        let settings = Settings::load(&wishes).unwrap();
        assert_eq!((settings.fps, settings.mouse), (2, false));
        let wishes = Wishes { theme: Some("no-such".into()), ..Wishes::default() };
        assert!(Settings::load(&wishes).unwrap_err().to_string().contains("no theme `no-such`"));
    }
}

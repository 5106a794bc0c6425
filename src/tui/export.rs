//! Screens on disk: what can be exported, under which name, and the drawing of it. Never overwrites a file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::App;
use super::layout::Pane;
use super::msg::Effect;
use super::overlay::{Choice, Chosen, Overlay};
use super::picture::{Format, picture};
use super::theme::Theme;
use super::view;

/// Exports of one second that may lie beside each other.
const MOST_ALIKE: usize = 1000;

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Screen,
    Pane(Pane),
}

impl Subject {
    fn name(self) -> String {
        match self {
            Subject::Screen => "screen".to_owned(),
            Subject::Pane(pane) => pane.title().to_lowercase(),
        }
    }
}

/// The screen of `app` as it would be drawn with `theme`, in a format. `theme` must have full colours.
///
/// # Errors
/// Only the encoder of pictures has any.
pub fn shot(app: &App, theme: &Theme, subject: Subject, format: Format) -> Result<Vec<u8>, String> {
    making(app, theme, subject, format)()
}

/// Makes the bytes of an export, also on another thread.
pub(super) type Making = Box<dyn FnOnce() -> Result<Vec<u8>, String> + Send>;

/// The screen is drawn now; what takes longer is left to the result.
pub(super) fn making(app: &App, theme: &Theme, subject: Subject, format: Format) -> Making {
    let mut buf = Buffer::empty(Rect::new(0, 0, app.size.0, app.size.1));
    view::draw(app, theme, &mut buf);
    let area = match subject {
        Subject::Screen => buf.area,
        Subject::Pane(pane) => app.places().of(pane).unwrap_or(buf.area),
    };
    let theme = theme.clone();
    Box::new(move || picture(&buf, area, &theme, format))
}

/// Writes `bytes` under a name that no file has yet.
///
/// # Errors
/// Words with the path.
pub fn write_new(
    folder: &Path,
    subject: Subject,
    format: Format,
    at: u64,
    bytes: &[u8],
) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let time = jiff::Timestamp::from_millisecond(at as i64).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let stem = format!("{}-{}", subject.name(), time.strftime("%Y%m%d-%H%M%S"));
    for alike in 1..=MOST_ALIKE {
        let suffix = if alike == 1 { String::new() } else { format!("-{alike}") };
        let path = folder.join(format!("{stem}{suffix}.{}", format.extension()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                let written = file.write_all(bytes);
                return written
                    .map(|()| path.clone())
                    .map_err(|error| format!("{}: {error}", path.display()));
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("cannot write {}: {error}", path.display())),
        }
    }
    Err(format!("{} holds too many exports of this second", folder.display()))
}

impl App {
    /// Beside the run where its folder is here, else where the client was started.
    pub(super) fn export_folder(&self) -> PathBuf {
        self.attached.as_deref().unwrap_or(Path::new("")).join("exports")
    }

    fn subjects(&self) -> [Subject; 2] {
        [Subject::Screen, Subject::Pane(self.arrangement.focus)]
    }

    pub(super) fn choose_export(&mut self) {
        let choices = self
            .subjects()
            .into_iter()
            .flat_map(|subject| {
                Format::ALL.map(|format| Choice {
                    label: format!("{} as {}", subject.name(), format.extension()),
                    doc: format.doc().to_owned(),
                })
            })
            .collect();
        let title = format!("Export into {}", self.export_folder().display());
        self.overlay = Some(Overlay::Choice { title, choices, selected: 0, then: Chosen::Export });
    }

    pub(super) fn export(&mut self, index: usize) -> Vec<Effect> {
        let subject = self.subjects().get(index / Format::ALL.len()).copied();
        match (subject, Format::ALL.get(index % Format::ALL.len())) {
            (Some(subject), Some(format)) => {
                // What was told last, as the place of an earlier export, is no part of the screen.
                self.toast = None;
                vec![Effect::Export { subject, format: *format }]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_never_overwrite_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let at = 1_760_000_000_000;
        let write = |bytes: &[u8]| {
            write_new(&folder.path().join("exports"), Subject::Pane(Pane::Gate), Format::Text, at, bytes)
                .unwrap()
        };
        let (first, second) = (write(b"one"), write(b"two"));
        assert!(first.ends_with("exports/gate-20251009-085320.txt"), "{}", first.display());
        assert!(second.ends_with("exports/gate-20251009-085320-2.txt"), "{}", second.display());
        assert_eq!(std::fs::read(first).unwrap(), b"one");
        let blocked = folder.path().join("file");
        std::fs::write(&blocked, "").unwrap();
        let error = write_new(&blocked, Subject::Screen, Format::Png, at, b"").unwrap_err();
        assert!(error.contains("file"), "{error}");
    }
}

//! Screens on disk: what can be exported, under which name, and the drawing of it. Never overwrites a file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::App;
use super::layout::Pane;
use super::msg::Effect;
use super::overlay::{Choice, Chosen, Overlay};
use super::picture::{Format, picture};
use super::theme::Theme;
use super::view;
use crate::plain::csv;
use crate::telemetry::Board;

/// Exports of one second that may lie beside each other.
const MOST_ALIKE: usize = 1000;

/// Part of the screen.
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

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// What is drawn.
    Picture { subject: Subject, format: Format },
    /// The numbers of all curves of this run and those laid over it, as CSV.
    Numbers,
}

impl Export {
    fn name(self) -> String {
        match self {
            Export::Picture { subject, .. } => subject.name(),
            Export::Numbers => "curves".to_owned(),
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Export::Picture { format, .. } => format.extension(),
            Export::Numbers => "csv",
        }
    }

    fn doc(self) -> &'static str {
        match self {
            Export::Picture { format, .. } => format.doc(),
            Export::Numbers => "every point of every curve, for spreadsheets and scripts",
        }
    }
}

/// The screen of `app` as it would be drawn with `theme`, in a format. `theme` must have full colours.
///
/// # Errors
/// Only the encoder of pictures has any.
pub fn shot(app: &App, theme: &Theme, subject: Subject, format: Format) -> Result<Vec<u8>, String> {
    drawing(app, theme, subject, format)()
}

/// Makes the bytes of an export, also on another thread.
pub(super) type Making = Box<dyn FnOnce() -> Result<Vec<u8>, String> + Send>;

/// What is exported is as it is now; what takes longer is left to the result.
pub(super) fn making(app: &App, theme: &Theme, what: Export) -> Making {
    match what {
        Export::Picture { subject, format } => drawing(app, theme, subject, format),
        Export::Numbers => {
            let others = app.curves.others.iter().filter_map(|other| other.board.clone()?.ok());
            let (board, others) = (app.board.clone(), others.collect::<Vec<_>>());
            Box::new(move || {
                let boards: Vec<&Board> =
                    std::iter::once(&board).chain(others.iter().map(Arc::as_ref)).collect();
                Ok(csv(&boards).into_bytes())
            })
        }
    }
}

fn drawing(app: &App, theme: &Theme, subject: Subject, format: Format) -> Making {
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
pub fn write_new(folder: &Path, what: Export, at: u64, bytes: &[u8]) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let time = jiff::Timestamp::from_millisecond(at as i64).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let stem = format!("{}-{}", what.name(), time.strftime("%Y%m%d-%H%M%S"));
    for alike in 1..=MOST_ALIKE {
        let suffix = if alike == 1 { String::new() } else { format!("-{alike}") };
        let path = folder.join(format!("{stem}{suffix}.{}", what.extension()));
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

    /// What can be exported now.
    fn exports(&self) -> Vec<Export> {
        let subjects = [Subject::Screen, Subject::Pane(self.arrangement.focus)];
        let pictures = subjects
            .into_iter()
            .flat_map(|subject| Format::ALL.map(|format| Export::Picture { subject, format }));
        pictures.chain(self.has_curves().then_some(Export::Numbers)).collect()
    }

    pub(super) fn choose_export(&mut self) {
        let choice = |what: Export| Choice {
            label: format!("{} as {}", what.name(), what.extension()),
            doc: what.doc().to_owned(),
        };
        let choices = self.exports().into_iter().map(choice).collect();
        let title = format!("Export into {}", self.export_folder().display());
        self.overlay = Some(Overlay::Choice { title, choices, selected: 0, then: Chosen::Export });
    }

    pub(super) fn export(&mut self, index: usize) -> Vec<Effect> {
        // What was told last, as the place of an earlier export, is no part of the screen.
        self.toast = None;
        self.exports().get(index).map(|what| Effect::Export(*what)).into_iter().collect()
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
            let what = Export::Picture { subject: Subject::Pane(Pane::Gate), format: Format::Text };
            write_new(&folder.path().join("exports"), what, at, bytes).unwrap()
        };
        let (first, second) = (write(b"one"), write(b"two"));
        assert!(first.ends_with("exports/gate-20251009-085320.txt"), "{}", first.display());
        assert!(second.ends_with("exports/gate-20251009-085320-2.txt"), "{}", second.display());
        assert_eq!(std::fs::read(first).unwrap(), b"one");
        let blocked = folder.path().join("file");
        std::fs::write(&blocked, "").unwrap();
        let error = write_new(&blocked, Export::Numbers, at, b"").unwrap_err();
        assert!(error.contains("file"), "{error}");
    }

    #[test]
    fn numbers_are_those_of_the_run_and_of_the_runs_laid_over_it() {
        use crate::domain::Author;
        use crate::event::{Event, Record};
        use crate::tui::{App, Depth, Identity, Msg, Told};

        let board = |run: &str, value: f64| {
            let mut board = Board::named(run);
            let event = Event::Metric { step: Some(1), values: [("loss".to_owned(), value)].into() };
            board.hear(&Record { seq: 1, at: 1, event });
            board
        };
        let identity = Identity { name: Author("ann".into()), read_only: true, client_id: "c".into() };
        let mut app = App::new(identity, (80, 24), 0);
        app.board = board("this", 1.5);
        let other = PathBuf::from("/runs/other");
        app.runs.marked.push(other.clone());
        app.update(Msg::Tick(1));
        let series = Ok(Arc::new(board("other", 2.5)));
        app.update(Msg::Told(Told::Series { run: other, series }));
        let theme = Theme::dark(Depth::True).unwrap();
        let text = String::from_utf8(making(&app, &theme, Export::Numbers)().unwrap()).unwrap();
        let rows: Vec<&str> = text.lines().collect();
        assert!(rows[0].starts_with("run,series,"), "{text}");
        assert!(rows.iter().any(|row| row.starts_with("this,") && row.ends_with(",1.5")), "{text}");
        assert!(rows.iter().any(|row| row.starts_with("other,") && row.ends_with(",2.5")), "{text}");
    }
}

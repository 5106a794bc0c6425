//! `--dump`: one frame of the workbench into a file instead of the workbench, for bug reports and papers. Needs no
//! terminal.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::run::now_ms;
use super::screen::Screen;
use super::{Failure, assembly, exit, output};
use crate::client::{ClientEvent, Connection};
use crate::event::HostLine;
use crate::tui::{App, Depth, Format, Msg, Settings, Subject, Wishes, shot};

/// A host that says nothing for this long has nothing to say.
const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST: u16 = 1000;

#[derive(clap::Args, Clone, Debug)]
pub struct Dump {
    /// Write one frame to a file instead of showing the workbench: .txt, .ansi, .svg or .png
    #[arg(long = "dump", value_name = "FILE", value_parser = named, conflicts_with = "plain", help_heading = "Screen")]
    pub file: Option<Named>,
    /// Columns and rows of the frame
    #[arg(long, value_name = "COLSxROWS", default_value = "120x40", value_parser = size, requires = "file", help_heading = "Screen")]
    size: (u16, u16),
}

/// A file with the format its name asks for.
#[derive(Clone, Debug)]
pub struct Named {
    path: PathBuf,
    format: Format,
}

fn named(text: &str) -> Result<Named, String> {
    let path = PathBuf::from(text);
    let format = path.extension().and_then(|extension| Format::of_extension(&extension.to_string_lossy()));
    let format = format.ok_or("name a file that ends in .txt, .ansi, .svg or .png")?;
    Ok(Named { path, format })
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let number = |text: &str| text.parse().ok().filter(|n| (1..=LARGEST).contains(n));
    text.split_once('x')
        .and_then(|(columns, rows)| Some((number(columns)?, number(rows)?)))
        .ok_or_else(|| format!("give columns and rows as 120x40, each at most {LARGEST}"))
}

/// Reads what the run is now and draws it once.
pub async fn dump(
    connection: Connection,
    run_dir: Option<&Path>,
    to: &Named,
    dump: &Dump,
    screen: &Screen,
) -> Result<u8, Failure> {
    let settings =
        Settings::load(&Wishes::from(screen)).map_err(|error| Failure::usage(error.to_string()))?;
    let mut app = App::new(assembly::identity(true), dump.size, now_ms());
    app.attached = run_dir.map(Path::to_owned);
    let Connection { mut events, commands } = connection;
    drop(commands);
    let (theme, format) = (settings.theme.clone(), to.format);
    app.update(Msg::Settings(Box::new(settings)));
    loop {
        let event = match tokio::time::timeout(PATIENCE, events.recv()).await {
            Ok(Some(event)) => event,
            Ok(None) | Err(_) => break,
        };
        if let ClientEvent::Line(HostLine::Error { message }) = event {
            return Err(Failure::run(message));
        }
        app.update(Msg::Client(event));
        if app.last_seq > 0 && !app.loading() {
            break;
        }
    }
    app.update(Msg::Tick(now_ms()));
    let theme = theme.load(false, Depth::True).map_err(|error| Failure::usage(error.to_string()))?;
    let bytes = shot(&app, &theme, Subject::Screen, format).map_err(Failure::run)?;
    std::fs::write(&to.path, bytes)
        .map_err(|error| Failure::run(format!("cannot write {}: {error}", to.path.display())))?;
    output::note(&format!("written: {}", to.path.display()));
    Ok(exit::DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes() {
        assert_eq!(named("a/b.svg").unwrap().format, Format::Svg);
        assert!(named("b.gif").is_err() && named("b").is_err());
        assert_eq!(size("80x24"), Ok((80, 24)));
        for bad in ["80", "0x24", "80x24x3", "9999x9", "x"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_recording_is_drawn_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let tail = crate::event::scan(include_bytes!("../../assets/demo-run/events.jsonl")).unwrap();
        let wanted = Dump { file: None, size: (100, 30) };
        for name in ["frame.txt", "frame.png"] {
            let connection = crate::client::replay("demo".into(), tail.records.clone(), f64::INFINITY);
            let to = named(&folder.path().join(name).to_string_lossy()).unwrap();
            let done = dump(connection, None, &to, &wanted, &Screen::default()).await;
            assert_eq!(done, Ok(exit::DONE));
        }
        let text = std::fs::read_to_string(folder.path().join("frame.txt")).unwrap();
        assert!(text.contains("END  completed") && text.lines().count() == 30, "{text}");
        let png = std::fs::read(folder.path().join("frame.png")).unwrap();
        assert!(png.starts_with(b"\x89PNG"));
    }
}

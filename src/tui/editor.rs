//! `$VISUAL` or `$EDITOR`, or `$PAGER`, on a temporary file. The caller has given the terminal back before.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

/// An editor at work on a text.
pub struct Editing {
    file: NamedTempFile,
    before: String,
    pub child: Child,
}

impl Editing {
    /// # Errors
    /// A message for people when the file or the editor cannot be had.
    pub fn start(text: &str) -> Result<Self, String> {
        let mut file = tempfile::Builder::new()
            .prefix("planish-edit-")
            .suffix(".md")
            .tempfile()
            .map_err(|error| format!("no temporary file: {error}"))?;
        let before = text.trim_end_matches('\n').to_owned();
        writeln!(file, "{before}").and_then(|()| file.flush()).map_err(|error| error.to_string())?;
        let child = start(&program(), file.path())?;
        Ok(Self { file, before, child })
    }

    /// The new text; `None` when it is unchanged.
    pub fn finish(self, status: std::io::Result<std::process::ExitStatus>) -> Result<Option<String>, String> {
        let status = status.map_err(|error| error.to_string())?;
        if !status.success() {
            let name = program();
            return Err(format!("`{}` ended with {status}; set $EDITOR to another one", name.display()));
        }
        // Read by path: editors replace the file instead of writing into it.
        let text = std::fs::read_to_string(self.file.path()).map_err(|error| error.to_string())?;
        let text = text.trim_end_matches('\n');
        if text.trim().is_empty() && !self.before.is_empty() {
            return Err("the text was empty, so the edit was left as it was".to_owned());
        }
        Ok((text != self.before).then(|| text.to_owned()))
    }
}

/// A pager that shows a text.
pub struct Paging {
    _file: NamedTempFile,
    pub child: Child,
}

impl Paging {
    /// # Errors
    /// A message for people when the file or the pager cannot be had.
    pub fn start(text: &str) -> Result<Self, String> {
        let mut file = tempfile::Builder::new()
            .prefix("planish-page-")
            .suffix(".txt")
            .tempfile()
            .map_err(|error| format!("no temporary file: {error}"))?;
        // A pager may pass on what steers a terminal.
        writeln!(file, "{}", crate::text::sanitize(text))
            .and_then(|()| file.flush())
            .map_err(|error| error.to_string())?;
        let child = start(&pager(), file.path())?;
        Ok(Self { _file: file, child })
    }

    /// # Errors
    /// The pager could not show it.
    pub fn finish(self, status: std::io::Result<std::process::ExitStatus>) -> Result<(), String> {
        let status = status.map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("`{}` ended with {status}; set $PAGER to another one", pager().display())),
        }
    }
}

/// The variable may hold arguments (`code --wait`), so a shell splits it; the path is passed apart.
fn start(program: &OsString, file: &Path) -> Result<Child, String> {
    let mut command = program.clone();
    command.push(" \"$1\"");
    Command::new("sh")
        .arg("-c")
        .arg(command)
        .arg("planish")
        .arg(file)
        .spawn()
        .map_err(|error| format!("cannot start `{}`: {error}", program.display()))
}

fn program() -> OsString {
    variable(&["VISUAL", "EDITOR"]).unwrap_or_else(|| "vi".into())
}

fn pager() -> OsString {
    variable(&["PAGER"]).unwrap_or_else(|| "less".into())
}

fn variable(names: &[&str]) -> Option<OsString> {
    names.iter().find_map(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

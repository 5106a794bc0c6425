//! `$VISUAL` or `$EDITOR` on a temporary file. The caller has given the terminal back before.

use std::ffi::OsString;
use std::io::Write;

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
        let editor = program();
        // The variable may hold arguments (`code --wait`), so a shell splits it; the path is passed apart.
        let mut command = OsString::from(&editor);
        command.push(" \"$1\"");
        let child = Command::new("sh")
            .arg("-c")
            .arg(command)
            .arg("planish")
            .arg(file.path())
            .spawn()
            .map_err(|error| format!("cannot start `{}`: {error}", editor.display()))?;
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

fn program() -> OsString {
    ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
        .unwrap_or_else(|| "vi".into())
}

//! The text of the new configuration: sections, settings with what is to be said about them, and what was left out.

use std::fmt::Write;
use std::path::Path;

use super::translate::{Setting, Translation};
use crate::config::keys;

const WIDTH: usize = 118;

/// One commented TOML document.
pub fn document(source: &Path, translation: &Translation) -> String {
    let name = source.file_name().unwrap_or(source.as_os_str()).to_string_lossy();
    let mut out = String::new();
    comment(
        &mut out,
        "",
        &format!(
            "Imported from {name} by planish. Keys that are not written have planish's defaults: `planish schema`."
        ),
    );
    let mut section = "";
    for key in keys::keys() {
        let Some(setting) = translation.settings.get(key.path) else { continue };
        let (parent, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
        if parent != section {
            let _ = writeln!(out, "\n[{parent}]");
            section = parent;
        }
        line(&mut out, name, setting);
    }
    if !translation.dropped.is_empty() {
        out.push('\n');
        comment(&mut out, "", "Not taken over:");
        for dropped in &translation.dropped {
            comment(&mut out, "  ", &format!("{} ({}): {}", dropped.name, dropped.place, dropped.why));
        }
    }
    out
}

fn line(out: &mut String, name: &str, setting: &Setting) {
    for note in &setting.notes {
        comment(out, "", note);
    }
    let _ = match &setting.value {
        Some(value) => writeln!(out, "{name} = {value}"),
        None => writeln!(out, "# {name} = \"\""),
    };
}

/// A comment in lines of a readable width. The text comes from files of others: nothing in it ends the comment.
fn comment(out: &mut String, indent: &str, text: &str) {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect();
    let mut line = format!("# {indent}");
    let start = line.len();
    for word in text.split(' ') {
        if line.len() > start && line.chars().count() + word.chars().count() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = format!("# {indent}  ");
        }
        line.push_str(word);
        line.push(' ');
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

//! `planish keys`: every action with its keys, where it holds, and how scripts do the same; faults of a keymap file.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Failure, exit, output};
use crate::plain::{Column, left, markdown_table, text_table};
use crate::tui::{Keymap, Scope, Spec, actions, config_file, spec};

#[derive(clap::Args)]
pub struct Args {
    /// Check the keymap only: exit with code 2 if a key is given twice or an entry cannot be used
    #[arg(long)]
    check: bool,
    /// One JSON object per action
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// A Markdown table
    #[arg(long)]
    markdown: bool,
    /// Key bindings instead of those of `$XDG_CONFIG_HOME/planish/keymap.toml`
    #[arg(long, value_name = "FILE")]
    keymap: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let file = args.keymap.clone().or_else(|| config_file("keymap.toml").filter(|path| path.exists()));
    let keymap = match &file {
        Some(path) => Keymap::load(path).map_err(|error| Failure::usage(error.to_string()))?,
        None => Keymap::default(),
    };
    if args.check {
        return check(&keymap, file.as_deref());
    }
    if args.json {
        actions().map(|spec| object(spec, &keymap)).try_for_each(|row| output::json(&row))?;
        return Ok(exit::DONE);
    }
    let rows: Vec<Vec<String>> = actions().map(|spec| cells(spec, &keymap, args.markdown)).collect();
    let lines = match args.markdown {
        true => markdown_table(&HEAD.map(|column| column.title), &rows),
        false => text_table(&HEAD, &rows, COLUMNS),
    };
    lines.iter().try_for_each(|line| output::line(line))?;
    Ok(exit::DONE)
}

/// Of the printed table; terminals wrap what is wider than they are.
const COLUMNS: usize = 160;
const HEAD: [Column; 5] =
    [left("action", 24), left("keys", 16), left("where", 10), left("does", 70), left("from scripts", 50)];

/// Faults of a file end the command before; the registry itself is checked too.
fn check(keymap: &Keymap, file: Option<&std::path::Path>) -> Result<u8, Failure> {
    let clashes: Vec<String> = keymap
        .clashes()
        .iter()
        .filter_map(|clash| {
            let (first, second) = (spec(clash.first.0)?, spec(clash.second.0)?);
            Some(format!("{}: `{}` and {}: `{}`", first.id, clash.first.1, second.id, clash.second.1))
        })
        .collect();
    if !clashes.is_empty() {
        return Err(Failure::usage(clashes.join("\n")));
    }
    for spec in actions().filter(|spec| keymap.keys(spec.action).is_empty()) {
        output::line(&format!("{} has no key; the palette (`:`) reaches it", spec.id))?;
    }
    let whose = file.map_or("the default keys".to_owned(), |path| path.display().to_string());
    output::line(&format!("{} actions, no conflicts in {whose}", actions().count()))?;
    Ok(exit::DONE)
}

fn keys_of(spec: &Spec, keymap: &Keymap) -> Vec<String> {
    keymap.keys(spec.action).iter().map(ToString::to_string).collect()
}

fn object(spec: &Spec, keymap: &Keymap) -> Value {
    json!({
        "id": spec.id, "keys": keys_of(spec, keymap), "scope": scope_name(spec.scope), "doc": spec.doc,
        "ctl": spec.ctl, "why_no_ctl": spec.ctl.is_none().then(|| spec.ctl_words()),
    })
}

fn cells(spec: &Spec, keymap: &Keymap, quoted: bool) -> Vec<String> {
    let keys = keys_of(spec, keymap);
    let quote = if quoted { "`" } else { "" };
    let keys: Vec<String> = keys.iter().map(|keys| format!("{quote}{keys}{quote}")).collect();
    vec![spec.id.to_owned(), keys.join(" "), scope_name(spec.scope), spec.doc.to_owned(), spec.ctl_words()]
}

fn scope_name(scope: Scope) -> String {
    scope.title().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_row_and_the_defaults_pass_their_check() {
        let keymap = Keymap::default();
        for spec in actions() {
            let row = object(spec, &keymap);
            assert_eq!(row["ctl"].is_null(), row["why_no_ctl"].is_string(), "{}", spec.id);
            assert!(!row["keys"].as_array().unwrap().is_empty(), "{} has no key", spec.id);
        }
        assert_eq!(check(&keymap, None), Ok(exit::DONE));
    }
}

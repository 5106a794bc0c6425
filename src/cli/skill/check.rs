//! `planish skill check PATH…`: one line per finding; exit code 1 when one is an error.

use std::path::{Path, PathBuf};

use super::super::locate::Root;
use super::super::{Failure, exit, output};
use crate::config::Config;
use crate::env::HeldOutTexts;
use crate::skill::{Checked, DOCUMENT, Finding, Package, check};

#[derive(clap::Args)]
pub struct Args {
    /// Skill folders, or their SKILL.md
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Look for text of the held-out splits of this configuration too
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    config: Option<PathBuf>,
    /// Look for text of the held-out splits of this run too
    #[arg(long)]
    run: Option<String>,
    #[command(flatten)]
    root: Root,
    /// One JSON object per folder
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let config = match (&args.config, &args.run) {
        (Some(config), _) => Some(Config::load(config, &[])?.config),
        (None, Some(run)) => Some(Config::load(&args.root.find(run)?.config_toml(), &[])?.config),
        (None, None) => None,
    };
    let held_out = config.map(|config| HeldOutTexts::load(&config)).transpose();
    let held_out = held_out.map_err(|error| Failure::usage(error.to_string()))?;
    let mut errors = 0;
    for path in &args.paths {
        let folder = folder_of(path);
        let mut checked = check(folder);
        if let Some(held_out) = &held_out {
            let (package, _) = Package::survey(folder);
            checked.findings.extend(leaks(held_out, &package));
        }
        errors += checked.errors();
        if args.json {
            output::json(&checked)?;
        } else {
            tell(&checked)?;
        }
    }
    Ok(if errors == 0 { exit::DONE } else { exit::RUN_FAILED })
}

/// The folder that is meant by naming its document.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if path.ends_with(DOCUMENT) && path.is_file() => {
            if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            }
        }
        _ => path,
    }
}

/// Text of held-out items in the files of a skill.
pub fn leaks(held_out: &HeldOutTexts, package: &Package) -> Vec<Finding> {
    let texts = package.files().iter().filter_map(|file| {
        let text = std::str::from_utf8(&file.bytes).ok()?;
        Some((file.path.as_str(), text))
    });
    let told = texts.flat_map(|(path, text)| {
        held_out.found_in(text).into_iter().map(move |leak| {
            let problem = format!("text of the held-out item {:?} ({})", leak.item, leak.split.name());
            let remedy = "take it out: with it in the skill, scores on that split mean nothing";
            Finding::error(path, problem, remedy).at(leak.line)
        })
    });
    told.collect()
}

fn tell(checked: &Checked) -> Result<(), Failure> {
    let folder = checked.folder.display();
    for finding in &checked.findings {
        output::line(&format!("{folder}/{finding}"))?;
    }
    let size = &checked.size;
    let name = checked.name.as_deref().unwrap_or("(no name)");
    let errors = checked.errors();
    let warnings = checked.findings.len() - errors;
    output::line(&format!(
        "{folder}: {name}: {errors} errors, {warnings} warnings; {} files, {} bytes; about {} tokens listed, {} when used \
         ({} lines)",
        size.files, size.bytes, size.listed_tokens, size.body_tokens, size.body_lines
    ))
}

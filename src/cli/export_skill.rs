//! `planish export-skill RUN --to DIR`: the best skill of a run as a skill folder.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::locate::Root;
use super::skill::leaks;
use super::{Failure, exit, output};
use crate::config::Config;
use crate::env::HeldOutTexts;
use crate::skill::{Exported, Finding, Package, Wishes, export, package_of_run};
use crate::store::{RunDir, StoreError, fold_run};

#[derive(clap::Args)]
pub struct Args {
    /// Run folder, or name under the root
    run: String,
    #[command(flatten)]
    root: Root,
    /// Folder to put the skill's folder into
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    front: FrontMatter,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// What the skill says of itself; what is absent comes from the folder that the run began with.
#[derive(clap::Args)]
pub struct FrontMatter {
    /// Name of the skill; absent: that of the seed's folder, else made from the run's name
    #[arg(long)]
    name: Option<String>,
    /// What the skill does and when to use it; needed unless the run began with a skill folder
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// License of the skill
    #[arg(long, value_name = "TEXT")]
    license: Option<String>,
}

impl FrontMatter {
    /// Whether any of it was given.
    pub fn is_given(&self) -> bool {
        self.name.is_some() || self.description.is_some() || self.license.is_some()
    }
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let run = args.root.find(&args.run)?;
    let exported = skill_of(&run, &args.front)?;
    let folder = args.to.join(exported.name.as_str());
    let written = write(&exported.package, &folder)?;
    let (files, bytes) = (exported.package.files().len(), exported.package.bytes());
    if args.json {
        output::json(&json!({
            "name": exported.name.as_str(), "folder": folder, "written": written, "files": files, "bytes": bytes,
            "digest": exported.package.digest(), "findings": exported.findings,
        }))?;
    } else {
        tell(&exported.findings);
        let word = if written { "wrote" } else { "unchanged:" };
        output::line(&format!("{word} {} ({files} files, {bytes} bytes)", folder.display()))?;
    }
    Ok(exit::DONE)
}

/// The best skill of a run, checked, also for text of its held-out items.
pub fn skill_of(run: &RunDir, front: &FrontMatter) -> Result<Exported, Failure> {
    let state = fold_run(run)?;
    let files = match state.info.as_ref().and_then(|info| info.folder.as_ref()) {
        Some(folder) => package_of_run(run, folder).map_err(|error| Failure::usage(error.to_string()))?,
        None => Vec::new(),
    };
    let wishes = Wishes {
        name: front.name.clone(),
        description: front.description.clone(),
        license: front.license.clone(),
    };
    let exported = export(&state, files, &wishes).map_err(|error| Failure::usage(error.to_string()))?;
    let held_out = Config::read_resolved(&run.config_toml())
        .map_err(|errors| errors.to_string())
        .and_then(|config| HeldOutTexts::load(&config).map_err(|error| error.to_string()));
    match held_out {
        Ok(held_out) => refuse(&leaks(&held_out, &exported.package))?,
        Err(problem) => output::note(&format!("held-out text was not looked for in the skill: {problem}")),
    }
    Ok(exported)
}

fn refuse(leaks: &[Finding]) -> Result<(), Failure> {
    if leaks.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = leaks.iter().map(ToString::to_string).collect();
    Err(Failure::usage(format!("the skill is not exported as it holds held-out text\n{}", lines.join("\n"))))
}

/// Findings that are no errors, on stderr.
pub fn tell(findings: &[Finding]) {
    for finding in findings {
        output::note(&finding.to_string());
    }
}

/// Writes a folder that is not there yet; `false` when it is, with the same content.
fn write(package: &Package, folder: &Path) -> Result<bool, Failure> {
    if folder.symlink_metadata().is_ok() {
        if !folder.is_symlink() && Package::read(folder).is_ok_and(|present| present == *package) {
            return Ok(false);
        }
        return Err(Failure::usage(format!(
            "{} exists and is not this skill; move it away, or give another --to or --name",
            folder.display()
        )));
    }
    let parent = folder.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(StoreError::io("create", parent))?;
    let scratch = tempfile::Builder::new()
        .prefix(".tmp-")
        .tempdir_in(parent)
        .map_err(StoreError::io("write", parent))?;
    let staged = scratch.path().join("skill");
    package.write(&staged, &mut || Ok(()))?;
    std::fs::rename(&staged, folder).map_err(StoreError::io("write", folder))?;
    Ok(true)
}

//! `planish resume --from FOLDER [CONFIG]`: a new run that goes on behind the last completed step of a foreign one.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::locate::Root;
use super::run::{StartArgs, now_ms, start_new};
use super::{Failure, assembly, output};
use crate::config::skillopt::import;
use crate::config::{Config, Loaded};
use crate::domain::Origin;
use crate::engine::Continuation;
use crate::store::foreign::ForeignRun;
use crate::store::{RunDir, StoreError, atomic_write, default_run_name};

#[derive(clap::Args)]
pub struct ForeignArgs {
    /// Continue the SkillOpt output folder FOLDER as a new run
    #[arg(long, value_name = "FOLDER")]
    pub from: Option<PathBuf>,
    /// With --from: folder name of the new run under the root
    #[arg(long, requires = "from")]
    name: Option<String>,
    /// With --from: let recorded selection results of the same text and items stand, although other prompts, another
    /// answer rule and another scorer may have made them
    #[arg(long, requires = "from")]
    keep_scores: bool,
}

pub async fn run(
    folder: &Path,
    config: Option<&Path>,
    overrides: Vec<String>,
    root: &Root,
    from: &ForeignArgs,
    args: StartArgs,
) -> Result<u8, Failure> {
    let foreign = ForeignRun::open(folder)?;
    let loaded = match config {
        Some(config) => Config::load(config, &overrides)?,
        None => own_config(folder, overrides)?,
    };
    for warning in &loaded.warnings {
        output::note(&format!("warning: {warning}"));
    }
    let Continuation { continued, remarks } =
        assembly::continuation(&foreign, &loaded.config, from.keep_scores)?;
    super::import_run::tell(&continued.warnings);
    remarks.iter().for_each(|remark| output::note(remark));
    let name = match &from.name {
        Some(name) => name.clone(),
        None => default_run_name(&foreign.folder, now_ms()),
    };
    let run = RunDir::create(&root.path, &name)?;
    let prepared = assembly::write_config(&run, &loaded.config)
        .and_then(|()| assembly::keep_origins(&run, &loaded))
        .and_then(|()| Ok(write_origin(&run, &Origin::Continued(Box::new(continued)))?));
    start_new(&run, prepared, args).await
}

/// The foreign run's own settings, with `overrides` for what is different here: its paths belong to its machine.
fn own_config(folder: &Path, mut overrides: Vec<String>) -> Result<Loaded, Failure> {
    const WHY: &str = "give a CONFIG, or set what is missing with -o KEY=VALUE";
    let source = folder.join("config.json");
    let imported = import(&source, &[], None, &|name| std::env::var(name).ok())
        .map_err(|error| Failure::usage(format!("{error}; {WHY}")))?;
    let failed = |error: std::io::Error| Failure::run(format!("cannot write a temporary file: {error}"));
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().map_err(failed)?;
    file.write_all(imported.toml.as_bytes()).map_err(failed)?;
    // Where the foreign run lies is no place for the new one.
    overrides.insert(0, "env.out_root=".into());
    Config::load(file.path(), &overrides).map_err(|errors| {
        let told =
            errors.to_string().replace(&file.path().display().to_string(), &source.display().to_string());
        Failure::usage(format!("{told}\n{WHY}"))
    })
}

fn write_origin(run: &RunDir, origin: &Origin) -> Result<(), StoreError> {
    let path = run.origin_json();
    let bytes =
        serde_json::to_vec(origin).map_err(|source| StoreError::Encode { path: path.clone(), source })?;
    atomic_write(&path, &bytes)
}

//! `planish resume --from FOLDER CONFIG`: a new run that goes on behind the last completed step of a foreign one.

use std::path::{Path, PathBuf};

use super::locate::Root;
use super::run::{StartArgs, now_ms, start_new};
use super::{Failure, assembly, output};
use crate::config::Config;
use crate::domain::Origin;
use crate::engine::Continuation;
use crate::store::foreign::ForeignRun;
use crate::store::{RunDir, StoreError, atomic_write, default_run_name};

#[derive(clap::Args)]
pub struct ForeignArgs {
    /// Continue the SkillOpt output folder FOLDER as a new run, under the configuration RUN
    #[arg(long, value_name = "FOLDER")]
    pub from: Option<PathBuf>,
    /// With --from: folder name of the new run under the root
    #[arg(long, requires = "from")]
    name: Option<String>,
    /// With --from: measure the skills again even where results of the same text are recorded
    #[arg(long, requires = "from")]
    remeasure: bool,
}

pub async fn run(
    folder: &Path,
    config: &Path,
    overrides: &[String],
    root: &Root,
    from: &ForeignArgs,
    args: StartArgs,
) -> Result<u8, Failure> {
    let foreign = ForeignRun::open(folder)?;
    let loaded = Config::load(config, overrides)?;
    for warning in &loaded.warnings {
        output::note(&format!("warning: {warning}"));
    }
    let Continuation { continued, notes } = assembly::continuation(&foreign, &loaded.config, from.remeasure)?;
    super::import_run::tell(&notes);
    let name = match &from.name {
        Some(name) => name.clone(),
        None => default_run_name(&foreign.folder, now_ms()),
    };
    let run = RunDir::create(&root.path, &name)?;
    let prepared = assembly::write_config(&run, &loaded.config)
        .and_then(|()| Ok(write_origin(&run, &Origin::Continued(Box::new(continued)))?));
    start_new(&run, prepared, args).await
}

fn write_origin(run: &RunDir, origin: &Origin) -> Result<(), StoreError> {
    let path = run.origin_json();
    let bytes =
        serde_json::to_vec(origin).map_err(|source| StoreError::Encode { path: path.clone(), source })?;
    atomic_write(&path, &bytes)
}

//! `planish import FILE.yaml`: a SkillOpt or ReflACT configuration as one commented TOML of planish's own.

use std::path::Path;

use super::{Failure, exit, output};
use crate::config::Config;
use crate::config::skillopt::{ImportError, import};
use crate::store::atomic_write;

pub fn run(source: &Path, options: &[String], out: Option<&Path>) -> Result<u8, Failure> {
    let imported = import(source, options, out, &|name| std::env::var(name).ok())?;
    let Some(out) = out else {
        imported.toml.lines().try_for_each(output::line)?;
        return Ok(exit::DONE);
    };
    if out.exists() {
        return Err(Failure::usage(format!("{} exists; remove it or give another --out", out.display())));
    }
    atomic_write(out, imported.toml.as_bytes())?;
    output::line(&format!(
        "wrote {}; {} settings were left out, it says why",
        out.display(),
        imported.left_out
    ))?;
    // What it needs before it runs is better known now.
    if let Err(errors) = Config::load(out, &[]) {
        output::note(&format!("before it runs:\n{errors}"));
    }
    Ok(exit::DONE)
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        Self::usage(error.to_string())
    }
}

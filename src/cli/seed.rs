//! The skill that a run begins with: a Markdown file, or the body of a skill folder whose other files the run carries.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::config::Config;
use crate::domain::{Skill, SkillFolder};
use crate::event::RunInfo;
use crate::skill::{
    Carried, Package, check_package, divide, keep_in_run, kept_in_run, package_of_run, secrets,
};
use crate::store::RunDir;

/// Most findings that are told of a seed; `planish skill check` tells all.
const MOST_TOLD: usize = 5;

pub struct Seed {
    pub skill: Skill,
    /// What came with it; `None` for a file.
    pub folder: Option<SkillFolder>,
    /// What a person should know of it.
    pub warnings: Vec<String>,
}

impl Seed {
    /// The seed that `config` names. A folder is copied into the folder of a run that has not begun, and is read from
    /// there ever after.
    ///
    /// # Errors
    /// A file or folder that cannot be used, with its remedy.
    pub fn of(run: &RunDir, config: &Config, begun: Option<&RunInfo>) -> Result<Self> {
        let path = Path::new(&config.env.skill_init);
        if config.env.skill_init.is_empty() {
            return Ok(Self { skill: Skill::new(""), folder: None, warnings: Vec::new() });
        }
        if let Some(folder) = begun.and_then(|info| info.folder.as_ref()) {
            package_of_run(run, folder)?;
            return Self::of_package(&kept_in_run(run)?, Vec::new());
        }
        if !path.is_dir() {
            let text = read_skill(path)?;
            let mut warnings = Vec::new();
            if divide(&text).is_ok_and(|parts| parts.front.is_some()) {
                warnings.push(format!(
                    "{} has front matter, which is optimised like any text of a file; name its folder as env.skill_init to \
                     keep it as it is",
                    path.display()
                ));
            }
            return Ok(Self { skill: Skill::new(text), folder: None, warnings });
        }
        let package = Package::read(path)?;
        refuse_secrets(path, &package)?;
        let seed = Self::of_package(&package, findings(path, &package))?;
        if begun.is_none() {
            keep_in_run(&package, run)?;
        }
        Ok(seed)
    }

    /// The seed of a run that goes on from another one's: only what comes with a folder is taken of what `config` names.
    ///
    /// # Errors
    /// As [`Seed::of`].
    pub fn continuing(
        initial: Skill,
        run: &RunDir,
        config: &Config,
        begun: Option<&RunInfo>,
    ) -> Result<Self> {
        let carries = match begun {
            Some(info) => info.folder.is_some(),
            None => Path::new(&config.env.skill_init).is_dir(),
        };
        if carries {
            return Ok(Self { skill: initial, ..Self::of(run, config, begun)? });
        }
        Ok(Self { skill: initial, folder: None, warnings: Vec::new() })
    }

    fn of_package(package: &Package, warnings: Vec<String>) -> Result<Self> {
        let Carried { body, folder } = Carried::of(package)?;
        Ok(Self { skill: Skill::new(body), folder: Some(folder), warnings })
    }
}

/// Reads a skill document, of a skill folder its body; CRLF becomes LF.
///
/// # Errors
/// A file that is missing or not UTF-8, a folder that is no skill.
pub fn read_skill(path: &Path) -> Result<String> {
    if path.is_dir() {
        return Ok(Carried::of(&Package::read(path)?)?.body);
    }
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read the skill {}", path.display()))?;
    Ok(text.replace("\r\n", "\n"))
}

/// They would lie in the run's folder and journal for good.
fn refuse_secrets(path: &Path, package: &Package) -> Result<()> {
    let found: Vec<String> =
        secrets(package).iter().map(|finding| format!("{}/{finding}", path.display())).collect();
    if found.is_empty() { Ok(()) } else { bail!(found.join("\n")) }
}

fn findings(path: &Path, package: &Package) -> Vec<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let found = check_package(package, &name).findings;
    let mut told: Vec<String> =
        found.iter().take(MOST_TOLD).map(|finding| format!("{}/{finding}", path.display())).collect();
    if found.len() > MOST_TOLD {
        told.push(format!(
            "{} more findings; `planish skill check {}` tells all",
            found.len() - MOST_TOLD,
            path.display()
        ));
    }
    told
}

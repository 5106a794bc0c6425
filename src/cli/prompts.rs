//! Prompts that replace built-in ones: read from `optimizer.prompts_dir` when a run is made, kept in its folder, so
//! that a resume asks with the same words whatever became of that folder.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use crate::config::{Config, EnvKind};
use crate::optim::Prompts;
use crate::store::{RunDir, atomic_write};

/// Copies the prompts that `config` names into a new run's folder.
///
/// # Errors
/// An unreadable file, or one that is named like no prompt.
pub fn keep(run: &RunDir, config: &Config) -> Result<()> {
    if config.optimizer.prompts_dir.is_empty() {
        return Ok(());
    }
    let texts = named_by(config)?;
    let folder = run.prompts();
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in texts {
        atomic_write(&folder.join(format!("{name}.md")), text.as_bytes())?;
    }
    Ok(())
}

/// The prompts of a run: the built-in ones and those kept in its folder.
///
/// # Errors
/// As [`keep`].
pub fn load(run: &RunDir, config: &Config) -> Result<Prompts> {
    let folder = run.prompts();
    let texts = if folder.is_dir() { texts_in(&folder)? } else { BTreeMap::new() };
    Prompts::new(texts, config.gradient.max_trajectory_chars)
        .map_err(|error| anyhow!("{}: {error}", folder.display()))
}

/// Texts of `optimizer.prompts_dir`; those in its subfolder of the environment's name win.
fn named_by(config: &Config) -> Result<BTreeMap<String, String>> {
    let folder = Path::new(&config.optimizer.prompts_dir);
    let mut texts = texts_in(folder)?;
    let environment = match config.env.kind {
        EnvKind::Qa => "qa",
    };
    let special = folder.join(environment);
    if special.is_dir() {
        texts.extend(texts_in(&special)?);
    }
    if texts.is_empty() {
        bail!(
            "optimizer.prompts_dir: {} holds no NAME.md; the prompts are {}",
            folder.display(),
            Prompts::NAMES.join(", ")
        );
    }
    Prompts::new(texts.clone(), 0)
        .map_err(|error| anyhow!("optimizer.prompts_dir: {}: {error}", folder.display()))?;
    Ok(texts)
}

/// Every `NAME.md` of a folder.
fn texts_in(folder: &Path) -> Result<BTreeMap<String, String>> {
    let unreadable = || format!("cannot read {}", folder.display());
    let mut texts = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if path.extension().is_none_or(|ending| ending != "md") || !path.is_file() {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read the prompt {}", path.display()))?;
        texts.insert(name, text);
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Brief, Prompt, SourceType};

    fn run_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<RunDir>) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("prompts");
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut config = Config::default();
        config.optimizer.prompts_dir = folder.display().to_string();
        let run = RunDir::create(&place.path().join("runs"), "r").unwrap();
        let kept = keep(&run, &config).map(|()| run);
        (place, kept)
    }

    fn system(prompts: &Prompts) -> String {
        let brief = Brief::Analyze {
            mode: Default::default(),
            source: SourceType::Failure,
            skill: String::new(),
            budget: 1,
            trajectories: Vec::new(),
            memory: Vec::new(),
            meta_skill: String::new(),
            appendix: false,
        };
        match prompts.render(&brief) {
            Prompt::Chat(messages) => messages[0].content.text(),
            Prompt::Text(text) => text,
        }
    }

    #[test]
    fn an_environments_prompt_wins_and_a_run_keeps_its_own() {
        let files = [("analyst_failure.md", "for all"), ("qa/analyst_failure.md", "for qa"), ("README", "x")];
        let (place, run) = run_with(&files);
        let run = run.unwrap();
        std::fs::remove_dir_all(place.path().join("prompts")).unwrap();
        let text = system(&load(&run, &Config::default()).unwrap());
        assert!(text.starts_with("for qa\n"), "{text}");
        assert!(text.contains("SLOW_UPDATE_START"), "the rules of the stage stay: {text}");
    }

    #[test]
    fn a_prompt_that_does_not_exist_and_an_empty_folder_are_told() {
        let (_place, run) = run_with(&[("analyst.md", "x")]);
        let error = format!("{:#}", run.unwrap_err());
        assert!(error.contains("there is no prompt \"analyst\""), "{error}");
        let (_place, run) = run_with(&[("notes.txt", "x")]);
        assert!(format!("{:#}", run.unwrap_err()).contains("holds no NAME.md"));
    }
}

//! A skill folder made from a run: its best skill as the body, front matter that says where it came from, and the files
//! that came with the seed. Owns what stands in it; the bytes depend on the run alone. Must not write.

use serde_json::Value as Json;

use super::check::check_package;
use super::finding::Finding;
use super::front_matter::{Entry, FrontMatter, Value, divide, quoted};
use super::name::{NameError, SkillName};
use super::package::{Package, PackageFile};
use crate::domain::fingerprint;
use crate::event::{RunInfo, RunState, StageState};

/// The keys of `metadata` that an export writes.
const OURS: [&str; 6] = ["generator", "run-id", "parent-sha", "gate-digest", "val-score", "date"];

/// What the caller says of the skill; what is absent comes from the folder that the run began with.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    pub name: Option<String>,
    pub description: Option<String>,
    pub license: Option<String>,
}

/// A skill folder ready to be written.
#[derive(Clone, Debug)]
pub struct Exported {
    pub name: SkillName,
    pub package: Package,
    /// None of them is an error.
    pub findings: Vec<Finding>,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("run {run} has no skill to export yet")]
    NoSkill { run: String },
    #[error("{0}, or another with --name")]
    Name(#[from] NameError),
    #[error("nothing of the run's name {run:?} can stand in a skill's name; give --name NAME")]
    NoName { run: String },
    #[error("the skill has no description; give --description \"What it does. Use when …\"")]
    NoDescription,
    #[error("the front matter that the run began with cannot be read; give --name and --description for a new one\n{}", lines(.0))]
    FrontMatter(Vec<Finding>),
    #[error("the skill is not exported as it breaks rules of the format\n{}", lines(.0))]
    Unfit(Vec<Finding>),
}

fn lines(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The best skill of a run as a folder. `files`: what came with its seed.
///
/// # Errors
/// A skill that would break a rule of the format; each finding is named.
pub fn export(state: &RunState, files: Vec<PackageFile>, wishes: &Wishes) -> Result<Exported, ExportError> {
    let Some(info) = &state.info else { return Err(ExportError::NoSkill { run: String::new() }) };
    let text =
        state.skill_text(&state.best_hash).ok_or_else(|| ExportError::NoSkill { run: info.name.clone() })?;
    let carried = info.folder.as_ref().and_then(|folder| folder.front_matter.as_deref());
    // A seed that was read from a file has its front matter in the text.
    let (front, body) = match (carried, divide(text)) {
        (None, Ok(parts)) => (parts.front, parts.body),
        (carried, _) => (carried, text),
    };
    let matter = readable(front, wishes)?;
    let name = match (&wishes.name, matter.as_ref().and_then(|matter| matter.text("name"))) {
        (Some(name), _) => SkillName::parse(name)?,
        (None, Some(name)) => SkillName::parse(name)?,
        (None, None) => {
            SkillName::suggested(&info.name).ok_or_else(|| ExportError::NoName { run: info.name.clone() })?
        }
    };
    let document = format!(
        "---\n{}---\n\n{}\n",
        front_matter(state, info, matter, &name, wishes)?,
        body.trim_matches('\n')
    );
    let package = Package::new(files).with_document(document.into_bytes());
    let findings = check_package(&package, name.as_str()).findings;
    match findings.iter().any(Finding::is_error) {
        true => Err(ExportError::Unfit(findings.into_iter().filter(Finding::is_error).collect())),
        false => Ok(Exported { name, package, findings }),
    }
}

/// The front matter that is kept, if there is any.
fn readable(front: Option<&str>, wishes: &Wishes) -> Result<Option<FrontMatter>, ExportError> {
    let Some(front) = front else { return Ok(None) };
    let (matter, faults) = FrontMatter::parse(front);
    if !faults.iter().any(Finding::is_error) {
        return Ok(Some(matter));
    }
    match (&wishes.name, &wishes.description) {
        (Some(_), Some(_)) => Ok(None),
        (_, _) => Err(ExportError::FrontMatter(faults)),
    }
}

/// Entries of the kept front matter as they were written, but for what is wished otherwise and the metadata of this
/// run.
fn front_matter(
    state: &RunState,
    info: &RunInfo,
    kept: Option<FrontMatter>,
    name: &SkillName,
    wishes: &Wishes,
) -> Result<String, ExportError> {
    let kept = kept.unwrap_or_default();
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    if kept.text("name") != Some(name.as_str()) {
        wanted.push(("name", name.as_str()));
    }
    let others = [("description", &wishes.description), ("license", &wishes.license)];
    wanted.extend(others.into_iter().filter_map(|(key, wish)| Some((key, wish.as_deref()?))));
    let written =
        |key: &str| wanted.iter().find(|(wanted, _)| *wanted == key).map(|(key, text)| entry(key, text));
    let mut out = kept.preamble.clone();
    for key in ["name", "description", "license"] {
        if kept.get(key).is_none() {
            out.extend(written(key));
        }
    }
    if kept.get("description").is_none() && wishes.description.is_none() {
        return Err(ExportError::NoDescription);
    }
    let provenance = provenance(state, info);
    for entry in &kept.entries {
        match (entry.key.as_str(), &entry.value) {
            ("metadata", Value::Map(inner)) if inner.iter().all(|entry| entry.value.text().is_some()) => {
                out.push_str(&metadata(entry, inner, &provenance));
            }
            (key, _) => out.push_str(&written(key).unwrap_or_else(|| entry.written.clone())),
        }
    }
    if kept.get("metadata").is_none() {
        out.push_str(&metadata_of_its_own(&provenance));
    }
    Ok(out)
}

fn metadata_of_its_own(provenance: &[(&str, String)]) -> String {
    let rows: String = provenance.iter().map(|(key, value)| format!("  {}", entry(key, value))).collect();
    format!("metadata:\n{rows}")
}

/// The kept metadata with the keys of this run in place of those of an earlier one.
fn metadata(kept: &Entry, inner: &[Entry], provenance: &[(&str, String)]) -> String {
    let others = || inner.iter().filter(|entry| !OURS.contains(&entry.key.as_str()));
    let Some(first) = inner.first().filter(|first| first.line > kept.line) else {
        // Written on one line.
        let mut all: Vec<(&str, String)> = others()
            .map(|entry| (entry.key.as_str(), entry.value.text().unwrap_or_default().to_owned()))
            .collect();
        all.extend(provenance.iter().cloned());
        return metadata_of_its_own(&all);
    };
    let mut out: String = kept.written.split_inclusive('\n').take(first.line - kept.line).collect();
    out.extend(others().map(|entry| entry.written.as_str()));
    let indent: String = first.written.chars().take_while(|c| *c == ' ').collect();
    out.extend(provenance.iter().map(|(key, value)| format!("{indent}{}", entry(key, value))));
    out
}

fn entry(key: &str, text: &str) -> String {
    let key = if key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        key.to_owned()
    } else {
        quoted(key)
    };
    format!("{key}: {}\n", quoted(text))
}

/// The entries of `metadata` that say where the skill came from.
fn provenance(state: &RunState, info: &RunInfo) -> Vec<(&'static str, String)> {
    let (evidence, at) = evidence(state, info);
    let date = jiff::Timestamp::from_millisecond(i64::try_from(at).unwrap_or_default()).unwrap_or_default();
    let values = [
        Some(format!("planish {}", env!("CARGO_PKG_VERSION"))),
        Some(info.name.clone()),
        Some(state.initial_hash.clone()),
        evidence.map(|evidence| fingerprint([evidence.to_string().as_str()])),
        state.best_score.map(|score| format!("{score:.4}")),
        Some(date.strftime("%Y-%m-%d").to_string()),
    ];
    OURS.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?))).collect()
}

/// The verdict that made the best skill the best, as data, and when that was. The seed has none.
fn evidence(state: &RunState, info: &RunInfo) -> (Option<Json>, u64) {
    let json = |value: Option<&crate::domain::GateDecision>| {
        value.and_then(|value| serde_json::to_value(value).ok())
    };
    if let Some((score, true)) = &state.final_selection {
        return (serde_json::to_value(score).ok(), state.updated_at);
    }
    let made =
        |stage: &&StageState| stage.current_hash == state.best_hash && stage.stage.action().changes_skill();
    if let Some(stage) = state.stages.iter().rfind(made) {
        return (json(stage.stage.candidate().1), stage.finished_at);
    }
    match state.steps.iter().find(|step| state.best_step > 0 && step.at.step == state.best_step) {
        Some(step) => (json(step.gate.as_ref()), step.finished_at.unwrap_or(info.started_at)),
        None => (None, info.started_at),
    }
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;

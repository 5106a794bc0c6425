//! The configuration that a run goes on with: what it began with, what was retuned since, what a resume may bring.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::config::{
    ChangedKey, Config, Effective, Loaded, Origin, changed_keys, find_key, flatten, with_changes,
};
use crate::domain::Retuned;
use crate::event::RunState;
use crate::store::{RunDir, atomic_write};

/// What a run began with, and what is in effect now.
pub struct Began {
    launch: Config,
    effective: Config,
    /// Values that were in effect since, in order.
    told: Vec<Retuned>,
}

impl Began {
    /// `None` before the first event.
    pub fn of(state: &RunState) -> Result<Option<Self>> {
        if state.info.is_none() {
            return Ok(None);
        }
        const NEWER: &str =
            "the configuration in the journal does not read back; was it written by a newer planish?";
        Ok(Some(Self {
            launch: serde_json::from_value(state.config.clone()).context(NEWER)?,
            effective: serde_json::from_value(state.effective_config()).context(NEWER)?,
            told: state.settings.clone(),
        }))
    }

    /// `config` with what the journal says since, should a host have been killed between an event and the file: a value that
    /// was in effect earlier is no wish, only old.
    pub fn settled(&self, config: &Config) -> Result<Config> {
        let old = |key: &str, value: &Value| {
            *value == value_of(&self.launch, key)
                || self.told.iter().any(|change| change.key == key && change.new == *value)
        };
        let rows = flatten(&self.effective).into_iter().zip(flatten(config));
        let changes: Vec<Retuned> = rows
            .filter(|((key, new), (_, value))| value != new && old(key.path, value))
            .map(|((key, new), (_, old))| Retuned { key: key.path.to_owned(), old, new })
            .collect();
        with_changes(config, &changes).map_err(anyhow::Error::msg)
    }

    /// What `config` changes of the settings in effect.
    ///
    /// # Errors
    /// Names the keys that recorded results depend on.
    pub fn changes(&self, config: &Config) -> Result<Vec<ChangedKey>> {
        let changed = changed_keys(&self.effective, config);
        let refused: Vec<_> = changed.iter().filter(|key| !key.safe).map(ToString::to_string).collect();
        if !refused.is_empty() {
            let next_step = changed.iter().any(|key| effective(key.key) == Some(Effective::NextStep));
            let or = if next_step {
                ", or set it once the run goes on with `planish ctl RUN set KEY VALUE`,"
            } else {
                ","
            };
            bail!(
                "the configuration changed since this run began, and its results depend on it:\n  {}\nundo the \
                 change{or} or start a new run with another --name",
                refused.join("\n  ")
            );
        }
        Ok(changed)
    }

    /// What the control flow begins with: what took effect between steps it puts into effect again by itself.
    pub fn replayed(&self, config: &Config) -> Result<Config> {
        let changes: Vec<Retuned> = between_steps(&self.launch)
            .map(|(key, new)| Retuned { key: key.to_owned(), old: Value::Null, new })
            .collect();
        with_changes(config, &changes).map_err(anyhow::Error::msg)
    }
}

fn effective(key: &str) -> Option<Effective> {
    find_key(key).map(|key| key.effective)
}

fn between_steps(config: &Config) -> impl Iterator<Item = (&'static str, Value)> {
    let rows = flatten(config).into_iter();
    rows.filter(|(key, _)| key.effective == Effective::NextStep).map(|(key, value)| (key.path, value))
}

fn value_of(config: &Config, wanted: &str) -> Value {
    flatten(config)
        .into_iter()
        .find(|(key, _)| key.path == wanted)
        .map(|(_, value)| value)
        .unwrap_or_default()
}

/// Values as the journal keeps changes.
pub fn as_retuned(changed: &[ChangedKey]) -> Vec<Retuned> {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_default();
    let row =
        |one: &ChangedKey| Retuned { key: one.key.to_owned(), old: value(&one.old), new: value(&one.new) };
    changed.iter().map(row).collect()
}

/// Keeps where the settings of a new run came from.
pub fn write_origins(run: &RunDir, loaded: &Loaded) -> Result<()> {
    let here = std::env::current_dir().unwrap_or_default();
    let origins: BTreeMap<&str, String> =
        loaded.origins.iter().map(|(key, origin)| (*key, shown(origin, &here))).collect();
    Ok(atomic_write(&run.origins_json(), &serde_json::to_vec(&origins)?)?)
}

/// Empty for a run that was prepared without.
pub fn read_origins(run: &RunDir) -> Result<BTreeMap<String, String>> {
    let path = run.origins_json();
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .with_context(|| format!("{} does not read back; delete it to go on without", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// With the path as seen from the folder that the command was given in.
fn shown(origin: &Origin, here: &Path) -> String {
    match origin {
        Origin::File { path, line } => {
            let path = path.strip_prefix(here).unwrap_or(path).to_owned();
            Origin::File { path, line: *line }.to_string()
        }
        Origin::BuiltIn | Origin::CommandLine => origin.to_string(),
    }
}

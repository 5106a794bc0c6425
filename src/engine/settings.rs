//! The configuration a run works with now, and what changes with it at once: places for calls, limits of calls, the
//! budget. Knows nothing of why or by whom.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use super::slots::Slots;
use crate::config::{Config, ConfigError, ConfigErrors, Effective, find_key, with_changes};
use crate::domain::Retuned;
use crate::model::{Budget, Dials};
use crate::store::atomic_write;

pub struct Settings {
    config: RwLock<Arc<Config>>,
    /// Rollouts in flight (`env.workers`).
    pub rollout_slots: Slots,
    /// Optimizer calls in flight (`gradient.analyst_workers`).
    pub analyst_slots: Slots,
    dials: Arc<Dials>,
    budget: Arc<Budget>,
    /// The run's `config.toml`, which always says what is in effect.
    file: PathBuf,
}

impl Settings {
    pub fn new(config: Config, dials: Arc<Dials>, budget: Arc<Budget>, file: PathBuf) -> Self {
        Self {
            rollout_slots: Slots::new(config.env.workers),
            analyst_slots: Slots::new(config.gradient.analyst_workers),
            config: RwLock::new(Arc::new(config)),
            dials,
            budget,
            file,
        }
    }

    /// As it is now; a stage that must not see a change holds on to it.
    pub fn config(&self) -> Arc<Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts changed values into effect. They were checked when they were asked for.
    ///
    /// # Errors
    /// A journal whose changes this version cannot read, or the disk's.
    pub fn apply(&self, changes: &[Retuned]) -> Result<(), String> {
        let mut config = self.config.write().unwrap_or_else(PoisonError::into_inner);
        let changed = with_changes(&config, changes)?;
        self.rollout_slots.resize(changed.env.workers);
        self.analyst_slots.resize(changed.gradient.analyst_workers);
        self.dials.set(&changed.model);
        self.budget.set_limits(changed.budget.clone());
        let text = changed.resolved_toml().map_err(|error| error.to_string())?;
        *config = Arc::new(changed);
        atomic_write(&self.file, text.as_bytes()).map_err(|error| error.to_string())
    }

    /// What `wanted` changes of the present configuration with `waiting` in it, or why it cannot.
    pub fn retuned(
        &self,
        waiting: &[Retuned],
        wanted: &BTreeMap<String, Value>,
    ) -> Result<Vec<Retuned>, String> {
        let present = with_changes(&self.config(), waiting)?;
        let changes = present.retuned(wanted).map_err(|ConfigErrors(errors)| {
            let messages = errors.iter().map(ConfigError::complaint).collect::<Vec<_>>();
            messages.join("\n")
        })?;
        for change in &changes {
            refuse_later(change)?;
        }
        let limits = with_changes(&present, &changes)?.budget;
        self.budget.may_become(&limits).map_err(|error| error.to_string())?;
        Ok(changes)
    }
}

fn refuse_later(change: &Retuned) -> Result<(), String> {
    let Retuned { key, new, .. } = change;
    match find_key(key).map(|key| key.effective) {
        Some(Effective::Live | Effective::NextStep) => Ok(()),
        Some(Effective::Restart) => Err(format!(
            "{key}: takes effect when a host starts; cancel the run, then `planish resume RUN -o {key}={new}`"
        )),
        Some(Effective::NewRun) | None => {
            Err(format!("{key}: recorded results depend on it; start a new run with -o {key}={new}"))
        }
    }
}

//! `config.json`: the resolved config under SkillOpt's flat names, with the derived values.

use serde_json::{Map, Value, json};

use crate::config::{self, Config};
use crate::event::RunState;

/// Flat config of the run plus what its plan derived from it.
pub(super) fn flat_config(config: &Config, state: &RunState) -> Map<String, Value> {
    let mut flat: Map<String, Value> = config::flatten(config)
        .into_iter()
        .map(|(key, value)| (config::flat_name(key.path), value))
        .collect();
    if config.env.benchmark.name == config::Benchmark::None {
        // Whoever reads this file looks for the environment under one name.
        let kind = flat.get("env_kind").cloned().unwrap_or_default();
        flat.insert("env".into(), kind);
    }
    if let Some(info) = &state.info {
        let plan = &info.plan;
        flat.insert("train_size".into(), json!(plan.train));
        flat.insert("steps_per_epoch".into(), json!(plan.steps_per_epoch));
        let batches = plan.steps_per_epoch as usize * config.train.accumulation;
        flat.insert("batches_per_epoch".into(), json!(batches));
        flat.insert("samples_per_epoch".into(), json!(plan.train));
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_own_flat_name() {
        let flat = flat_config(&Config::default(), &RunState::default());
        assert_eq!(flat.len(), config::keys().count());
        for name in
            ["optimizer_model", "target_backend", "edit_budget", "num_epochs", "seed", "env", "use_gate"]
        {
            assert!(flat.contains_key(name), "{name}");
        }
    }
}

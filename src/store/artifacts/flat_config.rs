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
        let of_models = ["optimizer_model", "optimizer_backend", "target_model", "target_backend"];
        let of_training =
            ["num_epochs", "train_size", "batch_size", "accumulation", "seed", "minibatch_size"];
        let of_reflection = ["merge_batch_size", "analyst_workers", "failure_only", "use_deep_reflect"];
        let of_budget =
            ["edit_budget", "min_edit_budget", "meta_edit_budget", "lr_scheduler", "lr_control_mode"];
        let of_stages = [
            "skill_update_mode",
            "use_slow_update",
            "slow_update_samples",
            "slow_update_gate_with_selection",
            "longitudinal_pair_policy",
            "use_meta_skill",
            "use_skill_aware_reflection",
            "skill_aware_appendix_source",
            "skill_aware_consolidate_threshold",
        ];
        let of_gate = ["use_gate", "gate_metric", "sel_env_num", "test_env_num", "eval_test"];
        let of_env = ["env", "skill_init", "split_mode", "split_dir", "workers"];
        for name in of_models
            .iter()
            .chain(&of_training)
            .chain(&of_reflection)
            .chain(&of_budget)
            .chain(&of_stages)
            .chain(&of_gate)
            .chain(&of_env)
        {
            assert!(flat.contains_key(*name), "{name}");
        }
    }
}

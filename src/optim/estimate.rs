//! What a run under a configuration can cost at most: steps, and model calls by role and stage. Pure arithmetic over
//! the rules that the engine follows; makes no promise about tokens beyond what earlier runs have shown.

use std::collections::BTreeMap;

use crate::config::{Config, ScorerKind};
use crate::domain::{LrControlMode, Role, UpdateMode, Usage};
use crate::env::batches::{eval_size, steps_per_epoch};

/// Items of each split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub train: usize,
    pub val: usize,
    pub test: usize,
}

/// Most calls of one stage. Its name is that under which a run counts its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageBound {
    pub stage: &'static str,
    pub role: Role,
    pub calls: u64,
}

/// The most a run can do. Retries after faults are not counted: their number is a setting of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    pub epochs: u32,
    pub steps_per_epoch: usize,
    /// Items that are measured and trained on.
    pub sizes: Sizes,
    pub batch: usize,
    pub stages: Vec<StageBound>,
}

/// Mean tokens of a call by stage, from runs that have been.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experience {
    pub runs: usize,
    per_call: BTreeMap<String, f64>,
}

impl Experience {
    /// From the usage by stage of each run.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a BTreeMap<String, Usage>>) -> Self {
        let mut total: BTreeMap<String, Usage> = BTreeMap::new();
        let mut n = 0;
        for usage in runs.into_iter().filter(|usage| !usage.is_empty()) {
            n += 1;
            for (stage, usage) in usage {
                *total.entry(stage.clone()).or_default() += *usage;
            }
        }
        let mean =
            |usage: &Usage| (usage.prompt_tokens + usage.completion_tokens) as f64 / usage.calls as f64;
        let per_call = total.iter().filter(|(_, usage)| usage.calls > 0);
        Self { runs: n, per_call: per_call.map(|(stage, usage)| (stage.clone(), mean(usage))).collect() }
    }
}

impl Estimate {
    pub fn steps(&self) -> u64 {
        u64::from(self.epochs) * self.steps_per_epoch as u64
    }

    pub fn calls(&self, role: Role) -> u64 {
        self.stages.iter().filter(|stage| stage.role == role).map(|stage| stage.calls).sum()
    }

    /// Tokens by experience, and the calls of stages that nobody has experience of.
    pub fn tokens(&self, experience: &Experience) -> (u64, u64) {
        let (mut tokens, mut unknown) = (0.0, 0);
        for stage in &self.stages {
            match experience.per_call.get(stage.stage) {
                Some(mean) => tokens += mean * stage.calls as f64,
                None => unknown += stage.calls,
            }
        }
        (tokens as u64, unknown)
    }
}

/// `sizes`: of the splits as they are loaded.
pub fn estimate(config: &Config, sizes: Sizes) -> Estimate {
    let (train, gradient, optimizer) = (&config.train, &config.gradient, &config.optimizer);
    let evaluation = &config.evaluation;
    let val = eval_size(evaluation.sel_env_num, sizes.val);
    let test = if evaluation.eval_test { eval_size(evaluation.test_env_num, sizes.test) } else { 0 };
    let per_epoch = steps_per_epoch(sizes.train, train.batch_size, train.accumulation);
    let epochs = u64::from(train.num_epochs);
    let steps = epochs * per_epoch as u64;
    let batch = train.batch_size.min(sizes.train);
    let batches = steps * train.accumulation as u64;
    let probed = if gradient.use_deep_reflect {
        (gradient.deep_reflect_failures + gradient.deep_reflect_successes).min(batch)
    } else {
        0
    };
    let compared = optimizer.use_slow_update || optimizer.use_meta_skill;
    let pairs = if compared { 2 * optimizer.slow_update_samples.min(sizes.train) as u64 } else { 0 };
    let when = |wanted: bool, calls: u64| if wanted { calls } else { 0 };

    let analysts = analysts(config, batch) + analysts(config, probed);
    let appended = optimizer.use_skill_aware_reflection;
    // A change outside the gate has the current skill measured again.
    let rescored = when(appended, steps)
        + when(optimizer.use_slow_update && !optimizer.slow_update_gate_with_selection, epochs);
    let gated = steps
        + when(optimizer.use_slow_update && optimizer.slow_update_gate_with_selection, epochs)
        + when(optimizer.use_meta_reflect, epochs);
    let optim = [
        ("deep_probe", when(probed > 0, batches)),
        ("analyst", batches * analysts),
        ("merge", steps * merges(analysts * train.accumulation as u64, gradient.merge_batch_size)),
        ("lr_autonomous", when(optimizer.lr_control_mode == LrControlMode::Autonomous, steps)),
        ("ranking", when(optimizer.skill_update_mode != UpdateMode::FullRewriteMinibatch, steps)),
        ("rewrite", when(optimizer.skill_update_mode == UpdateMode::RewriteFromSuggestions, steps)),
        ("appendix_consolidate", when(appended && optimizer.skill_aware_consolidate_threshold > 0, steps)),
        ("slow_update", when(optimizer.use_slow_update, epochs)),
        ("meta_skill", when(optimizer.use_meta_skill, epochs)),
        ("meta_reflect", when(optimizer.use_meta_reflect, epochs)),
    ];
    let asked: u64 = optim.iter().map(|(_, calls)| calls).sum();
    let target = [
        ("rollout", batches * (batch + probed) as u64 + epochs * pairs),
        // The baseline, every candidate, what is measured again, the last skill once more, and three tests.
        ("evaluation", val as u64 * (2 + gated + rescored) + 3 * test as u64),
    ];
    let bounds = |role: Role| move |(stage, calls)| StageBound { stage, role, calls };
    // A reply that no rule scores is put to the judge, once for each.
    let judged = when(config.env.scorer == ScorerKind::Judge, target.iter().map(|(_, calls)| calls).sum());
    let stages = target
        .into_iter()
        .map(bounds(Role::Target))
        .chain(optim.into_iter().map(bounds(Role::Optimizer)))
        .chain([bounds(Role::Optimizer)(("repair", asked)), bounds(Role::Judge)(("judge", judged))])
        .filter(|bound| bound.calls > 0)
        .collect();
    Estimate {
        epochs: train.num_epochs,
        steps_per_epoch: per_epoch,
        sizes: Sizes { train: sizes.train, val, test },
        batch,
        stages,
    }
}

/// Analyst calls over `n` trajectories: failures and successes are grouped apart.
fn analysts(config: &Config, n: usize) -> u64 {
    let gradient = &config.gradient;
    let groups = n.div_ceil(gradient.minibatch_size.max(1));
    (groups + usize::from(!gradient.failure_only && n > 1)) as u64
}

/// Merge calls for `patches` patches of two sources, which are merged apart and then together.
fn merges(patches: u64, batch: usize) -> u64 {
    let batch = batch.max(2) as u64;
    let (mut left, mut calls) = (patches, 0);
    while left > 1 {
        calls += left.div_ceil(batch);
        left = left.div_ceil(batch);
    }
    // Two sources may need one more level each, and the final merge.
    if patches > 1 { calls + 3 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { train: 10, val: 6, test: 8 };

    fn small() -> Config {
        let mut config = Config::default();
        (config.train.num_epochs, config.train.batch_size) = (2, 4);
        config.gradient.minibatch_size = 2;
        config.optimizer.use_slow_update = false;
        config.optimizer.use_meta_skill = false;
        config
    }

    fn calls(estimate: &Estimate, stage: &str) -> u64 {
        estimate.stages.iter().find(|bound| bound.stage == stage).map_or(0, |bound| bound.calls)
    }

    #[test]
    fn the_bound_follows_the_configuration() {
        let plain = estimate(&small(), SIZES);
        assert_eq!((plain.steps_per_epoch, plain.steps()), (3, 6));
        assert_eq!(calls(&plain, "rollout"), 6 * 4);
        assert_eq!(calls(&plain, "evaluation"), 6 * (2 + 6) + 3 * 8);
        assert_eq!(calls(&plain, "analyst"), 6 * 3);
        assert_eq!(calls(&plain, "repair"), plain.calls(Role::Optimizer) / 2);

        let mut deep = small();
        deep.gradient.use_deep_reflect = true;
        (deep.gradient.deep_reflect_failures, deep.gradient.deep_reflect_successes) = (1, 1);
        assert_eq!(calls(&estimate(&deep, SIZES), "rollout"), 6 * 6);
        assert_eq!(calls(&estimate(&deep, SIZES), "deep_probe"), 6);

        let mut slow = small();
        (slow.optimizer.use_slow_update, slow.optimizer.slow_update_samples) = (true, 5);
        let slow = estimate(&slow, SIZES);
        assert_eq!((calls(&slow, "rollout"), calls(&slow, "slow_update")), (24 + 2 * 10, 2));

        let mut judged = small();
        judged.env.scorer = ScorerKind::Judge;
        let judged = estimate(&judged, SIZES);
        assert_eq!(judged.calls(Role::Judge), judged.calls(Role::Target));

        let mut untested = small();
        untested.evaluation.eval_test = false;
        untested.evaluation.sel_env_num = 2;
        assert_eq!(calls(&estimate(&untested, SIZES), "evaluation"), 2 * 8);
    }

    #[test]
    fn tokens_are_those_of_earlier_runs() {
        let usage = |calls, prompt_tokens| Usage { calls, prompt_tokens, ..Usage::default() };
        let before: BTreeMap<String, Usage> = [("rollout".to_owned(), usage(10, 1_000))].into();
        let none = BTreeMap::new();
        let known = Experience::of([&before, &none, &before]);
        assert_eq!(known.runs, 2);
        let plain = estimate(&small(), SIZES);
        let (tokens, unknown) = plain.tokens(&known);
        assert_eq!(tokens, 24 * 100);
        assert_eq!(unknown, plain.calls(Role::Target) - 24 + plain.calls(Role::Optimizer));
        assert_eq!(plain.tokens(&Experience::default()).0, 0);
    }
}

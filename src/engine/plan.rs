//! What a run is going to do: its plan, and the smallest number of calls it can get by with.

use crate::config::{Config, EnvKind};
use crate::domain::Dataset;
use crate::env::batches::{eval_size, steps_per_epoch};
use crate::event::RunPlan;

/// The plan that `run_started` records. `target`, `optimizer` and `judge` are labels for people.
pub fn run_plan(config: &Config, data: &Dataset, [target, optimizer, judge]: [&str; 3]) -> RunPlan {
    let train = &config.train;
    let steps_per_epoch = steps_per_epoch(data.train.len(), train.batch_size, train.accumulation);
    let steps_per_epoch = u32::try_from(steps_per_epoch).unwrap_or(u32::MAX);
    RunPlan {
        epochs: config.train.num_epochs,
        steps_per_epoch,
        total_steps: steps_per_epoch.saturating_mul(config.train.num_epochs),
        batch_size: config.train.batch_size,
        train: data.train.len(),
        val: eval_size(config.evaluation.sel_env_num, data.val.len()),
        test: if config.evaluation.eval_test {
            eval_size(config.evaluation.test_env_num, data.test.len())
        } else {
            0
        },
        target: target.to_owned(),
        optimizer: optimizer.to_owned(),
        judge: judge.to_owned(),
        env: match config.env.kind {
            EnvKind::Qa => "qa".to_owned(),
        },
        review: config.review.mode,
    }
}

/// Fewest model calls with which the run can complete: the baseline on the selection split, every training item
/// once per epoch, one analyst call per step, and one pass over the test split (base and best may be equal).
pub fn minimum_calls(plan: &RunPlan) -> u64 {
    let rollouts = plan.val as u64 + plan.train as u64 * u64::from(plan.epochs) + plan.test as u64;
    rollouts + u64::from(plan.total_steps)
}

//! Opens what a configuration names: the environment and its data, checked against each other, so that a run never
//! meets an unusable item half way. Owns that check and the limits; must not run anything.

use std::path::Path;
use std::sync::Arc;

use crate::config::{Benchmark, Config, EnvKind};
use crate::domain::{Dataset, HeldOut, Item, Split};

use super::Environment;
use super::batches::eval_size;
use super::error::DataError;
use super::qa::QaEnv;
use super::rows::PlacedItem;
use super::split::Splits;

/// An environment with its data.
pub struct Task {
    pub environment: Arc<dyn Environment>,
    pub data: Dataset,
}

impl Task {
    /// Paths in `config` are resolved already. With `run_folder`, data divided by ratio is also written below it
    /// (`_generated_splits/<env>_<a-b-c>_seed<seed>/` with `train|val|test/items.json` and `split_manifest.json`), or
    /// into `env.split_output_dir`.
    ///
    /// Every item of every split is checked: a template or scorer that cannot use it is an error that names the row.
    pub fn open(config: &Config, run_folder: Option<&Path>) -> Result<Self, DataError> {
        let benchmark = config.env.benchmark.name;
        if benchmark != Benchmark::None {
            let problem = format!(
                "the benchmark {} is not part of this version; leave env.name out and describe the task with the \
                 other keys of [env]",
                benchmark.word()
            );
            return Err(DataError::setting("env.name", problem));
        }
        let environment = match config.env.kind {
            EnvKind::Qa => QaEnv::new(&config.env)?,
        };
        let splits = Splits::load(&config.env, config.train.seed)?;
        for (_, placed) in splits.in_file_order() {
            environment.check(&placed.item).map_err(|problem| DataError::row(&placed.place, problem))?;
        }
        for (split, part) in Split::ALL.into_iter().zip(&splits.parts) {
            let needed = split != Split::Test || config.evaluation.eval_test;
            if needed && part.is_empty() {
                return Err(empty_split(config, split));
            }
        }
        let kept = |part: &[PlacedItem]| eval_size(config.env.limit, part.len());
        let (wanted, loaded) = (config.train.train_size, kept(&splits.parts[0]));
        if train_size(wanted, loaded).is_none() {
            return Err(DataError::setting(
                "train.train_size",
                format!(
                    "is {wanted}, but the train split has {loaded} items; set it to {loaded}, or to 0 for all"
                ),
            ));
        }
        if let Some(folder) = run_folder {
            match config.env.benchmark.split_output_dir.as_str() {
                "" => splits.write_below(folder, env_name(config.env.kind))?,
                chosen => splits.write(Path::new(chosen))?,
            }
        }
        let [train, val, test] = splits.parts.map(|part| {
            let kept = kept(&part);
            part.into_iter().take(kept).map(into_item)
        });
        let data = Dataset {
            train: train.collect(),
            val: val.map(HeldOut::new).collect(),
            test: test.map(HeldOut::new).collect(),
        };
        Ok(Self { environment: Arc::new(environment), data })
    }
}

fn env_name(kind: EnvKind) -> &'static str {
    match kind {
        EnvKind::Qa => "qa",
    }
}

/// Training items of a run: as many as the split has, and as many as was configured unless that was 0.
pub fn train_size(configured: usize, loaded: usize) -> Option<usize> {
    (loaded > 0 && (configured == 0 || configured == loaded)).then_some(loaded)
}

fn into_item(placed: PlacedItem) -> Item {
    placed.item
}

fn empty_split(config: &Config, split: Split) -> DataError {
    use crate::config::SplitMode;
    let what = match split {
        Split::Train => "the train split is empty",
        Split::Val => "the selection split (val) is empty, so no gate can decide",
        Split::Test => "the test split is empty; add items or set evaluation.eval_test = false",
    };
    match config.env.split_mode {
        SplitMode::SplitDir => {
            DataError::setting("env.split_dir", format!("{what} ({})", config.env.split_dir))
        }
        SplitMode::Ratio => DataError::setting(
            "env.data_path",
            format!(
                "{what} ({} divided by {}); give more items or another env.split_ratio",
                config.env.data_path, config.env.split_ratio
            ),
        ),
    }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;

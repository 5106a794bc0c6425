//! `planish eval`: score a skill on a split, without training.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::json;

use super::{Failure, exit, output, run_setup};
use crate::config::Config;
use crate::domain::{Split, Usage};
use crate::engine::score_skill;
use crate::env::Task;
use crate::event::ItemResult;
use crate::gate::wilson_interval;
use crate::model::Budget;

#[derive(clap::Args)]
pub struct Args {
    /// Configuration that names data, scorer and target model
    config: PathBuf,
    /// Skill document to score
    #[arg(long, value_name = "FILE")]
    skill: PathBuf,
    /// Items to score
    #[arg(long, value_enum)]
    split: EvalSplit,
    /// Set one configuration key over the file's value; may be given many times
    #[arg(short = 'o', long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// One JSON line per item and one with the score
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EvalSplit {
    Train,
    Val,
    Test,
    All,
}

impl EvalSplit {
    fn splits(self) -> &'static [Split] {
        match self {
            Self::Train => &[Split::Train],
            Self::Val => &[Split::Val],
            Self::Test => &[Split::Test],
            Self::All => &Split::ALL,
        }
    }
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let loaded = Config::load(&args.config, &args.overrides)?;
    for warning in &loaded.warnings {
        output::note(&format!("warning: {warning}"));
    }
    let skill = run_setup::read_skill(&args.skill).map_err(usage)?;
    let config = loaded.config;
    let task = Task::open(&config, None).map_err(|error| Failure::usage(error.to_string()))?;
    // Calls are recorded where nothing else looks: an evaluation is always a fresh draw.
    let calls = tempfile::tempdir().map_err(|error| Failure::run(error.to_string()))?;
    let budget = Arc::new(Budget::new(config.budget.clone(), Usage::default(), 0.0));
    let stack = run_setup::models(&config, calls.path(), budget, None).await.map_err(usage)?;
    for split in args.split.splits() {
        let target = stack.target.as_ref();
        let results = score_skill(&config, task.environment.as_ref(), target, &task.data, *split, &skill)
            .await
            .map_err(|stop| Failure::run(stop.to_string()))?;
        print(*split, &results, args.json)?;
    }
    Ok(exit::DONE)
}

fn usage(error: anyhow::Error) -> Failure {
    Failure::usage(format!("{error:#}"))
}

/// One line per item, then the means with a 95 % interval of the hard score. An item without an answer has no score.
fn print(split: Split, results: &[ItemResult], as_json: bool) -> Result<(), Failure> {
    let (mut hard, mut soft, mut n) = (0.0, 0.0, 0);
    for result in results {
        match result {
            ItemResult::Scored(rollout) => {
                hard += rollout.score.hard;
                soft += rollout.score.soft;
                n += 1;
                if as_json {
                    output::json(&json!({"item": rollout.item, "split": split, "score": rollout.score,
                        "answer": rollout.answer, "gold": rollout.gold}))?;
                } else {
                    let (glyph, reason) =
                        (if rollout.score.failed() { "x" } else { "+" }, &rollout.score.reason);
                    output::line(&format!("{glyph} {:.2}  {}  {reason}", rollout.score.hard, rollout.item))?;
                }
            }
            ItemResult::Missing { item, error } if as_json => {
                output::json(&json!({"item": item, "split": split, "missing": error}))?;
            }
            ItemResult::Missing { item, error } => {
                output::line(&format!("?       {item}  missing: {error}"))?
            }
        }
    }
    let missing = results.len() - n;
    let mean = |sum: f64| if n == 0 { 0.0 } else { sum / n as f64 };
    let (low, high) = wilson_interval(hard, n);
    if as_json {
        return output::json(&json!({"split": split, "n": n, "missing": missing, "hard": mean(hard),
            "soft": mean(soft), "interval": [low, high]}));
    }
    output::line(&format!(
        "{}: hard {:.3} [{low:.3}, {high:.3}], soft {:.3}, {n} items, {missing} missing",
        split.name(),
        mean(hard),
        mean(soft)
    ))
}

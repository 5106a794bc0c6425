//! `planish eval`: score one skill, or compare two, on any split, without training.

mod json;
mod sheet;
mod text;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde_json::json;

use self::sheet::Sheet;
use super::seed::read_skill;
use super::{Failure, exit, output, run_setup};
use crate::config::Config;
use crate::domain::{Role, Skill, Split, UnknownSplit, Usage};
use crate::engine::{Scoring, score_skills};
use crate::env::Task;
use crate::model::Budget;

/// What an evaluation writes into its folder besides `calls` and `repeat_N`.
const OUTPUT: [&str; 7] = [
    "results.jsonl",
    "predictions",
    "_generated_splits",
    json::COMPARISON,
    json::SUMMARY,
    "skill_1",
    "skill_2",
];

#[derive(clap::Args)]
pub struct Args {
    /// Configuration that names data, scorer and target model
    config: PathBuf,
    /// Skill document to score; given twice, the second is compared with the first
    #[arg(long, value_name = "FILE", required = true)]
    skill: Vec<PathBuf>,
    /// Items to score: train, val, test or all (also SkillOpt's valid_seen, selection, valid_unseen)
    #[arg(long)]
    split: EvalSplit,
    /// Measure every item N times with seeds of its own
    #[arg(short = 'k', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    repeats: u16,
    /// Set one configuration key over the file's value; may be given many times
    #[arg(short = 'o', long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// One JSON line per item, one per split with the score, one per comparison
    #[arg(long)]
    json: bool,
    /// Folder for eval_summary.json and rollout folders; an evaluation that was cut short goes on there, with the calls
    /// it has made
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Which splits to score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EvalSplit {
    One(Split),
    /// Each on its own, and a total.
    All,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}, or all")]
struct NoSplit(UnknownSplit);

impl FromStr for EvalSplit {
    type Err = NoSplit;

    fn from_str(name: &str) -> Result<Self, NoSplit> {
        match name {
            sheet::TOTAL => Ok(Self::All),
            _ => name.parse().map(Self::One).map_err(NoSplit),
        }
    }
}

impl EvalSplit {
    fn name(self) -> &'static str {
        match self {
            Self::One(split) => split.name(),
            Self::All => sheet::TOTAL,
        }
    }

    fn splits(self) -> Vec<Split> {
        match self {
            Self::One(split) => vec![split],
            Self::All => Split::ALL.to_vec(),
        }
    }
}

/// A skill that is scored.
struct Scored {
    path: PathBuf,
    skill: Skill,
}

/// What an evaluation's numbers depend on besides the skill, as its summary tells it.
struct Setting {
    split_name: &'static str,
    repeats: usize,
    target: String,
    environment: String,
    seed: u64,
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    if args.skill.len() > 2 {
        return Err(Failure::usage("--skill may be given once, or twice to compare two skills"));
    }
    let loaded = Config::load(&args.config, &args.overrides)?;
    for warning in &loaded.warnings {
        output::note(&format!("warning: {warning}"));
    }
    let config = loaded.config;
    let scored = args.skill.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    if let Some(folder) = &args.out {
        other_skill(folder, &scored)?;
        prepare(folder)?;
    }
    let task = Task::open(&config, args.out.as_deref()).map_err(|error| Failure::usage(error.to_string()))?;
    // Without a folder calls are recorded where nothing else looks, so that every evaluation is a fresh draw.
    let scratch = tempfile::tempdir().map_err(|error| Failure::run(error.to_string()))?;
    let calls = args.out.as_deref().unwrap_or(scratch.path()).join("calls");
    let prices = run_setup::prices(&config).map_err(usage)?;
    let budget = Budget::new(config.budget.clone(), Usage::default(), 0.0).at_prices(prices);
    let budget = Arc::new(budget);
    // Nothing is optimised: no key or worker of that role is asked for.
    let roles: Vec<Role> = config.roles().into_iter().filter(|role| *role != Role::Optimizer).collect();
    let stack = run_setup::models(&config, &roles, &calls, budget, None).await.map_err(usage)?;
    let setting = Setting {
        split_name: args.split.name(),
        repeats: usize::from(args.repeats),
        target: stack.target.label().to_owned(),
        environment: task.environment.version().to_owned(),
        seed: config.train.seed,
    };
    let skills: Vec<String> = scored.iter().map(|scored| scored.skill.text.clone()).collect();
    let scoring = Scoring {
        config: &config,
        env: task.environment.as_ref(),
        target: stack.target.as_ref(),
        judge: stack.judge.as_deref(),
        data: &task.data,
        splits: &args.split.splits(),
        skills: &skills,
        repeats: setting.repeats,
    };
    let progress = |done, all| output::progress(done, all, "rollouts");
    let results = score_skills(&scoring, &progress).await.map_err(|stop| Failure::stop(&stop))?;
    let sheets: Vec<Sheet> =
        results.iter().map(|items| Sheet::new(items, scoring.splits, setting.repeats)).collect();
    tell(&args, &setting, &scored, &sheets)
}

/// Prints and writes what was found.
fn tell(args: &Args, setting: &Setting, scored: &[Scored], sheets: &[Sheet]) -> Result<u8, Failure> {
    let pair = match (scored, sheets) {
        ([a, b], [first, second]) => Some(([a, b], [first, second], first.compare(second))),
        _ => None,
    };
    if let Some(folder) = &args.out {
        for (place, (scored, sheet)) in scored.iter().zip(sheets).enumerate() {
            match pair {
                Some(_) => json::write(&folder.join(format!("skill_{}", place + 1)), setting, scored, sheet)?,
                None => json::write(folder, setting, scored, sheet)?,
            }
        }
        if let Some((scored, _, compared)) = &pair {
            json::write_comparison(folder, *scored, compared)?;
        }
    }
    if args.json {
        for (scored, sheet) in scored.iter().zip(sheets) {
            sheet.items.iter().try_for_each(|item| output::json(&json::item(scored, item)))?;
            sheet.parts.iter().try_for_each(|part| output::json(&json::part(scored, part)))?;
        }
        if let Some((scored, _, compared)) = &pair {
            let line = |row| output::json(&json!({ "comparison": json::comparison(*scored, row) }));
            compared.iter().try_for_each(line)?;
        }
    } else {
        let lines = match &pair {
            Some((scored, sheets, compared)) => text::of_pair(setting, *scored, *sheets, compared),
            None => {
                scored.iter().zip(sheets).flat_map(|(s, sheet)| text::of_skill(setting, s, sheet)).collect()
            }
        };
        lines.iter().try_for_each(|line| output::line(line))?;
    }
    match sheets.iter().filter_map(Sheet::whole).find(|whole| whole.summary.scored == 0) {
        Some(whole) if whole.items.is_empty() => Err(Failure::usage(format!(
            "the {} split is empty; there is nothing to score",
            setting.split_name
        ))),
        Some(_) => Err(Failure::run("no item was answered, so there is no score")),
        None => Ok(exit::DONE),
    }
}

fn read(path: &Path) -> Result<Scored, Failure> {
    Ok(Scored { path: path.to_owned(), skill: Skill::new(read_skill(path).map_err(usage)?) })
}

/// Refuses a folder with the evaluation of another skill: it would be written over.
fn other_skill(folder: &Path, scored: &[Scored]) -> Result<(), Failure> {
    let Ok(text) = std::fs::read_to_string(folder.join(json::SUMMARY)) else { return Ok(()) };
    let held: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let Some(hash) = held["skill_hash"].as_str() else { return Ok(()) };
    if scored.iter().any(|scored| scored.skill.hash == hash) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--out {}: it holds the evaluation of another skill ({}); name another folder",
        folder.display(),
        held["skill"].as_str().unwrap_or_default()
    )))
}

/// Makes the output folder, or clears what an earlier evaluation wrote there but for its calls.
fn prepare(folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("--out {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    let ours = |name: &String| {
        let repeat =
            name.strip_prefix("repeat_").is_some_and(|k| k.bytes().all(|byte| byte.is_ascii_digit()));
        repeat || OUTPUT.contains(&name.as_str())
    };
    let calls = names.iter().any(|name| name == "calls");
    if let Some(foreign) = names.iter().find(|name| !calls || (!ours(name) && *name != "calls")) {
        return Err(Failure::usage(format!(
            "--out {}: it holds {foreign:?} and is no folder of an evaluation; name a new or empty one",
            folder.display()
        )));
    }
    for name in names.iter().filter(|name| ours(name)) {
        let path = folder.join(name);
        if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) }
            .map_err(failed)?;
    }
    Ok(())
}

fn usage(error: anyhow::Error) -> Failure {
    Failure::usage(format!("{error:#}"))
}

//! `planish estimate`: what a run would take, before it takes anything. Reads the configuration, the data and earlier runs;
//! needs no key and no network.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::locate::Root;
use super::seed::read_skill;
use super::{Failure, exit, output, run_setup};
use crate::client::list_runs;
use crate::config::{Backend, Config};
use crate::domain::{ChatReply, ChatRequest, Role, Sampling, Usage};
use crate::engine::now_ms;
use crate::env::{RolloutContext, Task};
use crate::event::{Event, Record, RunState};
use crate::model::{ChatModel, LiveSink, ModelError, Prices, Tariff};
use crate::optim::{Basis, Estimate, History, PromptSizes, Sizes, Spread, StageForecast, estimate, forecast};
use crate::plain::{count, dollars, left, right, text_table, tokens};
use crate::store::{RunDir, read_records};

/// Columns where the terminal does not say.
const COLUMNS: usize = 160;
/// Earlier runs that are read, the newest ones, and how large their journals may be.
const RUNS: usize = 5;
const LARGEST_JOURNAL: u64 = 256 << 20;
/// Items whose prompts are rendered.
const ITEMS: usize = 200;

#[derive(clap::Args)]
pub struct Args {
    /// Configuration file (TOML)
    config: PathBuf,
    /// Set one configuration key over the file's value; may be given many times
    #[arg(short = 'o', long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[command(flatten)]
    root: Root,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let loaded = Config::load(&args.config, &args.overrides)?;
    for warning in &loaded.warnings {
        output::note(&format!("warning: {warning}"));
    }
    let config = loaded.config;
    let task = Task::open(&config, None).map_err(|error| Failure::usage(error.to_string()))?;
    let prices = run_setup::prices(&config).map_err(|error| Failure::usage(format!("{error:#}")))?;
    let history = history(&config, &args.root.path);
    let projection = Projection::of(&config, &task, history, &prices).await?;
    if args.json {
        output::json(&projection.json())?;
    } else {
        projection.text(&config).iter().try_for_each(|line| output::line(line))?;
    }
    Ok(exit::DONE)
}

/// What a run would take.
pub struct Projection {
    pub bound: Estimate,
    pub stages: Vec<StageForecast>,
    pub history: History,
    /// Models whose price is not known.
    pub unpriced: Vec<String>,
    prices_of: String,
}

impl Projection {
    /// # Errors
    /// A seed skill that cannot be read.
    pub async fn of(
        config: &Config,
        task: &Task,
        history: History,
        prices: &Prices,
    ) -> Result<Self, Failure> {
        let data = &task.data;
        let sizes = Sizes { train: data.train.len(), val: data.val.len(), test: data.test.len() };
        let bound = estimate(config, sizes);
        let prompts = prompt_sizes(config, task).await?;
        let tariffs = Role::ALL.map(|role| tariff(config, role, prices));
        let price = |role: Role, usage: &Usage| {
            let [target, optimizer, judge] = &tariffs;
            let tariff = match role {
                Role::Target => target,
                Role::Optimizer => optimizer,
                Role::Judge => judge,
            };
            tariff.map(|tariff| tariff.cost(usage) as f64 / 1e9)
        };
        let stages = forecast(config, &bound, &history, prompts, price);
        let mut unpriced: Vec<String> = Role::ALL
            .into_iter()
            .filter(|role| bound.calls(*role) > 0 && tariff(config, *role, prices).is_none())
            .map(|role| role_config(config, role).model.clone())
            .collect();
        unpriced.dedup();
        Ok(Self { bound, stages, history, unpriced, prices_of: prices.updated().to_owned() })
    }

    fn sum(&self, of: impl Fn(&StageForecast) -> Spread) -> Spread {
        let mut sum = Spread::default();
        self.stages.iter().for_each(|stage| sum += of(stage));
        sum
    }

    pub fn calls(&self) -> Spread {
        self.sum(|stage| stage.calls)
    }

    pub fn tokens(&self) -> Spread {
        self.sum(|stage| stage.tokens)
    }

    /// US dollars; `None`: a price is not known.
    pub fn dollars(&self) -> Option<Spread> {
        self.stages
            .iter()
            .all(|stage| stage.dollars.is_some())
            .then(|| self.sum(|stage| stage.dollars.unwrap_or_default()))
    }

    fn json(&self) -> Value {
        let spread =
            |spread: &Spread| json!({ "low": spread.low, "expected": spread.expected, "high": spread.high });
        let stages = self.stages.iter().map(|stage| {
            let (basis, measured) = match stage.basis {
                Basis::Measured(calls) => ("measured", Some(calls)),
                Basis::Assumed => ("assumed", None),
                Basis::NoModel => ("no_model", None),
            };
            json!({
                "stage": stage.stage,
                "role": stage.role,
                "calls": spread(&stage.calls),
                "tokens": spread(&stage.tokens),
                "usd": stage.dollars.as_ref().map(spread),
                "basis": basis,
                "measured_calls": measured,
            })
        });
        json!({
            "steps": self.bound.steps(),
            "stages": stages.collect::<Vec<_>>(),
            "total": {
                "calls": spread(&self.calls()),
                "tokens": spread(&self.tokens()),
                "usd": self.dollars().as_ref().map(spread),
            },
            "measured_runs": self.history.runs,
            "unpriced": self.unpriced,
            "prices_of": self.prices_of,
        })
    }

    fn text(&self, config: &Config) -> Vec<String> {
        let Estimate { sizes, batch, .. } = &self.bound;
        let mut lines = vec![
            format!(
                "{} (batch {batch}; {} train, {} selection, {} test items)",
                count(usize::try_from(self.bound.steps()).unwrap_or(usize::MAX), "step"),
                sizes.train,
                sizes.val,
                sizes.test
            ),
            String::new(),
        ];
        let head = [
            left("ROLE", 12),
            left("STAGE", 24),
            right("CALLS"),
            right("TOKENS"),
            right("MONEY"),
            left("TOKENS FROM", 40),
        ];
        let mut rows: Vec<Vec<String>> = self.stages.iter().map(row).collect();
        rows.push(vec![
            "all".into(),
            String::new(),
            calls_cell(&self.calls()),
            tokens_cell(&self.tokens()),
            money_cell(self.dollars().as_ref()),
            String::new(),
        ]);
        lines.extend(text_table(&head, &rows, COLUMNS));
        lines.push(String::new());
        lines.push(
            "low – expected – high. Low: every candidate is rejected at its first items, nothing is merged, \
                    ranked or repaired. High: no run can take more, retries after faults aside."
                .into(),
        );
        lines.push(match self.history.runs {
            0 => "No earlier run of this target on this data: sizes of prompts are rendered with the seed skill \
                  (4 bytes a token), lengths of replies are assumed (a quarter of max_tokens)."
                .into(),
            runs => format!(
                "Measured by {} of this target on this data; \"assumed\" is by the size of prompts and a quarter of \
                 max_tokens.",
                count(runs, "earlier run")
            ),
        });
        if !self.unpriced.is_empty() {
            lines.push(format!(
                "No price is known of {}: name a file with it in budget.prices.",
                self.unpriced.join(", ")
            ));
        } else if self.dollars().is_some_and(|spread| spread.high > 0.0) {
            lines.push(format!("List prices of {}; check them before you rely on them.", self.prices_of));
        }
        lines.extend(self.over(config));
        lines
    }

    /// Caps that a run is likely to meet.
    fn over(&self, config: &Config) -> Vec<String> {
        let budget = &config.budget;
        let dollars = self.dollars().unwrap_or_default();
        let mut lines = Vec::new();
        for (key, cap, spread) in [
            ("max_calls", budget.max_calls as f64, self.calls()),
            ("max_tokens", budget.max_tokens as f64, self.tokens()),
            ("max_usd", budget.max_usd, dollars),
        ] {
            if cap > 0.0 && spread.expected > cap {
                lines.push(format!(
                    "budget.{key} = {cap} is below what is expected: the run will stop there."
                ));
            }
        }
        lines
    }
}

fn row(stage: &StageForecast) -> Vec<String> {
    vec![
        stage.role.name().to_owned(),
        stage.stage.replace('_', " "),
        calls_cell(&stage.calls),
        tokens_cell(&stage.tokens),
        money_cell(stage.dollars.as_ref()),
        match stage.basis {
            Basis::Measured(calls) => format!("{calls} measured calls"),
            Basis::Assumed => "assumed".to_owned(),
            Basis::NoModel => "no model".to_owned(),
        },
    ]
}

fn cell(spread: &Spread, show: impl Fn(f64) -> String) -> String {
    let [low, expected, high] = [spread.low, spread.expected, spread.high].map(show);
    if low == high { high } else { format!("{low} – {expected} – {high}") }
}

fn calls_cell(spread: &Spread) -> String {
    cell(spread, |calls| format!("{calls:.0}"))
}

fn tokens_cell(spread: &Spread) -> String {
    cell(spread, |n| tokens(n.round() as u64))
}

fn money_cell(spread: Option<&Spread>) -> String {
    spread.map_or("unknown".to_owned(), |spread| cell(spread, |usd| dollars((usd * 1e9).round() as u64)))
}

fn role_config(config: &Config, role: Role) -> &crate::config::RoleConfig {
    match role {
        Role::Target => &config.model.target,
        Role::Optimizer => &config.model.optimizer,
        Role::Judge => &config.model.judge,
    }
}

/// `None`: nobody knows it.
fn tariff(config: &Config, role: Role, prices: &Prices) -> Option<Tariff> {
    let of_role = role_config(config, role);
    let free = matches!(of_role.backend, Backend::Local | Backend::EditSearch | Backend::Handoff);
    if free || !config.model.replay_from.is_empty() {
        return Some(Tariff::FREE);
    }
    let route = config.model.route(role).ok()?;
    prices.tariff(route.model())
}

/// Renders the first prompt of training items with the seed skill, asking nobody.
async fn prompt_sizes(config: &Config, task: &Task) -> Result<PromptSizes, Failure> {
    let skill = match config.env.skill_init.as_str() {
        "" => String::new(),
        path => read_skill(Path::new(path)).map_err(|error| Failure::usage(format!("{error:#}")))?,
    };
    let scale = Scale(Mutex::new(Vec::new()));
    let quiet: LiveSink = Arc::new(|_| {});
    for item in task.data.train.iter().take(ITEMS) {
        let context = RolloutContext {
            target: &scale,
            path: "estimate",
            stage: "rollout",
            sampling: Sampling {
                max_tokens: 0,
                temperature: None,
                top_p: None,
                top_k: None,
                seed: None,
                stop: Vec::new(),
            },
            readout: None,
            live: &quiet,
            judge: None,
        };
        // Nobody answers, so it always ends in an error.
        let _ = task.environment.rollout(item, &skill, context).await;
    }
    let bytes = scale.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(PromptSizes {
        mean: bytes.iter().sum::<f64>() / bytes.len().max(1) as f64,
        longest: bytes.iter().copied().fold(0.0, f64::max),
        skill: skill.len() as f64,
    })
}

/// Weighs requests and answers none.
struct Scale(Mutex<Vec<f64>>);

impl ChatModel for Scale {
    fn label(&self) -> &str {
        "scale"
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let bytes = request.prompt.text_bytes() as f64;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        Box::pin(async { Err(ModelError::Cancelled) })
    }
}

/// What the newest runs under `root` with the same target on the same data measured; the optimizer's calls of those with
/// the same optimizer. Runs that cannot be read are passed over.
pub fn history(config: &Config, root: &Path) -> History {
    let mut history = History::default();
    let runs = list_runs(root, now_ms()).unwrap_or_default();
    let Ok(wanted) = serde_json::to_value(config) else { return history };
    for run in runs {
        if history.runs == RUNS {
            break;
        }
        let Ok(dir) = RunDir::open(&run.path) else { continue };
        if std::fs::metadata(dir.events()).map_or(true, |file| file.len() > LARGEST_JOURNAL) {
            continue;
        }
        let Ok(records) = read_records(&dir) else { continue };
        let begun = records.iter().find_map(|record| match &record.event {
            Event::RunStarted { config, .. } => Some(config),
            _ => None,
        });
        let same = |keys: &[&str]| {
            begun.is_some_and(|begun| keys.iter().all(|key| begun.pointer(key) == wanted.pointer(key)))
        };
        let of_target = ["/model/target/backend", "/model/target/model", "/model/target/base_url"];
        let of_data = ["/env/kind", "/env/data_path", "/env/split_dir"];
        if !same(&of_target) || !same(&of_data) {
            continue;
        }
        let optimizer =
            same(&["/model/optimizer/backend", "/model/optimizer/model", "/model/optimizer/base_url"]);
        history.runs += 1;
        measure(&records, optimizer, &mut history);
    }
    history
}

fn measure(records: &[Record], optimizer: bool, history: &mut History) {
    let mut state = RunState::default();
    for record in records {
        let (stage, usage) = match &record.event {
            Event::RolloutFinished { result, .. } => ("rollout", result.rollout().map(|one| one.usage)),
            Event::EvaluationItemFinished { eval, result, .. } => {
                let training = state.evals.get(eval).is_some_and(|eval| eval.purpose.on_training_items());
                let stage = if training { "rollout" } else { "evaluation" };
                (stage, result.rollout().map(|one| one.usage))
            }
            Event::AnalysisFinished { usage, .. } => ("analyst", Some(*usage)),
            Event::OptimizerAnswered { stage, usage, .. } => (stage.as_str(), Some(*usage)),
            Event::MergeFinished { usage, .. } => ("merge", Some(*usage)),
            Event::EditsSelected { usage, .. } => ("ranking", Some(*usage)),
            Event::EvaluationStarted { .. } => {
                state.apply(record);
                continue;
            }
            _ => continue,
        };
        let of_target = matches!(stage, "rollout" | "evaluation");
        if let Some(usage) = usage.filter(|_| of_target || optimizer) {
            history.stages.entry(stage.to_owned()).or_default().add(&usage);
        }
    }
}

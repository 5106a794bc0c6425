//! What a run will take: calls, tokens and money by stage, from the least to the most. Pure arithmetic over the bound on
//! calls, what earlier runs measured, and the size of the prompts; says which of them a number rests on.

use std::collections::BTreeMap;

use super::estimate::{Estimate, StageBound};
use crate::config::{Backend, Config};
use crate::domain::{Role, Usage};

/// From the least over the likely to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    pub low: f64,
    pub expected: f64,
    pub high: f64,
}

impl std::ops::AddAssign for Spread {
    fn add_assign(&mut self, other: Self) {
        self.low += other.low;
        self.expected += other.expected;
        self.high += other.high;
    }
}

/// Tokens of calls of one stage, as earlier runs measured them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    pub calls: u64,
    prompt: f64,
    completion: f64,
    cached: f64,
    /// Sum of squares of all tokens of a call.
    squares: f64,
}

impl Measured {
    /// One result, which may be of several calls.
    pub fn add(&mut self, usage: &Usage) {
        if usage.calls == 0 || usage.tokens() == 0 {
            return;
        }
        let calls = usage.calls as f64;
        self.calls += usage.calls;
        self.prompt += usage.prompt_tokens as f64;
        self.completion += usage.completion_tokens as f64;
        self.cached += usage.cached_tokens as f64;
        let each = usage.tokens() as f64 / calls;
        self.squares += each * each * calls;
    }

    /// Tokens of a call: prompt, completion, and cached ones of the prompt.
    fn means(&self) -> (f64, f64, f64) {
        let calls = self.calls.max(1) as f64;
        (self.prompt / calls, self.completion / calls, self.cached / calls)
    }

    /// Standard deviation of the tokens of a call.
    fn deviation(&self) -> f64 {
        let (prompt, completion, _) = self.means();
        let mean = prompt + completion;
        (self.squares / self.calls.max(1) as f64 - mean * mean).max(0.0).sqrt()
    }
}

/// What earlier runs of the same models on the same environment measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub runs: usize,
    pub stages: BTreeMap<String, Measured>,
}

impl History {
    /// From the usage by stage of each run, which tells no spread.
    pub fn of_totals<'a>(runs: impl IntoIterator<Item = &'a BTreeMap<String, Usage>>) -> Self {
        let mut history = Self::default();
        for usage in runs.into_iter().filter(|usage| !usage.is_empty()) {
            history.runs += 1;
            for (stage, usage) in usage {
                history.stages.entry(stage.clone()).or_default().add(usage);
            }
        }
        history
    }
}

/// Sizes of the target's prompts with the seed skill.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PromptSizes {
    /// Bytes.
    pub mean: f64,
    pub longest: f64,
    pub skill: f64,
}

/// What the tokens of a stage rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// So many measured calls.
    Measured(u64),
    /// The size of prompts, and replies of an assumed length.
    Assumed,
    /// The built-in edit search answers, which has no tokens.
    NoModel,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StageForecast {
    pub stage: &'static str,
    pub role: Role,
    pub calls: Spread,
    pub tokens: Spread,
    /// US dollars; `None`: no price is known.
    pub dollars: Option<Spread>,
    pub basis: Basis,
}

/// A quarter of the room: nobody knows how long replies will be.
const ASSUMED_SHARE: f64 = 0.25;
const LEAST_SHARE: f64 = 1.0 / 32.0;
/// Bytes of an optimizer's instructions besides the material.
const INSTRUCTIONS: f64 = 6_000.0;
/// No tokenizer needs more than a token a byte; text takes about a quarter of that.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Repair rounds among the calls that may need one, where nothing was measured.
const REPAIRED: f64 = 0.05;

/// `price`: US dollars of prompt, completion and cached tokens of a role's model.
pub fn forecast(
    config: &Config,
    bound: &Estimate,
    history: &History,
    sizes: PromptSizes,
    price: impl Fn(Role, &Usage) -> Option<f64>,
) -> Vec<StageForecast> {
    bound.stages.iter().map(|stage| of_stage(config, bound, stage, history, sizes, &price)).collect()
}

fn of_stage(
    config: &Config,
    bound: &Estimate,
    stage: &StageBound,
    history: &History,
    sizes: PromptSizes,
    price: &impl Fn(Role, &Usage) -> Option<f64>,
) -> StageForecast {
    let calls = calls(config, bound, stage);
    let most = most_tokens(config, stage, sizes);
    let searched = stage.role == Role::Optimizer && config.model.optimizer.backend == Backend::EditSearch;
    let (each, basis) = match history.stages.get(stage.stage).filter(|measured| measured.calls > 0) {
        _ if searched => ([Tokens { prompt: 0.0, completion: 0.0, cached: 0.0 }; 3], Basis::NoModel),
        Some(measured) => (measured_tokens(measured, calls.low, most), Basis::Measured(measured.calls)),
        None => (assumed_tokens(config, stage, sizes, most), Basis::Assumed),
    };
    let total = |calls: f64, each: &Tokens| calls * (each.prompt + each.completion);
    let dollars = |calls: f64, each: &Tokens| {
        let one = Usage {
            calls: 1,
            prompt_tokens: each.prompt.round() as u64,
            completion_tokens: each.completion.round() as u64,
            cached_tokens: each.cached.round() as u64,
            ..Usage::default()
        };
        Some(calls * price(stage.role, &one)?)
    };
    let [low, expected, high] = &each;
    let money = || {
        Some(Spread {
            low: dollars(calls.low, low)?,
            expected: dollars(calls.expected, expected)?,
            high: dollars(calls.high, high)?,
        })
    };
    StageForecast {
        stage: stage.stage,
        role: stage.role,
        tokens: Spread {
            low: total(calls.low, low),
            expected: total(calls.expected, expected),
            high: total(calls.high, high),
        },
        dollars: money(),
        calls,
        basis,
    }
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    prompt: f64,
    completion: f64,
    cached: f64,
}

/// The least: every candidate is rejected as early as can be, nothing is repaired, merged or ranked.
fn calls(config: &Config, bound: &Estimate, stage: &StageBound) -> Spread {
    let high = stage.calls as f64;
    let sizes = &bound.sizes;
    let low = match stage.stage {
        // The baseline in full, one item of every candidate, and one test if no skill is ever accepted.
        "evaluation" => {
            let measured = high - 3.0 * sizes.test as f64;
            let full = sizes.val as f64;
            let candidates = (measured / full.max(1.0) - 2.0).max(0.0);
            full + candidates + sizes.test as f64
        }
        // Failures and successes may fall into one group.
        "analyst" => bound.steps() as f64,
        "judge" => (bound.steps() * bound.batch as u64) as f64,
        // Without probes and without comparisons of epochs.
        "rollout" => (bound.steps() * (config.train.accumulation * bound.batch) as u64) as f64,
        // There is nothing to compare the first epoch with.
        "slow_update" | "meta_skill" | "meta_reflect" => f64::from(bound.epochs.saturating_sub(1)),
        "merge" | "ranking" | "rewrite" | "repair" | "appendix_consolidate" => 0.0,
        _ => high,
    };
    let low = low.min(high);
    let expected = if stage.stage == "repair" { REPAIRED * high } else { f64::midpoint(low, high) };
    Spread { low, expected, high }
}

fn max_tokens(config: &Config, stage: &StageBound) -> f64 {
    match (stage.role, stage.stage) {
        (_, "rewrite") => f64::from(config.model.rewrite_max_completion_tokens),
        (Role::Target, _) => f64::from(config.model.target.max_tokens),
        (Role::Optimizer, _) => f64::from(config.model.optimizer.max_tokens),
        (Role::Judge, _) => f64::from(config.model.judge.max_tokens),
    }
}

/// Bytes of a prompt of the stage: likely, and at most.
fn prompt_bytes(config: &Config, stage: &StageBound, sizes: PromptSizes) -> (f64, f64) {
    if stage.role == Role::Target {
        // A skill may grow a good deal.
        return (sizes.mean, sizes.longest + sizes.skill + 4.0 * INSTRUCTIONS);
    }
    let reply = f64::from(config.model.target.max_tokens) * BYTES_PER_TOKEN;
    let uncut = sizes.longest + reply;
    let cut = match config.gradient.max_trajectory_chars {
        0 => uncut,
        chars => uncut.min(4.0 * chars as f64),
    };
    let shown = match stage.stage {
        "analyst" | "deep_probe" => config.gradient.minibatch_size as f64,
        "slow_update" | "meta_skill" => config.optimizer.slow_update_samples as f64,
        _ => 1.0,
    };
    let likely = (sizes.mean + reply * ASSUMED_SHARE).min(cut);
    let own = INSTRUCTIONS + sizes.skill;
    (own + shown * likely, 4.0 * own + 2.0 * shown * cut)
}

fn most_tokens(config: &Config, stage: &StageBound, sizes: PromptSizes) -> Tokens {
    let (_, most) = prompt_bytes(config, stage, sizes);
    Tokens { prompt: most, completion: max_tokens(config, stage), cached: 0.0 }
}

fn assumed_tokens(config: &Config, stage: &StageBound, sizes: PromptSizes, most: Tokens) -> [Tokens; 3] {
    let (likely, _) = prompt_bytes(config, stage, sizes);
    let room = max_tokens(config, stage);
    let of = |prompt: f64, share: f64| Tokens { prompt, completion: room * share, cached: 0.0 };
    let prompt = likely / BYTES_PER_TOKEN;
    [of(prompt, LEAST_SHARE), of(prompt, ASSUMED_SHARE), most]
}

/// The mean; at least two standard errors below it over the calls that there will be.
fn measured_tokens(measured: &Measured, calls: f64, most: Tokens) -> [Tokens; 3] {
    let (prompt, completion, cached) = measured.means();
    let mean = prompt + completion;
    let error = measured.deviation() / calls.max(1.0).min(measured.calls as f64).sqrt();
    let share = ((mean - 2.0 * error) / mean).clamp(0.0, 1.0);
    let expected = Tokens { prompt, completion, cached };
    let low = Tokens { prompt: prompt * share, completion: completion * share, cached: cached * share };
    let high =
        Tokens { prompt: most.prompt.max(prompt), completion: most.completion.max(completion), cached: 0.0 };
    [low, expected, high]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optim::{Sizes, estimate};

    const SIZES: Sizes = Sizes { train: 10, val: 6, test: 8 };
    const PROMPTS: PromptSizes = PromptSizes { mean: 400.0, longest: 800.0, skill: 200.0 };

    fn config() -> Config {
        let mut config = Config::default();
        (config.train.num_epochs, config.train.batch_size) = (2, 4);
        config.model.target.max_tokens = 320;
        config.optimizer.use_slow_update = false;
        config.optimizer.use_meta_skill = false;
        config
    }

    fn told(history: &History) -> Vec<StageForecast> {
        let config = config();
        // A dollar for every thousand tokens of the target; nobody knows the optimizer's price.
        let price = |role, usage: &Usage| (role == Role::Target).then(|| usage.tokens() as f64 / 1000.0);
        forecast(&config, &estimate(&config, SIZES), history, PROMPTS, price)
    }

    fn stage<'a>(told: &'a [StageForecast], name: &str) -> &'a StageForecast {
        told.iter().find(|stage| stage.stage == name).unwrap()
    }

    #[test]
    fn without_history_it_rests_on_prompt_sizes_and_the_bound() {
        let told = told(&History::default());
        let rollout = stage(&told, "rollout");
        assert_eq!(rollout.basis, Basis::Assumed);
        assert_eq!(rollout.calls, Spread { low: 24.0, expected: 24.0, high: 24.0 });
        assert_eq!(rollout.tokens.low, 24.0 * (100.0 + 10.0));
        assert_eq!(rollout.tokens.expected, 24.0 * (100.0 + 80.0));
        assert!((rollout.dollars.unwrap().expected - 24.0 * 0.18).abs() < 1e-9);
        let evaluation = stage(&told, "evaluation");
        // The baseline, one item for each of 6 candidates, one test.
        assert_eq!((evaluation.calls.low, evaluation.calls.high), (6.0 + 6.0 + 8.0, 6.0 * 8.0 + 24.0));
        assert_eq!(stage(&told, "repair").calls.low, 0.0);
        assert!(stage(&told, "analyst").dollars.is_none());
        for stage in &told {
            for spread in [stage.calls, stage.tokens].into_iter().chain(stage.dollars) {
                assert!(spread.low <= spread.expected && spread.expected <= spread.high, "{stage:?}");
            }
        }
    }

    #[test]
    fn the_edit_search_has_calls_and_no_tokens() {
        let mut config = config();
        config.model.optimizer.backend = Backend::EditSearch;
        let told =
            forecast(&config, &estimate(&config, SIZES), &History::default(), PROMPTS, |_, _| Some(0.0));
        let analyst = stage(&told, "analyst");
        assert!(analyst.calls.expected > 0.0);
        assert_eq!((analyst.tokens, analyst.basis), (Spread::default(), Basis::NoModel));
    }

    #[test]
    fn what_was_measured_comes_first_with_its_spread() {
        let mut measured = Measured::default();
        for tokens in [60, 100, 140] {
            measured.add(&Usage {
                calls: 1,
                prompt_tokens: tokens,
                completion_tokens: 20,
                ..Usage::default()
            });
        }
        measured.add(&Usage::default());
        let history = History { runs: 1, stages: [("rollout".to_owned(), measured)].into() };
        let told = told(&history);
        let rollout = stage(&told, "rollout");
        assert_eq!(rollout.basis, Basis::Measured(3));
        assert_eq!(rollout.tokens.expected, 24.0 * 120.0);
        // Two standard errors of three calls: 2 x 32.66 / sqrt(3) = 37.7
        let low = 24.0 * (120.0 - 37.71);
        assert!((rollout.tokens.low - low).abs() < 1.0, "{}", rollout.tokens.low);
        assert!(rollout.tokens.high > rollout.tokens.expected);
        assert_eq!(stage(&told, "evaluation").basis, Basis::Assumed);
    }
}

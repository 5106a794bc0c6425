//! What people changed of a run under way and what came of it: verdicts overruled, settings retuned. Folded here; must
//! not judge whether a change is allowed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{RunState, StepState};
use crate::config::{BudgetConfig, Effective, EngineConfig, find_key};
use crate::domain::{Author, Retuned, Ruling, StepRef};

/// A person's word over the gate's verdict on a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overruling {
    pub ruling: Ruling,
    pub reason: String,
    pub by: Author,
    /// Unix milliseconds.
    pub requested_at: u64,
    /// Revision of the request.
    #[serde(default)]
    pub rev: u64,
    pub outcome: OverrulingOutcome,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverrulingOutcome {
    /// It takes effect at the next boundary between steps.
    Pending,
    Applied {
        /// Unix milliseconds.
        at: u64,
        /// The skills from then on.
        current_hash: String,
        best_hash: String,
        /// What made them, as the records name it.
        current_origin: String,
        best_origin: String,
        /// `None`: it had yet to be measured.
        current_score: Option<f64>,
        best_score: f64,
        /// The last finished step, and how many stages had finished: where in the run's history this lies.
        after_step: u32,
        after_stages: usize,
    },
    /// The skill it was about had changed before it could take effect.
    Lapsed { why: String },
}

impl Overruling {
    pub(super) fn asked(ruling: Ruling, reason: &str, by: &Author, now: u64, rev: u64) -> Self {
        let (reason, by) = (reason.to_owned(), by.clone());
        Self { ruling, reason, by, requested_at: now, rev, outcome: OverrulingOutcome::Pending }
    }

    pub fn is_pending(&self) -> bool {
        self.outcome == OverrulingOutcome::Pending
    }

    /// The current skill that it made, once it took effect.
    pub fn current_hash(&self) -> Option<&str> {
        match &self.outcome {
            OverrulingOutcome::Applied { current_hash, .. } => Some(current_hash),
            OverrulingOutcome::Pending | OverrulingOutcome::Lapsed { .. } => None,
        }
    }
}

/// Settings that a person changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retune {
    pub changes: Vec<Retuned>,
    pub reason: String,
    pub by: Author,
    /// Unix milliseconds.
    pub requested_at: u64,
    /// Keys that have yet to take effect, at the next boundary between steps.
    pub waiting: Vec<String>,
}

impl RunState {
    /// The configuration that the run works with now.
    pub fn effective_config(&self) -> Value {
        let mut config = self.config.clone();
        for change in &self.settings {
            set(&mut config, &change.key, change.new.clone());
        }
        config
    }

    /// A key's present value; `None` in journals that do not tell.
    pub fn setting(&self, key: &str) -> Option<&Value> {
        let retuned = self.settings.iter().rfind(|change| change.key == key);
        let begun = || self.config.pointer(&format!("/{}", key.replace('.', "/")));
        retuned.map(|change| &change.new).or_else(begun)
    }

    /// The caps of the budget now; 0: none.
    pub fn caps(&self) -> BudgetConfig {
        let count = |key| self.setting(key).and_then(Value::as_u64).unwrap_or(0);
        BudgetConfig {
            max_calls: count("budget.max_calls"),
            max_tokens: count("budget.max_tokens"),
            max_usd: self.setting("budget.max_usd").and_then(Value::as_f64).unwrap_or(0.0),
            max_seconds: count("budget.max_seconds"),
            prices: String::new(),
        }
    }

    /// Milliseconds without progress until a working run counts as stalled; `None`: never.
    pub fn stall_limit_ms(&self) -> Option<u64> {
        let told = self.setting("engine.stall_alert_s").and_then(Value::as_u64);
        let seconds = told.unwrap_or(EngineConfig::default().stall_alert_s);
        (seconds > 0).then(|| seconds.saturating_mul(1000))
    }

    /// Settings that wait for the next boundary, the last word on each key, in the order of first mention.
    pub fn waiting_settings(&self) -> Vec<Retuned> {
        let mut waiting: Vec<Retuned> = Vec::new();
        for retune in &self.retunes {
            for change in retune.changes.iter().filter(|change| retune.waiting.contains(&change.key)) {
                match waiting.iter_mut().find(|earlier| earlier.key == change.key) {
                    Some(earlier) => earlier.new = change.new.clone(),
                    None => waiting.push(change.clone()),
                }
            }
        }
        waiting
    }

    /// The newest step whose verdict is to be overruled at the next boundary.
    pub fn pending_override(&self) -> Option<(StepRef, &Overruling)> {
        let pending = |step: &&StepState| step.overruling.as_ref().is_some_and(Overruling::is_pending);
        let step = self.steps.iter().rfind(pending)?;
        Some((step.at, step.overruling.as_ref()?))
    }

    /// Overrides that took effect after the last thing that finished was the `stages`-th stage, or step `step` where that was
    /// later, with the steps whose verdicts they overrule.
    pub fn overrides_at(
        &self,
        step: u32,
        stages: usize,
    ) -> impl DoubleEndedIterator<Item = (&StepState, &Overruling)> {
        let here = move |word: &Overruling| {
            matches!(
                word.outcome,
                OverrulingOutcome::Applied { after_step, after_stages, .. } if (after_step, after_stages) == (step, stages)
            )
        };
        self.steps
            .iter()
            .filter_map(move |step| Some((step, step.overruling.as_ref().filter(|word| here(word))?)))
    }

    pub(super) fn retune_requested(&mut self, changes: &[Retuned], reason: &str, by: &Author, now: u64) {
        let waiting = changes.iter().map(|change| &change.key).filter(|key| at_a_boundary(key));
        let waiting: Vec<String> = waiting.cloned().collect();
        let at_once = changes.iter().filter(|change| !waiting.contains(&change.key));
        self.settings.extend(at_once.cloned());
        self.retunes.push(Retune {
            changes: changes.to_vec(),
            reason: reason.to_owned(),
            by: by.clone(),
            requested_at: now,
            waiting,
        });
    }

    pub(super) fn retune_applied(&mut self, changes: &[Retuned]) {
        for retune in &mut self.retunes {
            retune.waiting.retain(|key| changes.iter().all(|change| change.key != *key));
        }
        self.settings.extend_from_slice(changes);
    }
}

/// Whether a setting changes between two steps, not at once.
pub fn at_a_boundary(key: &str) -> bool {
    find_key(key).is_some_and(|key| key.effective == Effective::NextStep)
}

fn set(config: &mut Value, key: &str, value: Value) {
    let mut place = config;
    for part in key.split('.') {
        let Value::Object(section) = place else { return };
        place = section.entry(part).or_insert(Value::Null);
    }
    *place = value;
}

//! Verdict maths of the gate: scores, the strict rule, exact curtailment, evidence. Pure functions over scores and item
//! ids; no IO, and no item content: what is held out stays out.

mod curtailment;
mod decision;
mod density;
mod repeats;
mod score;
mod statistics;

pub use curtailment::{Curtailment, Side, evaluation_order};
pub use decision::{GateInput, GateItem, Measurement, decide_strict, gate_decision};
pub use density::{LEADING_WORDS, density, with_density};
pub use repeats::{
    Estimate, RepeatSummary, graded_interval, item_means, passed, rate_interval, repeat_summary,
};
pub use score::{best_case, gate_score, item_score, summarize};
pub use statistics::{
    PairedGain, betting_wealth, exact_p, mid_p, mixture_e_value, paired_gain, paired_interval,
    smallest_visible_gain, wilson_interval,
};

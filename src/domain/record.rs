//! What one finished step was, as `history.json` keeps it (times come from the journal, not from here).

use serde::{Deserialize, Serialize};

use super::{EditReport, GateMetric, LrControlMode, LrDecision, TokenUsage, Verdict};

/// Position of a step: `epoch` and `step` count from 1, `step_in_epoch` from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StepRef {
    pub epoch: u32,
    pub step: u32,
    pub step_in_epoch: u32,
}

impl StepRef {
    /// Prefix of this step's effect paths, `e02/s005`.
    pub fn path(self) -> String {
        format!("e{:02}/s{:03}", self.epoch, self.step)
    }
}

/// One row of the history; field names are SkillOpt's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    #[serde(flatten)]
    pub at: StepRef,
    pub tokens: TokenUsage,
    pub rollout_hard: f64,
    pub rollout_soft: f64,
    pub rollout_n: usize,
    #[serde(default)]
    pub accumulation_batches: Vec<BatchRecord>,
    pub n_patches: usize,
    pub n_failure_patches: usize,
    pub n_success_patches: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_deep_failure_patches: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_deep_success_patches: Option<usize>,
    pub n_edits_merged: usize,
    pub n_edits_ranked: usize,
    /// `None`: no budget applies (whole rewrites, or nothing was proposed).
    pub edit_budget: Option<usize>,
    #[serde(default)]
    pub lr_control_mode: LrControlMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lr_decision: Option<LrDecision>,
    pub support_counts: Vec<u32>,
    pub candidate_hash: Option<String>,
    pub candidate_skill_len: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite_change_summary: Option<Vec<String>>,
    pub edit_apply_summary: Option<ApplySummary>,
    pub selection_hard: Option<f64>,
    pub selection_soft: Option<f64>,
    pub gate_metric: GateMetric,
    pub candidate_gate_score: Option<f64>,
    /// The three scores are the best that the candidate could still have come to: its evaluation was stopped early.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub candidate_at_most: bool,
    pub action: Verdict,
    pub current_score: f64,
    pub best_score: f64,
    pub best_step: u32,
    pub current_origin: String,
    pub best_origin: String,
    pub skill_len: usize,
    /// The current skill was changed outside the gate after its score was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub current_score_stale: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_execution_lapse_notes: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_appendix_notes_added: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_appendix_notes_total: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_appendix_notes_consolidated: Option<usize>,
}

/// One rollout batch of a step; names are SkillOpt's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchRecord {
    pub batch_idx: usize,
    pub batch_seed: u64,
    pub n_envs: usize,
    pub hard: f64,
    pub soft: f64,
    pub n_failure_patches: usize,
    pub n_success_patches: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplySummary {
    pub total: usize,
    pub applied: usize,
    pub skipped: usize,
    pub errors: usize,
}

impl ApplySummary {
    pub fn of(report: &EditReport) -> Self {
        let EditReport { total, applied, skipped, errors, .. } = *report;
        Self { total, applied, skipped, errors }
    }
}

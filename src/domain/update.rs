//! How a step's update is made: the update modes, the learned edit budget, whole rewrites, the appendix.

use serde::{Deserialize, Serialize};

/// What the optimizer proposes and how that becomes a new skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateMode {
    /// Edits of the document's text.
    #[default]
    Patch,
    /// Suggestions in words, which one rewrite call carries out.
    RewriteFromSuggestions,
    /// Whole replacement documents.
    FullRewriteMinibatch,
}

impl UpdateMode {
    /// Key of the proposals in replies and files; SkillOpt's.
    pub fn items_key(self) -> &'static str {
        match self {
            Self::Patch => "edits",
            Self::RewriteFromSuggestions => "revise_suggestions",
            Self::FullRewriteMinibatch => "skill_candidates",
        }
    }

    /// Name of one proposal for people and prompts.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Patch => "edit",
            Self::RewriteFromSuggestions => "suggestion",
            Self::FullRewriteMinibatch => "skill candidate",
        }
    }
}

/// Who sets the edit budget of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LrControlMode {
    /// The schedule.
    #[default]
    Fixed,
    /// The optimizer, from the evidence of the step.
    Autonomous,
    /// Nobody: as `fixed`, and no selection at all with whole rewrites.
    None,
}

impl LrControlMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Autonomous => "autonomous",
            Self::None => "none",
        }
    }
}

/// The optimizer's word on how many proposals to apply; names are SkillOpt's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LrDecision {
    pub learning_rate: usize,
    pub raw_learning_rate: usize,
    pub available_update_items: usize,
    pub clamped: bool,
    /// The reply gave no usable number: nothing is applied.
    pub fallback: bool,
    pub reasoning: String,
    pub confidence: String,
    pub risk_notes: Vec<String>,
    pub raw_response: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A whole new document from a rewrite call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewrite {
    pub reasoning: String,
    pub change_summary: Vec<String>,
    pub new_skill: String,
}

/// Which analysts may leave notes for the appendix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppendixSource {
    #[default]
    Both,
    FailureOnly,
}

/// What one step did to the notes on execution lapses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendixFlush {
    /// As the analysts wrote them.
    pub step_notes: Vec<String>,
    /// All notes with this step's, before consolidation.
    pub appendix_after: Vec<String>,
    /// How many of this step's notes were new.
    pub added: usize,
    /// Notes that a consolidation call left; `None`: there was none, or its reply was refused.
    pub consolidated: Option<Vec<String>>,
}

/// One diagnostic instruction for a second look at representative training items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeepProbe {
    pub reasoning: String,
    pub probe_instruction: String,
    /// Item to probe; for targets that run a coding agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_target_id: Option<String>,
    /// Step of its trace after which the instruction is put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_after_step: Option<i64>,
}

/// A training item that was probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeExample {
    pub id: String,
    pub task_type: String,
    pub reference_fields: Vec<String>,
    /// First 400 characters of the reference.
    pub reference_preview: String,
}

/// A probe with the items it was made from: the answer of the `deep_probe` stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAnswer {
    #[serde(flatten)]
    pub probe: DeepProbe,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ProbeExample>,
}

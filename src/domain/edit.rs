//! What an optimizer proposes for a skill document, and what applying it did.

use serde::{Deserialize, Serialize};

use super::UpdateMode;

/// What a proposal does. Unknown operations are kept so that they can be reported, never guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditOp {
    // Edits of the text (update mode `patch`).
    Append,
    InsertAfter,
    Replace,
    Delete,
    // Suggestions in words (`rewrite_from_suggestions`): `target` is the title, `content` the instruction.
    AddRule,
    RemoveRule,
    MergeRules,
    Reorganize,
    Compress,
    Clarify,
    /// A whole document (`full_rewrite_minibatch`): `target` is the title, `content` the new skill.
    Rewrite,
    #[serde(other)]
    Unknown,
}

impl EditOp {
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::InsertAfter => "insert_after",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::AddRule => "add_rule",
            Self::RemoveRule => "remove_rule",
            Self::MergeRules => "merge_rules",
            Self::Reorganize => "reorganize",
            Self::Compress => "compress",
            Self::Clarify => "clarify",
            Self::Rewrite => "rewrite",
            Self::Unknown => "unknown",
        }
    }
}

impl EditOp {
    /// The mode whose proposals do this; `None` for an operation that nobody knows.
    pub fn mode(self) -> Option<UpdateMode> {
        match self {
            Self::Append | Self::InsertAfter | Self::Replace | Self::Delete => Some(UpdateMode::Patch),
            Self::AddRule
            | Self::RemoveRule
            | Self::MergeRules
            | Self::Reorganize
            | Self::Compress
            | Self::Clarify => Some(UpdateMode::RewriteFromSuggestions),
            Self::Rewrite => Some(UpdateMode::FullRewriteMinibatch),
            Self::Unknown => None,
        }
    }
}

impl UpdateMode {
    /// The mode that `edits` belong to.
    pub fn of(edits: &[Edit]) -> Self {
        edits.iter().find_map(|edit| edit.op.mode()).unwrap_or_default()
    }
}

/// How much a suggestion matters to its proposer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    High,
    Medium,
    Low,
}

impl Priority {
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// Which kind of trajectories motivated an edit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceType {
    #[default]
    Failure,
    Success,
}

/// One proposed change. `target` and `content` are exact text, "" when absent; what they mean depends on `op`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub op: EditOp,
    #[serde(default)]
    pub target: String,
    #[serde(default)]
    pub content: String,
    /// How many trajectories speak for this edit.
    #[serde(default = "one")]
    pub support_count: u32,
    #[serde(default)]
    pub source_type: SourceType,
    /// Level of the merge that produced it; `None` for an unmerged edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_level: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Why, in the proposer's words (untrusted text): a rationale, a suggestion's motivation, a rewrite's summary of
    /// changes (one per line).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rationale: String,
    /// Ids of the training items that motivated the edit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub motivated_by: Vec<String>,
}

impl Edit {
    /// The edit with a reviewer's text in place of its own. A deletion that keeps some of its text puts that in place of
    /// its target.
    pub fn amended(&self, content: &str) -> Self {
        let op = match self.op {
            EditOp::Delete if !content.trim().is_empty() => EditOp::Replace,
            unchanged => unchanged,
        };
        Self { op, content: content.to_owned(), ..self.clone() }
    }
}

fn one() -> u32 {
    1
}

/// A reasoned list of edits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    #[serde(default)]
    pub reasoning: String,
    #[serde(default)]
    pub edits: Vec<Edit>,
}

/// Result of applying one edit; names are SkillOpt's report statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditStatus {
    AppliedAppend,
    AppliedAppendBeforeProtectedRegion,
    AppliedInsertAfter,
    AppliedInsertAfterFallbackAppend,
    AppliedInsertAfterFallbackBeforeProtectedRegion,
    AppliedReplace,
    AppliedDelete,
    SkippedProtectedRegion,
    SkippedInsertAfterTargetNotFound,
    SkippedReplaceMissingTarget,
    SkippedReplaceTargetNotFound,
    SkippedDeleteMissingTarget,
    SkippedDeleteTargetNotFound,
    SkippedEmptyContent,
    SkippedUnknownOp,
    Error,
}

impl EditStatus {
    pub fn applied(self) -> bool {
        matches!(
            self,
            Self::AppliedAppend
                | Self::AppliedAppendBeforeProtectedRegion
                | Self::AppliedInsertAfter
                | Self::AppliedInsertAfterFallbackAppend
                | Self::AppliedInsertAfterFallbackBeforeProtectedRegion
                | Self::AppliedReplace
                | Self::AppliedDelete
        )
    }
}

/// One row of an apply report. `index` counts from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditOutcome {
    pub index: usize,
    pub op: String,
    /// First 200 characters of the target.
    pub target: String,
    /// First 200 characters of the content.
    pub content_preview: String,
    pub status: EditStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Apply report with its counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditReport {
    pub total: usize,
    pub applied: usize,
    pub skipped: usize,
    pub errors: usize,
    pub rows: Vec<EditOutcome>,
}

impl EditReport {
    pub fn from_rows(rows: Vec<EditOutcome>) -> Self {
        let applied = rows.iter().filter(|row| row.status.applied()).count();
        let errors = rows.iter().filter(|row| row.status == EditStatus::Error).count();
        Self { total: rows.len(), applied, errors, skipped: rows.len() - applied - errors, rows }
    }
}

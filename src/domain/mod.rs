//! Plain data of the trade: skills, edits, items, rollouts, scores, verdicts, records.
//! No IO, no async, no formatting for a screen.

mod analysis;
mod bucket;
mod chat;
mod content;
mod edit;
mod effect;
mod epoch;
mod exact_sum;
mod excerpt;
mod failure_pattern;
mod gate;
mod item;
mod machine;
mod origin;
mod phase;
mod proposal;
mod record;
mod review;
mod rollout;
mod shared_text;
mod skill;
mod steer;
mod turn;
mod update;
mod usage;

pub use analysis::{Brief, FailedAttempt, FailureNote, ReviewerNote, StepMemory, TokenUsage, Trajectory};
pub use bucket::{Bucket, TypeBuckets};
pub use chat::{
    Asks, ChatReply, ChatRequest, Delivery, FinishReason, Message, OutputSchema, Prompt, Role, Rung,
    Sampling, Speaker, TokenLogprob, Tool, ToolChoice, Workspace,
};
pub use content::{Content, Image, Part, Thinking, ToolCall, ToolResult};
pub use edit::{Edit, EditOp, EditOutcome, EditReport, EditStatus, Patch, Priority, SourceType};
pub use effect::{EffectKey, fingerprint, short_hash};
pub use epoch::{
    ComparisonPair, EpochStage, MetaReflect, MetaSkill, PairCategory, PairPolicy, PairSide, SlowUpdate,
    StageAction, StageKind,
};
pub use exact_sum::ExactSum;
pub use excerpt::{one_line, shortened};
pub use failure_pattern::{FailedItem, MinibatchNotes, failure_patterns};
pub use gate::{GateDecision, GateMetric, GateScore, Verdict};
pub use item::{Dataset, Evaluator, HeldOut, Item, Split, UnknownSplit};
pub use machine::{GpuSample, MachineSample};
pub use origin::{Continued, DoneStage, DoneStep, HeldSkill, Imported, Origin};
pub use phase::Phase;
pub use record::{ApplySummary, BatchRecord, StepRecord, StepRef};
pub use review::{Author, Decision, ReviewClose, ReviewComment, ReviewMode, TimeoutPolicy};
pub use rollout::{Judging, Rollout, Score};
pub use shared_text::SharedText;
pub use skill::{CarriedFile, Skill, SkillFolder, skill_hash};
pub use steer::{Retuned, Ruling};
pub use turn::Turn;
pub use update::{
    AppendixFlush, AppendixSource, DeepProbe, LrControlMode, LrDecision, ProbeAnswer, ProbeExample, Rewrite,
    UpdateMode,
};
pub use usage::Usage;

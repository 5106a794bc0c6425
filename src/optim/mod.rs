//! Pure steps of the text optimiser: minibatches, prompts, replies, merge, selection, schedules, updates, memory, and
//! the stages between epochs. No IO, no async, no model calls: the engine makes the calls and feeds the replies back.

mod analyst;
mod appendix;
mod apply;
mod briefing;
mod deep;
mod edit_lines;
mod estimate;
mod forecast;
mod lr;
mod material;
mod memory;
mod merge;
mod meta_reflect;
mod meta_skill;
mod minibatch;
mod pairs;
mod prompts;
mod proposal;
mod region;
mod reply;
mod rewrite;
mod schedule;
mod select;
mod slow_update;
mod summary;
mod trajectory;

pub use crate::domain::{FailedItem, MinibatchNotes, failure_patterns};
pub use crate::text::{extract_json, extract_json_array};
pub use analyst::{AnalystReply, analyst_reply};
pub use appendix::{
    NoteUnion, appendix_notes, canonical_note, consolidated_notes, has_appendix, shorter, union_notes,
    with_appendix, with_empty_appendix, without_appendix,
};
pub use apply::{Applied, MissingAnchor, apply_edits};
pub use deep::{probe_examples, probe_reply, representatives, with_reference};
pub use edit_lines::{Choice, EditLines};
pub use estimate::{Estimate, Experience, Sizes, StageBound, estimate};
pub use forecast::{Basis, History, Measured, PromptSizes, Spread, StageForecast, forecast};
pub use lr::{lr_decision, lr_fallback};
pub use memory::{failed_attempt, memory_text, reviewer_note, reviewer_refusal};
pub use merge::{FinalMerge, MergePlan, MergeTask, final_fallback, final_merge, merge_reply};
pub use meta_reflect::{HistoryStep, Selected, epoch_history, meta_reflect_mode, meta_reflect_reply};
pub use meta_skill::meta_skill_reply;
pub use minibatch::{Minibatch, minibatches};
pub use pairs::{PairInput, comparison_pairs, kept_pairs, pair_counts, safe_pair_id};
pub use prompts::{Prompts, UnknownPrompt};
pub use region::{outside as outside_regions, protected as protected_regions};
pub use reply::ReplyFault;
pub use rewrite::{full_rewrite, rewrite_reply, with_regions_of};
pub use schedule::edit_budget;
pub use select::{Selection, first_edits, ranked_edits, within_budget};
pub use slow_update::{
    has_slow_update, slow_update_reply, slow_update_text, with_empty_slow_update, with_slow_update,
    without_slow_update,
};
pub use summary::described;
pub use trajectory::{conversation_text, trajectory_text};

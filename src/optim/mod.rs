//! Pure steps of the text optimiser: minibatches, prompts, reply parsing, merge, selection, schedule, edit
//! application, step memory. No IO, no async, no model calls: the engine makes the calls and feeds the replies back.

mod apply;
mod extract;
mod memory;
mod merge;
mod minibatch;
mod prompts;
mod region;
mod reply;
mod schedule;
mod select;
mod stub;
pub use stub::*;

pub use apply::{Applied, MissingAnchor, apply_edits};
pub use extract::extract_json;
pub use memory::{
    FailedItem, MinibatchNotes, failed_attempt, failure_patterns, memory_text, reviewer_refusal,
};
pub use merge::{FinalMerge, MergePlan, MergeTask, final_fallback, final_merge};
pub use minibatch::{Minibatch, minibatches};
pub use prompts::optimizer_prompt;
pub use region::outside as outside_regions;
pub use reply::{AnalystReply, ReplyFault, analyst_reply, merge_reply};
pub use schedule::edit_budget;
pub use select::{Selection, first_edits, ranked_edits, within_budget};

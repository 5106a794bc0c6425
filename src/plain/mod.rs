//! One event, one line of plain words: the Logs pane and the append-only renderer (`--plain`, no TTY, screen
//! readers) speak with the same voice; and tables of such words, and where each line of a
//! skill came from. Owns the wording; writes nothing itself and keeps no
//! run state.

mod carried;
mod comparison;
mod curves;
mod describe;
mod lineage;
mod money;
mod render;
mod report;
pub mod review;
mod stages;
mod table;

pub use carried::{skill_folder_line, skill_folder_summary};
pub use comparison::{comparison, comparison_json};
pub use curves::{Look, csv, svg};
pub use describe::{
    bounded, bounded_gain, clock, count, describe, duration, edit_title, interval, measured_part, score,
    signed, tokens, verdict_word,
};
pub use lineage::{EditOrigin, Lineage, Origin, OriginStage, SkillLine, lineage};
pub use money::dollars;
pub use render::PlainRenderer;
pub use report::{origin_summary, report, report_json};
pub use stages::{
    STALE, action_words, appendix_words, budget_words, category_words, pair_counts, pair_words, proposals,
    sample_words, stage_line, stage_summary,
};
pub use table::{Align, Column, left, markdown, markdown_table, right, text_table};

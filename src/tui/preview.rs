//! The candidate that a set of edits makes, as the engine will apply them.

use crate::domain::{Edit, EditStatus, UpdateMode};
use crate::optim::{MissingAnchor, apply_edits, full_rewrite, with_regions_of};

/// `stages[0]` is the current skill, `stages[i + 1]` the text after edit `i`; never empty.
pub struct Preview {
    pub stages: Vec<String>,
    /// Why an edit changes nothing, by edit; empty when it applies.
    pub trouble: Vec<String>,
}

pub fn of(current: &str, edits: &[Edit]) -> Preview {
    let mut preview = Preview { stages: vec![current.to_owned()], trouble: Vec::new() };
    for edit in edits {
        let before = preview.stages.last().map_or("", String::as_str);
        let applied = apply_edits(before, std::slice::from_ref(edit), MissingAnchor::default());
        let status = applied.report.rows.first().map(|row| row.status);
        preview.trouble.push(status.map_or("", trouble).to_owned());
        preview.stages.push(applied.skill);
    }
    preview
}

/// The text that `kept` makes of `current`; `None`: only a rewrite call knows.
pub fn result(mode: UpdateMode, current: &str, kept: &[Edit]) -> Option<String> {
    match mode {
        UpdateMode::Patch => Some(apply_edits(current, kept, MissingAnchor::default()).skill),
        UpdateMode::RewriteFromSuggestions => None,
        UpdateMode::FullRewriteMinibatch => Some(match full_rewrite(kept) {
            Some(made) => with_regions_of(&made.new_skill, current).0,
            None => current.to_owned(),
        }),
    }
}

fn trouble(status: EditStatus) -> &'static str {
    match status {
        EditStatus::AppliedAppend
        | EditStatus::AppliedAppendBeforeProtectedRegion
        | EditStatus::AppliedInsertAfter
        | EditStatus::AppliedInsertAfterFallbackAppend
        | EditStatus::AppliedInsertAfterFallbackBeforeProtectedRegion
        | EditStatus::AppliedReplace
        | EditStatus::AppliedDelete => "",
        EditStatus::SkippedProtectedRegion => "does not apply: protected region",
        EditStatus::SkippedInsertAfterTargetNotFound
        | EditStatus::SkippedReplaceTargetNotFound
        | EditStatus::SkippedDeleteTargetNotFound => "does not apply: target not in the text",
        EditStatus::SkippedReplaceMissingTarget | EditStatus::SkippedDeleteMissingTarget => {
            "does not apply: no target given"
        }
        EditStatus::SkippedEmptyContent => "does not apply: no text given",
        EditStatus::SkippedUnknownOp => "does not apply: unknown operation",
        EditStatus::Error => "does not apply",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{EditOp, SourceType};

    #[test]
    fn stages_follow_the_edits_and_useless_ones_say_why() {
        let edit = |op, target: &str, content: &str| Edit {
            priority: None,
            op,
            target: target.into(),
            content: content.into(),
            support_count: 1,
            source_type: SourceType::Failure,
            merge_level: None,
            rationale: String::new(),
            motivated_by: Vec::new(),
        };
        let edits = [edit(EditOp::Replace, "city", "country"), edit(EditOp::Delete, "nowhere", "")];
        let preview = of("Answer the city.\n", &edits);
        assert_eq!(preview.stages[1], "Answer the country.\n");
        assert_eq!(preview.stages[2], preview.stages[1]);
        assert_eq!(preview.trouble, ["", "does not apply: target not in the text"]);
    }
}

//! Applies edits to a skill document, one after the other, and reports what each did. Owns the meaning of the edit
//! operations and the promise that protected regions survive; must not choose or order edits.

use super::region;
use crate::domain::{Edit, EditOp, EditOutcome, EditReport, EditStatus};

/// What `insert_after` does when its target does not occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingAnchor {
    /// Leaves the document and reports `skipped_insert_after_target_not_found`.
    #[default]
    Skip,
    /// Appends instead, as SkillOpt does.
    Append,
}

/// The resulting document and one report row per edit.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    pub skill: String,
    pub report: EditReport,
}

/// Runs `edits` in order, each on the result of the one before. Content is trimmed and loses region markers; targets
/// match exactly, first occurrence. An edit that starts in a protected region, or whose result would change one, is
/// skipped and leaves the document as it was.
pub fn apply_edits(skill: &str, edits: &[Edit], missing_anchor: MissingAnchor) -> Applied {
    let mut skill = skill.to_owned();
    let mut rows = Vec::with_capacity(edits.len());
    for (position, edit) in edits.iter().enumerate() {
        let content = region::strip_markers(edit.content.trim());
        let (status, changed) = match outcome(&skill, edit, &content, missing_anchor) {
            Ok((_, changed)) if region::contents(&changed) != region::contents(&skill) => {
                (EditStatus::SkippedProtectedRegion, None)
            }
            Ok((status, changed)) => (status, Some(changed)),
            Err(skipped) => (skipped, None),
        };
        if let Some(changed) = changed {
            skill = changed;
        }
        rows.push(EditOutcome {
            index: position + 1,
            op: edit.op.name().to_owned(),
            target: preview(&edit.target),
            content_preview: preview(&content),
            status,
            error: None,
        });
    }
    Applied { skill, report: EditReport::from_rows(rows) }
}

/// The changed document, or why there is none.
fn outcome(
    skill: &str,
    edit: &Edit,
    content: &str,
    missing_anchor: MissingAnchor,
) -> Result<(EditStatus, String), EditStatus> {
    let target = edit.target.as_str();
    let found = if target.is_empty() { None } else { skill.find(target) };
    if found.is_some_and(|at| region::protected(skill).iter().any(|region| region.contains(&at))) {
        return Err(EditStatus::SkippedProtectedRegion);
    }
    match edit.op {
        EditOp::Append => {
            append(skill, content, EditStatus::AppliedAppend, EditStatus::AppliedAppendBeforeProtectedRegion)
        }
        EditOp::InsertAfter => match found {
            Some(_) if content.is_empty() => Err(EditStatus::SkippedEmptyContent),
            Some(at) => {
                Ok((EditStatus::AppliedInsertAfter, insert_after_line(skill, at + target.len(), content)))
            }
            None if missing_anchor == MissingAnchor::Skip => {
                Err(EditStatus::SkippedInsertAfterTargetNotFound)
            }
            None => append(
                skill,
                content,
                EditStatus::AppliedInsertAfterFallbackAppend,
                EditStatus::AppliedInsertAfterFallbackBeforeProtectedRegion,
            ),
        },
        EditOp::Replace if target.is_empty() => Err(EditStatus::SkippedReplaceMissingTarget),
        EditOp::Replace => match found {
            Some(at) => Ok((
                EditStatus::AppliedReplace,
                splice(skill, at, target, &replacement(target, edit, content)),
            )),
            None => Err(EditStatus::SkippedReplaceTargetNotFound),
        },
        EditOp::Delete if target.is_empty() => Err(EditStatus::SkippedDeleteMissingTarget),
        EditOp::Delete => match found {
            Some(at) => Ok((EditStatus::AppliedDelete, splice(skill, at, target, ""))),
            None => Err(EditStatus::SkippedDeleteTargetNotFound),
        },
        // A suggestion or a whole rewrite is no edit of the text.
        EditOp::AddRule
        | EditOp::RemoveRule
        | EditOp::MergeRules
        | EditOp::Reorganize
        | EditOp::Compress
        | EditOp::Clarify
        | EditOp::Rewrite
        | EditOp::Unknown => Err(EditStatus::SkippedUnknownOp),
    }
}

/// At the end, or before the earliest start marker, with one blank line around.
fn append(
    skill: &str,
    content: &str,
    at_end: EditStatus,
    before_region: EditStatus,
) -> Result<(EditStatus, String), EditStatus> {
    if content.is_empty() {
        return Err(EditStatus::SkippedEmptyContent);
    }
    Ok(match region::first_start(skill) {
        None => (at_end, format!("{}\n\n{content}\n", skill.trim_end())),
        Some(start) => {
            let (body, rest) = skill.split_at(start);
            (before_region, format!("{}\n\n{content}\n\n{rest}", body.trim_end()))
        }
    })
}

/// After the end of the line that holds byte `end`, which is where the target ends.
fn insert_after_line(skill: &str, end: usize, content: &str) -> String {
    match skill[end..].find('\n') {
        Some(offset) => {
            let (before, after) = skill.split_at(end + offset + 1);
            format!("{before}\n{content}\n{after}")
        }
        None => format!("{skill}\n{content}\n"),
    }
}

fn splice(skill: &str, at: usize, target: &str, content: &str) -> String {
    format!("{}{content}{}", &skill[..at], &skill[at + target.len()..])
}

/// What takes the place of `target`. The line breaks around a target stay although content is trimmed, or a replaced
/// line would be glued to its neighbours; for a target of line breaks alone the content counts untrimmed.
fn replacement(target: &str, edit: &Edit, content: &str) -> String {
    let inner = target.trim_matches(['\n', '\r']);
    if inner.is_empty() {
        return region::strip_markers(&edit.content);
    }
    if content.is_empty() {
        return String::new();
    }
    let (before, after) = target.split_once(inner).unwrap_or_default();
    format!("{before}{content}{after}")
}

fn preview(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::SourceType;
    use proptest::prelude::*;

    fn edit(op: EditOp, target: &str, content: &str) -> Edit {
        Edit {
            priority: None,
            op,
            target: target.into(),
            content: content.into(),
            support_count: 1,
            source_type: SourceType::Failure,
            merge_level: None,
            rationale: String::new(),
            motivated_by: Vec::new(),
        }
    }

    fn one(skill: &str, edit: Edit) -> (String, EditStatus) {
        let applied = apply_edits(skill, &[edit], MissingAnchor::default());
        (applied.skill, applied.report.rows[0].status)
    }

    const REGION: &str = "- a\n\n<!-- SLOW_UPDATE_START -->\ng\n<!-- SLOW_UPDATE_END -->\n";

    #[test]
    fn a_missing_anchor_is_reported_by_default() {
        let (skill, status) = one("# T\n", edit(EditOp::InsertAfter, "zzz", "- c"));
        assert_eq!((skill.as_str(), status), ("# T\n", EditStatus::SkippedInsertAfterTargetNotFound));
    }

    #[test]
    fn empty_content_adds_nothing() {
        for (op, target) in [(EditOp::Append, ""), (EditOp::InsertAfter, "- a")] {
            for content in ["", " \n", "<!-- APPENDIX_END -->"] {
                let (skill, status) = one(REGION, edit(op, target, content));
                assert_eq!((skill.as_str(), status), (REGION, EditStatus::SkippedEmptyContent));
            }
        }
    }

    #[test]
    fn no_edit_changes_a_region_wherever_it_starts() {
        let cases = [
            edit(EditOp::Replace, "- a\n\n<!-- SLOW_UPDATE_START -->\ng", "- B"),
            edit(EditOp::Delete, "- a\n\n<!-- SLOW_UPDATE_START -->\ng\n<!-- SLOW_UPDATE_END -->\n", ""),
            edit(EditOp::InsertAfter, "a\n\n<!-- SLOW", "inside"),
            edit(EditOp::Delete, "<!-- SLOW_UPDATE_END -->", ""),
        ];
        for case in cases {
            let (skill, status) = one(REGION, case);
            assert_eq!((skill.as_str(), status), (REGION, EditStatus::SkippedProtectedRegion));
        }
    }

    #[test]
    fn a_deletion_cannot_assemble_a_marker() {
        let split = "<!-- SLOW_xUPDATE_START -->\nbody\n<!-- SLOW_UPDATE_END -->\n";
        let (skill, status) = one(split, edit(EditOp::Delete, "x", ""));
        assert_eq!((skill.as_str(), status), (split, EditStatus::SkippedProtectedRegion));
    }

    #[test]
    fn replacing_whole_lines_keeps_them_lines() {
        let (skill, _) = one("one\r\ntwo\r\n", edit(EditOp::Replace, "one\r\n", "uno\n"));
        assert_eq!(skill, "uno\r\ntwo\r\n");
        let (skill, _) = one("a\n\nb\n\nc\n", edit(EditOp::Replace, "\n\nb", "B"));
        assert_eq!(skill, "a\n\nB\n\nc\n");
        let (skill, _) = one("a\n\n\nb\n", edit(EditOp::Replace, "\n\n\n", "\n\n"));
        assert_eq!(skill, "a\n\nb\n");
    }

    #[test]
    fn every_edit_gets_one_row_and_the_counts_add_up() {
        let edits = [
            edit(EditOp::Append, "", "- c"),
            edit(EditOp::Unknown, "", "x"),
            edit(EditOp::Delete, "- c", ""),
            edit(EditOp::Delete, "- c", ""),
        ];
        let report = apply_edits("# T\n", &edits, MissingAnchor::Skip).report;
        assert_eq!((report.total, report.applied, report.skipped, report.errors), (4, 2, 2, 0));
        assert_eq!(report.rows.iter().map(|row| row.index).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(report.rows[3].status, EditStatus::SkippedDeleteTargetNotFound);
    }
    /// Pieces that put regions, halves of markers and their neighbours beside each other.
    fn text() -> impl Strategy<Value = String> {
        let pieces = [
            "<!-- SLOW_UPDATE_START -->",
            "<!-- SLOW_UPDATE_END -->",
            "<!-- APPENDIX_START -->",
            "<!-- APPENDIX_END -->",
            "<!-- SLOW_",
            "UPDATE_END -->",
            "a",
            "é",
            "\n",
            "\r\n",
            " ",
        ];
        prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn regions_survive_any_edits(
            skill in text(),
            edits in prop::collection::vec((0..5usize, text(), text()), 0..6),
            append in any::<bool>(),
        ) {
            const OPS: [EditOp; 5] =
                [EditOp::Append, EditOp::InsertAfter, EditOp::Replace, EditOp::Delete, EditOp::Unknown];
            let edits: Vec<Edit> =
                edits.iter().map(|(op, target, content)| edit(OPS[*op], target, content)).collect();
            let missing = if append { MissingAnchor::Append } else { MissingAnchor::Skip };
            let applied = apply_edits(&skill, &edits, missing);
            prop_assert_eq!(region::contents(&applied.skill), region::contents(&skill));
            prop_assert_eq!(applied.report.total, edits.len());
            let untouched = applied.report.rows.iter().all(|row| !row.status.applied());
            prop_assert!(!untouched || applied.skill == skill);
        }
    }
}

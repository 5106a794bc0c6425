//! Whole new documents: from a rewrite call, or as candidates of analysts. Owns how they are read and the promise that
//! protected regions survive them; must not judge what they say.

use super::region;
use super::reply::{ReplyFault, object, required_text, text, texts};
use crate::domain::{Edit, EditOp, Rewrite};

/// Reads the reply of a rewrite call. The new document ends in one line break; a blank one is a fault.
pub fn rewrite_reply(reply: &str) -> Result<Rewrite, ReplyFault> {
    const KEY: &str = "new_skill";
    let reply = object(reply)?;
    if required_text(&reply, KEY)?.is_empty() {
        return Err(ReplyFault::Blank { key: KEY });
    }
    let change_summary = texts(&reply, "change_summary");
    let new_skill = document(&text(&reply, KEY));
    Ok(Rewrite { reasoning: text(&reply, "reasoning"), change_summary, new_skill })
}

/// The first candidate that holds a document, which then ends in one line break.
pub fn full_rewrite(candidates: &[Edit]) -> Option<Rewrite> {
    let candidate =
        candidates.iter().find(|edit| edit.op == EditOp::Rewrite && !edit.content.trim().is_empty())?;
    Some(Rewrite {
        reasoning: candidate.target.clone(),
        change_summary: candidate.rationale.lines().map(str::to_owned).collect(),
        new_skill: document(&candidate.content),
    })
}

pub(super) fn document(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

/// `new_skill` with exactly the protected regions of `old_skill`, and whether they had to be restored: then they are at
/// its end, and every marker that the new document brought along is gone with what it enclosed.
pub fn with_regions_of(new_skill: &str, old_skill: &str) -> (String, bool) {
    let kept = region::contents(new_skill) == region::contents(old_skill)
        && region::marker_counts(new_skill) == region::marker_counts(old_skill);
    if kept {
        return (new_skill.to_owned(), false);
    }
    let body = region::Region::Appendix.removed_from(&region::Region::SlowUpdate.removed_from(new_skill));
    let mut restored = region::strip_markers(&body).trim_start_matches('\n').to_owned();
    for span in region::spans(old_skill) {
        restored.push_str("\n\n");
        restored.push_str(&old_skill[span]);
    }
    restored.push('\n');
    (restored, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GUIDE: &str = "<!-- SLOW_UPDATE_START -->\ng\n<!-- SLOW_UPDATE_END -->";
    const NOTES: &str = "<!-- APPENDIX_START -->\n- n\n<!-- APPENDIX_END -->";

    #[test]
    fn a_document_that_keeps_its_regions_is_left_alone() {
        let old = format!("# S\n\n{GUIDE}\n\n{NOTES}\n");
        let new = format!("# T\n\n{GUIDE}\n- rule\n{NOTES}\n");
        assert_eq!(with_regions_of(&new, &old), (new.clone(), false));
        assert_eq!(with_regions_of("# T\n", "# S\n"), ("# T\n".to_owned(), false));
    }

    #[test]
    fn lost_changed_and_invented_regions_are_restored() {
        let old = format!("# S\n\n{GUIDE}\n\n{NOTES}\n");
        let wanted = format!("# T\n\n{GUIDE}\n\n{NOTES}\n");
        for new in [
            "# T\n".to_owned(),
            format!("# T\n\n{NOTES}\n\n{GUIDE}\n"),
            format!("{}\n\n# T\n", GUIDE.replace("\ng", "\nother")),
            format!("# T\n\n{GUIDE}\n\n{GUIDE}\n\n{NOTES}\n"),
            format!("# T\n\n{GUIDE}\n\n{NOTES}\n<!-- APPENDIX_START -->"),
        ] {
            assert_eq!(with_regions_of(&new, &old), (wanted.clone(), true), "{new}");
        }
        assert_eq!(with_regions_of(&format!("# T\n{GUIDE}"), "# S\n"), ("# T\n".to_owned(), true));
    }

    #[test]
    fn the_first_candidate_with_a_document_is_taken() {
        let candidate = |content: &str| {
            serde_json::from_value(serde_json::json!({"op": "rewrite", "content": content})).unwrap()
        };
        let patch = |contents: &[&str]| crate::domain::Patch {
            reasoning: String::new(),
            edits: contents.iter().map(|content| candidate(content)).collect(),
        };
        assert_eq!(
            full_rewrite(&patch(&[" ", "# A \n\n", "# B"]).edits).map(|rewrite| rewrite.new_skill),
            Some("# A\n".into())
        );
        assert_eq!(full_rewrite(&patch(&["\n"]).edits), None);
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
            "\n\n\n",
            " ",
        ];
        prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..14).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn regions_survive_any_rewrite(old in text(), new in text()) {
            let (restored, changed) = with_regions_of(&new, &old);
            prop_assert_eq!(region::contents(&restored), region::contents(&old));
            prop_assert!(changed || restored == new);
        }
    }
}

//! The search's edits in the form that each update mode asks for: as they are, in words that the search itself can carry
//! out again, or as a whole document. Must not measure or choose anything.

use serde_json::{Value, json};

use super::document::apply;
use crate::domain::{Edit, EditOp, Patch, SourceType, UpdateMode};

const ADD: &str = "Add at the end:\n";
const DELETE: &str = "Delete this text:\n";
const REPLACE: &str = "Replace this text:\n";
const BY: &str = "\nby this text:\n";

/// The list of a reply's proposals.
pub fn items(mode: UpdateMode, skill: &str, edits: &[Edit]) -> Vec<Value> {
    match mode {
        UpdateMode::Patch => edits.iter().map(|edit| edit.as_item(mode)).collect(),
        UpdateMode::RewriteFromSuggestions => {
            edits.iter().filter_map(suggestion).map(|edit| edit.as_item(mode)).collect()
        }
        UpdateMode::FullRewriteMinibatch => {
            candidate(skill, edits).into_iter().map(|edit| edit.as_item(mode)).collect()
        }
    }
}

fn suggestion(edit: &Edit) -> Option<Edit> {
    let (op, title, instruction) = match edit.op {
        EditOp::Append => (EditOp::AddRule, "add a passage", format!("{ADD}{}", edit.content)),
        EditOp::Delete => (EditOp::RemoveRule, "delete a passage", format!("{DELETE}{}", edit.target)),
        EditOp::Replace => {
            let instruction = format!("{REPLACE}{}{BY}{}", edit.target, edit.content);
            (EditOp::Clarify, "replace a passage", instruction)
        }
        _ => return None,
    };
    let suggestion = Edit { op, target: title.into(), content: instruction, ..edit.clone() };
    // A text that holds the words between target and content would be carried out as another edit.
    let back = as_edit(&suggestion)?;
    (back.op == edit.op && back.target == edit.target && back.content == edit.content).then_some(suggestion)
}

/// The edit that a proposal stands for; `None` for what the search did not write.
pub fn as_edit(proposal: &Edit) -> Option<Edit> {
    let text = proposal.content.as_str();
    let (op, target, content) = match proposal.op {
        EditOp::Append | EditOp::Delete | EditOp::Replace => return Some(proposal.clone()),
        EditOp::AddRule => (EditOp::Append, "", text.strip_prefix(ADD)?),
        EditOp::RemoveRule => (EditOp::Delete, text.strip_prefix(DELETE)?, ""),
        EditOp::Clarify => {
            let (target, content) = text.strip_prefix(REPLACE)?.split_once(BY)?;
            (EditOp::Replace, target, content)
        }
        _ => return None,
    };
    Some(Edit { op, target: target.into(), content: content.into(), ..proposal.clone() })
}

/// One document with all edits; `None` when there is nothing to change.
fn candidate(skill: &str, edits: &[Edit]) -> Option<Edit> {
    let changed = edits.iter().fold(skill.to_owned(), |skill, edit| apply(&skill, edit));
    if changed == skill {
        return None;
    }
    let changes: Vec<&str> = edits.iter().map(|edit| edit.rationale.as_str()).collect();
    let mut motivated_by: Vec<String> = Vec::new();
    for item in edits.iter().flat_map(|edit| &edit.motivated_by) {
        if !motivated_by.contains(item) {
            motivated_by.push(item.clone());
        }
    }
    Some(Edit {
        op: EditOp::Rewrite,
        target: "the document with the best edits".into(),
        content: changed,
        support_count: edits.iter().map(|edit| edit.support_count).max().unwrap_or(1),
        source_type: SourceType::Failure,
        merge_level: None,
        priority: None,
        rationale: changes.join("\n"),
        motivated_by,
    })
}

/// The document with the suggestions carried out that the search can read; empty when it can read none.
pub fn rewrite(skill: &str, suggestions: &Patch) -> Value {
    let edits: Vec<Edit> = suggestions.edits.iter().filter_map(as_edit).collect();
    let changed = edits.iter().fold(skill.to_owned(), |skill, edit| apply(&skill, edit));
    let new_skill = if edits.is_empty() { String::new() } else { changed };
    let reasoning = format!(
        "built-in edit search (no model wrote this): {} of {} suggestions carried out",
        edits.len(),
        suggestions.edits.len()
    );
    let changes: Vec<&str> = edits.iter().map(|edit| edit.rationale.as_str()).collect();
    json!({"reasoning": reasoning, "change_summary": changes, "new_skill": new_skill})
}

#[cfg(test)]
mod tests {
    use super::super::document::{append, delete_block, replace};
    use super::*;

    const SKILL: &str = "Intro.\n\nText: a\n1\n\nText: b\n2\n";

    fn edits() -> Vec<Edit> {
        let delete = delete_block(SKILL, "Text: b\n2").unwrap();
        vec![replace("Intro.", "Intro.\nOne word."), delete, append("Text: c\n3")]
    }

    #[test]
    fn suggestions_are_carried_out_as_the_edits_they_came_from() {
        let mode = UpdateMode::RewriteFromSuggestions;
        let items = items(mode, SKILL, &edits());
        assert_eq!(
            items.iter().map(|item| &item["type"]).collect::<Vec<_>>(),
            ["clarify", "remove_rule", "add_rule"]
        );
        let suggestions: Vec<Edit> = edits().iter().filter_map(suggestion).collect();
        let told = rewrite(SKILL, &Patch { reasoning: String::new(), edits: suggestions });
        assert_eq!(told["new_skill"], "Intro.\nOne word.\n\nText: a\n1\n\nText: c\n3\n");
        let whole = candidate(SKILL, &edits()).unwrap();
        assert_eq!(told["new_skill"], whole.content.as_str());
    }

    #[test]
    fn what_cannot_be_said_in_words_is_not_suggested() {
        let tricky = replace("a\nby this text:\nb", "c");
        assert_eq!(suggestion(&tricky), None);
        let foreign = Edit { op: EditOp::Compress, ..append("Shorten it.") };
        let told = rewrite(SKILL, &Patch { reasoning: String::new(), edits: vec![foreign] });
        assert_eq!(told["new_skill"], "");
        assert_eq!(items(UpdateMode::FullRewriteMinibatch, SKILL, &[]), [Value::Null; 0]);
    }
}

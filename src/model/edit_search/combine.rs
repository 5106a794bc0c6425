//! Merges and ranks edits by support, measured gain and variety. Must not call a model.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::measure::Measured;
use crate::domain::{Edit, EditOp, Patch};

/// Two examples that share more than this share of their words (Jaccard) are of one kind: same template or same value.
const SAME_KIND: f64 = 0.35;

/// All edits of the patches: equal ones joined with their support summed, later edits of a text that an earlier one
/// already takes away left out, ordered by support, then gain, then first appearance.
pub fn merge(patches: &[Patch]) -> Value {
    let mut merged: Vec<Edit> = Vec::new();
    let mut total = 0;
    for edit in patches.iter().flat_map(|patch| &patch.edits) {
        total += 1;
        let same = |known: &&mut Edit| {
            known.op == edit.op && known.target == edit.target && known.content.trim() == edit.content.trim()
        };
        match merged.iter_mut().find(same) {
            Some(known) => {
                known.support_count = known.support_count.saturating_add(edit.support_count);
                for item in &edit.motivated_by {
                    if !known.motivated_by.contains(item) {
                        known.motivated_by.push(item.clone());
                    }
                }
            }
            None => merged.push(edit.clone()),
        }
    }
    merged.sort_by(|a, b| b.support_count.cmp(&a.support_count).then(by_gain(a, b)));
    let mut taken = HashSet::new();
    merged.retain(|edit| !removes_target(edit) || taken.insert(edit.target.trim().to_owned()));
    let reasoning = format!(
        "built-in edit search: {} of {total} edits from {} patches, equal ones joined, by support and gain",
        merged.len(),
        patches.len()
    );
    json!({"reasoning": reasoning, "edits": merged})
}

/// Whether a second edit of the same target would find nothing: a replacement that keeps the target does not count.
fn removes_target(edit: &Edit) -> bool {
    match edit.op {
        EditOp::Delete => true,
        EditOp::Replace => !edit.content.contains(&edit.target),
        EditOp::Append | EditOp::InsertAfter | EditOp::Unknown => false,
    }
}

/// Up to `budget` edits by gain and variety.
pub fn rank(patch: &Patch, budget: usize) -> Value {
    let selected = pick(&patch.edits, &[], budget);
    let reasoning = format!(
        "built-in edit search: {} of {} edits by gain in log-likelihood, different kinds first",
        selected.len(),
        patch.edits.len()
    );
    json!({"reasoning": reasoning, "selected_indices": selected})
}

/// Indices of up to `limit` edits, best gain first, but an edit of a kind that is already there (among `present` or
/// the picked ones) only after all others.
pub fn pick(edits: &[Edit], present: &[&str], limit: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..edits.len()).collect();
    order.sort_by(|a, b| by_gain(&edits[*a], &edits[*b]));
    let mut picked: Vec<usize> = Vec::new();
    let mut later = Vec::new();
    for index in order {
        let content = edits[index].content.as_str();
        let known = present.iter().copied().chain(picked.iter().map(|index| edits[*index].content.as_str()));
        if known.into_iter().any(|known| similarity(known, content) > SAME_KIND) {
            later.push(index);
        } else {
            picked.push(index);
        }
    }
    picked.extend(later);
    picked.truncate(limit);
    picked
}

fn by_gain(a: &Edit, b: &Edit) -> std::cmp::Ordering {
    Measured::gain_of(b).total_cmp(&Measured::gain_of(a))
}

/// Shared words over all words, 0 to 1.
fn similarity(a: &str, b: &str) -> f64 {
    let a: HashSet<&str> = a.split_whitespace().collect();
    let b: HashSet<&str> = b.split_whitespace().collect();
    let all = a.union(&b).count();
    if all == 0 { 0.0 } else { a.intersection(&b).count() as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::super::document::{append, replace};
    use super::*;

    fn gaining(mut edit: Edit, gain: f64) -> Edit {
        edit.rationale = format!("log p(answer) per token 0 -> {gain}");
        edit
    }

    fn patch(edits: Vec<Edit>) -> Patch {
        Patch { reasoning: String::new(), edits }
    }

    fn contents(value: &Value) -> Vec<&str> {
        value["edits"].as_array().unwrap().iter().map(|edit| edit["content"].as_str().unwrap()).collect()
    }

    #[test]
    fn merge_joins_equal_edits_and_orders_by_support_then_gain() {
        let value = merge(&[
            patch(vec![gaining(append("low"), 0.1), gaining(append("twice"), 0.2)]),
            patch(vec![gaining(append("high"), 0.9), gaining(append("twice"), 0.2)]),
        ]);
        assert_eq!(contents(&value), ["twice", "high", "low"]);
        assert_eq!(value["edits"][0]["support_count"], 2);
        assert_eq!(value["edits"][0]["source_type"], "failure");
        assert!(value["reasoning"].as_str().unwrap().contains("3 of 4 edits from 2 patches"));
    }

    #[test]
    fn merge_keeps_one_edit_per_removed_text() {
        let value = merge(&[patch(vec![
            gaining(replace("old", "new"), 0.1),
            gaining(replace("old", "newer"), 0.5),
            gaining(replace("intro", "intro\nA."), 0.2),
            gaining(replace("intro", "intro\nB."), 0.1),
        ])]);
        assert_eq!(contents(&value), ["newer", "intro\nA.", "intro\nB."]);
    }

    #[test]
    fn rank_prefers_gain_but_different_kinds_first() {
        let edits = vec![
            gaining(append("Text: Bo went to Rome by car\nRome"), 0.9),
            gaining(append("Text: Al went to Bern by car\nBern"), 0.8),
            gaining(append("Text: lamps are made near Lyon\nLyon"), 0.7),
            append("someone's free edit"),
        ];
        assert_eq!(rank(&patch(edits.clone()), 2)["selected_indices"], json!([0, 2]));
        assert_eq!(rank(&patch(edits.clone()), 9)["selected_indices"], json!([0, 2, 3, 1]));
        assert_eq!(rank(&patch(edits), 0)["selected_indices"], json!([]));
    }
}

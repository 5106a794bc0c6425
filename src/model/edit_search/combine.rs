//! Merges and ranks edits by support, measured gain and novelty. Must not call a model.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::measure::Measured;
use super::shape::as_edit;
use crate::domain::{Edit, EditOp, Patch, UpdateMode};

/// All edits of the patches: equal ones joined with their support summed, later edits of a text that an earlier one
/// already takes away left out, ordered by support, then gain, then first appearance.
pub fn merge(mode: UpdateMode, patches: &[Patch]) -> Value {
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
    if mode == UpdateMode::FullRewriteMinibatch {
        // Two whole documents cannot be joined: the one with most behind it stands for all.
        merged.truncate(1);
    }
    let mut taken = HashSet::new();
    merged.retain(|proposal| match as_edit(proposal) {
        Some(edit) => !removes_target(&edit) || taken.insert(edit.target.trim().to_owned()),
        None => true,
    });
    let reasoning = format!(
        "built-in edit search: {} of {total} edits from {} patches, equal ones joined, by support and gain",
        merged.len(),
        patches.len()
    );
    Patch { reasoning, edits: merged }.as_payload(mode)
}

/// Whether a second edit of the same target would find nothing: a replacement that keeps the target does not count.
fn removes_target(edit: &Edit) -> bool {
    match edit.op {
        EditOp::Delete => true,
        EditOp::Replace => !edit.content.contains(&edit.target),
        _ => false,
    }
}

/// Up to `budget` edits by gain and novelty.
pub fn rank(patch: &Patch, budget: usize) -> Value {
    let selected = pick(&patch.edits, &[], budget);
    let reasoning = format!(
        "built-in edit search: {} of {} edits by gain in log-likelihood and novelty",
        selected.len(),
        patch.edits.len()
    );
    json!({"reasoning": reasoning, "selected_indices": selected})
}

/// Indices of up to `limit` edits, picked one after the other by gain times novelty: 1 less the similarity to the most
/// similar text among `present` and the picked ones, since a second example of one template teaches less.
pub fn pick(edits: &[Edit], present: &[&str], limit: usize) -> Vec<usize> {
    let closest =
        |edit: &Edit| present.iter().map(|text| similarity(text, &edit.content)).fold(0.0, f64::max);
    let mut likeness: Vec<f64> = edits.iter().map(closest).collect();
    let mut left: Vec<usize> = (0..edits.len()).collect();
    let mut picked = Vec::new();
    while picked.len() < limit && !left.is_empty() {
        let worth = |index: usize| Measured::gain_of(&edits[index]) * (1.0 - likeness[index]);
        // The first of equals, so that the order of a minibatch decides ties.
        let mut best = 0;
        for place in 1..left.len() {
            if worth(left[place]) > worth(left[best]) {
                best = place;
            }
        }
        let index = left.remove(best);
        for other in &left {
            likeness[*other] =
                likeness[*other].max(similarity(&edits[index].content, &edits[*other].content));
        }
        picked.push(index);
    }
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
        let value = merge(
            UpdateMode::Patch,
            &[
                patch(vec![gaining(append("low"), 0.1), gaining(append("twice"), 0.2)]),
                patch(vec![gaining(append("high"), 0.9), gaining(append("twice"), 0.2)]),
            ],
        );
        assert_eq!(contents(&value), ["twice", "high", "low"]);
        assert_eq!(value["edits"][0]["support_count"], 2);
        assert_eq!(value["edits"][0]["source_type"], "failure");
        assert!(value["reasoning"].as_str().unwrap().contains("3 of 4 edits from 2 patches"));
    }

    #[test]
    fn merge_keeps_one_edit_per_removed_text() {
        let value = merge(
            UpdateMode::Patch,
            &[patch(vec![
                gaining(replace("old", "new"), 0.1),
                gaining(replace("old", "newer"), 0.5),
                gaining(replace("intro", "intro\nA."), 0.2),
                gaining(replace("intro", "intro\nB."), 0.1),
            ])],
        );
        assert_eq!(contents(&value), ["newer", "intro\nA.", "intro\nB."]);
    }

    #[test]
    fn rank_weighs_gain_by_novelty() {
        let edits = vec![
            gaining(append("Text: Bo went to Rome by car\nRome"), 0.9),
            gaining(append("Text: Al went to Bern by car\nBern"), 0.8),
            gaining(append("Text: lamps are made near Lyon\nLyon"), 0.7),
            append("someone's free edit"),
        ];
        assert_eq!(rank(&patch(edits.clone()), 2)["selected_indices"], json!([0, 2]));
        assert_eq!(rank(&patch(edits.clone()), 9)["selected_indices"], json!([0, 2, 1, 3]));
        assert_eq!(rank(&patch(edits.clone()), 0)["selected_indices"], json!([]));
        // What the skill shows already counts as well.
        assert_eq!(pick(&edits, &["Text: Di went to Oslo by car\nOslo"], 1), [2]);
    }
}

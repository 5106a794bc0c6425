//! Cuts a merged patch to the edit budget. Owns when a ranking call is needed and how its reply is read; must not
//! make the call.

use serde_json::Value;

use super::reply::{self, ReplyFault};
use crate::domain::Patch;

/// The edits to review, and how they were chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    pub patch: Patch,
    /// Positions in the merged patch, in the order of the selected edits.
    pub indices: Vec<usize>,
    /// The optimizer's reasoning; `None` when it ranked nothing.
    pub ranking: Option<String>,
}

/// The selection that needs no ranking call: everything within the budget, nothing for a budget of 0. `None`: ask.
pub fn within_budget(merged: &Patch, budget: usize) -> Option<Selection> {
    if budget == 0 {
        return Some(chosen(merged, Vec::new(), merged.reasoning.clone(), None));
    }
    let all = (0..merged.edits.len()).collect();
    (merged.edits.len() <= budget).then(|| chosen(merged, all, merged.reasoning.clone(), None))
}

/// Reads a ranking reply: the first `budget` valid indices (whole numbers from 0, in range, each once; JSON booleans
/// and fractions are none). Fewer than the budget is the optimizer's choice.
pub fn ranked_edits(merged: &Patch, budget: usize, reply: &str) -> Result<Selection, ReplyFault> {
    let total = merged.edits.len();
    let reply = reply::object(reply)?;
    let mut indices = Vec::new();
    for index in reply::list(&reply, "selected_indices")?.iter().filter_map(Value::as_u64) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if indices.len() < budget && index < total && !indices.contains(&index) {
            indices.push(index);
        }
    }
    if indices.is_empty() {
        return Err(ReplyFault::NoUsableIndex);
    }
    let count = indices.len();
    let reasoning = noted(merged, &format!("[optimizer-ranked: selected {count}/{total} edits]"));
    Ok(chosen(merged, indices, reasoning, Some(reply::text(&reply, "reasoning"))))
}

/// The first `budget` edits: what is left when ranking failed (the engine reports the fault).
pub fn first_edits(merged: &Patch, budget: usize) -> Selection {
    let (total, kept) = (merged.edits.len(), merged.edits.len().min(budget));
    let reasoning = noted(merged, &format!("[fallback truncated {total}->{kept} edits]"));
    chosen(merged, (0..kept).collect(), reasoning, None)
}

fn noted(merged: &Patch, note: &str) -> String {
    format!("{} {note}", merged.reasoning).trim_start().to_owned()
}

fn chosen(merged: &Patch, indices: Vec<usize>, reasoning: String, ranking: Option<String>) -> Selection {
    let edits = indices.iter().filter_map(|&index| merged.edits.get(index)).cloned().collect();
    Selection { patch: Patch { reasoning, edits }, indices, ranking }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(n: usize) -> Patch {
        let edit =
            |i| serde_json::from_value(serde_json::json!({"op": "append", "content": format!("e{i}")}));
        Patch { reasoning: String::new(), edits: (0..n).map(|i| edit(i).unwrap()).collect() }
    }

    #[test]
    fn no_call_within_the_budget_and_for_a_budget_of_zero() {
        assert_eq!(within_budget(&merged(3), 3).unwrap().indices, [0, 1, 2]);
        assert_eq!(within_budget(&merged(3), 0).unwrap().patch.edits, []);
        assert_eq!(within_budget(&merged(0), 2).unwrap().patch.edits, []);
        assert_eq!(within_budget(&merged(3), 2), None);
    }

    #[test]
    fn indices_that_are_none_are_passed_over() {
        let reply =
            r#"{"selected_indices": [true, 2.5, -1, "0", null, 99999999999999999999, 7, 2, 2, 1, 0]}"#;
        let selection = ranked_edits(&merged(4), 2, reply).unwrap();
        assert_eq!(selection.indices, [2, 1]);
        assert_eq!(selection.patch.edits[0].content, "e2");
        assert_eq!(selection.patch.reasoning, "[optimizer-ranked: selected 2/4 edits]");
        assert_eq!(selection.ranking.as_deref(), Some(""));
    }

    #[test]
    fn a_useless_ranking_says_why() {
        let fault = |reply: &str| ranked_edits(&merged(4), 2, reply).unwrap_err();
        assert_eq!(fault(r#"{"selected_indices": [true, 9]}"#), ReplyFault::NoUsableIndex);
        assert_eq!(fault(r#"{"order": [1]}"#), ReplyFault::Missing { key: "selected_indices" });
        assert_eq!(fault("0, 1"), ReplyFault::NoJson);
        assert_eq!(first_edits(&merged(4), 2).indices, [0, 1]);
    }
}

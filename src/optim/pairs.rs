//! Comparison of two skills on the same training items. Owns what makes a pair and which pairs are kept; must not run
//! anything.

use serde_json::Value;

use super::trajectory::conversation_text;
use crate::domain::{ComparisonPair, Item, PairCategory, PairPolicy, PairSide, Rollout};

/// A training item with its rollouts under the skill of the previous epoch and the current one; `None`: no answer.
#[derive(Clone, Copy, Debug)]
pub struct PairInput<'a> {
    pub item: &'a Item,
    pub prev: Option<&'a Rollout>,
    pub curr: Option<&'a Rollout>,
}

/// One pair per item that has both answers, in order. An item without one is no failure and no pair.
pub fn comparison_pairs(items: &[PairInput<'_>]) -> Vec<ComparisonPair> {
    let pair = |input: &PairInput<'_>| {
        let (prev, curr) = (input.prev?, input.curr?);
        Some(ComparisonPair {
            id: input.item.id.clone(),
            task: task(input.item, curr),
            category: PairCategory::of(!prev.score.failed(), !curr.score.failed()),
            prev: side(prev),
            curr: side(curr),
            prev_trajectory: conversation_of(prev),
            curr_trajectory: conversation_of(curr),
        })
    };
    items.iter().filter_map(pair).collect()
}

fn task(item: &Item, rollout: &Rollout) -> String {
    let named = ["question", "task_description", "instruction"];
    let named = named.into_iter().filter_map(|field| item.fields.get(field).and_then(Value::as_str));
    let mut texts = named.chain([rollout.task.as_str()]).filter(|text| !text.trim().is_empty());
    texts.next().unwrap_or(&item.id).to_owned()
}

fn side(rollout: &Rollout) -> PairSide {
    let failed = rollout.score.failed();
    let answer = if rollout.answer.is_empty() { "N/A" } else { &rollout.answer };
    PairSide {
        hard: u8::from(!failed),
        soft: rollout.score.soft,
        predicted_answer: answer.to_owned(),
        fail_reason: if failed { rollout.score.reason.clone() } else { String::new() },
    }
}

fn conversation_of(rollout: &Rollout) -> String {
    if rollout.turns.is_empty() { rollout.reply.clone() } else { conversation_text(&rollout.turns) }
}

/// The pairs that `policy` looks at, in order.
pub fn kept_pairs(pairs: &[ComparisonPair], policy: PairPolicy) -> Vec<ComparisonPair> {
    pairs.iter().filter(|pair| policy.keeps(pair.category)).cloned().collect()
}

/// How many pairs each category has, in the order of [`PairCategory::ALL`].
pub fn pair_counts(pairs: &[ComparisonPair]) -> [(PairCategory, usize); 4] {
    PairCategory::ALL
        .map(|category| (category, pairs.iter().filter(|pair| pair.category == category).count()))
}

/// A file name for an item's id: letters, digits, `_`, `.` and `-` of it, at most 80. Ids may share one.
pub fn safe_pair_id(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let mut safe = String::new();
    for c in id.chars() {
        match c {
            c if plain(c) => safe.push(c),
            _ if safe.ends_with('_') => {}
            _ => safe.push('_'),
        }
    }
    let safe: String = safe.trim_matches('_').chars().take(80).collect();
    // Dots alone would name a folder above.
    if safe.chars().all(|c| c == '.') { "item".into() } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_way_out_of_its_folder() {
        for id in ["..", ".", "", "../..", "a/../b", "\u{0}", "x\\y", &"é/".repeat(500)] {
            let safe = safe_pair_id(id);
            assert!(
                !safe.is_empty() && safe.len() <= 80 && !safe.contains(['/', '\\', '\0']),
                "{id:?} {safe}"
            );
            assert_ne!(safe.trim_matches('.'), "", "{id:?}");
        }
    }
}

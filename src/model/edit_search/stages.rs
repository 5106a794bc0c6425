//! Answers of the search that rest on counting, not on measuring: the edit budget, memories, probes, notes.
//! Must not call a model.

use serde_json::{Value, json};

use super::document::blocks;
use super::measure::Measured;
use crate::domain::{ComparisonPair, PairCategory, Patch, UpdateMode};

const ORIGIN: &str = "built-in edit search (no model wrote this)";

/// As many as were measured to gain.
pub fn learning_rate(patch: &Patch) -> Value {
    let gaining = patch.edits.iter().filter(|edit| Measured::gain_of(edit) > 0.0).count();
    let reasoning = format!("{ORIGIN}: {gaining} of {} proposals have a measured gain", patch.edits.len());
    json!({"learning_rate": gaining, "reasoning": reasoning, "confidence": "measured", "risk_notes": []})
}

/// What the epoch changed and how the compared items fared.
pub fn meta_skill(prev_skill: &str, skill: &str, pairs: &[ComparisonPair]) -> Value {
    let (before, now): (Vec<&str>, Vec<&str>) = (blocks(prev_skill).collect(), blocks(skill).collect());
    let added = now.iter().filter(|block| !before.contains(block)).count();
    let removed = before.iter().filter(|block| !now.contains(block)).count();
    let count = |category| pairs.iter().filter(|pair| pair.category == category).count();
    let content = format!(
        "{ORIGIN}: the epoch added {added} passages and removed {removed}. Of {} compared items {} got better, {} \
         worse, {} fail and {} succeed as before.",
        pairs.len(),
        count(PairCategory::Improved),
        count(PairCategory::Regressed),
        count(PairCategory::PersistentFail),
        count(PairCategory::StableSuccess)
    );
    json!({"reasoning": "counted from the two skills and the pairs", "meta_skill_content": content})
}

/// The gate has kept what helped, so there is nothing to take back.
pub fn meta_reflect(mode: UpdateMode, history: &str) -> Value {
    let steps = history.lines().filter(|line| line.starts_with("### Step ")).count();
    // A revision of whole documents is made of edits.
    let items_key = match mode {
        UpdateMode::Patch | UpdateMode::FullRewriteMinibatch => UpdateMode::Patch.items_key(),
        UpdateMode::RewriteFromSuggestions => mode.items_key(),
    };
    json!({
        "meta_summary": format!("{ORIGIN}: {steps} steps, each kept or taken back by the gate."),
        "patch": {"reasoning": format!("{ORIGIN}: no revision beyond the steps"), items_key: []},
    })
}

pub fn probe() -> Value {
    json!({
        "reasoning": format!("{ORIGIN}: shows what an answer was read from"),
        "probe_instruction":
            "Before the answer, write one line that quotes the words of the task on which the answer rests.",
    })
}

/// The notes without those that another one contains.
pub fn consolidate(notes: &[String]) -> Value {
    let folded: Vec<String> = notes.iter().map(|note| note.trim().to_lowercase()).collect();
    let contained = |i: usize| {
        let within = |(j, other): (usize, &String)| {
            j != i && other.contains(&folded[i]) && (*other != folded[i] || j < i)
        };
        folded.iter().enumerate().any(within)
    };
    let kept: Vec<&String> =
        notes.iter().enumerate().filter(|(i, _)| !contained(*i)).map(|(_, note)| note).collect();
    json!({"appendix_notes": kept})
}

#[cfg(test)]
mod tests {
    use super::super::document::append;
    use super::*;

    #[test]
    fn only_measured_gains_count_for_the_budget() {
        let with = |rationale: &str| crate::domain::Edit { rationale: rationale.into(), ..append("x") };
        let gains = ["log p(answer) per token -3 -> -2", "log p(answer) per token -2 -> -3", "a hunch"];
        let patch = Patch { reasoning: String::new(), edits: gains.map(with).to_vec() };
        assert_eq!(learning_rate(&patch)["learning_rate"], 1);
    }

    #[test]
    fn a_memory_counts_what_the_epoch_did() {
        let told = meta_skill("Intro.\n\na\n\nb\n", "Intro.\n\na\n\nc\n\nd\n", &[]);
        let content = told["meta_skill_content"].as_str().unwrap();
        assert!(content.contains("added 2 passages and removed 1"), "{content}");
    }
}

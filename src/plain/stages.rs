//! Words for the stages between epochs and for proposals of any update mode. Owns wording only.

use serde_json::{Value, json};

use crate::domain::{
    AppendixFlush, ComparisonPair, Edit, EpochStage, LrDecision, PairCategory, SlowUpdate, StageAction,
    UpdateMode,
};

use super::describe::{count, score, signed};
use crate::event::StageState;

/// What is said wherever the stored score of the current skill is that of an earlier text.
pub const STALE: &str = "changed outside the gate; measured again before the next verdict";

/// `3 edits`, `1 suggestion`, `2 skill candidates`.
pub fn proposals(edits: &[Edit]) -> String {
    count(edits.len(), UpdateMode::of(edits).noun())
}

/// How a stage ended, in a few words.
pub fn action_words(action: StageAction) -> &'static str {
    match action {
        StageAction::InjectPlaceholder => "empty region put in",
        StageAction::SkipFirstEpoch => "nothing to compare in the first epoch",
        StageAction::NoContent => "nothing usable said",
        StageAction::WriteMetaSkill => "memory written",
        StageAction::ForceAccept => "accepted without a gate",
        StageAction::Accept => "accepted",
        StageAction::AcceptNewBest => "accepted, new best",
        StageAction::Reject => "rejected",
        StageAction::Undecided => "undecided",
        StageAction::SkipNoEdits => "skipped, no edits",
        StageAction::SkipNoSuggestions => "skipped, no suggestions",
        StageAction::SkipNoRewrite => "skipped, no rewrite",
        StageAction::SkipNoChange => "skipped, no change",
    }
}

/// How many pairs are in each category, in the order of [`PairCategory::ALL`].
pub fn pair_counts(pairs: &[ComparisonPair]) -> [usize; 4] {
    PairCategory::ALL.map(|category| pairs.iter().filter(|pair| pair.category == category).count())
}

/// The category for people.
pub fn category_words(category: PairCategory) -> &'static str {
    match category {
        PairCategory::Improved => "improved",
        PairCategory::Regressed => "regressed",
        PairCategory::PersistentFail => "failed twice",
        PairCategory::StableSuccess => "passed twice",
    }
}

/// `5 pairs, 2 improved, 1 regressed`; `None` when nothing was compared.
pub fn pair_words(found: &SlowUpdate) -> Option<String> {
    if found.pairs.is_empty() {
        return None;
    }
    let [improved, regressed, ..] = pair_counts(&found.pairs);
    let all = match found.all_pairs.len() {
        0 => String::new(),
        all => format!(" of {all}"),
    };
    Some(format!("{}{all}, {improved} improved, {regressed} regressed", count(found.pairs.len(), "pair")))
}

/// Train scores of the two skills that a slow update compared: `0.40 → 0.60 on the sample`.
pub fn sample_words(found: &SlowUpdate) -> Option<String> {
    let (prev, curr) = (found.prev_hard?, found.curr_hard?);
    Some(format!("{} → {} on the sample", score(prev), score(curr)))
}

/// A finished stage in one line, without its epoch.
pub fn stage_line(stage: &EpochStage, stale: bool) -> String {
    let mut words = vec![format!("{}: {}", stage.name(), action_words(stage.action()))];
    if let EpochStage::SlowUpdate(found) = stage {
        words.extend(pair_words(found));
        words.extend(sample_words(found));
    }
    if let (_, Some(decision)) = stage.candidate() {
        let bound = if decision.candidate.done < decision.candidate.n { "at most " } else { "" };
        words.push(format!(
            "{bound}{} against {} ({})",
            score(decision.candidate.gate),
            score(decision.current.gate),
            signed(decision.candidate.gate - decision.current.gate)
        ));
    }
    if stale && stage.action().changes_skill() {
        words.push(format!("the current skill was {STALE}"));
    }
    words.join("; ")
}

/// `appendix: 2 new notes, 5 in all, consolidated to 3`.
pub fn appendix_words(flush: &AppendixFlush) -> String {
    let consolidated = match &flush.consolidated {
        Some(notes) => format!(", consolidated to {}", notes.len()),
        None => String::new(),
    };
    let new = count(flush.added, "new note");
    format!("appendix: {new}, {} in all{consolidated}", flush.appendix_after.len())
}

/// A finished stage between two epochs as data; no text of a model.
pub fn stage_summary(done: &StageState) -> Value {
    let (_, decision) = done.stage.candidate();
    let mut row = json!({
        "epoch": done.at.epoch,
        "stage": done.stage.name(),
        "action": done.stage.action(),
        "score": decision.map(|decision| decision.candidate.gate),
        "against": decision.map(|decision| decision.current.gate),
    });
    if let EpochStage::SlowUpdate(found) = &done.stage {
        let [improved, regressed, failed, passed] = pair_counts(&found.pairs);
        row["prev_hard"] = json!(found.prev_hard);
        row["curr_hard"] = json!(found.curr_hard);
        if !found.pairs.is_empty() {
            row["pairs"] = json!({
                "improved": improved, "regressed": regressed, "failed_twice": failed, "passed_twice": passed,
            });
        }
    }
    row
}

/// What the optimizer allows: `budget from the optimizer: 2 of 5 (it asked for 7), confidence high`.
pub fn budget_words(decision: &LrDecision) -> String {
    let LrDecision { learning_rate, raw_learning_rate, available_update_items, .. } = decision;
    let asked = if decision.clamped { format!(" (it asked for {raw_learning_rate})") } else { String::new() };
    let sure = match (decision.fallback, decision.confidence.as_str()) {
        (true, _) => ", as its reply gave no number".to_owned(),
        (false, "") => String::new(),
        (false, confidence) => format!(", confidence {confidence}"),
    };
    format!("budget from the optimizer: {learning_rate} of {available_update_items}{asked}{sure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_says_when_it_was_cut_or_made_up() {
        let decision = LrDecision {
            learning_rate: 2,
            raw_learning_rate: 7,
            available_update_items: 2,
            clamped: true,
            confidence: "high".into(),
            ..LrDecision::default()
        };
        assert_eq!(
            budget_words(&decision),
            "budget from the optimizer: 2 of 2 (it asked for 7), confidence high"
        );
        let fallback = LrDecision { available_update_items: 3, fallback: true, ..LrDecision::default() };
        assert_eq!(budget_words(&fallback), "budget from the optimizer: 0 of 3, as its reply gave no number");
    }

    #[test]
    fn a_forced_slow_update_says_that_the_score_is_stale() {
        let found = SlowUpdate {
            action: StageAction::ForceAccept,
            reasoning: String::new(),
            content: "x".into(),
            prev_hard: Some(0.4),
            curr_hard: Some(0.6),
            pairs: Vec::new(),
            all_pairs: Vec::new(),
            candidate: None,
            decision: None,
            note: String::new(),
        };
        let stage = EpochStage::SlowUpdate(Box::new(found));
        assert_eq!(
            stage_line(&stage, true),
            "slow update: accepted without a gate; 0.40 → 0.60 on the sample; the current skill was changed \
             outside the gate; measured again before the next verdict"
        );
        assert!(!stage_line(&stage, false).contains("outside"));
    }
}

//! The search itself: which edits a minibatch of failures suggests, measured on its other items.
//! Must not look at anything but the brief: the same brief always gets the same answer.
//!
//! What it tries rests on measurements with a 135M model in document style: worked examples carry almost all of the
//! effect, four to eight of them are enough, sentences do little, and the mean log-probability of the reference answer
//! orders skill texts as greedy success does.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::combine::pick;
use super::document::{
    append, apply, delete_block, delete_line, example_block, examples, introduction, replace,
};
use super::measure::{Measured, Trial, compare, score};
use super::rules::{fitting, library};
use super::shape::items;
use crate::domain::{Edit, EditOp, StepMemory, Trajectory, UpdateMode};
use crate::model::{Likelihood, ModelError};

/// Items an edit is measured on.
pub(super) const SAMPLE: usize = 6;
/// Items that edits with little prospect are first screened on.
const SCREEN: usize = 3;
/// Screened edits that are then measured on the sample.
const SCREENED_IN: usize = 3;
/// Sentences that are screened per minibatch.
const SENTENCES: usize = 6;
/// A skill with this many examples swaps instead of growing.
const MAX_EXAMPLES: usize = 8;
/// Smallest gain (nats per token) that is worth an edit: less does not change what is generated.
pub(super) const MIN_GAIN: f64 = 0.05;

/// Characters of an edit by which a rejection of it is recognised.
const MARK_CHARS: usize = 40;

/// One minibatch of failures.
pub struct Search<'a> {
    pub likelihood: &'a dyn Likelihood,
    pub skill: &'a str,
    pub trajectories: &'a [Trajectory],
    pub memory: &'a [StepMemory],
    pub mode: UpdateMode,
}

/// An edit that may be proposed, and the item it would show, which it is never measured on.
struct Candidate {
    edit: Edit,
    own_item: Option<usize>,
    what: String,
    /// The text by which a summary of a rejected edit is recognised.
    mark: String,
}

/// Scores of the unchanged skill by item index.
type Baseline = BTreeMap<usize, f64>;

impl Search<'_> {
    /// The failure analyst's reply with at most `budget` edits, in the form of the update mode.
    pub async fn analyze(&self, budget: usize) -> Result<Value, ModelError> {
        let present = examples(self.skill, self.trajectories);
        let sample = self.sample(&present);
        let unchanged = Trial { skill: self.skill.to_owned(), items: sample.clone() };
        let scores = score(self.likelihood, self.trajectories, &[unchanged]).await?;
        let baseline: Baseline = sample.iter().copied().zip(scores.into_iter().flatten()).collect();

        let removals = self.measured(self.removals(&present), &baseline, SCREEN).await?;
        let full = present.len() >= MAX_EXAMPLES;
        let mut found = Vec::new();
        if full {
            if let Some((_, least_useful)) = best(&removals) {
                found.extend(self.measured(self.swaps(&present, least_useful), &baseline, SAMPLE).await?);
            }
        } else {
            found.extend(self.measured(self.additions(&present), &baseline, SAMPLE).await?);
            if let Some((gain, harmful)) = best(&removals)
                && gain > MIN_GAIN
            {
                let mut swaps = self.swaps(&present, harmful);
                let promising = self.promising(&found);
                swaps.retain(|swap| swap.own_item.is_some_and(|item| promising.contains(&item)));
                found.extend(self.measured(swaps, &baseline, SAMPLE).await?);
            }
        }
        let mut screened = removals;
        screened.extend(self.measured(self.sentences(&present)?, &baseline, SCREEN).await?);
        screened.retain(|(_, measured)| measured.gain() > MIN_GAIN);
        screened.sort_by(|a, b| b.1.gain().total_cmp(&a.1.gain()));
        screened.truncate(SCREENED_IN);
        let screened = screened.into_iter().map(|(candidate, _)| candidate).collect();
        found.extend(self.measured(screened, &baseline, SAMPLE).await?);

        let tried = found.len();
        let edits = self.choose(found, &present, budget);
        Ok(self.reply(edits, tried, &baseline))
    }

    /// Items to measure on, in the order of the minibatch. An item that is an example of the skill already would
    /// measure its own answer.
    fn sample(&self, present: &[&str]) -> Vec<usize> {
        (0..self.trajectories.len())
            .filter(|item| !present.contains(&self.block(*item).as_str()))
            .take(SAMPLE)
            .collect()
    }

    fn block(&self, item: usize) -> String {
        let trajectory = &self.trajectories[item];
        example_block(&trajectory.task, &trajectory.gold)
    }

    /// Failing items that are no examples yet and hold something to learn from.
    fn fresh_items(&self, present: &[&str]) -> Vec<usize> {
        let mut seen: Vec<String> = Vec::new();
        (0..self.trajectories.len())
            .filter(|item| {
                let trajectory = &self.trajectories[*item];
                let block = self.block(*item);
                // A blank line inside would fall apart into two blocks, and could never be found again.
                let usable = !trajectory.task.trim().is_empty()
                    && !trajectory.gold.trim().is_empty()
                    && !block.contains("\n\n")
                    && !block.contains("<!-- ");
                let fresh = usable && !present.contains(&block.as_str()) && !seen.contains(&block);
                seen.push(block);
                fresh
            })
            .collect()
    }

    fn additions(&self, present: &[&str]) -> Vec<Candidate> {
        let add = |item: usize| Candidate {
            edit: append(&self.block(item)),
            own_item: Some(item),
            what: format!("add item {} as a worked example", self.trajectories[item].item),
            mark: self.block(item),
        };
        self.fresh_items(present).into_iter().map(add).collect()
    }

    fn removals(&self, present: &[&str]) -> Vec<Candidate> {
        let remove = |block: &&str| {
            let edit = delete_block(self.skill, block)?;
            Some(Candidate {
                edit,
                own_item: None,
                what: "delete a worked example".into(),
                mark: (*block).to_owned(),
            })
        };
        present.iter().filter_map(remove).collect()
    }

    fn swaps(&self, present: &[&str], removal: &Candidate) -> Vec<Candidate> {
        let old = removal.edit.target.trim();
        let swap = |item: usize| Candidate {
            edit: replace(old, &self.block(item)),
            own_item: Some(item),
            what: format!("show item {} in place of a worked example", self.trajectories[item].item),
            mark: self.block(item),
        };
        self.fresh_items(present).into_iter().map(swap).collect()
    }

    /// The two items whose addition gains most.
    fn promising(&self, additions: &[(Candidate, Measured)]) -> Vec<usize> {
        let mut order: Vec<&(Candidate, Measured)> = additions.iter().collect();
        order.sort_by(|a, b| b.1.gain().total_cmp(&a.1.gain()));
        order.into_iter().filter_map(|(candidate, _)| candidate.own_item).take(2).collect()
    }

    fn sentences(&self, present: &[&str]) -> Result<Vec<Candidate>, ModelError> {
        let rules = library()?;
        let introduction = introduction(self.skill, present);
        let mut candidates: Vec<Candidate> = Vec::new();
        for rule in rules {
            if let Some(edit) = delete_line(self.skill, &rule.text) {
                let (what, mark) = ("drop a sentence".into(), rule.text.clone());
                candidates.push(Candidate { edit, own_item: None, what, mark });
            }
        }
        let missing =
            fitting(rules, self.trajectories).into_iter().filter(|rule| !self.skill.contains(&rule.text));
        for rule in missing.take(SENTENCES) {
            let edit = match introduction {
                Some(line) => replace(line, &format!("{line}\n{}", rule.text)),
                None => append(&rule.text),
            };
            let (what, mark) = ("add a sentence".into(), rule.text.clone());
            candidates.push(Candidate { edit, own_item: None, what, mark });
        }
        Ok(candidates)
    }

    /// Measures candidates on the first `limit` items of the baseline without their own.
    async fn measured(
        &self,
        candidates: Vec<Candidate>,
        baseline: &Baseline,
        limit: usize,
    ) -> Result<Vec<(Candidate, Measured)>, ModelError> {
        let candidates: Vec<Candidate> =
            candidates.into_iter().filter(|candidate| !self.was_rejected(candidate)).collect();
        let items_of = |candidate: &Candidate| {
            let others = baseline.keys().copied().filter(|item| Some(*item) != candidate.own_item);
            others.take(limit).collect::<Vec<usize>>()
        };
        let trials: Vec<Trial> = candidates
            .iter()
            .map(|candidate| Trial { skill: apply(self.skill, &candidate.edit), items: items_of(candidate) })
            .collect();
        let scores = score(self.likelihood, self.trajectories, &trials).await?;
        let rows = candidates.into_iter().zip(trials).zip(scores);
        Ok(rows
            .filter_map(|((candidate, trial), after)| {
                let before: Vec<f64> = trial.items.iter().map(|item| baseline[item]).collect();
                compare(&before, &after).map(|measured| (candidate, measured))
            })
            .collect())
    }

    /// Whether the gate or a reviewer has turned this edit down in this epoch. Summaries may be cut and on one line.
    fn was_rejected(&self, candidate: &Candidate) -> bool {
        let mark: String = one_line(&candidate.mark).chars().take(MARK_CHARS).collect();
        let mut attempts = self.memory.iter().flat_map(|memory| &memory.failed_attempts);
        attempts.any(|attempt| one_line(&attempt.summary).contains(&mark))
    }

    fn choose(&self, found: Vec<(Candidate, Measured)>, present: &[&str], budget: usize) -> Vec<Edit> {
        let mut edits = Vec::new();
        for (candidate, measured) in found {
            // A further example seldom harms; taking something away or rewording needs more than one witness.
            let witnesses = if candidate.edit.op == EditOp::Append { 1 } else { 2 };
            let mostly_better = 2 * measured.better as usize > measured.items;
            if measured.gain() <= MIN_GAIN || measured.items < witnesses || !mostly_better {
                continue;
            }
            let mut edit = candidate.edit;
            edit.support_count = measured.better.max(1);
            edit.rationale = format!("{}: {measured}", candidate.what);
            edit.motivated_by =
                candidate.own_item.map(|item| self.trajectories[item].item.clone()).into_iter().collect();
            edits.push(edit);
        }
        let room = MAX_EXAMPLES.saturating_sub(present.len());
        let mut chosen: Vec<Edit> = Vec::new();
        for index in pick(&edits, present, edits.len()) {
            let edit = &edits[index];
            let appended = chosen.iter().filter(|edit| edit.target.is_empty()).count();
            let clashes = chosen.iter().any(|known| {
                let same_text = !edit.target.is_empty() && known.target.trim() == edit.target.trim();
                same_text || (!edit.motivated_by.is_empty() && known.motivated_by == edit.motivated_by)
            });
            let overflows = edit.target.is_empty() && appended >= room;
            if !clashes && !overflows {
                chosen.push(edit.clone());
            }
        }
        chosen.truncate(budget);
        chosen
    }

    fn reply(&self, edits: Vec<Edit>, tried: usize, baseline: &Baseline) -> Value {
        let reasoning = if baseline.is_empty() {
            "built-in edit search: no item to measure on".to_owned()
        } else {
            let mean = baseline.values().sum::<f64>() / baseline.len() as f64;
            format!(
                "built-in edit search (no model wrote this): {tried} edits measured by log p(answer) per token, \
                 {mean:.3} for the unchanged skill; {} worth proposing",
                edits.len()
            )
        };
        json!({
            "batch_size": self.trajectories.len(),
            "failure_summary": self.failure_summary(),
            "patch": {"reasoning": reasoning, self.mode.items_key(): items(self.mode, self.skill, &edits)},
        })
    }

    /// Failures by the kind that the scorer names, most frequent first.
    fn failure_summary(&self) -> Vec<Value> {
        let mut kinds: Vec<(&str, usize, &str)> = Vec::new();
        for trajectory in self.trajectories {
            let kind = trajectory.reason.split(':').next().unwrap_or_default().trim();
            match kinds.iter_mut().find(|(known, ..)| *known == kind) {
                Some((_, count, _)) => *count += 1,
                None => kinds.push((kind, 1, trajectory.reason.as_str())),
            }
        }
        kinds.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
        let row = |(kind, count, reason): (&str, usize, &str)| {
            let description = format!("{count} of {} like: {reason}", self.trajectories.len());
            json!({"failure_type": kind, "count": count, "description": description})
        };
        kinds.into_iter().map(row).collect()
    }
}

/// The success analyst's reply: the search learns from failures only.
pub fn success_reply(mode: UpdateMode, batch: usize) -> Value {
    let reasoning = "built-in edit search: proposes edits from failures only";
    json!({
        "batch_size": batch,
        "success_patterns": [],
        "patch": {"reasoning": reasoning, mode.items_key(): []},
    })
}

fn one_line(text: &str) -> String {
    text.replace("\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn best(measured: &[(Candidate, Measured)]) -> Option<(f64, &Candidate)> {
    let best = measured.iter().max_by(|a, b| a.1.gain().total_cmp(&b.1.gain()))?;
    Some((best.1.gain(), &best.0))
}

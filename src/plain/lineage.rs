//! Where each line of a skill came from: which stage and step, which edit, why, and what the gate said. A pure function
//! of a run's state; must not format for a screen.

mod revisions;

use std::ops::Range;

use serde::Serialize;

use crate::domain::{Author, EditOp, SourceType, StepRef};
use crate::event::RunState;
use crate::text::{Diff, Mark, diff, lines, similarity};

use self::revisions::{Revision, revisions};

/// A changed line has the history of the line it replaced when at least this much of it, by word, stayed.
const SAME_LINE: f64 = 0.5;

/// Pairs of removed and added lines that are compared at most; beyond that a change is a new text.
const MOST_PAIRS: usize = 10_000;

/// What brought a line into the skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginStage {
    Seed,
    Edit,
    Rewrite,
    Appendix,
    SlowUpdate,
    MetaReflect,
    /// A person overruled the gate.
    Override,
    /// The record does not say.
    Unrecorded,
}

impl OriginStage {
    pub fn name(self) -> &'static str {
        match self {
            Self::Seed => "seed",
            Self::Edit => "edit",
            Self::Rewrite => "rewrite",
            Self::Appendix => "appendix",
            Self::SlowUpdate => "slow update",
            Self::MetaReflect => "meta-reflect",
            Self::Override => "override",
            Self::Unrecorded => "unrecorded",
        }
    }
}

/// The proposal behind a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EditOrigin {
    /// Place among the step's applied proposals, from 1.
    pub number: usize,
    pub op: EditOp,
    pub source_type: SourceType,
    pub support_count: u32,
    pub motivated_by: Vec<String>,
    /// Who accepted it by hand, and whether they gave it other text.
    pub reviewer: Option<Author>,
    pub amended: bool,
}

/// One change that lines came from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Origin {
    pub stage: OriginStage,
    pub at: StepRef,
    /// `None` where no single proposal is behind it.
    pub edit: Option<EditOrigin>,
    /// Why, in the optimizer's or the reviewer's words (untrusted text).
    pub reason: String,
    /// Name of the gate's verdict, or of the action of a stage without a gate.
    pub verdict: Option<&'static str>,
    /// Gate scores of the candidate and of the skill it was measured against.
    pub scores: Option<(f64, f64)>,
}

/// One line with its break.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SkillLine {
    pub text: String,
    /// Place in [`Lineage::origins`].
    pub origin: usize,
    /// Origins of what the line was before, oldest first.
    pub earlier: Vec<usize>,
}

/// The lines of a skill and the changes they came from, in the order of the run. The first origin is the seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lineage {
    pub skill_hash: String,
    pub origins: Vec<Origin>,
    pub lines: Vec<SkillLine>,
}

/// The lineage of the run's best skill.
pub fn lineage(state: &RunState) -> Lineage {
    let seed = state.skill_text(&state.initial_hash).unwrap_or_default();
    let best = state.skill_text(&state.best_hash).unwrap_or_default();
    let mut told = Lineage {
        skill_hash: state.best_hash.clone(),
        origins: vec![Origin::plain(OriginStage::Seed, StepRef::default())],
        lines: lines(seed)
            .into_iter()
            .map(|text| SkillLine { text: text.to_owned(), origin: 0, earlier: Vec::new() })
            .collect(),
    };
    let mut changes = revisions(state);
    // A text may return: what counts is when it became the best.
    let became = |change: &Revision| change.whole && change.text == best;
    let reached = changes
        .iter()
        .position(|change| change.origin.at.step >= state.best_step && became(change))
        .or_else(|| changes.iter().rposition(became));
    match reached {
        _ if seed == best => changes.clear(),
        Some(place) => changes.truncate(place + 1),
        None => changes.push(Revision {
            text: best.to_owned(),
            origin: Origin::plain(OriginStage::Unrecorded, state.at),
            whole: true,
        }),
    }
    let mut text = seed.to_owned();
    for change in changes {
        told.follow(&text, &change);
        text = change.text;
    }
    told
}

impl Origin {
    fn plain(stage: OriginStage, at: StepRef) -> Self {
        Self { stage, at, edit: None, reason: String::new(), verdict: None, scores: None }
    }
}

impl Lineage {
    /// The document that the lines make up.
    pub fn text(&self) -> String {
        self.lines.iter().map(|line| line.text.as_str()).collect()
    }

    pub fn origin(&self, line: &SkillLine) -> &Origin {
        &self.origins[line.origin]
    }

    /// Takes the lines from the text before a change to the one after it.
    fn follow(&mut self, before: &str, change: &Revision) {
        let compared = diff(before, &change.text);
        let texts = lines(&change.text);
        let place = self.origins.len();
        self.origins.push(change.origin.clone());
        let mut next: Vec<SkillLine> = Vec::with_capacity(texts.len());
        for (at, line) in compared.lines.iter().enumerate() {
            match (line.mark, line.old, line.new) {
                (Mark::Same, Some(old), _) => next.push(self.lines[old - 1].clone()),
                (Mark::Added, _, Some(new)) => {
                    let text = texts[new - 1];
                    let earlier = match self.ancestor(&compared, at, text) {
                        Some(ancestor) => ancestor.earlier.iter().copied().chain([ancestor.origin]).collect(),
                        None => Vec::new(),
                    };
                    next.push(SkillLine { text: text.to_owned(), origin: place, earlier });
                }
                (Mark::Same | Mark::Added | Mark::Removed, ..) => {}
            }
        }
        self.lines = next;
    }

    /// The removed line of the same group that is most like the added line `at`.
    fn ancestor(&self, compared: &Diff, at: usize, text: &str) -> Option<&SkillLine> {
        let group: &Range<usize> =
            compared.groups.iter().map(|group| &group.lines).find(|lines| lines.contains(&at))?;
        let removed: Vec<usize> = group
            .clone()
            .filter(|place| compared.lines[*place].mark == Mark::Removed)
            .filter_map(|place| compared.lines[place].old)
            .collect();
        if text.trim().is_empty() || removed.len() * (group.len() - removed.len()) > MOST_PAIRS {
            return None;
        }
        let likeness = |old: &usize| similarity(&self.lines[old - 1].text, text);
        let best = removed.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
        (likeness(best) >= SAME_LINE).then(|| &self.lines[best - 1])
    }
}

#[cfg(test)]
#[path = "lineage_tests.rs"]
mod tests;

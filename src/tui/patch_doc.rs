//! What the Patch pane shows: the edits of a review, the diff of the candidate they make against the current
//! skill, and which change group belongs to which edit. Computed once per set of decisions.

use std::ops::Range;
use std::rc::Rc;

use super::app::App;
use super::controls::patch::Anchor;
use super::preview::{self, Preview};
use crate::domain::{Decision, Edit, ReviewClose, StepRef, TimeoutPolicy, UpdateMode};
use crate::event::{ReviewEdit, ReviewState};
use crate::optim::{full_rewrite, with_regions_of};
use crate::text::{self, Diff, Group, diff, sanitize, split_by_cause};

/// Everything a document depends on.
#[derive(Clone, Debug, PartialEq)]
pub enum PatchKey {
    Review {
        at: StepRef,
        decisions: Vec<Decision>,
        closed: bool,
        /// The document a rewrite made, by its hash.
        rewritten: Option<String>,
        /// Of whole candidates only this one is shown.
        candidate: Option<usize>,
    },
    /// Place of a finished stage.
    Stage(usize),
}

/// How an edit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Undecided,
    Accepted,
    Amended,
    Rejected,
}

#[derive(Debug, Default)]
pub struct PatchDoc {
    pub diff: Diff,
    /// Edit numbers (from 0, as in the review) of each change group.
    pub group_edits: Vec<Vec<usize>>,
    pub standings: Vec<Standing>,
    /// Why an edit changes nothing, by edit; empty when it applies.
    pub trouble: Vec<String>,
    /// Control and invisible characters in the text of each edit: applied, but not shown.
    pub hidden: Vec<usize>,
}

/// Unchanged lines shown before and after a change.
pub const CONTEXT: usize = 3;
/// Fewer unchanged lines than this are not worth folding.
const FOLDED: usize = 4;

/// A row of the diff as it is read; lines are places in [`Diff::lines`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocRow {
    Line(usize),
    /// Unchanged lines that are not shown.
    Fold(Range<usize>),
}

impl DocRow {
    /// The first line of `group` is here.
    pub fn starts(&self, group: &Group) -> bool {
        *self == DocRow::Line(group.lines.start)
    }
}

impl PatchDoc {
    /// The change group that `anchor` holds in view.
    pub fn anchored(&self, anchor: Anchor, edit: usize) -> Option<usize> {
        match anchor {
            Anchor::Edit => self.group_of(edit),
            Anchor::Group(group) => Some(group).filter(|group| *group < self.diff.groups.len()),
            Anchor::Free => None,
        }
    }

    /// The diff with its long unchanged parts folded, or all of it.
    pub fn rows(&self, unfolded: bool) -> Vec<DocRow> {
        let n = self.diff.lines.len();
        if unfolded || self.diff.groups.is_empty() {
            return (0..n).map(DocRow::Line).collect();
        }
        let mut rows = Vec::new();
        let mut from = 0;
        for group in &self.diff.groups {
            let before = if from == 0 { 0 } else { CONTEXT };
            fold(&mut rows, from..group.lines.start, before, CONTEXT);
            rows.extend(group.lines.clone().map(DocRow::Line));
            from = group.lines.end;
        }
        fold(&mut rows, from..n, CONTEXT, 0);
        rows
    }

    /// First change group of an edit.
    pub fn group_of(&self, edit: usize) -> Option<usize> {
        self.group_edits.iter().position(|edits| edits.contains(&edit))
    }

    pub fn count(&self, standing: Standing) -> usize {
        self.standings.iter().filter(|one| **one == standing).count()
    }
}

/// Unchanged lines with the first `before` and the last `after` of them in view.
fn fold(rows: &mut Vec<DocRow>, lines: Range<usize>, before: usize, after: usize) {
    if lines.len() < before + after + FOLDED {
        return rows.extend(lines.map(DocRow::Line));
    }
    let folded = lines.start + before..lines.end - after;
    rows.extend((lines.start..folded.start).map(DocRow::Line));
    rows.push(DocRow::Fold(folded.clone()));
    rows.extend((folded.end..lines.end).map(DocRow::Line));
}

/// How `slot` stands in `review`, after its close by what the close made of it.
pub fn standing(review: &ReviewState, slot: &ReviewEdit) -> Standing {
    match (&slot.decision, &review.closed) {
        (Decision::Undecided, None) => Standing::Undecided,
        (Decision::Undecided, Some(ReviewClose::TimedOut { policy: TimeoutPolicy::Reject })) => {
            Standing::Rejected
        }
        (Decision::Undecided, Some(_)) | (Decision::Accept, _) => Standing::Accepted,
        (Decision::Amend { .. }, _) => Standing::Amended,
        (Decision::Reject { .. }, _) => Standing::Rejected,
    }
}

/// The edit as it would be applied.
pub fn as_decided(slot: &ReviewEdit) -> Edit {
    match &slot.decision {
        Decision::Amend { content, .. } => slot.edit.amended(content),
        Decision::Undecided | Decision::Accept | Decision::Reject { .. } => slot.edit.clone(),
    }
}

impl App {
    /// The review of the shown step.
    pub fn shown_review(&self) -> Option<&ReviewState> {
        self.shown_step()?.review.as_ref()
    }

    pub fn patch_doc(&self) -> Option<Rc<PatchDoc>> {
        let step = self.shown_step()?;
        let review = step.review.as_ref()?;
        let mode = review_mode(review);
        let key = PatchKey::Review {
            at: step.at,
            decisions: review.edits.iter().map(|slot| slot.decision.clone()).collect(),
            closed: review.closed.is_some(),
            rewritten: step.rewrite.as_ref().and(step.candidate.as_ref()).map(|skill| skill.hash.clone()),
            candidate: (mode == UpdateMode::FullRewriteMinibatch).then_some(self.patch.edit),
        };
        Some(self.cached(key, || {
            let current = self.state.skill_text(&review.current_hash).unwrap_or_default();
            match mode {
                UpdateMode::Patch => of_edits(review, current),
                UpdateMode::RewriteFromSuggestions => {
                    let rewritten = step.rewrite.as_ref().and(step.candidate.as_ref());
                    of_suggestions(review, current, rewritten.map_or(current, |skill| &skill.text))
                }
                UpdateMode::FullRewriteMinibatch => of_candidates(review, current, self.patch.edit),
            }
        }))
    }

    /// What a finished stage made of the skill, or proposed to; by its place.
    pub fn stage_doc(&self, index: usize) -> Option<Rc<PatchDoc>> {
        let done = self.state.stages.get(index)?;
        let after = match done.stage.candidate().0 {
            Some(candidate) => candidate.text.as_str(),
            None => self.state.skill_text(&done.current_hash)?,
        };
        let before = self.state.skill_before_stage(index)?;
        Some(self.cached(PatchKey::Stage(index), || PatchDoc {
            diff: diff(&sanitize(before), &sanitize(after)),
            ..PatchDoc::default()
        }))
    }

    fn cached(&self, key: PatchKey, make: impl FnOnce() -> PatchDoc) -> Rc<PatchDoc> {
        let mut cache = self.patch.doc.borrow_mut();
        if let Some((cached, doc)) = cache.as_ref()
            && *cached == key
        {
            return Rc::clone(doc);
        }
        let doc = Rc::new(make());
        *cache = Some((key, Rc::clone(&doc)));
        doc
    }
}

/// What the proposals of a review are.
pub fn review_mode(review: &ReviewState) -> UpdateMode {
    review.edits.iter().find_map(|slot| slot.edit.op.mode()).unwrap_or_default()
}

/// Edits, each with the changes it makes.
fn of_edits(review: &ReviewState, current: &str) -> PatchDoc {
    let standings = standings(review);
    let kept: Vec<usize> =
        (0..standings.len()).filter(|index| standings[*index] != Standing::Rejected).collect();
    let edits: Vec<Edit> = kept.iter().map(|index| as_decided(&review.edits[*index])).collect();
    let Preview { stages, trouble: found } = preview::of(current, &edits);
    // Compared as shown: invisible characters must not make lines differ for no visible reason.
    let stages: Vec<String> = stages.iter().map(|stage| sanitize(stage)).collect();
    let texts: Vec<&str> = stages.iter().map(String::as_str).collect();
    let (diff, causes) = split_by_cause(diff(texts[0], texts[texts.len() - 1]), &texts);
    let group_edits =
        causes.into_iter().map(|edits| edits.into_iter().map(|position| kept[position]).collect()).collect();
    let mut trouble = vec![String::new(); standings.len()];
    for (index, words) in kept.iter().zip(found) {
        trouble[*index] = words;
    }
    PatchDoc { diff, group_edits, standings, trouble, hidden: hidden(review) }
}

/// Suggestions in words: what they make of the skill is known once the rewrite call has answered.
fn of_suggestions(review: &ReviewState, current: &str, rewritten: &str) -> PatchDoc {
    let diff = diff(&sanitize(current), &sanitize(rewritten));
    let group_edits = vec![Vec::new(); diff.groups.len()];
    let trouble = review.edits.iter().map(|_| String::new()).collect();
    PatchDoc { diff, group_edits, standings: standings(review), trouble, hidden: hidden(review) }
}

/// Whole documents: the selected one against the current skill. The first accepted one is taken.
fn of_candidates(review: &ReviewState, current: &str, selected: usize) -> PatchDoc {
    let standings = standings(review);
    let usable = |index: &usize| {
        standings[*index] != Standing::Rejected
            && full_rewrite(&[as_decided(&review.edits[*index])]).is_some()
    };
    let taken = (0..review.edits.len()).find(usable);
    let selected = selected.min(review.edits.len().saturating_sub(1));
    let candidate = review.edits.get(selected).and_then(|slot| full_rewrite(&[as_decided(slot)]));
    let text = candidate.map_or(current.to_owned(), |found| with_regions_of(&found.new_skill, current).0);
    let diff = diff(&sanitize(current), &sanitize(&text));
    let group_edits = vec![vec![selected]; diff.groups.len()];
    let trouble = (0..review.edits.len()).map(|index| match taken {
        _ if standings[index] == Standing::Rejected => String::new(),
        _ if !usable(&index) => "not used: it holds no text".to_owned(),
        Some(taken) if taken < index => format!("not used: candidate {} comes first", taken + 1),
        Some(_) | None => String::new(),
    });
    PatchDoc {
        diff,
        group_edits,
        trouble: trouble.collect(),
        hidden: hidden(review),
        standings: standings.clone(),
    }
}

fn standings(review: &ReviewState) -> Vec<Standing> {
    review.edits.iter().map(|slot| standing(review, slot)).collect()
}

fn hidden(review: &ReviewState) -> Vec<usize> {
    review.edits.iter().map(|slot| text::hidden(&as_decided(slot).content)).collect()
}

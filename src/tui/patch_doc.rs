//! What the Patch pane shows: the edits of a review, the diff of the candidate they make against the current
//! skill, and which change group belongs to which edit. Computed once per set of decisions.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use super::app::App;
use super::controls::patch::Anchor;
use super::line_mode::Taken;
use super::preview::{self, Preview};
use super::theme::Role;
use crate::domain::{Decision, Edit, ReviewClose, StepRef, TimeoutPolicy, UpdateMode};
use crate::event::{ReviewEdit, ReviewState};
use crate::optim::{Choice, EditLines, full_rewrite, with_regions_of};
use crate::text::{
    self, Diff, DiffLine, Grammars, Group, Highlighted, Mark, Pieces, diff, diff_ignoring_whitespace,
    sanitize, split_by_cause,
};

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
        ignore_whitespace: bool,
    },
    /// Place of a finished stage.
    Stage { index: usize, ignore_whitespace: bool },
}

/// How an edit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Undecided,
    Accepted,
    /// Accepted in part: so many of its changed lines.
    Partly {
        taken: usize,
        of: usize,
    },
    /// Accepted with text that is no selection of its lines.
    Amended,
    Rejected,
}

impl Standing {
    /// How it reads in front of an edit.
    pub fn mark(self) -> (&'static str, Role) {
        let taken = match self {
            Standing::Undecided => Taken::Undecided,
            Standing::Accepted => Taken::All,
            Standing::Partly { .. } => Taken::Part,
            Standing::Amended => Taken::ByHand,
            Standing::Rejected => Taken::None,
        };
        taken.mark()
    }

    /// At least part of it goes into the text.
    pub fn is_accepted(self) -> bool {
        matches!(self, Standing::Accepted | Standing::Partly { .. } | Standing::Amended)
    }
}

/// How the rows of a diff are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowLayout {
    /// Unchanged lines far from a change are shown.
    pub unfolded: bool,
    /// Old and new side by side.
    pub split: bool,
}

#[derive(Debug, Default)]
pub struct PatchDoc {
    pub diff: Diff,
    /// Both sides as the lines of the diff count them, for their syntax.
    pub old: Highlighted,
    pub new: Highlighted,
    /// Rows by [`RowLayout`], made when first asked for.
    rows: [OnceCell<Vec<DocRow>>; 4],
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
    /// Side by side; an unchanged line is both.
    Pair {
        old: Option<usize>,
        new: Option<usize>,
    },
    /// Unchanged lines that are not shown.
    Fold(Range<usize>),
}

impl DocRow {
    /// The first line of `group` is here.
    pub fn starts(&self, group: &Group) -> bool {
        let start = group.lines.start;
        match self {
            DocRow::Line(line) => *line == start,
            DocRow::Pair { old, new } => *old == Some(start) || (old.is_none() && *new == Some(start)),
            DocRow::Fold(_) => false,
        }
    }
}

impl PatchDoc {
    fn comparing(compare: Compare, old: &str, new: &str) -> Self {
        Self {
            diff: compare(old, new),
            old: Highlighted::new(old),
            new: Highlighted::new(new),
            ..Self::default()
        }
    }

    /// What the pieces of a line are.
    pub fn syntax(&self, grammars: &Grammars, line: &DiffLine) -> Pieces {
        let (side, number) = match line.mark {
            Mark::Removed => (&self.old, line.old),
            Mark::Same | Mark::Added => (&self.new, line.new),
        };
        number.map_or_else(Pieces::new, |number| side.line(grammars, number - 1))
    }

    /// The change group that `anchor` holds in view.
    pub fn anchored(&self, anchor: Anchor, edit: usize) -> Option<usize> {
        match anchor {
            Anchor::Edit => self.group_of(edit),
            Anchor::Group(group) => Some(group).filter(|group| *group < self.diff.groups.len()),
            Anchor::Free => None,
        }
    }

    /// The diff with its long unchanged parts folded, or all of it.
    pub fn rows(&self, layout: RowLayout) -> &[DocRow] {
        let place = usize::from(layout.unfolded) + 2 * usize::from(layout.split);
        self.rows[place].get_or_init(|| {
            let n = self.diff.lines.len();
            let rows = match layout.unfolded || self.diff.groups.is_empty() {
                true => (0..n).map(DocRow::Line).collect(),
                false => folded(&self.diff, CONTEXT),
            };
            if layout.split { side_by_side(&self.diff, rows) } else { rows }
        })
    }

    /// The row that shows a line of the diff, as it is or among folded ones.
    pub fn row_of(&self, layout: RowLayout, line: usize) -> Option<usize> {
        self.rows(layout).iter().position(|row| match row {
            DocRow::Line(place) => *place == line,
            DocRow::Pair { old, new } => *old == Some(line) || *new == Some(line),
            DocRow::Fold(lines) => lines.contains(&line),
        })
    }

    /// First change group of an edit.
    pub fn group_of(&self, edit: usize) -> Option<usize> {
        self.group_edits.iter().position(|edits| edits.contains(&edit))
    }

    pub fn count(&self, wanted: impl Fn(&Standing) -> bool) -> usize {
        self.standings.iter().filter(|one| wanted(one)).count()
    }
}

/// The rows of `diff` with `context` unchanged lines around its changes.
pub fn folded(diff: &Diff, context: usize) -> Vec<DocRow> {
    let mut rows = Vec::new();
    let mut from = 0;
    for group in &diff.groups {
        let before = if from == 0 { 0 } else { context };
        fold(&mut rows, from..group.lines.start, before, context);
        rows.extend(group.lines.clone().map(DocRow::Line));
        from = group.lines.end;
    }
    fold(&mut rows, from..diff.lines.len(), context, 0);
    rows
}

/// Removed and added lines of a group in pairs, in their order.
fn side_by_side(diff: &Diff, rows: Vec<DocRow>) -> Vec<DocRow> {
    let mut out = Vec::with_capacity(rows.len());
    let mut groups = diff.groups.iter().peekable();
    for row in rows {
        let DocRow::Line(line) = row else {
            out.push(row);
            continue;
        };
        if diff.lines[line].mark == Mark::Same {
            out.push(DocRow::Pair { old: Some(line), new: Some(line) });
        } else if let Some(group) = groups.next_if(|group| group.lines.start == line) {
            let with = |mark| group.lines.clone().filter(move |line| diff.lines[*line].mark == mark);
            let (mut old, mut new) = (with(Mark::Removed), with(Mark::Added));
            loop {
                match (old.next(), new.next()) {
                    (None, None) => break,
                    (old, new) => out.push(DocRow::Pair { old, new }),
                }
            }
        }
    }
    out
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

/// How an edit stands by a decision, after the close of its review by what the close made of it.
pub fn standing_of(
    edit: &Edit,
    decision: &Decision,
    closed: Option<&ReviewClose>,
    current: &str,
) -> Standing {
    match (decision, closed) {
        (Decision::Undecided, None) => Standing::Undecided,
        (Decision::Undecided, Some(ReviewClose::TimedOut { policy: TimeoutPolicy::Reject })) => {
            Standing::Rejected
        }
        (Decision::Undecided, Some(_)) | (Decision::Accept, _) => Standing::Accepted,
        (Decision::Reject { .. }, _) => Standing::Rejected,
        (Decision::Amend { .. }, _) => {
            let Some(lines) = EditLines::of(edit, current) else { return Standing::Amended };
            let Choice::Lines(taken) = lines.choice(decision) else { return Standing::Amended };
            let of = lines.changed().count();
            match lines.changed().filter(|place| taken[*place]).count() {
                taken if taken == of => Standing::Accepted,
                taken => Standing::Partly { taken, of },
            }
        }
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
            ignore_whitespace: self.patch.ignore_whitespace,
        };
        let compare = self.comparison();
        Some(self.cached(key, || {
            let current = self.state.skill_text(&review.current_hash).unwrap_or_default();
            match mode {
                UpdateMode::Patch => of_edits(review, current, compare),
                UpdateMode::RewriteFromSuggestions => {
                    let rewritten = step.rewrite.as_ref().and(step.candidate.as_ref());
                    let rewritten = rewritten.map_or(current, |skill| &skill.text);
                    of_suggestions(review, current, rewritten, compare)
                }
                UpdateMode::FullRewriteMinibatch => of_candidates(review, current, self.patch.edit, compare),
            }
        }))
    }

    /// What a finished stage made of the skill, or proposed to; by its place.
    pub fn stage_doc(&self, index: usize) -> Option<Rc<PatchDoc>> {
        let done = self.state.stages.get(index)?;
        let key = PatchKey::Stage { index, ignore_whitespace: self.patch.ignore_whitespace };
        // What it is compared with is looked for in the whole run.
        if let Some(doc) = self.kept(&key) {
            return Some(doc);
        }
        let after = match done.stage.candidate().0 {
            Some(candidate) => candidate.text.as_str(),
            None => self.state.skill_text(&done.current_hash)?,
        };
        let before = self.state.skill_before_stage(index)?;
        let compare = self.comparison();
        Some(self.cached(key, || PatchDoc::comparing(compare, &sanitize(before), &sanitize(after))))
    }

    fn comparison(&self) -> Compare {
        if self.patch.ignore_whitespace { diff_ignoring_whitespace } else { diff }
    }

    fn kept(&self, key: &PatchKey) -> Option<Rc<PatchDoc>> {
        let cache = self.patch.doc.borrow();
        cache.as_ref().filter(|(made_of, _)| made_of == key).map(|(_, doc)| Rc::clone(doc))
    }

    fn cached(&self, key: PatchKey, make: impl FnOnce() -> PatchDoc) -> Rc<PatchDoc> {
        if let Some(doc) = self.kept(&key) {
            return doc;
        }
        let doc = Rc::new(make());
        *self.patch.doc.borrow_mut() = Some((key, Rc::clone(&doc)));
        doc
    }
}

/// What the proposals of a review are.
pub fn review_mode(review: &ReviewState) -> UpdateMode {
    review.edits.iter().find_map(|slot| slot.edit.op.mode()).unwrap_or_default()
}

type Compare = fn(&str, &str) -> Diff;

/// Edits, each with the changes it makes.
fn of_edits(review: &ReviewState, current: &str, compare: Compare) -> PatchDoc {
    let standings = standings(review, current);
    let kept: Vec<usize> =
        (0..standings.len()).filter(|index| standings[*index] != Standing::Rejected).collect();
    let edits: Vec<Edit> = kept.iter().map(|index| as_decided(&review.edits[*index])).collect();
    let Preview { stages, trouble: found } = preview::of(current, &edits);
    // Compared as shown: invisible characters must not make lines differ for no visible reason.
    let stages: Vec<String> = stages.iter().map(|stage| sanitize(stage)).collect();
    let texts: Vec<&str> = stages.iter().map(String::as_str).collect();
    let whole = PatchDoc::comparing(compare, texts[0], texts[texts.len() - 1]);
    let (diff, causes) = split_by_cause(whole.diff, &texts);
    let group_edits =
        causes.into_iter().map(|edits| edits.into_iter().map(|position| kept[position]).collect()).collect();
    let mut trouble = vec![String::new(); standings.len()];
    for (index, words) in kept.iter().zip(found) {
        trouble[*index] = words;
    }
    PatchDoc {
        diff,
        group_edits,
        standings,
        trouble,
        hidden: hidden(review),
        old: whole.old,
        new: whole.new,
        ..PatchDoc::default()
    }
}

/// Suggestions in words: what they make of the skill is known once the rewrite call has answered.
fn of_suggestions(review: &ReviewState, current: &str, rewritten: &str, compare: Compare) -> PatchDoc {
    let whole = PatchDoc::comparing(compare, &sanitize(current), &sanitize(rewritten));
    let group_edits = vec![Vec::new(); whole.diff.groups.len()];
    let trouble = review.edits.iter().map(|_| String::new()).collect();
    PatchDoc { group_edits, standings: standings(review, current), trouble, hidden: hidden(review), ..whole }
}

/// Whole documents: the selected one against the current skill. The first accepted one is taken.
fn of_candidates(review: &ReviewState, current: &str, selected: usize, compare: Compare) -> PatchDoc {
    let standings = standings(review, current);
    let usable = |index: &usize| {
        standings[*index] != Standing::Rejected
            && full_rewrite(&[as_decided(&review.edits[*index])]).is_some()
    };
    let taken = (0..review.edits.len()).find(usable);
    let selected = selected.min(review.edits.len().saturating_sub(1));
    let candidate = review.edits.get(selected).and_then(|slot| full_rewrite(&[as_decided(slot)]));
    let text = candidate.map_or(current.to_owned(), |found| with_regions_of(&found.new_skill, current).0);
    let whole = PatchDoc::comparing(compare, &sanitize(current), &sanitize(&text));
    let group_edits = vec![vec![selected]; whole.diff.groups.len()];
    let trouble = (0..review.edits.len()).map(|index| match taken {
        _ if standings[index] == Standing::Rejected => String::new(),
        _ if !usable(&index) => "not used: it holds no text".to_owned(),
        Some(taken) if taken < index => format!("not used: candidate {} comes first", taken + 1),
        Some(_) | None => String::new(),
    });
    PatchDoc {
        group_edits,
        trouble: trouble.collect(),
        hidden: hidden(review),
        standings: standings.clone(),
        ..whole
    }
}

fn standings(review: &ReviewState, current: &str) -> Vec<Standing> {
    let stands = |slot: &ReviewEdit| standing_of(&slot.edit, &slot.decision, review.closed.as_ref(), current);
    review.edits.iter().map(stands).collect()
}

fn hidden(review: &ReviewState) -> Vec<usize> {
    review.edits.iter().map(|slot| text::hidden(&as_decided(slot).content)).collect()
}

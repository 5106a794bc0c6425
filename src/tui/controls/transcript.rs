//! Controls of the transcript of one rollout, or of two side by side.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use crate::tui::action::{Action, Spec, rows};
use crate::tui::app::{App, Scroll};
use crate::tui::comparison::ComparisonCache;
use crate::tui::controls::global::GlobalAction;
use crate::tui::layout::Pane;
use crate::tui::msg::Effect;
use crate::tui::row_index::ResultRef;
use crate::tui::rows::{Row, RowBody, RowId};
use crate::tui::transcript_doc::{BlockKind, Look, TranscriptDoc};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TranscriptAction {
    Fold,
    FoldTools,
    NextTurn,
    PreviousTurn,
    Raw,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Transcript TranscriptAction:
    Fold          "transcript.fold"      "fold"      ["t"]              None, false, App::reads_one, "fold or show the prompt, tool call or thoughts at hand";
    FoldTools     "transcript.fold-tools" "tools"    ["T"]              None, false, App::reads_one, "fold or show all tool calls";
    NextTurn      "transcript.next-turn" "turn"      ["}"]              None, false, App::reads_one, "next turn";
    PreviousTurn  "transcript.prev-turn" "previous turn" ["{"]           None, false, App::reads_one, "turn before";
    Raw           "transcript.raw"       "raw"       ["v"]              None, false, App::reads_one, "the exact text, what is hidden as \\x1b, or back";
};

pub const HINTS: &[Action] = &[
    Action::Transcript(TranscriptAction::Fold),
    Action::Transcript(TranscriptAction::NextTurn),
    Action::Global(GlobalAction::Filter),
    Action::Global(GlobalAction::NextMatch),
    Action::Transcript(TranscriptAction::Raw),
    Action::Global(GlobalAction::Copy),
    Action::Global(GlobalAction::CopyMore),
    Action::Global(GlobalAction::Back),
];

#[derive(Clone, Debug)]
pub struct TranscriptView {
    pub scroll: Scroll,
    /// Keep the end of a streaming reply in view.
    pub follow: bool,
    pub look: Look,
    /// The block gone to last.
    pub(in crate::tui) block: Option<usize>,
    /// The match gone to last.
    pub(in crate::tui) found: Option<(usize, Range<usize>)>,
    /// Two results in the place of one.
    pub compared: Option<[ResultRef; 2]>,
    /// Where leaving it leads.
    pub(in crate::tui) opened_from: Pane,
    /// As last drawn.
    pub(in crate::tui) columns: Cell<usize>,
    doc: RefCell<Option<(DocKey, Rc<TranscriptDoc>)>>,
    pub(in crate::tui) comparison: ComparisonCache,
}

/// What a laid-out transcript was made of.
#[derive(Clone, Debug, PartialEq)]
struct DocKey {
    row: RowId,
    /// Of a call: how much has come, in which attempt.
    received: (usize, u32, bool),
    look: Look,
    columns: usize,
}

impl Default for TranscriptView {
    fn default() -> Self {
        Self {
            scroll: Scroll::default(),
            follow: true,
            look: Look::default(),
            block: None,
            found: None,
            compared: None,
            opened_from: Pane::Rollouts,
            columns: Cell::new(80),
            doc: RefCell::default(),
            comparison: ComparisonCache::default(),
        }
    }
}

impl TranscriptView {
    /// Back to the beginning of whatever is shown next.
    pub(in crate::tui) fn rewind(&mut self) {
        self.scroll.top = 0;
        self.follow = true;
        self.look.toggled.clear();
        (self.block, self.found) = (None, None);
        self.compared = None;
    }

    /// The places of results mean nothing any more.
    pub(in crate::tui) fn forget_results(&mut self) {
        self.compared = None;
        self.doc = RefCell::default();
        self.comparison = ComparisonCache::default();
    }
}

impl App {
    pub(in crate::tui) fn act_transcript(&mut self, action: TranscriptAction) -> Vec<Effect> {
        match action {
            TranscriptAction::Fold => self.fold_block(),
            TranscriptAction::FoldTools => {
                self.transcript.look.tools_open = !self.transcript.look.tools_open;
                self.transcript.look.toggled.clear();
            }
            TranscriptAction::NextTurn => self.go_to_turn(true),
            TranscriptAction::PreviousTurn => self.go_to_turn(false),
            TranscriptAction::Raw => {
                self.transcript.look.raw = !self.transcript.look.raw;
                self.transcript.look.toggled.clear();
                (self.transcript.block, self.transcript.found) = (None, None);
            }
        }
        Vec::new()
    }

    /// One transcript, not two beside each other.
    pub fn reads_one(&self) -> bool {
        self.transcript.compared.is_none()
    }

    pub(in crate::tui) fn move_in_transcript(&mut self, lines: isize) {
        if self.transcript.compared.is_none() {
            let (total, visible) = (self.transcript_doc().lines.len(), self.transcript.scroll.extent.get().1);
            self.transcript.scroll.extent.set((total, visible));
        }
        self.transcript.scroll.by(lines);
        self.transcript.follow = lines > 0 && self.transcript.scroll.at_end();
        self.transcript.block = None;
    }

    pub(in crate::tui) fn shown_row(&self) -> Option<Row<'_>> {
        let rows = self.rows();
        rows.get(self.selected_row(&rows))
    }

    /// The selected row, laid out as it is looked at; kept until something of it changes.
    pub(in crate::tui) fn transcript_doc(&self) -> Rc<TranscriptDoc> {
        let Some(row) = self.shown_row() else { return Rc::default() };
        let view = &self.transcript;
        let received = match row.body {
            RowBody::Call(_, call) => (
                call.received,
                call.attempt,
                matches!(call.phase, crate::tui::live::CallPhase::Retrying { .. }),
            ),
            RowBody::Done(..) | RowBody::Missing(..) => (0, 0, false),
        };
        let key = DocKey { row: row.id(), received, look: view.look.clone(), columns: view.columns.get() };
        if let Some((made_of, doc)) = &*view.doc.borrow()
            && *made_of == key
        {
            return Rc::clone(doc);
        }
        let doc = Rc::new(TranscriptDoc::of(&row.body, &view.look, key.columns));
        if let Ok(mut cached) = view.doc.try_borrow_mut() {
            *cached = Some((key, Rc::clone(&doc)));
        }
        doc
    }

    /// First line in view.
    pub(in crate::tui) fn transcript_top(&self) -> usize {
        let (total, visible) = self.transcript.scroll.extent.get();
        let end = total.saturating_sub(visible);
        let streams =
            self.transcript.follow && matches!(self.shown_row().map(|row| row.body), Some(RowBody::Call(..)));
        if streams { end } else { self.transcript.scroll.top.min(end) }
    }

    /// The block that a fold concerns: the one gone to or the next that folds, else the first in view, else the last above.
    pub(in crate::tui) fn block_at_hand(&self) -> Option<usize> {
        let doc = self.transcript_doc();
        let folds = |block: &usize| doc.blocks.get(*block).is_some_and(|block| block.kind.folds());
        if let Some(block) = self.transcript.block.and_then(|from| (from..doc.blocks.len()).find(folds)) {
            return Some(block);
        }
        let (top, visible) = (self.transcript_top(), self.transcript.scroll.extent.get().1.max(1));
        let in_view = (top..top + visible).filter_map(|line| doc.block_at(line)).find(folds);
        in_view.or_else(|| (0..doc.blocks.len()).rev().find(folds))
    }

    fn fold_block(&mut self) {
        let Some(block) = self.block_at_hand() else { return };
        let toggled = &mut self.transcript.look.toggled;
        if !toggled.remove(&block) {
            toggled.insert(block);
        }
        self.transcript.block = Some(block);
    }

    fn go_to_turn(&mut self, forward: bool) {
        let doc = self.transcript_doc();
        let turns: Vec<usize> =
            (0..doc.blocks.len()).filter(|block| doc.blocks[*block].kind != BlockKind::Fact).collect();
        let here = self.transcript.block.or_else(|| doc.block_at(self.transcript_top()));
        let next = match (here, forward) {
            (Some(here), true) => turns.iter().find(|block| **block > here),
            (Some(here), false) => turns.iter().rev().find(|block| **block < here),
            (None, _) => turns.first(),
        };
        let Some(next) = next.copied() else { return };
        self.show_transcript_line(doc.line_of(next), 0);
        self.transcript.block = Some(next);
    }

    /// Brings a line into view, `above` lines below the top.
    fn show_transcript_line(&mut self, line: usize, above: usize) {
        let total = self.transcript_doc().lines.len();
        let visible = self.transcript.scroll.extent.get().1;
        self.transcript.scroll.extent.set((total, visible));
        self.transcript.scroll.top = line.saturating_sub(above).min(total.saturating_sub(visible));
        self.transcript.follow = false;
    }

    /// Goes to the next place that is searched for: (which of them, of how many). A fold over it opens.
    pub(in crate::tui) fn search_transcript(&mut self, forward: bool) -> Option<(usize, usize)> {
        let doc = self.transcript_doc();
        let matches = doc.matches(&self.search.as_ref()?.pattern);
        let last = matches.len().checked_sub(1)?;
        let here = self.transcript.found.as_ref().map(|(block, range)| (*block, range.start));
        let place = |found: &(usize, Range<usize>)| (found.0, found.1.start);
        let chosen = match (here, forward) {
            (None, true) => 0,
            (None, false) => last,
            (Some(here), true) => matches.iter().position(|found| place(found) > here).unwrap_or(0),
            (Some(here), false) => matches.iter().rposition(|found| place(found) < here).unwrap_or(last),
        };
        let (block, range) = matches[chosen].clone();
        if doc.blocks[block].folded {
            self.transcript.block = Some(block);
            self.fold_block();
        }
        let line = self.transcript_doc().line_of_text(block, range.start);
        let half = self.transcript.scroll.extent.get().1 / 2;
        self.show_transcript_line(line, half);
        self.transcript.found = Some((block, range));
        Some((chosen + 1, matches.len()))
    }

    pub(in crate::tui) fn copied_from_transcript(&self) -> String {
        match self.shown_row().map(|row| row.body) {
            Some(RowBody::Done(_, rollout)) => rollout.reply.clone(),
            Some(RowBody::Missing(_, error)) => error.to_owned(),
            Some(RowBody::Call(_, call)) => call.text.clone(),
            None => String::new(),
        }
    }

    /// Item, score, prompts, turns and reply, for somebody who was not there.
    pub(in crate::tui) fn copied_transcript(&self) -> String {
        let Some(row) = self.shown_row() else { return String::new() };
        let mut out = format!("item: {} ({})\n", row.item, row.group);
        if let RowBody::Done(_, rollout) = row.body {
            let score = &rollout.score;
            out.push_str(&format!("score: hard {:.3}, soft {:.3}\n", score.hard, score.soft));
        }
        let look = Look { raw: false, ..Look::default() };
        for block in TranscriptDoc::of(&row.body, &look, usize::MAX).blocks {
            match block.kind {
                BlockKind::Fact => out.push_str(&format!("{}: {}\n", block.title.trim_end(), block.text)),
                _ => out.push_str(&format!("\n## {}\n\n{}\n", block.title, block.text)),
            }
        }
        out
    }
}

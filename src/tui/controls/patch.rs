//! Controls of pane 4: the proposals under review.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::domain::StageKind;
use crate::text::DiffLine;
use crate::tui::action::{Action, Spec, rows};
use crate::tui::app::{App, Scroll};
use crate::tui::controls::global::GlobalAction;
use crate::tui::layout::Pane;
use crate::tui::line_mode::{LineDoc, LineKey, LineMode};
use crate::tui::msg::Effect;
use crate::tui::panes::stage_lines;
use crate::tui::patch_doc::{CONTEXT, DocRow, PatchDoc, PatchKey, RowLayout, as_decided};
use crate::tui::search::{step, text_of};
use crate::tui::stages::Stage;
use crate::tui::steer::UndoEntry;
use crate::tui::theme::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatchAction {
    NextEdit,
    PreviousEdit,
    NextGroup,
    PreviousGroup,
    Accept,
    Reject,
    Amend,
    Mark,
    Lines,
    Comment,
    CommentStep,
    Undo,
    Redo,
    AcceptRest,
    RejectRest,
    Rationale,
    Rollouts,
    FoldContext,
    Split,
    Whitespace,
    Submit,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Patch PatchAction:
    NextEdit      "patch.next-edit"      "edit"      ["J"]              None, false, App::has_edits, "next edit";
    PreviousEdit  "patch.previous-edit"  "edit back" ["K"]              None, false, App::has_edits, "previous edit";
    NextGroup     "patch.next-change"    "change"    ["}"]              None, false, App::has_edits, "next change group of the diff";
    PreviousGroup "patch.previous-change" "change back" ["{"]           None, false, App::has_edits, "previous change group";
    Accept        "patch.accept"         "accept"    ["a"]              Some("decide --accept"), true, App::can_decide, "accept this edit";
    Reject        "patch.reject"         "reject"    ["x"]              Some("decide --reject"), true, App::can_decide, "reject this edit, with a reason for the optimiser";
    Amend         "patch.amend"          "amend"     ["e"]              Some("decide --amend"), true, App::can_decide, "edit the text in $EDITOR, then accept it";
    Mark          "patch.mark"           "mark"      ["space"]          Some("decide"), true, App::can_decide, "next mark: edit; in line mode line or change group";
    Lines         "patch.lines"          "lines"     ["V"]              None, false, App::has_edits, "choose single lines of this edit, or back";
    Comment       "patch.comment"        "comment"   ["c"]              Some("comment"), true, App::can_decide, "tell the optimiser something about this edit";
    CommentStep   "patch.comment-step"   "comment on step" ["C"]        Some("comment"), true, App::can_decide, "tell the optimiser something about the step";
    Undo          "patch.undo"           "undo"      ["u"]              Some("decide --undo"), true, App::can_undo, "take the last decision back";
    Redo          "patch.redo"           "redo"      ["ctrl-r"]         Some("decide"), true, App::can_redo, "do again what was taken back";
    AcceptRest    "patch.accept-rest"    "accept all" ["A"]             None, true, App::can_decide, "accept all undecided edits";
    RejectRest    "patch.reject-rest"    "reject all" ["X"]             None, true, App::can_decide, "reject all undecided edits";
    Rationale     "patch.rationale"      "why"       ["r"]              None, false, App::has_edits, "show why, and the items that motivated the edit";
    Rollouts      "patch.rollouts"       "rollouts"  ["i"]              None, false, App::has_edits, "the rollouts behind the edit; esc comes back";
    FoldContext   "patch.fold"           "context"   ["t"]              None, false, App::has_diff, "show or fold unchanged lines";
    Split         "patch.split"          "split"     ["s"]              None, false, App::has_diff, "old and new side by side, or in one column";
    Whitespace    "patch.whitespace"     "white space" ["w"]            None, false, App::has_diff, "ignore or show changes of white space alone";
    Submit        "patch.submit"         "submit"    ["enter"]          Some("submit"), true, App::can_decide, "submit the decisions: the gate measures the result";
};

pub const HINTS: &[Action] = &[
    Action::Patch(PatchAction::Accept),
    Action::Patch(PatchAction::Reject),
    Action::Patch(PatchAction::Mark),
    Action::Patch(PatchAction::Amend),
    Action::Patch(PatchAction::Submit),
    Action::Patch(PatchAction::NextEdit),
    Action::Patch(PatchAction::Undo),
    Action::Patch(PatchAction::Rationale),
    Action::Patch(PatchAction::Rollouts),
    Action::Patch(PatchAction::Lines),
    Action::Patch(PatchAction::Comment),
    Action::Patch(PatchAction::NextGroup),
    Action::Patch(PatchAction::AcceptRest),
    Action::Patch(PatchAction::RejectRest),
    Action::Patch(PatchAction::Split),
    Action::Patch(PatchAction::FoldContext),
    Action::Global(GlobalAction::Down),
    Action::Global(GlobalAction::OlderStep),
];

/// What the diff is scrolled to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anchor {
    /// The first change of the selected edit.
    #[default]
    Edit,
    /// A change group.
    Group(usize),
    /// Where somebody scrolled.
    Free,
}

/// Columns of the diff from which both sides have room.
pub const SPLIT_FROM: u16 = 90;

#[derive(Default)]
pub struct PatchView {
    pub edit: usize,
    pub anchor: Anchor,
    /// Holds for [`Anchor::Free`].
    pub scroll: Scroll,
    /// First row as last drawn: only the view knows it.
    pub drawn_top: Cell<usize>,
    /// Unchanged lines far from a change are shown.
    pub unfolded: bool,
    /// Why and from which items is shown.
    pub rationale: bool,
    /// Old and new side by side, where there is room.
    pub split: bool,
    /// Columns the diff had when last drawn.
    pub drawn_columns: Cell<u16>,
    pub ignore_whitespace: bool,
    /// Line that a search went to: of the diff, or of the text of a stage.
    pub found: Option<usize>,
    /// Single lines of the selected edit are chosen.
    pub line_mode: Option<LineMode>,
    pub undo: Vec<UndoEntry>,
    /// What was taken back and can be done again.
    pub redo: Vec<UndoEntry>,
    pub line_doc: RefCell<Option<(LineKey, Rc<LineDoc>)>>,
    pub doc: RefCell<Option<(PatchKey, Rc<PatchDoc>)>>,
}

impl App {
    pub(in crate::tui) fn act_patch(&mut self, action: PatchAction) -> Vec<Effect> {
        if matches!(action, PatchAction::FoldContext | PatchAction::Split | PatchAction::Whitespace) {
            // They are about the whole diff.
            self.patch.line_mode = None;
        }
        match action {
            PatchAction::NextEdit => self.select_edit(self.patch.edit.saturating_add(1)),
            PatchAction::PreviousEdit => self.select_edit(self.patch.edit.saturating_sub(1)),
            PatchAction::NextGroup if self.patch.line_mode.is_some() => self.move_to_group(true),
            PatchAction::PreviousGroup if self.patch.line_mode.is_some() => self.move_to_group(false),
            PatchAction::NextGroup => self.select_group(true),
            PatchAction::PreviousGroup => self.select_group(false),
            PatchAction::Accept => return self.accept(),
            PatchAction::Reject => self.ask_reason(vec![self.patch.edit]),
            PatchAction::Amend => return self.amend(),
            PatchAction::Mark => return self.cycle_mark(),
            PatchAction::Lines => self.toggle_line_mode(),
            PatchAction::Comment => self.ask_comment(Some(self.patch.edit)),
            PatchAction::CommentStep => self.ask_comment(None),
            PatchAction::Undo => return self.undo(),
            PatchAction::Redo => return self.redo(),
            PatchAction::AcceptRest => return self.accept_rest(),
            PatchAction::RejectRest => self.ask_reason(self.undecided()),
            PatchAction::Rationale => self.patch.rationale = !self.patch.rationale,
            PatchAction::FoldContext => {
                self.patch.unfolded = !self.patch.unfolded;
                self.patch.anchor = Anchor::Edit;
            }
            PatchAction::Rollouts => self.show_motives(),
            PatchAction::Split => self.flip_split(),
            PatchAction::Whitespace => {
                self.patch.ignore_whitespace = !self.patch.ignore_whitespace;
                self.patch.anchor = Anchor::Edit;
            }
            PatchAction::Submit => self.confirm_submit(),
        }
        Vec::new()
    }

    fn flip_split(&mut self) {
        self.patch.split = !self.patch.split;
        let columns = self.patch.drawn_columns.get();
        if self.patch.split && columns < SPLIT_FROM {
            let zoom = self.press_for(Action::Global(GlobalAction::Zoom));
            let words =
                format!("side by side from {SPLIT_FROM} columns on; here are {columns} ({zoom} gives more)");
            self.say(Role::Warn, words);
        }
    }

    /// How the rows of the diff are laid out, as last drawn.
    pub fn row_layout(&self) -> RowLayout {
        let split = self.patch.split && self.patch.drawn_columns.get() >= SPLIT_FROM;
        RowLayout { unfolded: self.patch.unfolded, split }
    }

    pub(in crate::tui) fn search_patch(&mut self, forward: bool) -> Option<(usize, usize)> {
        if let Some(Stage::Between { epoch, kind }) = self.shown_stage() {
            return self.search_stage(epoch, kind, forward);
        }
        let doc = self.patch_doc()?;
        let pattern = &self.search.as_ref()?.pattern;
        let holds = |line: &DiffLine| {
            pattern.is_in(&line.parts.iter().map(|(_, text)| text.as_str()).collect::<String>())
        };
        let lines = doc.diff.lines.iter().enumerate();
        let matches: Vec<usize> = lines.filter(|(_, line)| holds(line)).map(|(place, _)| place).collect();
        let chosen = step(&matches, self.patch.found, forward)?;
        let line = matches[chosen];
        self.patch.line_mode = None;
        let folded = |row| matches!(doc.rows(self.row_layout()).get(row), Some(DocRow::Fold(_)));
        if doc.row_of(self.row_layout(), line).is_some_and(folded) {
            self.patch.unfolded = true;
        }
        let row = doc.row_of(self.row_layout(), line)?;
        self.go_to_found(line, row);
        Some((chosen + 1, matches.len()))
    }

    fn search_stage(&mut self, epoch: u32, kind: StageKind, forward: bool) -> Option<(usize, usize)> {
        let pattern = self.search.as_ref()?.pattern.clone();
        let matches = |app: &App| -> Vec<usize> {
            let lines = stage_lines(app, epoch, kind).into_iter().enumerate();
            lines.filter(|(_, line)| pattern.is_in(&text_of(line))).map(|(place, _)| place).collect()
        };
        let mut found = matches(self);
        if found.is_empty() && !self.patch.unfolded {
            self.patch.unfolded = true;
            found = matches(self);
            self.patch.unfolded = !found.is_empty();
        }
        let chosen = step(&found, self.patch.found, forward)?;
        self.go_to_found(found[chosen], found[chosen]);
        Some((chosen + 1, found.len()))
    }

    /// A third of the view stays above it.
    fn go_to_found(&mut self, line: usize, row: usize) {
        self.patch.found = Some(line);
        self.patch.anchor = Anchor::Free;
        self.patch.scroll.top = row.saturating_sub(self.patch.scroll.extent.get().1 / 3);
    }

    /// The rollouts that speak for the selected edit.
    fn show_motives(&mut self) {
        let slot = self.shown_review().and_then(|review| review.edits.get(self.patch.edit));
        let Some(items) = slot.map(|slot| slot.edit.motivated_by.clone()) else { return };
        if items.is_empty() {
            return self.say(Role::Warn, "which rollouts motivated this edit was not recorded");
        }
        self.rollouts.only = Some(items);
        self.rollouts.selected = None;
        self.focus(Pane::Rollouts);
    }

    pub(in crate::tui) fn move_in_patch(&mut self, lines: isize) {
        if self.chosen_lines().is_some() {
            return self.move_line_cursor(lines);
        }
        if self.patch.anchor != Anchor::Free {
            self.patch.scroll.top = self.patch.drawn_top.get();
            self.patch.anchor = Anchor::Free;
        }
        self.patch.scroll.by(lines);
    }

    pub(in crate::tui) fn select_edit(&mut self, edit: usize) {
        let last = self.shown_review().map_or(0, |review| review.edits.len().saturating_sub(1));
        let edit = edit.min(last);
        if edit != self.patch.edit {
            self.patch.line_mode = self.patch.line_mode.map(|_| LineMode::default());
        }
        (self.patch.edit, self.patch.anchor) = (edit, Anchor::Edit);
    }

    /// The change group after or before the one in view; its edit becomes the selected one.
    fn select_group(&mut self, forward: bool) {
        let Some(doc) = self.patch_doc() else { return };
        let in_view = doc.anchored(self.patch.anchor, self.patch.edit);
        let next = match (in_view, self.patch.anchor, forward) {
            (Some(group), _, true) => Some(group + 1),
            (Some(group), _, false) => group.checked_sub(1),
            (None, Anchor::Free, _) => {
                let here = self.patch.scroll.top + CONTEXT;
                let rows = doc.rows(self.row_layout());
                let starts =
                    doc.diff.groups.iter().filter_map(|group| rows.iter().position(|row| row.starts(group)));
                let starts: Vec<usize> = starts.collect();
                match forward {
                    true => starts.iter().position(|start| *start > here),
                    false => starts.iter().take_while(|start| **start < here).count().checked_sub(1),
                }
            }
            (None, _, _) => forward.then_some(0),
        };
        let Some(group) = next.filter(|group| *group < doc.diff.groups.len()) else { return };
        let edits = &doc.group_edits[group];
        if let Some(edit) = edits.first().filter(|_| !edits.contains(&self.patch.edit)) {
            self.patch.edit = *edit;
        }
        self.patch.anchor = Anchor::Group(group);
    }

    pub(in crate::tui) fn copied_from_patch(&self) -> String {
        match self.shown_stage() {
            Some(Stage::Between { epoch, kind }) => self.stage_text(epoch, kind),
            Some(Stage::Baseline | Stage::Step(_) | Stage::FinalSelection | Stage::Test) | None => self
                .shown_review()
                .and_then(|review| review.edits.get(self.patch.edit))
                .map(|slot| as_decided(slot).content)
                .unwrap_or_default(),
        }
    }
}

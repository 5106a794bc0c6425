//! Controls of pane 3: rollouts and optimizer calls.

use std::cell::RefCell;
use std::rc::Rc;

use crate::event::{Command, Event};
use crate::tui::action::{Action, Spec, rows};
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::layout::Pane;
use crate::tui::msg::Effect;
use crate::tui::overlay::{Confirmed, Overlay};
use crate::tui::row_filter::RowFilter;
use crate::tui::row_index::{GROUPS, ResultRef, RowIndex, Sort, Source};
use crate::tui::rows::{RowBody, RowId};
use crate::tui::stages::step_place;
use crate::tui::theme::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RolloutsAction {
    Open,
    FailuresOnly,
    Sort,
    Mark,
    Compare,
    Cancel,
    Requeue,
    AcceptEdit,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Rollouts RolloutsAction:
    Open          "rollouts.open"        "transcript" ["enter"]         None, false, App::has_rollouts, "open the transcript";
    FailuresOnly  "rollouts.failures"    "failures"  ["!"]              None, false, App::has_stage, "failures only, or all";
    Sort          "rollouts.sort"        "sort"      ["S"]              None, false, App::has_rollouts, "sort: newest, score, item, time, tokens";
    Mark          "rollouts.mark"        "mark"      ["space"]          None, false, App::on_result, "mark a result for a comparison";
    Compare       "rollouts.compare"     "compare"   ["="]              None, false, App::has_rollouts, "compare two marked results, or the marked and the selected one";
    Cancel        "rollouts.cancel"      "cancel"    ["x"]              Some("rollout cancel"), true, App::on_running_call, "cancel the call under way (asks first)";
    Requeue       "rollouts.requeue"     "requeue"   ["R"]              Some("rollout requeue"), true, App::on_running_call, "begin the call under way anew";
    AcceptEdit    "rollouts.accept-edit" "accept edit" ["a"]            Some("decide --accept"), true, App::shows_motives, "accept the edit that these rollouts led to, and go back to it";
};

pub const HINTS: &[Action] = &[
    Action::Rollouts(RolloutsAction::Open),
    Action::Rollouts(RolloutsAction::AcceptEdit),
    Action::Rollouts(RolloutsAction::Cancel),
    Action::Rollouts(RolloutsAction::Requeue),
    Action::Rollouts(RolloutsAction::FailuresOnly),
    Action::Rollouts(RolloutsAction::Sort),
    Action::Global(GlobalAction::Filter),
    Action::Rollouts(RolloutsAction::Mark),
    Action::Rollouts(RolloutsAction::Compare),
    Action::Global(GlobalAction::Down),
];

#[derive(Clone, Debug, Default)]
pub struct RolloutsView {
    /// `None`: the first row.
    pub selected: Option<RowId>,
    /// Where the selected row was when it was selected.
    pub(in crate::tui) place: usize,
    pub sort: Sort,
    pub filter: RowFilter,
    pub failures_only: bool,
    /// Only these items: those that an edit came from.
    pub only: Option<Vec<String>>,
    /// For a comparison; at most two, the older first.
    pub marked: Vec<ResultRef>,
    pub(in crate::tui) index: RefCell<Rc<RowIndex>>,
}

impl RolloutsView {
    /// The places of results mean nothing any more.
    pub(in crate::tui) fn forget_results(&mut self) {
        if matches!(self.selected, Some(RowId::Result(_))) {
            self.selected = None;
        }
        self.marked.clear();
        self.index = RefCell::default();
    }
}

impl App {
    pub(in crate::tui) fn act_rollouts(&mut self, action: RolloutsAction) -> Vec<Effect> {
        match action {
            RolloutsAction::Open => self.open_transcript(),
            RolloutsAction::FailuresOnly => {
                self.rollouts.failures_only = !self.rollouts.failures_only;
                self.rollouts.selected = None;
            }
            RolloutsAction::Sort => {
                self.rollouts.sort = self.rollouts.sort.next();
                self.rollouts.selected = None;
            }
            RolloutsAction::Mark => self.mark_row(),
            RolloutsAction::Compare => self.compare_marked(),
            RolloutsAction::Cancel => {
                if let Some((path, item)) = self.selected_call() {
                    self.overlay = Some(Overlay::Confirm { then: Confirmed::CancelCall { path, item } });
                }
            }
            RolloutsAction::Requeue => return self.requeue_call(),
            RolloutsAction::AcceptEdit => {
                self.rollouts.only = None;
                self.rollouts.selected = None;
                self.focus(Pane::Patch);
                return self.accept();
            }
        }
        Vec::new()
    }

    /// What is listed led to an edit under review.
    pub fn shows_motives(&self) -> bool {
        self.rollouts.only.is_some() && self.can_decide()
    }

    pub(in crate::tui) fn select_row(&mut self, by: isize) {
        let rows = self.rows();
        let Some(last) = rows.len().checked_sub(1) else { return };
        let next = self.selected_row(&rows).saturating_add_signed(by).min(last);
        let Some(id) = rows.get(next).map(|row| row.id()) else { return };
        (self.rollouts.selected, self.rollouts.place) = (Some(id), next);
        self.transcript.rewind();
    }

    /// What is filtered must be understood before it hides anything.
    pub(in crate::tui) fn filter_rollouts(&mut self, text: &str) {
        match RowFilter::parse(text, &GROUPS) {
            Ok(filter) => {
                self.rollouts.filter = filter;
                self.rollouts.selected = None;
            }
            Err(error) => self.say(Role::Warn, error.to_string()),
        }
    }

    fn open_transcript(&mut self) {
        if self.rollouts.selected.is_none() {
            self.select_row(0);
        }
        self.transcript.compared = None;
        self.transcript.opened_from = Pane::Rollouts;
        self.focus(Pane::Transcript);
    }

    fn mark_row(&mut self) {
        let Some(at) = self.selected_result() else { return };
        let marked = &mut self.rollouts.marked;
        match marked.iter().position(|one| *one == at) {
            Some(place) => {
                marked.remove(place);
            }
            None => {
                if marked.len() == 2 {
                    marked.remove(0);
                }
                marked.push(at);
            }
        }
        self.select_row(1);
    }

    fn compare_marked(&mut self) {
        let selected = self.selected_result();
        let pair = match (self.rollouts.marked.as_slice(), selected) {
            ([first, second], _) => Some([*first, *second]),
            ([one], Some(other)) if *one != other => Some([*one, other]),
            _ => None,
        };
        match pair {
            Some(pair) => self.compare(pair),
            None => self.say(Role::Warn, "compare: mark one result with space, then go to another"),
        }
    }

    /// Shows two results side by side in the place of the transcript.
    pub(in crate::tui) fn compare(&mut self, pair: [ResultRef; 2]) {
        self.transcript.rewind();
        self.transcript.compared = Some(pair);
        self.transcript.opened_from = self.arrangement.focus;
        self.focus(Pane::Transcript);
    }

    /// Shows one result of the shown stage; what the list hides would hide it too.
    pub(in crate::tui) fn open_result(&mut self, at: ResultRef) {
        let view = &mut self.rollouts;
        (view.filter, view.failures_only, view.only) = (RowFilter::default(), false, None);
        view.selected = Some(RowId::Result(at));
        self.transcript.rewind();
        self.transcript.opened_from = self.arrangement.focus;
        self.focus(Pane::Transcript);
    }

    fn selected_result(&self) -> Option<ResultRef> {
        let rows = self.rows();
        match rows.get(self.selected_row(&rows))?.id() {
            RowId::Result(at) => Some(at),
            RowId::Call(_) => None,
        }
    }

    pub fn on_result(&self) -> bool {
        self.selected_result().is_some()
    }

    /// Path and item of the selected call, where it is one for an item.
    fn selected_call(&self) -> Option<(String, String)> {
        let rows = self.rows();
        match rows.get(self.selected_row(&rows))?.body {
            RowBody::Call(path, call) if !call.item.is_empty() => Some((path.to_owned(), call.item.clone())),
            RowBody::Call(..) | RowBody::Done(..) | RowBody::Missing(..) => None,
        }
    }

    pub fn on_running_call(&self) -> bool {
        self.can_steer() && self.selected_call().is_some()
    }

    pub(in crate::tui) fn cancel_call(&mut self, path: String) -> Vec<Effect> {
        if !self.live.calls.contains_key(&path) {
            self.say(Role::Warn, "not cancelled: that call has ended");
            return Vec::new();
        }
        vec![self.send(Command::CancelRollout { path }, None, "cancel".to_owned())]
    }

    fn requeue_call(&mut self) -> Vec<Effect> {
        let Some((path, item)) = self.selected_call() else { return Vec::new() };
        self.say(Role::Dim, format!("{item}: asked again"));
        vec![self.send(Command::RequeueRollout { path }, None, "requeue".to_owned())]
    }

    /// A selected call stays selected as the result it came to.
    pub(in crate::tui) fn adopt_result(&mut self, event: &Event) {
        let Some(RowId::Call(path)) = &self.rollouts.selected else { return };
        if event.effect().is_none_or(|key| key.path != *path) {
            return;
        }
        let source = match event {
            Event::RolloutFinished { at, .. } => step_place(&self.state, at.step).map(Source::Step),
            Event::EvaluationItemFinished { eval, .. } => {
                self.state.eval_order.iter().rposition(|id| id == eval).map(Source::Eval)
            }
            _ => None,
        };
        if let Some(at) = source.and_then(|source| self.newest_result(source)) {
            self.rollouts.selected = Some(RowId::Result(at));
        }
    }
}

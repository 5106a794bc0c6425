//! Keys to actions, and the actions that only move about: focus, selection, scrolling.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Scope, Spec, spec};
use super::app::{Anchor, App};
use super::input::Input;
use super::keymap::{Match, Press, lookup};
use super::layout::{Class, Pane};
use super::msg::{Dirty, Effect};
use super::overlay::{Outcome, Overlay, Prompted};
use super::patch_doc::CONTEXT;
use super::stages::Stage;
use super::theme::Role;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        // These work inside every overlay and input too.
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return self.act(Action::Interrupt),
                KeyCode::Char('l') => return self.act(Action::Repaint),
                KeyCode::Char('z') => return self.act(Action::Suspend),
                _ => {}
            }
        }
        if let Some(outcome) = self.overlay_key(key) {
            return self.overlay_outcome(outcome);
        }
        let Some(press) = Press::of(key) else { return Vec::new() };
        self.presses.push(press);
        match lookup(self.arrangement.focus.scope(), &self.presses) {
            Match::Prefix => Vec::new(),
            Match::None => {
                self.presses.clear();
                Vec::new()
            }
            Match::Action(action) => {
                self.presses.clear();
                match spec(action) {
                    Some(spec) if !(spec.enabled)(self) => {
                        self.refuse(spec);
                        Vec::new()
                    }
                    _ => self.act(action),
                }
            }
        }
    }

    fn refuse(&mut self, spec: &Spec) {
        let steers = spec.action.steers();
        if steers && self.identity.read_only {
            let what = if spec.scope == Scope::Patch { "decide" } else { "steer" };
            return self.say(Role::Warn, format!("read-only: attach without --read-only to {what}"));
        }
        let why = if steers && self.ended() { "the run has ended" } else { "nothing here to do that to" };
        self.say(Role::Warn, format!("{}: {why}", spec.label));
    }

    fn overlay_outcome(&mut self, outcome: Outcome) -> Vec<Effect> {
        match outcome {
            Outcome::Stay | Outcome::Close => Vec::new(),
            Outcome::Confirmed(what) => self.confirmed(what),
            Outcome::Act(action) => self.act(action),
            Outcome::Prompted(Prompted::Reject { at, edits, expect_rev }, reason) => {
                self.reject(at, &edits, &reason, expect_rev)
            }
            Outcome::Prompted(Prompted::FilterRollouts, text) => {
                self.rollouts.filter = text;
                self.rollouts.selected = None;
                Vec::new()
            }
            Outcome::Prompted(Prompted::FilterLogs, text) => {
                self.logs.filter = text;
                self.logs.follow = true;
                Vec::new()
            }
        }
    }

    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Quit => return vec![Effect::Quit],
            Action::Interrupt => {
                self.presses.clear();
                if self.overlay.take().is_none() {
                    return vec![Effect::Quit];
                }
            }
            Action::Suspend => return vec![Effect::Suspend],
            Action::Stop => self.confirm_stop(),
            Action::Pause => return self.toggle_pause(),
            Action::Help => self.overlay = Some(Overlay::Help { top: 0 }),
            Action::Palette => {
                self.overlay = Some(Overlay::Palette { input: Input::default(), selected: 0 });
            }
            Action::Back => self.back(),
            Action::NextPane => self.cycle(1),
            Action::PreviousPane => self.cycle(-1),
            Action::GoSteps => self.focus(Pane::Steps),
            Action::GoRollouts => self.focus(Pane::Rollouts),
            Action::GoPatch => self.focus(Pane::Patch),
            Action::GoGate => self.focus(Pane::Gate),
            Action::GoCurves => self.focus(Pane::Curves),
            Action::GoLogs => self.focus(Pane::Logs),
            Action::Left => self.sideways(true),
            Action::Right => self.sideways(false),
            Action::Down => self.move_by(1),
            Action::Up => self.move_by(-1),
            Action::Top => self.move_by(-(isize::MAX / 2)),
            Action::Bottom => self.move_by(isize::MAX / 2),
            Action::HalfDown => self.move_by(self.page() / 2),
            Action::HalfUp => self.move_by(-(self.page() / 2)),
            Action::PageDown => self.move_by(self.page()),
            Action::PageUp => self.move_by(-self.page()),
            Action::OlderStep => self.select_stage(1),
            Action::NewerStep => self.select_stage(-1),
            Action::Zoom => self.arrangement.zoom = !self.arrangement.zoom,
            Action::Follow => self.follow(),
            Action::FlipStrip => self.flip_strip(),
            Action::Filter => self.ask_filter(),
            Action::Copy => return self.copy(),
            Action::Repaint => self.stain(Dirty::Repaint),
            Action::OpenStep => {
                // A stage between epochs is told in full beside the patches.
                let staged = matches!(self.shown_stage(), Some(Stage::Between { .. }));
                let decided = self.shown_step().is_none_or(|step| step.gate.is_some());
                self.focus(if decided && !staged { Pane::Gate } else { Pane::Patch });
            }
            Action::OpenRollout => self.open_transcript(),
            Action::FailuresOnly => {
                self.rollouts.failures_only = !self.rollouts.failures_only;
                self.rollouts.selected = None;
            }
            Action::FoldPrompt => self.transcript.show_prompt = !self.transcript.show_prompt,
            Action::NextEdit => self.select_edit(self.patch.edit.saturating_add(1)),
            Action::PreviousEdit => self.select_edit(self.patch.edit.saturating_sub(1)),
            Action::NextGroup => self.select_group(true),
            Action::PreviousGroup => self.select_group(false),
            Action::Accept => return self.accept(),
            Action::Reject => self.ask_reason(vec![self.patch.edit]),
            Action::Amend => return self.amend(),
            Action::Undo => return self.undo(),
            Action::AcceptRest => return self.accept_rest(),
            Action::RejectRest => self.ask_reason(self.undecided()),
            Action::Rationale => self.patch.rationale = !self.patch.rationale,
            Action::FoldContext => {
                self.patch.unfolded = !self.patch.unfolded;
                self.patch.anchor = Anchor::Edit;
            }
            Action::Submit => self.confirm_submit(),
            Action::CursorLeft => self.move_cursor(-1),
            Action::CursorRight => self.move_cursor(1),
            Action::CursorReset => self.cursor = None,
        }
        Vec::new()
    }

    /// Gives the keys to `pane`, and a place on the screen if it has none.
    pub(super) fn focus(&mut self, pane: Pane) {
        self.arrangement.focus = pane;
        match pane {
            Pane::Patch | Pane::Gate | Pane::Transcript => self.arrangement.main = pane,
            Pane::Curves | Pane::Logs => self.arrangement.strip = pane,
            Pane::Steps | Pane::Rollouts => {}
        }
    }

    fn back(&mut self) {
        if self.arrangement.focus == Pane::Rollouts && !self.rollouts.filter.is_empty() {
            self.rollouts.filter.clear();
        } else if self.arrangement.focus == Pane::Logs && !self.logs.filter.is_empty() {
            self.logs.filter.clear();
        } else if self.arrangement.zoom {
            self.arrangement.zoom = false;
        } else {
            match self.arrangement.focus {
                Pane::Transcript => {
                    self.focus(Pane::Rollouts);
                    self.arrangement.main = Pane::Gate;
                }
                Pane::Steps => self.stage = None,
                _ => self.focus(Pane::Steps),
            }
        }
    }

    fn cycle(&mut self, by: isize) {
        let order: Vec<Pane> = match self.places().class {
            Class::Standard if !self.arrangement.zoom => {
                vec![Pane::Steps, Pane::Rollouts, self.arrangement.main, self.arrangement.strip]
            }
            _ => Pane::NUMBERED.to_vec(),
        };
        let at = order.iter().position(|pane| *pane == self.arrangement.focus).unwrap_or(0);
        let next = (at as isize + by).rem_euclid(order.len() as isize) as usize;
        self.focus(order[next]);
    }

    fn sideways(&mut self, left: bool) {
        let on_left = matches!(self.arrangement.focus, Pane::Steps | Pane::Rollouts);
        match (left, on_left) {
            (true, false) => self.focus(Pane::Rollouts),
            (false, true) => self.focus(self.arrangement.main),
            _ => {}
        }
    }

    fn page(&self) -> isize {
        let height = self.places().of(self.arrangement.focus).map_or(10, |rect| rect.height);
        height.saturating_sub(4).max(1) as isize
    }

    fn move_by(&mut self, lines: isize) {
        match self.arrangement.focus {
            Pane::Steps => self.select_stage(lines),
            Pane::Rollouts => self.select_row(lines),
            Pane::Transcript => {
                self.transcript.scroll.by(lines);
                self.transcript.follow = lines > 0 && self.transcript.scroll.at_end();
            }
            Pane::Patch => {
                if self.patch.anchor != Anchor::Free {
                    self.patch.scroll.top = self.patch.drawn_top.get();
                    self.patch.anchor = Anchor::Free;
                }
                self.patch.scroll.by(lines);
            }
            Pane::Gate => self.gate.by(lines),
            Pane::Logs => {
                let (total, visible) = self.logs.scroll.extent.get();
                if self.logs.follow {
                    self.logs.scroll.top = total.saturating_sub(visible);
                }
                self.logs.scroll.by(lines);
                self.logs.follow = lines > 0 && self.logs.scroll.at_end();
            }
            Pane::Curves => {}
        }
    }

    fn select_stage(&mut self, rows: isize) {
        let stages = self.stages();
        let Some(shown) = self.shown_stage() else { return };
        let at = stages.iter().position(|stage| *stage == shown).unwrap_or(0);
        let next = at.saturating_add_signed(rows).min(stages.len() - 1);
        // The newest row means "whatever is newest", so that it keeps up with the run.
        self.stage = (next > 0).then(|| stages[next]);
        self.rollouts.selected = None;
        (self.patch.edit, self.patch.anchor) = (0, Anchor::Edit);
        self.gate.top = 0;
    }

    fn select_row(&mut self, by: isize) {
        let rows = self.rows();
        let Some(last) = rows.len().checked_sub(1) else { return };
        let next = self.selected_row(&rows).saturating_add_signed(by).min(last);
        let key = rows[next].key.clone();
        self.rollouts.selected = Some(key);
        self.transcript.scroll.top = 0;
        self.transcript.follow = true;
    }

    fn open_transcript(&mut self) {
        if self.rollouts.selected.is_none() {
            self.select_row(0);
        }
        self.focus(Pane::Transcript);
    }

    pub(super) fn select_edit(&mut self, edit: usize) {
        let last = self.shown_review().map_or(0, |review| review.edits.len().saturating_sub(1));
        (self.patch.edit, self.patch.anchor) = (edit.min(last), Anchor::Edit);
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
                let rows = doc.rows(self.patch.unfolded);
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

    fn move_cursor(&mut self, by: isize) {
        let Some(last) = self.state.steps.len().checked_sub(1) else { return };
        self.cursor = Some(self.cursor.unwrap_or(last).saturating_add_signed(by).min(last));
    }

    fn follow(&mut self) {
        match self.arrangement.focus {
            Pane::Logs => self.logs.follow = !self.logs.follow,
            Pane::Transcript => self.transcript.follow = !self.transcript.follow,
            _ => {
                self.stage = None;
                self.rollouts.selected = None;
                self.say(Role::Dim, "following the newest step");
            }
        }
    }

    fn flip_strip(&mut self) {
        let was_focused = self.arrangement.focus == self.arrangement.strip;
        self.arrangement.strip = match self.arrangement.strip {
            Pane::Curves => Pane::Logs,
            _ => Pane::Curves,
        };
        if was_focused || self.places().class == Class::Compact {
            self.arrangement.focus = self.arrangement.strip;
        }
    }

    fn ask_filter(&mut self) {
        let (title, text, then) = match self.arrangement.focus {
            Pane::Logs => ("Filter logs", &self.logs.filter, Prompted::FilterLogs),
            _ => ("Filter rollouts by item", &self.rollouts.filter, Prompted::FilterRollouts),
        };
        let hint = "part of the text · empty shows all";
        self.overlay = Some(Overlay::Prompt { title: title.to_owned(), hint, input: Input::of(text), then });
    }

    fn copy(&mut self) -> Vec<Effect> {
        let text = self.copied_text();
        if text.is_empty() {
            self.say(Role::Warn, "copy: nothing here to copy");
            return Vec::new();
        }
        self.say(Role::Dim, format!("copied {} characters (OSC 52)", text.chars().count()));
        vec![Effect::Copy(text)]
    }

    fn copied_text(&self) -> String {
        use super::rows::RowBody;
        match self.arrangement.focus {
            Pane::Rollouts | Pane::Transcript => {
                let rows = self.rows();
                match rows.get(self.selected_row(&rows)).map(|row| &row.body) {
                    Some(RowBody::Done(rollout)) => rollout.reply.clone(),
                    Some(RowBody::Missing(error)) => (*error).to_owned(),
                    Some(RowBody::Call(call)) => call.text.clone(),
                    None => String::new(),
                }
            }
            Pane::Patch => match self.shown_stage() {
                Some(Stage::Between { epoch, kind }) => self.stage_text(epoch, kind),
                Some(Stage::Baseline | Stage::Step(_) | Stage::FinalSelection | Stage::Test) | None => self
                    .shown_review()
                    .and_then(|review| review.edits.get(self.patch.edit))
                    .map(|slot| super::patch_doc::as_decided(slot).content)
                    .unwrap_or_default(),
            },
            Pane::Gate | Pane::Steps => self
                .shown_step()
                .and_then(|step| step.gate.as_ref())
                .map(|gate| gate.why.clone())
                .unwrap_or_default(),
            Pane::Logs => {
                let lines = self.lines.matching(&self.logs.filter);
                lines.last().map(|line| line.text.clone()).unwrap_or_default()
            }
            Pane::Curves => String::new(),
        }
    }

    pub fn run_name(&self) -> &str {
        self.state.info.as_ref().map_or(self.run.as_str(), |info| info.name.as_str())
    }
}

//! The app: all state of the screen and `update(msg) -> effects`, pure and synchronous. It folds the run's events
//! itself; it does no IO, reads no clock and draws nothing.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use ratatui::crossterm::event::KeyEventKind;
use ratatui::layout::Rect;

use super::controls::config::ConfigView;
use super::controls::curves::CurvesView;
use super::controls::gate::GateView;
use super::controls::logs::LogsView;
use super::controls::machine::MachineView;
use super::controls::overview::OverviewView;
use super::controls::patch::PatchView;
use super::controls::rollouts::RolloutsView;
use super::controls::runs::RunsView;
use super::controls::transcript::TranscriptView;
use super::departure::Leaving;
use super::drafts::Purpose;
use super::form::LaunchForm;
use super::journal_lines::JournalLines;
use super::keymap::Keymap;
use super::layout::{Arrangement, Class, Pane, Places, place};
use super::live::LiveBoard;
use super::msg::{Dirty, Effect, Msg};
use super::overlay::Overlay;
use super::run_index::RunIndex;
use super::search::Search;
use super::services::Told;
use super::stages::Stage;
use super::steer::Pending;
use super::surface::Surface;
use super::theme::Role;
use crate::domain::{Author, ReviewMode};
use crate::event::{Client, RunState, RunStatus};
use crate::telemetry::Board;
use crate::text::Grammars;

const TOAST_MS: u64 = 8_000;

/// Who uses the client, and how.
#[derive(Clone, Debug)]
pub struct Identity {
    pub name: Author,
    pub read_only: bool,
    /// Makes this client's command ids distinct from those of others.
    pub client_id: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Link {
    /// No run is attached.
    Unattached,
    Connecting,
    Up,
    Lost {
        reason: String,
        since: u64,
    },
}

/// What the user or a slow line asks of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefs {
    /// Few bytes: sparse markers, no moving marks, no syntax colour, no mouse.
    pub low_bandwidth: bool,
    /// Nothing moves by itself.
    pub reduced_motion: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Toast {
    pub text: String,
    pub role: Role,
    pub until: u64,
}

/// A scroll position. `extent` is (lines, visible lines) as last drawn: only the view knows them.
#[derive(Clone, Debug, Default)]
pub struct Scroll {
    pub top: usize,
    pub extent: Cell<(usize, usize)>,
}

impl Scroll {
    pub fn by(&mut self, lines: isize) {
        let (total, visible) = self.extent.get();
        let last = total.saturating_sub(visible);
        self.top = self.top.min(last).saturating_add_signed(lines).min(last);
    }

    pub fn at_end(&self) -> bool {
        let (total, visible) = self.extent.get();
        self.top + visible >= total
    }
}

pub struct App {
    pub state: RunState,
    pub identity: Identity,
    pub prefs: Prefs,
    /// For syntax colour; `None` until they are loaded.
    pub grammars: Option<Arc<Grammars>>,
    pub keymap: Arc<Keymap>,
    pub surface: Surface,
    pub now: u64,
    pub size: (u16, u16),
    pub link: Link,
    /// What is shown was recorded and is played.
    pub(super) recording: bool,
    /// From the welcome line: the name before `run_started` is known, and the folder as its host knows it.
    pub run: String,
    pub run_dir: String,
    /// Folder of the attached run, if it is on this machine.
    pub attached: Option<PathBuf>,
    pub last_seq: u64,
    pub clients: Vec<Client>,
    /// The fold of the journal so far and its numbers, while a glance at its end is shown.
    pub(super) history: Option<(RunState, Board)>,
    pub live: LiveBoard,
    pub lines: JournalLines,
    /// The numbers of the run.
    pub board: Board,
    pub arrangement: Arrangement,
    /// `None`: the newest.
    pub stage: Option<Stage>,
    pub runs: RunsView,
    pub rollouts: RolloutsView,
    pub transcript: TranscriptView,
    pub patch: PatchView,
    pub gate: GateView,
    pub curves: CurvesView,
    pub machine: MachineView,
    pub logs: LogsView,
    pub config: ConfigView,
    pub overview: OverviewView,
    pub overlay: Option<Overlay>,
    pub search: Option<Search>,
    /// A launch form that was left without starting.
    pub(super) launch: Option<Box<LaunchForm>>,
    pub toast: Option<Toast>,
    pub(super) index: RefCell<RunIndex>,
    pub(super) pending: HashMap<String, Pending>,
    /// Words that no host has applied yet.
    pub(super) drafts: Vec<(Purpose, String)>,
    pub(super) leaving: Option<Leaving>,
    pub(super) commands: u64,
    pub(super) last_key_at: u64,
    dirty: Dirty,
}

impl App {
    pub fn new(identity: Identity, size: (u16, u16), now: u64) -> Self {
        Self {
            state: RunState::default(),
            identity,
            prefs: Prefs::default(),
            grammars: None,
            keymap: Arc::default(),
            surface: Surface::default(),
            now,
            size,
            link: Link::Connecting,
            recording: false,
            run: String::new(),
            run_dir: String::new(),
            attached: None,
            last_seq: 0,
            clients: Vec::new(),
            history: None,
            live: LiveBoard::default(),
            lines: JournalLines::default(),
            board: Board::default(),
            arrangement: Arrangement {
                focus: Pane::Steps,
                main: Pane::Gate,
                strip: Pane::Curves,
                zoom: false,
            },
            stage: None,
            runs: RunsView::default(),
            rollouts: RolloutsView::default(),
            transcript: TranscriptView::default(),
            patch: PatchView::default(),
            gate: GateView::default(),
            curves: CurvesView::default(),
            machine: MachineView::default(),
            logs: LogsView::default(),
            config: ConfigView::default(),
            overview: OverviewView::default(),
            overlay: None,
            search: None,
            launch: None,
            toast: None,
            index: RefCell::default(),
            pending: HashMap::new(),
            drafts: Vec::new(),
            leaving: None,
            commands: 0,
            last_key_at: 0,
            dirty: Dirty::Repaint,
        }
    }

    /// With no run: the list of runs has the screen.
    pub fn unattached(mut self) -> Self {
        self.link = Link::Unattached;
        self.focus(Pane::Runs);
        self.arrangement.zoom = true;
        self
    }

    /// One message in, the wanted effects out. Whoever drops them leaves the app waiting for answers for ever.
    pub fn update(&mut self, msg: Msg) -> Vec<Effect> {
        let mut effects = self.take(msg);
        effects.extend(self.want_series());
        effects
    }

    fn take(&mut self, msg: Msg) -> Vec<Effect> {
        // Below that nothing can be acted upon that could be seen.
        let shown = self.places().class != Class::Tiny;
        match msg {
            Msg::Tick(now) => {
                self.tick(now);
                self.look_if_due()
            }
            Msg::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
            Msg::Key(key) => {
                self.last_key_at = self.now;
                self.toast = None;
                self.stain(Dirty::Input);
                self.key(key)
            }
            Msg::Paste(text) => {
                if let Some(overlay) = self.overlay.as_mut().filter(|_| shown) {
                    overlay.paste(&text);
                    self.stain(Dirty::Input);
                }
                Vec::new()
            }
            Msg::Resize(width, height) => {
                self.size = (width, height);
                self.stain(Dirty::Repaint);
                Vec::new()
            }
            Msg::Client(event) => self.client(event),
            Msg::EditorClosed { purpose, result } => {
                self.stain(Dirty::Repaint);
                self.editor_closed(purpose, result)
            }
            Msg::Continued => {
                self.stain(Dirty::Repaint);
                Vec::new()
            }
            Msg::Mouse(event) if shown => self.mouse(event),
            Msg::Mouse(_) => Vec::new(),
            Msg::Focus(here) => {
                self.focus_changed(here);
                Vec::new()
            }
            Msg::Settings(settings) => self.use_settings(*settings),
            Msg::SettingsBroken(why) => {
                self.settings_broken(why);
                Vec::new()
            }
            Msg::FileChanged(file) => {
                self.file_changed(&file);
                Vec::new()
            }
            Msg::Said(role, text) => {
                self.say(role, text);
                Vec::new()
            }
            Msg::Panicked(what) => {
                self.lines.note(self.now, format!("internal error: {what}"));
                self.say(Role::Bad, format!("internal error, the screen goes on (8 has it): {what}"));
                Vec::new()
            }
            Msg::Told(told) => self.told(told),
            Msg::Grammars(grammars) => {
                self.grammars = Some(grammars);
                self.stain(Dirty::Data);
                Vec::new()
            }
            Msg::Switched { run } => self.switched(run),
            Msg::RoleTaken { read_only } => self.role_taken(read_only),
            Msg::NotOpened(why) => {
                self.say(Role::Bad, why);
                Vec::new()
            }
        }
    }

    fn told(&mut self, told: Told) -> Vec<Effect> {
        match told {
            Told::Series { run, series } => return self.told_series(&run, series),
            Told::Runs(runs) => return self.told_runs(runs),
            Told::Configs(files) => self.told_configs(files),
            Told::Checked { draft, result } => return self.told_checked(&draft, result),
            Told::Started(result) => return self.told_started(result),
            Told::Changes { run, result } => self.told_changes(run, result),
            Told::Retune { wanted, result } => self.told_retune(&wanted, result),
        }
        Vec::new()
    }

    /// Forgets the run so far; how the screen is arranged stays.
    fn switched(&mut self, run: PathBuf) -> Vec<Effect> {
        let mut fresh = Self::new(self.identity.clone(), self.size, self.now);
        fresh.run = run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        fresh.attached = Some(run);
        fresh.arrangement.strip = self.arrangement.strip;
        fresh.prefs = self.prefs;
        fresh.grammars = self.grammars.take();
        fresh.keymap = Arc::clone(&self.keymap);
        fresh.surface = std::mem::take(&mut self.surface);
        fresh.runs = std::mem::take(&mut self.runs);
        fresh.launch = self.launch.take();
        fresh.commands = self.commands;
        fresh.last_key_at = self.last_key_at;
        if !self.pending.is_empty() {
            fresh
                .say(Role::Warn, format!("{} to {}: not answered", self.unanswered_count(), self.run_name()));
        }
        *self = fresh;
        Vec::new()
    }

    /// How much must be drawn again; asking makes it clean.
    pub fn take_dirty(&mut self) -> Dirty {
        std::mem::take(&mut self.dirty)
    }

    pub fn dirty(&self) -> Dirty {
        self.dirty
    }

    pub(super) fn stain(&mut self, dirty: Dirty) {
        self.dirty = self.dirty.max(dirty);
    }

    pub(super) fn say(&mut self, role: Role, text: impl Into<String>) {
        self.toast = Some(Toast { text: text.into(), role, until: self.now + TOAST_MS });
        self.stain(Dirty::Data);
    }

    pub fn places(&self) -> Places {
        place(Rect::new(0, 0, self.size.0, self.size.1), self.arrangement)
    }

    /// A clock of the run runs.
    pub(super) fn clock_runs(&self) -> bool {
        let at_work = matches!(self.state.status, RunStatus::Running | RunStatus::Cancelling { .. });
        at_work && !self.recording && !matches!(self.link, Link::Lost { .. })
    }

    /// It is also shown: not for its own sake to somebody who looks elsewhere.
    fn clock_ticks(&self) -> bool {
        // A lost link counts the seconds since.
        (self.clock_runs() || matches!(self.link, Link::Lost { .. })) && self.surface.attention != Some(false)
    }

    /// Milliseconds until the next tick is wanted; `None`: nothing on the screen depends on time.
    pub fn next_tick(&self) -> Option<u64> {
        let second = self.clock_ticks().then(|| 1000 - self.now % 1000);
        let toast = self.toast.as_ref().map(|toast| toast.until.saturating_sub(self.now).max(1));
        let look = self.next_look().map(|due| due.saturating_sub(self.now).max(1));
        second.into_iter().chain(toast).chain(look).chain(self.next_step()).chain(self.next_departure()).min()
    }

    fn tick(&mut self, now: u64) {
        let new_second = now / 1000 != self.now / 1000;
        let step = self.next_step().is_some_and(|wait| self.now + wait <= now);
        self.now = now;
        self.depart_if_due();
        if step {
            self.stain(Dirty::Data);
        }
        if new_second && self.clock_ticks() {
            self.stain(Dirty::Data);
        }
        if self.toast.as_ref().is_some_and(|toast| toast.until <= now) {
            self.toast = None;
            self.stain(Dirty::Data);
        }
    }

    // --- what the screen and the registry ask ---

    pub fn ended(&self) -> bool {
        matches!(self.state.status, RunStatus::Ended { .. })
    }

    /// The journal up to the moment of connecting is still being read.
    pub fn loading(&self) -> bool {
        self.link == Link::Connecting || self.state.seq < self.last_seq
    }

    /// Edits of a manual review that wait for a word.
    pub fn waiting(&self) -> usize {
        match self.state.open_review() {
            Some((_, review)) if review.mode == ReviewMode::Manual => {
                let undecided =
                    |edit: &&crate::event::ReviewEdit| edit.decision == crate::domain::Decision::Undecided;
                review.edits.iter().filter(undecided).count()
            }
            _ => 0,
        }
    }

    /// What a manual review waits for: `REVIEW 3` decisions, or to be submitted.
    pub fn review_label(&self) -> Option<String> {
        let (_, review) = self.state.open_review()?;
        if review.mode == ReviewMode::Auto {
            return None;
        }
        let paused = if matches!(self.state.status, RunStatus::Paused { .. }) { " (paused)" } else { "" };
        Some(match self.waiting() {
            0 => format!("REVIEW submit{paused}"),
            n => format!("REVIEW {n}{paused}"),
        })
    }

    /// A text is on the screen whose syntax could be coloured.
    pub fn wants_grammars(&self) -> bool {
        self.grammars.is_none()
            && !self.prefs.low_bandwidth
            && self.has_diff()
            && self.places().of(Pane::Patch).is_some()
    }

    pub fn has_stage(&self) -> bool {
        self.shown_stage().is_some()
    }

    pub fn has_steps(&self) -> bool {
        !self.state.steps.is_empty()
    }

    pub fn has_rollouts(&self) -> bool {
        !self.rows().is_empty()
    }

    pub fn has_edits(&self) -> bool {
        self.shown_review().is_some_and(|review| !review.edits.is_empty())
    }

    pub fn can_filter(&self) -> bool {
        let focus = self.arrangement.focus;
        // Two replies beside each other are not one text.
        let compares = focus == Pane::Transcript && self.transcript.compared.is_some();
        let listed = matches!(focus, Pane::Runs | Pane::Rollouts | Pane::Curves | Pane::Config);
        let empty = focus == Pane::Patch && !self.has_diff();
        listed || (focus.is_searched() && !compares && !empty)
    }

    pub fn can_zoom(&self) -> bool {
        matches!(self.places().class, Class::Standard | Class::Wide)
    }

    pub fn can_steer(&self) -> bool {
        self.unsteerable().is_none() && !self.identity.read_only && !self.ended()
    }

    /// Whether steering is to be had, or to be left.
    pub fn can_change_role(&self) -> bool {
        self.unsteerable().is_none()
    }

    pub fn is_attached(&self) -> bool {
        self.link != Link::Unattached
    }
}

//! The history of the gate's decisions, and how people overruled them.

use super::verdict_mark;
use crate::domain::GateDecision;
use crate::event::{Overruling, OverrulingOutcome};
use crate::plain::{bounded, bounded_gain, interval, measured_part, verdict_word};
use crate::tui::app::App;
use crate::tui::paint::{Span, span};
use crate::tui::run_index::{Decided, Decisions};
use crate::tui::stages::short_label;
use crate::tui::theme::Role;

/// Marks what a person decided over the gate.
pub const OVERRULED: &str = "⇄";

/// Who overruled the gate, how, why, and what came of it.
pub(super) fn overruled(asked: &Overruling) -> Vec<Span> {
    let (role, outcome) = match &asked.outcome {
        OverrulingOutcome::Pending => (Role::Review, "takes effect after this step".to_owned()),
        OverrulingOutcome::Applied { .. } => (Role::Dim, "in effect".to_owned()),
        OverrulingOutcome::Lapsed { why } => (Role::Warn, format!("lapsed: {why}")),
    };
    vec![
        span(Role::Warn, format!("{OVERRULED} overruled by {}: {}", asked.by.0, asked.ruling.name())),
        span(Role::Text, format!(" · {}", asked.reason)),
        span(Role::Dim, " · "),
        span(role, outcome),
    ]
}

/// All decisions of the gate, newest first: those of steps by number, those of stages as `e2 slow`. A line is put into
/// words when it is shown.
pub(super) struct History<'a> {
    app: &'a App,
    decisions: Decisions,
    /// Columns of the names.
    label: usize,
}

/// Title and names of the columns.
const HEAD: usize = 2;

impl<'a> History<'a> {
    pub fn of(app: &'a App) -> Self {
        let decisions = app.run_index().decisions(&app.state);
        let last = app.state.steps.last().map_or(0, |step| step.at.step.to_string().len());
        let label = decisions.label.max(last).max(4);
        Self { app, decisions, label }
    }

    /// One decision alone is no history.
    pub fn len(&self) -> usize {
        let entries = self.decisions.newest.len() + self.decisions.settled;
        if self.decisions.count < 2 { 0 } else { HEAD + entries }
    }

    /// Lines from a place on.
    pub fn from(&self, place: usize) -> impl Iterator<Item = Vec<Span>> {
        (place..self.len()).filter_map(|place| self.line(place))
    }

    fn line(&self, place: usize) -> Option<Vec<Span>> {
        let label = self.label;
        let Some(place) = place.checked_sub(HEAD) else {
            let head = "    gate       Δ   interval            +    −   verdict";
            return Some(match place {
                0 => vec![span(Role::Title, "decisions")],
                _ => vec![span(Role::Faint, format!("  {:<label$}{head}", "step"))],
            });
        };
        let state = &self.app.state;
        Some(match self.decided(place)? {
            Decided::Step(step) => {
                let step = state.steps.get(step)?;
                self.decision(&step.at.step.to_string(), step.gate.as_ref()?)
            }
            Decided::Stage(stage) => {
                let done = state.stages.get(stage)?;
                self.decision(&short_label(done), done.stage.candidate().1?)
            }
            Decided::Overruled(step) => {
                let mut line = vec![span(Role::Text, format!("  {:label$} ", ""))];
                line.extend(overruled(state.steps.get(step)?.overruling.as_ref()?));
                line
            }
        })
    }

    fn decided(&self, place: usize) -> Option<Decided> {
        let newest = &self.decisions.newest;
        match place.checked_sub(newest.len()) {
            None => newest.iter().nth_back(place).copied(),
            Some(place) => self.app.run_index().settled_decision(place),
        }
    }

    fn decision(&self, name: &str, gate: &GateDecision) -> Vec<Span> {
        let label = self.label;
        let (glyph, role) = verdict_mark(gate.verdict);
        let (number, delta) =
            (bounded(&gate.candidate, gate.candidate.gate), bounded_gain(&gate.candidate, gate.current.gate));
        let interval = interval(gate.interval);
        let part = measured_part(&gate.candidate).map_or(String::new(), |part| format!(", {part}"));
        vec![
            span(role, format!("{glyph} ")),
            span(Role::Text, format!("{name:<label$} {number:>7}")),
            span(role, format!(" {delta:>7}")),
            span(Role::Dim, format!("   {interval}")),
            span(Role::Good, format!(" {:>4}", gate.gained.len())),
            span(Role::Bad, format!(" {:>4}", gate.lost.len())),
            span(Role::Dim, format!("   {}{part}", verdict_word(gate.verdict))),
        ]
    }
}

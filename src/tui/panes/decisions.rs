//! The history of the gate's decisions, and how people overruled them.

use super::verdict_mark;
use crate::domain::GateDecision;
use crate::event::{Overruling, OverrulingOutcome, StageState, StepState};
use crate::plain::{bounded, bounded_gain, measured_part, verdict_word};
use crate::tui::app::App;
use crate::tui::paint::{Span, span};
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
    entries: Vec<Entry<'a>>,
    /// Columns of the names.
    label: usize,
}

#[derive(Clone, Copy)]
enum Entry<'a> {
    Title,
    Head,
    Step(&'a StepState, &'a GateDecision),
    Stage(&'a StageState, &'a GateDecision),
    Overruled(&'a Overruling),
}

impl<'a> History<'a> {
    pub fn of(app: &'a App) -> Self {
        let mut entries = Vec::new();
        let (mut label, mut decisions) = (4, 0);
        let mut stages = app.state.stages.iter().rev().peekable();
        for step in app.state.steps.iter().rev() {
            while let Some(done) = stages.next_if(|done| done.at.step >= step.at.step) {
                if let Some(decision) = done.stage.candidate().1 {
                    entries.push(Entry::Stage(done, decision));
                    label = label.max(stage_label(done).len());
                    decisions += 1;
                }
            }
            if let Some(decision) = &step.gate {
                entries.push(Entry::Step(step, decision));
                entries.extend(step.overruling.as_ref().map(Entry::Overruled));
                decisions += 1;
            }
        }
        if let Some(step) = app.state.steps.last() {
            label = label.max(step.at.step.to_string().len());
        }
        if decisions < 2 {
            entries.clear();
        } else {
            entries.splice(0..0, [Entry::Title, Entry::Head]);
        }
        Self { entries, label }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Lines from a place on.
    pub fn from(&self, place: usize) -> impl Iterator<Item = Vec<Span>> {
        self.entries.iter().skip(place).map(|entry| self.line(*entry))
    }

    fn line(&self, entry: Entry<'_>) -> Vec<Span> {
        let label = self.label;
        match entry {
            Entry::Title => vec![span(Role::Title, "decisions")],
            Entry::Head => {
                let head = "    gate       Δ   interval            +    −   verdict";
                vec![span(Role::Faint, format!("  {:<label$}{head}", "step"))]
            }
            Entry::Step(step, decision) => self.decision(&step.at.step.to_string(), decision),
            Entry::Stage(done, decision) => self.decision(&stage_label(done), decision),
            Entry::Overruled(asked) => {
                let mut line = vec![span(Role::Text, format!("  {:label$} ", ""))];
                line.extend(overruled(asked));
                line
            }
        }
    }

    fn decision(&self, name: &str, gate: &GateDecision) -> Vec<Span> {
        let label = self.label;
        let (glyph, role) = verdict_mark(gate.verdict);
        let (number, delta) =
            (bounded(&gate.candidate, gate.candidate.gate), bounded_gain(&gate.candidate, gate.current.gate));
        let interval = format!("[{:>+6.3}, {:>+6.3}]", gate.interval.0, gate.interval.1);
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

fn stage_label(done: &StageState) -> String {
    let name = done.stage.name().split([' ', '-']).next().unwrap_or_default();
    format!("e{} {name}", done.at.epoch)
}

//! The history of the gate's decisions, and how people overruled them.

use super::gate::Lines;
use super::verdict_mark;
use crate::event::{Overruling, OverrulingOutcome};
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

/// All decisions of the gate, newest first: those of steps by number, those of stages as `e2 slow`.
pub(super) fn history(app: &App, lines: &mut Lines) {
    let state = &app.state;
    let of_steps = state.steps.iter().filter_map(|step| {
        let decision = (step.gate.as_ref()?, step.overruling.as_ref());
        Some((step.at.step, false, step.at.step.to_string(), decision))
    });
    let of_stages = state.stages.iter().filter_map(|done| {
        let name = done.stage.name().split([' ', '-']).next().unwrap_or_default();
        let decision = done.stage.candidate().1?;
        Some((done.at.step, true, format!("e{} {name}", done.at.epoch), (decision, None)))
    });
    let mut decided: Vec<_> = of_steps.chain(of_stages).collect();
    if decided.len() < 2 {
        return;
    }
    decided.sort_by_key(|(step, staged, ..)| (*step, *staged));
    let label = decided.iter().map(|(_, _, label, _)| label.len()).max().unwrap_or(0).max(4);
    lines.push(vec![span(Role::Title, "decisions")]);
    let head = format!("  {:<label$}    gate       Δ   interval            +    −   verdict", "step");
    lines.push(vec![span(Role::Faint, head)]);
    for (_, _, name, (gate, asked)) in decided.into_iter().rev() {
        let (glyph, role) = verdict_mark(gate.verdict);
        let (number, delta) =
            (bounded(&gate.candidate, gate.candidate.gate), bounded_gain(&gate.candidate, gate.current.gate));
        let interval = format!("[{:>+6.3}, {:>+6.3}]", gate.interval.0, gate.interval.1);
        let part = measured_part(&gate.candidate).map_or(String::new(), |part| format!(", {part}"));
        lines.push(vec![
            span(role, format!("{glyph} ")),
            span(Role::Text, format!("{name:<label$} {number:>7}")),
            span(role, format!(" {delta:>7}")),
            span(Role::Dim, format!("   {interval}")),
            span(Role::Good, format!(" {:>4}", gate.gained.len())),
            span(Role::Bad, format!(" {:>4}", gate.lost.len())),
            span(Role::Dim, format!("   {}{part}", verdict_word(gate.verdict))),
        ]);
        if let Some(asked) = asked {
            let mut line = vec![span(Role::Text, format!("  {:label$} ", ""))];
            line.extend(overruled(asked));
            lines.push(line);
        }
    }
}

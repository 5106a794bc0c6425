//! Pane 2: one row per optimisation step, newest first, with the baseline below and the final test above.

use ratatui::layout::Rect;

use super::{frame, placeholder, waiting_words};
use crate::domain::Verdict;
use crate::event::{EvalPurpose, EvalState, StepState};
use crate::plain::{bounded, bounded_gain, measured_part, verdict_word};
use crate::tui::app::{App, Stage};
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span, window};
use crate::tui::theme::Role;

/// From this inner width on a row also says the train score and the verdict.
const WIDE: u16 = 70;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let right = match &app.state.info {
        Some(info) => {
            vec![span(Role::Dim, format!("{} of {}", finished(app), info.plan.total_steps))]
        }
        None => Vec::new(),
    };
    let inner = frame(app, Pane::Steps, area, canvas, Vec::new(), &right);
    let stages = app.stages();
    if stages.is_empty() {
        return placeholder(canvas, inner, &[waiting_words(app)]);
    }
    let mut rows = rows_of(inner);
    let Some(head) = rows.next() else { return };
    canvas.line(head, &[span(Role::Faint, "  step      select       Δ  kept")]);
    let selected = stages.iter().position(|stage| Some(*stage) == app.shown_stage()).unwrap_or(0);
    let first = window(selected, stages.len(), inner.height.saturating_sub(1) as usize);
    for (row, (index, stage)) in rows.zip(stages.iter().enumerate().skip(first)) {
        let mut line = stage_line(app, *stage);
        if inner.width >= WIDE {
            line.extend(detail(app, *stage));
        }
        canvas.line(row, &line);
        if index == selected {
            canvas.overlay_style(row, Role::Selection);
        }
    }
}

fn detail(app: &App, stage: Stage) -> Vec<Span> {
    let Stage::Step(number) = stage else { return Vec::new() };
    let step = app.state.steps.iter().find(|step| step.at.step == number);
    let Some(step) = step else { return Vec::new() };
    let Some(record) = &step.record else { return Vec::new() };
    let part = step.gate.as_ref().and_then(|gate| measured_part(&gate.candidate));
    vec![
        span(Role::Dim, format!("   train {:.3}", record.rollout_hard)),
        span(verdict_mark(record.action).1, format!("   {}", verdict_word(record.action))),
        span(Role::Dim, part.map_or(String::new(), |part| format!(", {part}"))),
    ]
}

fn finished(app: &App) -> usize {
    app.state.steps.iter().filter(|step| step.record.is_some()).count()
}

fn stage_line(app: &App, stage: Stage) -> Vec<Span> {
    match stage {
        Stage::Baseline => {
            let score = app.state.baseline_score;
            let mark = if score.is_some() { span(Role::Dim, "○ ") } else { span(Role::Active, "▸ ") };
            let progress = eval_progress(app, EvalPurpose::Baseline);
            vec![mark, span(Role::Text, format!("{:<9}", "baseline")), measured(score, progress)]
        }
        Stage::Test => {
            let Some(outcome) = &app.state.test else {
                let progress = eval_progress(app, EvalPurpose::TestBest)
                    .or_else(|| eval_progress(app, EvalPurpose::TestBase));
                return vec![
                    span(Role::Active, "▸ "),
                    span(Role::Text, format!("{:<9}", "test")),
                    measured(None, progress),
                ];
            };
            let role = if outcome.interval.0 > 0.0 { Role::Good } else { Role::Text };
            vec![
                span(Role::Brand, "■ "),
                span(Role::Strong, format!("{:<9}", "test")),
                span(Role::Text, format!("{:>6.3}", outcome.best_hard)),
                span(role, format!("{:>+8.3}", outcome.delta)),
            ]
        }
        Stage::Step(number) => match app.state.steps.iter().find(|step| step.at.step == number) {
            Some(step) => step_line(app, step),
            None => Vec::new(),
        },
    }
}

fn step_line(app: &App, step: &StepState) -> Vec<Span> {
    let number = format!("{:<3}", step.at.step);
    if let Some(gate) = &step.gate
        && !matches!(gate.verdict, Verdict::SkipNoPatches | Verdict::SkipNoRewrite | Verdict::SkipNoChange)
    {
        let (glyph, role) = verdict_mark(gate.verdict);
        let score = bounded(&gate.candidate, gate.candidate.gate);
        let delta = bounded_gain(&gate.candidate, gate.current.gate);
        return vec![
            span(role, format!("{glyph} ")),
            span(Role::Text, format!("{number}      {score:>6}")),
            span(role, format!("{delta:>8}")),
            span(Role::Dim, format!("{:>6}", kept(step, gate.verdict.accepted()))),
        ];
    }
    if let Some(record) = &step.record {
        let (glyph, role) = verdict_mark(record.action);
        let why = match record.action {
            Verdict::SkipNoPatches => "no edits",
            Verdict::SkipNoChange => "no change",
            _ => "",
        };
        return vec![span(role, format!("{glyph} ")), span(Role::Text, number), span(Role::Dim, why)];
    }
    let phase = step.phase.map_or("starting", |phase| phase.name());
    let under_way = app.state.steps.last().is_some_and(|last| last.at == step.at) && !app.ended();
    if let Some(label) = app.review_label().filter(|_| under_way) {
        let words = format!(" {label} ");
        return vec![span(Role::Warn, "◆ "), span(Role::Text, number), span(Role::Review, words)];
    }
    let role = if under_way { Role::Active } else { Role::Dim };
    let mark = if under_way { "▸ " } else { "· " };
    let progress = step.eval.as_ref().and_then(|id| app.state.evals.get(id)).map(progress_of);
    let words = match progress {
        Some(progress) => format!("{phase} {progress}"),
        None if step.analyses.is_empty() && !step.rollouts.is_empty() => {
            let batch = app.state.info.as_ref().map_or(0, |info| info.plan.batch_size);
            format!("{phase} {}/{batch}", step.rollouts.len())
        }
        None => phase.to_owned(),
    };
    vec![span(role, mark), span(Role::Text, number), span(role, words)]
}

/// Edits that the current skill took over, of those proposed: none unless the gate accepted them.
fn kept(step: &StepState, accepted: bool) -> String {
    let proposed = step.ranked.as_ref().map_or(0, |patch| patch.edits.len());
    let applied = step.report.as_ref().map_or(0, |report| report.applied);
    format!("{}/{proposed}", if accepted { applied } else { 0 })
}

fn measured(score: Option<f64>, progress: Option<String>) -> Span {
    match (score, progress) {
        (Some(score), _) => span(Role::Text, format!("{score:>6.3}")),
        (None, Some(progress)) => span(Role::Active, format!("{progress:>6}")),
        (None, None) => span(Role::Faint, "     ·"),
    }
}

fn eval_progress(app: &App, purpose: EvalPurpose) -> Option<String> {
    app.state.evals.values().find(|eval| eval.purpose == purpose).map(progress_of)
}

fn progress_of(eval: &EvalState) -> String {
    format!("{}/{}", eval.results.len(), eval.n)
}

/// Glyph and role of a verdict.
pub fn verdict_mark(verdict: Verdict) -> (&'static str, Role) {
    match verdict {
        Verdict::AcceptNewBest => ("★", Role::Good),
        Verdict::Accept | Verdict::ForceAccept => ("✓", Role::Good),
        Verdict::Reject => ("✗", Role::Bad),
        Verdict::Undecided => ("?", Role::Warn),
        Verdict::SkipNoPatches | Verdict::SkipNoRewrite | Verdict::SkipNoChange => ("–", Role::Dim),
    }
}

//! Pane 2: one row per optimisation step, newest first, with the stages between epochs in their places, the baseline
//! below, and final selection and test above.

use ratatui::layout::Rect;

use super::decisions::OVERRULED;
use super::{frame, placeholder, waiting_words};
use crate::domain::{EpochStage, StageAction, StageKind, UpdateMode, Verdict};
use crate::event::{EvalState, StepState};
use crate::plain::{
    action_words, bounded, bounded_gain, measured_part, pair_counts, sample_words, verdict_word,
};
use crate::tui::app::App;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span, window};
use crate::tui::stages::Stage;
use crate::tui::theme::Role;

/// From this inner width on a row also says the train score and the verdict.
const WIDE: u16 = 70;
/// Columns of the name of a step or stage.
const NAME: usize = 8;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let right = match &app.state.info {
        Some(info) => {
            vec![span(Role::Dim, format!("{} of {}", app.tally().finished, info.plan.total_steps))]
        }
        None => Vec::new(),
    };
    let inner = frame(app, Pane::Steps, area, canvas, Vec::new(), &right);
    let stages = app.stages();
    if stages.is_empty() {
        return placeholder(canvas, inner, &[&waiting_words(app)]);
    }
    let mut rows = rows_of(inner);
    let Some(head) = rows.next() else { return };
    canvas.line(head, &[span(Role::Faint, "  step    select      Δ kept")]);
    let selected = app.shown_stage().and_then(|shown| stages.place(shown)).unwrap_or(0);
    let first = window(selected, stages.len(), inner.height.saturating_sub(1) as usize);
    for (row, index) in rows.zip(first..stages.len()) {
        let Some(stage) = stages.get(index) else { break };
        let mut line = stage_line(app, stage);
        if inner.width >= WIDE {
            line.extend(detail(app, stage));
        }
        let used = canvas.line(row, &line);
        // A column between, so that no number runs into the time.
        let room = Rect { x: row.x + used + 1, width: row.width.saturating_sub(used + 1), ..row };
        canvas.line_right(room, &[span(Role::Dim, spent(app, stage))]);
        if index == selected {
            canvas.overlay_style(row, Role::Selection);
        }
    }
}

fn detail(app: &App, stage: Stage) -> Vec<Span> {
    let number = match stage {
        Stage::Step(number) => number,
        Stage::Between { epoch, kind } => return between_detail(app, epoch, kind),
        Stage::Baseline | Stage::FinalSelection | Stage::Test => return Vec::new(),
    };
    let Some(step) = app.step(number) else { return Vec::new() };
    let Some(record) = &step.record else { return Vec::new() };
    let part = step.gate.as_ref().and_then(|gate| measured_part(&gate.candidate));
    vec![
        span(Role::Dim, format!("   train {:.3}", record.rollout_hard)),
        span(verdict_mark(record.action).1, format!("   {}", verdict_word(record.action))),
        span(Role::Dim, part.map_or(String::new(), |part| format!(", {part}"))),
    ]
}

/// How long a step or a stage between epochs took, or has taken so far.
fn spent(app: &App, stage: Stage) -> String {
    let (from, to) = match stage {
        Stage::Step(number) => match app.step(number) {
            Some(step) => (step.started_at, step.finished_at),
            None => return String::new(),
        },
        Stage::Between { epoch, kind } => match app.found(epoch, kind) {
            Some((_, done)) => (done.started_at, Some(done.finished_at)),
            None => return String::new(),
        },
        Stage::Baseline | Stage::FinalSelection | Stage::Test => return String::new(),
    };
    // What an ended run left unfinished took until its end.
    let until = to.unwrap_or(if app.ended() { app.state.updated_at } else { app.now });
    brief(until.saturating_sub(from))
}

/// A time in three columns: `64s`, `12m`, `31h`, `4d`.
fn brief(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..100 => format!("{seconds}s"),
        100..6_000 => format!("{}m", seconds / 60),
        6_000..360_000 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn stage_line(app: &App, stage: Stage) -> Vec<Span> {
    match stage {
        Stage::Baseline => {
            let score = app.state.baseline_score;
            let mark = if score.is_some() { span(Role::Dim, "○ ") } else { span(Role::Active, "▸ ") };
            vec![
                mark,
                span(Role::Text, format!("{:<NAME$}", "baseline")),
                measured(score, progress(app, stage)),
            ]
        }
        Stage::Between { epoch, kind } => between_line(app, epoch, kind),
        Stage::FinalSelection => final_line(app),
        Stage::Test => {
            let Some(outcome) = &app.state.test else {
                let progress = progress(app, stage);
                return vec![
                    span(Role::Active, "▸ "),
                    span(Role::Text, format!("{:<NAME$}", "test")),
                    measured(None, progress),
                ];
            };
            let role = if outcome.interval.0 > 0.0 { Role::Good } else { Role::Text };
            vec![
                span(Role::Brand, "■ "),
                span(Role::Strong, format!("{:<NAME$}", "test")),
                span(Role::Text, format!("{:>6.3}", outcome.best_hard)),
                span(role, format!("{:>+7.3}", outcome.delta)),
            ]
        }
        Stage::Step(number) => match app.step(number) {
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
            span(role, glyph),
            overruled_mark(step),
            span(Role::Text, format!("{number:<NAME$}{score:>6}")),
            span(role, format!("{delta:>7}")),
            span(Role::Dim, format!("{:>5}", kept(step, gate.verdict.accepted()))),
            stale_mark(app, step),
        ];
    }
    if let Some(record) = &step.record {
        let (glyph, role) = verdict_mark(record.action);
        let why = match record.action {
            Verdict::SkipNoPatches => "no edits",
            Verdict::SkipNoRewrite => "no rewrite",
            Verdict::SkipNoChange => "no change",
            Verdict::AcceptNewBest
            | Verdict::Accept
            | Verdict::ForceAccept
            | Verdict::Reject
            | Verdict::Undecided => "",
        };
        return vec![
            span(role, format!("{glyph} ")),
            span(Role::Text, number),
            span(Role::Dim, why),
            stale_mark(app, step),
        ];
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

/// A person overruled the gate; what came of it is said in pane 5.
fn overruled_mark(step: &StepState) -> Span {
    span(Role::Warn, if step.overruling.is_some() { OVERRULED } else { " " })
}

/// The step's appendix notes changed the skill after its score was measured.
fn stale_mark(app: &App, step: &StepState) -> Span {
    let newest = app.state.steps.last().is_some_and(|last| last.at == step.at);
    let noted = step.record.as_ref().is_some_and(|record| record.current_score_stale);
    let stale = newest && noted && app.state.current_score_stale && !step.current_hash.is_empty();
    span(Role::Warn, if stale { " ≈" } else { "" })
}

fn final_line(app: &App) -> Vec<Span> {
    let Some((score, promoted)) = &app.state.final_selection else {
        return vec![
            span(Role::Active, "▸ "),
            span(Role::Text, format!("{:<NAME$}", "final")),
            measured(None, progress(app, Stage::FinalSelection)),
        ];
    };
    let (mark, words) =
        if *promoted { (span(Role::Good, "★ "), "  new best") } else { (span(Role::Dim, "○ "), "") };
    vec![mark, span(Role::Text, format!("{:<NAME$}{:>6.3}", "final", score.gate)), span(Role::Good, words)]
}

fn between_line(app: &App, epoch: u32, kind: StageKind) -> Vec<Span> {
    let Some((index, done)) = app.found(epoch, kind) else {
        let under_way = !app.ended();
        let (mark, role) = if under_way { ("▸ ", Role::Active) } else { ("· ", Role::Dim) };
        let progress = progress(app, Stage::Between { epoch, kind }).unwrap_or_default();
        return vec![span(role, mark), span(Role::Text, kind.name()), span(role, format!("  {progress}"))];
    };
    let action = done.stage.action();
    let (glyph, role) = action_mark(action);
    let mut line = vec![span(role, format!("{glyph} "))];
    match (&done.stage, done.stage.candidate().1) {
        (_, Some(decision)) => {
            let score = bounded(&decision.candidate, decision.candidate.gate);
            let delta = bounded_gain(&decision.candidate, decision.current.gate);
            line.push(span(Role::Text, format!("{:<NAME$}{score:>6}", short_name(kind))));
            line.push(span(role, format!("{delta:>7}")));
        }
        (EpochStage::SlowUpdate(found), None) if !found.pairs.is_empty() => {
            let [improved, regressed, ..] = pair_counts(&found.pairs);
            line.push(span(Role::Text, format!("{}  ", kind.name())));
            line.push(span(Role::Good, format!("+{improved}")));
            line.push(span(Role::Bad, format!(" −{regressed}")));
            line.push(span(Role::Dim, format!(" of {}", found.pairs.len())));
        }
        (EpochStage::SlowUpdate(_) | EpochStage::MetaSkill(_) | EpochStage::MetaReflect(_), None) => {
            line.push(span(Role::Text, format!("{}  ", kind.name())));
            line.push(span(Role::Dim, short_action(action)));
        }
    }
    if app.left_stale(index) {
        line.push(span(Role::Warn, " ≈"));
    }
    line
}

fn between_detail(app: &App, epoch: u32, kind: StageKind) -> Vec<Span> {
    let mut words = vec![format!("epoch {epoch}")];
    if let Some((_, done)) = app.found(epoch, kind) {
        words.push(action_words(done.stage.action()).to_owned());
        if let EpochStage::SlowUpdate(found) = &done.stage {
            words.extend(sample_words(found));
        }
    }
    vec![span(Role::Dim, format!("   {}", words.join("   ")))]
}

/// The name where a score follows in its column.
fn short_name(kind: StageKind) -> &'static str {
    match kind {
        StageKind::SlowUpdate => "slow",
        StageKind::MetaSkill => "meta",
        StageKind::MetaReflect => "meta-ref",
    }
}

fn short_action(action: StageAction) -> &'static str {
    match action {
        StageAction::InjectPlaceholder => "empty region",
        StageAction::SkipFirstEpoch => "first epoch",
        StageAction::NoContent => "no content",
        StageAction::WriteMetaSkill => "written",
        StageAction::ForceAccept | StageAction::Accept | StageAction::AcceptNewBest => "accepted",
        StageAction::Reject => "rejected",
        StageAction::Undecided => "undecided",
        StageAction::SkipNoEdits => "no edits",
        StageAction::SkipNoSuggestions => "no suggestions",
        StageAction::SkipNoRewrite => "no rewrite",
        StageAction::SkipNoChange => "no change",
    }
}

/// Glyph and role of how a stage ended.
pub fn action_mark(action: StageAction) -> (&'static str, Role) {
    match action {
        StageAction::AcceptNewBest => ("★", Role::Good),
        StageAction::Accept | StageAction::ForceAccept => ("✓", Role::Good),
        StageAction::Reject => ("✗", Role::Bad),
        StageAction::Undecided => ("?", Role::Warn),
        StageAction::WriteMetaSkill => ("✎", Role::Good),
        StageAction::InjectPlaceholder => ("+", Role::Dim),
        StageAction::SkipFirstEpoch
        | StageAction::NoContent
        | StageAction::SkipNoEdits
        | StageAction::SkipNoSuggestions
        | StageAction::SkipNoRewrite
        | StageAction::SkipNoChange => ("–", Role::Dim),
    }
}

/// Proposals that the current skill took over, of those made: none unless the gate accepted them. A rewrite carries out
/// the suggestions that a review kept; of whole candidates it is one.
fn kept(step: &StepState, accepted: bool) -> String {
    let proposed = step.ranked.as_ref().map_or(0, |patch| patch.edits.len());
    let mode = step.ranked.as_ref().map_or_else(UpdateMode::default, |patch| UpdateMode::of(&patch.edits));
    let taken = match mode {
        _ if !accepted => 0,
        UpdateMode::Patch => step.report.as_ref().map_or(0, |report| report.applied),
        UpdateMode::RewriteFromSuggestions => {
            step.review.as_ref().map_or(proposed, |review| review.kept.len())
        }
        UpdateMode::FullRewriteMinibatch => 1,
    };
    format!("{taken}/{proposed}")
}

fn measured(score: Option<f64>, progress: Option<String>) -> Span {
    match (score, progress) {
        (Some(score), _) => span(Role::Text, format!("{score:>6.3}")),
        (None, Some(progress)) => span(Role::Active, format!("{progress:>6}")),
        (None, None) => span(Role::Faint, "     ·"),
    }
}

/// How far the evaluations of a stage are.
fn progress(app: &App, stage: Stage) -> Option<String> {
    app.progress(stage).map(|(done, n)| format!("{done}/{n}"))
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

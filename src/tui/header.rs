//! The header: run, phase chain, step, time, tokens, waiting decisions, link. Drops the least important when narrow.

use ratatui::layout::Rect;

use super::action::Action;
use super::app::{App, Link};
use super::controls::global::GlobalAction;
use super::paint::{Canvas, Span, span, spans_width};
use super::stages::{Stage, between};
use super::theme::Role;
use crate::domain::{Phase, StageKind};
use crate::event::{EndStatus, RunStatus, WatchRole};
use crate::plain::{count, dollars, duration, tokens};
use crate::text::truncate;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    if let Some(mark) = app.busy_mark() {
        canvas.line(Rect { width: 1, ..area }, &[span(Role::Active, mark)]);
    }
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let (left, right) = fitting(app, area.width as usize);
    let used = canvas.line(area, &left);
    canvas.line_right(Rect { x: area.x + used, width: area.width - used, ..area }, &right);
}

/// The most that fits: first fewer numbers on the right, then a shorter chain.
fn fitting(app: &App, columns: usize) -> (Vec<Span>, Vec<Span>) {
    if app.link == Link::Unattached {
        return (vec![span(Role::Brand, "planish  "), span(Role::Dim, "no run attached")], Vec::new());
    }
    let name = || {
        let long = app.run_name();
        vec![span(Role::Brand, "planish "), span(Role::Strong, truncate(long, 24)), span(Role::Text, "  ")]
    };
    let numbers = numbers(app);
    for (chain, least) in [(chain(app, Phase::name), 4), (chain(app, abbreviated), 3), (now(app), 0)] {
        for kept in (least.min(numbers.len())..=numbers.len()).rev() {
            let right: Vec<Span> = numbers[..kept].iter().flatten().cloned().collect();
            let mut left = name();
            left.extend(chain.iter().cloned());
            if spans_width(&left) + spans_width(&right) <= columns {
                return (left, right);
            }
        }
    }
    (now(app), Vec::new())
}

fn abbreviated(phase: Phase) -> &'static str {
    match phase {
        Phase::Baseline => "base",
        Phase::Rollout => "roll",
        Phase::Reflect => "refl",
        Phase::Aggregate => "aggr",
        Phase::Select => "sel",
        Phase::Review => "rev",
        Phase::Update => "upd",
        Phase::Evaluate => "eval",
        Phase::Gate => "gate",
        Phase::DeepReflect => "deep",
        Phase::SlowUpdate => "slow",
        Phase::MetaSkill => "meta",
        Phase::MetaReflect => "mrefl",
        Phase::FinalSelection => "final",
        Phase::Test => "test",
    }
}

/// Marks that say the run is not simply running.
fn state_marks(app: &App) -> Vec<Span> {
    match &app.state.status {
        RunStatus::Paused { by } => {
            vec![span(Role::Review, format!(" PAUSED by {} ", by.0)), span(Role::Text, " ")]
        }
        RunStatus::Cancelling { .. } => vec![span(Role::Review, " STOPPING "), span(Role::Text, " ")],
        RunStatus::NotStarted | RunStatus::Running | RunStatus::Ended { .. } => Vec::new(),
    }
}

fn end(app: &App) -> Option<Vec<Span>> {
    let RunStatus::Ended { status, .. } = &app.state.status else { return None };
    Some(vec![match status {
        EndStatus::Completed => span(Role::Good, "■ END  completed"),
        EndStatus::Cancelled => span(Role::Warn, "■ END  stopped, can be resumed"),
        EndStatus::Failed => span(Role::Bad, "‼ END  failed"),
        EndStatus::BudgetExhausted => span(Role::Warn, "■ END  budget exhausted"),
        EndStatus::Imported => span(Role::Strong, "■ END  imported"),
    }])
}

fn chain(app: &App, name: fn(Phase) -> &'static str) -> Vec<Span> {
    if let Some(end) = end(app) {
        return end;
    }
    let Some(present) = app.state.phase else { return now(app) };
    let links: Vec<(Phase, Place)> = if present.of_step() {
        of_step(app, present)
    } else if between(present).is_some() {
        of_epoch(app, present)
    } else {
        return now(app);
    };
    let waiting = app.review_label();
    let mut out = state_marks(app);
    if let Some(kind) = between(present) {
        let epoch = app.state.at.epoch;
        let progress = progress(app, Stage::Between { epoch, kind });
        out.push(span(Role::Dim, format!("epoch {epoch}{progress} ")));
    }
    for (index, (phase, place)) in links.into_iter().enumerate() {
        if index > 0 {
            out.push(span(Role::Faint, "▸"));
        }
        out.push(match place {
            Place::Now if phase == Phase::Review && waiting.is_some() => {
                span(Role::Review, format!("[{}]", waiting.as_deref().unwrap_or_default()))
            }
            Place::Now => span(Role::Active, format!("[{}]", name(phase))),
            Place::Done => span(Role::Dim, name(phase)),
            Place::Ahead => span(Role::Faint, name(phase)),
        });
    }
    out
}

/// Where a phase lies in its chain.
#[derive(Clone, Copy)]
enum Place {
    Done,
    Now,
    Ahead,
}

/// The phases of a step; deep reflection only where the run has it.
fn of_step(app: &App, present: Phase) -> Vec<(Phase, Place)> {
    let deep = present == Phase::DeepReflect
        || app
            .state
            .steps
            .iter()
            .rev()
            .take(2)
            .any(|step| step.phase_starts.iter().any(|(phase, _)| *phase == Phase::DeepReflect));
    let phases = Phase::STEP.into_iter().flat_map(|phase| {
        let probing = (deep && phase == Phase::Reflect).then_some(Phase::DeepReflect);
        [Some(phase), probing].into_iter().flatten()
    });
    let mut place = Place::Done;
    phases
        .map(|phase| {
            if phase == present {
                place = Place::Ahead;
                return (phase, Place::Now);
            }
            (phase, place)
        })
        .collect()
}

/// The stages of this epoch: those done, the present one, and those that an earlier epoch had besides.
fn of_epoch(app: &App, present: Phase) -> Vec<(Phase, Place)> {
    let epoch = app.state.at.epoch;
    StageKind::ALL
        .into_iter()
        .filter_map(|kind| {
            let phase = kind.phase();
            if phase == present {
                Some((phase, Place::Now))
            } else if app.found(epoch, kind).is_some() {
                Some((phase, Place::Done))
            } else {
                app.run_index().knows(kind).then_some((phase, Place::Ahead))
            }
        })
        .collect()
}

/// ` 12/60` of what a stage measures now; empty when nothing is under way.
fn progress(app: &App, stage: Stage) -> String {
    app.progress(stage).map_or(String::new(), |(done, n)| format!(" {done}/{n}"))
}

/// The present phase alone.
fn now(app: &App) -> Vec<Span> {
    if let Some(end) = end(app) {
        return end;
    }
    let mut out = state_marks(app);
    out.push(match app.state.phase {
        None if app.loading() => span(Role::Dim, "connecting"),
        None => span(Role::Dim, "starting"),
        Some(Phase::Review) if app.review_label().is_some() => {
            span(Role::Review, format!("[{}]", app.review_label().unwrap_or_default()))
        }
        Some(phase) => {
            let stage = match phase {
                Phase::Baseline => Some(Stage::Baseline),
                Phase::FinalSelection => Some(Stage::FinalSelection),
                Phase::Test => Some(Stage::Test),
                Phase::Rollout
                | Phase::Reflect
                | Phase::DeepReflect
                | Phase::Aggregate
                | Phase::Select
                | Phase::Review
                | Phase::Update
                | Phase::Evaluate
                | Phase::Gate
                | Phase::SlowUpdate
                | Phase::MetaSkill
                | Phase::MetaReflect => {
                    between(phase).map(|kind| Stage::Between { epoch: app.state.at.epoch, kind })
                }
            };
            let progress = stage.map_or(String::new(), |stage| progress(app, stage));
            span(Role::Active, format!("[{}{progress}]", phase.name()))
        }
    });
    out
}

/// Right side, most important first.
fn numbers(app: &App) -> Vec<Vec<Span>> {
    let mut out: Vec<Vec<Span>> = Vec::new();
    match &app.link {
        Link::Lost { since, .. } => {
            let words = format!("⚠ reconnecting {}s", app.now.saturating_sub(*since) / 1000);
            out.push(vec![span(Role::Bad, words)]);
        }
        Link::Up if app.loading() => {
            out.push(vec![span(Role::Warn, format!("reading {}/{}", app.state.seq, app.last_seq))]);
        }
        Link::Unattached | Link::Connecting | Link::Up => {}
    }
    if app.review_label().is_some()
        && let Some((_, review)) = app.state.open_review()
    {
        out.push(vec![span(Role::Warn, format!("  {}", app.countdown(review)))]);
    }
    if app.recording {
        out.push(vec![span(Role::Warn, "  replay")]);
    } else if app.identity.read_only {
        out.push(vec![span(Role::Warn, "  watch only")]);
    }
    if let Some(info) = &app.state.info {
        let shown = app.state.steps.last().map_or(0, |step| step.at.step);
        out.push(vec![span(Role::Text, format!("  step {shown}/{}", info.plan.total_steps))]);
        out.push(vec![span(Role::Dim, format!("  {}", duration(app.elapsed())))]);
    }
    if let Some(eta) = app.eta() {
        out.push(vec![span(Role::Dim, format!("  eta {}", duration(eta)))]);
    }
    let usage = app.state.total_usage();
    let total = usage.prompt_tokens + usage.completion_tokens;
    if total > 0 {
        out.push(vec![span(Role::Dim, format!("  {} tok", tokens(total)))]);
    }
    out.extend(money(app).map(|words| vec![span(Role::Dim, format!("  {words}"))]));
    if app.clients.len() > 1 {
        let watch = app.clients.iter().filter(|client| client.role == WatchRole::Watch).count();
        let words = match watch {
            0 => String::new(),
            n => format!(", {n} watch"),
        };
        out.push(vec![span(Role::Dim, format!("  {}{words}", count(app.clients.len(), "client")))]);
    }
    out
}

/// `$0.0123 of $1.00`; `None`: nothing costs anything.
pub fn money(app: &App) -> Option<String> {
    let spent = app.state.total_usage().nanodollars;
    match app.state.caps().max_usd {
        cap if cap > 0.0 => Some(format!("{} of {}", dollars(spent), dollars((cap * 1e9) as u64))),
        _ => (spent > 0).then(|| dollars(spent)),
    }
}

/// Everything in one line, for terminals too small for panes.
pub fn summary(app: &App) -> Vec<Vec<Span>> {
    let mut first = vec![span(Role::Strong, app.run_name()), span(Role::Text, " ")];
    if app.link == Link::Unattached {
        first.push(span(Role::Dim, "no run attached"));
    } else {
        first.extend(now(app));
    }
    if let Some(info) = &app.state.info {
        first.push(span(Role::Text, format!(" {}/{}", app.state.at.step, info.plan.total_steps)));
    }
    let mut scores = Vec::new();
    if let Some(best) = app.state.best_score {
        scores.push(span(Role::Text, format!("best {best:.3}")));
    }
    if let Some(test) = &app.state.test {
        scores.push(span(Role::Good, format!("  test {:.3} ({:+.3})", test.best_hard, test.delta)));
    }
    let mut lines = vec![first];
    if app.waiting() > 0 {
        lines.push(vec![span(Role::Warn, format!("{} wait", count(app.waiting(), "decision")))]);
    }
    let role = if let Some(toast) = &app.toast {
        lines.push(vec![span(toast.role, toast.text.clone())]);
        Role::Strong
    } else {
        Role::Dim
    };
    let quit = app.press_for(Action::Global(GlobalAction::Quit));
    lines.push(vec![span(role, format!("enlarge to 60×15 for keys; {quit} leaves"))]);
    if !scores.is_empty() {
        lines.push(scores);
    }
    lines
}

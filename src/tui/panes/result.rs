//! The upper part of the Gate pane once a run ends: how it ended, the test of seed, best and last skill.

use super::gate::{Lines, progress};
use crate::domain::GateScore;
use crate::event::{EndStatus, EvalPurpose, RunStatus, TestOutcome};
use crate::plain::{duration, interval, score, signed, tokens};
use crate::tui::app::App;
use crate::tui::paint::{Span, span, wrap_spans};
use crate::tui::stages::Stage;
use crate::tui::theme::Role;

pub(super) fn result(app: &App, columns: usize, lines: &mut Lines) {
    if let RunStatus::Ended { status, reason } = &app.state.status {
        let (mark, words, role) = match status {
            EndStatus::Completed => ("■", "RUN COMPLETED", Role::Good),
            EndStatus::Cancelled => ("■", "RUN STOPPED", Role::Warn),
            EndStatus::Failed => ("‼", "RUN FAILED", Role::Bad),
            EndStatus::BudgetExhausted => ("■", "BUDGET EXHAUSTED", Role::Warn),
            EndStatus::Imported => ("■", "IMPORTED RUN", Role::Strong),
        };
        let spent = format!(
            "   {}  {} tokens  {} of {} steps accepted",
            duration(app.elapsed()),
            tokens(total_tokens(app)),
            app.tally().accepted,
            app.state.steps.len()
        );
        lines.push(vec![span(role, format!("{mark} {words}")), span(Role::Dim, spent)]);
        if !reason.is_empty() {
            lines.extend(wrap_spans(&[span(Role::Text, reason.as_str())], columns));
        }
        lines.push(Vec::new());
    }
    if let Some(outcome) = &app.state.test {
        test_result(outcome, columns, lines);
    } else {
        for eval in app.evals_of(Stage::Test) {
            progress(test_name(eval.purpose), eval, lines);
        }
    }
    if let Some((score, promoted)) = &app.state.final_selection {
        lines.push(vec![span(Role::Dim, final_words(app, score, *promoted))]);
    }
    if let (Some(base), Some(best)) = (app.state.baseline_score, app.state.best_score) {
        let words = format!(
            "selection  baseline {} → best {} ({}), {}",
            score(base),
            score(best),
            app.state.best_origin(),
            signed(best - base)
        );
        lines.push(vec![span(Role::Dim, words)]);
        lines.push(Vec::new());
    }
}

fn total_tokens(app: &App) -> u64 {
    let usage = app.state.total_usage();
    usage.prompt_tokens + usage.completion_tokens
}

fn test_result(outcome: &TestOutcome, columns: usize, lines: &mut Lines) {
    let (low, high) = outcome.interval;
    let sure = low > 0.0;
    let role = if sure { Role::Good } else { Role::Text };
    lines.push(vec![
        span(Role::Title, "test  "),
        span(Role::Text, format!("base {} → best ", score(outcome.base_hard))),
        span(Role::Strong, score(outcome.best_hard)),
        span(Role::Text, ",  "),
        span(role, signed(outcome.delta)),
        span(Role::Text, format!(" {}", interval(outcome.interval))),
        span(Role::Dim, format!("  95 %, {} items", outcome.n)),
    ]);
    let bar = columns.saturating_sub(12).min(50);
    let last = outcome.last.as_ref().filter(|last| last.hard != outcome.best_hard);
    let meters = [("base", outcome.base_hard, Role::Dim), ("best", outcome.best_hard, role)];
    for (name, value, role) in meters.into_iter().chain(last.map(|last| ("last", last.hard, Role::Dim))) {
        lines.push(meter(name, value, bar, role));
    }
    let words = if sure {
        "The gain is larger than chance explains."
    } else if high < 0.0 {
        "The best skill is worse on held-out items."
    } else {
        "The interval holds zero: no gain is shown."
    };
    lines.push(vec![
        span(Role::Dim, format!("gained {}  lost {}  ", outcome.gained, outcome.lost)),
        span(role, words),
    ]);
    lines.push(Vec::new());
}

fn meter(name: &str, value: f64, columns: usize, role: Role) -> Vec<Span> {
    let full = (value.clamp(0.0, 1.0) * columns as f64).round() as usize;
    vec![
        span(Role::Dim, format!("{name:<6}")),
        span(role, "█".repeat(full)),
        span(Role::Faint, "░".repeat(columns - full)),
        span(Role::Text, format!(" {}", score(value))),
    ]
}

/// The skill that a test measures.
fn test_name(purpose: EvalPurpose) -> &'static str {
    match purpose {
        EvalPurpose::TestBase => "base skill",
        EvalPurpose::TestBest => "best skill",
        EvalPurpose::TestFinal => "last skill",
        EvalPurpose::Baseline
        | EvalPurpose::Candidate
        | EvalPurpose::Rescore
        | EvalPurpose::RescoreBest
        | EvalPurpose::LongitudinalPrev
        | EvalPurpose::LongitudinalCurr
        | EvalPurpose::DeepProbe
        | EvalPurpose::SlowCandidate
        | EvalPurpose::MetaReflectCandidate
        | EvalPurpose::FinalSelection => purpose.name(),
    }
}

/// `final selection  last skill 0.583: not above the best 0.60`.
pub(super) fn final_words(app: &App, last: &GateScore, promoted: bool) -> String {
    let best = app.state.best_score.map_or(String::new(), |best| format!(" {}", score(best)));
    let verdict =
        if promoted { "it became the best".to_owned() } else { format!("not above the best{best}") };
    format!("final selection  last skill {}: {verdict}", score(last.gate))
}

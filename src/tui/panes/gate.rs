//! Pane 5: what the gate measured and decided, the history of its decisions, and the result of a finished run.

use ratatui::layout::Rect;

use super::decisions::{History, overruled};
use super::result::{final_words, result};
use super::{frame, items, placeholder, verdict_mark, waiting_words};
use crate::domain::{GateDecision, GateMetric, GateScore, StageKind, Verdict};
use crate::event::{EvalPurpose, EvalState, ItemResult, StepState};
use crate::plain::{STALE, bounded, bounded_gain, count, measured_part, score, signed, verdict_word};
use crate::tui::app::App;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span, wrap_spans};
use crate::tui::stages::Stage;
use crate::tui::theme::Role;

pub(super) type Lines = Vec<Vec<Span>>;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    if let Some(table) = app.item_table().filter(|_| app.gate.table) {
        return items::draw(app, &table, area, canvas);
    }
    let info = vec![span(Role::Dim, app.stage_name())];
    let tally = app.tally();
    let right = match tally.gated {
        0 => Vec::new(),
        n => vec![span(Role::Dim, format!("{} of {n} accepted", tally.accepted))],
    };
    let inner = frame(app, Pane::Gate, area, canvas, info, &right);
    let columns = inner.width as usize;
    let mut lines = Lines::new();
    let test_shown = app.shown_stage() == Some(Stage::Test);
    if (app.ended() && app.stage.is_none()) || test_shown {
        result(app, columns, &mut lines);
    }
    if app.state.current_score_stale && !app.ended() {
        stale(app, columns, &mut lines);
    }
    match app.shown_stage() {
        Some(Stage::Between { epoch, kind }) => between(app, epoch, kind, columns, &mut lines),
        Some(Stage::FinalSelection) => last_skill(app, &mut lines),
        Some(Stage::Test) if !app.ended() => {}
        Some(Stage::Baseline | Stage::Step(_) | Stage::Test) | None => {
            measurement(app, columns, &mut lines);
        }
    }
    let history = History::of(app);
    let total = lines.len() + history.len();
    if total == 0 {
        let words =
            if app.state.info.is_none() { waiting_words(app) } else { "Nothing is measured yet.".into() };
        app.gate.scroll.extent.set((0, 0));
        return placeholder(canvas, inner, &[&words]);
    }
    let visible = inner.height as usize;
    app.gate.scroll.extent.set((total, visible));
    let top = app.gate.scroll.top.min(total.saturating_sub(visible));
    let evidence = lines.len();
    let shown = lines.into_iter().skip(top).chain(history.from(top.saturating_sub(evidence)));
    for (row, line) in rows_of(inner).zip(shown) {
        canvas.line(row, &line);
    }
}

/// The stored score is that of an earlier text.
fn stale(app: &App, columns: usize, lines: &mut Lines) {
    let number = app.state.current_score.map_or("–".to_owned(), score);
    let words = [span(Role::Warn, format!("≈ current {number}: ")), span(Role::Warn, STALE)];
    lines.extend(wrap_spans(&words, columns));
    lines.push(Vec::new());
}

/// A stage between epochs: its gate where it has one, else what it found.
fn between(app: &App, epoch: u32, kind: StageKind, columns: usize, lines: &mut Lines) {
    let Some((_, done)) = app.found(epoch, kind) else {
        let words = format!("▸ epoch {epoch}: {} under way", kind.name());
        lines.push(vec![span(Role::Active, words)]);
        for eval in app.evals_of(Stage::Between { epoch, kind }) {
            progress(side_name(eval.purpose), eval, lines);
        }
        return lines.push(Vec::new());
    };
    match done.stage.candidate().1 {
        Some(decision) => {
            for eval in app.evals_of(Stage::Between { epoch, kind }) {
                rescored(eval, lines);
            }
            decided(&format!("epoch {epoch} {}", kind.name()), decision, columns, lines);
        }
        None => {
            lines.extend(super::stage::summary(done, columns));
            lines.push(Vec::new());
        }
    }
}

/// What an evaluation of a stage measures, in a word.
fn side_name(purpose: EvalPurpose) -> &'static str {
    match purpose {
        EvalPurpose::LongitudinalPrev => "before",
        EvalPurpose::LongitudinalCurr => "now",
        EvalPurpose::Rescore => "current",
        EvalPurpose::RescoreBest => "best",
        EvalPurpose::Candidate | EvalPurpose::SlowCandidate | EvalPurpose::MetaReflectCandidate => {
            "candidate"
        }
        EvalPurpose::DeepProbe => "probed",
        EvalPurpose::Baseline
        | EvalPurpose::FinalSelection
        | EvalPurpose::TestBase
        | EvalPurpose::TestBest
        | EvalPurpose::TestFinal => "select",
    }
}

/// The current skill was measured again before a verdict.
fn rescored(eval: &EvalState, lines: &mut Lines) {
    if let (EvalPurpose::Rescore, Some(found)) = (eval.purpose, &eval.score) {
        let words =
            format!("current measured again: {} on {} of {} items", score(found.gate), found.done, found.n);
        lines.push(vec![span(Role::Dim, words)]);
    }
}

fn last_skill(app: &App, lines: &mut Lines) {
    for eval in app.evals_of(Stage::FinalSelection) {
        let words = match &app.state.final_selection {
            Some((score, promoted)) => final_words(app, score, *promoted),
            None => "▸ the last skill is measured again: nothing compared it with the best".to_owned(),
        };
        lines.push(vec![span(Role::Text, words)]);
        progress("last", eval, lines);
        lines.push(Vec::new());
    }
}

/// The evaluation and decision of the shown step, or of the baseline.
fn measurement(app: &App, columns: usize, lines: &mut Lines) {
    if app.shown_stage() == Some(Stage::Baseline) || app.state.steps.is_empty() {
        let baseline = app.state.eval_order.first().and_then(|id| app.state.evals.get(id));
        if let Some(eval) = baseline {
            progress("baseline", eval, lines);
        }
        return;
    }
    let Some(step) = app.shown_step() else { return };
    let own = || app.evals_of(Stage::Step(step.at.step));
    if let Some(decision) = &step.gate {
        own().for_each(|eval| rescored(eval, lines));
        if let Some(asked) = &step.overruling {
            lines.extend(wrap_spans(&overruled(asked), columns));
            lines.push(Vec::new());
        }
        decided(&format!("step {}", step.at.step), decision, columns, lines);
        return repeated(app, lines);
    }
    let rescoring = own().find(|eval| eval.purpose == EvalPurpose::Rescore);
    if let Some(eval) = rescoring.filter(|_| step.eval.is_none()) {
        let words = format!("▸ step {}: measuring the current skill again", step.at.step);
        lines.push(vec![span(Role::Active, words)]);
        progress("current", eval, lines);
        return lines.push(Vec::new());
    }
    match step.eval.as_ref().and_then(|id| app.state.evals.get(id)) {
        Some(eval) => {
            let hash = step.candidate.as_ref().map_or("", |skill| skill.hash.as_str());
            let (role, words) = match app.ended() {
                true => (Role::Warn, format!("· step {}: the run ended while it was measured", step.at.step)),
                false => (Role::Active, format!("▸ step {}: measuring the candidate", step.at.step)),
            };
            lines.push(vec![span(role, words), span(Role::Dim, format!("  {}", short(hash)))]);
            progress("select", eval, lines);
            if let Some(current) = app.state.current_score {
                lines.push(vec![span(Role::Dim, format!("to beat: {}", score(current)))]);
            }
        }
        None => lines.extend(wrap_spans(&[span(Role::Dim, unmeasured(app, step))], columns)),
    }
    lines.push(Vec::new());
}

/// Every measurement of the current skill: how far they are apart is what chance alone does.
fn repeated(app: &App, lines: &mut Lines) {
    let Some(table) = app.item_table() else { return };
    let measured = app.measurements_of_current(table.sides);
    if measured.len() < 2 {
        return;
    }
    let numbers: Vec<String> = measured.iter().map(|gate| score(*gate)).collect();
    let words = format!("current measured {}: {}", count(measured.len(), "time"), numbers.join(", "));
    lines.push(vec![span(Role::Dim, words)]);
    lines.push(Vec::new());
}

/// Why a step has neither gate nor evaluation.
fn unmeasured(app: &App, step: &StepState) -> String {
    let number = step.at.step;
    let Some(record) = &step.record else {
        let phase = step.phase.map_or("starting", |phase| phase.name());
        return match app.ended() {
            true => format!("step {number}: the run ended in phase {phase}; nothing was measured"),
            false => format!("step {number}: {phase}; the gate comes after the update"),
        };
    };
    let noun = app.state.info.as_ref().map_or("edit", |info| info.update_mode.noun());
    match record.action {
        Verdict::SkipNoPatches if step.analyses.is_empty() => {
            format!("step {number}: no {noun}s proposed, as there was nothing to analyse")
        }
        Verdict::SkipNoPatches => {
            let analyses = match step.analyses.len() {
                1 => "the analysis".to_owned(),
                n => format!("any of {n} analyses"),
            };
            format!("step {number}: no {noun}s proposed by {analyses}")
        }
        Verdict::SkipNoRewrite => {
            let kept = step.review.as_ref().map_or(0, |review| review.kept.len());
            match kept {
                0 => format!("step {number}: skipped: no {noun} was left to make a new text of"),
                kept => format!("step {number}: skipped: no usable text came of {}", count(kept, noun)),
            }
        }
        Verdict::SkipNoChange => {
            let kept = step
                .review
                .as_ref()
                .map_or(0, |review| review.edits.len().saturating_sub(review.rejected.len()));
            let why = match kept {
                0 => format!("every {noun} was rejected in the review"),
                _ => format!("the {noun}s change nothing"),
            };
            format!("step {number}: skipped: {why}")
        }
        action @ (Verdict::AcceptNewBest
        | Verdict::Accept
        | Verdict::ForceAccept
        | Verdict::Reject
        | Verdict::Undecided) => format!("step {number}: {}", verdict_word(action)),
    }
}

pub(super) fn progress(name: &str, eval: &EvalState, lines: &mut Lines) {
    let (mut passed, mut failed, mut missing) = (0, 0, 0);
    for (_, result) in &eval.results {
        match result {
            ItemResult::Scored(rollout) if rollout.score.failed() => failed += 1,
            ItemResult::Scored(_) => passed += 1,
            ItemResult::Missing { .. } => missing += 1,
        }
    }
    const BAR: usize = 30;
    let part = |n: usize| (n * BAR).checked_div(eval.n).unwrap_or(0);
    let (good, bad) = (part(passed), part(failed + missing));
    let mut line = vec![
        span(Role::Text, format!("{name:<11}")),
        span(Role::Good, "█".repeat(good)),
        span(Role::Bad, "▒".repeat(bad)),
        span(Role::Faint, "░".repeat(BAR.saturating_sub(good + bad))),
        span(Role::Text, format!(" {}/{}", eval.results.len(), eval.n)),
        span(Role::Good, format!("  ✓{passed}")),
        span(Role::Bad, format!(" ✗{failed}")),
    ];
    if missing > 0 {
        line.push(span(Role::Warn, format!(" !{missing}")));
    }
    if let Some(result) = &eval.score {
        let bound = eval.purpose.is_candidate() && measured_part(result).is_some();
        let most = if bound { "at most " } else { "" };
        line.push(span(Role::Strong, format!("  {most}{}", score(result.gate))));
    }
    lines.push(line);
}

fn decided(what: &str, gate: &GateDecision, columns: usize, lines: &mut Lines) {
    let (glyph, role) = verdict_mark(gate.verdict);
    lines.push(vec![
        span(role, format!("{glyph} {what} {}", verdict_word(gate.verdict))),
        span(Role::Dim, format!("   candidate {}", short(&gate.candidate_hash))),
    ]);
    lines.extend(wrap_spans(&[span(Role::Text, gate.why.as_str())], columns));
    lines.push(Vec::new());
    lines.push(vec![span(Role::Faint, "              gate    hard    soft   items")]);
    lines.push(candidate_line(gate));
    for (name, one) in [("current", &gate.current), ("best", &gate.best)] {
        let number = |value: f64| format!("{value:.3}");
        lines.push(score_line(name, one, number));
    }
    lines.push(Vec::new());
    let delta = gate.candidate.gate - gate.current.gate;
    // The interval is that of the measured pairs; a bound on the whole set has no place on its axis.
    let (gain, on, dot) = match measured_part(&gate.candidate) {
        Some(_) => (bounded_gain(&gate.candidate, gate.current.gate), measured_words(gate), None),
        None => (signed(delta), String::new(), Some(delta)),
    };
    lines.push(vec![
        span(Role::Dim, "difference  "),
        span(role, gain),
        span(Role::Text, format!("  [{}, {}]", score(gate.interval.0), score(gate.interval.1))),
        span(Role::Dim, format!("  95 % interval{on}")),
    ]);
    lines.push(interval_line(gate.interval, dot, columns.min(64), role));
    let metric = match gate.metric {
        GateMetric::Hard => "hard",
        GateMetric::Soft => "soft",
        GateMetric::Mixed => "mixed",
    };
    let mut small =
        format!("smallest visible gain {}   gate on {metric} scores", score(gate.smallest_visible_gain));
    if let Some(p) = gate.mid_p {
        small.push_str(&format!("   mid-p {p:.3}"));
    }
    lines.push(vec![span(Role::Dim, small)]);
    lines.push(Vec::new());
    if measured_part(&gate.candidate).is_some() {
        lines.push(vec![span(Role::Dim, format!("gained and lost{}", measured_words(gate)))]);
    }
    for (name, items, role) in [("gained", &gate.gained, Role::Good), ("lost  ", &gate.lost, Role::Bad)] {
        let words = [span(role, format!("{name} {:>3}  ", items.len())), span(Role::Dim, items.join(", "))];
        let wrapped = wrap_spans(&words, columns);
        let more = wrapped.len() > 3;
        lines.extend(wrapped.into_iter().take(3));
        if more {
            lines.push(vec![span(Role::Faint, "            …")]);
        }
    }
    lines.push(Vec::new());
}

fn candidate_line(gate: &GateDecision) -> Vec<Span> {
    let mut line = score_line("candidate", &gate.candidate, |value| bounded(&gate.candidate, value));
    if measured_part(&gate.candidate).is_some() {
        let why = if gate.curtailed { ": stopped early, the verdict was certain" } else { "" };
        line.push(span(Role::Dim, format!("  at most{why}")));
    }
    line
}

/// ` on the 54 measured items`.
fn measured_words(gate: &GateDecision) -> String {
    format!(" on the {} measured items", gate.candidate.done)
}

fn score_line(name: &str, one: &GateScore, number: impl Fn(f64) -> String) -> Vec<Span> {
    let items = format!("{}/{}", one.done, one.n);
    let [gate, hard, soft] = [one.gate, one.hard, one.soft].map(number);
    vec![
        span(Role::Dim, format!("{name:<11}")),
        span(Role::Text, format!("{gate:>7} {hard:>7} {soft:>7} {items:>7}")),
    ]
}

/// The interval on an axis with zero in the middle; `delta` is a dot on it.
fn interval_line(interval: (f64, f64), delta: Option<f64>, columns: usize, role: Role) -> Vec<Span> {
    let reach =
        [interval.0, interval.1].iter().chain(&delta).fold(0.05_f64, |most, x| most.max(x.abs())) * 1.1;
    let width = columns.saturating_sub(16).max(5);
    let place = |x: f64| {
        let part = ((x + reach) / (2.0 * reach)).clamp(0.0, 1.0);
        (part * (width - 1) as f64).round() as usize
    };
    let (low, high, middle, zero) = (place(interval.0), place(interval.1), delta.map(place), place(0.0));
    let mut spans = vec![span(Role::Faint, format!("{:>7} ", score(-reach)))];
    for at in 0..width {
        let (glyph, role) = if Some(at) == middle {
            ("●", role)
        } else if at == low {
            ("[", role)
        } else if at == high {
            ("]", role)
        } else if at == zero {
            ("┼", Role::Title)
        } else if (low..high).contains(&at) {
            ("═", role)
        } else {
            ("─", Role::Faint)
        };
        spans.push(span(role, glyph));
    }
    spans.push(span(Role::Faint, format!(" {}", score(reach))));
    spans
}

fn short(hash: &str) -> String {
    hash.chars().take(8).collect()
}

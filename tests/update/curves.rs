//! The cursor, the windows and the other runs of the curves.

use std::path::PathBuf;
use std::sync::Arc;

use planish::event::{Event, HostLine, Live};
use planish::telemetry::{Axis, Board, Smoothing, names};
use planish::tui::{App, Ask, Effect, Export, Msg, Overlay, Pane, Told};
use ratatui::crossterm::event::KeyCode;

use super::client::{hear, key, played, press, text};
use super::fixture::{self, numbers};
use super::{SIZE, next_event};

fn curves() -> App {
    let mut app = played(SIZE, &numbers::trained(100));
    press(&mut app, "6");
    assert_eq!(app.arrangement.focus, Pane::Curves);
    app
}

fn at_step(app: &App) -> f64 {
    app.curves.cursor.unwrap().step
}

#[test]
fn the_cursor_goes_by_points_and_never_less_than_a_cell() {
    let mut app = curves();
    key(&mut app, KeyCode::Left);
    assert_eq!(at_step(&app), 99.0);
    key(&mut app, KeyCode::Right);
    key(&mut app, KeyCode::Right);
    assert_eq!(at_step(&app), 100.0);
    // Once drawn, a cell stands for several steps.
    text(&app);
    assert!(app.curves.grain.get() > 1.0);
    key(&mut app, KeyCode::Left);
    let before = at_step(&app);
    assert!(before < 99.0 && before > 90.0, "{before}");
    for _ in 0..200 {
        key(&mut app, KeyCode::Left);
    }
    assert_eq!(at_step(&app), 1.0);
    press(&mut app, "0");
    assert_eq!(app.curves.cursor, None);
}

#[test]
fn zoom_halves_the_axis_around_the_cursor_and_reset_shows_all() {
    let mut app = curves();
    let whole = app.curve_window(Axis::Step);
    assert_eq!(whole, (0.0, 112.0));
    press(&mut app, ">>");
    assert_eq!(app.curve_window(Axis::Step), (77.0, 105.0));
    while app.curves.cursor.is_none_or(|at| at.step > 40.0) {
        key(&mut app, KeyCode::Left);
    }
    let (from, to) = app.curve_window(Axis::Step);
    assert!(from < 40.0 && 40.0 < to && to - from == 28.0, "{from} {to}");
    press(&mut app, "<<<");
    assert_eq!(app.curve_window(Axis::Step), whole);
    press(&mut app, ">>0");
    assert_eq!((app.curve_window(Axis::Step), app.curves.cursor), (whole, None));
}

#[test]
fn a_following_window_moves_in_quarters() {
    let mut app = curves();
    press(&mut app, ">>>");
    let mut windows = vec![app.curve_window(Axis::Step)];
    for step in 101..=112 {
        next_event(&mut app, Event::Metric { step: Some(step), values: [("loss".to_owned(), 1.0)].into() });
        windows.push(app.curve_window(Axis::Step));
    }
    windows.dedup();
    assert_eq!(windows, [(87.5, 101.5), (91.0, 105.0), (94.5, 108.5), (98.0, 112.0)]);
}

#[test]
fn keys_change_axis_smoothing_scale_and_the_shown_charts() {
    let mut app = curves();
    press(&mut app, "T");
    assert_eq!(app.curves.axis, Axis::Time);
    press(&mut app, "TT");
    assert_eq!(app.curves.axis, Axis::Step);
    press(&mut app, "S");
    assert_eq!(app.curves.smoothing, Smoothing::Some);
    assert!(text(&app).contains("ema 0.6"), "the factor is said");
    press(&mut app, "S");
    assert!(text(&app).contains("ema 0.9"));
    press(&mut app, "S");
    assert_eq!(app.curves.smoothing, Smoothing::Off);
    // Advantage is a sine: about half of its values have no logarithm.
    press(&mut app, "L");
    press(&mut app, "/adv");
    key(&mut app, KeyCode::Enter);
    let below = (1..=100).filter(|step| (f64::from(*step) * 0.3).sin() <= 0.0).count();
    assert!(text(&app).contains(&format!("log, {below} ≤ 0 left out")), "{}", text(&app));
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.curves.filter, "");
}

#[test]
fn charts_are_selected_side_by_side_and_row_by_row() {
    let mut app = curves();
    text(&app);
    let titles: Vec<String> = app.charts().into_iter().map(|chart| chart.title).collect();
    assert_eq!(titles, ["advantage", "kl", "loss", "reward", "tok/s"]);
    assert_eq!(app.curves.across.get(), 2);
    press(&mut app, "l");
    assert_eq!(app.curves.selected.as_deref(), Some("kl"));
    press(&mut app, "j");
    assert_eq!(app.curves.selected.as_deref(), Some("reward"));
    press(&mut app, "G");
    assert_eq!(app.curves.selected.as_deref(), Some("tok/s"));
    assert!(text(&app).contains("▸tok/s"), "it is scrolled into view");
    press(&mut app, "ggh");
    assert_eq!(app.curves.selected.as_deref(), Some("advantage"));
    key(&mut app, KeyCode::Enter);
    assert!(app.curves.one);
    key(&mut app, KeyCode::Esc);
    assert!(!app.curves.one && app.arrangement.focus == Pane::Curves);
}

#[test]
fn the_crosshair_shows_all_charts_at_one_place() {
    let mut app = curves();
    text(&app);
    let lines = |app: &App| text(app).matches('│').count();
    press(&mut app, "l");
    key(&mut app, KeyCode::Left);
    let one = lines(&app);
    press(&mut app, "i");
    assert!(lines(&app) > one + 4);
    // The other charts tell their value there.
    let x = app.curves.cursor.unwrap().step;
    let advantage = (x * 0.3).sin();
    assert!(
        text(&app).contains(&format!("advantage {}", planish::telemetry::significant(advantage))),
        "{}",
        text(&app)
    );
}

#[test]
fn y_limits_stay_until_they_must_grow() {
    let mut app = curves();
    text(&app);
    let before = app.curves.limits.borrow()["kl"];
    next_event(&mut app, Event::Metric { step: Some(101), values: [("kl".to_owned(), 0.0999)].into() });
    text(&app);
    assert_eq!(app.curves.limits.borrow()["kl"], before);
    next_event(&mut app, Event::Metric { step: Some(102), values: [("kl".to_owned(), 0.3)].into() });
    text(&app);
    assert!(app.curves.limits.borrow()["kl"].1 >= 0.3);
}

fn asked(effects: &[Effect]) -> Vec<PathBuf> {
    let run = |effect: &Effect| match effect {
        Effect::Ask(Ask::Series { run }) => Some(run.clone()),
        _ => None,
    };
    effects.iter().filter_map(run).collect()
}

#[test]
fn marked_runs_are_asked_for_and_forgotten_again() {
    let mut app = curves();
    assert_eq!(asked(&app.update(Msg::Tick(app.now))), Vec::<PathBuf>::new());
    let run = PathBuf::from("/runs/other");
    app.runs.marked = vec![run.clone()];
    assert_eq!(asked(&app.update(Msg::Tick(app.now))), std::slice::from_ref(&run));
    assert_eq!(asked(&app.update(Msg::Tick(app.now + 1_000))), Vec::<PathBuf>::new(), "it is being read");
    app.update(Msg::Told(Told::Series { run: run.clone(), series: Ok(Arc::new(Board::default())) }));
    assert_eq!(app.overlays().count(), 1);
    assert_eq!(asked(&app.update(Msg::Tick(app.now + 1_000))), Vec::<PathBuf>::new());
    assert_eq!(
        asked(&app.update(Msg::Tick(app.now + 5_000))),
        std::slice::from_ref(&run),
        "it may have grown"
    );
    press(&mut app, "b");
    assert_eq!(app.runs.pinned.as_ref(), Some(&run));
    press(&mut app, "b");
    assert_eq!(app.runs.pinned, None);
    app.runs.marked.clear();
    app.update(Msg::Tick(app.now));
    assert_eq!(app.overlays().count(), 0);
}

#[test]
fn a_run_that_cannot_be_read_is_said_once() {
    let mut app = curves();
    let run = PathBuf::from("/runs/other");
    app.runs.marked = vec![run.clone()];
    app.update(Msg::Tick(app.now));
    let broken = || {
        Msg::Told(Told::Series { run: run.clone(), series: Err("events.jsonl: line 3 is damaged".into()) })
    };
    app.update(broken());
    assert!(app.toast.take().unwrap().text.contains("curves of other: events.jsonl: line 3 is damaged"));
    app.update(broken());
    assert_eq!(app.toast, None);
}

#[test]
fn the_board_tells_what_the_fold_tells() {
    let tapes = [
        fixture::two_steps(),
        fixture::epochs::ended(),
        fixture::epochs::stale(),
        fixture::epochs::rescoring(),
    ];
    for tape in tapes {
        let app = played(SIZE, &tape);
        let last = |name: &str| app.board.series(name).and_then(|series| series.last(Smoothing::Off));
        assert_eq!(last(names::SELECT_CURRENT), app.state.current_score);
        assert_eq!(last(names::SELECT_BEST), app.state.best_score);
        let usage = app.state.total_usage();
        assert_eq!(app.board.end().tokens, (usage.prompt_tokens + usage.completion_tokens) as f64);
        let step = app.state.steps.last().map_or(0, |step| step.at.step);
        assert_eq!(app.board.end().step, f64::from(step));
        let finished = app.state.steps.iter().filter(|step| step.record.is_some()).count();
        assert_eq!(app.board.series(names::TRAIN_HARD).map_or(0, |series| series.len()), finished);
        let glance = Board::at_a_glance(&app.state);
        assert_eq!(glance.series(names::TRAIN_HARD).map_or(0, |series| series.len()), finished);
        assert_eq!((glance.run, glance.planned_steps), (app.board.run.clone(), app.board.planned_steps));
    }
}

#[test]
fn calls_come_to_latencies_and_shares() {
    let app = played(SIZE, &fixture::rolling());
    let mut app = app;
    // Nine calls of step 3, one of them missing, are told when the phase ends.
    let at = fixture::step(3);
    next_event(&mut app, Event::PhaseStarted { at, phase: planish::domain::Phase::Reflect });
    let last = |name: &str| app.board.series(name).unwrap().last(Smoothing::Off).unwrap();
    assert_eq!(last(names::MISSING), 1.0 / 9.0);
    let rollouts = &app.state.steps[2].rollouts;
    let answered: Vec<_> = rollouts.iter().filter_map(|result| result.rollout()).collect();
    let failed = answered.iter().filter(|rollout| rollout.score.failed()).count();
    assert_eq!(last(names::FAILED), failed as f64 / 8.0);
    let mut ms: Vec<u64> = answered.iter().map(|rollout| rollout.ms).collect();
    ms.sort_unstable();
    assert_eq!(last(names::LATENCY_P95), ms[7] as f64 / 1e3);
}

#[test]
fn the_attached_run_as_baseline_is_drawn_once() {
    let mut app = curves();
    app.attached = Some("/runs/city-demo".into());
    app.runs.pinned = app.attached.clone();
    app.runs.marked = vec!["/runs/city-demo".into()];
    app.update(Msg::Tick(app.now + 500));
    assert!(app.curves.others.is_empty());
    assert!(text(&app).contains("━ city-demo (baseline)"), "{}", text(&app));
}

#[test]
fn live_rates_have_a_place_in_time() {
    let mut app = curves();
    app.update(Msg::Tick(app.now + 500_000));
    hear(&mut app, HostLine::Live(Live::Throughput { tokens_per_s: 42.0, in_flight: 3 }));
    let rate = app.board.series(names::RATE).unwrap();
    let at = rate.moment(0).unwrap();
    assert_eq!(at.time, (app.now - fixture::START) as f64);
    assert!(app.curve_window(Axis::Time).1 >= at.time);
}

#[test]
fn the_curves_are_exported_as_numbers_where_there_are_any() {
    let mut app = curves();
    press(&mut app, "E");
    let Some(Overlay::Choice { choices, .. }) = &app.overlay else { panic!("nothing to choose") };
    let at = choices.iter().position(|choice| choice.label == "curves as csv").unwrap();
    assert_eq!(at, choices.len() - 1);
    let digit = char::from_digit(at as u32 + 1, 10).unwrap();
    assert_eq!(press(&mut app, &digit.to_string()), [Effect::Export(Export::Numbers)]);
    let mut empty = super::client::app(super::SIZE);
    press(&mut empty, "E");
    assert!(!super::client::text(&empty).contains("csv"), "no curves, no numbers");
}

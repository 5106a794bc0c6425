//! The Rollouts pane: filters, sorting, marks, comparison, calls under way.

use planish::domain::{EffectKey, Phase};
use planish::event::{Command, Event, HostLine, Live, RunState};
use planish::tui::{App, Msg, Overlay, Pane, Sort};
use ratatui::crossterm::event::KeyCode;

use super::client::{app, hear, key, played, press, text, welcome};
use super::fixture;
use super::{SIZE, bodies, next_event, reviewing};

#[test]
fn a_selected_rollout_stays_selected_when_its_result_arrives() {
    let mut app = played(SIZE, &fixture::rolling());
    for live in fixture::live() {
        hear(&mut app, HostLine::Live(live));
    }
    press(&mut app, "3j");
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains("Transcript  city-2002"));
    let path = format!("{}/rollout/city-2002#0", fixture::step(3).path());
    let key = planish::domain::EffectKey { path, fingerprint: String::new() };
    let result = fixture::rollout("city-2002", "Lima", "Lima");
    next_event(&mut app, Event::RolloutFinished { key, at: fixture::step(3), index: 12, result });
    let shown = text(&app);
    assert!(shown.contains("Transcript  city-2002") && shown.contains("expected Lima"), "{shown}");
    assert_eq!(app.live.calls.len(), 3);
}

#[test]
fn filters_and_failures() {
    let mut app = reviewing();
    press(&mut app, "3!");
    assert!(app.rows().iter().all(|row| !row.passed()));
    press(&mut app, "!/4960");
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.rows().len(), 1);
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.rows().len(), 20);
}

fn rolling() -> App {
    let mut app = played(SIZE, &fixture::rolling());
    for live in fixture::live() {
        hear(&mut app, HostLine::Live(live));
    }
    press(&mut app, "3");
    app
}

fn items(app: &App) -> Vec<String> {
    app.rows().iter().map(|row| row.item.to_owned()).collect()
}

fn filter(app: &mut App, words: &str) {
    press(app, "3/");
    while matches!(&app.overlay, Some(Overlay::Prompt { input, .. }) if !input.text().is_empty()) {
        key(app, KeyCode::Backspace);
    }
    press(app, words);
    key(app, KeyCode::Enter);
}

#[test]
fn words_of_a_filter() {
    let mut app = rolling();
    let all = app.rows().len();
    assert_eq!(all, 4 + 9);
    for (words, n) in
        [("missing", 1), ("running", 4), ("running city-2001", 1), ("-running", 9), ("group:train", all)]
    {
        filter(&mut app, words);
        assert_eq!(app.rows().len(), n, "{words}");
        assert!(text(&app).contains(&format!("/{words}")));
    }
    filter(&mut app, "503");
    assert_eq!(items(&app), ["city-2004"], "the error of a call is searched");
    filter(&mut app, "mismatch");
    assert!(app.rows().iter().all(|row| !row.passed()) && !app.rows().is_empty());
    filter(&mut app, "group:nowhere");
    assert!(app.toast.as_ref().unwrap().text.contains("no group is called \"nowhere\""));
    assert_eq!(app.rollouts.filter.text(), "mismatch", "what is not understood hides nothing");
    filter(&mut app, "");
    assert_eq!(app.rows().len(), all);
}

#[test]
fn sorting_goes_round_and_is_named() {
    let mut app = reviewing();
    press(&mut app, "3");
    let newest = items(&app);
    let mut seen = vec![app.rollouts.sort];
    for name in ["by score", "by item", "by time", "by tokens"] {
        press(&mut app, "S");
        assert!(text(&app).contains(name));
        let mut sorted = items(&app);
        if app.rollouts.sort == Sort::Item {
            assert!(sorted.is_sorted());
        }
        if app.rollouts.sort == Sort::Score {
            let passed: Vec<bool> = app.rows().iter().map(|row| row.passed()).collect();
            assert!(passed.is_sorted(), "the worst come first");
        }
        sorted.sort();
        let mut all = newest.clone();
        all.sort();
        assert_eq!(sorted, all);
        seen.push(app.rollouts.sort);
    }
    press(&mut app, "S");
    assert_eq!((items(&app), seen.len()), (newest, 5));
}

#[test]
fn only_the_items_of_an_edit() {
    let mut app = reviewing();
    let some = app.rows().get(3).unwrap().item.to_owned();
    app.rollouts.only = Some(vec![some.clone(), "city-0000".into()]);
    press(&mut app, "3");
    assert!(text(&app).contains("behind edit 1"));
    assert_eq!(items(&app), [some]);
    key(&mut app, KeyCode::Esc);
    press(&mut app, "3");
    assert_eq!((app.rollouts.only.is_none(), app.rows().len()), (true, 20));
}

#[test]
fn the_selection_stays_on_its_row_while_others_come() {
    let mut app = reviewing();
    press(&mut app, "3jj");
    let shown = app.rows().get(2).unwrap().item.to_owned();
    let result = fixture::rollout("city-9999", "Lima", "Lima");
    let path = format!("{}/rollout/city-9999#0", fixture::step(3).path());
    let key = EffectKey { path, fingerprint: String::new() };
    next_event(&mut app, Event::RolloutFinished { key, at: fixture::step(3), index: 20, result });
    let rows = app.rows();
    assert_eq!(rows.get(0).unwrap().item, "city-9999");
    assert_eq!(rows.get(app.selected_row(&rows)).unwrap().item, shown);
}

#[test]
fn two_marked_results_are_compared() {
    let mut app = reviewing();
    press(&mut app, "3=");
    assert!(app.toast.as_ref().unwrap().text.contains("mark one"));
    press(&mut app, " ");
    assert_eq!(app.rollouts.marked.len(), 1);
    assert!(text(&app).contains("✓◆"));
    press(&mut app, "/fail");
    app.overlay = None;
    press(&mut app, "j=");
    assert_eq!(app.arrangement.focus, Pane::Transcript);
    let shown = text(&app);
    assert!(shown.contains("compared") && shown.contains("replies: 1 difference"), "{shown}");
    assert!(shown.contains("− ") && shown.contains("+ The city is X"), "{shown}");
    assert!(
        shown.contains("step 3 train") && shown.contains("✓ pass") && shown.contains("✗ fail"),
        "{shown}"
    );
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.arrangement.focus, Pane::Rollouts);
    press(&mut app, "  ");
    assert_eq!(app.rollouts.marked.len(), 2, "a third mark takes the place of the oldest");
}

#[test]
fn one_item_under_two_skills() {
    let mut app = played(SIZE, &fixture::two_steps());
    press(&mut app, "3 ");
    let item = app.row_of(app.rollouts.marked[0]).unwrap().item.to_owned();
    press(&mut app, "[3/");
    press(&mut app, &format!("{item} group:select"));
    key(&mut app, KeyCode::Enter);
    press(&mut app, "=");
    let shown = text(&app);
    assert!(shown.contains("step 2 candidate") && shown.contains("step 1 candidate"), "{shown}");
}

#[test]
fn a_call_is_cancelled_after_a_question_that_names_it() {
    let mut app = rolling();
    assert_eq!(press(&mut app, "x"), []);
    let asked = text(&app);
    assert!(
        asked.contains("Cancel the call for city-2001?") && asked.contains("counts as missing"),
        "{asked}"
    );
    let path = format!("{}/rollout/city-2001#0", fixture::step(3).path());
    let sent = key(&mut app, KeyCode::Enter);
    assert_eq!(bodies(&sent), [Command::CancelRollout { path: path.clone() }]);
    assert_eq!(bodies(&press(&mut app, "R")), [Command::RequeueRollout { path: path.clone() }]);
    press(&mut app, "x");
    hear(&mut app, HostLine::Live(Live::CallFinished { path, ok: false, tokens: 0, ms: 1 }));
    assert_eq!(key(&mut app, KeyCode::Enter), []);
    assert!(app.toast.as_ref().unwrap().text.contains("has ended"));
    press(&mut app, "3Gx");
    assert!(app.toast.as_ref().unwrap().text.contains("cancel"), "a finished rollout is not cancelled");
    assert!(app.overlay.is_none());
}

#[test]
fn what_a_call_is_at() {
    let mut app = rolling();
    press(&mut app, "z");
    let path = format!("{}/rollout/city-2002#0", fixture::step(3).path());
    hear(
        &mut app,
        HostLine::Live(Live::CallDelta { path: path.clone(), text: "<think>is it a port".into() }),
    );
    let shown = text(&app);
    for words in ["streaming", "thinking", "waiting", "retry 2 · HTTP 503"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    app.update(Msg::Tick(app.now + 7_000));
    assert!(text(&app).contains("idle 7.0s"), "{}", text(&app));
    hear(&mut app, HostLine::Live(Live::CallFinished { path, ok: true, tokens: 9, ms: 1 }));
    assert!(text(&app).contains("◌ city-2002") && text(&app).contains("answered"));
    next_event(&mut app, Event::PhaseStarted { at: fixture::step(3), phase: Phase::Reflect });
    assert!(!text(&app).contains("city-2002"));
}

#[test]
fn a_glance_gives_way_to_the_whole_and_the_selection_stays() {
    let tape = fixture::rolling();
    let mut glance = RunState::fold(&tape.records);
    // What came before the tail is not in a glance.
    glance.steps.last_mut().unwrap().rollouts.drain(..5);
    let mut app = app(SIZE);
    hear(&mut app, welcome(tape.records.len() as u64));
    hear(&mut app, HostLine::Glance(Box::new(glance)));
    press(&mut app, "3jj ");
    press(&mut app, "k");
    let chosen = |app: &App| {
        let rows = app.rows();
        rows.get(app.selected_row(&rows)).unwrap().item.to_owned()
    };
    let (before, item) = (app.rows().len(), chosen(&app));
    text(&app);
    for line in tape.lines() {
        hear(&mut app, line);
    }
    assert_eq!((before, app.rows().len(), chosen(&app)), (4, 9, item));
    assert!(text(&app).contains("✓4 ✗4 !1") && app.rollouts.marked.is_empty(), "{}", text(&app));
}

#[test]
fn a_history_that_is_sent_again_counts_once() {
    let tape = fixture::rolling();
    let mut glanced = app(SIZE);
    hear(&mut glanced, welcome(tape.records.len() as u64));
    hear(&mut glanced, HostLine::Glance(Box::new(RunState::fold(&tape.records))));
    let (lines, half) = (tape.lines(), tape.records.len() / 2);
    lines[..half].iter().for_each(|line| drop(hear(&mut glanced, line.clone())));
    // Another role: the next connection begins with records that came already.
    lines[half / 2..].iter().for_each(|line| drop(hear(&mut glanced, line.clone())));
    let once = played(SIZE, &tape);
    assert_eq!(glanced.lines.heard(), once.lines.heard());
    assert_eq!(glanced.board, once.board);
}

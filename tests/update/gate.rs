//! The Gate pane item by item, and the override of a decision.

use planish::domain::{GateScore, Ruling, Verdict};
use planish::event::{Command, EndStatus, EvalPurpose, Event, ItemResult};
use planish::tui::{App, Effect, Overlay, Pane};
use ratatui::crossterm::event::KeyCode;

use super::client::{key, played, press, text};
use super::fixture::{self, Tape};
use super::{SIZE, bodies, next_event};

/// Two steps; the second's candidate gained and lost items against the first's, and lacks an answer.
fn decided() -> Tape {
    let mut tape = fixture::two_steps();
    let before = tape.current.hash.clone();
    for record in &mut tape.records {
        if let Event::ReviewOpened { at, current_hash, .. } = &mut record.event
            && at.step == 2
        {
            current_hash.clone_from(&before);
        }
        if let Event::EvaluationItemFinished { eval, index: 59, result, .. } = &mut record.event
            && eval == "s002"
        {
            let item = result.item().to_owned();
            *result = ItemResult::Missing { item, error: "timeout".into() };
        }
    }
    tape
}

fn items() -> App {
    let mut app = played(SIZE, &decided());
    press(&mut app, "5");
    key(&mut app, KeyCode::Enter);
    app
}

/// The marks of the listed items, top to bottom.
fn marks(app: &App) -> Vec<char> {
    let screen = text(app);
    let rows = screen.lines().filter_map(|line| line.split("││ ").nth(1));
    let rows = rows.filter(|row| row.contains("city-"));
    rows.filter_map(|row| row.chars().next()).filter(|mark| "+−=?·".contains(*mark)).collect()
}

#[test]
fn items_are_paired_with_what_was_measured_of_the_current_skill() {
    let mut app = items();
    let shown = text(&app);
    assert!(shown.contains("items by change") && shown.contains("current candidate"), "{shown}");
    assert!(shown.contains("✗ rejected  -0.050"), "{shown}");
    let by_change = marks(&app);
    assert_eq!(by_change[0], '−');
    let order = |mark: &char| "−+?=·".find(*mark);
    assert!(by_change.is_sorted_by_key(order), "{by_change:?}");
    // Of the 59 items that the candidate answered it passed 27, the current skill 30.
    let counted = |mark: &str| -> i64 {
        let after = shown.split(&format!(" {mark}")).nth(1).unwrap();
        after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    assert!(shown.contains("?1"), "{shown}");
    assert_eq!(counted("−") - counted("+"), 30 - 27);
    press(&mut app, "d");
    assert!(text(&app).contains("items by Δ") && marks(&app)[0] == '−');
    press(&mut app, "d");
    assert!(text(&app).contains("items by name"));
    let names: Vec<String> = text(&app)
        .lines()
        .filter_map(|line| line.split("││ ").nth(1)?.split_whitespace().nth(1).map(str::to_owned))
        .filter(|word| word.starts_with("city-"))
        .collect();
    assert!(names.len() > 10 && names.is_sorted(), "{names:?}");
    key(&mut app, KeyCode::Esc);
    assert!(!app.gate.table && text(&app).contains("smallest visible gain"));
}

#[test]
fn an_item_opens_its_two_transcripts_and_leads_back() {
    let mut app = items();
    press(&mut app, "jj");
    assert_eq!(app.gate.selected, 2);
    key(&mut app, KeyCode::Enter);
    let shown = text(&app);
    assert!(
        shown.contains("compared")
            && shown.contains("step 1 candidate")
            && shown.contains("step 2 candidate")
    );
    key(&mut app, KeyCode::Esc);
    assert_eq!((app.arrangement.focus, app.gate.table, app.gate.selected), (Pane::Gate, true, 2));
}

#[test]
fn an_item_measured_on_one_side_opens_alone() {
    let mut app = played(SIZE, &fixture::two_steps());
    press(&mut app, "[[");
    assert_eq!(app.stage_name(), "baseline");
    press(&mut app, "5");
    key(&mut app, KeyCode::Enter);
    assert!(marks(&app).iter().all(|mark| *mark == '·'));
    key(&mut app, KeyCode::Enter);
    assert_eq!((app.arrangement.focus, app.transcript.compared), (Pane::Transcript, None));
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.arrangement.focus, Pane::Gate);
}

#[test]
fn the_test_pairs_seed_and_best_and_a_copy_has_every_item() {
    let mut app = played(SIZE, &fixture::ended(EndStatus::Completed, ""));
    press(&mut app, "5");
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains("seed") && text(&app).contains("best"));
    let copied = press(&mut app, "Y");
    let [Effect::Copy(all)] = copied.as_slice() else { panic!("{copied:?}") };
    assert!(all.contains("item\tseed\tbest\tchange\n"));
    assert_eq!(all.lines().filter(|line| line.starts_with("city-")).count(), 20);
}

#[test]
fn measured_again_is_evidence_of_chance() {
    let mut tape = fixture::two_steps();
    let at = fixture::step(3);
    fixture::rollouts(&mut tape, at, 11, 20);
    let (current, candidate) = (tape.current.clone(), planish::domain::Skill::new("three"));
    fixture::evaluate(&mut tape, "e01/s003/rescore", EvalPurpose::Rescore, at, &current, 60, 29);
    let score = fixture::evaluate(&mut tape, "s003", EvalPurpose::Candidate, at, &candidate, 60, 33);
    let decision = tape.records.iter().rev().find_map(|record| match &record.event {
        Event::GateDecided { decision, .. } => Some((**decision).clone()),
        _ => None,
    });
    let mut decision = decision.unwrap();
    decision.verdict = Verdict::Accept;
    decision.current = GateScore { gate: 29.0 / 60.0, ..score.clone() };
    decision.candidate = score;
    tape.push(1, Event::GateDecided { at, decision: Box::new(decision) });
    let mut app = played(SIZE, &tape);
    press(&mut app, "5");
    assert!(text(&app).contains("current measured 2 times: 0.517, 0.483"), "{}", text(&app));
}

#[test]
fn an_override_needs_a_reason_and_is_told_everywhere() {
    let mut app = played(SIZE, &fixture::two_steps());
    press(&mut app, "5O");
    assert!(matches!(app.overlay, Some(Overlay::Choice { .. })));
    press(&mut app, "1");
    assert_eq!(key(&mut app, KeyCode::Enter), [], "no reason, no override");
    assert!(app.toast.as_ref().unwrap().text.contains("a reason is needed"));
    press(&mut app, "O1the split is tiny");
    let sent = key(&mut app, KeyCode::Enter);
    let at = fixture::step(2);
    let (ruling, reason) = (Ruling::Accept, "the split is tiny".to_owned());
    assert_eq!(bodies(&sent), [Command::Override { at, ruling, reason: reason.clone() }]);
    next_event(&mut app, Event::OverrideRequested { at, ruling, reason, by: fixture::ann(), rev: 9 });
    press(&mut app, "z");
    let shown = text(&app);
    assert!(shown.contains("⇄ overruled by ann@pts/1: accept · the split is tiny · takes effect"), "{shown}");
    press(&mut app, "z2");
    assert!(text(&app).contains("✗⇄2"), "{}", text(&app));
    press(&mut app, "[5O");
    assert!(app.overlay.is_none(), "an older decision is not overruled");
}

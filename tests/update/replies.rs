//! What the screen says back to a person: too small for keys, what was applied, what came to nothing, what is refused.

use planish::domain::Ruling;
use planish::event::{AckResult, Command, EndStatus, Event, HostLine};
use planish::tui::{App, ClientEvent, Effect, Msg, Overlay, Pane};
use ratatui::crossterm::event::KeyCode;

use super::client::{control, hear, key, played, press, text};
use super::fixture;
use super::{SIZE, bodies, commands, next_event, reviewing};

fn answered(app: &mut App, effects: &[Effect], result: &AckResult) {
    for (cmd_id, _, _) in commands(effects) {
        hear(app, HostLine::Ack { cmd_id, result: result.clone(), rev: 50 });
    }
}

fn denied() -> AckResult {
    AckResult::Denied { reason: "no host".into() }
}

fn said(app: &App) -> String {
    app.toast.as_ref().map(|toast| toast.text.clone()).unwrap_or_default()
}

fn typed(app: &App) -> String {
    match &app.overlay {
        Some(Overlay::Prompt { input, .. }) => input.text(),
        other => panic!("no prompt: {other:?}"),
    }
}

#[test]
fn below_the_smallest_size_keys_do_nothing_unseen() {
    let mut app = reviewing();
    app.update(Msg::Resize(50, 10));
    for keys in ["a", "x", "A", "c", ":", "?", "gs", "p", "Q"] {
        assert_eq!(press(&mut app, keys), [], "{keys}");
        assert!(app.overlay.is_none(), "{keys}");
        assert!(said(&app).contains("nothing done"), "{keys}");
    }
    assert_eq!(key(&mut app, KeyCode::Enter), []);
    let shown = text(&app);
    assert!(
        shown.contains("enlarge to 60×15 for keys; q leaves") && shown.contains("nothing done"),
        "{shown}"
    );
    assert_eq!(control(&mut app, 'l'), []);
    assert_eq!(control(&mut app, 'z'), [Effect::Suspend]);
    assert_eq!(press(&mut app, "q"), [Effect::Quit]);
    assert_eq!(control(&mut app, 'c'), [Effect::Quit]);
}

#[test]
fn an_overlay_outlasts_a_terminal_too_small_for_it() {
    let mut app = reviewing();
    press(&mut app, "cshort");
    app.update(Msg::Resize(50, 10));
    press(&mut app, "er");
    app.update(Msg::Paste("est".into()));
    assert_eq!(key(&mut app, KeyCode::Enter), []);
    key(&mut app, KeyCode::Esc);
    app.update(Msg::Resize(SIZE.0, SIZE.1));
    assert_eq!(typed(&app), "short");
    press(&mut app, "er");
    assert_eq!(typed(&app), "shorter");
}

#[test]
fn the_next_key_clears_what_was_said() {
    let mut app = reviewing();
    press(&mut app, "5O");
    assert!(!said(&app).is_empty());
    press(&mut app, "4");
    assert_eq!(app.toast, None);
    press(&mut app, "f");
    assert!(said(&app).contains("following"));
    press(&mut app, "g");
    assert_eq!(app.toast, None, "the beginning of a chord is a key too");
}

#[test]
fn what_was_applied_is_said() {
    let mut app = reviewing();
    press(&mut app, "cgood");
    let sent = key(&mut app, KeyCode::Enter);
    answered(&mut app, &sent, &AckResult::Applied);
    assert_eq!(said(&app), "comment sent");
    let sent = [press(&mut app, "A"), key(&mut app, KeyCode::Enter), key(&mut app, KeyCode::Enter)].concat();
    answered(&mut app, &sent, &AckResult::Applied);
    assert!(said(&app).starts_with("submitted"), "{}", said(&app));

    let mut app = played(SIZE, &fixture::two_steps());
    press(&mut app, "5O1tiny");
    let sent = key(&mut app, KeyCode::Enter);
    answered(&mut app, &sent, &AckResult::Applied);
    assert_eq!(said(&app), "overruled: accept");
}

#[test]
fn words_that_came_to_nothing_are_offered_again_for_the_same_purpose() {
    let mut app = reviewing();
    press(&mut app, "cshorter is better");
    let sent = key(&mut app, KeyCode::Enter);
    press(&mut app, "c");
    assert_eq!(typed(&app), "", "its answer is awaited");
    key(&mut app, KeyCode::Esc);
    answered(&mut app, &sent, &denied());
    assert!(said(&app).contains("your words are kept"), "{}", said(&app));
    press(&mut app, "C");
    assert_eq!(typed(&app), "", "that is about the step");
    key(&mut app, KeyCode::Esc);
    press(&mut app, "c");
    assert_eq!(typed(&app), "shorter is better");
    let sent = key(&mut app, KeyCode::Enter);
    let at = fixture::step(3);
    let text = "shorter is better".to_owned();
    assert_eq!(bodies(&sent), [Command::Comment { at, edit: Some(0), text }]);
    answered(&mut app, &sent, &AckResult::Applied);
    press(&mut app, "c");
    assert_eq!(typed(&app), "", "it was said");
}

#[test]
fn reasons_that_came_to_nothing_are_offered_again() {
    let mut app = reviewing();
    press(&mut app, "xtoo broad");
    let sent = key(&mut app, KeyCode::Enter);
    answered(&mut app, &sent, &denied());
    press(&mut app, "Kx");
    assert_eq!(typed(&app), "too broad");

    let mut app = played(SIZE, &fixture::two_steps());
    press(&mut app, "5O1the split is tiny");
    let sent = key(&mut app, KeyCode::Enter);
    answered(&mut app, &sent, &denied());
    press(&mut app, "O1");
    assert_eq!(typed(&app), "the split is tiny");
    let sent = key(&mut app, KeyCode::Enter);
    let (at, reason, by) = (fixture::step(2), "the split is tiny".to_owned(), fixture::ann());
    assert_eq!(bodies(&sent), [Command::Override { at, ruling: Ruling::Accept, reason: reason.clone() }]);
    next_event(&mut app, Event::OverrideRequested { at, ruling: Ruling::Accept, reason, by, rev: 60 });
    answered(&mut app, &sent, &AckResult::Applied);
    press(&mut app, "O1");
    assert_eq!(typed(&app), "");
}

#[test]
fn a_replay_says_that_nothing_of_it_is_steered() {
    let mut app = reviewing();
    app.update(Msg::Client(ClientEvent::Recording));
    app.identity.read_only = true;
    let host = Event::HostStarted { host: "machine-7".into(), pid: 4711, resumed: false };
    next_event(&mut app, host);
    press(&mut app, "4");
    for keys in ["a", "x", "c", "gs", "Q", "p", "5O"] {
        assert_eq!(press(&mut app, keys), [], "{keys}");
        assert!(app.overlay.is_none(), "{keys}");
        assert!(said(&app).ends_with(": a replay cannot be steered"), "{keys}");
    }
    press(&mut app, "0");
    let shown = text(&app);
    assert!(!shown.contains("gs") && !shown.contains("machine-7"), "{shown}");
    assert!(shown.contains("a replay cannot be steered"), "{shown}");
}

#[test]
fn an_imported_run_is_not_steered_either() {
    let mut app = played(SIZE, &fixture::two_steps());
    let ended = Event::RunFinished {
        status: EndStatus::Imported,
        reason: String::new(),
        best_hash: String::new(),
        best_step: 0,
        best_score: None,
        baseline_score: None,
    };
    next_event(&mut app, ended);
    for keys in ["p", "Q", "gs", "5O"] {
        assert_eq!(press(&mut app, keys), [], "{keys}");
        assert!(said(&app).ends_with(": an imported run cannot be steered"), "{keys}");
    }
}

#[test]
fn a_refusal_says_what_to_do() {
    let mut app = reviewing();
    press(&mut app, "5O");
    assert_eq!(said(&app), "override: only the last decided step can be overruled: step 2 ([ goes there)");
    assert!(text(&app).contains("only the last decided step"));
    press(&mut app, "[[O");
    assert_eq!(said(&app), "override: only the last decided step can be overruled: step 2 (] goes there)");
    press(&mut app, "4a");
    assert_eq!(said(&app), "accept: the open review is of step 3 (f goes there)");
    press(&mut app, "f3x");
    assert_eq!(said(&app), "cancel: no call under way is selected");
    press(&mut app, "R");
    assert_eq!(said(&app), "requeue: no call under way is selected");
    press(&mut app, "4u");
    assert_eq!(said(&app), "undo: no decision to take back");
}

#[test]
fn a_review_of_a_paused_run_is_not_said_to_run() {
    let mut app = reviewing();
    next_event(&mut app, Event::Paused { by: fixture::ann() });
    assert_eq!(app.review_label().as_deref(), Some("REVIEW 4 (paused)"));
    assert!(text(&app).contains("[REVIEW 4 (paused)]"), "{}", text(&app));
}

#[test]
fn esc_closes_the_rationale_before_it_leaves() {
    let mut app = reviewing();
    press(&mut app, "4r");
    assert!(app.patch.rationale);
    key(&mut app, KeyCode::Esc);
    assert!(!app.patch.rationale && app.arrangement.focus == Pane::Patch);
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.arrangement.focus, Pane::Steps);
}

#[test]
fn zooming_is_offered_for_two_columns_only_where_it_gives_them() {
    let split = |size: (u16, u16)| {
        let mut app = reviewing();
        app.update(Msg::Resize(size.0, size.1));
        press(&mut app, "4");
        text(&app);
        press(&mut app, "s");
        said(&app)
    };
    let narrow = split((60, 20));
    assert!(narrow.contains("needs 90 columns") && !narrow.contains('z'), "{narrow}");
    assert!(!split((80, 24)).contains('z'));
    let standard = split(SIZE);
    assert!(standard.ends_with("z gives more"), "{standard}");
    for said in [narrow, standard] {
        assert!(said.chars().count() + 2 <= 58, "{said}");
    }
}

#[test]
fn lists_that_a_filter_empties_say_so() {
    for pane in ["3", "6"] {
        let mut app = reviewing();
        press(&mut app, pane);
        press(&mut app, "/city-19zz");
        key(&mut app, KeyCode::Enter);
        assert!(text(&app).contains("nothing matches /city-19zz"), "{pane}: {}", text(&app));
    }
    let mut app = reviewing();
    press(&mut app, "8&city-19zz");
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains("nothing matches /city-19zz"), "{}", text(&app));
    press(&mut app, ":qqqq");
    assert!(text(&app).contains("no command matches"), "{}", text(&app));
}

//! Leaving while commands are not answered: nothing decided is lost without a word.

use planish::domain::Decision;
use planish::event::{AckResult, HostLine};
use planish::tui::{App, Effect, Msg, Overlay};
use ratatui::crossterm::event::KeyCode;

use super::client::{hear, key, press, text};
use super::{applied, bodies, commands, decide, reviewing};

/// Two decisions on their way.
fn deciding() -> (App, Vec<Effect>) {
    let mut app = reviewing();
    let sent: Vec<Effect> = press(&mut app, "4aJa");
    assert_eq!(bodies(&sent).len(), 2);
    (app, sent)
}

fn waits(app: &App) -> bool {
    app.overlay.is_none() && app.next_tick().is_some_and(|ms| ms <= 1_000)
}

#[test]
fn leaving_waits_for_the_answers_and_goes_with_the_last() {
    let (mut app, sent) = deciding();
    assert_eq!(press(&mut app, "q"), []);
    assert!(waits(&app) && text(&app).contains("waiting for the answer to 2 decisions"), "{}", text(&app));
    applied(&mut app, &sent[..1]);
    let (cmd_id, ..) = commands(&sent).remove(1);
    let ack = HostLine::Ack { cmd_id, result: AckResult::Noop, rev: app.state.rev };
    assert_eq!(hear(&mut app, ack), [Effect::Quit]);
}

#[test]
fn without_answers_leaving_is_a_question() {
    let (mut app, _) = deciding();
    press(&mut app, "q");
    app.update(Msg::Tick(app.now + 999));
    assert_eq!(app.overlay, None);
    app.update(Msg::Tick(app.now + 1));
    let screen = text(&app);
    assert!(screen.contains("2 decisions were not answered: leave all the same?"), "{screen}");
    assert!(screen.contains("On the way: edit 1, edit 3."), "{screen}");
    assert_eq!(press(&mut app, "n"), []);
    assert_eq!(app.overlay, None, "it stays");
    press(&mut app, "q");
    assert_eq!(press(&mut app, "q"), [], "asked again it waits no longer");
    assert!(matches!(app.overlay, Some(Overlay::Confirm { .. })));
    assert_eq!(press(&mut app, "y"), [Effect::Quit]);
}

#[test]
fn answers_that_come_while_the_question_stands_answer_it() {
    let (mut app, sent) = deciding();
    press(&mut app, "qq");
    let mut effects = Vec::new();
    for (cmd_id, ..) in commands(&sent) {
        effects.extend(hear(&mut app, HostLine::Ack { cmd_id, result: AckResult::Noop, rev: 0 }));
    }
    assert_eq!((effects, app.overlay), (vec![Effect::Quit], None));
}

#[test]
fn who_begins_something_else_does_not_leave() {
    let (mut app, _) = deciding();
    press(&mut app, "q?");
    app.update(Msg::Tick(app.now + 5_000));
    assert!(matches!(app.overlay, Some(Overlay::Help { .. })));
    key(&mut app, KeyCode::Esc);
    app.update(Msg::Tick(app.now + 5_000));
    assert_eq!(app.overlay, None);
}

#[test]
fn a_new_connection_is_given_what_was_not_answered() {
    let (mut app, sent) = deciding();
    applied(&mut app, &sent[..1]);
    let again = app.update(Msg::RoleTaken { read_only: false });
    assert_eq!(again, &sent[1..], "the same command under the same id");
    assert_eq!(bodies(&again), [decide(2, Decision::Accept)]);
    applied(&mut app, &again);
    assert_eq!(app.update(Msg::RoleTaken { read_only: false }), []);
}

#[test]
fn an_onlooker_waits_for_its_answers_first() {
    let (mut app, sent) = deciding();
    assert_eq!(press(&mut app, "gs"), []);
    press(&mut app, "gs");
    assert_eq!(press(&mut app, "y"), [Effect::Reconnect { read_only: true }]);
    assert_eq!(app.update(Msg::RoleTaken { read_only: true }), [], "it may send nothing");
    assert!(text(&app).contains("2 decisions not answered"), "{}", text(&app));
    assert_eq!(bodies(&sent)[1], decide(2, Decision::Accept));
    assert!((0..3).all(|edit| !app.is_pending(super::fixture::step(3), edit)));
}

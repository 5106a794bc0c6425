//! A recording is shown by its own clock, whenever it is played.

use planish::tui::{App, ClientEvent, Msg};

use super::client::{app, hear, text, welcome};
use super::fixture::{self, START, Tape};

const YEAR: u64 = 31_536_000_000;

/// Plays `tape` a year after it happened, a second between any two records.
fn replayed(tape: &Tape) -> App {
    let mut app = app((120, 40));
    app.update(Msg::Tick(START + YEAR));
    app.update(Msg::Client(ClientEvent::Recording));
    hear(&mut app, welcome(tape.records.len() as u64));
    for line in tape.lines() {
        app.update(Msg::Tick(app.now + 1_000));
        hear(&mut app, line);
    }
    app
}

#[test]
fn clocks_stand_at_the_last_record_whenever_it_is_played() {
    let tape = fixture::reviewing();
    let mut app = replayed(&tape);
    let happened = tape.records[tape.records.len() - 1].at;
    let started = app.state.info.as_ref().unwrap().started_at;
    assert_eq!((app.run_now(), app.elapsed()), (happened, happened - started));
    assert!(text(&app).contains("accepts in 1:00"), "{}", text(&app));
    let before = text(&app);
    app.update(Msg::Tick(app.now + 60_000));
    assert_eq!(app.elapsed(), happened - started);
    assert_eq!(text(&app), before, "nothing ticks");
}

#[test]
fn the_time_of_a_run_without_a_host_is_that_of_its_last_record() {
    let mut app = super::client::played((120, 40), &fixture::reviewing());
    let running = app.elapsed();
    app.update(Msg::Client(ClientEvent::Lost("no host".into())));
    let heard = app.elapsed();
    assert!(heard < running, "three seconds passed since the last record");
    app.update(Msg::Tick(app.now + YEAR));
    assert_eq!(app.elapsed(), heard);
}

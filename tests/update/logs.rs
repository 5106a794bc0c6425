//! The Logs pane: follow, levels, filter, search, bounded memory.

use planish::event::{Event, LogLevel};
use planish::tui::{App, Effect};
use ratatui::crossterm::event::KeyCode;

use super::client::{key, played, press, text};
use super::fixture;
use super::{SIZE, next_event};

fn reading() -> App {
    let mut app = played(SIZE, &fixture::reviewing());
    press(&mut app, "8z");
    text(&app);
    app
}

fn log(app: &mut App, level: LogLevel, message: &str) {
    next_event(app, Event::Log { level, message: message.into() });
}

#[test]
fn lines_that_come_while_somebody_reads_up_are_counted() {
    let mut app = reading();
    press(&mut app, "kkk");
    assert!(!app.logs.follow && !text(&app).contains('↓'));
    let shown = text(&app);
    for n in 0..4 {
        log(&mut app, LogLevel::Info, &format!("later {n}"));
    }
    let after = text(&app);
    assert!(after.contains("↓ 4 new") && !after.contains("later 0"), "{after}");
    let body = |screen: &str| screen.lines().skip(2).take(30).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&shown), body(&after), "the lines in view stay where they are");
    press(&mut app, "G");
    assert!(app.logs.follow && text(&app).contains("later 3"));
    press(&mut app, "f");
    assert!(!app.logs.follow);
}

#[test]
fn levels_go_round_and_are_named() {
    let mut app = reading();
    log(&mut app, LogLevel::Error, "the disk is full");
    let wanted = [("info+", true), ("warn+", true), ("error+", true), ("debug+", true)];
    for (name, error_shown) in wanted {
        press(&mut app, "L");
        let shown = text(&app);
        assert!(shown.contains(name) && shown.contains("the disk is full") == error_shown, "{shown}");
        if name == "error+" {
            assert!(!shown.contains("slow_target"), "a warning is below an error: {shown}");
        }
        if name == "warn+" {
            assert!(shown.contains("▲") && shown.contains("slow_target"), "{shown}");
        }
    }
}

#[test]
fn a_filter_hides_and_a_search_does_not() {
    let mut app = reading();
    log(&mut app, LogLevel::Info, "needle one");
    log(&mut app, LogLevel::Info, "hay");
    log(&mut app, LogLevel::Info, "Needle two");
    press(&mut app, "/needle");
    key(&mut app, KeyCode::Enter);
    let shown = text(&app);
    assert!(shown.contains("/needle 2 of 2") && shown.contains("hay"), "{shown}");
    press(&mut app, "N");
    assert!(text(&app).contains("/needle 1 of 2"));
    assert_eq!(press(&mut app, "y"), [Effect::Copy("needle one".into())]);
    press(&mut app, "nn");
    assert!(text(&app).contains("/needle 1 of 2"), "it goes round");
    key(&mut app, KeyCode::Esc);
    assert!(!text(&app).contains("/needle"));
    press(&mut app, "&needle");
    key(&mut app, KeyCode::Enter);
    let shown = text(&app);
    assert!(shown.contains("only needle") && !shown.contains("hay"), "{shown}");
    press(&mut app, "/nothing of the kind");
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains("not found"));
    key(&mut app, KeyCode::Esc);
    key(&mut app, KeyCode::Esc);
    assert!(text(&app).contains("hay"), "escape goes back level by level");
}

#[test]
fn memory_is_bounded_and_the_first_row_says_where_the_rest_is() {
    let mut app = reading();
    for n in 0..10_200 {
        log(&mut app, LogLevel::Info, &format!("many {n}"));
    }
    press(&mut app, "gg");
    let shown = text(&app);
    assert!(shown.contains("older lines in events.jsonl") && shown.contains("many 200 "), "{shown}");
    assert!(!shown.contains("many 199 "), "{shown}");
    press(&mut app, "j");
    assert!(!text(&app).contains("older lines"));
}

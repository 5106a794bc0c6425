//! News of what is not on the screen draws nothing; motion stops where it is not wanted.

use planish::domain::MachineSample;
use planish::event::{Event, HostLine, Live, LogLevel};
use planish::tui::{App, Dirty, Msg, Pane};

use super::client::{hear, played, press, text};
use super::{fixture, next_event};

fn quiet(size: (u16, u16), keys: &str) -> App {
    let mut app = played(size, &fixture::two_steps());
    press(&mut app, keys);
    app.take_dirty();
    app
}

fn delta() -> HostLine {
    HostLine::Live(Live::CallDelta { path: "p".into(), text: "text".into() })
}

#[test]
fn hidden_panes_are_not_drawn() {
    let mut app = quiet((80, 24), "4");
    hear(&mut app, delta());
    assert_eq!(app.dirty(), Dirty::Clean, "the rollouts are not on this screen");
    next_event(&mut app, Event::Log { level: LogLevel::Info, message: "words".into() });
    assert_eq!(app.dirty(), Dirty::Clean, "nor are the logs");
    press(&mut app, "8");
    assert!(text(&app).contains("words"), "but nothing was lost");
    app.take_dirty();
    next_event(&mut app, Event::Log { level: LogLevel::Info, message: "more".into() });
    assert_eq!(app.dirty(), Dirty::Data);
    let mut app = quiet((120, 40), "4");
    hear(&mut app, delta());
    assert_eq!(app.dirty(), Dirty::Data, "here they are");
    assert!(app.places().of(Pane::Machine).is_none());
    app.arrangement.strip = Pane::Logs;
    app.take_dirty();
    hear(&mut app, HostLine::Live(Live::Machine(MachineSample::default())));
    assert_eq!(app.dirty(), Dirty::Clean);
    let mut app = quiet((80, 24), "4");
    hear(&mut app, HostLine::Live(Live::Throughput { tokens_per_s: 5.0, in_flight: 1 }));
    assert_eq!(app.dirty(), Dirty::Data, "the line of numbers tells it");
}

#[test]
fn the_mark_of_calls_moves_only_where_motion_is_wanted() {
    let started = Live::CallStarted { path: "p".into(), item: "t1".into(), attempt: 1 };
    let mut app = quiet((120, 40), "4");
    assert!(!text(&app).starts_with(['●', '⠋', '⠙']));
    hear(&mut app, HostLine::Live(started));
    let seen = |app: &App| text(app).chars().next().unwrap();
    let mut marks = vec![seen(&app)];
    app.take_dirty();
    for _ in 0..3 {
        assert!(app.next_tick().unwrap() <= 250);
        app.update(Msg::Tick(app.now + 250));
        assert_eq!(app.take_dirty(), Dirty::Data);
        marks.push(seen(&app));
    }
    marks.dedup();
    assert_eq!(marks.len(), 4, "{marks:?}");
    for reduced in [true, false] {
        app.prefs.reduced_motion = reduced;
        app.prefs.low_bandwidth = !reduced;
        assert_eq!(seen(&app), '●');
        assert!(app.next_tick().unwrap() > 250 || app.now % 1000 >= 750, "no step is waited for");
    }
}

//! What a frame costs on the wire, measured on the real encoder at 120x40 with true colour.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../fixture/client.rs"]
mod client;
#[path = "../fixture/mod.rs"]
mod fixture;

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use client::{app, hear, key, played, press};
use planish::event::{Event, HostLine, Live, LogLevel, Record};
use planish::tui::{App, Depth, Dirty, Msg, Screen, Theme, draw};
use ratatui::crossterm::event::KeyCode;

const SIZE: (u16, u16) = (120, 40);

/// Counts writes and keeps the bytes.
#[derive(Clone, Default)]
struct Wire(Rc<RefCell<(usize, Vec<u8>)>>);

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.borrow_mut();
        inner.0 += 1;
        inner.1.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Rig {
    app: App,
    screen: Screen<Wire>,
    wire: Wire,
    theme: Theme,
}

impl Rig {
    fn new(app: App) -> Self {
        ratatui::crossterm::style::force_color_output(true);
        let wire = Wire::default();
        let screen = Screen::new(wire.clone());
        Self { app, screen, wire, theme: Theme::dark(Depth::True).unwrap() }
    }

    /// Draws as the runtime does and gives (writes, bytes) of the frame.
    fn frame(&mut self) -> (usize, usize) {
        match self.app.take_dirty() {
            Dirty::Clean => return (0, 0),
            Dirty::Repaint => self.screen.repaint(),
            Dirty::Data | Dirty::Input => {}
        }
        let (app, theme) = (&self.app, &self.theme);
        self.screen.draw(app.size, |buf| draw(app, theme, buf)).unwrap();
        let (writes, bytes) = std::mem::take(&mut *self.wire.0.borrow_mut());
        (writes, bytes.len())
    }
}

fn log(app: &App, message: &str) -> HostLine {
    let event = Event::Log { level: LogLevel::Info, message: message.into() };
    HostLine::Event(Box::new(Record { seq: app.state.seq + 1, at: app.now, event }))
}

#[test]
fn the_first_paint_is_small_and_one_write() {
    for tape in [fixture::reviewing(), fixture::rolling(), fixture::measuring()] {
        let (writes, bytes) = Rig::new(played(SIZE, &tape)).frame();
        assert_eq!(writes, 1);
        assert!(bytes <= 15_000, "{bytes} bytes");
    }
}

#[test]
fn an_idle_screen_sends_nothing() {
    let mut rig = Rig::new(played(SIZE, &fixture::ended(planish::event::EndStatus::Completed, "")));
    rig.frame();
    for _ in 0..60 {
        rig.app.update(Msg::Tick(rig.app.now + 1_000));
        assert_eq!(rig.app.dirty(), Dirty::Clean);
        assert_eq!(rig.frame(), (0, 0));
    }
}

#[test]
fn clocks_stand_still_for_who_looks_elsewhere() {
    let mut rig = Rig::new(played(SIZE, &fixture::reviewing()));
    rig.frame();
    rig.app.update(Msg::Focus(false));
    rig.frame();
    for _ in 0..60 {
        assert_eq!(rig.app.next_tick(), None, "nothing wakes the loop");
        rig.app.update(Msg::Tick(rig.app.now + 1_000));
        assert_eq!(rig.frame(), (0, 0));
    }
    rig.app.update(Msg::Focus(true));
    let (writes, bytes) = rig.frame();
    assert!(writes == 1 && (1..=200).contains(&bytes), "one frame catches up: {bytes} bytes");
    rig.app.update(Msg::Tick(rig.app.now + 1_000));
    assert_eq!(rig.frame().0, 1, "and the clock goes on");
}

#[test]
fn news_that_changes_no_cell_sends_nothing() {
    let mut rig = Rig::new(played(SIZE, &fixture::reviewing()));
    rig.frame();
    let unknown = Live::CallDelta { path: "nowhere".into(), text: "text".into() };
    hear(&mut rig.app, HostLine::Live(unknown));
    assert_eq!(rig.app.dirty(), Dirty::Data);
    assert_eq!(rig.frame(), (0, 0));
}

#[test]
fn a_second_that_passes_is_a_few_cells() {
    let mut rig = Rig::new(played(SIZE, &fixture::reviewing()));
    rig.frame();
    for _ in 0..20 {
        rig.app.update(Msg::Tick(rig.app.now + 1_000));
        let (writes, bytes) = rig.frame();
        assert!(writes == 1 && bytes <= 200, "{bytes} bytes");
    }
}

#[test]
fn an_echoed_key_is_at_most_200_bytes() {
    let mut rig = Rig::new(played(SIZE, &fixture::reviewing()));
    press(&mut rig.app, "x");
    rig.frame();
    for c in "too specific".chars() {
        key(&mut rig.app, KeyCode::Char(c));
        let (writes, bytes) = rig.frame();
        assert!(writes == 1 && bytes <= 200, "{bytes} bytes");
    }
}

#[test]
fn a_metric_tick_is_at_most_400_bytes_on_average() {
    let mut rig = Rig::new(played(SIZE, &fixture::two_steps()));
    rig.frame();
    const TICKS: usize = 100;
    let mut total = 0;
    for tick in 0..TICKS {
        rig.app.update(Msg::Tick(rig.app.now + 1_000));
        let tokens_per_s = 90.0 + (tick as f64 * 0.7).sin() * 20.0;
        hear(&mut rig.app, HostLine::Live(Live::Throughput { tokens_per_s, in_flight: 8 }));
        total += rig.frame().1;
    }
    assert!(total / TICKS <= 400, "{} bytes", total / TICKS);
}

#[test]
fn a_metric_of_four_charts_is_at_most_400_bytes_on_average() {
    for keys in ["6", "6>>", "6z", "6\n"] {
        let mut rig = Rig::new(played(SIZE, &fixture::numbers::trained(300)));
        for one in keys.chars() {
            match one {
                '\n' => drop(key(&mut rig.app, KeyCode::Enter)),
                one => drop(press(&mut rig.app, &one.to_string())),
            }
        }
        rig.frame();
        let news = fixture::numbers::trained(400);
        let mut ticks = 0;
        let mut total = 0;
        // Not the events beside them: a step that begins moves the whole list of steps.
        let measured = |record: &&Record| matches!(record.event, Event::Metric { .. });
        for record in news.records.iter().skip(rig.app.state.seq as usize).filter(measured) {
            let record = Record { seq: rig.app.state.seq + 1, ..record.clone() };
            hear(&mut rig.app, HostLine::Event(Box::new(record)));
            total += rig.frame().1;
            ticks += 1;
        }
        assert!(ticks > 90);
        println!("{keys:?}: {} bytes", total / ticks);
        assert!(total / ticks <= 400, "{keys:?}: {} bytes", total / ticks);
    }
}

#[test]
fn a_machine_sample_is_at_most_400_bytes_on_average() {
    let mut rig = Rig::new(played(SIZE, &fixture::numbers::sampled(8)));
    press(&mut rig.app, "7");
    rig.frame();
    let mut total = 0;
    for moment in 0..100 {
        rig.app.update(Msg::Tick(rig.app.now + 2_000));
        hear(&mut rig.app, HostLine::Live(Live::Machine(fixture::numbers::machine(8, moment))));
        total += rig.frame().1;
    }
    println!("{} bytes", total / 100);
    assert!(total / 100 <= 400, "{} bytes", total / 100);
}

#[test]
fn a_log_line_is_at_most_1300_bytes() {
    let mut rig = Rig::new(played(SIZE, &fixture::two_steps()));
    press(&mut rig.app, "8");
    rig.frame();
    for index in 0..30 {
        let words = ["merged", "selected", "measured", "waited"][index % 4];
        let line =
            log(&rig.app, &format!("step {index}: {words} {} items of the batch in {index}.2 s", index * 7));
        hear(&mut rig.app, line);
        let (writes, bytes) = rig.frame();
        assert!(writes == 1 && bytes <= 1_300, "{bytes} bytes");
    }
}

#[test]
fn only_resize_and_repaint_clear_the_screen() {
    let mut rig = Rig::new(app(SIZE));
    let cleared = |rig: &mut Rig| {
        rig.app.take_dirty();
        let (app, theme) = (&rig.app, &rig.theme);
        rig.screen.draw(app.size, |buf| draw(app, theme, buf)).unwrap();
        let (_, bytes) = std::mem::take(&mut *rig.wire.0.borrow_mut());
        String::from_utf8(bytes).unwrap().contains("\x1b[2J")
    };
    assert!(cleared(&mut rig), "the first frame");
    for line in fixture::reviewing().lines() {
        hear(&mut rig.app, line);
        assert!(!cleared(&mut rig));
    }
    press(&mut rig.app, "?");
    assert!(!cleared(&mut rig));
    rig.app.update(Msg::Resize(100, 30));
    assert!(cleared(&mut rig));
    client::control(&mut rig.app, 'l');
    assert_eq!(rig.app.dirty(), Dirty::Repaint);
}

#[test]
fn a_frame_is_marked_as_one_only_where_the_terminal_knows_the_marks() {
    let mut rig = Rig::new(played(SIZE, &fixture::reviewing()));
    rig.frame();
    let bytes = |rig: &mut Rig| {
        press(&mut rig.app, "J");
        rig.app.take_dirty();
        let (app, theme) = (&rig.app, &rig.theme);
        rig.screen.draw(app.size, |buf| draw(app, theme, buf)).unwrap();
        let (writes, bytes) = std::mem::take(&mut *rig.wire.0.borrow_mut());
        assert_eq!(writes, 1);
        String::from_utf8(bytes).unwrap()
    };
    assert!(!bytes(&mut rig).contains("2026"));
    rig.screen.modes().synchronized = true;
    let marked = bytes(&mut rig);
    assert!(marked.starts_with("\x1b[?2026h") && marked.ends_with("\x1b[?2026l"), "{marked:?}");
    let (app, theme) = (&rig.app, &rig.theme);
    rig.screen.draw(app.size, |buf| draw(app, theme, buf)).unwrap();
    assert!(rig.wire.0.borrow().1.is_empty(), "an equal frame has no marks either");
}

fn sent(act: impl FnOnce(&mut Screen<Wire>)) -> String {
    let wire = Wire::default();
    let mut screen = Screen::new(wire.clone());
    act(&mut screen);
    let bytes = std::mem::take(&mut wire.0.borrow_mut().1);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn modes_are_given_back_and_every_movement_is_never_asked_for() {
    let used = sent(|screen| {
        screen.enter().unwrap();
        screen.mouse(true).unwrap();
        screen.leave().unwrap();
    });
    for mode in ["1000", "1002", "1006", "1004", "2004", "1049"] {
        let (on, off) = (format!("\x1b[?{mode}h"), format!("\x1b[?{mode}l"));
        assert!(used.find(&on) < used.rfind(&off) && used.contains(&on), "{mode}: {used:?}");
    }
    assert!(!used.contains("1003"), "{used:?}");
    let quiet = sent(|screen| {
        screen.enter().unwrap();
        screen.leave().unwrap();
    });
    assert!(!quiet.contains("1000") && !quiet.contains("1006"), "the mouse is left alone: {quiet:?}");
}

#[test]
fn the_title_is_sent_once_and_copies_reach_the_terminal_around_tmux() {
    let titles = sent(|screen| {
        for title in ["a", "a", "b"] {
            screen.title(title).unwrap();
        }
        screen.send("").unwrap();
    });
    assert_eq!(titles.matches("\x1b]0;").count() + titles.matches("\x1b]2;").count(), 2, "{titles:?}");
    let copy = |tmux: bool| {
        sent(|screen| {
            screen.modes().tmux = tmux;
            screen.copy("hi").unwrap();
            screen.call("a decision waits\x1b]0;x\x07").unwrap();
        })
    };
    assert!(copy(false).starts_with("\x1b]52;c;aGk=") && !copy(false).contains("Ptmux"));
    assert!(copy(true).contains("\x1bPtmux;\x1b\x1b]52;c;aGk="));
    assert!(copy(false).contains("\x07\x1b]9;a decision waits") && !copy(false).contains("\x1b]0;"));
}

#[test]
fn the_mark_of_calls_is_a_few_bytes() {
    let mut rig = Rig::new(played(SIZE, &fixture::rolling()));
    for live in fixture::live() {
        hear(&mut rig.app, HostLine::Live(live));
    }
    rig.frame();
    let mut total = 0;
    for _ in 0..40 {
        rig.app.update(Msg::Tick(rig.app.now + 250));
        total += rig.frame().1;
    }
    // The ages of the calls in view go with it.
    assert!(total > 0 && total / 40 <= 200, "{} bytes a step", total / 40);
}

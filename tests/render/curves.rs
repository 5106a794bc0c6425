//! The curves in all their ways, and the machine, at four sizes.

use planish::domain::MachineSample;
use planish::event::{HostLine, Live};
use planish::telemetry::Board;
use planish::tui::{App, Depth, Msg, Prefs, Role, Theme, Told};
use ratatui::crossterm::event::KeyCode;
use std::sync::Arc;

use crate::client::{app, buffer, hear, key, played, press, styled, text};
use crate::fixture::numbers::{machine, sampled, trained};
use crate::fixture::{self, Tape};

const SIZES: [(u16, u16); 4] = [(60, 15), (80, 24), (120, 40), (200, 60)];

/// Types keys; `←`, `→` and `⏎` are those.
fn typed(app: &mut App, keys: &str) {
    for one in keys.chars() {
        match one {
            '⏎' => drop(key(app, KeyCode::Enter)),
            '←' => drop(key(app, KeyCode::Left)),
            '→' => drop(key(app, KeyCode::Right)),
            one => drop(press(app, &one.to_string())),
        }
        // What a key does may depend on what was shown.
        buffer(app, Depth::True);
    }
}

/// Makes an app of that size.
type Made<'a> = &'a dyn Fn((u16, u16)) -> App;

fn snapshot(name: &str, shown: &[(&str, Made<'_>)]) {
    for size in SIZES {
        let mut out = String::new();
        for (what, made) in shown {
            out.push_str(&format!("──────── {what}\n{}", styled(&made(size))));
        }
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), out);
    }
}

fn after(tape: &Tape, size: (u16, u16), keys: &str) -> App {
    let mut app = played(size, tape);
    typed(&mut app, keys);
    app
}

fn other(tape: &Tape) -> Arc<Board> {
    let mut board = Board::default();
    tape.records.iter().for_each(|record| board.hear(record));
    Arc::new(board)
}

/// With a pinned run, another one and one that cannot be read.
fn overlaid(size: (u16, u16)) -> App {
    let mut app = played(size, &trained(100));
    app.runs.marked = ["base", "東京 \u{1b}[2J", "gone"].map(|name| format!("/runs/{name}").into()).into();
    app.runs.pinned = Some("/runs/base".into());
    app.update(Msg::Tick(app.now));
    let boards = [Ok(other(&trained(60))), Ok(other(&trained(140))), Err("no journal".to_owned())];
    for (run, series) in app.runs.marked.clone().into_iter().zip(boards) {
        app.update(Msg::Told(Told::Series { run, series }));
    }
    app.toast = None;
    typed(&mut app, "6⏎←←←");
    app
}

#[test]
fn curves_in_all_their_ways() {
    snapshot(
        "ways",
        &[
            ("metrics", &|size| after(&trained(100), size, "6")),
            ("one chart, cursor at an alert", &|size| {
                let mut app = after(&trained(100), size, "6lll⏎0");
                while !text(&app).contains("kl_high") {
                    assert!(app.curves.cursor.is_none_or(|at| at.step > 1.0), "{}", text(&app));
                    typed(&mut app, "←");
                }
                app
            }),
            ("zoomed, crosshair", &|size| after(&trained(100), size, "6←←←←←←i>>")),
            ("log, smoothed, over tokens", &|size| after(&trained(100), size, "6lll⏎LSTT")),
            ("runs laid over", &overlaid),
            ("filtered", &|size| after(&trained(100), size, "6/los⏎")),
            ("nothing by that name", &|size| after(&trained(100), size, "6/zzz⏎")),
            ("few bytes", &|size| {
                let mut app = played(size, &trained(100));
                app.prefs = Prefs { low_bandwidth: true, reduced_motion: true };
                typed(&mut app, "6⏎");
                app
            }),
        ],
    );
}

#[test]
fn the_machine() {
    snapshot(
        "machine",
        &[
            ("nothing known", &|size| {
                let mut app = app(size);
                typed(&mut app, "7");
                app
            }),
            ("nothing sampled", &|size| after(&fixture::two_steps(), size, "7")),
            ("no GPU", &|size| after(&sampled(0), size, "7")),
            ("one GPU", &|size| after(&sampled(1), size, "7")),
            ("eight GPUs", &|size| after(&sampled(8), size, "7")),
        ],
    );
}

#[test]
fn what_the_driver_does_not_tell_is_a_dash_and_live_samples_are_shown() {
    let mut app = after(&sampled(8), (120, 40), "7");
    let last = MachineSample { memory_used: 1 << 30, ..machine(3, 7) };
    hear(&mut app, HostLine::Live(Live::Machine(last)));
    let shown = text(&app);
    assert!(shown.contains("1.000GB of 128.0GB"), "{shown}");
    let strip = shown.lines().find(|line| line.contains("│ 2    ")).unwrap();
    assert!(strip.contains("W     –"), "GPU 2 tells no heat: {strip}");
}

#[test]
fn curves_are_told_apart_without_colour() {
    let app = overlaid((120, 40));
    let cells = buffer(&app, Depth::None);
    let theme = Theme::dark(Depth::None).unwrap();
    assert_eq!(theme.style(Role::Series1).fg, None);
    for glyph in ["◆", "○"] {
        let seen = cells.content.iter().filter(|cell| cell.symbol() == glyph).count();
        assert!(seen >= 2, "{glyph} in the legend and at the end of its curve");
    }
}

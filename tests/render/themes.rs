//! Without colours and in every theme the screens say the same; any size and any order of messages can be drawn.

use planish::event::EndStatus;
use planish::tui::{App, Class, Depth, Format, Msg, Pane, Subject, Theme, draw, shot};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;

use super::client::{app, hear, key, played, press, text, welcome};
use super::{fixture, huge, show, unicode};

const THEMES: [&str; 6] = ["dark", "light", "high-contrast", "cb-blue-orange", "cb-red-teal", "mono"];

fn drawn(app: &App, theme: &Theme) -> Buffer {
    let mut buf = Buffer::empty(Rect::new(0, 0, app.size.0, app.size.1));
    draw(app, theme, &mut buf);
    buf
}

#[test]
fn every_theme_draws_the_same_words() {
    let mut app = played((120, 40), &fixture::reviewing());
    press(&mut app, "4");
    let symbols = |name: &str| {
        let buf = drawn(&app, &Theme::named(name, Depth::True).unwrap());
        buf.content.iter().map(|cell| cell.symbol().to_owned()).collect::<String>()
    };
    let dark = symbols("dark");
    assert!(THEMES.iter().all(|name| symbols(name) == dark));
}

/// Verdicts, marks of edits and alerts are words or glyphs of their own.
#[test]
fn without_colours_meanings_are_still_told_apart() {
    let mut app = played((120, 40), &fixture::curtailed());
    press(&mut app, "2");
    let steps = text(&app);
    let row = |step: &str| steps.lines().find(|line| line.contains(step)).unwrap().to_owned();
    assert!(row("★ 1").contains('+') && row("✗ 2").contains('≤'), "{steps}");
    let failed = text(&played((120, 40), &fixture::ended(EndStatus::Failed, "401")));
    let completed = text(&played((120, 40), &fixture::ended(EndStatus::Completed, "")));
    assert!(failed.contains("‼ END  failed") && completed.contains("■ END  completed"));
    let rolling = text(&played((120, 40), &fixture::rolling()));
    assert!(rolling.contains('✓') && rolling.contains('✗'), "{rolling}");
    // Focus and selection, which are only style, are bold and reversed.
    let theme = Theme::named("mono", Depth::True).unwrap();
    let buf = drawn(&app, &theme);
    assert!(buf.content.iter().any(|cell| cell.modifier.contains(ratatui::style::Modifier::REVERSED)));
}

#[test]
fn the_screen_and_a_pane_are_exported_in_every_format() {
    let mut app = played((120, 40), &fixture::reviewing());
    press(&mut app, "4");
    let theme = Theme::dark(Depth::True).unwrap();
    let whole = String::from_utf8(shot(&app, &theme, Subject::Screen, Format::Text).unwrap()).unwrap();
    assert_eq!(whole, text(&app));
    let pane =
        String::from_utf8(shot(&app, &theme, Subject::Pane(Pane::Patch), Format::Text).unwrap()).unwrap();
    assert!(pane.starts_with("╭─ 4 Patch") && !pane.contains("2 Steps"), "{pane}");
    for format in Format::ALL {
        for made in [app_of(unicode()), app_of(huge())] {
            assert!(!shot(&made, &theme, Subject::Screen, format).unwrap().is_empty());
        }
    }
}

fn app_of(tape: fixture::Tape) -> App {
    played((120, 40), &tape)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Lines of the host in any order, between keys and sizes: no panic, nothing outside, panes apart.
    #[test]
    fn any_size_and_order_can_be_drawn(
        start in (20u16..300, 5u16..100),
        steps in prop::collection::vec((0u8..4, 0usize..400, 20u16..300, 5u16..100), 1..60),
    ) {
        const KEYS: &[u8] = b"0123456789jkhlgGzJKtrin?:/[]@ffOsSvwEM#!=TLbD ";
        let mut app = app(start);
        let lines = unicode().lines();
        hear(&mut app, welcome(lines.len() as u64 / 2));
        let theme = Theme::dark(Depth::Ansi16).unwrap();
        for (kind, n, width, height) in steps {
            match kind {
                0 => { hear(&mut app, lines[n % lines.len()].clone()); }
                1 => { press(&mut app, &char::from(KEYS[n % KEYS.len()]).to_string()); }
                2 => { app.update(Msg::Resize(width, height)); }
                _ => { key(&mut app, [KeyCode::Enter, KeyCode::Esc, KeyCode::Tab][n % 3]); }
            }
            drawn(&app, &theme);
            let places = app.places();
            prop_assert_eq!(places.class, Class::of(app.size.0, app.size.1));
            for (index, (_, area)) in places.panes.iter().enumerate() {
                prop_assert!(places.panes[index + 1..].iter().all(|(_, other)| !area.intersects(*other)));
            }
        }
    }
}

#[test]
fn every_pane_is_drawn_at_every_size_of_the_layouts() {
    for size in [(20, 5), (59, 14), (60, 15), (80, 24), (99, 29), (100, 30), (179, 49), (180, 50), (300, 100)]
    {
        let mut app = played(size, &unicode());
        for pane in Pane::ALL {
            show(&mut app, pane);
            drawn(&app, &Theme::dark(Depth::True).unwrap());
        }
    }
}

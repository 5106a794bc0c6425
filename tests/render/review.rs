//! The Patch pane at work: lines, both columns, comments, the summary; and syntax colour.

use std::sync::Arc;

use planish::domain::{Author, Decision, Edit, EditOp};
use planish::event::Event;
use planish::text::Grammars;
use planish::tui::{App, Depth, Msg, Role, Theme};
use ratatui::crossterm::event::KeyCode;

use super::client::{buffer, key, played, press, text};
use super::fixture;
use super::{HOSTILE, huge, unicode};

const SIZES: [(u16, u16); 4] = [(60, 15), (80, 24), (120, 40), (200, 60)];

fn edits() -> Vec<Edit> {
    let mut edits = fixture::edits();
    edits[0] = fixture::edit(
        EditOp::Replace,
        "- Answer with the city alone.\n- Do not explain.",
        "- Answer with the name of the `city` alone, on **one** line.\n- Never explain.\n- Never guess.",
        9,
        "Six replies were whole sentences; the rule does not say where the answer ends.",
    );
    edits.remove(2);
    edits
}

/// Somebody left a line out of the first edit and said why.
fn tape() -> fixture::Tape {
    let mut tape = fixture::two_steps();
    let at = fixture::step(3);
    fixture::rollouts(&mut tape, at, 11, 20);
    tape.push(20, fixture::review_opened(at, edits()));
    let content =
        "- Answer with the name of the `city` alone, on **one** line.\n- Never explain.\n".to_owned();
    let decision = Decision::Amend { content, reason: String::new() };
    let by = || Author("bob@pts/7".into());
    tape.push(900, Event::EditDecided { at, edit: 0, decision, by: by(), rev: 11 });
    let text = format!("guessing is {HOSTILE} fine here");
    tape.push(900, Event::ReviewCommented { at, edit: Some(0), text, by: by(), rev: 12 });
    tape
}

fn screens(name: &str, keys: &str, finish: impl Fn(&mut App)) {
    for size in SIZES {
        let mut app = played(size, &tape());
        press(&mut app, "4");
        text(&app);
        press(&mut app, keys);
        finish(&mut app);
        insta::assert_snapshot!(format!("review_{name}_{}x{}", size.0, size.1), text(&app));
    }
}

#[test]
fn lines_of_an_edit() {
    screens("lines", "Vjj", |_| {});
}

#[test]
fn both_sides() {
    screens("split", "s", |_| {});
}

#[test]
fn the_summary() {
    screens("summary", "", |app| {
        key(app, KeyCode::Enter);
    });
}

#[test]
fn lines_and_both_sides_of_huge_and_hostile_texts() {
    for tape in [huge(), unicode()] {
        for size in [(60, 15), (140, 30)] {
            let mut app = played(size, &tape);
            press(&mut app, "4z");
            for keys in ["s", "V", "jjj", "}", "w", "\t"] {
                press(&mut app, keys);
                text(&app);
            }
        }
    }
}

#[test]
fn syntax_is_coloured_once_the_grammars_are_there() {
    let mut app = played((120, 40), &tape());
    press(&mut app, "4gg");
    let theme = Theme::dark(Depth::True).unwrap();
    let colour_of = |app: &App, word: &str| {
        let shown = text(app);
        let found = shown.lines().enumerate().find(|(_, row)| row.contains(word));
        let (y, row) = found.unwrap_or_else(|| panic!("no {word}: {shown}"));
        let x = row[..row.find(word).unwrap()].chars().count();
        buffer(app, Depth::True)[(x as u16, y as u16)].fg
    };
    let of = |role: Role| theme.style(role).fg.unwrap_or_default();
    assert!(app.wants_grammars());
    assert_eq!(colour_of(&app, "# City questions"), of(Role::Text));
    app.update(Msg::Grammars(Arc::new(Grammars::load())));
    assert!(!app.wants_grammars());
    assert_eq!(colour_of(&app, "# City questions"), of(Role::SynHeading));
    // A changed line: its new words are the diff's, what stayed is code or text.
    assert_eq!(colour_of(&app, "name of the"), of(Role::AddedWord));
    assert_eq!(colour_of(&app, "- Never explain."), of(Role::SynKeyword));
    app.prefs.low_bandwidth = true;
    app.grammars = None;
    assert!(!app.wants_grammars());
}

//! Any messages in any order, at any size: no panic, and the focus stays on something that is there.

use planish::event::{Command, HostLine, Live};
use planish::tui::{App, ClientEvent, ClientEvent as Link, EditPurpose, Effect, Msg};
use proptest::prelude::*;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::client::{app, text, welcome};
use super::fixture;

#[derive(Clone, Debug)]
enum Doing {
    Key(KeyCode, bool),
    Paste(String),
    Resize(u16, u16),
    /// That many of the tape's next lines.
    Lines(usize),
    Live(Live),
    Lost,
    Restored,
    Tick(u64),
    Editor(Result<Option<String>, String>),
    Ack(bool),
    Draw,
}

fn doing() -> impl Strategy<Value = Doing> {
    let keys = "qQ?:/hjklgG[]zpyfuU@23456789axeAXrJK{}! t0nVVswciCiLSTb<>";
    let char = prop::sample::select(keys.chars().collect::<Vec<_>>()).prop_map(KeyCode::Char);
    let named = prop::sample::select(vec![
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageDown,
        KeyCode::PageUp,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Backspace,
        KeyCode::F(3),
    ]);
    prop_oneof![
        8 => char.prop_map(|code| Doing::Key(code, false)),
        3 => named.prop_map(|code| Doing::Key(code, false)),
        1 => prop::sample::select(vec!['c', 'l', 'd', 'u', 'f', 'b', 'z', 'r']).prop_map(|c| Doing::Key(KeyCode::Char(c), true)),
        1 => "\\PC{0,12}".prop_map(Doing::Paste),
        2 => (1u16..300, 1u16..100).prop_map(|(width, height)| Doing::Resize(width, height)),
        4 => (1usize..120).prop_map(Doing::Lines),
        2 => prop::sample::select(fixture::live()).prop_map(Doing::Live),
        1 => Just(Doing::Lost),
        1 => Just(Doing::Restored),
        2 => (0u64..20_000).prop_map(Doing::Tick),
        1 => prop_oneof![Just(Ok(None)), Just(Ok(Some("new\n".to_owned()))), Just(Err("no editor".to_owned()))].prop_map(Doing::Editor),
        1 => any::<bool>().prop_map(Doing::Ack),
        4 => Just(Doing::Draw),
    ]
}

fn act(app: &mut App, doing: Doing, lines: &mut std::vec::IntoIter<HostLine>, sent: &mut Vec<String>) {
    let messages = match doing {
        Doing::Key(code, control) => {
            let modifiers = if control { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            vec![Msg::Key(KeyEvent::new(code, modifiers))]
        }
        Doing::Paste(text) => vec![Msg::Paste(text)],
        Doing::Resize(width, height) => vec![Msg::Resize(width, height)],
        Doing::Lines(n) => lines.take(n).map(|line| Msg::Client(ClientEvent::Line(line))).collect(),
        Doing::Live(live) => vec![Msg::Client(ClientEvent::Line(HostLine::Live(live)))],
        Doing::Lost => vec![Msg::Client(Link::Lost("gone".into()))],
        Doing::Restored => vec![Msg::Client(Link::Restored)],
        Doing::Tick(ms) => vec![Msg::Tick(app.now + ms)],
        Doing::Editor(result) => {
            let purpose = EditPurpose::Amend { at: fixture::step(3), edit: 1, expect_rev: 0 };
            vec![Msg::EditorClosed { purpose, result }]
        }
        Doing::Ack(applied) => {
            let result = if applied {
                planish::event::AckResult::Applied
            } else {
                planish::event::AckResult::Denied { reason: "no".into() }
            };
            let ack = |cmd_id| HostLine::Ack { cmd_id, result, rev: 1 };
            sent.pop().map(|id| Msg::Client(ClientEvent::Line(ack(id)))).into_iter().collect()
        }
        Doing::Draw => {
            text(app);
            Vec::new()
        }
    };
    for message in messages {
        for effect in app.update(message) {
            if let Effect::Send(planish::event::ClientLine::Command { cmd_id, body, .. }) = effect {
                assert!(!matches!(body, Command::Decide { edit, .. } if edit > 10));
                sent.push(cmd_id);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(doings in prop::collection::vec(doing(), 1..120), which in 0usize..4) {
        let tape = match which {
            0 => fixture::epochs::ended(),
            1 => fixture::epochs::reviewing("full_rewrite_minibatch", fixture::epochs::whole_skills()),
            2 => fixture::epochs::rewritten("rewrite_from_suggestions", fixture::epochs::suggestions()),
            _ => fixture::reviewing(),
        };
        let mut lines = tape.lines().into_iter();
        let mut app = app((80, 24));
        app.update(Msg::Client(ClientEvent::Line(welcome(tape.records.len() as u64 / 2))));
        let mut sent = Vec::new();
        for doing in doings {
            act(&mut app, doing, &mut lines, &mut sent);
        }
        text(&app);
        let places = app.places();
        if !places.panes.is_empty() {
            prop_assert!(places.of(app.arrangement.focus).is_some());
        }
    }

    #[test]
    fn every_size_can_be_drawn(width in 1u16..300, height in 1u16..100, keys in "[23456?:z8@]{0,4}") {
        let whole = fixture::epochs::whole_skills();
        for tape in [
            fixture::rolling(),
            fixture::reviewing(),
            fixture::ended(planish::event::EndStatus::Completed, ""),
            fixture::epochs::comparing(),
            fixture::epochs::ended(),
            fixture::epochs::reviewing("full_rewrite_minibatch", whole),
        ] {
            let mut app = super::client::played((width, height), &tape);
            super::client::press(&mut app, &keys);
            text(&app);
        }
    }
}

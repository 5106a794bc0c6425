//! The transcript: folds, turns, search, raw view, copies.

use planish::domain::{EffectKey, Turn};
use planish::event::{Event, HostLine, ItemResult, Live};
use planish::tui::{App, Effect};
use ratatui::crossterm::event::KeyCode;

use super::client::{hear, key, played, press, text};
use super::fixture;
use super::{SIZE, next_event};

const REPLY: &str = "<think>\nIs it Lima or Quito?\n</think>\nThe city is Lima.\n\n    indented code\x1b[31m";

/// A rollout with thoughts and two tool calls.
fn turns() -> App {
    let mut app = played(SIZE, &fixture::rolling());
    let ItemResult::Scored(shared) = fixture::rollout("city-7777", REPLY, "Lima") else { panic!() };
    let mut rollout = (*shared).clone();
    rollout.answer = "The city is Lima.".into();
    rollout.system_prompt = "Be brief.".into();
    rollout.turns = vec![
        Turn::tool("grep -n Lima cities.csv", "17:Peru,Lima\n".repeat(30)),
        Turn::Message { role: "user".into(), content: "Go on.".into() },
        Turn::tool("cat notes", "nothing"),
    ];
    let key = EffectKey { path: "e01/s003/rollout/city-7777#0".into(), fingerprint: String::new() };
    let result = ItemResult::Scored(rollout.into());
    next_event(&mut app, Event::RolloutFinished { key, at: fixture::step(3), index: 11, result });
    press(&mut app, "3");
    super::client::key(&mut app, KeyCode::Enter);
    text(&app);
    app
}

#[test]
fn tools_and_prompts_are_folded_until_asked_for() {
    let mut app = turns();
    let shown = text(&app);
    for words in [
        "▸ system prompt · 1 line",
        "▸ tool grep -n Lima cities.csv · 31 lines",
        "▸ tool cat notes",
        "▾ thinking",
        "Is it Lima or Quito?",
        "    indented code",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("Be brief.") && !shown.contains("17:Peru,Lima"));
    press(&mut app, "t");
    assert!(text(&app).contains("Be brief."), "the first that folds: {}", text(&app));
    press(&mut app, "t");
    assert!(!text(&app).contains("Be brief."));
    press(&mut app, "T");
    assert!(text(&app).contains("17:Peru,Lima") && !text(&app).contains("Be brief."));
    press(&mut app, "T");
    press(&mut app, "}}}t");
    let shown = text(&app);
    assert!(shown.contains("▾ tool grep"), "{shown}");
    press(&mut app, "t}}");
    press(&mut app, "t");
    assert!(text(&app).contains("$ cat notes"), "{}", text(&app));
    press(&mut app, "{{t");
    assert!(text(&app).contains("▾ tool grep"), "{}", text(&app));
}

#[test]
fn a_search_counts_marks_and_opens_folds() {
    let mut app = turns();
    press(&mut app, "/lima");
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains("/lima 1 of "), "{}", text(&app));
    key(&mut app, KeyCode::Esc);
    press(&mut app, "/17:peru");
    key(&mut app, KeyCode::Enter);
    let shown = text(&app);
    assert!(shown.contains("/17:peru 1 of 30") && shown.contains("▾ tool grep"), "{shown}");
    press(&mut app, "nn");
    assert!(text(&app).contains("3 of 30"));
    press(&mut app, "NNN");
    assert!(text(&app).contains("30 of 30"));
    key(&mut app, KeyCode::Esc);
    assert!(!text(&app).contains("/17:peru"), "escape ends the search before it leaves");
    press(&mut app, "/Zanzibar");
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains("/Zanzibar not found"));
}

#[test]
fn the_raw_view_shows_what_is_hidden() {
    let mut app = turns();
    assert!(!text(&app).contains("\\x1b"));
    press(&mut app, "vG");
    let shown = text(&app);
    assert!(shown.contains("\\x1b[31m") && shown.contains("</think>") && shown.contains("raw"), "{shown}");
    press(&mut app, "v");
    assert!(!text(&app).contains("\\x1b"));
}

#[test]
fn copies() {
    let mut app = turns();
    assert_eq!(press(&mut app, "y"), [Effect::Copy(REPLY.into())]);
    let copied = press(&mut app, "Y");
    let [Effect::Copy(all)] = copied.as_slice() else { panic!("{copied:?}") };
    for words in [
        "item: city-7777 (train)",
        "score: hard 0.000, soft 0.200",
        "Be brief.",
        "$ cat notes",
        "Is it Lima",
        "expected: Lima",
    ] {
        assert!(all.contains(words), "{words}: {all}");
    }
}

#[test]
fn a_stream_is_followed_until_somebody_reads_up() {
    let mut app = played(SIZE, &fixture::rolling());
    let path = "e01/s003/rollout/c#0".to_owned();
    hear(&mut app, HostLine::Live(Live::CallStarted { path: path.clone(), item: "c".into(), attempt: 1 }));
    press(&mut app, "3");
    key(&mut app, KeyCode::Enter);
    let say = |app: &mut App, words: &str| {
        hear(app, HostLine::Live(Live::CallDelta { path: path.clone(), text: words.into() }));
        text(app)
    };
    say(&mut app, &"line\n".repeat(100));
    assert!(say(&mut app, "the end").contains("the end"));
    press(&mut app, "kk");
    assert!(!say(&mut app, "\nmore").contains("more"));
    press(&mut app, "G");
    assert!(say(&mut app, "\nlast").contains("last"));
}

/// Text that tries to steer the terminal, wherever a transcript or a comparison shows text.
#[test]
fn hostile_text_stays_inert_everywhere() {
    const HOSTILE: &str = "\x1b]52;c;ZXZpbA==\x07\x1b[2Jrm\u{202e}txt\u{200b}\ttab\r\u{9b}31m";
    for size in [(60, 15), (80, 24), (120, 40), (200, 60)] {
        let mut app = played(size, &fixture::rolling());
        for n in 0..2 {
            let ItemResult::Scored(shared) = fixture::rollout(HOSTILE, HOSTILE, "Lima") else { panic!() };
            let mut rollout = (*shared).clone();
            rollout.reply = format!("<think>{HOSTILE}</think>{HOSTILE} {n}\n{HOSTILE}");
            (rollout.answer, rollout.gold, rollout.task_type) =
                (HOSTILE.into(), HOSTILE.into(), HOSTILE.into());
            rollout.score.reason = HOSTILE.into();
            rollout.turns = vec![
                Turn::tool(HOSTILE, HOSTILE),
                Turn::Message { role: HOSTILE.into(), content: HOSTILE.into() },
                Turn::Verification { content: HOSTILE.into() },
                Turn::Step {
                    step: Some(1),
                    reasoning: HOSTILE.into(),
                    action: HOSTILE.into(),
                    feedback: HOSTILE.into(),
                },
            ];
            let key =
                EffectKey { path: format!("e01/s003/rollout/{HOSTILE}{n}#0"), fingerprint: String::new() };
            let result = ItemResult::Scored(rollout.into());
            next_event(&mut app, Event::RolloutFinished { key, at: fixture::step(3), index: 11, result });
        }
        let path = format!("e01/s003/rollout/{HOSTILE}#1");
        hear(
            &mut app,
            HostLine::Live(Live::CallStarted { path: path.clone(), item: HOSTILE.into(), attempt: 1 }),
        );
        hear(&mut app, HostLine::Live(Live::CallDelta { path: path.clone(), text: HOSTILE.into() }));
        // The eyes of the test refuse every control character.
        for keys in [
            "3",
            "x",
            "\u{1b}",
            "\n",
            "\u{1b}",
            "j\n",
            "T",
            "v",
            "v/rm\n",
            "n",
            "\u{1b}\u{1b}",
            " ",
            " =",
            "z",
            "S",
        ] {
            for c in keys.chars() {
                match c {
                    '\n' => key(&mut app, KeyCode::Enter),
                    '\u{1b}' => key(&mut app, KeyCode::Esc),
                    c => press(&mut app, &c.to_string()),
                };
                text(&app);
            }
        }
    }
}

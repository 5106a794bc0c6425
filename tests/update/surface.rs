//! Chords, counts, help, palette, themes, mouse and attention.

use std::sync::Arc;

use planish::tui::{App, Effect, Identity, Keymap, Msg, Overlay, Pane, Settings, ThemeChoice};
use ratatui::crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::client::{buffer, key, played, press, text};
use super::{SIZE, bodies, fixture};

fn reviewing() -> App {
    played(SIZE, &fixture::reviewing())
}

fn keymap(toml: &str) -> Arc<Keymap> {
    Arc::new(Keymap::parse("keymap.toml", toml).unwrap())
}

#[test]
fn a_chord_shows_at_once_how_it_goes_on() {
    let mut app = reviewing();
    press(&mut app, "g");
    let shown = text(&app);
    assert!(
        shown.contains("g …") && shown.contains("to the top") && shown.contains("choose the colours"),
        "{shown}"
    );
    key(&mut app, KeyCode::Esc);
    assert!(!text(&app).contains("g …"));
    assert_eq!(app.arrangement.focus, Pane::Patch, "esc gave up the chord only");
    press(&mut app, "gt");
    assert!(matches!(app.overlay, Some(Overlay::Choice { .. })));
}

#[test]
fn counts_repeat_motions_and_nothing_else() {
    let mut app = reviewing();
    press(&mut app, "#2J");
    assert_eq!(app.patch.edit, 2);
    press(&mut app, "#1");
    assert!(text(&app).contains("# 1 then a motion"));
    key(&mut app, KeyCode::Esc);
    press(&mut app, "K");
    assert_eq!(app.patch.edit, 1, "the count was given up");
    assert_eq!(press(&mut app, "#3a"), [], "deciding is not repeated");
    assert!(text(&app).contains("accept takes no count"));
    press(&mut app, "#99999999999999999999J");
    assert_eq!(app.patch.edit, 3, "as far as it goes");
    press(&mut app, "1");
    assert_eq!(app.arrangement.focus, Pane::Runs, "a digit alone is a pane");
}

#[test]
fn digits_that_mean_nothing_count_at_once() {
    let mut app = reviewing();
    app.keymap = keymap("[pane]\nsteps = []\nrollouts = []\n");
    press(&mut app, "2J");
    assert_eq!(app.patch.edit, 2);
    assert!(!text(&app).contains("3 Rollouts (") && app.arrangement.focus == Pane::Patch);
}

#[test]
fn the_users_keys_work_and_are_told_everywhere() {
    let mut app = reviewing();
    app.keymap = keymap("patch.accept = [\"ctrl-y\"]\npatch.reject = []\n");
    assert_eq!(press(&mut app, "a"), []);
    let hints = text(&app);
    assert!(hints.contains("ctrl-y accept") && !hints.contains("x reject"), "{hints}");
    press(&mut app, "?");
    let help = text(&app);
    assert!(help.contains("ctrl-y") && help.contains("reject this edit"), "{help}");
    key(&mut app, KeyCode::Esc);
    press(&mut app, ":accept this");
    assert!(text(&app).contains("ctrl-y  patch.accept"), "{}", text(&app));
    key(&mut app, KeyCode::Esc);
    assert_eq!(bodies(&super::client::control(&mut app, 'y')).len(), 1);
}

#[test]
fn help_finds_by_words() {
    let mut app = reviewing();
    press(&mut app, "?/bottom");
    let found = text(&app);
    assert!(found.contains("Help: Patch  /bottom") && found.contains("to the bottom"), "{found}");
    assert!(!found.contains("accept this edit"), "{found}");
    key(&mut app, KeyCode::Esc);
    assert!(text(&app).contains("accept this edit"), "esc empties the filter first");
    key(&mut app, KeyCode::Esc);
    assert!(app.overlay.is_none());
}

#[test]
fn the_palette_takes_words_after_a_name() {
    let mut app = reviewing();
    press(&mut app, ":step 2");
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.shown_step().unwrap().at.step, 2);
    press(&mut app, ":step 99");
    assert!(text(&app).contains("give the number of a step, 1 to 3"));
    key(&mut app, KeyCode::Enter);
    assert!(app.overlay.is_some(), "what cannot be done is not done");
    key(&mut app, KeyCode::Esc);
    press(&mut app, ":theme lig");
    assert_eq!(key(&mut app, KeyCode::Enter), [Effect::Theme(ThemeChoice::Named("light".into()))]);
    press(&mut app, ":set env.work");
    assert!(text(&app).contains("set env.workers"), "{}", text(&app));
    key(&mut app, KeyCode::Enter);
    press(&mut app, "4");
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.arrangement.focus, Pane::Config);
    assert_eq!(app.config.draft["env.workers"].as_u64(), Some(4), "drafted, not yet sent");
    key(&mut app, KeyCode::Esc);
    press(&mut app, "3:filter x");
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.rollouts.filter.text(), "x");
}

#[test]
fn the_palette_remembers_and_says_what_cannot_be_done() {
    let mut app = played(SIZE, &fixture::two_steps());
    press(&mut app, ":");
    press(&mut app, "vi mouse");
    key(&mut app, KeyCode::Enter);
    assert!(app.surface.mouse);
    press(&mut app, ":");
    let shown = text(&app);
    assert!(shown.find("view.mouse") < shown.find("patch.next-edit"), "latest first: {shown}");
    press(&mut app, "patch.acc");
    assert!(text(&app).contains("(nothing for it here) accept this edit"), "{}", text(&app));
}

#[test]
fn the_theme_chooser_previews_and_esc_takes_it_back() {
    let mut app = reviewing();
    press(&mut app, "gt");
    let named = |name: &str| vec![Effect::Theme(ThemeChoice::Named(name.into()))];
    assert_eq!(key(&mut app, KeyCode::Down), named("light"));
    assert_eq!(key(&mut app, KeyCode::Down), named("high-contrast"));
    assert_eq!(key(&mut app, KeyCode::Esc), named("dark"));
    press(&mut app, "gt");
    key(&mut app, KeyCode::Down);
    assert_eq!(key(&mut app, KeyCode::Enter), named("light"));
    assert_eq!(app.surface.theme, ThemeChoice::Named("light".into()));
}

fn mouse(kind: MouseEventKind, column: u16, row: u16) -> Msg {
    Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

#[test]
fn a_click_focuses_and_selects_and_the_wheel_scrolls_what_is_under_it() {
    let mut app = reviewing();
    let click = MouseEventKind::Down(MouseButton::Left);
    let area = app.places().of(Pane::Rollouts).unwrap();
    app.update(mouse(click, area.x + 5, area.y + 4));
    assert_eq!(app.arrangement.focus, Pane::Patch, "the mouse is off");
    assert_eq!(press(&mut app, "M"), [Effect::Mouse(true)]);
    buffer(&app, planish::tui::Depth::True);
    app.update(mouse(click, area.x + 5, area.y + 4));
    assert_eq!(app.arrangement.focus, Pane::Rollouts);
    buffer(&app, planish::tui::Depth::True);
    let selected =
        |app: &App| app.surface.selections.borrow().iter().find(|row| row.0 == Pane::Rollouts).unwrap().1.y;
    assert_eq!(selected(&app), area.y + 4);
    let steps = app.places().of(Pane::Steps).unwrap();
    let before = app.stage;
    app.update(mouse(MouseEventKind::ScrollDown, steps.x + 1, steps.y + 1));
    assert_ne!(app.stage, before);
    assert_eq!(app.arrangement.focus, Pane::Rollouts, "the keys stay");
    app.prefs.low_bandwidth = true;
    press(&mut app, "M");
    assert!(text(&app).contains("off while low bandwidth"));
}

#[test]
fn a_tab_can_be_clicked() {
    let mut app = played((80, 24), &fixture::reviewing());
    press(&mut app, "M");
    let row = text(&app).lines().nth(1).unwrap().to_owned();
    let at = row[..row.find("Logs").unwrap()].chars().count();
    app.update(mouse(MouseEventKind::Down(MouseButton::Left), at as u16, 1));
    assert_eq!(app.arrangement.focus, Pane::Logs);
}

#[test]
fn who_looks_is_not_called() {
    let bells = |attention: Option<bool>| {
        let mut app = super::client::app(SIZE);
        if let Some(here) = attention {
            app.update(Msg::Focus(here));
        }
        let tape = fixture::reviewing();
        super::client::hear(&mut app, super::client::welcome(tape.records.len() as u64));
        let effects: Vec<Effect> =
            tape.lines().into_iter().flat_map(|line| super::client::hear(&mut app, line)).collect();
        effects.iter().filter(|effect| **effect == Effect::Bell).count()
    };
    assert_eq!((bells(None), bells(Some(false)), bells(Some(true))), (1, 1, 0));
}

#[test]
fn a_broken_settings_file_is_told_until_it_is_right() {
    let mut app = reviewing();
    app.update(Msg::SettingsBroken("ui.toml:2: ui.fps: give a whole number".into()));
    app.update(Msg::Tick(app.now + 60_000));
    assert!(text(&app).contains("‼ ui.toml:2: ui.fps: give a whole number"));
    let settings = Settings { mouse: true, ..Settings::default() };
    assert_eq!(app.update(Msg::Settings(Box::new(settings))), [Effect::Mouse(true)]);
    assert!(text(&app).contains("the settings can be used again"));
    app.update(Msg::Tick(app.now + 60_000));
    assert!(text(&app).contains("? help"));
}

#[test]
fn another_run_keeps_the_users_settings() {
    let mut app = reviewing();
    app.keymap = keymap("app.help = [\"f1\"]");
    press(&mut app, "M");
    app.update(Msg::Switched { run: "runs/other".into() });
    assert!(app.surface.mouse);
    app.update(Msg::Key(ratatui::crossterm::event::KeyEvent::new(KeyCode::F(1), KeyModifiers::NONE)));
    assert!(matches!(app.overlay, Some(Overlay::Help { .. })));
}

#[test]
fn sentences_name_the_keys_in_force() {
    let identity = Identity { name: fixture::ann(), read_only: false, client_id: "c1".into() };
    let mut app = App::new(identity, SIZE, fixture::START).unattached();
    app.keymap = keymap("runs.open = []\n[pane]\nruns = [\"ctrl-y\"]\n");
    app.arrangement.zoom = false;
    press(&mut app, "2");
    let shown = text(&app);
    assert!(shown.contains("ctrl-y lists them, :runs.open attaches"), "{shown}");
    let mut app = reviewing();
    app.identity.read_only = true;
    app.keymap = keymap("client.steer = [\"ctrl-t\"]\n");
    press(&mut app, "p");
    assert_eq!(app.toast.clone().unwrap().text, "pause: read-only, ctrl-t steers");
    press(&mut app, ":run.pause");
    assert!(text(&app).contains("(read-only, ctrl-t steers)"), "{}", text(&app));
}

//! Runs, launching, resuming, settings and roles: what the keys ask for, and what becomes of the answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use planish::client::Listing;
use planish::config::Config;
use planish::domain::{Author, Retuned};
use planish::event::{AckResult, Client, Command, Event, HostLine, WatchRole};
use planish::optim::{Experience, Sizes, estimate};
use planish::store::Condition;
use planish::tui::{
    App, Ask, Checked, Class, ConfigFile, Dirty, Draft, Effect, Identity, Link, Msg, Overlay, Pane, Told,
};
use ratatui::crossterm::event::KeyCode;
use serde_json::{Value, json};

use super::client::{app, control, hear, key, played, press, text, welcome};
use super::fixture::{self, START, Tape, ann};
use super::listing::{every_condition, listing, many, run};
use super::{SIZE, bodies, commands, next_event};

fn told(app: &mut App, told: Told) -> Vec<Effect> {
    app.update(Msg::Told(told))
}

fn unattached() -> App {
    let identity = Identity { name: ann(), read_only: false, client_id: "c1".into() };
    App::new(identity, SIZE, START).unattached()
}

/// The list of runs with one in every condition.
fn listed() -> App {
    let mut app = unattached();
    assert_eq!(app.update(Msg::Tick(START)), [Effect::Ask(Ask::Runs)]);
    told(&mut app, Told::Runs(Ok(listing(every_condition()))));
    app
}

fn names(app: &App) -> Vec<String> {
    app.runs.shown.iter().map(|at| app.runs.rows[*at].name.clone()).collect()
}

fn filter(app: &mut App, words: &str) {
    press(app, "/");
    control(app, 'u');
    press(app, words);
    key(app, KeyCode::Enter);
}

#[test]
fn the_root_is_looked_at_again_and_again_but_one_look_at_a_time() {
    let mut app = unattached();
    assert_eq!((app.link.clone(), app.arrangement.focus), (Link::Unattached, Pane::Runs));
    assert_eq!(app.update(Msg::Tick(START)), [Effect::Ask(Ask::Runs)]);
    assert_eq!(app.update(Msg::Tick(START + 60_000)), [], "the answer is awaited");
    told(&mut app, Told::Runs(Ok(listing(every_condition()))));
    app.take_dirty();
    let wait = app.next_tick().unwrap();
    assert!((2_000..=5_000).contains(&wait), "{wait}");
    assert_eq!(app.update(Msg::Tick(app.now + wait)), [Effect::Ask(Ask::Runs)]);
    let same = Listing { runs: app.runs.rows.clone(), more: false };
    told(&mut app, Told::Runs(Ok(same)));
    assert_eq!(app.take_dirty(), Dirty::Clean, "nothing has changed");
    let more = Listing { runs: app.runs.rows.clone(), more: true };
    told(&mut app, Told::Runs(Ok(more)));
    assert!(app.next_tick().unwrap() < 200, "unread runs are read on at once");
}

#[test]
fn a_failed_look_is_said_and_repeated_later() {
    let mut app = listed();
    told(&mut app, Told::Runs(Err("cannot list runs: permission denied".into())));
    assert!(text(&app).contains("permission denied"));
    assert_eq!(app.runs.rows.len(), Condition::ALL.len(), "what was known stays");
    assert!(app.next_tick().unwrap() > 10_000);
}

#[test]
fn enter_attaches_and_another_run_takes_the_screen() {
    let mut app = listed();
    press(&mut app, "j");
    let run = PathBuf::from("/runs/run-01");
    assert_eq!(key(&mut app, KeyCode::Enter), [Effect::Open { run: run.clone() }]);
    press(&mut app, " ");
    app.update(Msg::Switched { run: run.clone() });
    assert_eq!(app.attached, Some(run.clone()));
    assert_eq!(app.runs.marked, std::slice::from_ref(&run), "what was chosen of the list stays");
    assert_ne!(app.arrangement.focus, Pane::Runs);
    let tape = fixture::two_steps();
    hear(&mut app, welcome(tape.records.len() as u64));
    tape.lines().into_iter().for_each(|line| drop(hear(&mut app, line)));
    press(&mut app, "1");
    assert!(text(&app).contains("▸"), "{}", text(&app));
    press(&mut app, "gg");
    press(&mut app, "j");
    assert_eq!(key(&mut app, KeyCode::Enter), [], "it is attached already");
    assert_eq!(app.arrangement.focus, Pane::Steps);
    app.update(Msg::NotOpened("no such run".into()));
    assert!(text(&app).contains("no such run"));
    assert_eq!(app.attached, Some(run), "a failure leaves the run attached");
}

#[test]
fn without_a_run_nothing_is_steered_and_leaving_says_nothing_of_a_run() {
    let mut app = listed();
    assert_eq!(press(&mut app, "p"), []);
    assert!(text(&app).contains("no run is attached"), "{}", text(&app));
    assert_eq!(press(&mut app, "q"), [Effect::Quit]);
}

#[test]
fn filters_choose_runs_and_say_what_they_do_not_understand() {
    let mut app = listed();
    filter(&mut app, "status:review or status:crashed");
    assert_eq!(names(&app), ["run-03", "run-06"]);
    filter(&mut app, "stauts:done");
    assert!(text(&app).contains("did you mean `status`?"), "{}", text(&app));
    assert_eq!(names(&app), ["run-03", "run-06"], "the last good filter holds");
    filter(&mut app, "best>0.5 and not status:failed");
    assert!(names(&app).contains(&"run-11".to_owned()) && !names(&app).contains(&"run-10".to_owned()));
    key(&mut app, KeyCode::Esc);
    assert_eq!(names(&app).len(), Condition::ALL.len());
}

#[test]
fn the_selection_stays_on_its_run_when_the_list_moves() {
    let mut app = listed();
    press(&mut app, "jjj");
    assert_eq!(app.runs.selected().unwrap().name, "run-03");
    let mut runs = every_condition();
    runs.insert(0, run("newer", Condition::Running));
    told(&mut app, Told::Runs(Ok(listing(runs))));
    assert_eq!(app.runs.selected().unwrap().name, "run-03");
    press(&mut app, "S");
    assert_eq!(names(&app)[0], "newer", "by name");
    press(&mut app, "SS");
    assert_eq!(names(&app)[0], "run-12", "the best first");
}

#[test]
fn runs_are_marked_and_one_is_pinned() {
    let mut app = listed();
    press(&mut app, "  b");
    assert_eq!(app.runs.marked, ["/runs/run-00", "/runs/run-01"].map(PathBuf::from));
    assert_eq!(app.runs.pinned.as_deref(), Some(Path::new("/runs/run-02")));
    press(&mut app, "bgg ");
    assert_eq!(app.runs.pinned, None);
    assert_eq!(app.runs.marked, [PathBuf::from("/runs/run-01")]);
}

#[test]
fn no_more_runs_are_drawn_than_boards_are_kept() {
    let mut app = unattached();
    app.update(Msg::Tick(START));
    told(&mut app, Told::Runs(Ok(listing(many(20)))));
    press(&mut app, "b");
    press(&mut app, "j       ");
    assert_eq!(app.runs.drawn().len(), 8);
    let cursor = app.runs.cursor;
    assert_eq!(press(&mut app, " "), [], "no journal is read for it");
    assert_eq!((app.runs.drawn().len(), app.runs.cursor), (8, cursor));
    assert!(text(&app).contains("8 runs are marked, no more fit"), "{}", text(&app));
    press(&mut app, "gg ");
    assert_eq!(app.runs.drawn().len(), 8, "the baseline is drawn already");
    press(&mut app, "Gb");
    assert_eq!(app.runs.drawn().len(), 8, "another baseline that is not marked would be one more");
    press(&mut app, "gg ");
    press(&mut app, "Gb");
    assert_eq!((app.runs.drawn().len(), app.runs.pinned.is_some()), (8, true));
}

#[test]
fn ten_thousand_runs_move_and_filter_without_a_sweat() {
    let mut app = unattached();
    app.update(Msg::Tick(START));
    told(&mut app, Told::Runs(Ok(listing(many(10_000)))));
    press(&mut app, "G");
    assert_eq!(app.runs.cursor, 9_999);
    let screen = text(&app);
    assert!(screen.contains("sweep-09999") && !screen.contains("sweep-00000"));
    filter(&mut app, "seed:777");
    assert_eq!(names(&app), ["sweep-00777"]);
    filter(&mut app, "nowhere");
    assert!(text(&app).contains("nothing matches /nowhere"), "{}", text(&app));
}

// --- launching ---

fn config(name: &str) -> ConfigFile {
    ConfigFile { path: PathBuf::from("/here").join(name), shown: name.into() }
}

fn good(name: &str) -> Box<Checked> {
    let config = Config::default();
    let estimate = estimate(&config, Sizes { train: 80, val: 20, test: 20 });
    let experience = Experience::default();
    Box::new(Checked {
        name: name.into(),
        warnings: Vec::new(),
        estimate,
        experience,
        money: None,
        budget: (0, 0),
    })
}

fn form() -> App {
    let mut app = listed();
    assert_eq!(press(&mut app, "c"), [Effect::Ask(Ask::Configs)]);
    told(&mut app, Told::Configs(Ok(vec![config("configs/demo.toml"), config("configs/qa.toml")])));
    app
}

fn draft(overrides: &[&str]) -> Draft {
    Draft {
        config: "/here/configs/qa.toml".into(),
        name: String::new(),
        overrides: overrides.iter().map(|text| (*text).to_owned()).collect(),
    }
}

/// The form with a configuration chosen and checked.
fn chosen() -> App {
    let mut app = form();
    press(&mut app, "qa");
    assert_eq!(key(&mut app, KeyCode::Enter), [Effect::Ask(Ask::Check(draft(&[])))]);
    told(&mut app, Told::Checked { draft: draft(&[]), result: Ok(good("qa-1")) });
    app
}

#[test]
fn a_form_is_filled_in_checked_and_started() {
    let mut app = chosen();
    assert!(text(&app).contains("qa-1") && text(&app).contains("8 steps"), "{}", text(&app));
    key(&mut app, KeyCode::Enter);
    press(&mut app, "batchs");
    assert!(text(&app).contains("train.batch_size"), "{}", text(&app));
    key(&mut app, KeyCode::Enter);
    // One question at a time; the last answer of an older draft asks again about the newest.
    assert_eq!(press(&mut app, "4"), [Effect::Ask(Ask::Check(draft(&["train.batch_size=4"])))]);
    assert_eq!(press(&mut app, "0"), []);
    let answer = Told::Checked { draft: draft(&["train.batch_size=4"]), result: Ok(good("qa-1")) };
    assert_eq!(told(&mut app, answer), [Effect::Ask(Ask::Check(draft(&["train.batch_size=40"])))]);
    let complaint = "command line: train.batch_size: 40 is wrong; give another".to_owned();
    told(&mut app, Told::Checked { draft: draft(&["train.batch_size=40"]), result: Err(vec![complaint]) });
    assert!(text(&app).contains("40 is wrong"), "{}", text(&app));
    assert_eq!(control(&mut app, 's'), [], "a draft with faults does not start");
    let four = draft(&["train.batch_size=4"]);
    assert_eq!(key(&mut app, KeyCode::Backspace), [Effect::Ask(Ask::Check(four.clone()))]);
    assert_eq!(key(&mut app, KeyCode::Enter), [], "what is asked about stays the same");
    told(&mut app, Told::Checked { draft: four.clone(), result: Ok(good("qa-1")) });
    assert_eq!(control(&mut app, 's'), [Effect::Ask(Ask::Start(four))]);
    assert_eq!(control(&mut app, 's'), [], "it is starting already");
    let run = PathBuf::from("/runs/qa-1");
    assert_eq!(told(&mut app, Told::Started(Ok(run.clone()))), [Effect::Open { run }]);
    assert_eq!(app.overlay, None);
}

#[test]
fn what_does_not_start_says_why_and_nothing_typed_is_lost() {
    let mut app = chosen();
    press(&mut app, "mine");
    control(&mut app, 's');
    told(&mut app, Told::Started(Err("the server is away\ntry later".into())));
    assert!(text(&app).contains("✗ the server is away") && text(&app).contains("mine"), "{}", text(&app));
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.overlay, None);
    press(&mut app, "gn");
    assert!(text(&app).contains("mine") && text(&app).contains("configs/qa.toml"), "{}", text(&app));
    control(&mut app, 'c');
    press(&mut app, "c");
    assert!(text(&app).contains("mine"));
}

#[test]
fn a_run_whose_form_was_left_does_not_take_the_screen() {
    let started = |keys: &[KeyCode]| {
        let mut app = chosen();
        told(&mut app, Told::Checked { draft: draft(&[]), result: Ok(good("mine")) });
        assert_eq!(control(&mut app, 's'), [Effect::Ask(Ask::Start(draft(&[])))]);
        keys.iter().for_each(|code| drop(key(&mut app, *code)));
        let effects = told(&mut app, Told::Started(Ok("/runs/mine".into())));
        (app, effects)
    };
    let (_, effects) = started(&[]);
    assert_eq!(effects, [Effect::Open { run: "/runs/mine".into() }]);
    for keys in [&[KeyCode::Esc][..], &[KeyCode::Esc, KeyCode::Char(':'), KeyCode::Char('x')]] {
        let (mut app, effects) = started(keys);
        assert_eq!(effects, []);
        assert_eq!(app.overlay.is_some(), keys.len() > 1, "what was opened since stays");
        app.overlay = None;
        assert!(text(&app).contains("run mine started; press 1 and enter to open it"), "{}", text(&app));
    }
}

#[test]
fn an_override_is_taken_back_into_the_line() {
    let mut app = chosen();
    key(&mut app, KeyCode::Enter);
    press(&mut app, "train.seed=7");
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains("✓ train.seed=7"));
    key(&mut app, KeyCode::Backspace);
    assert!(!text(&app).contains("✓ train.seed=7") && text(&app).contains("› train.seed=7"));
}

#[test]
fn starting_without_a_configuration_says_so() {
    let mut app = form();
    assert_eq!(control(&mut app, 's'), []);
    assert!(text(&app).contains("choose a configuration first"));
}

// --- resuming ---

#[test]
fn resumable_runs_are_offered_with_what_would_change() {
    let mut app = listed();
    filter(&mut app, "status:done");
    press(&mut app, "R");
    assert!(text(&app).contains("nothing to resume"), "{}", text(&app));
    let first = PathBuf::from("/runs/run-00");
    assert_eq!(press(&mut app, "gr"), [Effect::Ask(Ask::Changes { run: first.clone() })]);
    told(&mut app, Told::Changes { run: first, result: Ok(vec!["env.workers: 4 -> 8".into()]) });
    assert!(text(&app).contains("changes env.workers: 4 -> 8"), "{}", text(&app));
    let crashed = PathBuf::from("/runs/run-06");
    assert_eq!(key(&mut app, KeyCode::Down), [Effect::Ask(Ask::Changes { run: crashed.clone() })]);
    let refused = "the configuration changed since this run began".to_owned();
    told(&mut app, Told::Changes { run: crashed.clone(), result: Err(refused) });
    assert_eq!(key(&mut app, KeyCode::Enter), [], "what is refused is not asked for");
    assert!(text(&app).contains("✗ the configuration changed"));
    let stopped = PathBuf::from("/runs/run-09");
    assert_eq!(key(&mut app, KeyCode::Down), [Effect::Ask(Ask::Changes { run: stopped.clone() })]);
    assert_eq!(key(&mut app, KeyCode::Enter), [Effect::Ask(Ask::Resume { run: stopped.clone() })]);
    assert_eq!(key(&mut app, KeyCode::Enter), []);
    told(&mut app, Told::Started(Err("it is in use".into())));
    assert!(text(&app).contains("✗ it is in use"));
    assert_eq!(key(&mut app, KeyCode::Enter), [Effect::Ask(Ask::Resume { run: stopped.clone() })]);
    assert_eq!(told(&mut app, Told::Started(Ok(stopped.clone()))), [Effect::Open { run: stopped }]);
}

#[test]
fn the_picker_looks_for_runs_when_no_pane_does() {
    let mut app = played((80, 24), &fixture::two_steps());
    assert!(matches!(app.places().class, Class::Compact));
    assert_eq!(app.update(Msg::Tick(app.now + 10_000)), [], "nobody looks at runs");
    press(&mut app, "gr");
    assert_eq!(app.update(Msg::Tick(app.now + 10)), [Effect::Ask(Ask::Runs)]);
}

#[test]
fn where_nothing_can_be_resumed_the_key_says_so() {
    let mut app = unattached();
    told(&mut app, Told::Runs(Ok(listing(vec![run("over", Condition::Completed)]))));
    filter(&mut app, "status:failed");
    press(&mut app, "R");
    assert!(app.overlay.is_none());
    assert!(text(&app).contains("nothing to resume: no run here"), "{}", text(&app));
}

#[test]
fn an_export_does_not_show_what_an_earlier_one_told() {
    let mut app = listed();
    filter(&mut app, "status:done");
    press(&mut app, "R");
    assert!(app.toast.is_some());
    press(&mut app, "E");
    assert!(matches!(app.overlay, Some(Overlay::Choice { .. })));
    let effects = key(&mut app, KeyCode::Enter);
    assert!(matches!(effects[..], [Effect::Export { .. }]), "{effects:?}");
    assert_eq!(app.toast, None);
}

// --- roles ---

#[test]
fn a_watching_client_asks_to_steer_and_keeps_what_it_typed() {
    let identity = Identity { name: ann(), read_only: true, client_id: "c1".into() };
    let mut app = App::new(identity, SIZE, START);
    let tape = fixture::reviewing();
    hear(&mut app, welcome(tape.records.len() as u64));
    tape.lines().into_iter().for_each(|line| drop(hear(&mut app, line)));
    let clients = [("ann@pts/1", WatchRole::Watch), ("bob@pts/2", WatchRole::Steer)];
    let clients = clients.map(|(name, role)| Client { name: Author(name.into()), role }).to_vec();
    hear(&mut app, HostLine::Clients(clients));
    assert!(text(&app).contains("watch only"), "{}", text(&app));
    press(&mut app, "0");
    let overview = text(&app);
    assert!(
        overview.contains("this one only watches") && overview.contains("bob@pts/2 steers"),
        "{overview}"
    );
    assert_eq!(press(&mut app, "4a"), []);
    assert!(text(&app).contains("read-only, gs steers"), "{}", text(&app));
    press(&mut app, "J");
    let edit = app.patch.edit;
    press(&mut app, "gs");
    assert!(text(&app).contains("Steering now: bob@pts/2"), "{}", text(&app));
    assert_eq!(key(&mut app, KeyCode::Enter), [Effect::Reconnect { read_only: false }]);
    assert!(app.identity.read_only, "not before the connection is there");
    app.update(Msg::RoleTaken { read_only: false });
    assert_eq!((app.patch.edit, app.state.seq > 0), (edit, true));
    let decided = press(&mut app, "a");
    assert_eq!(decided.len(), 1, "it decides now");
    super::applied(&mut app, &decided);
    assert_eq!(press(&mut app, "gs"), [Effect::Reconnect { read_only: true }]);
}

// --- settings ---

/// A run under way whose journal holds all settings.
fn configured() -> App {
    let mut tape = Tape::new();
    let mut started = fixture::started();
    if let Event::RunStarted { config, origins, .. } = &mut started {
        *config = serde_json::to_value(Config::default()).unwrap();
        let from = [("env.workers", "configs/qa.toml:12"), ("train.seed", "command line")];
        *origins = from.map(|(key, origin)| (key.to_owned(), origin.to_owned())).into();
    }
    tape.push(0, started);
    let mut app = played(SIZE, &tape);
    press(&mut app, "9");
    app
}

#[test]
fn columns_of_settings_are_named_and_no_match_is_said() {
    let mut app = configured();
    filter(&mut app, "env.workers");
    let shown = text(&app);
    let head = shown.lines().find(|line| line.contains("takes effect")).unwrap();
    let column = |line: &str, word: &str| line.find(word).map(|at| line[..at].chars().count());
    let row = shown.lines().find(|line| line.contains("workers   ")).unwrap();
    assert_eq!(column(head, "setting"), column(row, "workers"), "{shown}");
    assert_eq!(column(head, "from"), column(row, "configs/qa"), "{shown}");
    filter(&mut app, "zzzz");
    assert!(text(&app).contains("nothing matches /zzzz"), "{}", text(&app));
}

fn wanted(key: &str, value: Value) -> BTreeMap<String, Value> {
    BTreeMap::from([(key.to_owned(), value)])
}

fn select(app: &mut App, setting: &str) {
    filter(app, setting);
    press(app, "gg");
    press(app, "j");
}

#[test]
fn settings_are_told_with_their_origin_and_when_they_change() {
    let mut app = configured();
    select(&mut app, "env.workers");
    let screen = text(&app);
    for words in ["workers", "configs/qa.toml:12", "live", "Rollouts in flight."] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    key(&mut app, KeyCode::Esc);
    press(&mut app, "gg");
    press(&mut app, " ");
    assert!(text(&app).contains("▸ run"), "{}", text(&app));
}

#[test]
fn a_draft_is_checked_reasoned_and_sent_whole() {
    let mut app = configured();
    select(&mut app, "env.workers");
    key(&mut app, KeyCode::Enter);
    control(&mut app, 'u');
    press(&mut app, "0");
    let effects = key(&mut app, KeyCode::Enter);
    let asked = wanted("env.workers", json!("0"));
    let config = serde_json::to_value(Config::default()).unwrap();
    assert_eq!(effects, [Effect::Ask(Ask::Retune { config, wanted: asked.clone() })]);
    let fault = vec![("env.workers".to_owned(), "0 is out of range; give more".to_owned())];
    told(&mut app, Told::Retune { wanted: asked, result: Err(fault) });
    assert!(text(&app).contains("✗ 0 is out of range"), "{}", text(&app));
    assert_eq!(control(&mut app, 's'), []);
    assert_eq!(app.overlay, None, "a draft with faults is not applied");
    key(&mut app, KeyCode::Enter);
    control(&mut app, 'u');
    press(&mut app, "9");
    key(&mut app, KeyCode::Enter);
    let now = wanted("env.workers", json!("9"));
    told(&mut app, Told::Retune { wanted: now.clone(), result: Ok(Vec::new()) });
    control(&mut app, 's');
    press(&mut app, "too slow");
    let effects = key(&mut app, KeyCode::Enter);
    let reason = "too slow".to_owned();
    assert_eq!(bodies(&effects), [Command::Retune { changes: now, reason: reason.clone() }]);
    assert!(app.has_draft(), "until the host has said so");
    let old = serde_json::to_value(Config::default().env.workers).unwrap();
    let changes = vec![Retuned { key: "env.workers".into(), old, new: json!(9) }];
    next_event(&mut app, Event::RetuneRequested { changes, reason, by: ann(), rev: 1 });
    let (cmd_id, ..) = commands(&effects).remove(0);
    hear(&mut app, HostLine::Ack { cmd_id, result: AckResult::Applied, rev: 1 });
    assert!(!app.has_draft());
    press(&mut app, "dj");
    let screen = text(&app);
    assert!(screen.contains("too slow") && screen.contains("changed only"), "{screen}");
    press(&mut app, "D");
    assert!(app.has_draft(), "back to the launch value");
    press(&mut app, "x");
    assert!(!app.has_draft());
}

#[test]
fn another_run_does_not_take_a_draft_away_unasked() {
    let mut app = configured();
    app.update(Msg::Tick(app.now + 10_000));
    told(&mut app, Told::Runs(Ok(listing(every_condition()))));
    select(&mut app, "review.mode");
    key(&mut app, KeyCode::Enter);
    press(&mut app, "2");
    press(&mut app, "1");
    assert_eq!(key(&mut app, KeyCode::Enter), []);
    assert!(text(&app).contains("leaving forgets the draft"), "{}", text(&app));
    assert_eq!(key(&mut app, KeyCode::Enter), [Effect::Open { run: "/runs/run-00".into() }]);
}

#[test]
fn a_resume_of_the_attached_run_keeps_the_screen() {
    let mut app = played(SIZE, &fixture::reviewing());
    app.attached = Some("/runs/run-06".into());
    let effects = told(&mut app, Told::Started(Ok("/runs/run-06".into())));
    assert_eq!(effects, [Effect::Reconnect { read_only: false }]);
    let toast = app.toast.clone();
    app.update(Msg::RoleTaken { read_only: false });
    assert_eq!(app.toast, toast, "the role is the same");
}

#[test]
fn a_denied_draft_stays() {
    let mut app = configured();
    select(&mut app, "review.mode");
    key(&mut app, KeyCode::Enter);
    assert!(matches!(app.overlay, Some(Overlay::Choice { .. })));
    press(&mut app, "2");
    assert_eq!(app.config.draft, wanted("review.mode", json!("manual")));
    control(&mut app, 's');
    let effects = key(&mut app, KeyCode::Enter);
    let (cmd_id, ..) = commands(&effects).remove(0);
    hear(&mut app, HostLine::Ack { cmd_id, result: AckResult::Denied { reason: "no".into() }, rev: 0 });
    assert!(app.has_draft() && text(&app).contains("settings denied: no"), "{}", text(&app));
}

#[test]
fn a_draft_that_changes_nothing_does_not_claim_a_change() {
    for (result, words) in
        [(AckResult::Applied, "settings changed"), (AckResult::Noop, "so already; nothing changed")]
    {
        let mut app = configured();
        select(&mut app, "review.mode");
        key(&mut app, KeyCode::Enter);
        press(&mut app, "2");
        control(&mut app, 's');
        let effects = key(&mut app, KeyCode::Enter);
        let (cmd_id, ..) = commands(&effects).remove(0);
        hear(&mut app, HostLine::Ack { cmd_id, result, rev: 0 });
        assert!(!app.has_draft() && text(&app).contains(words), "{}", text(&app));
    }
}

#[test]
fn what_cannot_change_says_why() {
    for (setting, words) in [
        ("train.batch_size", "recorded results depend on it"),
        ("model.worker_threads", "changes only with a restart"),
    ] {
        let mut app = configured();
        select(&mut app, setting);
        key(&mut app, KeyCode::Enter);
        assert_eq!(app.overlay, None);
        assert!(text(&app).contains(words), "{}", text(&app));
    }
}

#[test]
fn the_files_a_run_was_made_from_are_known() {
    let mut app = configured();
    assert_eq!(app.watched(), Vec::<PathBuf>::new(), "not of a run elsewhere");
    app.attached = Some("/runs/city".into());
    assert_eq!(app.watched(), [PathBuf::from("configs/qa.toml")]);
    app.update(Msg::FileChanged("configs/qa.toml".into()));
    assert!(text(&app).contains("configs/qa.toml changed"), "{}", text(&app));
}

#[test]
fn an_import_shows_the_settings_it_has() {
    let mut app = app(SIZE);
    let mut tape = Tape::new();
    let mut started = fixture::started();
    if let Event::RunStarted { config, .. } = &mut started {
        *config = json!({ "train/odd~name": 3, "optimizer_model": "gpt" });
    }
    tape.push(0, started);
    hear(&mut app, welcome(1));
    tape.lines().into_iter().for_each(|line| drop(hear(&mut app, line)));
    press(&mut app, "9");
    let screen = text(&app);
    assert!(screen.contains("train/odd~name") && screen.contains("optimizer_model"), "{screen}");
}

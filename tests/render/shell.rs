//! Runs, the forms over them, settings and the overview, at every size class.

use planish::config::Config;
use planish::domain::{Author, Retuned};
use planish::event::{Client, EndStatus, Event, HostLine, WatchRole};
use planish::optim::{Experience, Sizes, estimate};
use planish::store::Condition;
use planish::tui::{App, Checked, ConfigFile, Draft, Effect, Identity, Msg, Overlay, Pane, Told};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

use super::client::{app, hear, key, played, press, styled};
use super::fixture::{self, START, Tape, ann};
use super::listing::{every_condition, listing, many, run};
use super::{HOSTILE, state};

const ALL_SIZES: [(u16, u16); 4] = [(60, 15), (80, 24), (120, 40), (200, 60)];

fn shown(name: &str, screens: impl Fn((u16, u16)) -> Vec<(&'static str, App)>) {
    for size in ALL_SIZES {
        let mut out = String::new();
        for (kind, app) in screens(size) {
            out.push_str(&format!("──────── {kind}\n{}", styled(&app)));
        }
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), out);
    }
}

fn unattached(size: (u16, u16)) -> App {
    let identity = Identity { name: ann(), read_only: false, client_id: "c1".into() };
    let mut app = App::new(identity, size, START).unattached();
    app.update(Msg::Tick(START));
    app
}

fn with_runs(size: (u16, u16), runs: Vec<planish::store::RunSummary>) -> App {
    let mut app = unattached(size);
    app.update(Msg::Told(Told::Runs(Ok(listing(runs)))));
    app
}

fn attached_beside_runs(size: (u16, u16)) -> App {
    let mut app = played(size, &fixture::two_steps());
    app.attached = Some("/runs/run-01".into());
    app.update(Msg::Tick(app.now + 10_000));
    app.update(Msg::Told(Told::Runs(Ok(listing(every_condition())))));
    press(&mut app, "1 b");
    app
}

#[test]
fn runs() {
    shown("runs", |size| {
        let mut faulty = with_runs(size, every_condition());
        press(&mut faulty, "/stauts:done");
        key(&mut faulty, KeyCode::Enter);
        faulty.update(Msg::Told(Told::Runs(Err("cannot list runs: permission denied".into()))));
        let mut strange = vec![run(&format!("東京-{HOSTILE}"), Condition::Failed)];
        strange[0].problem = Some(format!("違う {HOSTILE}"));
        strange[0].target = "模型".repeat(30);
        vec![
            ("loading", unattached(size)),
            ("empty", with_runs(size, Vec::new())),
            ("typical", attached_beside_runs(size)),
            ("every condition", with_runs(size, every_condition())),
            ("huge", with_runs(size, many(10_000))),
            ("unicode", with_runs(size, strange)),
            ("error", faulty),
        ]
    });
}

fn form(size: (u16, u16)) -> App {
    let mut app = with_runs(size, every_condition());
    press(&mut app, "c");
    let files = ["configs/demo.toml", "configs/searchqa.toml", "runs/run-01/config.toml"];
    let files = files.map(|name| ConfigFile { path: format!("/here/{name}").into(), shown: name.into() });
    app.update(Msg::Told(Told::Configs(Ok(files.to_vec()))));
    app
}

/// Chooses the first configuration and answers what is asked about it.
fn checked(mut app: App, answer: impl Fn(&Draft) -> Told) -> App {
    for effect in key(&mut app, KeyCode::Enter) {
        if let Effect::Ask(planish::tui::Ask::Check(draft)) = effect {
            app.update(Msg::Told(answer(&draft)));
        }
    }
    app
}

fn good(draft: &Draft) -> Told {
    let config = Config::default();
    let estimate = estimate(&config, Sizes { train: 80, val: 20, test: 20 });
    let usage = run("a", Condition::Completed).usage;
    let checked = Checked {
        name: "demo-20261130-001500".into(),
        warnings: vec!["configs/demo.toml:7: model.backend: has no effect".into()],
        estimate,
        experience: Experience::of([&usage, &usage]),
        money: None,
        budget: (5_000, 0),
    };
    Told::Checked { draft: draft.clone(), result: Ok(Box::new(checked)) }
}

fn bad(draft: &Draft) -> Told {
    let complaints =
        ["configs/demo.toml:3: train.bach: unknown key, did you mean train.batch_size?", HOSTILE];
    Told::Checked { draft: draft.clone(), result: Err(complaints.map(str::to_owned).to_vec()) }
}

#[test]
fn launch_form() {
    shown("launch_form", |size| {
        let mut typed = checked(form(size), good);
        key(&mut typed, KeyCode::Enter);
        press(&mut typed, "bsize");
        let mut failed = checked(form(size), good);
        failed.update(Msg::Key(KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL)));
        failed.update(Msg::Told(Told::Started(Err(format!("no key in $API_KEY {HOSTILE}\nset it")))));
        vec![
            ("choosing", form(size)),
            ("checked", checked(form(size), good)),
            ("a key is typed", typed),
            ("complaints", checked(form(size), bad)),
            ("did not start", failed),
        ]
    });
}

#[test]
fn resume_picker() {
    shown("resume_picker", |size| {
        let picker = |runs| {
            let mut app = with_runs(size, runs);
            press(&mut app, "gr");
            app
        };
        let mut known = picker(every_condition());
        for (run, result) in [
            ("/runs/run-00", Ok(vec!["env.workers: 4 -> 8".to_owned()])),
            ("/runs/run-10", Err("its results depend on it:\n  train.seed: 42 -> 7".to_owned())),
        ] {
            known.update(Msg::Told(Told::Changes { run: run.into(), result }));
        }
        let mut refused = known_at_failed(&known);
        key(&mut refused, KeyCode::Enter);
        vec![("none", picker(Vec::new())), ("what would change", known), ("refused", refused)]
    });
}

/// The same picker, on the failed run.
fn known_at_failed(known: &App) -> App {
    let mut app = with_runs(known.size, every_condition());
    press(&mut app, "gr");
    press(&mut app, "10");
    let result = Err("its results depend on it:\n  train.seed: 42 -> 7".to_owned());
    app.update(Msg::Told(Told::Changes { run: "/runs/run-10".into(), result }));
    assert!(matches!(app.overlay, Some(Overlay::Resume(_))));
    app
}

fn configured(size: (u16, u16)) -> App {
    let mut tape = Tape::new();
    let mut started = fixture::started();
    if let Event::RunStarted { config, origins, .. } = &mut started {
        let mut own = Config::default();
        own.env.system_template = format!("{HOSTILE} 東京 {}", "long ".repeat(80));
        *config = serde_json::to_value(own).unwrap();
        let from = [("env.workers", "configs/searchqa.toml:12"), ("review.mode", "command line")];
        *origins = planish::config::keys().map(|key| (key.path.to_owned(), "built-in".to_owned())).collect();
        origins.extend(from.map(|(key, origin)| (key.to_owned(), origin.to_owned())));
    }
    tape.push(0, started);
    let changes = vec![
        Retuned { key: "env.workers".into(), old: json!(64), new: json!(8) },
        Retuned { key: "optimizer.learning_rate".into(), old: json!(4), new: json!(2) },
    ];
    let by = Author("bob@pts/7".into());
    tape.push(500, Event::RetuneRequested { changes, reason: "the server is slow".into(), by, rev: 1 });
    let mut app = played(size, &tape);
    press(&mut app, "9");
    app
}

fn filtered(mut app: App, words: &str) -> App {
    press(&mut app, "/");
    press(&mut app, words);
    key(&mut app, KeyCode::Enter);
    press(&mut app, "j");
    app
}

#[test]
fn config() {
    shown("config", |size| {
        let mut draft = filtered(configured(size), "review.mode");
        key(&mut draft, KeyCode::Enter);
        press(&mut draft, "2");
        let fault = vec![("review.mode".to_owned(), format!("not now {HOSTILE}"))];
        let wanted = draft.config.draft.clone();
        draft.update(Msg::Told(Told::Retune { wanted, result: Err(fault) }));
        let mut changed = configured(size);
        press(&mut changed, "dj");
        let mut empty = app(size);
        press(&mut empty, "9");
        vec![
            ("empty", empty),
            ("typical", configured(size)),
            ("changed since the launch", changed),
            ("a draft with a fault", draft),
            ("long and hostile", filtered(configured(size), "system_template")),
        ]
    });
}

#[test]
fn overview() {
    shown("overview", |size| {
        let at = |kind| {
            let mut app = state(kind, Pane::Overview, size);
            press(&mut app, "0");
            app
        };
        let mut ended = played(size, &fixture::ended(EndStatus::Completed, "all steps done"));
        let clients = [("ann@pts/1", WatchRole::Steer), ("安@pts/9", WatchRole::Watch)];
        let clients = clients.map(|(name, role)| Client { name: Author(name.into()), role }).to_vec();
        hear(&mut ended, HostLine::Clients(clients));
        press(&mut ended, "0");
        vec![
            ("empty", at("empty")),
            ("loading", at("loading")),
            ("typical", at("typical")),
            ("huge", at("huge")),
            ("unicode", at("unicode")),
            ("error", at("error")),
            ("ended", ended),
        ]
    });
}

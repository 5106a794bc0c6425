//! The loop's own parts, without a terminal.

use std::process::Stdio;
use std::sync::Mutex;

use futures_util::future::BoxFuture;
use tokio::process::Command;

use super::*;
use crate::client::Listing;
use crate::domain::Author;
use crate::tui::export::{Export, Subject};
use crate::tui::picture::Format;
use crate::tui::services::{Ask, Opening, Told};
use crate::tui::term::PanicDesk;

/// Generous: only a hang gets there.
const DEADLINE: Duration = Duration::from_secs(30);

/// Answers that there are no runs, and tells of every question.
struct Recorder(Mutex<mpsc::UnboundedSender<Ask>>);

impl Services for Recorder {
    fn answer(&self, ask: Ask) -> BoxFuture<'static, Told> {
        self.0.lock().unwrap().send(ask).unwrap();
        Box::pin(std::future::ready(Told::Runs(Ok(Listing { runs: Vec::new(), more: false }))))
    }

    fn open(&self, _: Option<PathBuf>, _: Opening) -> BoxFuture<'static, Result<Connection, String>> {
        Box::pin(std::future::ready(Err("not here".into())))
    }
}

/// A workbench without a run, its questions, and where lines and commands pass.
struct Bench {
    workbench: Workbench,
    asked: mpsc::UnboundedReceiver<Ask>,
    lines: mpsc::Sender<ClientEvent>,
    sent: mpsc::Receiver<ClientLine>,
}

fn bench() -> Bench {
    let (tell, asked) = mpsc::unbounded_channel();
    let (lines, events) = mpsc::channel(8);
    let (commands, sent) = mpsc::channel(2);
    // Signals that nobody sends, so that a test run can still be ended.
    let unused = || signal(SignalKind::user_defined1()).unwrap();
    let identity = Identity { name: Author("ann".into()), read_only: false, client_id: "c".into() };
    let workbench = Workbench {
        app: App::new(identity, (80, 24), 0).unattached(),
        themes: Themes::load(&ThemeChoice::Auto, false, Depth::True).unwrap(),
        wanted_theme: ThemeChoice::Auto,
        depth: Depth::True,
        light: false,
        wishes: Wishes::default(),
        setting_files: Vec::new(),
        openings: 0,
        readings: 0,
        watched: Vec::new(),
        watch: Watch::start(),
        terminal: Terminal::new(),
        clock: FrameClock::new(10),
        acks: None,
        events: Some(events),
        commands,
        outbox: VecDeque::new(),
        services: Arc::new(Recorder(Mutex::new(tell))),
        grammars_asked: false,
        news: mpsc::channel(NEWS),
        signals: Signals { terminate: unused(), hangup: unused(), interrupt: unused(), stop: unused() },
        exports: JoinSet::new(),
        waiting: VecDeque::new(),
        exit: None,
    };
    Bench { workbench, asked, lines, sent }
}

#[tokio::test]
async fn what_is_asked_while_another_program_has_the_terminal_is_answered() {
    let Bench { mut workbench, mut asked, lines, .. } = bench();
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let user = async {
        lines.send(ClientEvent::Restored).await.unwrap();
        assert_eq!(asked.recv().await, Some(Ask::Runs));
        drop(stdin);
    };
    let both = async { tokio::join!(workbench.lend(&mut child), user) };
    let (ended, ()) = tokio::time::timeout(DEADLINE, both).await.unwrap();
    assert!(ended.unwrap().unwrap().success());
    let told = workbench.news.1.recv().await.and_then(|news| workbench.take(news));
    assert!(matches!(told, Some(Msg::Told(Told::Runs(Ok(_))))));
}

#[tokio::test]
async fn a_panic_elsewhere_is_told_and_leaves_the_terminal_alone() {
    let Bench { mut workbench, .. } = bench();
    let desk = PanicDesk { screen: std::thread::current().id(), tell: panic_news(&workbench.news.0) };
    let elsewhere = std::thread::spawn(|| std::thread::current().id()).join().unwrap();
    assert!(!desk.takes(desk.screen, "mine"), "this thread's panic is the end of the screen");
    assert!(desk.takes(elsewhere, "panicked at a.rs:1:2:\nno such item"));
    let told = workbench.news.1.recv().await.and_then(|news| workbench.take(news)).unwrap();
    workbench.tell(told);
    let app = &workbench.app;
    let words = "panicked at a.rs:1:2: no such item";
    assert!(app.toast.as_ref().is_some_and(|toast| toast.text.ends_with(words)));
    assert!(app.lines.get(0).is_some_and(|line| line.text.ends_with(words)));
    drop(workbench);
    assert!(!desk.takes(elsewhere, "late"), "nobody is left to tell");
}

#[tokio::test]
async fn commands_that_the_link_has_no_room_for_wait_and_none_is_denied() {
    let Bench { mut workbench, mut sent, .. } = bench();
    let command = |n: usize| ClientLine::Command {
        cmd_id: n.to_string(),
        expect_rev: None,
        body: crate::event::Command::Pause,
    };
    (0..200).for_each(|n| workbench.send(command(n)));
    let taken = async {
        let mut taken = Vec::new();
        while taken.len() < 200 {
            tokio::select! {
                line = sent.recv() => taken.extend(line),
                () = room(&workbench.commands, &workbench.outbox) => workbench.hand_over(),
            }
        }
        taken
    };
    let taken = tokio::time::timeout(DEADLINE, taken).await.unwrap();
    assert_eq!(taken, (0..200).map(command).collect::<Vec<_>>());
    assert_eq!(workbench.app.toast, None);
    drop(sent);
    workbench.send(command(200));
    assert!(workbench.outbox.is_empty(), "a link that has ended keeps nothing");
}

#[tokio::test]
async fn an_export_and_a_theme_file_are_answered_later() {
    let Bench { mut workbench, .. } = bench();
    let folder = tempfile::tempdir().unwrap();
    workbench.app.attached = Some(folder.path().to_owned());
    let next = async |workbench: &mut Workbench| {
        let news = tokio::time::timeout(DEADLINE, workbench.news.1.recv()).await.unwrap().unwrap();
        workbench.take(news)
    };
    workbench
        .waiting
        .push_back(Effect::Export(Export::Picture { subject: Subject::Screen, format: Format::Png }));
    workbench.carry_out().await;
    let Some(Msg::Said(Role::Good, words)) = next(&mut workbench).await else { panic!("no word of it") };
    let path = PathBuf::from(words.strip_prefix("written: ").unwrap());
    assert!(std::fs::read(path).unwrap().starts_with(b"\x89PNG"));

    let none = ThemeChoice::File(folder.path().join("none.toml"));
    workbench.use_theme(&none);
    let Some(Msg::Said(Role::Bad, words)) = next(&mut workbench).await else { panic!("no complaint") };
    assert!(words.contains("none.toml"), "{words}");
    // Another one is chosen before the file is read.
    workbench.use_theme(&none);
    workbench.use_theme(&ThemeChoice::Named("light".into()));
    assert!(next(&mut workbench).await.is_none(), "a late answer is dropped");
}

#[tokio::test]
async fn of_two_looks_at_the_settings_the_later_counts() {
    let Bench { mut workbench, .. } = bench();
    let file = PathBuf::from("ui.toml");
    workbench.setting_files.push(file.clone());
    assert!(workbench.file_changed(&file).is_none() && workbench.file_changed(&file).is_none());
    let settings = |fps| Ok(Box::new(Settings { fps, ..Settings::default() }));
    let first = News::Settings { reading: 1, settings: settings(1) };
    assert!(workbench.take(first).is_none());
    let second = News::Settings { reading: 2, settings: settings(2) };
    assert!(matches!(workbench.take(second), Some(Msg::Settings(settings)) if settings.fps == 2));
}

/// A connection whose lines end at once.
fn opened(opening: u64, run: &str) -> News {
    let connection = Ok(Connection { events: mpsc::channel(1).1, commands: mpsc::channel(1).0 });
    News::Opened { opening, then: Msg::Switched { run: run.into() }, connection }
}

#[tokio::test]
async fn of_two_runs_asked_for_the_later_is_opened() {
    let Bench { mut workbench, .. } = bench();
    for run in ["first", "second"] {
        workbench.waiting.push_back(Effect::Open { run: run.into() });
    }
    workbench.carry_out().await;
    let second = workbench.openings;
    assert!(workbench.take(opened(second - 1, "first")).is_none());
    let then = workbench.take(opened(second, "second"));
    assert!(matches!(then, Some(Msg::Switched { run }) if run == *"second"));
}

#[tokio::test]
async fn a_run_that_comes_late_takes_nothing_that_is_being_typed() {
    let Bench { mut workbench, .. } = bench();
    workbench.waiting.push_back(Effect::Open { run: "late".into() });
    workbench.carry_out().await;
    workbench.tell(Msg::Key(ratatui::crossterm::event::KeyCode::Char(':').into()));
    assert!(workbench.app.overlay.is_some(), "the palette is open");
    assert!(workbench.take(opened(workbench.openings, "late")).is_none());
    assert!(workbench.events.is_some() && workbench.app.overlay.is_some(), "all stays as it is");
    let said = workbench.app.toast.as_ref().map(|toast| toast.text.as_str());
    assert_eq!(said, Some("run late can be opened; press 1 and enter to open it"));
}

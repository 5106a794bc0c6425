//! The loop: input, host lines, timers and signals become messages; effects are carried out; frames are drawn when
//! something is dirty and the frame clock allows. Decides nothing about the run; `effects` carries things out.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use futures_util::StreamExt;
use ratatui::crossterm::event::{Event as Input, EventStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use super::app::{App, Identity};
use super::colour::Depth;
use super::effects::room;
use super::frames::{FrameAck, FrameClock};
use super::msg::{Dirty, Effect, Msg};
use super::probe::{Answers, Questions, read_answers};
use super::services::Services;
use super::settings::{Settings, ThemeChoice, Themes, Wishes};
use super::term::{Terminal, install_panic_hook};
use super::theme::Role;
use super::view;
use super::watch::Watch;
use crate::client::{ClientEvent, Connection};
use crate::event::ClientLine;
use crate::text::Grammars;

/// Most messages taken before a frame is considered.
const BATCH: usize = 4096;
/// Answers that may wait to be taken.
const NEWS: usize = 256;

pub struct Options {
    pub identity: Identity,
    /// What the command line says about the screen.
    pub wishes: Wishes,
    pub services: Arc<dyn Services>,
    /// Folder of the run that the connection leads to, if it is on this machine.
    pub run_dir: Option<PathBuf>,
}

/// How the workbench was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By `q`. The run goes on unless it has ended.
    Left { run: String, ended: bool },
    /// The terminal is gone, or a signal asked to go.
    Hangup,
}

/// Runs the workbench on this process's terminal until it is left. The connection feeds it, and takes what people decide
/// as [`ClientLine::Command`]; without one no run is attached.
///
/// # Errors
/// A theme that cannot be used, or a terminal that cannot be set up.
pub async fn run(connection: Option<Connection>, options: Options) -> anyhow::Result<Exit> {
    let variable = |name: &str| std::env::var(name).ok();
    let depth = Depth::detect(
        variable("NO_COLOR").as_deref(),
        variable("COLORTERM").as_deref(),
        variable("TERM").as_deref(),
    );
    let settings = Settings::load(&options.wishes)?;
    let questions = Questions::for_terminal(settings.theme == ThemeChoice::Auto, variable);
    // The theme has dealt with NO_COLOR; the encoder must not do so a second time.
    ratatui::crossterm::style::force_color_output(true);
    let acks = match std::env::var_os("PLANISH_FRAME_ACK") {
        Some(path) => Some(
            FrameAck::open(path.as_ref())
                .with_context(|| format!("PLANISH_FRAME_ACK: cannot open {}", path.display()))?,
        ),
        None => None,
    };
    let news = mpsc::channel(NEWS);
    install_panic_hook(panic_news(&news.0));
    let size = ratatui::crossterm::terminal::size().context("the size of the terminal is not known")?;
    let mut app = App::new(options.identity, size, now_ms());
    app.attached = options.run_dir;
    let (events, commands) = match connection {
        Some(connection) => (Some(connection.events), connection.commands),
        None => {
            app = app.unattached();
            // Nobody takes commands from it.
            (None, mpsc::channel(1).0)
        }
    };
    let mut workbench = Workbench {
        app,
        themes: Themes::load(&settings.theme, false, depth)?,
        wanted_theme: settings.theme.clone(),
        depth,
        light: false,
        wishes: options.wishes,
        setting_files: Vec::new(),
        openings: 0,
        readings: 0,
        watched: Vec::new(),
        watch: Watch::start(),
        terminal: Terminal::enter().context("cannot set up the terminal")?,
        clock: FrameClock::new(settings.fps),
        acks,
        events,
        commands,
        outbox: VecDeque::new(),
        services: options.services,
        grammars_asked: false,
        news,
        signals: Signals::listen()?,
        exports: JoinSet::new(),
        waiting: VecDeque::new(),
        exit: None,
    };
    workbench.terminal.screen.modes().tmux = variable("TMUX").is_some();
    workbench.adopt(&settings);
    workbench.tell(Msg::Settings(Box::new(settings)));
    workbench.carry_out().await;
    let exit = workbench.work(questions).await;
    // A terminal that is gone needs no restoring and nobody to tell.
    let _ = workbench.terminal.restore();
    // A file that is being written is written; who still has something to say finds nobody.
    let Workbench { mut exports, news, .. } = workbench;
    drop(news);
    while exports.join_next().await.is_some() {}
    Ok(exit)
}

pub(super) struct Workbench {
    pub app: App,
    pub themes: Themes,
    /// What was chosen last; its file may still be read.
    pub wanted_theme: ThemeChoice,
    pub depth: Depth,
    /// The terminal's background is light, as far as is known.
    pub light: bool,
    pub wishes: Wishes,
    /// Files of the settings in force.
    pub setting_files: Vec<PathBuf>,
    /// How many connections were asked for.
    pub openings: u64,
    /// How often the settings were read anew.
    pub readings: u64,
    pub watched: Vec<PathBuf>,
    pub watch: Watch,
    pub terminal: Terminal,
    pub clock: FrameClock,
    acks: Option<FrameAck>,
    pub events: Option<mpsc::Receiver<ClientEvent>>,
    pub commands: mpsc::Sender<ClientLine>,
    /// Commands that the link has no room for yet.
    pub outbox: VecDeque<ClientLine>,
    pub services: Arc<dyn Services>,
    grammars_asked: bool,
    /// What tasks of this loop have to say.
    pub news: (mpsc::Sender<News>, mpsc::Receiver<News>),
    pub signals: Signals,
    /// Files that are being written.
    pub exports: JoinSet<()>,
    /// What the app asked and was not carried out yet.
    pub waiting: VecDeque<Effect>,
    pub exit: Option<Exit>,
}

pub(super) struct Signals {
    pub terminate: Signal,
    pub hangup: Signal,
    pub interrupt: Signal,
    pub stop: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
        })
    }
}

/// What a task of the loop came to.
pub(super) enum News {
    Msg(Box<Msg>),
    Theme {
        choice: ThemeChoice,
        loaded: Result<Box<Themes>, String>,
    },
    /// What the files say at the `reading`th look.
    Settings {
        reading: u64,
        settings: Result<Box<Settings>, String>,
    },
    /// What is to be told once the connection is there.
    Opened {
        opening: u64,
        then: Msg,
        connection: Result<Connection, String>,
    },
}

impl News {
    pub fn of(msg: Msg) -> Self {
        News::Msg(Box::new(msg))
    }
}

/// What ended a wait.
enum Wake {
    News(Option<News>),
    Input(Option<std::io::Result<Input>>),
    /// What the terminal answered.
    Answered(Answers),
    File(Option<PathBuf>),
    Client(Option<ClientEvent>),
    Leave,
    Suspend,
    Timer,
    /// The link takes commands again.
    Room,
}

/// Where keys come from: nobody, while the terminal is answering questions.
enum Keyboard {
    Asked(JoinHandle<std::io::Result<Answers>>),
    Read(EventStream),
}

impl Keyboard {
    async fn next(&mut self) -> Wake {
        match self {
            Keyboard::Asked(answers) => {
                Wake::Answered(answers.await.ok().and_then(Result::ok).unwrap_or_default())
            }
            Keyboard::Read(stream) => Wake::Input(stream.next().await),
        }
    }
}

impl Workbench {
    async fn work(&mut self, questions: Option<Questions>) -> Exit {
        // The first frame waits for no answer.
        if self.draw_if_due().is_err() {
            return Exit::Hangup;
        }
        let mut keyboard = match questions {
            None => Keyboard::Read(EventStream::new()),
            Some(questions) => {
                if self.terminal.screen.send(&questions.text()).is_err() {
                    return Exit::Hangup;
                }
                Keyboard::Asked(tokio::task::spawn_blocking(read_answers))
            }
        };
        loop {
            if self.draw_if_due().is_err() {
                return Exit::Hangup;
            }
            self.watch_files();
            let wake = self.wait(&mut keyboard).await;
            let mut messages = vec![Msg::Tick(now_ms())];
            let mut suspend = false;
            match wake {
                Wake::Timer => {}
                Wake::Room => self.hand_over(),
                Wake::Leave | Wake::Input(None | Some(Err(_))) => return Exit::Hangup,
                Wake::Suspend => suspend = true,
                Wake::Input(Some(Ok(event))) => messages.extend(message(event)),
                Wake::Answered(answers) => {
                    keyboard = Keyboard::Read(EventStream::new());
                    messages.extend(self.hear(answers));
                }
                Wake::News(news) => messages.extend(news.and_then(|news| self.take(news))),
                Wake::File(file) => messages.extend(file.and_then(|file| self.file_changed(&file))),
                Wake::Client(Some(event)) => messages.push(Msg::Client(event)),
                Wake::Client(None) => self.events = None,
            }
            self.drain(&mut keyboard, &mut messages).await;
            if messages.iter().any(|message| matches!(message, Msg::Resize(..))) {
                self.clock.resized(Instant::now());
            }
            if suspend {
                self.waiting.push_front(Effect::Suspend);
            }
            messages.into_iter().for_each(|msg| self.tell(msg));
            if self.needs_terminal() {
                // A waiting reader would steal the keys of whoever has the terminal next.
                drop(keyboard);
                self.carry_out().await;
                keyboard = Keyboard::Read(EventStream::new());
            } else {
                self.carry_out().await;
            }
            if let Some(exit) = self.exit.take() {
                return exit;
            }
        }
    }

    /// What the terminal said of itself; the keys that came meanwhile.
    fn hear(&mut self, answers: Answers) -> impl Iterator<Item = Msg> + use<> {
        self.terminal.screen.modes().synchronized = answers.synchronized;
        if let Some(light) = answers.light {
            self.light = light;
            let theme = self.app.surface.theme.clone();
            self.use_theme(&theme);
        }
        answers.keys.into_iter().map(Msg::Key)
    }

    async fn wait(&mut self, keyboard: &mut Keyboard) -> Wake {
        let frame = self.clock.due(self.app.dirty(), Instant::now());
        let tick = self.app.next_tick().map(|ms| Instant::now() + Duration::from_millis(ms));
        let timer = async {
            match frame.into_iter().chain(tick).min() {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let client = async {
            match &mut self.events {
                Some(events) => events.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.signals.terminate.recv() => Wake::Leave,
            _ = self.signals.hangup.recv() => Wake::Leave,
            _ = self.signals.interrupt.recv() => Wake::Leave,
            _ = self.signals.stop.recv() => Wake::Suspend,
            wake = keyboard.next() => wake,
            () = timer => Wake::Timer,
            () = room(&self.commands, &self.outbox) => Wake::Room,
            news = self.news.1.recv() => Wake::News(news),
            file = self.watch.changed() => Wake::File(file),
            event = client => Wake::Client(event),
        }
    }

    /// Takes what else is there already, so that one frame shows all of it.
    async fn drain(&mut self, keyboard: &mut Keyboard, messages: &mut Vec<Msg>) {
        while let Keyboard::Read(input) = keyboard
            && messages.len() < BATCH
        {
            // Polled with this task's own waker: the stream keeps the first one it is given, and with another the
            // next key would wake nobody.
            match poll_fn(|context| Poll::Ready(input.poll_next_unpin(context))).await {
                Poll::Ready(Some(Ok(event))) => messages.extend(message(event)),
                Poll::Ready(Some(Err(_)) | None) | Poll::Pending => break,
            }
        }
        while messages.len() < BATCH {
            match self.events.as_mut().map(mpsc::Receiver::try_recv) {
                Some(Ok(event)) => messages.push(Msg::Client(event)),
                _ => break,
            }
        }
    }

    /// Only once a frame stands that could do with them: no frame waits for grammars.
    fn load_grammars(&mut self) {
        let theme = &self.themes.shown;
        let coloured = theme.style(Role::SynKeyword).fg != theme.style(Role::Text).fg;
        if self.grammars_asked || !coloured || !self.app.wants_grammars() {
            return;
        }
        self.grammars_asked = true;
        let news = self.news.0.clone();
        tokio::task::spawn_blocking(move || {
            // A loop that has ended needs no colours.
            drop(news.blocking_send(News::of(Msg::Grammars(Arc::new(Grammars::load())))));
        });
    }

    fn draw_if_due(&mut self) -> std::io::Result<()> {
        let began = Instant::now();
        if self.clock.due(self.app.dirty(), began).is_none_or(|due| due > began) {
            return Ok(());
        }
        if self.app.take_dirty() == Dirty::Repaint {
            self.terminal.screen.repaint();
        }
        self.terminal.screen.title(&self.app.window_title())?;
        let (app, theme) = (&self.app, &self.themes.shown);
        self.terminal.screen.draw(app.size, |buf| view::draw(app, theme, buf))?;
        self.clock.drawn(began, Instant::now());
        self.load_grammars();
        match &mut self.acks {
            Some(acks) => acks.acknowledge(self.app.state.seq),
            None => Ok(()),
        }
    }
}

/// Tells the loop of a panic, as long as there is one.
fn panic_news(news: &mpsc::Sender<News>) -> impl Fn(String) -> bool + Send + Sync + use<> {
    let news = news.clone();
    // A queue that is full has enough to tell; the screen stands all the same.
    move |what| {
        !matches!(news.try_send(News::of(Msg::Panicked(what))), Err(mpsc::error::TrySendError::Closed(_)))
    }
}

fn message(event: Input) -> Option<Msg> {
    match event {
        Input::Key(key) => Some(Msg::Key(key)),
        Input::Paste(text) => Some(Msg::Paste(text)),
        Input::Resize(width, height) => Some(Msg::Resize(width, height)),
        Input::FocusGained => Some(Msg::Focus(true)),
        Input::FocusLost => Some(Msg::Focus(false)),
        Input::Mouse(event) => Some(Msg::Mouse(event)),
    }
}

pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;

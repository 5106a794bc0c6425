//! The loop: input, host lines, timers and signals become messages; effects are carried out; frames are drawn when
//! something is dirty and the frame clock allows. Decides nothing about the run.

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

use super::app::{App, Identity};
use super::colour::Depth;
use super::editor::Editing;
use super::frames::{FrameAck, FrameClock};
use super::msg::{Dirty, EditPurpose, Effect, Msg};
use super::services::{Ask, Services, Told};
use super::term::{Terminal, install_panic_hook};
use super::theme::Theme;
use super::view;
use crate::client::{ClientEvent, Connection};
use crate::event::{AckResult, ClientLine, HostLine};

/// Most messages taken before a frame is considered.
const BATCH: usize = 4096;
/// Answers that may wait to be taken.
const NEWS: usize = 256;

pub struct Options {
    pub identity: Identity,
    /// A theme file instead of the built-in dark one.
    pub theme: Option<PathBuf>,
    pub services: Arc<dyn Services>,
}

/// How the workbench was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By `q`. The run goes on unless it has ended.
    Left { run: String, ended: bool },
    /// The terminal is gone, or a signal asked to go.
    Hangup,
}

/// Runs the workbench on this process's terminal until it is left. `events` feeds it; what people decide goes to
/// `commands` as [`ClientLine::Command`].
///
/// # Errors
/// A theme that cannot be used, or a terminal that cannot be set up.
pub async fn run(
    events: mpsc::Receiver<ClientEvent>,
    commands: mpsc::Sender<ClientLine>,
    options: Options,
) -> anyhow::Result<Exit> {
    let variable = |name: &str| std::env::var(name).ok();
    let depth = Depth::detect(
        variable("NO_COLOR").as_deref(),
        variable("COLORTERM").as_deref(),
        variable("TERM").as_deref(),
    );
    let theme = match &options.theme {
        Some(path) => Theme::load(path, depth)?,
        None => Theme::dark(depth)?,
    };
    // The theme has dealt with NO_COLOR; the encoder must not do so a second time.
    ratatui::crossterm::style::force_color_output(true);
    let acks = match std::env::var_os("PLANISH_FRAME_ACK") {
        Some(path) => Some(
            FrameAck::open(path.as_ref())
                .with_context(|| format!("PLANISH_FRAME_ACK: cannot open {}", path.display()))?,
        ),
        None => None,
    };
    install_panic_hook();
    let size = ratatui::crossterm::terminal::size().context("the size of the terminal is not known")?;
    let mut workbench = Workbench {
        app: App::new(options.identity, size, now_ms()),
        theme,
        terminal: Terminal::enter().context("cannot set up the terminal")?,
        clock: FrameClock::default(),
        acks,
        events: Some(events),
        commands,
        services: options.services,
        news: mpsc::channel(NEWS),
        signals: Signals::listen()?,
        exit: None,
    };
    let exit = workbench.work().await;
    // A terminal that is gone needs no restoring and nobody to tell.
    let _ = workbench.terminal.restore();
    Ok(exit)
}

struct Workbench {
    app: App,
    theme: Theme,
    terminal: Terminal,
    clock: FrameClock,
    acks: Option<FrameAck>,
    events: Option<mpsc::Receiver<ClientEvent>>,
    commands: mpsc::Sender<ClientLine>,
    services: Arc<dyn Services>,
    /// What tasks of this loop have to say.
    news: (mpsc::Sender<News>, mpsc::Receiver<News>),
    signals: Signals,
    exit: Option<Exit>,
}

struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    stop: Signal,
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
enum News {
    Told(Box<Told>),
    Opened { run: PathBuf, connection: Result<Connection, String> },
}

/// What ended a wait.
enum Wake {
    News(Option<News>),
    Input(Option<std::io::Result<Input>>),
    Client(Option<ClientEvent>),
    Leave,
    Suspend,
    Timer,
}

impl Workbench {
    async fn work(&mut self) -> Exit {
        let mut input = EventStream::new();
        loop {
            if self.draw_if_due().is_err() {
                return Exit::Hangup;
            }
            let wake = self.wait(&mut input).await;
            let mut messages = vec![Msg::Tick(now_ms())];
            let mut suspend = false;
            match wake {
                Wake::Timer => {}
                Wake::Leave | Wake::Input(None | Some(Err(_))) => return Exit::Hangup,
                Wake::Suspend => suspend = true,
                Wake::Input(Some(Ok(event))) => messages.extend(message(event)),
                Wake::News(news) => messages.extend(news.and_then(|news| self.take(news))),
                Wake::Client(Some(event)) => messages.push(Msg::Client(event)),
                Wake::Client(None) => self.events = None,
            }
            self.drain(&mut input, &mut messages).await;
            let effects: Vec<Effect> = messages.into_iter().flat_map(|msg| self.app.update(msg)).collect();
            if suspend || self.needs_terminal(&effects) {
                // A waiting reader would steal the keys of whoever has the terminal next.
                drop(input);
                if suspend {
                    self.suspend();
                }
                self.carry_out(effects).await;
                input = EventStream::new();
            } else {
                self.carry_out(effects).await;
            }
            if let Some(exit) = self.exit.take() {
                return exit;
            }
        }
    }

    async fn wait(&mut self, input: &mut EventStream) -> Wake {
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
            event = input.next() => Wake::Input(event),
            () = timer => Wake::Timer,
            news = self.news.1.recv() => Wake::News(news),
            event = client => Wake::Client(event),
        }
    }

    /// Takes what else is there already, so that one frame shows all of it.
    async fn drain(&mut self, input: &mut EventStream, messages: &mut Vec<Msg>) {
        while messages.len() < BATCH {
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

    fn draw_if_due(&mut self) -> std::io::Result<()> {
        let began = Instant::now();
        if self.clock.due(self.app.dirty(), began).is_none_or(|due| due > began) {
            return Ok(());
        }
        if self.app.take_dirty() == Dirty::Repaint {
            self.terminal.screen.repaint();
        }
        let (app, theme) = (&self.app, &self.theme);
        self.terminal.screen.draw(app.size, |buf| view::draw(app, theme, buf))?;
        self.clock.drawn(began, Instant::now());
        match &mut self.acks {
            Some(acks) => acks.acknowledge(self.app.state.seq),
            None => Ok(()),
        }
    }

    fn needs_terminal(&self, effects: &[Effect]) -> bool {
        effects.iter().any(|effect| matches!(effect, Effect::OpenEditor { .. } | Effect::Suspend))
    }

    async fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let done = match effect {
                Effect::Send(line) => {
                    self.send(line);
                    Ok(())
                }
                Effect::OpenEditor { text, purpose } => {
                    let follow_up = self.edit(&text, purpose).await;
                    for effect in follow_up {
                        if let Effect::Send(line) = effect {
                            self.send(line);
                        }
                    }
                    Ok(())
                }
                Effect::Ask(ask) => {
                    self.ask(ask);
                    Ok(())
                }
                Effect::Open { run } => {
                    self.open(run);
                    Ok(())
                }
                Effect::Copy(text) => self.terminal.screen.copy(&text),
                Effect::Bell => self.terminal.screen.bell(),
                Effect::Suspend => {
                    self.suspend();
                    Ok(())
                }
                Effect::Quit => {
                    let run = self.app.run_name().to_owned();
                    self.exit = Some(Exit::Left { run, ended: self.app.ended() });
                    Ok(())
                }
            };
            if done.is_err() {
                self.exit = Some(Exit::Hangup);
            }
        }
    }

    /// A message of the news, after what they change of the loop.
    fn take(&mut self, news: News) -> Option<Msg> {
        match news {
            News::Told(told) => Some(Msg::Told(*told)),
            News::Opened { run, connection: Ok(connection) } => {
                self.events = Some(connection.events);
                self.commands = connection.commands;
                Some(Msg::Switched { run })
            }
            News::Opened { connection: Err(message), .. } => {
                let line = HostLine::Error { message };
                Some(Msg::Client(ClientEvent::Line(line)))
            }
        }
    }

    fn ask(&self, ask: Ask) {
        let (answer, news) = (self.services.answer(ask), self.news.0.clone());
        // A loop that has ended needs no answer.
        tokio::spawn(async move { drop(news.send(News::Told(Box::new(answer.await))).await) });
    }

    fn open(&self, run: PathBuf) {
        let (opening, news) =
            (self.services.open(run.clone(), self.app.identity.read_only), self.news.0.clone());
        tokio::spawn(async move {
            let connection = opening.await;
            drop(news.send(News::Opened { run, connection }).await);
        });
    }

    /// A command that cannot be queued is answered at once, so that nothing seems to be under way.
    fn send(&mut self, line: ClientLine) {
        let Err(error) = self.commands.try_send(line) else { return };
        let (reason, line) = match error {
            mpsc::error::TrySendError::Full(line) => ("the link is down and its queue full", line),
            mpsc::error::TrySendError::Closed(line) => ("this run takes no commands", line),
        };
        if let ClientLine::Command { cmd_id, .. } = line {
            let result = AckResult::Denied { reason: reason.to_owned() };
            let ack = HostLine::Ack { cmd_id, result, rev: self.app.state.rev };
            self.app.update(Msg::Client(ClientEvent::Line(ack)));
        }
    }

    fn suspend(&mut self) {
        // Only this process stops: the shell that started it notices and takes over.
        let stopped = self.terminal.restore().is_ok()
            && rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)
                .is_ok();
        self.take_terminal_back(stopped.then_some(Msg::Continued));
    }

    fn take_terminal_back(&mut self, msg: Option<Msg>) {
        if self.terminal.resume().is_err() {
            self.exit = Some(Exit::Hangup);
            return;
        }
        self.app.update(Msg::Tick(now_ms()));
        if let Ok((width, height)) = ratatui::crossterm::terminal::size() {
            self.app.update(Msg::Resize(width, height));
        }
        if let Some(msg) = msg {
            self.app.update(msg);
        }
    }

    /// The run goes on while the editor has the terminal: its lines are taken, nothing is drawn.
    async fn edit(&mut self, text: &str, purpose: EditPurpose) -> Vec<Effect> {
        if self.terminal.restore().is_err() {
            self.exit = Some(Exit::Hangup);
            return Vec::new();
        }
        let result = match Editing::start(text) {
            Err(message) => Err(message),
            Ok(mut editing) => {
                let status = loop {
                    let client = async {
                        match &mut self.events {
                            Some(events) => events.recv().await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        status = editing.child.wait() => break status,
                        // Ctrl-c in the editor reaches this process too and is not meant for it.
                        _ = self.signals.interrupt.recv() => {}
                        _ = self.signals.terminate.recv() => self.exit = Some(Exit::Hangup),
                        _ = self.signals.hangup.recv() => self.exit = Some(Exit::Hangup),
                        event = client => match event {
                            Some(event) => {
                                self.app.update(Msg::Tick(now_ms()));
                                self.app.update(Msg::Client(event));
                            }
                            None => self.events = None,
                        },
                    }
                    if self.exit.is_some() {
                        return Vec::new();
                    }
                };
                editing.finish(status)
            }
        };
        self.take_terminal_back(None);
        self.app.update(Msg::EditorClosed { purpose, result })
    }
}

fn message(event: Input) -> Option<Msg> {
    match event {
        Input::Key(key) => Some(Msg::Key(key)),
        Input::Paste(text) => Some(Msg::Paste(text)),
        Input::Resize(width, height) => Some(Msg::Resize(width, height)),
        Input::FocusGained | Input::FocusLost | Input::Mouse(_) => None,
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

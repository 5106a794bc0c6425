//! What the app asks of the world, carried out: commands, questions, the clipboard, programs that borrow the terminal,
//! the files of the settings. Decides nothing; the loop is in `runtime`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use tokio::process::Child;
use tokio::sync::mpsc;

use super::editor::{Editing, Paging};
use super::export::{Export, making, write_new};
use super::msg::{EditPurpose, Effect, Msg};
use super::runtime::{Exit, News, Workbench, now_ms};
use super::services::{Ask, Opening};
use super::settings::{Settings, ThemeChoice, Themes};
use super::theme::Role;
use crate::client::ClientEvent;
use crate::event::{AckResult, ClientLine, HostLine};

impl Workbench {
    pub(super) fn needs_terminal(&self) -> bool {
        self.waiting
            .iter()
            .any(|effect| matches!(effect, Effect::OpenEditor { .. } | Effect::Page(_) | Effect::Suspend))
    }

    /// One message to the app; what it asks is carried out by [`Self::carry_out`].
    pub(super) fn tell(&mut self, msg: Msg) {
        self.waiting.extend(self.app.update(msg));
    }

    /// Carries out what waits, in order, and what that brings about.
    pub(super) async fn carry_out(&mut self) {
        while let Some(effect) = self.waiting.pop_front() {
            match effect {
                Effect::OpenEditor { text, purpose } => self.edit(&text, purpose).await,
                Effect::Page(text) => self.page(&text).await,
                Effect::Suspend => self.suspend(),
                Effect::Mouse(on) => {
                    let sent = self.terminal.screen.mouse(on);
                    self.hang_up_if(&sent);
                }
                Effect::Quit => {
                    let run = self.app.run_name().to_owned();
                    let ended = self.app.ended() || !self.app.is_attached();
                    self.exit = Some(Exit::Left { run, ended });
                }
                Effect::Send(_)
                | Effect::Ask(_)
                | Effect::Open { .. }
                | Effect::Reconnect { .. }
                | Effect::Copy(_)
                | Effect::Bell
                | Effect::Theme(_)
                | Effect::Export(_) => self.at_once(effect),
            }
        }
    }

    /// Carries out what does not need the terminal to be the workbench's; the rest waits for it.
    fn at_once(&mut self, effect: Effect) {
        match effect {
            Effect::Send(line) => self.send(line),
            Effect::Ask(ask) => self.ask(ask),
            Effect::Open { run } => {
                let opening = Opening { read_only: self.app.identity.read_only, after_seq: 0 };
                self.open(Some(run.clone()), opening, Msg::Switched { run });
            }
            Effect::Reconnect { read_only } => {
                let opening = Opening { read_only, after_seq: self.app.read_seq() };
                self.open(self.app.attached.clone(), opening, Msg::RoleTaken { read_only });
            }
            Effect::Copy(text) => {
                let sent = self.terminal.screen.copy(&text);
                self.hang_up_if(&sent);
            }
            Effect::Bell => {
                let words = format!("{}: a decision waits", self.app.run_name());
                let sent = self.terminal.screen.call(&words);
                self.hang_up_if(&sent);
            }
            Effect::Theme(theme) => self.use_theme(&theme),
            Effect::Export(what) => self.export(what),
            Effect::OpenEditor { .. }
            | Effect::Page(_)
            | Effect::Suspend
            | Effect::Mouse(_)
            | Effect::Quit => self.waiting.push_back(effect),
        }
    }

    fn hang_up_if(&mut self, sent: &std::io::Result<()>) {
        if sent.is_err() {
            self.exit = Some(Exit::Hangup);
        }
    }

    /// A message of the news, after what they change of the loop.
    pub(super) fn take(&mut self, news: News) -> Option<Msg> {
        match news {
            News::Msg(msg) => Some(*msg),
            News::Theme { choice, loaded } => self.take_theme(&choice, loaded),
            News::Settings { reading, settings } => {
                // A later look has seen all that this one saw.
                if reading != self.readings {
                    return None;
                }
                Some(match settings {
                    Ok(settings) => {
                        self.adopt(&settings);
                        Msg::Settings(settings)
                    }
                    Err(why) => Msg::SettingsBroken(why),
                })
            }
            // Something else was asked for since.
            News::Opened { opening, .. } if opening != self.openings => None,
            News::Opened { then: Msg::Switched { run }, connection: Ok(_), .. } if !self.app.admits(&run) => {
                None
            }
            News::Opened { then, connection: Ok(connection), .. } => {
                self.events = Some(connection.events);
                self.commands = connection.commands;
                // The app sends again what is not answered.
                self.outbox.clear();
                Some(then)
            }
            News::Opened { connection: Err(message), .. } => Some(Msg::NotOpened(message)),
        }
    }

    /// Work that waits for the disk, on a thread for that.
    fn aside(&self, work: impl FnOnce() -> News + Send + 'static) {
        let news = self.news.0.clone();
        // A loop that has ended needs no answer.
        tokio::task::spawn_blocking(move || drop(news.blocking_send(work())));
    }

    fn ask(&self, ask: Ask) {
        let (answer, news) = (self.services.answer(ask), self.news.0.clone());
        // A loop that has ended needs no answer.
        tokio::spawn(async move { drop(news.send(News::of(Msg::Told(answer.await))).await) });
    }

    fn open(&mut self, run: Option<PathBuf>, how: Opening, then: Msg) {
        self.openings += 1;
        let opening = self.openings;
        let (opened, news) = (self.services.open(run, how), self.news.0.clone());
        tokio::spawn(async move {
            let connection = opened.await;
            drop(news.send(News::Opened { opening, then, connection }).await);
        });
    }

    /// Takes its place behind the commands that wait for room in the link.
    pub(super) fn send(&mut self, line: ClientLine) {
        self.outbox.push_back(line);
        self.hand_over();
    }

    /// Gives the link as many commands as it has room for. Only one that takes none is answered for.
    pub(super) fn hand_over(&mut self) {
        while let Some(line) = self.outbox.pop_front() {
            match self.commands.try_send(line) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(line)) => return self.outbox.push_front(line),
                Err(mpsc::error::TrySendError::Closed(ClientLine::Command { cmd_id, .. })) => {
                    let result = AckResult::Denied { reason: "this run takes no commands".to_owned() };
                    let ack = HostLine::Ack { cmd_id, result, rev: self.app.state.rev };
                    self.tell(Msg::Client(ClientEvent::Line(ack)));
                }
                Err(mpsc::error::TrySendError::Closed(ClientLine::Hello { .. })) => {}
            }
        }
    }

    pub(super) fn suspend(&mut self) {
        let stopped = self.terminal.restore().is_ok() && stop();
        self.take_terminal_back(stopped.then_some(Msg::Continued));
    }

    fn take_terminal_back(&mut self, msg: Option<Msg>) {
        if self.terminal.resume().is_err() {
            self.exit = Some(Exit::Hangup);
            return;
        }
        self.tell(Msg::Tick(now_ms()));
        if let Ok((width, height)) = ratatui::crossterm::terminal::size() {
            self.tell(Msg::Resize(width, height));
        }
        if let Some(msg) = msg {
            self.tell(msg);
        }
    }

    async fn edit(&mut self, text: &str, purpose: EditPurpose) {
        if self.terminal.restore().is_err() {
            self.exit = Some(Exit::Hangup);
            return;
        }
        let result = match Editing::start(text) {
            Err(message) => Err(message),
            Ok(mut editing) => match self.lend(&mut editing.child).await {
                Some(status) => editing.finish(status),
                None => return,
            },
        };
        self.take_terminal_back(Some(Msg::EditorClosed { purpose, result }));
    }

    async fn page(&mut self, text: &str) {
        if self.terminal.restore().is_err() {
            self.exit = Some(Exit::Hangup);
            return;
        }
        let failed = match Paging::start(text) {
            Err(message) => Some(message),
            Ok(mut paging) => match self.lend(&mut paging.child).await {
                Some(status) => paging.finish(status).err(),
                None => return,
            },
        };
        self.take_terminal_back(failed.map(|message| Msg::Said(Role::Warn, message)));
    }

    /// The run goes on while another program has the terminal: its lines are taken and answered, nothing is drawn.
    /// `None`: the workbench is to end.
    pub(super) async fn lend(
        &mut self,
        child: &mut Child,
    ) -> Option<std::io::Result<std::process::ExitStatus>> {
        loop {
            let client = async {
                match &mut self.events {
                    Some(events) => events.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                status = child.wait() => return Some(status),
                // Ctrl-c in the program reaches this process too and is not meant for it.
                _ = self.signals.interrupt.recv() => {}
                // Ctrl-z has stopped the program; the shell waits for both.
                _ = self.signals.stop.recv() => drop(stop()),
                _ = self.signals.terminate.recv() => self.exit = Some(Exit::Hangup),
                _ = self.signals.hangup.recv() => self.exit = Some(Exit::Hangup),
                () = room(&self.commands, &self.outbox) => self.hand_over(),
                event = client => match event {
                    Some(event) => {
                        for msg in [Msg::Tick(now_ms()), Msg::Client(event)] {
                            for effect in self.app.update(msg) {
                                self.at_once(effect);
                            }
                        }
                    }
                    None => self.events = None,
                },
            }
            if self.exit.is_some() {
                return None;
            }
        }
    }

    /// Pictures have all the colours of the theme, whatever the terminal shows.
    fn export(&mut self, what: Export) {
        let make = making(&self.app, &self.themes.full, what);
        let (folder, at) = (self.app.export_folder(), now_ms());
        let news = self.news.0.clone();
        self.exports.spawn_blocking(move || {
            let written = make().and_then(|bytes| write_new(&folder, what, at, &bytes));
            let said = match written {
                Ok(path) => Msg::Said(Role::Good, format!("written: {}", path.display())),
                Err(error) => Msg::Said(Role::Bad, format!("not exported: {error}")),
            };
            // A loop that has ended needs no answer.
            drop(news.blocking_send(News::of(said)));
        });
    }

    // --- settings ---

    /// A theme that cannot be used leaves the old one. One in a file comes once it is read.
    pub(super) fn use_theme(&mut self, choice: &ThemeChoice) {
        self.wanted_theme = choice.clone();
        let (light, depth) = (self.light, self.depth);
        match choice {
            ThemeChoice::Auto | ThemeChoice::Named(_) => {
                let loaded =
                    Themes::load(choice, light, depth).map(Box::new).map_err(|error| error.to_string());
                self.take_theme(choice, loaded).into_iter().for_each(|msg| self.tell(msg));
            }
            ThemeChoice::File(_) => {
                let choice = choice.clone();
                self.aside(move || {
                    let loaded =
                        Themes::load(&choice, light, depth).map(Box::new).map_err(|error| error.to_string());
                    News::Theme { choice, loaded }
                });
            }
        }
    }

    fn take_theme(&mut self, choice: &ThemeChoice, loaded: Result<Box<Themes>, String>) -> Option<Msg> {
        match loaded {
            // Another one was chosen meanwhile.
            _ if *choice != self.wanted_theme => None,
            Ok(themes) => {
                self.themes = *themes;
                self.app.redraw();
                None
            }
            Err(why) => Some(Msg::Said(Role::Bad, why)),
        }
    }

    /// What a change of this file means, where it is known at once.
    pub(super) fn file_changed(&mut self, file: &Path) -> Option<Msg> {
        if !self.setting_files.iter().any(|known| known == file) {
            return Some(Msg::FileChanged(file.to_owned()));
        }
        self.readings += 1;
        let (reading, wishes) = (self.readings, self.wishes.clone());
        self.aside(move || {
            let settings = Settings::load(&wishes).map(Box::new).map_err(|error| error.to_string());
            News::Settings { reading, settings }
        });
        None
    }

    /// What of the settings is the loop's.
    pub(super) fn adopt(&mut self, settings: &Settings) {
        self.clock.pace(settings.fps);
        self.use_theme(&settings.theme);
        self.setting_files.clone_from(&settings.files);
    }

    /// Watches the files that matter now.
    pub(super) fn watch_files(&mut self) {
        let mut files = self.setting_files.clone();
        files.extend(self.app.watched());
        if files != self.watched {
            // What changes until it is watched was read just now.
            drop(self.watch.set(files.clone()));
            self.watched = files;
        }
    }
}

/// Until the link can take what waits for it, or has ended; for ever when nothing waits.
pub(super) async fn room(commands: &mpsc::Sender<ClientLine>, outbox: &VecDeque<ClientLine>) {
    match outbox.is_empty() {
        true => std::future::pending().await,
        false => drop(commands.reserve().await),
    }
}

/// Stops this process until it is continued. Only this one: the shell that started it notices and takes over.
fn stop() -> bool {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP).is_ok()
}

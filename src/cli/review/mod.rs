//! Review on a terminal without a screen: asks the questions of the dialog, reads the answers, sends what they decide.

mod dialog;

use std::io::IsTerminal;

use tokio::signal::unix::Signal;
use tokio::sync::mpsc;

use self::dialog::{Dialog, Move};
use super::present::View;
use super::{Failure, output};
use crate::event::{AckResult, ClientLine, HostLine, RunState};
use crate::plain::review::how_to_decide;
use crate::tui::Editing;

/// Somebody sits at the terminal and may decide.
pub fn can_ask(view: View, read_only: bool) -> bool {
    view == View::Plain && !read_only && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// What the lines of a run do about its reviews.
pub enum Review {
    /// Questions and answers.
    Asking(Box<Reviewer>),
    /// Says once a review how it is decided from elsewhere.
    Telling {
        run: String,
        told: Option<u32>,
    },
    Silent,
}

impl Review {
    pub fn new(view: View, read_only: bool, commands: mpsc::Sender<ClientLine>) -> Self {
        match view {
            View::Plain if can_ask(view, read_only) => Self::Asking(Box::new(Reviewer::new(commands))),
            View::Plain if !read_only => Self::Telling { run: String::new(), told: None },
            View::Plain | View::Json | View::Workbench => Self::Silent,
        }
    }

    /// After each line of the host; `arrived`: the history has been read.
    pub async fn hear(
        &mut self,
        line: &HostLine,
        state: &RunState,
        arrived: bool,
        interrupt: &mut Signal,
    ) -> Result<(), Failure> {
        match self {
            Self::Asking(reviewer) => reviewer.hear(line, state, arrived, interrupt).await,
            Self::Telling { run, told } => {
                if let HostLine::Welcome { run: name, .. } = line {
                    run.clone_from(name);
                }
                let open = dialog::open(state).map(|(at, _)| at.step).filter(|_| arrived);
                if open.is_some() && open != *told {
                    *told = open;
                    output::line(&how_to_decide(run))?;
                }
                Ok(())
            }
            Self::Silent => Ok(()),
        }
    }

    /// The next line typed; never, where nothing is asked.
    pub async fn typed(&mut self) -> Typed {
        match self {
            Self::Asking(reviewer) if reviewer.reading => match reviewer.lines.recv().await {
                Some(line) => Typed::Line(line),
                None => Typed::End,
            },
            Self::Asking(_) | Self::Telling { .. } | Self::Silent => std::future::pending().await,
        }
    }

    /// Takes what was typed.
    pub async fn take(
        &mut self,
        typed: Typed,
        state: &RunState,
        interrupt: &mut Signal,
    ) -> Result<(), Failure> {
        let Self::Asking(reviewer) = self else { return Ok(()) };
        match typed {
            Typed::Line(line) => {
                reviewer.reading = false;
                let moves = reviewer.dialog.answer(state, &line);
                reviewer.carry_out(moves, state, interrupt).await
            }
            Typed::End => {
                let run = std::mem::take(&mut reviewer.run);
                output::line("No more input: no question is asked any more.")?;
                *self = Self::Telling { run, told: None };
                Ok(())
            }
        }
    }
}

pub enum Typed {
    Line(String),
    /// The terminal gives no more.
    End,
}

pub struct Reviewer {
    dialog: Dialog,
    run: String,
    commands: mpsc::Sender<ClientLine>,
    sent: u64,
    /// Asks for one more line: nothing is read ahead, so that an editor finds the terminal free.
    want: std::sync::mpsc::Sender<()>,
    lines: mpsc::Receiver<String>,
    /// A line is awaited.
    reading: bool,
}

impl Reviewer {
    fn new(commands: mpsc::Sender<ClientLine>) -> Self {
        let (want, wanted) = std::sync::mpsc::channel();
        let (tell, lines) = mpsc::channel(1);
        // A thread of its own and no task: a read that never ends must not keep the process.
        std::thread::spawn(move || {
            while wanted.recv().is_ok() {
                let mut line = String::new();
                match std::io::stdin().read_line(&mut line) {
                    Ok(1..) if tell.blocking_send(line).is_ok() => {}
                    Ok(_) | Err(_) => return,
                }
            }
        });
        Self { dialog: Dialog::default(), run: String::new(), commands, sent: 0, want, lines, reading: false }
    }

    async fn hear(
        &mut self,
        line: &HostLine,
        state: &RunState,
        arrived: bool,
        interrupt: &mut Signal,
    ) -> Result<(), Failure> {
        let moves = match line {
            HostLine::Welcome { run, .. } => {
                self.run.clone_from(run);
                Vec::new()
            }
            // Only what was sent last is awaited.
            HostLine::Ack { cmd_id, .. } if *cmd_id == self.cmd_id() => self.dialog.acknowledged(state),
            HostLine::Event(_) if arrived => self.dialog.look(state),
            _ => Vec::new(),
        };
        self.carry_out(moves, state, interrupt).await
    }

    fn cmd_id(&self) -> String {
        format!("plain-{}-{}", std::process::id(), self.sent)
    }

    async fn carry_out(
        &mut self,
        moves: Vec<Move>,
        state: &RunState,
        interrupt: &mut Signal,
    ) -> Result<(), Failure> {
        let mut moves = std::collections::VecDeque::from(moves);
        while let Some(next) = moves.pop_front() {
            match next {
                Move::Say(words) => output::line(&words)?,
                Move::Ask(words) => {
                    output::line(&words)?;
                    if !self.reading {
                        self.reading = self.want.send(()).is_ok();
                    }
                }
                Move::Send(body, rev) => {
                    self.sent += 1;
                    let line = ClientLine::Command { cmd_id: self.cmd_id(), expect_rev: Some(rev), body };
                    if self.commands.try_send(line).is_err() {
                        let reason = "the link is down".to_owned();
                        output::line(&denied(AckResult::Denied { reason }))?;
                        moves.extend(self.dialog.acknowledged(state));
                    }
                }
                Move::Edit(text) => {
                    let result = edit(&text, interrupt).await;
                    moves.extend(self.dialog.edited(state, result));
                }
            }
        }
        Ok(())
    }
}

fn denied(result: AckResult) -> String {
    match result {
        AckResult::Denied { reason } => format!("denied: {reason}"),
        AckResult::Applied | AckResult::Noop | AckResult::Conflict { .. } => String::new(),
    }
}

/// Ctrl-c in the editor reaches this process too and is not meant for it.
async fn edit(text: &str, interrupt: &mut Signal) -> Result<Option<String>, String> {
    let mut editing = Editing::start(text)?;
    let status = loop {
        tokio::select! {
            status = editing.child.wait() => break status,
            _ = interrupt.recv() => {}
        }
    };
    editing.finish(status)
}

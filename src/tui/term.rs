//! The terminal: entering and leaving it, and frames as one write each. Only changed cells are sent. Knows bytes
//! and modes; not what the screen means.

use std::io::{self, Write};
use std::thread::ThreadId;

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::crossterm::clipboard::CopyToClipboard;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange,
};
use ratatui::crossterm::style::Print;
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, SetTitle, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{Command, queue};
use ratatui::layout::Rect;

use crate::text::sanitize_line;

/// Bytes that a usual frame stays below; larger ones are still one write.
const FRAME_BYTES: usize = 64 * 1024;

/// Collects a frame and passes it on whole.
pub struct FrameWriter<W: Write> {
    frame: Vec<u8>,
    out: W,
}

impl<W: Write> Write for FrameWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.frame.is_empty() {
            let sent = self.out.write_all(&self.frame);
            self.frame.clear();
            sent?;
        }
        self.out.flush()
    }
}

/// What the terminal shows, and the encoder of differences to it.
pub struct Screen<W: Write> {
    backend: CrosstermBackend<FrameWriter<W>>,
    shown: Buffer,
    next: Buffer,
    /// Everything must be sent: after resize, resume, or on request.
    repaint: bool,
    modes: Modes,
    /// The window's title as last set.
    title: String,
}

/// What the terminal was found or asked to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modes {
    /// It shows a frame between two marks at once.
    pub synchronized: bool,
    /// Clicks and the wheel are reported.
    pub mouse: bool,
    /// Sequences for the outer terminal must be wrapped.
    pub tmux: bool,
}

/// Press, release, drag and wheel, in the notation for wide screens; never every movement.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1002l\x1b[?1000l";
/// Keep the window's title, and give it back.
const PUSH_TITLE: &str = "\x1b[22;2t";
const POP_TITLE: &str = "\x1b[23;2t";

impl<W: Write> Screen<W> {
    pub fn new(out: W) -> Self {
        let writer = FrameWriter { frame: Vec::with_capacity(FRAME_BYTES), out };
        Self {
            backend: CrosstermBackend::new(writer),
            shown: Buffer::empty(Rect::ZERO),
            next: Buffer::empty(Rect::ZERO),
            repaint: true,
            modes: Modes::default(),
            title: String::new(),
        }
    }

    pub fn modes(&mut self) -> &mut Modes {
        &mut self.modes
    }

    pub fn repaint(&mut self) {
        self.repaint = true;
    }

    /// One frame. Nothing is written when nothing changed.
    pub fn draw(&mut self, size: (u16, u16), view: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        let area = Rect::new(0, 0, size.0, size.1);
        if area != self.shown.area {
            self.shown.resize(area);
            self.next.resize(area);
            self.repaint = true;
        }
        self.next.reset();
        view(&mut self.next);
        if self.repaint {
            self.repaint = false;
            self.shown.reset();
            // Queued: the backend's own clear flushes, which would make two writes of a frame.
            queue!(self.backend, Clear(ClearType::All))?;
        }
        let changes = self.shown.diff(&self.next);
        if !changes.is_empty() {
            let synchronized = self.modes.synchronized;
            if synchronized {
                queue!(self.backend, BeginSynchronizedUpdate)?;
            }
            self.backend.draw(changes.into_iter())?;
            if synchronized {
                queue!(self.backend, EndSynchronizedUpdate)?;
            }
        }
        std::mem::swap(&mut self.shown, &mut self.next);
        // `Backend` and `Write` both flush; this one ends the frame.
        Backend::flush(&mut self.backend)
    }

    /// Modes of the workbench: alternate screen, bracketed paste, no cursor.
    pub fn enter(&mut self) -> io::Result<()> {
        self.repaint = true;
        queue!(
            self.backend,
            Print(PUSH_TITLE),
            EnterAlternateScreen,
            EnableBracketedPaste,
            EnableFocusChange,
            Hide
        )?;
        self.title.clear();
        if self.modes.mouse {
            queue!(self.backend, Print(MOUSE_ON))?;
        }
        Ok(())
    }

    /// The window's title; written with the next frame, and only when it changed.
    pub fn title(&mut self, title: &str) -> io::Result<()> {
        if self.title == title {
            return Ok(());
        }
        self.title = title.to_owned();
        queue!(self.backend, SetTitle(title))
    }

    pub fn mouse(&mut self, on: bool) -> io::Result<()> {
        self.modes.mouse = on;
        self.send(if on { MOUSE_ON } else { MOUSE_OFF })
    }

    /// Bytes that are no cells.
    pub fn send(&mut self, text: &str) -> io::Result<()> {
        self.backend.write_all(text.as_bytes())?;
        Backend::flush(&mut self.backend)
    }

    /// As tmux passes it on to the terminal it runs in, where it is allowed to.
    fn passed_through(&self, sequence: &str) -> String {
        match self.modes.tmux {
            true => format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")),
            false => String::new(),
        }
    }

    pub fn leave(&mut self) -> io::Result<()> {
        if self.modes.mouse {
            queue!(self.backend, Print(MOUSE_OFF))?;
        }
        queue!(
            self.backend,
            DisableFocusChange,
            DisableBracketedPaste,
            LeaveAlternateScreen,
            Print(POP_TITLE),
            Show
        )?;
        Backend::flush(&mut self.backend)
    }

    /// OSC 52.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        let mut sequence = String::new();
        CopyToClipboard::to_clipboard_from(text).write_ansi(&mut sequence).map_err(io::Error::other)?;
        let outer = self.passed_through(&sequence);
        self.send(&format!("{sequence}{outer}"))
    }

    /// The bell, and a notification where the terminal has such (OSC 9).
    pub fn call(&mut self, words: &str) -> io::Result<()> {
        let note = format!("\x1b]9;{}\x07", sanitize_line(words));
        let outer = self.passed_through(&note);
        self.send(&format!("\x07{}", if outer.is_empty() { note } else { outer }))
    }
}

/// Raw mode and the screen's modes, given back on drop.
pub struct Terminal {
    pub screen: Screen<io::Stdout>,
    entered: bool,
}

impl Terminal {
    /// Not entered yet.
    pub fn new() -> Self {
        Self { screen: Screen::new(io::stdout()), entered: false }
    }

    pub fn enter() -> io::Result<Self> {
        let mut terminal = Self::new();
        terminal.resume()?;
        Ok(terminal)
    }

    pub fn resume(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        self.entered = true;
        self.screen.enter()
    }

    /// As it was found; safe to call twice.
    pub fn restore(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.entered) {
            return Ok(());
        }
        let left = self.screen.leave();
        disable_raw_mode()?;
        left
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Nobody is left to tell: the terminal may be gone.
        let _ = self.restore();
    }
}

/// Who hears of panics while the workbench has the terminal.
pub(super) struct PanicDesk<F> {
    /// Whose panic ends the screen.
    pub screen: ThreadId,
    /// Shows a panic of another thread; `false`: there is no screen any more.
    pub tell: F,
}

impl<F: Fn(String) -> bool> PanicDesk<F> {
    /// The panic of `thread` is told on the screen, which goes on.
    pub fn takes(&self, thread: ThreadId, what: &str) -> bool {
        thread != self.screen && (self.tell)(what.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// Restores the terminal before the message of a panic on this thread is printed. One on another thread, whose work
/// the screen outlives, goes to `tell`.
pub(super) fn install_panic_hook(tell: impl Fn(String) -> bool + Send + Sync + 'static) {
    let previous = std::panic::take_hook();
    let desk = PanicDesk { screen: std::thread::current().id(), tell };
    std::panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current().id();
        if desk.takes(thread, &info.to_string()) {
            return;
        }
        if thread == desk.screen {
            let _ = disable_raw_mode();
            let mut out = io::stdout();
            let _ = queue!(out, Print(MOUSE_OFF), DisableFocusChange, DisableBracketedPaste);
            let _ = queue!(out, LeaveAlternateScreen, Print(POP_TITLE), Show);
            let _ = out.flush();
        }
        previous(info);
    }));
}

//! The terminal: entering and leaving it, and frames as one write each. Only changed cells are sent. Knows bytes
//! and modes; not what the screen means.

use std::io::{self, Write};

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::crossterm::clipboard::CopyToClipboard;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;

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
}

impl<W: Write> Screen<W> {
    pub fn new(out: W) -> Self {
        let writer = FrameWriter { frame: Vec::with_capacity(FRAME_BYTES), out };
        Self {
            backend: CrosstermBackend::new(writer),
            shown: Buffer::empty(Rect::ZERO),
            next: Buffer::empty(Rect::ZERO),
            repaint: true,
        }
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
            self.backend.draw(changes.into_iter())?;
        }
        std::mem::swap(&mut self.shown, &mut self.next);
        // `Backend` and `Write` both flush; this one ends the frame.
        Backend::flush(&mut self.backend)
    }

    /// Modes of the workbench: alternate screen, bracketed paste, no cursor.
    pub fn enter(&mut self) -> io::Result<()> {
        self.repaint = true;
        queue!(self.backend, EnterAlternateScreen, EnableBracketedPaste, Hide)
    }

    pub fn leave(&mut self) -> io::Result<()> {
        queue!(self.backend, DisableBracketedPaste, LeaveAlternateScreen, Show)?;
        Backend::flush(&mut self.backend)
    }

    /// OSC 52.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        queue!(self.backend, CopyToClipboard::to_clipboard_from(text))?;
        Backend::flush(&mut self.backend)
    }

    pub fn bell(&mut self) -> io::Result<()> {
        self.backend.write_all(b"\x07")?;
        Backend::flush(&mut self.backend)
    }
}

/// Raw mode and the screen's modes, given back on drop.
pub struct Terminal {
    pub screen: Screen<io::Stdout>,
    entered: bool,
}

impl Terminal {
    pub fn enter() -> io::Result<Self> {
        let mut terminal = Self { screen: Screen::new(io::stdout()), entered: false };
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

/// Restores the terminal before a panic's message is printed.
pub fn install_panic_hook() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let _ = disable_raw_mode();
        let mut out = io::stdout();
        let _ = queue!(out, DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = out.flush();
        previous(info);
    }));
}

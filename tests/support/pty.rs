//! Drives a program on a pseudo-terminal: keys in, a vt100 screen out, frames as the program acknowledges them.
//! It waits for what it wants to see and never for time to pass.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

/// Generous: only a hang gets there.
const DEADLINE: Duration = Duration::from_secs(30);
/// Environment variable that names where the workbench acknowledges its frames.
const FRAME_ACK: &str = "PLANISH_FRAME_ACK";

/// One acknowledged frame: its number and the last event drawn in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    pub number: u64,
    pub seq: u64,
}

struct Seen {
    parser: vt100::Parser,
    bytes: usize,
    frame: Frame,
    /// The program closed the terminal.
    closed: bool,
}

struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap());
        self.changed.notify_all();
    }
}

/// A program at work on a terminal of its own.
pub struct Terminal {
    shared: Arc<Shared>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
}

impl Terminal {
    /// `scratch`: a folder for the frame channel, one per terminal.
    pub fn spawn(mut command: CommandBuilder, scratch: &Path, columns: u16, rows: u16) -> Self {
        let parser = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0);
        let seen = Mutex::new(Seen { parser, bytes: 0, frame: Frame::default(), closed: false });
        let shared = Arc::new(Shared { seen, changed: Condvar::new() });

        let fifo = scratch.join("frames");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // Opened for writing too, so that neither side waits for the other to open it.
        let frames = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        command.env(FRAME_ACK, &fifo);

        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let keys = pair.master.take_writer().unwrap();
        let output = pair.master.try_clone_reader().unwrap();
        std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || read_output(output, &shared)
        });
        std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || read_frames(frames, &shared)
        });
        Self { shared, master: pair.master, keys, child }
    }

    pub fn send(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.shared.change(|seen| {
            seen.parser.screen_mut().set_size(rows.try_into().unwrap(), columns.try_into().unwrap())
        });
        self.master.resize(size(columns, rows)).unwrap();
    }

    /// What the screen shows, rows joined by newlines.
    pub fn screen(&self) -> String {
        self.shared.seen.lock().unwrap().parser.screen().contents()
    }

    /// Bytes the program wrote so far.
    pub fn bytes(&self) -> usize {
        self.shared.seen.lock().unwrap().bytes
    }

    pub fn frame(&self) -> Frame {
        self.shared.seen.lock().unwrap().frame
    }

    pub fn wait_for(&self, text: &str) {
        self.wait_until(&format!("`{text}` on the screen"), |screen, _| screen.contents().contains(text));
    }

    /// Until a frame after `frame` was drawn completely.
    pub fn wait_for_frame_after(&self, frame: Frame) {
        self.wait_until(&format!("a frame after {frame:?}"), |_, now| now.number > frame.number);
    }

    pub fn wait_until(&self, what: &str, wanted: impl Fn(&vt100::Screen, Frame) -> bool) {
        let began = Instant::now();
        let mut seen: MutexGuard<Seen> = self.shared.seen.lock().unwrap();
        while !wanted(seen.parser.screen(), seen.frame) {
            let left = DEADLINE.saturating_sub(began.elapsed());
            let contents = seen.parser.screen().contents();
            assert!(!seen.closed, "the program ended without {what}; the screen was:\n{contents}");
            assert!(!left.is_zero(), "no {what} in time; the screen is:\n{contents}");
            seen = self.shared.changed.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// As the kernel does when the terminal is closed.
    pub fn hang_up(&mut self) {
        let pid = i32::try_from(self.child.process_id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::HUP).unwrap();
    }

    /// Exit code of the program and its last screen, once it has closed the terminal.
    pub fn wait(mut self) -> (u32, String) {
        let began = Instant::now();
        let mut seen = self.shared.seen.lock().unwrap();
        while !seen.closed {
            let left = DEADLINE.saturating_sub(began.elapsed());
            let contents = seen.parser.screen().contents();
            assert!(!left.is_zero(), "the program does not end; the screen is:\n{contents}");
            seen = self.shared.changed.wait_timeout(seen, left).unwrap().0;
        }
        (self.child.wait().unwrap().exit_code(), seen.parser.screen().contents())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn read_output(mut output: Box<dyn Read + Send>, shared: &Shared) {
    let mut buffer = [0; 16 * 1024];
    // An error is how Linux reports that the last user of the other side has gone.
    while let Ok(read @ 1..) = output.read(&mut buffer) {
        shared.change(|seen| {
            seen.bytes += read;
            seen.parser.process(&buffer[..read]);
        });
    }
    shared.change(|seen| seen.closed = true);
}

fn read_frames(frames: std::fs::File, shared: &Shared) {
    for line in BufReader::new(frames).lines() {
        let Ok(line) = line else { return };
        let words: Vec<&str> = line.split(' ').collect();
        let ["frame", number, "seq", seq] = words[..] else { panic!("bad frame line {line:?}") };
        let frame = Frame { number: number.parse().unwrap(), seq: seq.parse().unwrap() };
        shared.change(|seen| seen.frame = frame);
    }
}

//! When to draw: input is answered at 30 frames a second, news of the run shown at 10, a blocked terminal at 4.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::msg::Dirty;

const INPUT: Duration = Duration::from_millis(33);
const DATA: Duration = Duration::from_millis(100);
const BLOCKED: Duration = Duration::from_millis(250);
/// A frame that took longer to hand over than this met back-pressure.
const SLOW_WRITE: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub struct FrameClock {
    last: Option<Instant>,
    slow: bool,
}

impl FrameClock {
    /// When a frame for this much dirt may be drawn; `None`: never, nothing is dirty.
    pub fn due(&self, dirty: Dirty, now: Instant) -> Option<Instant> {
        let interval = match dirty {
            Dirty::Clean => return None,
            Dirty::Input | Dirty::Repaint => INPUT,
            Dirty::Data if self.slow => BLOCKED,
            Dirty::Data => DATA,
        };
        Some(self.last.map_or(now, |last| last + interval))
    }

    pub fn drawn(&mut self, began: Instant, ended: Instant) {
        self.last = Some(began);
        self.slow = ended.duration_since(began) > SLOW_WRITE;
    }
}

/// One line per drawn frame, `frame N seq S`, for tests that must not guess when the screen is ready.
pub struct FrameAck {
    file: File,
    frames: u64,
}

impl FrameAck {
    /// `path` is a FIFO or a file. Opened for reading too, so that a FIFO without a reader does not block.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        Ok(Self { file, frames: 0 })
    }

    pub fn acknowledge(&mut self, seq: u64) -> std::io::Result<()> {
        self.frames += 1;
        self.file.write_all(format!("frame {} seq {seq}\n", self.frames).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_answered_sooner_than_data_and_clean_never() {
        let start = Instant::now();
        let mut clock = FrameClock::default();
        assert_eq!(clock.due(Dirty::Data, start), Some(start));
        clock.drawn(start, start);
        assert_eq!(clock.due(Dirty::Input, start), Some(start + INPUT));
        assert_eq!(clock.due(Dirty::Data, start), Some(start + DATA));
        assert_eq!(clock.due(Dirty::Clean, start), None);
    }

    #[test]
    fn a_blocked_terminal_gets_fewer_frames() {
        let start = Instant::now();
        let mut clock = FrameClock::default();
        clock.drawn(start, start + Duration::from_millis(60));
        assert_eq!(clock.due(Dirty::Data, start), Some(start + BLOCKED));
        assert_eq!(clock.due(Dirty::Input, start), Some(start + INPUT));
    }

    #[test]
    fn frames_are_acknowledged_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("acks");
        let mut acks = FrameAck::open(&path).unwrap();
        acks.acknowledge(3).unwrap();
        acks.acknowledge(7).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "frame 1 seq 3\nframe 2 seq 7\n");
    }
}

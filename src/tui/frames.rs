//! When to draw: input is answered at 30 frames a second, news of the run shown at the rate the user set (10), a
//! blocked terminal gets 4, and one whose size still changes waits until it has settled.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::msg::Dirty;

const INPUT: Duration = Duration::from_millis(33);
const BLOCKED: Duration = Duration::from_millis(250);
/// A frame that took longer to hand over than this met back-pressure.
const SLOW_WRITE: Duration = Duration::from_millis(50);

/// A new size is drawn when no other follows for this long,
const SETTLED: Duration = Duration::from_millis(30);
/// or when sizes have been changing for this long.
const STORM: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub struct FrameClock {
    /// Between frames of news.
    data: Duration,
    last: Option<Instant>,
    slow: bool,
    /// The first and the last change of size since the last frame.
    resized: Option<(Instant, Instant)>,
}

impl FrameClock {
    pub fn new(fps: u16) -> Self {
        let mut clock = Self { data: Duration::ZERO, last: None, slow: false, resized: None };
        clock.pace(fps);
        clock
    }

    pub fn pace(&mut self, fps: u16) {
        self.data = Duration::from_secs(1) / u32::from(fps.max(1));
    }

    pub fn resized(&mut self, now: Instant) {
        self.resized = Some((self.resized.map_or(now, |(first, _)| first), now));
    }

    /// When a frame for this much dirt may be drawn; `None`: never, nothing is dirty.
    pub fn due(&self, dirty: Dirty, now: Instant) -> Option<Instant> {
        let interval = match dirty {
            Dirty::Clean => return None,
            Dirty::Input | Dirty::Repaint => INPUT,
            Dirty::Data if self.slow => self.data.max(BLOCKED),
            Dirty::Data => self.data,
        };
        let due = self.last.map_or(now, |last| last + interval);
        let settled = self.resized.map(|(first, last)| (last + SETTLED).min(first + STORM));
        Some(settled.map_or(due, |settled| due.max(settled)))
    }

    pub fn drawn(&mut self, began: Instant, ended: Instant) {
        self.last = Some(began);
        self.resized = None;
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
        let mut clock = FrameClock::new(10);
        assert_eq!(clock.due(Dirty::Data, start), Some(start));
        clock.drawn(start, start);
        assert_eq!(clock.due(Dirty::Input, start), Some(start + INPUT));
        assert_eq!(clock.due(Dirty::Data, start), Some(start + Duration::from_millis(100)));
        assert_eq!(clock.due(Dirty::Clean, start), None);
    }

    #[test]
    fn a_blocked_terminal_gets_fewer_frames() {
        let start = Instant::now();
        let mut clock = FrameClock::new(10);
        clock.drawn(start, start + Duration::from_millis(60));
        assert_eq!(clock.due(Dirty::Data, start), Some(start + BLOCKED));
        assert_eq!(clock.due(Dirty::Input, start), Some(start + INPUT));
    }

    #[test]
    fn the_rate_of_news_can_be_set_and_a_storm_of_sizes_is_one_frame() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut clock = FrameClock::new(2);
        clock.drawn(start, start);
        assert_eq!(clock.due(Dirty::Data, start), Some(at(500)));
        for ms in [40, 60, 80] {
            clock.resized(at(ms));
        }
        assert_eq!(clock.due(Dirty::Repaint, at(80)), Some(at(110)), "30 ms after the last size");
        clock.resized(at(285));
        assert_eq!(clock.due(Dirty::Repaint, at(285)), Some(at(290)), "not put off for ever");
        clock.drawn(at(290), at(290));
        assert_eq!(clock.due(Dirty::Input, at(300)), Some(at(323)));
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

//! The one place where something on the screen moves by itself: a mark in the header while calls are under way, at 4
//! steps a second, and still where the user or the line wants no motion.

use super::app::App;

/// Milliseconds of one step.
const STEP: u64 = 250;
const MOVING: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const STILL: &str = "●";

impl App {
    fn moves(&self) -> bool {
        !self.prefs.reduced_motion && !self.prefs.low_bandwidth && self.surface.attention != Some(false)
    }

    /// `None`: no call is under way.
    pub(super) fn busy_mark(&self) -> Option<&'static str> {
        (!self.live.calls.is_empty()).then(|| match self.moves() {
            true => MOVING[(self.now / STEP % MOVING.len() as u64) as usize],
            false => STILL,
        })
    }

    /// Milliseconds until the mark takes its next step; `None`: there is none, or it is still.
    pub(super) fn next_step(&self) -> Option<u64> {
        (self.moves() && !self.live.calls.is_empty()).then(|| STEP - self.now % STEP)
    }
}

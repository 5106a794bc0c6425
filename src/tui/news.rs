//! Which panes a line of the host can change, so that news of what is not on the screen draws nothing. A pane that comes
//! into view later is drawn whole then. Decides no drawing.

use super::app::App;
use super::layout::{Class, Pane};
use super::msg::Dirty;
use crate::event::{Event, HostLine, Live};

/// Some of the panes, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneSet(u16);

impl PaneSet {
    pub const ALL: Self = Self(u16::MAX);

    pub const fn of(panes: &[Pane]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < panes.len() {
            bits |= 1 << panes[at] as u16;
            at += 1;
        }
        Self(bits)
    }

    pub fn has(self, pane: Pane) -> bool {
        self.0 >> pane as u16 & 1 == 1
    }
}

const CALLS: PaneSet = PaneSet::of(&[Pane::Rollouts, Pane::Transcript]);
const NUMBERS: PaneSet = PaneSet::of(&[Pane::Curves, Pane::Machine, Pane::Overview]);
const NUMBERS_LOGGED: PaneSet = PaneSet::of(&[Pane::Curves, Pane::Machine, Pane::Overview, Pane::Logs]);
const LOGS: PaneSet = PaneSet::of(&[Pane::Logs]);

/// Where `line` shows. The header and the lines of numbers count as everywhere.
pub fn shown_in(line: &HostLine) -> PaneSet {
    match line {
        HostLine::Live(
            Live::CallStarted { .. }
            | Live::CallDelta { .. }
            | Live::CallRetrying { .. }
            | Live::CallFinished { .. },
        ) => CALLS,
        HostLine::Live(Live::Throughput { .. } | Live::Machine(_)) => NUMBERS,
        HostLine::Event(record) => match record.event {
            Event::Log { .. } => LOGS,
            Event::MachineSampled { .. } | Event::AttemptsSpent { .. } => NUMBERS_LOGGED,
            _ => PaneSet::ALL,
        },
        HostLine::Welcome { .. }
        | HostLine::Glance(_)
        | HostLine::Clients(_)
        | HostLine::Ack { .. }
        | HostLine::Dropped { .. }
        | HostLine::Error { .. } => PaneSet::ALL,
    }
}

impl App {
    /// Stains the screen if one of `panes` is on it. While the history is read the header counts it, and in the small
    /// classes a line of numbers stands for panes that are not there.
    pub(super) fn stain_panes(&mut self, panes: PaneSet) {
        let places = self.places();
        let small = matches!(places.class, Class::Tiny | Class::Compact) && panes != LOGS && panes != CALLS;
        if panes == PaneSet::ALL
            || small
            || self.loading()
            || places.panes.iter().any(|(pane, _)| panes.has(*pane))
        {
            self.stain(Dirty::Data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pane_has_a_bit_of_its_own() {
        for pane in Pane::ALL {
            let only = PaneSet::of(&[pane]);
            assert!(Pane::ALL.into_iter().all(|other| only.has(other) == (other == pane)), "{pane:?}");
            assert!(PaneSet::ALL.has(pane));
        }
    }
}

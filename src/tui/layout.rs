//! Size class → pane rectangles. Pure geometry: the same function places panes for drawing and for paging.

use ratatui::layout::Rect;

use super::action::{Action, Scope};
use super::controls::global::GlobalAction;
use super::controls::rollouts::RolloutsAction;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pane {
    Runs,
    Steps,
    Rollouts,
    Transcript,
    Patch,
    Gate,
    Curves,
    /// GPU and host.
    Machine,
    Logs,
    Config,
    Overview,
}

impl Pane {
    pub const ALL: [Pane; 11] = [
        Pane::Overview,
        Pane::Runs,
        Pane::Steps,
        Pane::Rollouts,
        Pane::Transcript,
        Pane::Patch,
        Pane::Gate,
        Pane::Curves,
        Pane::Machine,
        Pane::Logs,
        Pane::Config,
    ];

    /// Panes with a number, in the order of tabs.
    pub const NUMBERED: [Pane; 9] = [
        Pane::Runs,
        Pane::Steps,
        Pane::Rollouts,
        Pane::Patch,
        Pane::Gate,
        Pane::Curves,
        Pane::Machine,
        Pane::Logs,
        Pane::Config,
    ];

    pub fn number(self) -> Option<u8> {
        match self {
            Pane::Overview => Some(0),
            Pane::Runs => Some(1),
            Pane::Steps => Some(2),
            Pane::Rollouts => Some(3),
            Pane::Transcript => None,
            Pane::Patch => Some(4),
            Pane::Gate => Some(5),
            Pane::Curves => Some(6),
            Pane::Machine => Some(7),
            Pane::Logs => Some(8),
            Pane::Config => Some(9),
        }
    }

    pub fn scope(self) -> Scope {
        match self {
            Pane::Overview => Scope::Overview,
            Pane::Runs => Scope::Runs,
            Pane::Steps => Scope::Steps,
            Pane::Rollouts => Scope::Rollouts,
            Pane::Transcript => Scope::Transcript,
            Pane::Patch => Scope::Patch,
            Pane::Gate => Scope::Gate,
            Pane::Curves => Scope::Curves,
            Pane::Machine => Scope::Machine,
            Pane::Logs => Scope::Logs,
            Pane::Config => Scope::Config,
        }
    }

    /// What brings the keys to it.
    pub fn action(self) -> Action {
        Action::Global(match self {
            Pane::Overview => GlobalAction::GoOverview,
            Pane::Runs => GlobalAction::GoRuns,
            Pane::Steps => GlobalAction::GoSteps,
            Pane::Rollouts => GlobalAction::GoRollouts,
            // No key of its own: it opens from the rollouts.
            Pane::Transcript => return Action::Rollouts(RolloutsAction::Open),
            Pane::Patch => GlobalAction::GoPatch,
            Pane::Gate => GlobalAction::GoGate,
            Pane::Curves => GlobalAction::GoCurves,
            Pane::Machine => GlobalAction::GoMachine,
            Pane::Logs => GlobalAction::GoLogs,
            Pane::Config => GlobalAction::GoConfig,
        })
    }

    /// Lists stand on the left, details on the right.
    pub fn is_list(self) -> bool {
        matches!(self, Pane::Steps | Pane::Rollouts)
    }

    /// Running text, which is searched where lists are filtered.
    pub fn is_searched(self) -> bool {
        matches!(self, Pane::Transcript | Pane::Patch | Pane::Logs)
    }

    pub fn title(self) -> &'static str {
        self.scope().title()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Below 60×15: a one-line summary.
    Tiny,
    /// One pane at a time under a tab strip.
    Compact,
    /// Lists on the left, details on the right, a strip below.
    Standard,
    /// Three columns: lists, details, evidence and curves; nothing needs a tab.
    Wide,
}

impl Class {
    pub fn of(width: u16, height: u16) -> Self {
        if width < 60 || height < 15 {
            Class::Tiny
        } else if width < 100 || height < 30 {
            Class::Compact
        } else if width < 180 || height < 50 {
            Class::Standard
        } else {
            Class::Wide
        }
    }
}

/// What is chosen to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrangement {
    pub focus: Pane,
    /// Runs, Patch, Gate, Transcript, Config or Overview.
    pub main: Pane,
    /// Curves, Machine or Logs.
    pub strip: Pane,
    pub zoom: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub class: Class,
    pub header: Rect,
    pub tabs: Option<Rect>,
    pub panes: Vec<(Pane, Rect)>,
    /// Numbers line of the compact class.
    pub status: Option<Rect>,
    pub hints: Rect,
}

impl Places {
    pub fn of(&self, pane: Pane) -> Option<Rect> {
        self.panes.iter().find(|(placed, _)| *placed == pane).map(|(_, rect)| *rect)
    }
}

const LEFT: u16 = 36;
const STRIP: u16 = 11;

pub fn place(area: Rect, arrangement: Arrangement) -> Places {
    let class = Class::of(area.width, area.height);
    let row = |y: u16| Rect { y: area.y + y, height: 1, ..area }.intersection(area);
    let last = area.height.saturating_sub(1);
    let mut places = Places {
        class,
        header: row(0),
        tabs: None,
        panes: Vec::new(),
        status: None,
        hints: if last > 0 { row(last) } else { Rect::ZERO },
    };
    match class {
        Class::Tiny => {}
        Class::Compact => {
            places.tabs = Some(row(1));
            places.status = Some(row(last - 1));
            let body = Rect { y: area.y + 2, height: area.height - 4, ..area };
            places.panes.push((arrangement.focus, body));
        }
        Class::Standard | Class::Wide => {
            let body = Rect { y: area.y + 1, height: area.height - 2, ..area };
            if arrangement.zoom {
                places.panes.push((arrangement.focus, body));
            } else if class == Class::Wide {
                places.panes = three_columns(body, arrangement);
            } else {
                places.panes = two_columns(body, arrangement);
            }
        }
    }
    places
}

fn two_columns(body: Rect, arrangement: Arrangement) -> Vec<(Pane, Rect)> {
    let left = LEFT + (body.width.saturating_sub(160) / 8).min(16);
    let strip = STRIP + (body.height.saturating_sub(48) / 4).min(8);
    let rest = body.width - left;
    let mut panes = lists(Rect { width: left, ..body }, arrangement.main);
    panes.push((
        arrangement.main,
        Rect { x: body.x + left, width: rest, height: body.height - strip, ..body },
    ));
    panes.push((
        arrangement.strip,
        Rect { x: body.x + left, y: body.y + body.height - strip, width: rest, height: strip },
    ));
    panes
}

/// What the middle shows beside the gate, which has a place of its own.
fn three_columns(body: Rect, arrangement: Arrangement) -> Vec<(Pane, Rect)> {
    let left = 38 + (body.width.saturating_sub(200) / 16).min(12);
    let right = 66 + (body.width.saturating_sub(200) / 8).min(24);
    let middle = body.width - left - right;
    let mut panes = lists(Rect { width: left, ..body }, arrangement.main);
    let main = if arrangement.main == Pane::Gate { Pane::Patch } else { arrangement.main };
    panes.push((main, Rect { x: body.x + left, width: middle, ..body }));
    let column = Rect { x: body.x + left + middle, width: right, ..body };
    let (curves, machine) = (body.height * 2 / 7, 8);
    let logs = body.height / 6;
    let gate = body.height - curves - machine - logs;
    let mut y = column.y;
    for (pane, height) in
        [(Pane::Gate, gate), (Pane::Curves, curves), (Pane::Machine, machine), (Pane::Logs, logs)]
    {
        panes.push((pane, Rect { y, height, ..column }));
        y += height;
    }
    panes
}

/// The lists of the left column. That of the runs has the middle when it is the main pane.
fn lists(column: Rect, main: Pane) -> Vec<(Pane, Rect)> {
    let runs = if column.height >= 36 && main != Pane::Runs { (column.height / 6).clamp(6, 10) } else { 0 };
    let steps = ((column.height - runs) * 2 / 5).clamp(8, 20);
    let mut panes = Vec::new();
    let mut y = column.y;
    for (pane, height) in
        [(Pane::Runs, runs), (Pane::Steps, steps), (Pane::Rollouts, column.height - runs - steps)]
    {
        if height > 0 {
            panes.push((pane, Rect { y, height, ..column }));
        }
        y += height;
    }
    panes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHOSEN: Arrangement =
        Arrangement { focus: Pane::Patch, main: Pane::Patch, strip: Pane::Curves, zoom: false };

    #[test]
    fn design_sizes() {
        let compact = place(Rect::new(0, 0, 80, 24), CHOSEN);
        assert_eq!(compact.of(Pane::Patch), Some(Rect::new(0, 2, 80, 20)));
        let standard = place(Rect::new(0, 0, 120, 40), CHOSEN);
        assert_eq!(standard.panes.len(), 5);
        assert_eq!(place(Rect::new(0, 0, 200, 60), CHOSEN).panes.len(), 8);
        assert_eq!(standard.of(Pane::Patch), Some(Rect::new(36, 1, 84, 27)));
        assert_eq!(Class::of(59, 40), Class::Tiny);
        assert_eq!(Class::of(60, 15), Class::Compact);
    }

    #[test]
    fn zoom_gives_the_focused_pane_the_body() {
        let zoomed = place(Rect::new(0, 0, 120, 40), Arrangement { zoom: true, ..CHOSEN });
        assert_eq!(zoomed.panes, [(Pane::Patch, Rect::new(0, 1, 120, 38))]);
    }

    proptest! {
        #[test]
        fn panes_stay_inside_and_apart(width in 0u16..300, height in 0u16..100, zoom: bool) {
            let area = Rect::new(0, 0, width, height);
            let places = place(area, Arrangement { zoom, ..CHOSEN });
            let mut rects: Vec<Rect> = places.panes.iter().map(|(_, rect)| *rect).collect();
            rects.extend([places.header, places.hints]);
            rects.extend(places.tabs.into_iter().chain(places.status));
            for (index, rect) in rects.iter().enumerate() {
                prop_assert_eq!(rect.intersection(area), *rect);
                prop_assert!(rects[index + 1..].iter().all(|other| !rect.intersects(*other)));
            }
        }
    }
}

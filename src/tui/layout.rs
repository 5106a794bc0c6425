//! Size class → pane rectangles. Pure geometry: the same function places panes for drawing and for paging.

use ratatui::layout::Rect;

use super::action::Scope;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pane {
    Steps,
    Rollouts,
    Transcript,
    Patch,
    Gate,
    Curves,
    Logs,
}

impl Pane {
    /// Panes with a number, in the order of tabs.
    pub const NUMBERED: [Pane; 6] =
        [Pane::Steps, Pane::Rollouts, Pane::Patch, Pane::Gate, Pane::Curves, Pane::Logs];

    /// 1, 7 and 9 belong to panes of later versions, so that numbers never change their meaning.
    pub fn number(self) -> Option<u8> {
        match self {
            Pane::Steps => Some(2),
            Pane::Rollouts => Some(3),
            Pane::Transcript => None,
            Pane::Patch => Some(4),
            Pane::Gate => Some(5),
            Pane::Curves => Some(6),
            Pane::Logs => Some(8),
        }
    }

    pub fn scope(self) -> Scope {
        match self {
            Pane::Steps => Scope::Steps,
            Pane::Rollouts => Scope::Rollouts,
            Pane::Transcript => Scope::Transcript,
            Pane::Patch => Scope::Patch,
            Pane::Gate => Scope::Gate,
            Pane::Curves => Scope::Curves,
            Pane::Logs => Scope::Logs,
        }
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
}

impl Class {
    pub fn of(width: u16, height: u16) -> Self {
        if width < 60 || height < 15 {
            Class::Tiny
        } else if width < 100 || height < 30 {
            Class::Compact
        } else {
            Class::Standard
        }
    }
}

/// What is chosen to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrangement {
    pub focus: Pane,
    /// Patch, Gate or Transcript.
    pub main: Pane,
    /// Curves or Logs.
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
        Class::Standard => {
            let body = Rect { y: area.y + 1, height: area.height - 2, ..area };
            if arrangement.zoom {
                places.panes.push((arrangement.focus, body));
            } else {
                places.panes = columns(body, arrangement);
            }
        }
    }
    places
}

fn columns(body: Rect, arrangement: Arrangement) -> Vec<(Pane, Rect)> {
    let left = LEFT + (body.width.saturating_sub(160) / 8).min(16);
    let strip = STRIP + (body.height.saturating_sub(48) / 4).min(8);
    let steps = (body.height * 2 / 5).clamp(8, 20);
    let rest = body.width - left;
    vec![
        (Pane::Steps, Rect { width: left, height: steps, ..body }),
        (Pane::Rollouts, Rect { y: body.y + steps, width: left, height: body.height - steps, ..body }),
        (arrangement.main, Rect { x: body.x + left, width: rest, height: body.height - strip, ..body }),
        (
            arrangement.strip,
            Rect { x: body.x + left, y: body.y + body.height - strip, width: rest, height: strip },
        ),
    ]
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
        assert_eq!(standard.panes.len(), 4);
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

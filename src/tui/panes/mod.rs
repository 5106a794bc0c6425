//! One file per pane: each draws what the app holds into a rectangle and changes nothing.

mod chart;
mod comparison;
mod config;
mod curves;
mod decisions;
mod diff;
mod edit_lines;
mod gate;
mod items;
mod logs;
mod machine;
mod overview;
mod patch;
mod proposal;
mod result;
mod rollouts;
pub mod runs;
mod stage;
mod steps;
mod transcript;

use ratatui::layout::Rect;

use super::action::Action;
use super::app::{App, Link};
use super::controls::global::GlobalAction;
use super::controls::runs::RunsAction;
use super::layout::{Class, Pane};
use super::paint::{Canvas, Span, span, spans_width};
use super::theme::Role;

pub use stage::stage_lines;
pub use steps::{action_mark, verdict_mark};

pub fn draw(app: &App, pane: Pane, area: Rect, canvas: &mut Canvas<'_>) {
    match pane {
        Pane::Runs => runs::draw(app, area, canvas),
        Pane::Machine => machine::draw(app, area, canvas),
        Pane::Config => config::draw(app, area, canvas),
        Pane::Overview => overview::draw(app, area, canvas),
        Pane::Steps => steps::draw(app, area, canvas),
        Pane::Rollouts => rollouts::draw(app, area, canvas),
        Pane::Transcript => transcript::draw(app, area, canvas),
        Pane::Patch => patch::draw(app, area, canvas),
        Pane::Gate => gate::draw(app, area, canvas),
        Pane::Curves => curves::draw(app, area, canvas),
        Pane::Logs => logs::draw(app, area, canvas),
    }
}

/// Where [`frame`] leaves room.
fn inside(app: &App, area: Rect) -> Rect {
    match Class::of(app.size.0, app.size.1) {
        Class::Standard | Class::Wide if area.width < 4 || area.height < 2 => Rect::ZERO,
        Class::Standard | Class::Wide => {
            Rect { x: area.x + 2, y: area.y + 1, width: area.width - 4, height: area.height - 2 }
        }
        Class::Tiny | Class::Compact => Rect {
            x: area.x + 1,
            y: area.y + 1,
            width: area.width.saturating_sub(2),
            height: area.height.saturating_sub(1),
        },
    }
}

/// Border and title of a pane; in the compact class a title row without border.
fn frame(
    app: &App,
    pane: Pane,
    area: Rect,
    canvas: &mut Canvas<'_>,
    info: Vec<Span>,
    right: &[Span],
) -> Rect {
    let focused = app.arrangement.focus == pane;
    if matches!(Class::of(app.size.0, app.size.1), Class::Standard | Class::Wide) {
        let mut title = Vec::new();
        if let Some(number) = pane.number() {
            title.push(span(if focused { Role::Key } else { Role::Dim }, format!("{number} ")));
        }
        title.push(span(if focused { Role::TitleFocus } else { Role::Title }, pane.title()));
        // Counts say more than the name of what is counted, which other panes say too.
        let needed = spans_width(&title) + spans_width(&info) + spans_width(right) + 10;
        if !info.is_empty() && (right.is_empty() || needed <= area.width as usize) {
            title.push(span(Role::Text, "  "));
            title.extend(info);
        }
        return canvas.boxed(area, focused, &title, right);
    }
    let row = Rect { x: area.x + 1, width: area.width.saturating_sub(2), height: 1, ..area };
    let mut title = vec![span(Role::Title, pane.title())];
    if !info.is_empty() {
        title.push(span(Role::Text, "  "));
        title.extend(info);
    }
    let used = canvas.line(row, &title);
    let rest = Rect { x: row.x + used, width: row.width - used, ..row };
    if rest.width > 2 {
        canvas.line_right(Rect { x: rest.x + 2, width: rest.width - 2, ..rest }, right);
    }
    Rect { x: row.x, y: area.y + 1, width: row.width, height: area.height.saturating_sub(1) }
}

/// [`frame`] with the first pair of title halves that fits; the last where none does.
fn titled(
    app: &App,
    pane: Pane,
    area: Rect,
    canvas: &mut Canvas<'_>,
    mut choices: Vec<(Vec<Span>, Vec<Span>)>,
) -> Rect {
    let name = crate::text::width(pane.title()) + 12;
    let fits = |(info, right): &(Vec<Span>, Vec<Span>)| {
        name + spans_width(info) + spans_width(right) <= area.width as usize
    };
    let chosen = choices.iter().position(fits).unwrap_or(choices.len().saturating_sub(1));
    let (info, right) = if choices.is_empty() { Default::default() } else { choices.swap_remove(chosen) };
    frame(app, pane, area, canvas, info, &right)
}

/// What is left of an area under `rows` rows.
fn below(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect { y: area.y + rows, height: area.height - rows, ..area }
}

/// A sentence in the place of content that is not there.
fn placeholder(canvas: &mut Canvas<'_>, area: Rect, lines: &[&str]) {
    let top = area.height.saturating_sub(lines.len() as u16) / 3;
    for (row, text) in super::paint::rows_of(area).skip(top as usize).zip(lines) {
        canvas.line(row, &[span(Role::Dim, *text)]);
    }
}

/// The words for a run of which nothing is known yet.
fn waiting_words(app: &App) -> String {
    let words = match app.link {
        Link::Unattached => {
            let [list, attach] = [Action::Global(GlobalAction::GoRuns), Action::Runs(RunsAction::Open)]
                .map(|action| app.press_for(action));
            return format!("No run is attached: {list} lists them, {attach} attaches.");
        }
        Link::Connecting => "Connecting to the run's host…",
        _ if app.loading() => "Reading the journal…",
        Link::Up | Link::Lost { .. } => "The run has not begun.",
    };
    words.to_owned()
}

//! Line mode of pane 4: the selected edit's own lines with a mark each, and the heads of its change groups.

use ratatui::layout::Rect;

use super::diff::{fitting, folded_words, numbered, parts};
use super::gate::Lines;
use crate::optim::Choice;
use crate::plain::count;
use crate::text::Mark;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::controls::patch::PatchAction;
use crate::tui::line_mode::{LineDoc, LineMode, LineRow, Taken};
use crate::tui::paint::{Canvas, Span, rows_of, span, spans_width, wrap_spans};
use crate::tui::theme::Role;

/// Columns before the text of a line: mark, number and sign.
const BEFORE: usize = 13;

pub(super) fn draw(app: &App, mode: LineMode, doc: &LineDoc, area: Rect, canvas: &mut Canvas<'_>) {
    let choice = app.line_choice(doc);
    let mut rows = rows_of(area);
    let Some(rule) = rows.next() else { return };
    canvas.line(rule, &rule_words(app, doc, mode, &choice, rule.width));
    let room = area.height as usize - 1;
    let at = doc.row_at(mode);
    let shown = |row: &LineRow| lines(doc, &choice, row, area.width as usize);
    // The cursor in the middle, as far as there are rows around it.
    let height = |row: &LineRow| shown(row).len();
    let last_top = doc.rows.len() - fitting(doc.rows.iter().rev().map(height), room);
    let top = (at - fitting(doc.rows[..at].iter().rev().map(height), room / 2)).min(last_top);
    for (place, row) in doc.rows.iter().enumerate().skip(top) {
        for line in shown(row) {
            let Some(area) = rows.next() else { return };
            canvas.line(area, &line);
            if place == at {
                canvas.overlay_style(area, Role::Selection);
            }
        }
    }
}

fn rule_words(app: &App, doc: &LineDoc, mode: LineMode, choice: &Choice, width: u16) -> Vec<Span> {
    let groups = doc.lines.diff().groups.len();
    let mut words = vec![
        span(Role::Border, "── "),
        span(Role::Title, "lines  "),
        span(Role::Dim, format!("change {} of {groups}  ", doc.group_at(mode) + 1)),
    ];
    let of = doc.lines.changed().count();
    match choice {
        Choice::Undecided => words.push(span(Role::Warn, format!("undecided, {} ", count(of, "line")))),
        Choice::ByHand => words.push(span(Role::Warn, "edited by hand ")),
        Choice::Lines(taken) => {
            let n = doc.lines.changed().filter(|place| taken[*place]).count();
            words.push(span(Role::Dim, format!("{n} of {} taken ", count(of, "line"))));
        }
    }
    for (action, does) in [(PatchAction::Mark, " mark "), (PatchAction::Lines, " back ")] {
        let keys = app.press_for(Action::Patch(action));
        words.extend([span(Role::Key, format!(" {keys}")), span(Role::Dim, does)]);
    }
    let rest = (width as usize).saturating_sub(spans_width(&words));
    words.push(span(Role::Border, "─".repeat(rest)));
    words
}

fn lines(doc: &LineDoc, choice: &Choice, row: &LineRow, columns: usize) -> Lines {
    let diff = doc.lines.diff();
    let marked = || {
        let (mark, role) = Taken::of(choice, doc.places(row)).mark();
        span(role, format!("{mark} "))
    };
    match row {
        LineRow::Fold(lines) => vec![folded_words(lines.len())],
        LineRow::Head(group) => {
            let range = diff.groups[*group].lines.clone();
            let n = |mark: Mark| diff.lines[range.clone()].iter().filter(|line| line.mark == mark).count();
            vec![vec![
                marked(),
                span(Role::Title, format!("change {}  ", group + 1)),
                span(Role::Added, format!("+{} ", n(Mark::Added))),
                span(Role::Removed, format!("−{}", n(Mark::Removed))),
            ]]
        }
        LineRow::Line(place) => {
            let line = &diff.lines[*place];
            let changed = line.mark != Mark::Same;
            let pieces = wrap_spans(&parts(line), columns.saturating_sub(BEFORE).max(1));
            let with_mark = pieces.into_iter().enumerate().map(|(piece, spans)| {
                let blank = span(Role::Text, "    ");
                let mut out = vec![span(Role::Text, "  ")];
                out.push(if changed && piece == 0 { marked() } else { blank });
                out.extend(numbered(line.mark, line.new.or(line.old).filter(|_| piece == 0)));
                out.extend(spans);
                out
            });
            with_mark.collect()
        }
    }
}

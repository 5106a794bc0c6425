//! A diff in rows: one column or side by side, wrapped, with line numbers and words emphasised. Lays out only what is
//! in view.

use ratatui::layout::Rect;

use super::gate::Lines;
use crate::plain::count;
use crate::text::{DiffLine, Grammars, Mark, Syntax};
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::controls::patch::{Anchor, PatchAction};
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, fitted, rows_of, span, spans_width, wrap_spans};
use crate::tui::patch_doc::{CONTEXT, DocRow, PatchDoc};
use crate::tui::search::{Pattern, marked_in};
use crate::tui::theme::Role;

const UNFOLD: Action = Action::Patch(PatchAction::FoldContext);
/// Columns of the line-number gutter.
pub(super) const GUTTER: usize = 8;

/// One row of a diff as lines of the screen.
struct Layout<'a> {
    doc: &'a PatchDoc,
    grammars: Option<&'a Grammars>,
    columns: usize,
    /// The edit whose changes carry a bar.
    selected: Option<usize>,
    /// What to press for lines that are not shown.
    unfold: String,
    /// What is searched for, and the line gone to.
    search: Option<(&'a Pattern, Option<usize>)>,
}

pub(super) fn draw(
    app: &App,
    doc: &PatchDoc,
    unchanged: &str,
    selected: usize,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    app.patch.drawn_columns.set(area.width);
    let mut rows = rows_of(area);
    let Some(rule) = rows.next() else { return };
    canvas.line(rule, &rule_words(app, doc, unchanged, selected, rule.width));
    let room = area.height as usize - 1;
    let layout = Layout {
        doc,
        grammars: app.grammars.as_deref(),
        columns: area.width as usize,
        selected: Some(selected),
        unfold: app.press_for(UNFOLD),
        search: app.search_in(Pane::Patch).map(|search| (&search.pattern, app.patch.found)),
    };
    let doc_rows = doc.rows(app.row_layout());
    let height = |row: &DocRow| layout.lines(row).len();
    // Where the last page begins.
    let last_top = doc_rows.len() - fitting(doc_rows.iter().rev().map(height), room);
    app.patch.scroll.extent.set((doc_rows.len(), doc_rows.len() - last_top));
    let top = match (app.patch.anchor, doc.anchored(app.patch.anchor, selected)) {
        (Anchor::Free, _) => app.patch.scroll.top,
        (_, None) => 0,
        (_, Some(group)) => {
            let group = &doc.diff.groups[group];
            let start = doc_rows.iter().position(|row| row.starts(group)).unwrap_or(0);
            // The change itself comes before its context.
            let left = room.saturating_sub(doc_rows.get(start).map_or(0, height));
            start - fitting(doc_rows[..start].iter().rev().take(CONTEXT).map(height), left)
        }
    };
    let top = top.min(last_top);
    app.patch.drawn_top.set(top);
    for (row, line) in rows.zip(doc_rows[top..].iter().flat_map(|row| layout.lines(row))) {
        canvas.line(row, &line);
    }
}

/// All of a diff, for a text that holds it.
pub(super) fn lines(app: &App, doc: &PatchDoc, columns: usize) -> Lines {
    let layout = Layout {
        doc,
        grammars: app.grammars.as_deref(),
        columns,
        selected: None,
        unfold: app.press_for(UNFOLD),
        search: None,
    };
    doc.rows(app.row_layout()).iter().flat_map(|row| layout.lines(row)).collect()
}

impl Layout<'_> {
    fn lines(&self, row: &DocRow) -> Lines {
        match row {
            DocRow::Fold(lines) => {
                let mut words = folded_words(lines.len());
                words.extend([span(Role::Key, self.unfold.as_str()), span(Role::Faint, " shows them")]);
                vec![words]
            }
            DocRow::Line(line) => {
                let shown = &self.doc.diff.lines[*line];
                self.wrapped(*line, self.columns, shown.new.or(shown.old))
            }
            DocRow::Pair { old, new } => {
                let half = self.columns.saturating_sub(1) / 2;
                let side = |line: Option<usize>, number: fn(&DiffLine) -> Option<usize>| {
                    line.map_or_else(Lines::new, |line| {
                        self.wrapped(line, half, number(&self.doc.diff.lines[line]))
                    })
                };
                let (old, new) = (side(*old, |line| line.old), side(*new, |line| line.new));
                let blank = Vec::new();
                let rows = (0..old.len().max(new.len())).map(|place| {
                    let mut line = fitted(old.get(place).unwrap_or(&blank), half);
                    line.push(span(Role::Border, "│"));
                    line.extend(new.get(place).unwrap_or(&blank).iter().cloned());
                    line
                });
                rows.collect()
            }
        }
    }

    /// A line with its gutter in at most `columns`.
    fn wrapped(&self, place: usize, columns: usize, number: Option<usize>) -> Lines {
        let line = &self.doc.diff.lines[place];
        let edits = self.doc.diff.group_at(place).and_then(|group| self.doc.group_edits.get(group));
        let mine = edits.zip(self.selected).is_some_and(|(edits, selected)| edits.contains(&selected));
        let bar = if mine { span(Role::Key, "▌") } else { span(Role::Faint, " ") };
        let syntax = self.grammars.map(|grammars| self.doc.syntax(grammars, line)).unwrap_or_default();
        let mut spans = painted(line, &syntax);
        if let Some((pattern, found)) = self.search {
            spans = marked_in(&spans, pattern, found == Some(place));
        }
        let pieces = wrap_spans(&spans, columns.saturating_sub(GUTTER).max(1));
        let with_gutter = pieces.into_iter().enumerate().map(|(piece, spans)| {
            let mut out = vec![bar.clone()];
            out.extend(numbered(line.mark, number.filter(|_| piece == 0)));
            out.extend(spans);
            out
        });
        with_gutter.collect()
    }
}

/// How many rows of these heights go into `room`.
pub(super) fn fitting(heights: impl Iterator<Item = usize>, room: usize) -> usize {
    let ends = heights.scan(0, |used, height| {
        *used += height;
        Some(*used)
    });
    ends.take_while(|end| *end <= room).count()
}

pub(super) fn folded_words(lines: usize) -> Vec<Span> {
    vec![span(Role::Faint, format!("{:GUTTER$}… {} · ", "", count(lines, "unchanged line")))]
}

fn rule_words(app: &App, doc: &PatchDoc, unchanged: &str, selected: usize, width: u16) -> Vec<Span> {
    let groups = doc.diff.groups.len();
    let mut words = vec![span(Role::Border, "── ")];
    if groups == 0 {
        words.push(span(Role::Dim, unchanged));
    } else {
        let caused = doc.group_edits.iter().any(|edits| !edits.is_empty());
        let place = doc.group_of(selected).map_or("–".to_owned(), |group| (group + 1).to_string());
        words.push(span(
            Role::Dim,
            match caused {
                true => format!("change {place} of {groups}  "),
                false => format!("{}  ", count(groups, "change")),
            },
        ));
        words.push(span(Role::Added, format!("+{} ", doc.diff.added())));
        words.push(span(Role::Removed, format!("−{} ", doc.diff.removed())));
    }
    if app.patch.ignore_whitespace {
        words.push(span(Role::Warn, " white space ignored "));
    }
    let rest = (width as usize).saturating_sub(spans_width(&words));
    words.push(span(Role::Border, "─".repeat(rest)));
    words
}

/// Line number and sign.
pub(super) fn numbered(mark: Mark, number: Option<usize>) -> [Span; 2] {
    let (sign, role) = match mark {
        Mark::Same => (" ", Role::Faint),
        Mark::Removed => ("-", Role::Removed),
        Mark::Added => ("+", Role::Added),
    };
    let number = number.map_or("    ".to_owned(), |number| format!("{number:>4}"));
    [span(Role::Faint, format!("{number} ")), span(role, format!("{sign} "))]
}

/// A line with its syntax, where no change is to be seen: changed words, and lines that are new or gone as a whole,
/// keep the roles of a diff.
fn painted(line: &DiffLine, syntax: &[(Syntax, usize)]) -> Vec<Span> {
    let refined = line.mark == Mark::Same || line.parts.iter().any(|(emphasised, _)| *emphasised);
    let mut out = Vec::new();
    let mut pieces = syntax.iter().copied();
    let mut piece = pieces.next();
    for ((emphasised, text), (role, _)) in line.parts.iter().zip(parts(line)) {
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (kind, length) = piece.unwrap_or((Syntax::Text, rest.len()));
            let Some((head, tail)) = rest.split_at_checked(length.min(rest.len())) else {
                return parts(line);
            };
            let shown = if refined && !emphasised { syntax_role(kind).unwrap_or(role) } else { role };
            out.push(span(shown, head));
            piece = match length - head.len() {
                0 => pieces.next(),
                left => Some((kind, left)),
            };
            rest = tail;
        }
    }
    out
}

fn syntax_role(kind: Syntax) -> Option<Role> {
    match kind {
        Syntax::Text => None,
        Syntax::Heading => Some(Role::SynHeading),
        Syntax::Strong => Some(Role::SynStrong),
        Syntax::Code => Some(Role::SynCode),
        Syntax::Keyword => Some(Role::SynKeyword),
        Syntax::String => Some(Role::SynString),
        Syntax::Comment => Some(Role::SynComment),
        Syntax::Number => Some(Role::SynNumber),
    }
}

pub(super) fn parts(line: &DiffLine) -> Vec<Span> {
    line.parts
        .iter()
        .map(|(emphasised, text)| {
            let role = match (line.mark, emphasised) {
                (Mark::Same, _) => Role::Text,
                (Mark::Removed, false) => Role::Removed,
                (Mark::Removed, true) => Role::RemovedWord,
                (Mark::Added, false) => Role::Added,
                (Mark::Added, true) => Role::AddedWord,
            };
            span(role, text.as_str())
        })
        .collect()
}

//! Two results beside each other: scores, answers, and where the replies differ, word by word. Lays out lines; draws
//! nothing.

use std::cell::RefCell;
use std::rc::Rc;

use super::app::App;
use super::paint::{Span, span, spans_width, wrap_spans};
use super::row_index::{ResultRef, Source};
use super::rows::{Row, RowBody};
use super::theme::Role;
use crate::plain::{count, tokens};
use crate::text::{DiffLine, Mark, diff, sanitize, sanitize_line};

/// Most of one reply that is compared.
const COMPARED: usize = 32 * 1024;
/// From this width on the two stand side by side.
const BESIDE: usize = 70;
/// Columns between them.
const BETWEEN: usize = 3;

type Lines = Vec<Vec<Span>>;

/// The last comparison, and what it was made of. Results never change.
#[derive(Clone, Debug, Default)]
pub struct ComparisonCache(RefCell<Option<LaidOut>>);

#[derive(Clone, Debug)]
struct LaidOut {
    pair: [ResultRef; 2],
    columns: usize,
    lines: Rc<Lines>,
}

impl App {
    pub(super) fn side_by_side(&self, pair: [ResultRef; 2], columns: usize) -> Rc<Lines> {
        let cache = &self.transcript.comparison.0;
        if let Some(last) = &*cache.borrow()
            && (last.pair, last.columns) == (pair, columns)
        {
            return Rc::clone(&last.lines);
        }
        let lines = Rc::new(self.compared_lines(pair, columns));
        if let Ok(mut cached) = cache.try_borrow_mut() {
            *cached = Some(LaidOut { pair, columns, lines: Rc::clone(&lines) });
        }
        lines
    }

    fn compared_lines(&self, pair: [ResultRef; 2], columns: usize) -> Lines {
        let [Some(left), Some(right)] = pair.map(|at| self.row_of(at)) else { return Lines::new() };
        let layout = Layout::of(columns);
        let mut out = Lines::new();
        layout.both(&mut out, [&left, &right], |row, side| {
            vec![span(side.role(), format!("{} {}", side.mark(), sanitize_line(row.item)))]
        });
        let [first, second] = pair.map(|at| self.result_label(at));
        layout.pair(&mut out, &[span(Role::Dim, first)], &[span(Role::Dim, second)]);
        layout.both(&mut out, [&left, &right], |row, _| verdict(row));
        for (name, value) in FACTS {
            layout.both(&mut out, [&left, &right], |row, _| fact(name, value(row)));
        }
        out.push(Vec::new());
        let [old, new] = [&left, &right].map(reply);
        let changes = diff(&old, &new);
        let words = match changes.groups.len() {
            0 => "replies: the same text".to_owned(),
            n => format!("replies: {} (− only left, + only right)", count(n, "difference")),
        };
        out.push(vec![span(Role::Title, words)]);
        layout.diff(&mut out, &changes.lines);
        out
    }

    /// Where a result comes from: `step 3 train`, `step 2 candidate 8badf00d`.
    pub(super) fn result_label(&self, at: ResultRef) -> String {
        match at.source {
            Source::Step(index) => self
                .state
                .steps
                .get(index)
                .map_or(String::new(), |step| format!("step {} train", step.at.step)),
            Source::Eval(index) => {
                let eval = self.state.eval_order.get(index).and_then(|id| self.state.evals.get(id));
                eval.map_or(String::new(), |eval| {
                    let step = match eval.at.step {
                        0 => String::new(),
                        step => format!("step {step} "),
                    };
                    let hash: String = eval.skill_hash.chars().take(8).collect();
                    format!("{step}{} {hash}", eval.purpose.name())
                })
            }
        }
    }
}

type Value = fn(&Row<'_>) -> String;

const FACTS: [(&str, Value); 3] = [
    ("answer   ", |row| scored(row, |rollout| rollout.answer.clone())),
    ("expected ", |row| scored(row, |rollout| rollout.gold.clone())),
    ("why      ", |row| match row.body {
        RowBody::Missing(_, error) => error.to_owned(),
        _ => scored(row, |rollout| rollout.score.reason.clone()),
    }),
];

fn scored(row: &Row<'_>, value: fn(&crate::domain::Rollout) -> String) -> String {
    match row.body {
        RowBody::Done(_, rollout) => value(rollout),
        RowBody::Missing(..) | RowBody::Call(..) => String::new(),
    }
}

fn fact(name: &str, value: String) -> Vec<Span> {
    let head: String = value.trim().chars().take(400).collect();
    vec![span(Role::Dim, name), span(Role::Text, sanitize_line(&head))]
}

fn verdict(row: &Row<'_>) -> Vec<Span> {
    match row.body {
        RowBody::Done(_, rollout) => {
            let (mark, role) = if row.passed() { ("✓ pass", Role::Good) } else { ("✗ fail", Role::Bad) };
            let numbers = format!(
                "  hard {:.2} soft {:.2}  {}t  {:.1}s",
                rollout.score.hard,
                rollout.score.soft,
                tokens(rollout.usage.completion_tokens),
                rollout.ms as f64 / 1000.0
            );
            vec![span(role, mark), span(Role::Dim, numbers)]
        }
        RowBody::Missing(..) => vec![span(Role::Warn, "! missing: not a score")],
        RowBody::Call(..) => vec![span(Role::Active, "▸ running")],
    }
}

fn reply(row: &Row<'_>) -> String {
    let text = match row.body {
        RowBody::Done(_, rollout) => rollout.reply.as_str(),
        RowBody::Missing(..) | RowBody::Call(..) => "",
    };
    let shown = text.char_indices().nth(COMPARED).map_or(text, |(at, _)| &text[..at]);
    let mut clean = sanitize(shown).trim_end().to_owned();
    if !clean.is_empty() {
        clean.push('\n');
    }
    clean
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    fn mark(self) -> &'static str {
        match self {
            Side::Left => "−",
            Side::Right => "+",
        }
    }

    fn role(self) -> Role {
        match self {
            Side::Left => Role::Removed,
            Side::Right => Role::Added,
        }
    }
}

/// Side by side in two columns, or one above the other where there is no room for that.
enum Layout {
    Beside { half: usize },
    Stacked { columns: usize },
}

impl Layout {
    fn of(columns: usize) -> Self {
        match columns {
            0..BESIDE => Self::Stacked { columns },
            _ => Self::Beside { half: (columns - BETWEEN) / 2 },
        }
    }

    fn both(&self, out: &mut Lines, rows: [&Row<'_>; 2], make: impl Fn(&Row<'_>, Side) -> Vec<Span>) {
        self.pair(out, &make(rows[0], Side::Left), &make(rows[1], Side::Right));
    }

    fn pair(&self, out: &mut Lines, left: &[Span], right: &[Span]) {
        match self {
            Self::Beside { half } => {
                let [left, right] = [left, right].map(|side| wrap_spans(side, *half));
                for index in 0..left.len().max(right.len()) {
                    let mut line = left.get(index).cloned().unwrap_or_default();
                    let missing = half.saturating_sub(spans_width(&line));
                    line.push(span(Role::Faint, format!("{} │ ", " ".repeat(missing))));
                    line.extend(right.get(index).cloned().unwrap_or_default());
                    out.push(line);
                }
            }
            Self::Stacked { columns } => {
                for side in [left, right] {
                    out.extend(wrap_spans(side, *columns));
                }
            }
        }
    }

    fn diff(&self, out: &mut Lines, lines: &[DiffLine]) {
        let mut rest = lines;
        while let Some(first) = rest.first() {
            if first.mark == Mark::Same {
                let same = styled(first);
                match self {
                    Self::Beside { .. } => self.pair(out, &same, &same),
                    Self::Stacked { columns } => out.extend(wrap_spans(&same, *columns)),
                }
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|line| line.mark == Mark::Same).unwrap_or(rest.len());
            let (changed, after) = rest.split_at(end);
            rest = after;
            let of = |mark: Mark| changed.iter().filter(move |line| line.mark == mark).map(styled);
            let (removed, added): (Lines, Lines) = (of(Mark::Removed).collect(), of(Mark::Added).collect());
            match self {
                Self::Beside { .. } => {
                    for index in 0..removed.len().max(added.len()) {
                        let side = |lines: &Lines| lines.get(index).cloned().unwrap_or_default();
                        self.pair(out, &side(&removed), &side(&added));
                    }
                }
                Self::Stacked { columns } => {
                    out.extend(removed.iter().chain(&added).flat_map(|line| wrap_spans(line, *columns)));
                }
            }
        }
    }
}

fn styled(line: &DiffLine) -> Vec<Span> {
    let (mark, plain, word) = match line.mark {
        Mark::Same => ("  ", Role::Dim, Role::Dim),
        Mark::Removed => ("− ", Role::Removed, Role::RemovedWord),
        Mark::Added => ("+ ", Role::Added, Role::AddedWord),
    };
    let mut out = vec![span(plain, mark)];
    out.extend(
        line.parts.iter().map(|(strong, text)| span(if *strong { word } else { plain }, text.as_str())),
    );
    out
}

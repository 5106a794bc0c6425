//! Pane 1: the runs under the root as a table, as many columns as fit, and what is known of the selected one.

use ratatui::layout::Rect;

use super::{frame, placeholder};
use crate::plain::{count, signed, tokens};
use crate::store::{Condition, RunSummary};
use crate::text::{fit, sanitize_line};
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::controls::runs::{RunsAction, Sort, tokens_of};
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span, spans_width, window, wrap_spans};
use crate::tui::theme::Role;

/// From this inner height on the selected run is told below the table.
const TOLD_FROM: u16 = 10;
const TOLD_ROWS: u16 = 4;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let view = &app.runs;
    let mut info = Vec::new();
    if view.sort != Sort::default() {
        info.push(span(Role::Dim, format!("by {} ", view.sort.name())));
    }
    if !view.filter.is_empty() {
        info.push(span(Role::Warn, format!("/{}", view.filter)));
    }
    let inner = frame(app, Pane::Runs, area, canvas, info, &counts(app));
    let mut rows = rows_of(inner);
    for fault in
        view.filter_fault.iter().map(|fault| format!("! filter: {fault}")).chain(
            view.fault.iter().filter(|_| !view.rows.is_empty()).map(|fault| format!("! runs: {fault}")),
        )
    {
        if let Some(row) = rows.next() {
            canvas.line(row, &[span(Role::Bad, fault)]);
        }
    }
    let used = rows.next().map_or(inner.height, |row| row.y - inner.y);
    let inner = Rect { y: inner.y + used, height: inner.height - used, ..inner };
    if view.shown.is_empty() {
        return placeholder(canvas, inner, &nothing(app).each_ref().map(String::as_str));
    }
    let told = if inner.height >= TOLD_FROM { TOLD_ROWS } else { 0 };
    let table = Rect { height: inner.height - told, ..inner };
    list(app, table, canvas);
    if let Some(run) = view.selected().filter(|_| told > 0) {
        let below = Rect { y: table.bottom(), height: told, ..inner };
        for (row, line) in rows_of(below).zip(about(app, run, inner.width as usize)) {
            canvas.line(row, &line);
        }
    }
}

fn nothing(app: &App) -> [String; 2] {
    let view = &app.runs;
    match &view.fault {
        Some(fault) => [fault.clone(), String::new()],
        None if !view.heard => ["Looking for runs…".to_owned(), String::new()],
        None if view.rows.is_empty() => {
            let new = app.press_for(Action::Runs(RunsAction::New));
            let how = format!("{new} starts one; `planish run CONFIG` does it from a shell.");
            ["No runs here yet.".to_owned(), how]
        }
        None => {
            let back = app.press_for(Action::Global(GlobalAction::Back));
            ["No run matches the filter.".to_owned(), format!("{back} clears it.")]
        }
    }
}

/// `◐1 ●2 ☠1 14 runs`: what waits, is at work, was killed, and how many there are.
fn counts(app: &App) -> Vec<Span> {
    let view = &app.runs;
    let mut out = Vec::new();
    for (status, n) in &view.counts {
        let (glyph, role) = mark(*status);
        out.push(span(role, format!("{glyph}{n} ")));
    }
    let all = view.rows.len();
    let shown = view.shown.len();
    let words = if shown == all { count(all, "run") } else { format!("{shown} of {}", count(all, "run")) };
    if !view.heard {
        return out;
    }
    out.push(span(Role::Dim, if view.more { format!("{words}, reading…") } else { words }));
    out
}

/// Glyph and role of a condition.
pub fn mark(status: Condition) -> (&'static str, Role) {
    match status {
        Condition::New => ("○", Role::Dim),
        Condition::Running => ("●", Role::Active),
        Condition::Stalled => ("…", Role::Warn),
        Condition::Review => ("◐", Role::Review),
        Condition::Paused => ("‖", Role::Warn),
        Condition::Stopping => ("◌", Role::Warn),
        Condition::Interrupted => ("☠", Role::Bad),
        Condition::Elsewhere => ("⇠", Role::Active),
        Condition::Completed => ("✓", Role::Good),
        Condition::Cancelled => ("◌", Role::Dim),
        Condition::Failed => ("✗", Role::Bad),
        Condition::OutOfBudget => ("◌", Role::Warn),
        Condition::Imported => ("⇤", Role::Text),
        Condition::Damaged => ("‼", Role::Bad),
        Condition::Unread => ("·", Role::Faint),
    }
}

/// The word for a condition on the screen.
pub fn word(run: &RunSummary) -> String {
    match run.status {
        Condition::Review => match run.undecided {
            Some(n) if n > 0 => format!("review {n}"),
            Some(_) | None => "review".to_owned(),
        },
        Condition::Interrupted => "crashed".to_owned(),
        Condition::Completed => "done".to_owned(),
        Condition::Cancelled => "stopped".to_owned(),
        Condition::OutOfBudget => "budget".to_owned(),
        Condition::Unread => "reading…".to_owned(),
        status => status.word().to_owned(),
    }
}

/// A column of the table: title, width, from which inner width on it is shown, and what it says.
struct Column {
    title: &'static str,
    width: usize,
    from: u16,
    right: bool,
    cell: fn(&App, &RunSummary) -> (Role, String),
}

const COLUMNS: [Column; 10] = [
    Column {
        title: "STATUS",
        width: 10,
        from: 44,
        right: false,
        cell: |_, run| (mark(run.status).1, word(run)),
    },
    Column { title: "STEP", width: 7, from: 26, right: true, cell: |_, run| (Role::Text, step(run)) },
    Column {
        title: "BEST",
        width: 6,
        from: 30,
        right: true,
        cell: |_, run| (Role::Text, score(run.best_score)),
    },
    Column { title: "Δ", width: 7, from: 52, right: true, cell: |_, run| gain(run.delta()) },
    Column {
        title: "AGE",
        width: 5,
        from: 58,
        right: true,
        cell: |app, run| (Role::Dim, since(app, run.started_at)),
    },
    Column { title: "TOKENS", width: 7, from: 72, right: true, cell: |_, run| (Role::Dim, spent(run)) },
    Column { title: "ENV", width: 8, from: 80, right: false, cell: |_, run| (Role::Dim, run.env.clone()) },
    Column {
        title: "TARGET",
        width: 20,
        from: 96,
        right: false,
        cell: |_, run| (Role::Dim, run.target.clone()),
    },
    Column { title: "SEED", width: 6, from: 110, right: true, cell: |_, run| (Role::Dim, seed(run)) },
    Column {
        title: "HOST",
        width: 14,
        from: 126,
        right: false,
        cell: |_, run| (Role::Dim, run.host.clone()),
    },
];

fn list(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let view = &app.runs;
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| area.width >= column.from).collect();
    let taken: usize = columns.iter().map(|column| column.width + 1).sum();
    let name = (area.width as usize).saturating_sub(taken + 4).max(8);
    let mut rows = rows_of(area);
    if area.height > 3
        && let Some(head) = rows.next()
    {
        let mut line = vec![span(Role::Faint, format!("    {}", fit("NAME", name)))];
        line.extend(columns.iter().map(|column| span(Role::Faint, aligned(column, column.title))));
        canvas.line(head, &line);
    }
    let rows: Vec<Rect> = rows.collect();
    let first = window(view.cursor, view.shown.len(), rows.len());
    for (row, (place, at)) in rows.into_iter().zip(view.shown.iter().enumerate().skip(first)) {
        let Some(run) = view.rows.get(*at) else { continue };
        let attached = app.attached.as_ref() == Some(&run.path);
        let mut line =
            vec![if attached { span(Role::Key, "▸") } else { span(Role::Text, " ") }, chosen_mark(app, run)];
        let (glyph, role) = mark(run.status);
        line.push(span(role, format!("{glyph} ")));
        line.push(span(
            if attached { Role::Strong } else { Role::Text },
            fit(&sanitize_line(&run.name), name),
        ));
        for column in &columns {
            let (role, text) = (column.cell)(app, run);
            line.push(span(role, aligned(column, &text)));
        }
        canvas.line(row, &line);
        if place == view.cursor {
            canvas.overlay_style(row, Role::Selection);
        }
    }
}

fn aligned(column: &Column, text: &str) -> String {
    let text = fit(&sanitize_line(text), column.width);
    if column.right {
        let text = text.trim_end();
        let pad = column.width.saturating_sub(crate::text::width(text));
        return format!(" {}{text}", " ".repeat(pad));
    }
    format!(" {text}")
}

/// `b` the pinned baseline, `+` marked for the overlay.
fn chosen_mark(app: &App, run: &RunSummary) -> Span {
    if app.runs.pinned.as_ref() == Some(&run.path) {
        span(Role::Pinned, "b")
    } else if app.runs.marked.contains(&run.path) {
        span(Role::Key, "+")
    } else {
        span(Role::Text, " ")
    }
}

fn step(run: &RunSummary) -> String {
    if run.total_steps == 0 { String::new() } else { format!("{}/{}", run.steps_done, run.total_steps) }
}

fn score(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

fn gain(value: Option<f64>) -> (Role, String) {
    match value {
        None => (Role::Dim, "-".to_owned()),
        Some(value) if value > 0.0 => (Role::Good, signed(value)),
        Some(value) => (Role::Dim, signed(value)),
    }
}

fn spent(run: &RunSummary) -> String {
    match tokens_of(run) {
        0 => String::new(),
        n => tokens(n),
    }
}

fn seed(run: &RunSummary) -> String {
    run.seed.map(|seed| seed.to_string()).unwrap_or_default()
}

/// `4s`, `12m`, `3h`, `8d` since a time.
fn since(app: &App, at: u64) -> String {
    if at == 0 { String::new() } else { age(app.now.saturating_sub(at)) }
}

pub fn age(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The selected run in words, most important first.
fn about(app: &App, run: &RunSummary, columns: usize) -> Vec<Vec<Span>> {
    let (glyph, role) = mark(run.status);
    let mut first = vec![span(role, format!("{glyph} {}", word(run)))];
    if app.attached.as_ref() == Some(&run.path) {
        first.push(span(Role::Key, " · attached"));
    }
    if app.runs.pinned.as_ref() == Some(&run.path) {
        first.push(span(Role::Pinned, " · pinned baseline"));
    }
    if app.runs.marked.contains(&run.path) {
        first.push(span(Role::Key, " · marked for curves"));
    }
    first.push(span(Role::Dim, last_done(app, run)));
    let mut second = Vec::new();
    for (name, value) in [("baseline", run.baseline_score), ("best", run.best_score)] {
        if value.is_some() {
            second.push(span(Role::Dim, format!("{name} ")));
            second.push(span(Role::Text, format!("{}  ", score(value))));
        }
    }
    if let Some(delta) = run.test_delta {
        second.push(span(Role::Dim, "test "));
        second.push(span(gain(Some(delta)).0, format!("{}  ", signed(delta))));
    }
    let usage = run.total_usage();
    if usage.calls > 0 {
        let words = format!("{} calls, {} tokens  ", usage.calls, tokens(tokens_of(run)));
        second.push(span(Role::Dim, words));
    }
    for (name, text) in
        [("env", &run.env), ("target", &run.target), ("optimizer", &run.optimizer), ("host", &run.host)]
    {
        let more = [span(Role::Dim, format!("{name} ")), span(Role::Text, format!("{text}  "))];
        if !text.is_empty() && spans_width(&second) + spans_width(&more) <= columns {
            second.extend(more);
        }
    }
    let mut lines = vec![vec![span(Role::Faint, "─".repeat(columns))], first, second];
    match &run.problem {
        Some(problem) => lines.extend(wrap_spans(&[span(Role::Bad, problem.as_str())], columns)),
        None => lines.push(vec![span(Role::Dim, run.path.display().to_string())]),
    }
    lines
}

/// Where it stands and since when.
pub fn last_done(app: &App, run: &RunSummary) -> String {
    let mut words = String::new();
    if run.total_steps > 0 {
        words.push_str(&format!(" · step {} of {}", run.step, run.total_steps));
    }
    if let Some(phase) = run.phase.filter(|_| run.status.at_work() || run.status.resumable()) {
        words.push_str(&format!(", {}", phase.name()));
    }
    if run.updated_at > 0 {
        words.push_str(&format!(" · last event {} ago", since(app, run.updated_at)));
    }
    words
}

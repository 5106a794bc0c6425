//! Pane 3: attempts of the shown stage; what is in flight on top, streaming.

use ratatui::layout::Rect;

use super::{below, placeholder, titled, waiting_words};
use crate::plain::tokens;
use crate::text::{fit, sanitize, sanitize_line, truncate};
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::layout::Pane;
use crate::tui::live::{CallPhase, LiveCall};
use crate::tui::paint::{Canvas, Span, rows_of, span, window, wrap_spans};
use crate::tui::row_index::{Sort, Tally, WIDEST_ITEM};
use crate::tui::rows::{Row, RowBody};
use crate::tui::stages::Stage;
use crate::tui::theme::Role;

/// From this inner width on there is room for reasons and streaming text.
const WIDE: u16 = 60;
/// Groups that must not be counted together with others.
const APART: [&str; 4] = ["deep", "prev", "curr", "current"];
/// A call that says nothing for this long is idle.
const IDLE_MS: u64 = 3_000;
/// A rule of thumb, for a number that is shown as `~`.
const CHARACTERS_PER_TOKEN: usize = 4;
/// Of one text on a row.
const ANSWER: usize = 32;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let rows = app.rows();
    let tallies = rows.tallies();
    // Several runs over the same items: each is counted, and its rows are marked.
    let grouped = app.shown_stage() == Some(Stage::Test)
        || tallies.iter().any(|(group, tally)| APART.contains(group) && *tally != Tally::default());
    let total = tallies.iter().fold(Tally::default(), |sum, (_, one)| Tally {
        running: sum.running + one.running,
        passed: sum.passed + one.passed,
        failed: sum.failed + one.failed,
        missing: sum.missing + one.missing,
    });
    let counts = if grouped { Vec::new() } else { tally(&total) };
    let chips = chips(app);
    let full = [span(Role::Dim, app.stage_name())].into_iter().chain(chips.iter().cloned()).collect();
    // What is hidden from the list is said before the stage and the counts.
    let mut titles = vec![(full, counts.clone()), (chips.clone(), counts)];
    if !chips.is_empty() {
        titles.push((chips, Vec::new()));
    }
    let mut inner = titled(app, Pane::Rollouts, area, canvas, titles);
    if rows.is_empty() {
        let view = &app.rollouts;
        let narrowed = view.failures_only || !view.filter.is_empty() || view.only.is_some();
        let words = match app.shown_stage() {
            None => waiting_words(app),
            Some(_) if view.only.is_some() => {
                let back = app.press_for(Action::Global(GlobalAction::Back));
                format!("Those rollouts are not of this stage. {back} goes back.")
            }
            Some(_) if narrowed => "Nothing matches.".into(),
            Some(_) => "No rollout yet.".into(),
        };
        return placeholder(canvas, inner, &[&words]);
    }
    if grouped {
        let counts = wrap_spans(&per_group(&tallies), inner.width as usize);
        let used = (counts.len() as u16).min(inner.height.saturating_sub(1)).min(2);
        for (row, line) in rows_of(inner).zip(&counts[..used as usize]) {
            canvas.line(row, line);
        }
        inner = below(inner, used);
    }
    let item_width = rows.widest().clamp(8, if inner.width >= WIDE { WIDEST_ITEM } else { 13 });
    if inner.width >= WIDE && inner.height > 3 {
        canvas.line(inner, &[span(Role::Faint, head(item_width))]);
        inner = below(inner, 1);
    }
    let selected = app.selected_row(&rows);
    let first = window(selected, rows.len(), inner.height as usize);
    for (area, (index, row)) in rows_of(inner).zip((first..).zip(rows.from(first))) {
        canvas.line(area, &line(app, &row, item_width, inner.width, grouped));
        if index == selected {
            canvas.overlay_style(area, Role::Selection);
        }
    }
}

/// What narrows or orders the rows.
fn chips(app: &App) -> Vec<Span> {
    let view = &app.rollouts;
    let mut out = Vec::new();
    if view.only.is_some() {
        out.push(span(Role::Warn, format!(" behind edit {}", app.patch.edit + 1)));
    }
    if view.sort != Sort::Newest {
        out.push(span(Role::Warn, format!(" by {}", view.sort.name())));
    }
    if view.failures_only {
        out.push(span(Role::Warn, " failures"));
    }
    if !view.filter.is_empty() {
        out.push(span(Role::Warn, format!(" /{}", view.filter.text())));
    }
    out
}

/// `base ✗100 · best ✓87 ✗13`.
fn per_group(tallies: &[(&'static str, Tally)]) -> Vec<Span> {
    let mut out = Vec::new();
    for (group, of_group) in tallies {
        let between = if out.is_empty() { "" } else { " · " };
        out.push(span(Role::Dim, format!("{between}{group} ")));
        out.extend(tally(of_group));
    }
    out
}

fn tally(of: &Tally) -> Vec<Span> {
    let mut out = Vec::new();
    for (n, glyph, role) in [
        (of.running, "▸", Role::Active),
        (of.passed, "✓", Role::Good),
        (of.failed, "✗", Role::Bad),
        (of.missing, "!", Role::Warn),
    ] {
        if n > 0 {
            if !out.is_empty() {
                out.push(span(Role::Text, " "));
            }
            out.push(span(role, format!("{glyph}{n}")));
        }
    }
    out
}

fn head(item_width: usize) -> String {
    let item = fit("item", item_width);
    format!("  {item} of      score  turns   tokens    time  answer, and why it failed")
}

fn line(app: &App, row: &Row<'_>, item_width: usize, width: u16, grouped: bool) -> Vec<Span> {
    let wide = width >= WIDE;
    let item = span(Role::Text, format!("{} ", fit(&sanitize_line(row.item), item_width)));
    // Without the column of groups there is still room for the name of a skill.
    let group = match (wide, grouped) {
        (true, _) => format!("{:<8}", row.group),
        (false, true) => format!("{} ", row.group),
        (false, false) => String::new(),
    };
    let group = span(Role::Dim, group);
    match &row.body {
        RowBody::Call(_, call) => {
            let (glyph, role) = match call.phase {
                CallPhase::Retrying { .. } => ("↻ ", Role::Warn),
                CallPhase::Answered => ("◌ ", Role::Active),
                CallPhase::Running => ("▸ ", Role::Active),
            };
            let mut out = vec![span(role, glyph), item, group];
            out.extend(live_words(app, call, role, wide));
            out
        }
        RowBody::Missing(at, error) => {
            let glyph = if app.rollouts.marked.contains(at) { "!◆" } else { "! " };
            vec![span(Role::Warn, glyph), item, group, span(Role::Warn, format!("missing  {error}"))]
        }
        RowBody::Done(at, rollout) => {
            let (glyph, role) = if row.passed() { ("✓", Role::Good) } else { ("✗", Role::Bad) };
            let mark = if app.rollouts.marked.contains(at) { "◆" } else { " " };
            let mut out = vec![span(role, format!("{glyph}{mark}")), item];
            let score = span(role, format!("{:>4.2}", rollout.score.hard));
            let (spent, time) = (tokens(rollout.usage.completion_tokens), seconds(rollout.ms));
            if !wide {
                let group = if grouped { format!("  {}", row.group) } else { format!("{spent:>5}t") };
                out.extend([score, span(Role::Dim, format!("{group} {time:>5}"))]);
                return out;
            }
            let turns = match rollout.turns.len() {
                0 => String::new(),
                n => n.to_string(),
            };
            let numbers = format!(" {turns:>6} {:>8} {time:>7}", format!("{spent}t"));
            out.extend([group, span(role, " "), score, span(Role::Dim, numbers)]);
            out.push(span(Role::Text, format!("  {}", one_line(&rollout.answer))));
            if !row.passed() {
                out.push(span(Role::Dim, format!("  {}", sanitize_line(&rollout.score.reason))));
            }
            out
        }
    }
}

fn one_line(text: &str) -> String {
    // What is cut away need not be made safe first.
    let head: String = text.trim().chars().take(4 * ANSWER).collect();
    truncate(&sanitize_line(&head), ANSWER)
}

/// What the call is at, how much it said, for how long, and since when it is silent.
fn live_words(app: &App, call: &LiveCall, role: Role, wide: bool) -> Vec<Span> {
    let age = seconds(app.now.saturating_sub(call.started_at));
    let silent = app.now.saturating_sub(call.heard_at);
    let phase = match &call.phase {
        CallPhase::Retrying { error } => {
            return vec![span(role, format!("retry {} · {error}", call.attempt))];
        }
        CallPhase::Answered => "answered",
        CallPhase::Running if call.received == 0 => "waiting",
        CallPhase::Running if call.thinking => "thinking",
        CallPhase::Running => "streaming",
    };
    if !wide {
        return vec![span(role, format!("{phase} {age:>5}"))];
    }
    let said = match call.received / CHARACTERS_PER_TOKEN {
        0 => String::new(),
        n => format!("~{}t", tokens(n as u64)),
    };
    let said_role = if call.thinking { Role::Thinking } else { Role::Text };
    let mut out = vec![
        span(role, format!(" {phase:<11}")),
        span(Role::Dim, format!("{said:>9} {age:>7}")),
        span(said_role, format!("  {}", tail(&call.text, 60))),
    ];
    if silent >= IDLE_MS && call.received > 0 && call.phase == CallPhase::Running {
        out.insert(2, span(Role::Warn, format!("  idle {}", seconds(silent))));
    }
    out
}

/// The last characters: what streams in stays in view.
fn tail(text: &str, columns: usize) -> String {
    let mut from = text.len().saturating_sub(8 * columns);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let clean = sanitize(&text[from..]).replace('\n', " ");
    let clean = clean.trim();
    let n = clean.chars().count();
    let mut out: String = clean.chars().skip(n.saturating_sub(columns)).collect();
    if !out.is_empty() {
        out.push('▏');
    }
    out
}

fn seconds(ms: u64) -> String {
    if ms < 100_000 { format!("{:.1}s", ms as f64 / 1000.0) } else { format!("{}s", ms / 1000) }
}

//! Pane 9: the settings of the run by section: value, when a change takes effect, where each came from, and the draft.

use ratatui::layout::Rect;

use super::{frame, placeholder, waiting_words};
use crate::config::Effective;
use crate::plain::count;
use crate::text::{fit, sanitize_line};
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::controls::config::{ConfigAction, ConfigLine, Setting, shown};
use crate::tui::controls::global::GlobalAction;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span, window, wrap_spans};
use crate::tui::theme::Role;

/// Rows below the list that tell of the selected setting, where the pane is at least so high.
const TOLD_ROWS: u16 = 4;
const TOLD_FROM: u16 = 9;
/// From this inner width on the origin has a column.
const WIDE: u16 = 66;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let view = &app.config;
    let mut info = Vec::new();
    if view.diff_only {
        info.push(span(Role::Warn, "changed only "));
    }
    if !view.filter.is_empty() {
        info.push(span(Role::Warn, format!("/{}", view.filter)));
    }
    let inner = frame(app, Pane::Config, area, canvas, info, &draft_words(app));
    if !app.has_settings() {
        let words = if app.state.info.is_some() {
            "This journal holds no settings.".into()
        } else {
            waiting_words(app)
        };
        return placeholder(canvas, inner, &[&words]);
    }
    let lines = app.config_lines();
    if lines.is_empty() {
        let words = if view.filter.is_empty() {
            let diff = app.press_for(Action::Config(ConfigAction::Diff));
            format!("All settings are as they were at the launch; {diff} shows them.")
        } else {
            let back = app.press_for(Action::Global(GlobalAction::Back));
            format!("No setting matches; {back} clears the filter.")
        };
        return placeholder(canvas, inner, &[&words]);
    }
    let told = if inner.height >= TOLD_FROM { TOLD_ROWS } else { 0 };
    let list = Rect { height: inner.height - told, ..inner };
    let cursor = view.cursor.min(lines.len() - 1);
    let first = window(cursor, lines.len(), list.height as usize);
    for (row, (at, line)) in rows_of(list).zip(lines.iter().enumerate().skip(first)) {
        match line {
            ConfigLine::Section { name, settings, changed } => {
                let folded = view.folded.contains(name) && view.filter.is_empty();
                let mark = if folded { "▸" } else { "▾" };
                let name = if name.is_empty() { "imported" } else { name };
                let mut spans = vec![span(Role::Title, format!("{mark} {name}"))];
                if folded {
                    spans.push(span(Role::Dim, format!("  {}", count(*settings, "setting"))));
                }
                if *changed > 0 {
                    spans.push(span(Role::Warn, format!("  {changed} changed")));
                }
                canvas.line(row, &spans);
            }
            ConfigLine::Setting(setting) => {
                canvas.line(row, &setting_line(app, setting, list.width));
            }
        }
        if at == cursor {
            canvas.overlay_style(row, Role::Selection);
        }
    }
    let below = Rect { y: list.bottom(), height: told, ..inner };
    for (row, line) in rows_of(below).zip(about(app, &lines[cursor], inner.width as usize)) {
        canvas.line(row, &line);
    }
}

fn draft_words(app: &App) -> Vec<Span> {
    let (drafted, faults) = (app.config.draft.len(), app.config.faults.len());
    let mut out = Vec::new();
    if drafted > 0 {
        out.push(span(Role::Review, format!(" draft {drafted} ")));
    }
    if faults > 0 {
        out.push(span(Role::Bad, format!(" ✗ {faults}")));
    }
    out
}

/// `● ` changed since the launch, `◆ ` drafted, `… ` waits for the next step.
fn setting_mark(app: &App, setting: &Setting) -> Span {
    if app.config.faults.contains_key(&setting.path) {
        span(Role::Bad, "✗ ")
    } else if setting.drafted.is_some() {
        span(Role::Warn, "◆ ")
    } else if setting.waiting.is_some() {
        span(Role::Warn, "… ")
    } else if setting.value != setting.launch {
        span(Role::Key, "● ")
    } else {
        span(Role::Text, "  ")
    }
}

fn effective_role(effective: Effective) -> Role {
    match effective {
        Effective::Live => Role::Good,
        Effective::NextStep => Role::Active,
        Effective::Restart | Effective::NewRun => Role::Faint,
    }
}

fn setting_line(app: &App, setting: &Setting, width: u16) -> Vec<Span> {
    let name = setting.path.rsplit_once('.').map_or(setting.path.as_str(), |(_, name)| name);
    let columns = if width >= 100 { 38 } else { 30 };
    let mut line = vec![span(Role::Text, " "), setting_mark(app, setting)];
    line.push(span(Role::Dim, format!("{} ", fit(&sanitize_line(name), columns))));
    let mut value = vec![span(
        if setting.value == setting.launch { Role::Text } else { Role::Strong },
        shown(&setting.value),
    )];
    for next in setting.drafted.iter().chain(&setting.waiting) {
        value.push(span(Role::Warn, format!(" → {}", shown(next))));
    }
    let wide = width >= WIDE;
    // The tag, and the origin where there is room.
    let after = if wide { (width as usize - columns - 14) / 3 + 10 } else { 10 };
    let room = (width as usize).saturating_sub(columns + 5 + after).max(8);
    line.extend(fitted(&value, room));
    if let Some(key) = setting.key {
        let effective = key.0.effective;
        line.push(span(effective_role(effective), format!(" {}", fit(effective.name(), 9))));
    }
    if let Some(origin) = setting.origin.as_ref().filter(|_| wide) {
        let role = if origin == "built-in" { Role::Faint } else { Role::Dim };
        line.push(span(role, format!(" {origin}")));
    }
    line
}

/// Spans in exactly `room` columns.
fn fitted(spans: &[Span], room: usize) -> Vec<Span> {
    let mut left = room;
    let mut out = Vec::new();
    for (role, text) in spans {
        let text = crate::text::truncate(&sanitize_line(text), left);
        left -= crate::text::width(&text).min(left);
        out.push((*role, text));
    }
    out.push(span(Role::Text, " ".repeat(left)));
    out
}

fn about(app: &App, line: &ConfigLine, columns: usize) -> Vec<Vec<Span>> {
    let mut out = vec![vec![span(Role::Faint, "─".repeat(columns))]];
    let setting = match line {
        ConfigLine::Section { name, settings, .. } => {
            out.push(vec![span(Role::Dim, format!("[{name}] {}", count(*settings, "setting")))]);
            return out;
        }
        ConfigLine::Setting(setting) => setting,
    };
    if let Some(fault) = app.config.faults.get(&setting.path).or_else(|| app.config.faults.get("")) {
        out.extend(wrap_spans(&[span(Role::Bad, format!("✗ {fault}"))], columns));
    }
    let mut words = Vec::new();
    if let Some(key) = setting.key {
        let limits = key.0.kind.limits();
        let limits = if limits.is_empty() { limits } else { format!(" {limits}") };
        words.push(span(Role::Text, format!("{} ({}{limits})", key.0.doc, key.0.kind.name())));
        let when = match key.0.effective {
            Effective::Live => " · changes at once",
            Effective::NextStep => " · changes at the next step",
            Effective::Restart => " · changes when a host starts: planish resume -o",
            Effective::NewRun => " · only a new run can have another value",
        };
        words.push(span(effective_role(key.0.effective), when));
    }
    out.extend(wrap_spans(&words, columns));
    let mut from = Vec::new();
    if let Some(origin) = &setting.origin {
        from.push(span(Role::Dim, format!("from {origin}")));
    }
    if setting.value != setting.launch {
        from.push(span(Role::Dim, format!(" · at the launch {}", shown(&setting.launch))));
    }
    let last = app.state.retunes.iter().rev().find(|one| one.changes.iter().any(|of| of.key == setting.path));
    if let Some(retune) = last {
        let reason = if retune.reason.is_empty() { String::new() } else { format!(": {}", retune.reason) };
        from.push(span(Role::Key, format!(" · changed by {}{reason}", retune.by.0)));
    }
    out.push(from);
    out
}

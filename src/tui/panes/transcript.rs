//! One attempt in full: prompt (folded), reply, answer, score and why. The end of a streaming reply stays in view.

use ratatui::layout::Rect;

use super::{frame, placeholder};
use crate::domain::Rollout;
use crate::plain::tokens;
use crate::text::{sanitize, wrap};
use crate::tui::app::App;
use crate::tui::layout::Pane;
use crate::tui::live::CallPhase;
use crate::tui::paint::{Canvas, Span, rows_of, span};
use crate::tui::rows::RowBody;
use crate::tui::theme::Role;

/// Most of one text that is laid out; `calls/` in the run folder has all of it.
const SHOWN: usize = 48 * 1024;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let rows = app.rows();
    let Some(row) = rows.get(app.selected_row(&rows)) else {
        let inner = frame(app, Pane::Transcript, area, canvas, Vec::new(), &[]);
        return placeholder(canvas, inner, &["No rollout to show."]);
    };
    let info = vec![span(Role::Text, row.item), span(Role::Dim, format!("  {}", row.group))];
    let right = match &row.body {
        RowBody::Done(rollout) => numbers(rollout),
        RowBody::Missing(_) => vec![span(Role::Warn, "! missing: not a score")],
        RowBody::Call(call) => match &call.phase {
            CallPhase::Running => vec![span(Role::Active, "▸ running")],
            CallPhase::Retrying { .. } => vec![span(Role::Warn, "↻ waiting to retry")],
        },
    };
    let inner = frame(app, Pane::Transcript, area, canvas, info, &right);
    let columns = inner.width as usize;
    let lines = match &row.body {
        RowBody::Done(rollout) => finished(app, rollout, columns),
        RowBody::Missing(error) => {
            let mut lines = vec![vec![span(Role::Warn, "No answer after all retries")], Vec::new()];
            text(&mut lines, error, Role::Text, columns);
            lines
        }
        RowBody::Call(call) => {
            let mut lines = Vec::new();
            if let CallPhase::Retrying { error } = &call.phase {
                text(&mut lines, error, Role::Warn, columns);
            }
            text(&mut lines, &call.text, Role::Text, columns);
            lines
        }
    };
    let visible = inner.height as usize;
    app.transcript.scroll.extent.set((lines.len(), visible));
    let end = lines.len().saturating_sub(visible);
    let streaming = matches!(row.body, RowBody::Call(_)) && app.transcript.follow;
    let top = if streaming { end } else { app.transcript.scroll.top.min(end) };
    for (row, line) in rows_of(inner).zip(&lines[top..]) {
        canvas.line(row, line);
    }
}

fn numbers(rollout: &Rollout) -> Vec<Span> {
    let (mark, role) =
        if rollout.score.failed() { ("✗ fail", Role::Bad) } else { ("✓ pass", Role::Good) };
    vec![
        span(role, mark),
        span(
            Role::Dim,
            format!(
                "  hard {:.2} soft {:.2}  {}+{} tokens  {:.1}s",
                rollout.score.hard,
                rollout.score.soft,
                tokens(rollout.usage.prompt_tokens),
                tokens(rollout.usage.completion_tokens),
                rollout.ms as f64 / 1000.0
            ),
        ),
    ]
}

fn finished(app: &App, rollout: &Rollout, columns: usize) -> Vec<Vec<Span>> {
    let mut lines = Vec::new();
    let answers =
        [("answer   ", &rollout.answer), ("expected ", &rollout.gold), ("why      ", &rollout.score.reason)];
    for (name, value) in answers {
        let role = if rollout.score.failed() && name.starts_with('a') { Role::Bad } else { Role::Text };
        lines.push(vec![span(Role::Dim, name), span(role, value.trim())]);
    }
    lines.push(Vec::new());
    section(&mut lines, "task", &rollout.task, columns);
    section(&mut lines, "reply", &rollout.reply, columns);
    if app.transcript.show_prompt {
        if !rollout.system_prompt.is_empty() {
            section(&mut lines, "system prompt", &rollout.system_prompt, columns);
        }
        section(&mut lines, "user prompt", &rollout.user_prompt, columns);
    } else {
        lines.push(vec![
            span(Role::Faint, "▸ prompt folded · "),
            span(Role::Key, "t"),
            span(Role::Faint, " shows it"),
        ]);
    }
    lines
}

fn section(lines: &mut Vec<Vec<Span>>, name: &str, body: &str, columns: usize) {
    lines.push(vec![span(Role::Title, name)]);
    text(lines, body, Role::Text, columns);
    lines.push(Vec::new());
}

fn text(lines: &mut Vec<Vec<Span>>, body: &str, role: Role, columns: usize) {
    let (shown, cut) = match body.char_indices().nth(SHOWN) {
        Some((at, _)) => (&body[..at], true),
        None => (body, false),
    };
    let clean = sanitize(shown);
    lines.extend(wrap(clean.trim_end(), columns).into_iter().map(|line| vec![span(role, line)]));
    if cut {
        lines.push(vec![span(Role::Faint, "… cut here; the run's calls/ folder has all of it")]);
    }
}

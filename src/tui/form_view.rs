//! How the launch form and the resume picker look.

use ratatui::layout::Rect;

use super::app::App;
use super::form::{Check, Field, LaunchForm};
use super::overlay_view::{centered, input_line};
use super::paint::{Canvas, Span, rows_of, span, window, wrap_spans};
use super::panes::runs::{age, last_done, mark};
use super::resume::ResumePicker;
use super::services::Checked;
use super::theme::Role;
use crate::config::Key;
use crate::domain::Role as ModelRole;
use crate::plain::{count, dollars, tokens};
use crate::text::{fit, sanitize_line};

const LABEL: usize = 10;
/// Rows of the list of configurations.
const LISTED: usize = 6;

pub fn draw_launch(form: &LaunchForm, canvas: &mut Canvas<'_>) {
    let screen = canvas.buf.area;
    let area = centered(screen, 92, screen.height.saturating_sub(2).min(34));
    canvas.clear(area);
    let right = [span(Role::Dim, "tab next  ctrl-s starts  esc keeps it for later")];
    let title = [span(Role::TitleFocus, "New run")];
    let inner = canvas.boxed(area, true, &title, &right);
    let columns = inner.width as usize;
    let mut rows = rows_of(inner);
    config_field(form, &mut rows, canvas);
    text_field(form, Field::Name, &form.name, "made from the configuration and the time", &mut rows, canvas);
    for text in &form.overrides {
        let Some(row) = rows.next() else { return };
        let line = [span(Role::Dim, fit("", LABEL)), span(Role::Good, "✓ "), span(Role::Text, text.as_str())];
        canvas.line(row, &line);
    }
    text_field(form, Field::Set, &form.set, "key=value; type a part of a key", &mut rows, canvas);
    if form.field == Field::Set {
        let completions = form.completions();
        for (at, key) in completions.iter().enumerate() {
            let Some(row) = rows.next() else { return };
            canvas.line(row, &completion(key));
            if at == form.completion {
                canvas.overlay_style(row, Role::Selection);
            }
        }
        if let Some(key) = form.typed_key() {
            for line in wrap_spans(&about_key(key), columns.saturating_sub(LABEL)) {
                let Some(row) = rows.next() else { return };
                canvas.line(Rect { x: row.x + LABEL as u16, width: row.width - LABEL as u16, ..row }, &line);
            }
        }
    }
    if let Some(row) = rows.next() {
        let label = if form.starting { "starting…" } else { "start" };
        let role = if form.field == Field::Start { Role::TitleFocus } else { Role::Key };
        canvas.line(row, &[span(Role::Dim, fit("", LABEL)), span(role, format!("[ {label} ]"))]);
        if form.field == Field::Start {
            canvas.overlay_style(row, Role::Selection);
        }
    }
    rows.next();
    let findings = findings(form).into_iter().flat_map(|line| wrap_spans(&line, columns));
    for (line, row) in findings.zip(rows) {
        canvas.line(row, &line);
    }
}

fn label(form: &LaunchForm, field: Field, name: &str) -> Span {
    span(if form.field == field { Role::Key } else { Role::Dim }, fit(name, LABEL))
}

fn config_field(form: &LaunchForm, rows: &mut impl Iterator<Item = Rect>, canvas: &mut Canvas<'_>) {
    let Some(row) = rows.next() else { return };
    let name = label(form, Field::Config, "config");
    if form.field != Field::Config {
        let chosen = form.chosen.as_ref().map(|file| file.shown.as_str());
        let words = match chosen {
            Some(shown) => span(Role::Text, shown),
            None => span(Role::Faint, "none chosen"),
        };
        canvas.line(row, &[name, words]);
        return;
    }
    let used = canvas.line(row, &[name]);
    input_line(&form.search, Rect { x: row.x + used, width: row.width.saturating_sub(used), ..row }, canvas);
    let found = form.matches();
    if found.is_empty() {
        let words = match &form.configs_fault {
            Some(fault) => fault.as_str(),
            None if form.configs.is_empty() => {
                "no configurations here: configs/*.toml and those of runs are looked for"
            }
            None => "not on the list; enter takes it as a path",
        };
        if let Some(row) = rows.next() {
            canvas.line(row, &[span(Role::Dim, fit("", LABEL)), span(Role::Warn, words)]);
        }
        return;
    }
    let first = window(form.picked, found.len(), LISTED);
    for (at, file) in found.iter().enumerate().skip(first).take(LISTED) {
        let Some(row) = rows.next() else { return };
        let chosen = form.chosen.as_ref() == Some(*file);
        let mark = if chosen { "✓ " } else { "  " };
        let line =
            [span(Role::Dim, fit("", LABEL)), span(Role::Good, mark), span(Role::Text, file.shown.as_str())];
        canvas.line(row, &line);
        if at == form.picked {
            canvas.overlay_style(row, Role::Selection);
        }
    }
}

fn text_field(
    form: &LaunchForm,
    field: Field,
    input: &super::input::Input,
    hint: &str,
    rows: &mut impl Iterator<Item = Rect>,
    canvas: &mut Canvas<'_>,
) {
    let Some(row) = rows.next() else { return };
    let name = if field == Field::Name { "name" } else { "set" };
    let used = canvas.line(row, &[label(form, field, name)]);
    let rest = Rect { x: row.x + used, width: row.width.saturating_sub(used), ..row };
    if form.field == field {
        input_line(input, rest, canvas);
    } else if input.text().is_empty() {
        canvas.line(rest, &[span(Role::Faint, hint)]);
    } else {
        canvas.line(rest, &[span(Role::Text, input.text())]);
    }
}

fn completion(key: &Key) -> Vec<Span> {
    vec![
        span(Role::Dim, fit("", LABEL)),
        span(Role::Text, fit(key.path, 38)),
        span(Role::Dim, format!(" {}", key.doc)),
    ]
}

fn about_key(key: &Key) -> Vec<Span> {
    let limits = key.kind.limits();
    let limits = if limits.is_empty() { String::new() } else { format!(" {limits}") };
    vec![span(Role::Dim, format!("{} ({}{limits})", key.doc, key.kind.name()))]
}

/// What is wrong, or what would happen.
fn findings(form: &LaunchForm) -> Vec<Vec<Span>> {
    let mut out = Vec::new();
    if let Some(fault) = &form.fault {
        out.extend(fault.lines().map(|line| vec![span(Role::Bad, format!("✗ {line}"))]));
    }
    match &form.check {
        Check::Nothing => out.push(vec![span(Role::Faint, "Choose a configuration with enter.")]),
        Check::Asked => out.push(vec![span(Role::Faint, "checking…")]),
        Check::Bad(complaints) => {
            out.extend(complaints.iter().map(|complaint| vec![span(Role::Bad, format!("✗ {complaint}"))]));
        }
        Check::Good(checked) => out.extend(plan(checked)),
    }
    out
}

fn plan(checked: &Checked) -> Vec<Vec<Span>> {
    let estimate = &checked.estimate;
    let mut out = vec![vec![
        span(Role::Good, "✓ "),
        span(Role::Dim, "run "),
        span(Role::Strong, checked.name.as_str()),
    ]];
    out.extend(checked.warnings.iter().map(|warning| vec![span(Role::Warn, format!("! {warning}"))]));
    out.push(vec![
        span(Role::Strong, count(usize::try_from(estimate.steps()).unwrap_or(usize::MAX), "step")),
        span(
            Role::Dim,
            format!(
                " = {} × {} · batch {} · train {} select {} test {}",
                count(estimate.epochs as usize, "epoch"),
                count(estimate.steps_per_epoch, "step"),
                estimate.batch,
                estimate.sizes.train,
                estimate.sizes.val,
                estimate.sizes.test
            ),
        ),
    ]);
    for role in [ModelRole::Target, ModelRole::Optimizer] {
        let mut line = vec![
            span(Role::Dim, format!("{:<9} at most ", role.name())),
            span(Role::Strong, format!("{} calls", estimate.calls(role))),
        ];
        let stages: Vec<String> = estimate
            .stages
            .iter()
            .filter(|bound| bound.role == role)
            .map(|bound| format!("{} {}", bound.stage.replace('_', " "), bound.calls))
            .collect();
        line.push(span(Role::Dim, format!(" · {}", stages.join(", "))));
        out.push(line);
    }
    let (calls, limit) = checked.budget;
    let mut tokens_line = match checked.experience.runs {
        0 => vec![span(Role::Dim, "tokens: not known, no earlier run of this environment")],
        n => {
            let (known, unknown) = estimate.tokens(&checked.experience);
            let rest =
                if unknown > 0 { format!(", and {unknown} calls of unknown size") } else { String::new() };
            let words = format!(" by {}{rest}", count(n, "earlier run"));
            vec![
                span(Role::Dim, "tokens: at most about "),
                span(Role::Strong, tokens(known)),
                span(Role::Dim, words),
            ]
        }
    };
    for (limit, what) in [(calls, "calls"), (limit, "tokens")] {
        if limit > 0 {
            tokens_line.push(span(Role::Dim, format!(" · budget {} {what}", tokens(limit))));
        }
    }
    out.push(tokens_line);
    out.extend(checked.money.filter(|money| money.high > 0.0).map(|money| {
        let usd = |amount: f64| dollars((amount * 1e9).round() as u64);
        vec![
            span(Role::Dim, "money: about "),
            span(Role::Strong, usd(money.expected)),
            span(
                Role::Dim,
                format!(", at least {}, at most {}, at list prices", usd(money.low), usd(money.high)),
            ),
        ]
    }));
    out
}

pub fn draw_resume(app: &App, picker: &ResumePicker, canvas: &mut Canvas<'_>) {
    let screen = canvas.buf.area;
    let area = centered(screen, 84, screen.height.saturating_sub(2).min(26));
    canvas.clear(area);
    let list = app.resumable(picker);
    let right = [span(Role::Dim, "enter resumes  esc back")];
    let inner = canvas.boxed(area, true, &[span(Role::TitleFocus, "Resume a run")], &right);
    let mut rows = rows_of(inner);
    if let Some(row) = rows.next() {
        input_line(&picker.input, row, canvas);
    }
    if list.is_empty() {
        let words = match &app.runs.fault {
            Some(fault) => fault.as_str(),
            None if !app.runs.heard => "Looking for runs…",
            None => "No run that could go on: none was stopped, failed or killed.",
        };
        if let Some(row) = rows.next() {
            canvas.line(row, &[span(Role::Dim, words)]);
        }
        return;
    }
    let details = 7.min(inner.height / 2);
    let height = inner.height.saturating_sub(1 + details) as usize;
    let place = app.resume_place(picker, &list);
    let first = window(place, list.len(), height);
    let mut drawn = 0;
    for (at, run) in list.iter().enumerate().skip(first).take(height) {
        let Some(row) = rows.next() else { return };
        drawn += 1;
        let (glyph, role) = mark(run.status);
        let idle =
            if run.progress_at > 0 { age(app.now.saturating_sub(run.progress_at)) } else { String::new() };
        let line = [
            span(role, format!("{glyph} {}", fit(&run.standing(), 10))),
            span(Role::Text, fit(&sanitize_line(&run.name), 40)),
            span(Role::Dim, format!(" {:>3}/{:<3} {idle:>5}", run.steps_done, run.total_steps)),
        ];
        canvas.line(row, &line);
        if at == place {
            canvas.overlay_style(row, Role::Selection);
        }
    }
    let Some(run) = list.get(place) else { return };
    let mut lines = vec![vec![span(Role::Faint, "─".repeat(inner.width as usize))]];
    let done = last_done(app, run);
    lines.push(vec![span(Role::Dim, format!("last done:{}", done.trim_start_matches(" ·")))]);
    if let Some(fault) = &picker.fault {
        lines.extend(fault.lines().map(|line| vec![span(Role::Bad, format!("✗ {line}"))]));
    }
    if let Some(problem) = &run.problem {
        lines.push(vec![span(Role::Bad, format!("it failed: {problem}"))]);
    }
    lines.extend(match picker.changes.get(&run.path) {
        _ if picker.starting => vec![vec![span(Role::Active, "resuming…")]],
        None => vec![vec![span(Role::Faint, "comparing its configuration…")]],
        Some(Ok(keys)) if keys.is_empty() => {
            vec![vec![
                span(Role::Good, "✓ "),
                span(Role::Dim, "goes on with the configuration it began with"),
            ]]
        }
        Some(Ok(keys)) => keys.iter().map(|key| vec![span(Role::Warn, format!("changes {key}"))]).collect(),
        Some(Err(why)) if picker.fault.is_none() => {
            why.lines().map(|line| vec![span(Role::Bad, format!("✗ {line}"))]).collect()
        }
        Some(Err(_)) => Vec::new(),
    });
    let lines = lines.iter().flat_map(|line| wrap_spans(line, inner.width as usize));
    let below = Rect { y: inner.y + 1 + drawn, height: inner.height.saturating_sub(1 + drawn), ..inner };
    for (line, row) in lines.zip(rows_of(below)) {
        canvas.line(row, &line);
    }
}

//! The overview: the run at a glance, in blocks of labelled lines; two columns where there is room.

use ratatui::layout::Rect;

use super::{frame, placeholder, waiting_words};
use crate::domain::Origin;
use crate::event::{Client, EndStatus, LogLevel, RunInfo, RunStatus, WatchRole};
use crate::plain::{count, duration, interval, score, signed, skill_folder_line, tokens};
use crate::text::fit;
use crate::tui::action::Action;
use crate::tui::app::{App, Link};
use crate::tui::controls::config::ConfigAction;
use crate::tui::controls::global::GlobalAction;
use crate::tui::header::money;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span, wrap_spans};
use crate::tui::theme::Role;

const LABEL: usize = 11;
/// From this inner width on the blocks stand in two columns.
const WIDE: u16 = 110;

type Lines = Vec<Vec<Span>>;

/// Labelled lines under a title.
struct Block {
    title: &'static str,
    rows: Vec<(&'static str, Vec<Span>)>,
}

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let alerts = app.state.logs.iter().filter(|line| line.code.is_some()).count();
    let right = match alerts {
        0 => Vec::new(),
        n => vec![span(Role::Warn, format!("! {}", count(n, "alert")))],
    };
    let inner = frame(app, Pane::Overview, area, canvas, Vec::new(), &right);
    let Some(info) = &app.state.info else {
        app.overview.scroll.extent.set((0, 0));
        return placeholder(canvas, inner, &[&waiting_words(app)]);
    };
    let blocks = blocks(app, info);
    if inner.width < WIDE {
        let lines: Lines = blocks.iter().flat_map(|block| lines_of(block, inner.width as usize)).collect();
        return scrolled(app, &lines, inner, canvas);
    }
    let left_width = inner.width / 2 - 1;
    let columns = [
        Rect { width: left_width, ..inner },
        Rect { x: inner.x + left_width + 2, width: inner.width - left_width - 2, ..inner },
    ];
    let lines: Vec<Lines> = blocks.iter().map(|block| lines_of(block, columns[0].width as usize)).collect();
    // The left column takes blocks until it has half of all lines.
    let half = lines.iter().map(Vec::len).sum::<usize>().div_ceil(2);
    let (mut left, mut sides) = (Lines::new(), [Lines::new(), Lines::new()]);
    for block in lines {
        if left.len() < half { left.extend(block) } else { sides[1].extend(block) }
    }
    sides[0] = left;
    let longest = sides.iter().map(Vec::len).max().unwrap_or(0);
    app.overview.scroll.extent.set((longest, inner.height as usize));
    let top = app.overview.scroll.top.min(longest.saturating_sub(inner.height as usize));
    for (side, column) in sides.iter().zip(columns) {
        for (row, line) in rows_of(column).zip(side.iter().skip(top)) {
            canvas.line(row, line);
        }
    }
}

fn scrolled(app: &App, lines: &Lines, inner: Rect, canvas: &mut Canvas<'_>) {
    let scroll = &app.overview.scroll;
    scroll.extent.set((lines.len(), inner.height as usize));
    let top = scroll.top.min(lines.len().saturating_sub(inner.height as usize));
    for (row, line) in rows_of(inner).zip(&lines[top..]) {
        canvas.line(row, line);
    }
}

fn lines_of(block: &Block, columns: usize) -> Lines {
    let mut out = Lines::new();
    for (at, (label, spans)) in block.rows.iter().enumerate() {
        // The block's name stands where its first label has none.
        let (role, label) = if at == 0 { (Role::Title, block.title) } else { (Role::Dim, *label) };
        let mut whole = Vec::new();
        if at == 0 && !block.rows[0].0.is_empty() {
            whole.push(dim(format!("{} ", block.rows[0].0)));
        }
        whole.extend_from_slice(spans);
        for (part, line) in wrap_spans(&whole, columns.saturating_sub(LABEL)).into_iter().enumerate() {
            let head = if part == 0 { label } else { "" };
            let mut spans = vec![span(role, fit(head, LABEL))];
            spans.extend(line);
            out.push(spans);
        }
    }
    out
}

fn blocks(app: &App, info: &RunInfo) -> Vec<Block> {
    let mut out = vec![
        Block { title: "run", rows: run(app, info) },
        Block { title: "scores", rows: scores(app) },
        Block { title: "models", rows: models(app, info) },
        Block { title: "usage", rows: usage(app) },
        Block { title: "reviews", rows: reviews(app) },
        Block { title: "skill", rows: skill(app) },
        Block { title: "place", rows: place(app) },
    ];
    out.retain(|block| !block.rows.is_empty());
    out
}

fn text(words: impl Into<String>) -> Span {
    span(Role::Text, words)
}

fn dim(words: impl Into<String>) -> Span {
    span(Role::Dim, words)
}

fn run(app: &App, info: &RunInfo) -> Vec<(&'static str, Vec<Span>)> {
    let mut rows = vec![("", vec![span(Role::Strong, info.name.as_str()), dim("  "), standing(app)])];
    if let Some(origin) = &info.origin {
        let words = match origin {
            Origin::Imported(imported) => format!("imported from {}", imported.folder),
            Origin::Continued(continued) => {
                format!("continues {} behind step {}", continued.folder, continued.last.step)
            }
        };
        rows.push(("origin", vec![text(words)]));
    }
    let at = app.state.at;
    let mut when = vec![text(format!(
        "step {} of {}, epoch {} of {}",
        at.step, info.plan.total_steps, at.epoch, info.plan.epochs
    ))];
    if let Some(phase) = app.state.phase.filter(|_| !app.ended()) {
        when.push(span(Role::Active, format!(", {}", phase.name())));
    }
    when.push(dim(format!(" · {}", duration(app.elapsed()))));
    if let Some(eta) = app.eta() {
        when.push(dim(format!(" · about {} to go", duration(eta))));
    }
    rows.push(("progress", when));
    if let Some((host, pid)) = app.state.host.as_ref().filter(|_| !app.recording) {
        rows.push(("host", vec![text(host.as_str()), dim(format!(", process {pid}"))]));
    }
    rows.push(("clients", clients(app)));
    if let RunStatus::Ended { reason, .. } = &app.state.status
        && !reason.is_empty()
    {
        rows.push(("why", vec![text(reason.as_str())]));
    }
    rows
}

fn standing(app: &App) -> Span {
    match &app.state.status {
        RunStatus::NotStarted => span(Role::Dim, "○ not begun"),
        RunStatus::Running if app.review_label().is_some() => {
            span(Role::Review, format!("◐ {}", app.review_label().unwrap_or_default().to_lowercase()))
        }
        RunStatus::Running if matches!(app.link, Link::Lost { .. }) => span(Role::Bad, "☠ no host"),
        RunStatus::Running => span(Role::Active, "● running"),
        RunStatus::Paused { by } => span(Role::Warn, format!("‖ paused by {}", by.0)),
        RunStatus::Cancelling { by } => span(Role::Warn, format!("◌ stopping, asked by {}", by.0)),
        RunStatus::Ended { status, .. } => match status {
            EndStatus::Completed => span(Role::Good, "✓ completed"),
            EndStatus::Cancelled => span(Role::Warn, "◌ stopped, can be resumed"),
            EndStatus::Failed => span(Role::Bad, "✗ failed, can be resumed"),
            EndStatus::BudgetExhausted => span(Role::Warn, "◌ budget exhausted, can be resumed"),
            EndStatus::Imported => span(Role::Text, "⇤ imported"),
        },
    }
}

fn clients(app: &App) -> Vec<Span> {
    let role = |client: &Client| match client.role {
        WatchRole::Steer => "steers",
        WatchRole::Watch => "watches",
    };
    let mine = match app.unsteerable() {
        Some(why) => why.to_owned(),
        None if app.identity.read_only => {
            format!("this one only watches ({} steers)", app.press_for(Action::Global(GlobalAction::Steer)))
        }
        None => "this one steers".to_owned(),
    };
    let mut out = vec![text(mine)];
    // One of them is this client.
    let mut seen = false;
    let rest: Vec<String> = app
        .clients
        .iter()
        .filter(|client| {
            let is_this = !seen && client.name == app.identity.name;
            seen |= is_this;
            !is_this
        })
        .map(|client| format!("{} {}", client.name.0, role(client)))
        .collect();
    if !rest.is_empty() {
        out.push(dim(format!(" · {}", rest.join(", "))));
    }
    out
}

fn scores(app: &App) -> Vec<(&'static str, Vec<Span>)> {
    let state = &app.state;
    let mut rows = Vec::new();
    if let Some(baseline) = state.baseline_score {
        rows.push(("baseline", vec![text(score(baseline))]));
    }
    if let Some(best) = state.best_score {
        let mut line = vec![span(Role::Strong, score(best))];
        if let Some(baseline) = state.baseline_score {
            let gain = best - baseline;
            let role = if gain > 0.0 { Role::Good } else { Role::Dim };
            line.push(span(role, format!(" {}", signed(gain))));
        }
        line.push(dim(format!(" by {}", state.best_origin())));
        let decision = app.step(state.best_step).and_then(|step| step.gate.as_ref());
        if let Some(gate) = decision.filter(|gate| gate.candidate_hash == state.best_hash) {
            line.push(dim(format!(", over the one before {} 95 %", interval(gate.interval))));
        }
        rows.push(("best", line));
    }
    if let Some(current) = state.current_score {
        let mut line = vec![text(score(current))];
        if state.current_score_stale {
            line.push(span(Role::Warn, " ≈ of an earlier text, measured again before a verdict"));
        } else if state.current_hash == state.best_hash {
            line.push(dim(" the best is the current one"));
        }
        rows.push(("current", line));
    }
    if let Some(test) = &state.test {
        let role = if test.interval.0 > 0.0 { Role::Good } else { Role::Text };
        rows.push((
            "test",
            vec![
                text(format!("{} → {}", score(test.base_hard), score(test.best_hard))),
                span(role, format!(" {}", signed(test.delta))),
                dim(format!(" {} 95 %, {}", interval(test.interval), count(test.n, "item"))),
            ],
        ));
    }
    let tally = app.tally();
    if tally.finished > 0 {
        let words = format!("{} of {} accepted", tally.accepted, count(tally.finished, "step"));
        let mut line = vec![text(words)];
        if tally.overruled > 0 {
            line.push(span(Role::Warn, format!(", {} overruled by people", tally.overruled)));
        }
        rows.push(("gate", line));
    }
    rows
}

fn models(app: &App, info: &RunInfo) -> Vec<(&'static str, Vec<Span>)> {
    let plan = &info.plan;
    let mut rows = vec![
        ("target", vec![text(plan.target.as_str())]),
        ("optimizer", vec![text(plan.optimizer.as_str())]),
        ("judge", vec![text(plan.judge.as_str())]),
        (
            "data",
            vec![
                text(format!("env {}, seed {}", plan.env, info.seed)),
                dim(format!(
                    " · batch {} · train {} select {} test {}",
                    plan.batch_size, plan.train, plan.val, plan.test
                )),
            ],
        ),
    ];
    rows.retain(|(name, _)| *name != "judge" || !plan.judge.is_empty());
    if let Some((rate, note)) = app.live.rate(app.ended()) {
        rows.push(("speed", vec![text(format!("{rate:.1} tok/s")), dim(format!(" {note}"))]));
    }
    if !app.state.settings.is_empty() {
        let keys = [Action::Global(GlobalAction::GoConfig), Action::Config(ConfigAction::Diff)];
        let [pane, diff] = keys.map(|action| app.press_for(action));
        let changes = count(app.state.settings.len(), "change");
        rows.push((
            "settings",
            vec![span(Role::Key, changes), dim(format!(" since the launch ({pane}, {diff})"))],
        ));
    }
    rows
}

fn usage(app: &App) -> Vec<(&'static str, Vec<Span>)> {
    let state = &app.state;
    if state.usage.is_empty() && state.unanswered.is_empty() {
        return Vec::new();
    }
    let head = dim(format!("{:<21}{:>7}{:>9}{:>9}{:>9}", "stage", "calls", "prompt", "reply", "cached"));
    let mut rows = vec![("", vec![head])];
    let line = |name: &str, usage: &crate::domain::Usage, role: Role| {
        let cells = format!(
            "{}{:>7}{:>9}{:>9}{:>9}",
            fit(name, 21),
            usage.calls,
            tokens(usage.prompt_tokens),
            tokens(usage.completion_tokens),
            tokens(usage.cached_tokens)
        );
        vec![span(role, cells)]
    };
    let role_of = |stage: &str| match stage {
        "rollout" | "evaluation" => "target",
        "judge" => "judge",
        _ => "optimizer",
    };
    for role in ["target", "optimizer", "judge"] {
        let of_role = state.usage.iter().filter(|(stage, _)| role_of(stage) == role);
        for (at, (stage, usage)) in of_role.enumerate() {
            rows.push((if at == 0 { role } else { "" }, line(&stage.replace('_', " "), usage, Role::Text)));
        }
    }
    let total = state.total_usage();
    if !state.unanswered.is_empty() {
        rows.push(("", line("without a reply", &state.total_unanswered(), Role::Warn)));
    }
    rows.push(("sum", line("", &total, Role::Strong)));
    if let Some(words) = money(app) {
        rows.push(("money", vec![text(words)]));
    }
    let caps = state.caps();
    let caps: Vec<String> = [
        (caps.max_calls, format!("{} of {} calls", total.calls, caps.max_calls)),
        (caps.max_tokens, format!("{} of {} tokens", tokens(total.tokens()), tokens(caps.max_tokens))),
        (caps.max_seconds, format!("{} at most", duration(caps.max_seconds.saturating_mul(1000)))),
    ]
    .into_iter()
    .filter_map(|(cap, words)| (cap > 0).then_some(words))
    .collect();
    if !caps.is_empty() {
        rows.push(("budget", vec![text(caps.join(" · "))]));
    }
    rows
}

fn reviews(app: &App) -> Vec<(&'static str, Vec<Span>)> {
    let tally = app.tally();
    if tally.reviews == 0 {
        return Vec::new();
    }
    let ways = [
        (tally.submitted, "by people"),
        (tally.timed_out, "timed out"),
        (tally.automatic, "accepted without review"),
        (tally.open, "open"),
    ];
    let ways: Vec<String> =
        ways.iter().filter(|(n, _)| *n > 0).map(|(n, way)| format!("{n} {way}")).collect();
    let words = format!("{}: {}", count(tally.reviews, "review"), ways.join(", "));
    let proposed = dim(format!(
        " · {} proposed, {} reviewed: ✓ {} kept, {} of them ✎ amended, ✗ {} rejected",
        count(tally.proposed, "edit"),
        tally.reviewed,
        tally.kept,
        tally.amended,
        tally.rejected,
    ));
    vec![("", vec![text(words), proposed])]
}

fn skill(app: &App) -> Vec<(&'static str, Vec<Span>)> {
    let state = &app.state;
    let mut rows = Vec::new();
    for (label, hash) in [("current", &state.current_hash), ("best", &state.best_hash)] {
        let Some(skill) = state.skill_text(hash) else { continue };
        if label == "best" && state.best_hash == state.current_hash {
            continue;
        }
        let regions = crate::optim::protected_regions(skill).len();
        let mut line = vec![
            text(format!("{}, {} characters", count(skill.lines().count(), "line"), skill.chars().count())),
            dim(format!(" · {}", hash.chars().take(12).collect::<String>())),
        ];
        if regions > 0 {
            line.push(dim(format!(" · {}", count(regions, "protected region"))));
        }
        rows.push((label, line));
    }
    if let Some(folder) = state.info.as_ref().and_then(|info| info.folder.as_ref()) {
        rows.push(("carries", vec![text(skill_folder_line(folder))]));
    }
    if !rows.is_empty() {
        rows.push(("versions", vec![text(count(state.skills.len(), "text")), dim(" seen so far")]));
    }
    rows
}

fn place(app: &App) -> Vec<(&'static str, Vec<Span>)> {
    let mut rows = Vec::new();
    if !app.run_dir.is_empty() {
        rows.push(("", vec![text(app.run_dir.as_str())]));
    }
    for file in app.watched() {
        rows.push(("made from", vec![text(file.display().to_string())]));
    }
    let worst = app.state.logs.iter().rev().find(|line| line.code.is_some() && line.level >= LogLevel::Warn);
    if let Some(alert) = worst {
        let code = alert.code.as_deref().unwrap_or_default();
        rows.push(("last alert", vec![span(Role::Warn, format!("{code}: {}", alert.message))]));
    }
    rows
}

//! The help: the registry's rows for the focused pane and for everywhere, opposite actions on one row so that most of
//! it fits a small screen. Owns the wording of nothing; draws nothing.

use super::action::{Action, Scope, Spec, spec};
use super::app::App;
use super::controls::curves::CurvesAction as Curves;
use super::controls::global::GlobalAction as Global;
use super::controls::patch::PatchAction as Patch;
use super::layout::Pane;
use super::paint::{Span, span, spans_width};
use super::theme::Role;
use crate::text::fit;

/// Columns for keys.
const KEYS: usize = 17;

/// Actions that undo each other's movement, or do the same to the opposite end.
const OPPOSITES: &[(Action, Action)] = &[
    (Action::Patch(Patch::NextEdit), Action::Patch(Patch::PreviousEdit)),
    (Action::Patch(Patch::NextGroup), Action::Patch(Patch::PreviousGroup)),
    (Action::Patch(Patch::AcceptRest), Action::Patch(Patch::RejectRest)),
    (Action::Curves(Curves::Left), Action::Curves(Curves::Right)),
    (Action::Curves(Curves::PreviousChart), Action::Curves(Curves::NextChart)),
    (Action::Curves(Curves::ZoomOut), Action::Curves(Curves::ZoomIn)),
    (Action::Global(Global::NextPane), Action::Global(Global::PreviousPane)),
    (Action::Global(Global::Down), Action::Global(Global::Up)),
    (Action::Global(Global::Left), Action::Global(Global::Right)),
    (Action::Global(Global::Top), Action::Global(Global::Bottom)),
    (Action::Global(Global::HalfDown), Action::Global(Global::HalfUp)),
    (Action::Global(Global::PageDown), Action::Global(Global::PageUp)),
    (Action::Global(Global::OlderStep), Action::Global(Global::NewerStep)),
    (Action::Global(Global::NextMatch), Action::Global(Global::PreviousMatch)),
];

/// The help in rows of at most `columns`.
pub fn lines(app: &App, columns: usize, filter: &str) -> Vec<Vec<Span>> {
    let filter = filter.to_lowercase();
    let wanted = |line: &Vec<Span>| {
        let text: String = line.iter().map(|(_, text)| text.to_lowercase()).collect();
        filter.split_whitespace().all(|word| text.contains(word))
    };
    let mut lines = Vec::new();
    for scope in [app.arrangement.focus.scope(), Scope::Global] {
        let mut group = if scope == Scope::Global { panes(app) } else { Vec::new() };
        let rows = scope.rows().iter().filter(|spec| !goes_to_pane(spec.action));
        group.extend(rows.filter_map(|spec| row(app, spec, columns)));
        group.retain(wanted);
        if group.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(Vec::new());
        }
        lines.push(vec![span(Role::Title, scope.title())]);
        lines.extend(group);
    }
    lines
}

fn goes_to_pane(action: Action) -> bool {
    use Global::*;
    let Action::Global(action) = action else { return false };
    matches!(
        action,
        GoRuns | GoSteps | GoRollouts | GoPatch | GoGate | GoCurves | GoMachine | GoLogs | GoConfig
    )
}

/// The panes with a number on two rows: their names do not fit one.
fn panes(app: &App) -> Vec<Vec<Span>> {
    let keys = |pane: &Pane| app.keymap.first(pane.action()).unwrap_or_else(|| "–".to_owned());
    let row = |panes: &[Pane], word: &str| {
        let keys: Vec<String> = panes.iter().map(keys).collect();
        let names: Vec<String> = panes.iter().map(|pane| pane.title().to_lowercase()).collect();
        let keys = fit(&format!("  {}", keys.join(" ")), KEYS);
        vec![span(Role::Key, keys), span(Role::Text, format!("{word} {}", names.join(", ")))]
    };
    let (upper, lower) = Pane::NUMBERED.split_at(Pane::NUMBERED.len().div_ceil(2));
    vec![row(upper, "panes"), row(lower, "and")]
}

/// The action that shares a row with `action`, which stands first.
pub fn opposite(action: Action) -> Option<Action> {
    let other = |pair: &(Action, Action)| match *pair {
        (one, other) if one == action => Some(other),
        _ => None,
    };
    OPPOSITES.iter().find_map(other)
}

/// Moves about, so that it can be undone by its opposite and repeated by a count.
pub fn is_motion(action: Action) -> bool {
    let paired = OPPOSITES.iter().any(|(one, other)| action == *one || action == *other);
    paired && spec(action).is_some_and(|spec| !spec.steers)
}

/// `None` for an action that stands on the row of its opposite.
fn row(app: &App, one: &Spec, columns: usize) -> Option<Vec<Span>> {
    if OPPOSITES.iter().any(|(_, second)| *second == one.action) {
        return None;
    }
    let opposite = opposite(one.action).and_then(spec);
    let theirs = opposite.map_or(&[][..], |other| app.keymap.keys(other.action));
    let mut keys = app.keymap.keys(one.action).iter().enumerate().map(|(index, key)| {
        theirs.get(index).map_or_else(|| key.to_string(), |other| format!("{key}/{other}"))
    });
    let first = keys.next().unwrap_or_else(|| "–".to_owned());
    let mut line = vec![span(Role::Key, fit(&format!("  {first}"), KEYS)), span(Role::Text, one.doc)];
    if let Some(other) = opposite {
        line.push(span(Role::Text, format!(" · {}", other.doc)));
    }
    let also: Vec<String> = keys.collect();
    let also = if also.is_empty() { String::new() } else { format!("  · also {}", also.join(" ")) };
    let ctl = one.ctl.map_or(String::new(), |verb| format!("  · ctl {verb}"));
    // Half a verb would only mislead.
    for more in [also, ctl] {
        line.push(span(Role::Faint, more));
        if spans_width(&line) > columns {
            line.pop();
        }
    }
    Some(line)
}

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
const OPPOSITES: [(Action, Action); 13] = [
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
];

/// The help in rows of at most `columns`.
pub fn lines(app: &App, columns: usize) -> Vec<Vec<Span>> {
    let mut lines = Vec::new();
    for scope in [app.arrangement.focus.scope(), Scope::Global] {
        if !lines.is_empty() {
            lines.push(Vec::new());
        }
        lines.push(vec![span(Role::Title, scope.title())]);
        if scope == Scope::Global {
            lines.push(panes());
        }
        let rows = scope.rows().iter().filter(|spec| !goes_to_pane(spec.action));
        lines.extend(rows.filter_map(|spec| row(spec, columns)));
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

fn panes() -> Vec<Span> {
    let numbers: Vec<String> =
        Pane::NUMBERED.iter().filter_map(|pane| Some(pane.number()?.to_string())).collect();
    let names: Vec<String> = Pane::NUMBERED.iter().map(|pane| pane.title().to_lowercase()).collect();
    vec![
        span(Role::Key, fit(&format!("  {}", numbers.join(" ")), KEYS)),
        span(Role::Text, format!("panes {}", names.join(", "))),
    ]
}

/// `None` for an action that stands on the row of its opposite.
fn row(one: &Spec, columns: usize) -> Option<Vec<Span>> {
    if OPPOSITES.iter().any(|(_, second)| *second == one.action) {
        return None;
    }
    let opposite = OPPOSITES.iter().find(|(first, _)| *first == one.action).and_then(|pair| spec(pair.1));
    let mut keys = one.keys.iter().enumerate().map(|(index, key)| {
        let other = opposite.and_then(|other| other.keys.get(index));
        other.map_or_else(|| (*key).to_owned(), |other| format!("{key}/{other}"))
    });
    let first = keys.next().unwrap_or_default();
    let mut line =
        vec![span(Role::Key, fit(&format!("  {}", first.replace(' ', "")), KEYS)), span(Role::Text, one.doc)];
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

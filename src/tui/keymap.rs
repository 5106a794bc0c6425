//! Key notation, chords, and the search for the action a key means in a scope. Knows no action's effect.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Scope, actions};

/// One key press as the registry writes it: `a`, `A`, `ctrl-l`, `enter`, `backtab`, `pgdn`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Press(String);

impl Press {
    /// `None` for keys without a name here (media keys, lone modifiers).
    pub fn of(key: KeyEvent) -> Option<Self> {
        let name = match key.code {
            KeyCode::Char(' ') => "space".to_owned(),
            KeyCode::Char(c) => c.to_string(),
            KeyCode::Enter => "enter".to_owned(),
            KeyCode::Esc => "esc".to_owned(),
            KeyCode::Tab => "tab".to_owned(),
            KeyCode::BackTab => "backtab".to_owned(),
            KeyCode::Up => "up".to_owned(),
            KeyCode::Down => "down".to_owned(),
            KeyCode::Left => "left".to_owned(),
            KeyCode::Right => "right".to_owned(),
            KeyCode::Home => "home".to_owned(),
            KeyCode::End => "end".to_owned(),
            KeyCode::PageUp => "pgup".to_owned(),
            KeyCode::PageDown => "pgdn".to_owned(),
            KeyCode::Backspace => "backspace".to_owned(),
            _ => return None,
        };
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        Some(Self(if ctrl { format!("ctrl-{name}") } else { name }))
    }

    pub fn is(&self, name: &str) -> bool {
        self.0 == name
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Action(Action),
    /// The beginning of a chord.
    Prefix,
    None,
}

/// What `presses` mean: the focused scope first, then the global one.
pub fn lookup(scope: Scope, presses: &[Press]) -> Match {
    let mut prefix = false;
    for wanted in [scope, Scope::Global] {
        for spec in wanted.rows() {
            for keys in spec.keys {
                let mut names = keys.split(' ');
                if !presses.iter().all(|press| names.next().is_some_and(|name| press.is(name))) {
                    continue;
                }
                if names.next().is_none() {
                    return Match::Action(spec.action);
                }
                prefix = true;
            }
        }
    }
    if prefix { Match::Prefix } else { Match::None }
}

/// Two actions that one key sequence, or a sequence and its beginning, would both mean in one focus path.
pub fn conflicts() -> Vec<String> {
    let mut out = Vec::new();
    for (index, first) in actions().enumerate() {
        for second in actions().skip(index + 1) {
            if first.scope != second.scope {
                continue;
            }
            for key in first.keys {
                let clash = second.keys.iter().find(|other| begins(key, other) || begins(other, key));
                if let Some(other) = clash {
                    out.push(format!("{}: `{key}` and {}: `{other}`", first.id, second.id));
                }
            }
        }
    }
    out
}

fn begins(short: &str, long: &str) -> bool {
    let mut names = long.split(' ');
    short.split(' ').all(|name| names.next() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::controls::curves::CurvesAction;
    use crate::tui::controls::global::GlobalAction;
    use crate::tui::controls::patch::PatchAction;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> Press {
        Press::of(KeyEvent::new(code, modifiers)).unwrap()
    }

    fn char(c: char) -> Press {
        press(KeyCode::Char(c), KeyModifiers::NONE)
    }

    #[test]
    fn the_focused_scope_goes_before_the_global_one() {
        assert_eq!(lookup(Scope::Patch, &[char('a')]), Match::Action(Action::Patch(PatchAction::Accept)));
        assert_eq!(lookup(Scope::Steps, &[char('a')]), Match::None);
        assert_eq!(lookup(Scope::Steps, &[char('q')]), Match::Action(Action::Global(GlobalAction::Quit)));
        assert_eq!(
            lookup(Scope::Curves, &[char('h')]),
            Match::Action(Action::Curves(CurvesAction::PreviousChart))
        );
    }

    #[test]
    fn chords_wait_for_their_end() {
        assert_eq!(lookup(Scope::Logs, &[char('g')]), Match::Prefix);
        assert_eq!(
            lookup(Scope::Logs, &[char('g'), char('g')]),
            Match::Action(Action::Global(GlobalAction::Top))
        );
        assert_eq!(lookup(Scope::Logs, &[char('g'), char('x')]), Match::None);
    }

    #[test]
    fn control_keys_have_names() {
        let key = press(KeyCode::Char('l'), KeyModifiers::CONTROL);
        assert_eq!(lookup(Scope::Steps, &[key]), Match::Action(Action::Global(GlobalAction::Repaint)));
    }

    #[test]
    fn no_two_actions_share_a_key_in_one_scope() {
        assert_eq!(conflicts(), Vec::<String>::new());
    }
}

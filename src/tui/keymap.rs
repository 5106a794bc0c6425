//! Which keys mean which action: key notation, chords, the registry's keys or the user's, and the search for what a
//! sequence of presses means in a scope. Knows no action's effect; reads no file (`keymap_file` does).

use std::collections::HashMap;
use std::fmt;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Scope, Spec, actions};

/// Keys with names of more than one letter.
const NAMED: [&str; 14] = [
    "space",
    "enter",
    "esc",
    "tab",
    "backtab",
    "up",
    "down",
    "left",
    "right",
    "home",
    "end",
    "pgup",
    "pgdn",
    "backspace",
];

/// One key press as the registry writes it: `a`, `A`, `ctrl-l`, `enter`, `backtab`, `pgdn`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
            KeyCode::F(number) => format!("f{number}"),
            _ => return None,
        };
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        Some(Self(if ctrl { format!("ctrl-{name}") } else { name }))
    }

    /// # Errors
    /// What is wrong with the name, and a name that would do.
    pub fn parse(name: &str) -> Result<Self, String> {
        let (ctrl, bare) = match name.strip_prefix("ctrl-") {
            Some(bare) => (true, bare),
            None => (false, name),
        };
        let mut chars = bare.chars();
        let single = chars.next().filter(|_| chars.next().is_none());
        let function = bare.strip_prefix('f').and_then(|number| number.parse::<u8>().ok());
        if ctrl && matches!(bare, "i" | "m" | "h" | "[") {
            let same = match bare {
                "i" => "tab",
                "m" => "enter",
                "h" => "backspace",
                _ => "esc",
            };
            return Err(format!("terminals send `{name}` as `{same}`: name that key, or another one"));
        }
        if single.is_some_and(|c| !c.is_control() && c != ' ' && !(ctrl && c.is_uppercase()))
            || NAMED.contains(&bare)
            || function.is_some_and(|number| (1..=12).contains(&number))
        {
            return Ok(Self(name.to_owned()));
        }
        let remedy = match crate::config::nearest(bare, NAMED) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write one letter, `ctrl-x`, `f5`, or a name such as `space` or `pgdn`".to_owned(),
        };
        Err(format!("`{name}` is no key: {remedy}"))
    }

    pub fn name(&self) -> &str {
        &self.0
    }

    pub fn digit(&self) -> Option<usize> {
        self.0.parse().ok().filter(|_| self.0.len() == 1)
    }
}

/// Presses one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keys(Vec<Press>);

impl Keys {
    /// # Errors
    /// As [`Press::parse`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let presses: Vec<Press> = text.split_whitespace().map(Press::parse).collect::<Result<_, _>>()?;
        if presses.is_empty() {
            return Err("a key sequence is empty; an empty list unbinds the action".to_owned());
        }
        Ok(Self(presses))
    }

    pub fn presses(&self) -> &[Press] {
        &self.0
    }

    pub fn begin_with(&self, presses: &[Press]) -> bool {
        self.0.starts_with(presses)
    }

    /// What is still to be pressed after `presses`.
    fn after(&self, presses: &[Press]) -> Option<&[Press]> {
        self.0.strip_prefix(presses)
    }
}

/// Chords of letters are written together (`gg`), as people say them.
impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written(&self.0))
    }
}

pub fn written(presses: &[Press]) -> String {
    let letters = presses.iter().all(|press| press.0.chars().count() == 1);
    let names: Vec<&str> = presses.iter().map(Press::name).collect();
    names.join(if letters { "" } else { " " })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Action(Action),
    /// The beginning of a chord.
    Prefix,
    None,
}

/// Two actions that cannot both have their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    pub first: (Action, Keys),
    pub second: (Action, Keys),
}

/// The keys of every action.
#[derive(Clone, Debug)]
pub struct Keymap {
    bound: HashMap<Action, Vec<Keys>>,
}

impl Default for Keymap {
    /// As the registry has them.
    fn default() -> Self {
        let keys = |spec: &Spec| spec.keys.iter().filter_map(|keys| Keys::parse(keys).ok()).collect();
        Self { bound: actions().map(|spec| (spec.action, keys(spec))).collect() }
    }
}

impl Keymap {
    /// Replaces the keys of an action; none unbinds it.
    pub fn bind(&mut self, action: Action, keys: Vec<Keys>) {
        self.bound.insert(action, keys);
    }

    pub fn keys(&self, action: Action) -> &[Keys] {
        self.bound.get(&action).map_or(&[], Vec::as_slice)
    }

    /// The first key sequence, for places with room for one.
    pub fn first(&self, action: Action) -> Option<String> {
        self.keys(action).first().map(Keys::to_string)
    }

    /// What `presses` mean: the focused scope first, then the global one.
    pub fn lookup(&self, scope: Scope, presses: &[Press]) -> Match {
        let mut prefix = false;
        for (spec, keys) in self.path(scope) {
            if keys.begin_with(presses) {
                if keys.0.len() == presses.len() {
                    return Match::Action(spec.action);
                }
                prefix = true;
            }
        }
        if prefix { Match::Prefix } else { Match::None }
    }

    /// How a chord that began with `presses` can go on: what is left to press, and what it does.
    pub fn continuations(&self, scope: Scope, presses: &[Press]) -> Vec<(String, &'static Spec)> {
        let mut out: Vec<(String, &'static Spec)> = Vec::new();
        for (spec, keys) in self.path(scope) {
            let Some(rest) = keys.after(presses).filter(|rest| !rest.is_empty()) else { continue };
            let rest = written(rest);
            if out.iter().all(|(known, _)| *known != rest) {
                out.push((rest, spec));
            }
        }
        out
    }

    /// Bindings in the order they are tried.
    fn path(&self, scope: Scope) -> impl Iterator<Item = (&'static Spec, &Keys)> {
        let global = (scope != Scope::Global).then_some(Scope::Global);
        std::iter::once(scope)
            .chain(global)
            .flat_map(Scope::rows)
            .flat_map(|spec| self.keys(spec.action).iter().map(move |keys| (spec, keys)))
    }

    /// Key sequences that two actions of one focus path share, or of which one begins the other. A pane's key may
    /// stand before the same key of everywhere, unless the user gave it to the action of everywhere: that would not
    /// work in the pane.
    pub fn clashes(&self) -> Vec<Clash> {
        let all: Vec<(&Spec, &Keys)> =
            actions().flat_map(|spec| self.keys(spec.action).iter().map(move |keys| (spec, keys))).collect();
        let mut out = Vec::new();
        for (index, (first, one)) in all.iter().enumerate() {
            for (second, other) in &all[index + 1..] {
                if first.action == second.action {
                    continue;
                }
                let touch = one.begin_with(&other.0) || other.begin_with(&one.0);
                let wrong = match (first.scope, second.scope) {
                    (a, b) if a == b => touch,
                    (_, Scope::Global) => touch && (one != other || !is_default(second, other)),
                    (Scope::Global, _) => touch && (one != other || !is_default(first, one)),
                    _ => false,
                };
                if wrong {
                    out.push(Clash {
                        first: (first.action, (*one).clone()),
                        second: (second.action, (*other).clone()),
                    });
                }
            }
        }
        out
    }
}

fn is_default(spec: &Spec, keys: &Keys) -> bool {
    spec.keys.iter().any(|default| Keys::parse(default).as_ref() == Ok(keys))
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

    fn lookup(scope: Scope, presses: &[Press]) -> Match {
        Keymap::default().lookup(scope, presses)
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
    fn chords_wait_for_their_end_and_say_how_they_go_on() {
        assert_eq!(lookup(Scope::Logs, &[char('g')]), Match::Prefix);
        let top = Action::Global(GlobalAction::Top);
        assert_eq!(lookup(Scope::Logs, &[char('g'), char('g')]), Match::Action(top));
        assert_eq!(lookup(Scope::Logs, &[char('g'), char('%')]), Match::None);
        let rest = Keymap::default().continuations(Scope::Logs, &[char('g')]);
        assert!(rest.iter().any(|(keys, spec)| keys == "g" && spec.action == top));
    }

    #[test]
    fn control_keys_have_names() {
        let key = press(KeyCode::Char('l'), KeyModifiers::CONTROL);
        assert_eq!(lookup(Scope::Steps, &[key]), Match::Action(Action::Global(GlobalAction::Repaint)));
    }

    #[test]
    fn every_key_of_the_registry_can_be_written_in_a_keymap() {
        for spec in actions() {
            for keys in spec.keys {
                assert!(Keys::parse(keys).is_ok(), "{}: {keys}", spec.id);
            }
        }
    }

    #[test]
    fn names_that_no_terminal_sends_are_refused_with_a_remedy() {
        assert!(Press::parse("entr").unwrap_err().contains("did you mean `enter`?"));
        assert!(Press::parse("ctrl-i").unwrap_err().contains("`tab`"));
        assert!(Press::parse("ctrl-L").is_err() && Press::parse("hello").is_err());
        assert!(Keys::parse("  ").is_err());
    }

    #[test]
    fn no_two_actions_share_a_key_in_one_focus_path() {
        assert_eq!(Keymap::default().clashes(), []);
    }

    #[test]
    fn clashes_are_found_between_scopes_too() {
        let quit = Action::Global(GlobalAction::Quit);
        let count = |keys: &str| {
            let mut keymap = Keymap::default();
            keymap.bind(quit, vec![Keys::parse(keys).unwrap()]);
            keymap.clashes().len()
        };
        assert_eq!(count("ctrl-q"), 0);
        assert!(count("a") > 0, "patch.accept hides it");
        assert!(count("g") > 0, "chords begin so");
        assert!(count("J x") > 0, "patch.next-edit ends it early");
        let mut keymap = Keymap::default();
        keymap.bind(Action::Patch(PatchAction::NextEdit), vec![Keys::parse("j").unwrap()]);
        assert_eq!(keymap.clashes(), [], "a pane's key goes first");
    }
}

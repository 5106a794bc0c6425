//! The user's keymap: action ids with lists of key sequences, laid over the registry's keys. Owns the words for what
//! is wrong in such a file.

use std::collections::HashMap;
use std::path::Path;

use super::action::{Action, actions, spec};
use super::keymap::{Clash, Keymap, Keys};
use super::toml_rows::{Fault, FileError, Plain, Row, read, rows};
use crate::config::nearest;
use crate::tui::controls::global::GlobalAction;

impl Keymap {
    /// # Errors
    /// The file cannot be read, or [`parse`](Self::parse) refuses it.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        Self::parse(&path.display().to_string(), &read(path)?)
    }

    /// `file` is what faults call the text.
    ///
    /// # Errors
    /// Everything that is wrong in it, each with its line and a remedy.
    pub fn parse(file: &str, text: &str) -> Result<Self, FileError> {
        let mut keymap = Self::default();
        let mut faults = Vec::new();
        let mut lines: HashMap<Action, Row> = HashMap::new();
        let empty_section = |row: &Row| {
            let inside = |id: &str| id.strip_prefix(&row.key).is_some_and(|rest| rest.starts_with('.'));
            row.value == Plain::Nothing && actions().any(|spec| inside(spec.id))
        };
        for row in rows(file, text)?.into_iter().filter(|row| !empty_section(row)) {
            match binding(&row) {
                Ok((action, keys)) => {
                    keymap.bind(action, keys);
                    lines.insert(action, row);
                }
                Err(message) => faults.push(row.fault(file, message)),
            }
        }
        let mut begun = Vec::new();
        for clash in keymap.clashes() {
            match beginning(&clash, &lines) {
                Some(of) if begun.contains(&of) => {}
                Some(of) => {
                    faults.extend(chords_fault(file, &of, &keymap, &lines));
                    begun.push(of);
                }
                None => faults.extend(clash_fault(file, &clash, &lines)),
            }
        }
        let leave = Action::Global(GlobalAction::Interrupt);
        if !keymap.keys(leave).iter().any(|keys| keys.to_string() == "ctrl-c")
            && let Some(row) = lines.get(&leave)
        {
            faults.push(row.fault(file, "ctrl-c must stay: it leaves every prompt; add \"ctrl-c\""));
        }
        faults.sort_by_key(|fault| fault.line);
        if faults.is_empty() { Ok(keymap) } else { Err(FileError(faults)) }
    }
}

fn binding(row: &Row) -> Result<(Action, Vec<Keys>), String> {
    let Some(spec) = actions().find(|spec| spec.id == row.key) else {
        return Err(match nearest(&row.key, actions().map(|spec| spec.id)) {
            Some(near) => format!("no such action, did you mean {near}?"),
            None => "no such action; `planish keys` lists them".to_owned(),
        });
    };
    let Plain::Texts(texts) = &row.value else {
        return Err("give a list of key sequences, as [\"g g\", \"home\"]; [] unbinds".to_owned());
    };
    let keys = texts.iter().map(|text| Keys::parse(text)).collect::<Result<_, _>>()?;
    Ok((spec.action, keys))
}

/// The user's key that begins a chord of another action.
fn beginning(clash: &Clash, lines: &HashMap<Action, Row>) -> Option<(Action, Keys)> {
    let begins = |one: &(Action, Keys), other: &(Action, Keys)| {
        lines.contains_key(&one.0) && one.1 != other.1 && other.1.begin_with(one.1.presses())
    };
    [(&clash.first, &clash.second), (&clash.second, &clash.first)]
        .into_iter()
        .find_map(|(one, other)| begins(one, other).then(|| one.clone()))
}

/// One fault for all the chords that a key begins.
fn chords_fault(
    file: &str,
    (action, keys): &(Action, Keys),
    keymap: &Keymap,
    lines: &HashMap<Action, Row>,
) -> Option<Fault> {
    let mut chords: Vec<String> = Vec::new();
    for clash in keymap.clashes() {
        for (one, other) in [(&clash.first, &clash.second), (&clash.second, &clash.first)] {
            if one.0 == *action && one.1 == *keys && other.1.begin_with(keys.presses()) {
                let id = spec(other.0).map_or("", |spec| spec.id);
                chords.push(format!("`{}` ({id})", other.1));
            }
        }
    }
    chords.sort();
    chords.dedup();
    let words =
        format!("`{keys}` begins the chords {}: choose another key, or unbind them", chords.join(", "));
    Some(lines.get(action)?.fault(file, words))
}

/// Said at the line that the user wrote; `None` when neither of the two is the user's.
fn clash_fault(file: &str, clash: &Clash, lines: &HashMap<Action, Row>) -> Option<Fault> {
    let (mine, other) = match lines.contains_key(&clash.first.0) {
        true => (&clash.first, &clash.second),
        false => (&clash.second, &clash.first),
    };
    let row = lines.get(&mine.0)?;
    let rival = spec(other.0)?;
    let what = match mine.1 == other.1 {
        true => format!("`{}` already means {} ({})", mine.1, rival.id, rival.scope.title()),
        false => format!("`{}` and `{}` of {} begin alike", mine.1, other.1, rival.id),
    };
    Some(row.fault(file, format!("{what}: choose another key, or unbind it with {} = []", rival.id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::action::Scope;
    use crate::tui::controls::patch::PatchAction;
    use crate::tui::keymap::{Match, Press};

    fn faults(text: &str) -> String {
        Keymap::parse("keymap.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn ids_get_the_users_keys_and_lose_their_own() {
        let text = "[patch]\naccept = [\"ctrl-y\", \"g y\"]\nreject = []\n\"run.pause\" = [\"f5\"]\n";
        // A quoted key under a table is part of that table.
        assert!(faults(text).contains("keymap.toml:4: patch.run.pause: no such action"));
        let keymap = Keymap::parse("k", &text.replace("\"run.pause\"", "\n[run]\npause")).unwrap();
        let accept = Action::Patch(PatchAction::Accept);
        let press = |name: &str| Press::parse(name).unwrap();
        assert_eq!(keymap.lookup(Scope::Patch, &[press("ctrl-y")]), Match::Action(accept));
        assert_eq!(keymap.lookup(Scope::Patch, &[press("g"), press("y")]), Match::Action(accept));
        assert_eq!(keymap.lookup(Scope::Patch, &[press("a")]), Match::None);
        assert_eq!(keymap.lookup(Scope::Patch, &[press("x")]), Match::None);
        assert_eq!(keymap.first(Action::Patch(PatchAction::Reject)), None);
        assert_eq!(keymap.first(Action::Patch(PatchAction::Undo)).as_deref(), Some("u"), "others stay");
    }

    #[test]
    fn faults_name_line_id_and_remedy() {
        let told = faults("patch.acept = [\"a\"]\npatch.undo = \"u\"\npatch.amend = [\"entr\"]\n");
        assert!(told.contains("keymap.toml:1: patch.acept: no such action, did you mean patch.accept?"));
        assert!(told.contains("keymap.toml:2: patch.undo: give a list"), "{told}");
        assert!(
            told.contains("keymap.toml:3: patch.amend: `entr` is no key: did you mean `enter`?"),
            "{told}"
        );
    }

    #[test]
    fn clashes_are_told_at_the_users_line() {
        let told = faults("\n[patch]\nundo = [\"a\"]\n");
        assert!(
            told.starts_with("keymap.toml:3: patch.undo: `a` already means patch.accept (Patch)"),
            "{told}"
        );
        assert!(told.contains("patch.accept = []"), "{told}");
        let told = faults("app.quit = [\"g\"]");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains("`g` begins the chords `g%`") || told.contains("`gg` ("), "{told}");
        assert!(faults("app.quit = [\"J x\"]").contains("begin alike"));
        assert!(faults("app.interrupt = [\"ctrl-x\"]").contains("ctrl-c must stay"));
        assert!(Keymap::parse("k", "[patch]\n[gate]\n").is_ok(), "empty sections");
        assert!(Keymap::parse("k", "[patch]\nundo = [\"a\"]\naccept = []\n").is_ok());
    }
}

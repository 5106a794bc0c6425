//! The command palette: actions found by their names and descriptions, latest first, and the few commands that take a
//! word after their name. Finds and says; the app does.

use super::action::{Action, Spec, actions, spec};
use super::app::App;
use super::layout::Pane;
use super::msg::Effect;
use super::settings::{ThemeChoice, theme_names};
use super::stages::Stage;
use super::theme::Role;
use crate::config::{find_key, keys, nearest};
use crate::tui::controls::global::GlobalAction;

/// Completions shown for one word.
const COMPLETIONS: usize = 20;

/// One line of the palette.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub keys: String,
    pub name: String,
    pub doc: String,
    pub then: Then,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    Act(Action),
    /// The line is not done: this is typed so far.
    Fill(String),
    Run(Argued),
    /// Why it cannot be done now.
    Refuse(String),
}

/// A command with what was typed after its name.
#[derive(Clone, Debug, PartialEq)]
pub enum Argued {
    Filter(String),
    Theme(ThemeChoice),
    Step(u32),
    Set { key: String, value: String },
}

/// Name, argument, meaning.
const ARGUED: [(&str, &str, &str); 4] = [
    ("filter", "TEXT", "show only what has this text"),
    ("theme", "NAME", "change the colours"),
    ("step", "N", "show a step"),
    ("set", "KEY VALUE", "change a setting of the run"),
];

/// What `query` finds, best first.
pub fn entries(app: &App, query: &str) -> Vec<Entry> {
    let typed = query.trim_start();
    if let Some((name, argument)) = typed.split_once(' ')
        && ARGUED.iter().any(|(known, _, _)| *known == name)
    {
        return argued(app, name, argument.trim());
    }
    let words: Vec<String> = typed.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let mut found: Vec<(usize, usize, Entry)> = Vec::new();
    for (order, spec) in actions().enumerate() {
        let Some(score) = score(spec, &words) else { continue };
        let recent = app.surface.recent.iter().position(|action| *action == spec.action);
        let age = recent.unwrap_or(app.surface.recent.len() + order);
        found.push((score, age, of_action(app, spec)));
    }
    for (name, argument, doc) in ARGUED {
        if words.len() == 1 && name.starts_with(words[0].as_str()) {
            let then = Then::Fill(format!("{name} "));
            let name = format!("{name} {argument}");
            found.push((0, 0, Entry { keys: String::new(), name, doc: doc.to_owned(), then }));
        }
    }
    found.sort_by_key(|(score, age, _)| (*score, *age));
    found.into_iter().map(|(_, _, entry)| entry).collect()
}

fn of_action(app: &App, spec: &'static Spec) -> Entry {
    let then = match app.why_not(spec) {
        Some(why) => Then::Refuse(why),
        None => Then::Act(spec.action),
    };
    let keys = app.keymap.first(spec.action).unwrap_or_default();
    Entry { keys, name: spec.id.to_owned(), doc: spec.doc.to_owned(), then }
}

/// How well all words fit, 0 best; `None`: one does not.
fn score(spec: &Spec, words: &[String]) -> Option<usize> {
    let doc = spec.doc.to_lowercase();
    let mut total = 0;
    for word in words {
        total += if spec.id.split(['.', '-']).any(|part| part.starts_with(word.as_str())) {
            1
        } else if spec.id.contains(word.as_str()) {
            2
        } else if doc.split_whitespace().any(|part| part.starts_with(word.as_str())) {
            3
        } else if doc.contains(word.as_str()) {
            4
        } else if word.chars().count() > 1 && within(word, spec.id) {
            6
        } else {
            return None;
        };
    }
    Some(total)
}

/// Whether the letters of `word` come in this order in `text`, the first one at the start of a part.
fn within(word: &str, text: &str) -> bool {
    text.split('.').enumerate().any(|(at, part)| {
        let rest: String = text.split('.').skip(at).collect::<Vec<_>>().join(".");
        let mut letters = rest.chars();
        part.chars().next() == word.chars().next() && word.chars().all(|c| letters.any(|letter| letter == c))
    })
}

fn entry(name: String, doc: impl Into<String>, then: Then) -> Entry {
    Entry { keys: String::new(), name, doc: doc.into(), then }
}

fn argued(app: &App, name: &str, argument: &str) -> Vec<Entry> {
    match name {
        "filter" if app.can_filter() => {
            let doc = format!("in {}", app.arrangement.focus.title().to_lowercase());
            vec![entry(format!("filter {argument}"), doc, Then::Run(Argued::Filter(argument.to_owned())))]
        }
        "filter" => {
            let why = format!("{} has nothing to filter", app.arrangement.focus.title().to_lowercase());
            vec![entry(format!("filter {argument}"), "", Then::Refuse(why))]
        }
        "theme" => themes(argument),
        "step" => vec![step(app, argument)],
        _ => setting(app, argument),
    }
}

fn themes(argument: &str) -> Vec<Entry> {
    let one = |name: &str, doc: &str| {
        let choice = ThemeChoice::parse(name, std::path::Path::new(""));
        entry(format!("theme {name}"), doc, Then::Run(Argued::Theme(choice)))
    };
    let mut out: Vec<Entry> = theme_names()
        .chain([("auto", "light or dark, as the terminal says")])
        .filter(|(name, _)| name.contains(argument))
        .map(|(name, doc)| one(name, doc))
        .collect();
    if argument.ends_with(".toml") {
        out.push(one(argument, "a theme file"));
    }
    if out.is_empty() {
        let near = nearest(argument, theme_names().map(|(name, _)| name));
        let why =
            near.map_or("no such theme".to_owned(), |near| format!("no such theme, did you mean {near}?"));
        out.push(entry(format!("theme {argument}"), "", Then::Refuse(why)));
    }
    out
}

fn step(app: &App, argument: &str) -> Entry {
    let name = format!("step {argument}");
    let known = |number: &u32| app.step(*number).is_some();
    match argument.parse::<u32>().ok().filter(known) {
        Some(number) => entry(name, "show it", Then::Run(Argued::Step(number))),
        None if app.state.steps.is_empty() => entry(name, "", Then::Refuse("no step has begun".to_owned())),
        None => {
            let last = app.state.steps.last().map_or(0, |step| step.at.step);
            entry(name, "", Then::Refuse(format!("give the number of a step, 1 to {last}")))
        }
    }
}

fn setting(app: &App, argument: &str) -> Vec<Entry> {
    let (key, value) =
        argument.split_once([' ', '=']).map_or((argument, ""), |(key, value)| (key, value.trim()));
    if let Some(known) = find_key(key)
        && !value.is_empty()
    {
        let name = format!("set {key} {value}");
        if let Some(why) = app.why_not_steer() {
            return vec![entry(name, known.doc, Then::Refuse(why))];
        }
        let run = Argued::Set { key: key.to_owned(), value: value.to_owned() };
        return vec![entry(name, known.doc, Then::Run(run))];
    }
    let near = keys().filter(|known| known.path.contains(key)).take(COMPLETIONS);
    let mut out: Vec<Entry> = near
        .map(|known| {
            entry(format!("set {}", known.path), known.doc, Then::Fill(format!("set {} ", known.path)))
        })
        .collect();
    if out.is_empty() {
        let why = match nearest(key, keys().map(|known| known.path)) {
            Some(near) => format!("no such key, did you mean {near}?"),
            None => "no such key; `planish schema` lists them".to_owned(),
        };
        out.push(entry(format!("set {argument}"), "", Then::Refuse(why)));
    }
    out
}

impl App {
    /// Why an action cannot be done now; `None`: it can.
    pub(super) fn why_not(&self, spec: &Spec) -> Option<String> {
        if (spec.enabled)(self) {
            return None;
        }
        let steering = if spec.steers { self.why_not_steer() } else { None };
        Some(steering.unwrap_or_else(|| "nothing for it here".to_owned()))
    }

    /// Why this client cannot steer the run now; `None`: it can.
    pub(super) fn why_not_steer(&self) -> Option<String> {
        if !self.is_attached() {
            Some("no run is attached".to_owned())
        } else if self.ended() {
            Some("the run has ended".to_owned())
        } else if self.identity.read_only {
            Some(format!("read-only, {} steers", self.press_for(Action::Global(GlobalAction::Steer))))
        } else {
            None
        }
    }

    /// What to press for an action, as a part of a sentence; without a key, how the palette finds it.
    pub(super) fn press_for(&self, action: Action) -> String {
        self.keymap
            .first(action)
            .unwrap_or_else(|| spec(action).map_or(String::new(), |spec| format!(":{}", spec.id)))
    }

    pub(super) fn run_argued(&mut self, argued: Argued) -> Vec<Effect> {
        match argued {
            Argued::Filter(text) => self.set_filter(self.arrangement.focus, &text),
            Argued::Theme(theme) => return self.use_theme(theme),
            Argued::Step(number) => {
                if let Some(step) = self.step(number) {
                    self.stage = Some(Stage::Step(step.at.step));
                }
            }
            Argued::Set { key, value } => {
                self.focus(Pane::Config);
                // A value as JSON where it is that, else a text.
                let value = serde_json::from_str(&value).unwrap_or(serde_json::Value::String(value));
                return self.set_setting(&key, value);
            }
        }
        Vec::new()
    }

    /// Does what the palette's selected line says.
    pub(super) fn chosen_in_palette(&mut self, action: Action) -> Vec<Effect> {
        match spec(action).and_then(|spec| self.why_not(spec)) {
            Some(why) => {
                self.say(Role::Warn, why);
                Vec::new()
            }
            None => self.act(action),
        }
    }
}

//! Values that follow from others once all layers are read: roles from the label, models from the backend, forced
//! combinations. What replaces somebody's choice says so. Must not look at the disk.

use toml::Value;

use super::Config;
use super::aliases::canonical_word;
use super::backends::Backend;
use super::error::Origin;
use super::layer::{Entry, Layers};
use super::{keys, roles};

const ROLES: [&str; 2] = ["optimizer", "target"];

pub fn derive(layers: &mut Layers) {
    let filled = backends(layers);
    for (role, filled) in ROLES.into_iter().zip(filled) {
        model(layers, role, filled);
    }
    model(layers, "judge", false);
    budget_control(layers);
}

impl Layers {
    fn text(&self, key: &str) -> Option<&str> {
        self.entries.get(key)?.value.as_str()
    }

    fn follow(&mut self, key: &str, value: &str, origin: Origin) {
        if let Some(key) = keys::find(key) {
            self.entries.insert(key.path, Entry { value: Value::String(value.to_owned()), origin });
        }
    }

    /// Whether somebody chose the value: a written default, as in the resolved config of a run, is no choice.
    pub fn is_set(&self, key: &str) -> bool {
        let built_in = || {
            keys::flatten(&Config::default())
                .into_iter()
                .find(|(row, _)| row.path == key)
                .map(|(_, value)| value)
        };
        self.entries.get(key).is_some_and(|entry| serde_json::to_value(&entry.value).ok() != built_in())
    }
}

/// Fills roles from the label; a role that somebody gave a backend keeps it. Which roles were filled.
fn backends(layers: &mut Layers) -> [bool; 2] {
    let Some(Entry { value: Value::String(label), origin }) = layers.entries.get("model.backend") else {
        return [false; 2];
    };
    let (label, origin) = (label.clone(), origin.clone());
    let from_label = roles::role_backends(&label, None, None);
    let mut filled = [false; 2];
    for ((role, backend), filled) in ROLES.into_iter().zip(from_label).zip(&mut filled) {
        let key = format!("model.{role}.backend");
        let backend = canonical_word(&key, Backend::WORDS, &backend).unwrap_or_default();
        match layers.entries.get(key.as_str()) {
            _ if label.is_empty() => {}
            None => {
                layers.follow(&key, backend, origin.clone());
                *filled = true;
            }
            Some(own) if origin == Origin::CommandLine && own.value.as_str() != Some(backend) => {
                let text = format!(
                    "{origin}: model.backend: has no effect on {key}, which is set itself ({})",
                    own.origin
                );
                layers.warnings.push(text);
            }
            Some(_) => {}
        }
    }
    filled
}

/// A backend with models of its own has one of them. A stock model gives way to it unless both were chosen in one place,
/// as in the configuration that a run keeps, or the model on the command line.
fn model(layers: &mut Layers, role: &str, filled: bool) {
    let (key, backend_key) = (format!("model.{role}.model"), format!("model.{role}.backend"));
    let backend = layers.text(&backend_key).and_then(Backend::from_word).unwrap_or_default();
    if backend == Backend::CopilotChat {
        return copilot_model(layers, role, &key);
    }
    let Some(default) = roles::own_model(backend) else { return };
    let minimax = [format!("model.{role}.minimax_model"), "model.minimax_model".to_owned()];
    let configured = minimax.iter().filter_map(|key| layers.text(key)).find(|model| !model.is_empty());
    let model = match (backend, configured) {
        (Backend::MinimaxChat, Some(model)) => model.to_owned(),
        _ => default.to_owned(),
    };
    let Some(Entry { value, origin }) = layers.entries.get(key.as_str()) else {
        return layers.follow(&key, &model, Origin::BuiltIn);
    };
    let together = !filled
        && layers.entries.get(backend_key.as_str()).is_some_and(|backend| backend.origin.is_layer_of(origin));
    if together || *origin == Origin::CommandLine || !value.as_str().is_some_and(roles::is_stock_model) {
        return;
    }
    let origin = origin.clone();
    let shown = if model.is_empty() { "its own choice" } else { &model };
    layers.warnings.push(format!(
        "{origin}: {key}: no model of {}, which gets {shown}; give -o {key}=… to have another",
        backend.word()
    ));
    layers.follow(&key, &model, origin);
}

/// The two settings that name a model of Copilot's are that role's model.
fn copilot_model(layers: &mut Layers, role: &str, key: &str) {
    let named = format!("model.copilot_chat_{role}_model");
    let Some(Entry { value: Value::String(model), origin }) = layers.entries.get(named.as_str()) else {
        return;
    };
    let (model, origin) = (model.clone(), origin.clone());
    match layers.entries.get(key) {
        _ if model.is_empty() => {}
        Some(own) if own.value.as_str() == Some(model.as_str()) => {}
        Some(own) if !own.value.as_str().is_some_and(roles::is_stock_model) => {
            let text =
                format!("{origin}: {named}: has no effect, since {key} is set itself ({})", own.origin);
            layers.warnings.push(text);
        }
        Some(_) | None => layers.follow(key, &model, origin),
    }
}

/// Whole candidates have no edit budget.
fn budget_control(layers: &mut Layers) {
    const CONTROL: &str = "optimizer.lr_control_mode";
    const MODE: &str = "optimizer.skill_update_mode";
    let Some(Entry { value, origin }) = layers.entries.get(MODE) else { return };
    if value.as_str() != Some("full_rewrite_minibatch") {
        return;
    }
    let cause = origin.clone();
    if layers.is_set(CONTROL)
        && layers.text(CONTROL) != Some("none")
        && let Some(entry) = layers.entries.get(CONTROL)
    {
        let text = format!("{}: {CONTROL}: is none whenever {MODE} is full_rewrite_minibatch", entry.origin);
        layers.warnings.push(text);
    }
    layers.follow(CONTROL, "none", cause);
}

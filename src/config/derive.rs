//! Values that follow from others once all layers are read: roles from the label, models from the backend, forced
//! combinations. What replaces somebody's choice says so. Must not look at the disk.

use toml::Value;

use super::Config;
use super::backends::Backend;
use super::error::Origin;
use super::layer::{Entry, Layers};
use super::{keys, roles};

pub fn derive(layers: &mut Layers) {
    backends(layers);
    for role in ["optimizer", "target"] {
        model(layers, role);
    }
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

/// A role that somebody gave a backend keeps it.
fn backends(layers: &mut Layers) {
    let Some(Entry { value: Value::String(label), origin }) = layers.entries.get("model.backend") else {
        return;
    };
    if label.is_empty() {
        return;
    }
    let (label, origin) = (label.clone(), origin.clone());
    let filled = roles::role_backends(&label, None, None);
    for (role, backend) in ["optimizer", "target"].into_iter().zip(filled) {
        let key = format!("model.{role}.backend");
        let Some(backend) = Backend::from_word(&backend) else { continue };
        match layers.entries.get(key.as_str()) {
            None => layers.follow(&key, backend.word(), origin.clone()),
            Some(own) if origin == Origin::CommandLine && own.value.as_str() != Some(backend.word()) => {
                let text = format!(
                    "{origin}: model.backend: has no effect on {key}, which is set itself ({})",
                    own.origin
                );
                layers.warnings.push(text);
            }
            Some(_) => {}
        }
    }
}

/// A backend with models of its own has one of them.
fn model(layers: &mut Layers, role: &str) {
    let key = format!("model.{role}.model");
    let backend =
        layers.text(&format!("model.{role}.backend")).and_then(Backend::from_word).unwrap_or_default();
    let Some(default) = roles::own_model(backend) else { return };
    let minimax = [format!("model.{role}.minimax_model"), "model.minimax_model".to_owned()];
    let configured = minimax.iter().filter_map(|key| layers.text(key)).find(|model| !model.is_empty());
    let model = match (backend, configured) {
        (Backend::MinimaxChat, Some(model)) => model.to_owned(),
        _ => default.to_owned(),
    };
    match layers.entries.get(key.as_str()) {
        None => layers.follow(&key, &model, Origin::BuiltIn),
        Some(Entry { origin: Origin::CommandLine, .. }) => {}
        Some(Entry { value, origin }) if value.as_str().is_some_and(roles::is_stock_model) => {
            let origin = origin.clone();
            let shown = if model.is_empty() { "its own choice" } else { &model };
            layers.warnings.push(format!(
                "{origin}: {key}: no model of {}, which gets {shown}; give -o {key}=… to have another",
                backend.word()
            ));
            layers.follow(&key, &model, origin);
        }
        Some(_) => {}
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

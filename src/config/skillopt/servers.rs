//! Backend, model, address and key of the two roles, from SkillOpt's label, role backends and Azure settings.

use toml::Value;

use super::flat::{Flat, FlatEntry};
use super::node::{Node, Place};
use super::translate::Translation;
use crate::config::aliases::{canonical_word, secret_variable};
use crate::config::backends::Backend;
use crate::config::keys;
use crate::config::roles;
use crate::config::value::Complaint;

/// Given text under a flat name.
fn given<'a>(flat: &'a Flat, name: &str) -> Option<(&'a str, &'a FlatEntry)> {
    let entry = flat.get(name)?;
    match &entry.entry.node {
        Node::Text(text) if !text.trim().is_empty() => Some((text.trim(), entry)),
        _ => None,
    }
}

/// The first of several names that is given.
fn first<'a>(flat: &'a Flat, names: &[String]) -> Option<(&'a str, &'a FlatEntry)> {
    names.iter().find_map(|name| given(flat, name))
}

/// The environment variable for the first key of several that the file holds.
fn variable(flat: &Flat, names: &[String]) -> Option<String> {
    let held = |name: &&String| flat.get(*name).is_some_and(|flat| !flat.entry.node.is_blank());
    names.iter().find(held).and_then(|name| secret_variable(name))
}

fn text(value: impl Into<String>) -> Option<Value> {
    Some(Value::String(value.into()))
}

impl Translation {
    pub fn roles(&mut self, flat: &Flat) {
        let written = given(flat, "model_backend");
        let label = roles::label(written.map(|(label, _)| label));
        let named = |role: &str| given(flat, &format!("{role}_backend")).map(|(backend, _)| backend);
        let backends = roles::role_backends(&label, named("optimizer"), named("target"));
        let mut azure = false;
        for (role, backend) in ["optimizer", "target"].into_iter().zip(backends) {
            azure |= backend == "openai_chat";
            let mut notes = Vec::new();
            if let Some((label, entry)) = written
                && named(role) != Some(backend.as_str())
                && backend != "openai_chat"
            {
                let meant =
                    if label == "openai" { ", which SkillOpt takes for the Codex program" } else { "" };
                notes.push(format!("from {} = {label:?}{meant} ({})", entry.written, entry.entry.place));
            }
            self.role(flat, role, &backend, &label, notes);
        }
        self.azure_settings(flat, azure);
    }

    fn role(&mut self, flat: &Flat, role: &str, word: &str, label: &str, notes: Vec<String>) {
        let key = |field: &str| keys::find(&format!("model.{role}.{field}")).map_or("", |key| key.path);
        let known = canonical_word(key("backend"), Backend::WORDS, word);
        let Some(backend) = known.and_then(Backend::from_word) else {
            let place = given(flat, &format!("{role}_backend"))
                .map_or(Place::Option, |(_, flat)| flat.entry.place.clone());
            let complaint =
                Complaint::new("an unknown backend", format!("allowed: {}", keys::list(Backend::WORDS)));
            return self.refuse(key("backend"), &place, complaint);
        };
        self.set(key("backend"), text(backend.word()), notes);
        self.model(flat, role, backend, label);
        match (backend, word) {
            (Backend::OpenaiChat, "openai_chat") => {
                self.azure_server(flat, role, key("base_url"), key("api_key_env"))
            }
            (Backend::OpenaiChat, _) => {
                let note = "SkillOpt reads the address from OPENAI_COMPATIBLE_BASE_URL; this is what it takes without one";
                self.set(key("base_url"), text("https://api.openai.com/v1"), vec![note.into()]);
                self.set(key("api_key_env"), text("OPENAI_COMPATIBLE_API_KEY"), Vec::new());
            }
            (Backend::QwenChat, _) => self.key(flat, key("api_key_env"), role, "qwen_chat_api_key"),
            (Backend::MinimaxChat, _) => self.key(flat, key("api_key_env"), role, "minimax_api_key"),
            _ => {}
        }
    }

    /// A stock model gives way to the backend's own unless the command line named it.
    fn model(&mut self, flat: &Flat, role: &str, backend: Backend, label: &str) {
        let Some(key) = keys::find(&format!("model.{role}.model")) else { return };
        let own = roles::own_model(backend).map(|own| match given(flat, "minimax_model") {
            Some((model, _)) if backend == Backend::MinimaxChat => model,
            _ => own,
        });
        let (model, notes) = match (given(flat, &format!("{role}_model")), own) {
            (Some((model, entry)), Some(own))
                if roles::is_stock_model(model) && entry.entry.place != Place::Option =>
            {
                let notes = vec![format!(
                    "was {model}, which {} does not have ({})",
                    backend.word(),
                    entry.entry.place
                )];
                (own, notes)
            }
            (Some((model, entry)), _) if entry.written != key.path => {
                (model, vec![format!("was {} ({})", entry.written, entry.entry.place)])
            }
            (Some((model, _)), _) => (model, Vec::new()),
            (None, own) => {
                let model = own.unwrap_or_else(|| roles::default_model(label));
                (model, vec!["not set there: what SkillOpt takes then".to_owned()])
            }
        };
        self.set(key.path, text(model), notes);
    }

    fn azure_server(&mut self, flat: &Flat, role: &str, base_url: &'static str, api_key_env: &'static str) {
        let both = |name: &str| {
            [format!("{role}_azure_openai_{name}"), format!("azure_openai_{name}"), format!("azure_{name}")]
        };
        let plain = first(flat, &both("auth_mode")).is_some_and(|(mode, _)| {
            ["openai_compatible", "compat", "openai"].contains(&mode.to_lowercase().as_str())
        });
        match first(flat, &both("endpoint")) {
            Some((endpoint, entry)) if endpoint.contains('@') => {
                let why = "holds a user name or password: write the address without it";
                self.drop(&entry.written, &entry.entry.place, why);
                self.set(base_url, None, vec!["the address of the server, up to and including /v1".into()]);
            }
            Some((endpoint, entry)) => {
                let endpoint = endpoint.trim_end_matches('/');
                let address = if plain || endpoint.ends_with("/v1") {
                    endpoint.to_owned()
                } else {
                    format!("{endpoint}/openai/v1")
                };
                let notes = vec![format!("was {} ({})", entry.written, entry.entry.place)];
                self.set(base_url, text(address), notes);
            }
            None => {
                let note = "SkillOpt reads the address from AZURE_OPENAI_ENDPOINT; an Azure resource's ends in /openai/v1";
                self.set(base_url, None, vec![note.into()]);
            }
        }
        match variable(flat, &both("api_key")) {
            Some(variable) => self.set(api_key_env, text(variable), Vec::new()),
            None if plain => {}
            None => self.set(api_key_env, text("AZURE_OPENAI_API_KEY"), Vec::new()),
        }
    }

    /// The variable that is to hold a key which was written in the file.
    fn key(&mut self, flat: &Flat, api_key_env: &'static str, role: &str, name: &str) {
        if let Some(variable) = variable(flat, &[format!("{role}_{name}"), name.to_owned()]) {
            self.set(api_key_env, text(variable), Vec::new());
        }
    }

    /// What of the Azure settings is left once addresses and keys are known.
    fn azure_settings(&mut self, flat: &Flat, used: bool) {
        for (name, flat) in flat {
            let value = match &flat.entry.node {
                Node::Text(text) if !text.is_empty() => text.as_str(),
                _ => continue,
            };
            if !name.contains("azure_") || secret_variable(name).is_some() {
                continue;
            }
            let why = match (
                name.rsplit_once("azure_").map_or("", |(_, rest)| rest.trim_start_matches("openai_")),
                value,
            ) {
                ("api_version", "2024-12-01-preview")
                | ("ad_scope", "https://cognitiveservices.azure.com/.default") => {
                    continue;
                }
                ("endpoint", _) if used => continue,
                ("endpoint", _) => "no role uses it",
                ("api_version", _) => "the address ending in /openai/v1 has no dated versions",
                ("auth_mode", _)
                    if !matches!(
                        value.to_lowercase().as_str(),
                        "azure_cli" | "managed_identity" | "aad" | "azure_ad"
                    ) =>
                {
                    continue;
                }
                _ => "this version logs in to Azure with a key",
            };
            self.drop(&flat.written, &flat.entry.place, why);
        }
    }
}

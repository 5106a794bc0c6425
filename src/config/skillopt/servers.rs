//! Backend, model, address and key of the two roles, from SkillOpt's label, role backends and Azure settings.

use toml::Value;

use super::environment::Environment;
use super::flat::{Flat, FlatEntry};
use super::node::{Node, Place};
use super::translate::Translation;
use crate::config::aliases::{canonical_word, secret_variable};
use crate::config::backends::Backend;
use crate::config::keys;
use crate::config::roles;
use crate::config::value::Complaint;

/// The variable with the address of a server.
const COMPATIBLE: &str = "OPENAI_COMPATIBLE_BASE_URL";

/// Given text under a flat name.
fn given<'a>(flat: &'a Flat, name: &str) -> Option<(&'a str, &'a FlatEntry)> {
    let entry = flat.get(name)?;
    match &entry.entry.node {
        Node::Text(text) if !text.trim().is_empty() => Some((text.trim(), entry)),
        _ => None,
    }
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
    pub fn roles(&mut self, flat: &Flat, env: Environment<'_>) {
        let written = given(flat, "model_backend");
        let label = roles::label(written.map(|(label, _)| label));
        let named = |role: &str| given(flat, &format!("{role}_backend")).map(|(backend, _)| backend);
        let backends = roles::role_backends(&label, named("optimizer"), named("target"));
        if !backends.iter().any(|backend| backend == "openai_chat") {
            self.drop_azure(flat);
        }
        for (role, backend) in ["optimizer", "target"].into_iter().zip(backends) {
            let mut notes = Vec::new();
            if let Some((label, entry)) = written
                && named(role) != Some(backend.as_str())
                && backend != "openai_chat"
            {
                let meant =
                    if label == "openai" { ", which SkillOpt takes for the Codex program" } else { "" };
                notes.push(format!("from {} = {label:?}{meant} ({})", entry.written, entry.entry.place));
            }
            self.role(flat, env, role, &backend, &label, notes);
        }
    }

    fn role(
        &mut self,
        flat: &Flat,
        env: Environment<'_>,
        role: &str,
        word: &str,
        label: &str,
        notes: Vec<String>,
    ) {
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
        if given(flat, &format!("{role}_model")).is_none() {
            self.take_model_variable(env, role, backend);
        }
        let both = |name: &str| [format!("{role}_{name}"), name.to_owned()];
        let held = match backend {
            Backend::OpenaiChat => variable(
                flat,
                &[
                    format!("{role}_azure_openai_api_key"),
                    "azure_openai_api_key".into(),
                    "azure_api_key".into(),
                ],
            ),
            Backend::QwenChat => variable(flat, &both("qwen_chat_api_key")),
            Backend::MinimaxChat => variable(flat, &both("minimax_api_key")),
            _ => None,
        };
        if let Some(variable) = held {
            self.set(key("api_key_env"), text(variable), Vec::new());
        }
        self.take_variables(env, role, backend);
        match backend {
            Backend::OpenaiChat => self.azure_server(role, key("base_url"), key("api_key_env")),
            Backend::OpenaiCompatible
                if self.dropped.iter().any(|dropped| dropped.name.ends_with(COMPATIBLE)) =>
            {
                self.set(
                    key("base_url"),
                    None,
                    vec!["the address of the server, up to and including /v1".into()],
                );
            }
            Backend::OpenaiCompatible if !self.settings.contains_key(key("base_url")) => {
                let note = "SkillOpt reads the address from OPENAI_COMPATIBLE_BASE_URL; this is what it takes without one";
                self.set(key("base_url"), text("https://api.openai.com/v1"), vec![note.into()]);
            }
            Backend::ClaudeChat => {
                let via = keys::find("model.claude_chat_via").map_or("", |key| key.path);
                let note =
                    "to SkillOpt claude_chat is the Claude Code program; \"api\" calls the vendor's server";
                self.set(via, text("cli"), vec![note.into()]);
            }
            _ => {}
        }
        if backend == Backend::OpenaiCompatible && !self.settings.contains_key(key("api_key_env")) {
            self.set(key("api_key_env"), text("OPENAI_COMPATIBLE_API_KEY"), Vec::new());
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

    /// What is missing of an Azure role once file and variables are read.
    fn azure_server(&mut self, role: &str, base_url: &'static str, api_key_env: &'static str) {
        let said = |translation: &Self, field: &str| {
            let keys = [format!("model.{role}.{field}"), format!("model.{field}")];
            let setting = keys.iter().find_map(|key| translation.settings.get(key.as_str()));
            setting.and_then(|setting| setting.value.as_ref()?.as_str().map(str::to_owned))
        };
        if said(self, "azure_openai_endpoint").is_none() {
            let note = "SkillOpt reads the address from AZURE_OPENAI_ENDPOINT: give azure_openai_endpoint, or any server here";
            self.set(base_url, None, vec![note.into()]);
        }
        let mode = said(self, "azure_openai_auth_mode");
        if mode.as_deref() == Some("api_key") && !self.settings.contains_key(api_key_env) {
            self.set(api_key_env, text("AZURE_OPENAI_API_KEY"), Vec::new());
        }
    }

    /// Names what of Azure no role uses.
    fn drop_azure(&mut self, flat: &Flat) {
        for (name, flat) in flat.iter().filter(|(name, _)| is_azure(name)) {
            if self.forget(name) {
                self.drop(&flat.written, &flat.entry.place, "no role uses it");
            }
        }
    }
}

/// A setting of Azure that is no key.
fn is_azure(name: &str) -> bool {
    name.contains("azure_") && secret_variable(name).is_none()
}

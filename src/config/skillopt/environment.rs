//! Environment variables that SkillOpt reads besides its files: values of servers go into the new file with a note, keys
//! only by the name of their variable.

use super::node::{Node, Place};
use super::translate::Translation;
use super::values;
use crate::config::backends::Backend;
use crate::config::keys;

/// Reads a variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable, the field of a role that it sets, and the backends that read it. One with the role's name in front wins.
const VALUES: &[(Backend, &str, &str)] = &[
    (Backend::OpenaiChat, "AZURE_OPENAI_ENDPOINT", "azure_openai_endpoint"),
    (Backend::OpenaiChat, "AZURE_OPENAI_API_VERSION", "azure_openai_api_version"),
    (Backend::OpenaiChat, "AZURE_OPENAI_AUTH_MODE", "azure_openai_auth_mode"),
    (Backend::OpenaiChat, "AZURE_OPENAI_AD_SCOPE", "azure_openai_ad_scope"),
    (
        Backend::OpenaiChat,
        "AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID",
        "azure_openai_managed_identity_client_id",
    ),
    (Backend::OpenaiCompatible, "OPENAI_COMPATIBLE_BASE_URL", "base_url"),
    (Backend::OpenaiCompatible, "OPENAI_COMPATIBLE_TEMPERATURE", "temperature"),
    (Backend::OpenaiCompatible, "OPENAI_COMPATIBLE_MAX_TOKENS", "max_tokens"),
    (Backend::QwenChat, "QWEN_CHAT_BASE_URL", "qwen_chat_base_url"),
    (Backend::QwenChat, "QWEN_CHAT_TEMPERATURE", "qwen_chat_temperature"),
    (Backend::QwenChat, "QWEN_CHAT_MAX_TOKENS", "qwen_chat_max_tokens"),
    (Backend::QwenChat, "QWEN_CHAT_ENABLE_THINKING", "qwen_chat_enable_thinking"),
    (Backend::QwenChat, "QWEN_CHAT_THINKING_MODE", "qwen_chat_thinking_mode"),
    (Backend::MinimaxChat, "MINIMAX_REGION", "minimax_region"),
    (Backend::MinimaxChat, "MINIMAX_BASE_URL", "minimax_base_url"),
    (Backend::MinimaxChat, "MINIMAX_TEMPERATURE", "minimax_temperature"),
    (Backend::MinimaxChat, "MINIMAX_MAX_TOKENS", "minimax_max_tokens"),
    (Backend::MinimaxChat, "MINIMAX_ENABLE_THINKING", "minimax_enable_thinking"),
];

const TIMES: &[(Backend, &str)] = &[
    (Backend::OpenaiCompatible, "OPENAI_COMPATIBLE_TIMEOUT_SECONDS"),
    (Backend::QwenChat, "QWEN_CHAT_TIMEOUT_SECONDS"),
];

const MODELS: &[(Backend, &str)] = &[
    (Backend::OpenaiCompatible, "OPENAI_COMPATIBLE_MODEL"),
    (Backend::QwenChat, "QWEN_CHAT_MODEL"),
    (Backend::MinimaxChat, "MINIMAX_MODEL"),
];

const KEYS: &[(Backend, &str)] = &[
    (Backend::OpenaiChat, "AZURE_OPENAI_API_KEY"),
    (Backend::OpenaiCompatible, "OPENAI_COMPATIBLE_API_KEY"),
    (Backend::QwenChat, "QWEN_CHAT_API_KEY"),
    (Backend::MinimaxChat, "MINIMAX_API_KEY"),
    (Backend::ClaudeChat, "ANTHROPIC_API_KEY"),
    (Backend::ClaudeCodeExec, "ANTHROPIC_API_KEY"),
    (Backend::CursorExec, "CURSOR_API_KEY"),
];

/// The variable that is set, the role's own first, and its value.
fn find(env: Environment<'_>, role: &str, variable: &str) -> Option<(String, String, bool)> {
    let own = format!("{}_{variable}", role.to_uppercase());
    [(own, true), (variable.to_owned(), false)].into_iter().find_map(|(name, is_own)| {
        let value = env(&name).filter(|value| !value.trim().is_empty())?;
        Some((name, value.trim().to_owned(), is_own))
    })
}

fn of_backend<'t>(table: &'t [(Backend, &'t str)], backend: Backend) -> impl Iterator<Item = &'t str> {
    table.iter().filter(move |(of, _)| *of == backend).map(|(_, variable)| *variable)
}

impl Translation {
    /// Takes in what the variables say about a role and its file does not.
    pub fn take_variables(&mut self, env: Environment<'_>, role: &str, backend: Backend) {
        // To SkillOpt both are one backend.
        let backend = if backend == Backend::AzureOpenai { Backend::OpenaiChat } else { backend };
        for (_, variable, field) in VALUES.iter().filter(|(of, _, _)| *of == backend) {
            if let Some((name, value, is_own)) = find(env, role, variable) {
                let shared = format!("model.{field}");
                let said = self.says(&format!("model.{role}.{field}")) || (self.says(&shared) && !is_own);
                if !said {
                    self.take_variable(&format!("model.{role}.{field}"), &name, value);
                }
            }
        }
        for variable in of_backend(TIMES, backend) {
            if let Some((name, value, _)) = find(env, role, variable)
                && !self.says("model.total_timeout_s")
            {
                self.take_variable("model.total_timeout_s", &name, value);
            }
        }
        let key = format!("model.{role}.api_key_env");
        for variable in of_backend(KEYS, backend) {
            if let Some((name, _, _)) = find(env, role, variable)
                && !self.says(&key)
            {
                let note = format!("{name} is set where this was imported");
                self.set_found(&key, toml::Value::String(name), note);
            }
        }
    }

    /// The model that a variable names for a role whose file names none.
    pub fn take_model_variable(&mut self, env: Environment<'_>, role: &str, backend: Backend) {
        for variable in of_backend(MODELS, backend) {
            if let Some((name, value, _)) = find(env, role, variable) {
                self.take_variable(&format!("model.{role}.model"), &name, value);
            }
        }
    }

    fn says(&self, key: &str) -> bool {
        self.settings.get(key).is_some_and(|setting| setting.value.is_some())
    }

    fn take_variable(&mut self, key: &str, name: &str, value: String) {
        let Some(row) = keys::find(key) else { return };
        match values::convert(row, &Node::Text(value)) {
            Ok(Some(value)) if values::holds_credentials(&value) => {
                self.drop(
                    name,
                    &Place::Environment,
                    "holds a user name or password: write the address without it",
                );
            }
            Ok(Some(value)) => {
                self.set_found(
                    key,
                    value,
                    format!("from the environment variable {name} where this was imported"),
                );
            }
            Ok(None) => {}
            Err(complaint) => self.drop(name, &Place::Environment, complaint.problem),
        }
    }

    fn set_found(&mut self, key: &str, value: toml::Value, note: String) {
        if let Some(row) = keys::find(key) {
            self.set(row.path, Some(value), vec![note]);
        }
    }
}

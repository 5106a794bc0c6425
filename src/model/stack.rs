//! Builds the models of a run from its configuration: keys, addresses, and the order of the layers around each model
//! (recording outside, then the budget, then the model). Must not start the local worker: that is handed in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use secrecy::ExposeSecret;

use super::dials::seconds;
use super::edit_search::EditSearch;
use super::{
    Api, ApiKey, AuthStyle, Budget, CallStore, ChatModel, Dialect, Dials, HttpEndpoint, HttpSettings,
    HttpSetupError, Likelihood, LiveSink, Login, Metered, ModelError, Patient, Recorded, Redactor, Replay,
    RetryPolicy, TokenField,
};
use crate::config::{Backend, Misrouted, ModelConfig, RoleConfig, Route, Server};
use crate::domain::{ChatReply, ChatRequest, Delivery, Role};

/// The running local worker, as a model and as a scorer.
#[derive(Clone)]
pub struct LocalBackend {
    pub chat: Arc<dyn ChatModel>,
    pub likelihood: Arc<dyn Likelihood>,
}

/// What a stack is built from.
pub struct StackParts<'a> {
    pub config: &'a ModelConfig,
    /// Folder of the config file: relative paths in it start here.
    pub base_dir: &'a Path,
    /// The run's `calls` folder.
    pub calls_dir: &'a Path,
    pub budget: Arc<Budget>,
    /// Needed when [`ModelStack::needs_local`] says so.
    pub local: Option<LocalBackend>,
    /// Reads an environment variable (a parameter so that tests need no process-wide state).
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// The models of a run.
#[derive(Clone)]
pub struct ModelStack {
    pub target: Arc<dyn ChatModel>,
    pub optimizer: Arc<dyn ChatModel>,
    /// Knows the run's keys; to be applied to any other text that leaves the process.
    pub redactor: Arc<Redactor>,
    /// Limits of their calls, which may change while they work.
    pub dials: Arc<Dials>,
}

/// Why the models cannot be built: always something to change in the configuration or its surroundings.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(
        "model.{role}.api_key_env names the environment variable {variable}, which is not set; set it, or name a file in model.{role}.api_key_file"
    )]
    MissingVariable { role: &'static str, variable: String },
    #[error("model.{role}.api_key_file {}: {why}", file.display())]
    KeyFile { role: &'static str, file: PathBuf, why: String },
    #[error("model.{role} names both api_key_env and api_key_file; keep one")]
    TwoKeys { role: &'static str },
    #[error("{}", lines(role, wrong))]
    Misrouted { role: &'static str, wrong: Vec<Misrouted> },
    #[error("model.{role}: {source}")]
    Http { role: &'static str, source: HttpSetupError },
    #[error("model.{role}.backend = \"{backend}\" needs the local worker, which was not started")]
    NoWorker { role: &'static str, backend: &'static str },
    #[error(
        "model.{role}.backend = \"{backend}\" is not part of this version; use openai_chat with the address of a server, or local"
    )]
    NotInThisVersion { role: &'static str, backend: &'static str },
    #[error("model.replay_from: {0}")]
    Replay(ModelError),
    #[error(transparent)]
    Store(ModelError),
}

impl ModelStack {
    /// Whether the local worker must run: as a model, or as the scorer of the edit search.
    pub fn needs_local(config: &ModelConfig) -> bool {
        config.replay_from.is_empty()
            && [&config.target, &config.optimizer]
                .iter()
                .any(|role| matches!(role.backend, Backend::Local | Backend::EditSearch))
    }

    /// # Errors
    /// See [`SetupError`]; nothing has been called yet.
    pub fn build(parts: &StackParts<'_>) -> Result<Self, SetupError> {
        let config = parts.config;
        if !config.replay_from.is_empty() {
            let store = CallStore::new(parts.base_dir.join(&config.replay_from));
            let open = |role| Replay::open(store.clone(), role).map_err(SetupError::Replay);
            let (target, optimizer) = (open(Role::Target)?, open(Role::Optimizer)?);
            let redactor = Arc::new(Redactor::new([]));
            let (target, optimizer) = (Arc::new(target), Arc::new(optimizer));
            return Ok(Self { target, optimizer, redactor, dials: Arc::new(Dials::of(config)) });
        }
        let target_key = parts.key(Role::Target, &config.target)?;
        let optimizer_key = parts.key(Role::Optimizer, &config.optimizer)?;
        let keys = [&target_key, &optimizer_key]
            .into_iter()
            .flatten()
            .map(|key| key.secret.expose_secret().to_owned());
        let redactor = Arc::new(Redactor::new(keys));
        let dials = Arc::new(Dials::of(config));
        Ok(Self {
            target: parts.role(Role::Target, &config.target, target_key, &redactor, &dials)?,
            optimizer: parts.role(Role::Optimizer, &config.optimizer, optimizer_key, &redactor, &dials)?,
            redactor,
            dials,
        })
    }
}

impl StackParts<'_> {
    fn role(
        &self,
        role: Role,
        config: &RoleConfig,
        key: Option<ApiKey>,
        redactor: &Arc<Redactor>,
        dials: &Arc<Dials>,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let route =
            self.config.route(role).map_err(|wrong| SetupError::Misrouted { role: role.name(), wrong })?;
        match route {
            Route::Server(server) => {
                let settings = self.http_settings(role, config, server, key);
                let endpoint = HttpEndpoint::new(settings, Arc::clone(redactor), Arc::clone(dials))
                    .map_err(|source| SetupError::Http { role: role.name(), source })?;
                let (dials, budget) = (Arc::clone(dials), Arc::clone(&self.budget));
                let policy = RetryPolicy::default();
                let model = Patient::new(Arc::new(endpoint), policy, dials, budget, Arc::clone(redactor));
                self.layered(model, role, redactor)
            }
            Route::Local => {
                let model = Shared(self.local(role, "local")?.chat);
                self.layered(Metered::new(model, Arc::clone(&self.budget)), role, redactor)
            }
            Route::EditSearch => {
                let local = self.local(role, "edit_search")?;
                let model = EditSearch::new(local.likelihood, local.chat.label());
                self.layered(Metered::new(model, Arc::clone(&self.budget)), role, redactor)
            }
            Route::Azure(_) | Route::Program(_) | Route::Handoff => {
                Err(SetupError::NotInThisVersion { role: role.name(), backend: config.backend.word() })
            }
        }
    }

    fn layered<M: ChatModel + 'static>(
        &self,
        model: M,
        role: Role,
        redactor: &Arc<Redactor>,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let recorded = Recorded::new(model, role, CallStore::new(self.calls_dir), Arc::clone(redactor));
        Ok(Arc::new(recorded.map_err(SetupError::Store)?))
    }

    fn local(&self, role: Role, backend: &'static str) -> Result<LocalBackend, SetupError> {
        self.local.clone().ok_or(SetupError::NoWorker { role: role.name(), backend })
    }

    fn http_settings(
        &self,
        role: Role,
        config: &RoleConfig,
        server: Server,
        key: Option<ApiKey>,
    ) -> HttpSettings {
        let models = self.config;
        // The vendor's own API refuses `max_tokens` for newer models; most other servers know only that.
        let token_field = match server.base_url.contains("//api.openai.com") {
            true => TokenField::MaxCompletionTokens,
            false => TokenField::MaxTokens,
        };
        let dialect = Dialect {
            name: "openai_compatible".into(),
            api: Api::Chat,
            base_url: String::new(),
            hosts: Vec::new(),
            auth: AuthStyle::Bearer,
            key_env: String::new(),
            token_field,
        };
        HttpSettings {
            dialect,
            base_url: server.base_url,
            model: server.model,
            login: key.map_or(Login::None, Login::Key),
            stream: config.stream,
            effort: models.effort(role),
            rewrite_effort: models.reasoning.rewrite_reasoning_effort,
            connect_timeout: seconds(models.connect_timeout_s),
        }
    }

    fn key(&self, role: Role, config: &RoleConfig) -> Result<Option<ApiKey>, SetupError> {
        let (role_, role) = (role, role.name());
        match (config.api_key_env.as_str(), config.api_key_file.as_str()) {
            _ if !matches!(self.config.route(role_), Ok(Route::Server(_))) => Ok(None),
            ("", "") => Ok(None),
            ("", file) => {
                let file = self.base_dir.join(file);
                let secret = match std::fs::read_to_string(&file) {
                    Ok(text) => text.trim().to_owned(),
                    Err(error) => return Err(SetupError::KeyFile { role, file, why: error.to_string() }),
                };
                if secret.is_empty() {
                    return Err(SetupError::KeyFile { role, file, why: "the file is empty".into() });
                }
                Ok(Some(ApiKey { secret: secret.into(), origin: format!("file {}", file.display()) }))
            }
            (variable, "") => match (self.env)(variable).map(|text| text.trim().to_owned()) {
                Some(secret) if !secret.is_empty() => {
                    let origin = format!("environment variable {variable}");
                    Ok(Some(ApiKey { secret: secret.into(), origin }))
                }
                Some(_) | None => Err(SetupError::MissingVariable { role, variable: variable.to_owned() }),
            },
            (_, _) => Err(SetupError::TwoKeys { role }),
        }
    }
}

fn lines(role: &str, wrong: &[Misrouted]) -> String {
    let line = |Misrouted { field, problem, remedy }: &Misrouted| {
        format!("model.{role}.{field}: {problem}; {remedy}")
    };
    wrong.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// One worker behind several roles.
struct Shared(Arc<dyn ChatModel>);

impl ChatModel for Shared {
    fn label(&self) -> &str {
        self.0.label()
    }

    fn delivery(&self) -> Delivery {
        self.0.delivery()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        self.0.chat(request, live)
    }
}

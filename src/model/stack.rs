//! Builds the models of a run from its configuration: keys, addresses, and the order of the layers around each model
//! (recording outside, then the budget, then the model). Must not start the local worker: that is handed in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use secrecy::ExposeSecret;

use super::dials::seconds;
use super::edit_search::EditSearch;
use super::{
    Api, ApiKey, Breakers, Budget, CallStore, ChatModel, Dialect, DialectError, Dialects, Dials, Endpoint,
    HttpEndpoint, HttpSettings, HttpSetupError, Likelihood, Limiters, LiveSink, Login, Metered, ModelError,
    NoPrice, Patient, Quota, Recorded, Redactor, Replay, RetryPolicy,
};
use crate::config::{Backend, ModelConfig, RoleConfig};
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
    /// Where their calls hold when a host is down.
    pub breakers: Arc<Breakers>,
}

/// What the roles of a run share.
struct Commons {
    redactor: Arc<Redactor>,
    dials: Arc<Dials>,
    limiters: Limiters,
    breakers: Arc<Breakers>,
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
    #[error("model.{role}.{key} is empty; {remedy}")]
    Missing { role: &'static str, key: &'static str, remedy: &'static str },
    #[error("model.{role}: {source}")]
    Http { role: &'static str, source: HttpSetupError },
    #[error(
        "model.target.backend = \"edit_search\": the edit search is no model; it serves the optimizer only"
    )]
    EditSearchTarget,
    #[error("model.{role}.backend = \"{backend}\" needs the local worker, which was not started")]
    NoWorker { role: &'static str, backend: &'static str },
    #[error(
        "model.{role}.backend = \"{backend}\" is not part of this version; use openai_chat with the address of a server, or local"
    )]
    NotInThisVersion { role: &'static str, backend: &'static str },
    #[error("model.dialects: {0}")]
    Dialects(DialectError),
    #[error("model.{role}.model: {source}")]
    NoPrice { role: &'static str, source: NoPrice },
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
            let (dials, breakers) = (Arc::new(Dials::of(config)), Arc::default());
            return Ok(Self { target, optimizer, redactor, dials, breakers });
        }
        let target_key = parts.key(Role::Target, &config.target)?;
        let optimizer_key = parts.key(Role::Optimizer, &config.optimizer)?;
        let keys = [&target_key, &optimizer_key]
            .into_iter()
            .flatten()
            .map(|key| key.secret.expose_secret().to_owned());
        let commons = Commons {
            redactor: Arc::new(Redactor::new(keys)),
            dials: Arc::new(Dials::of(config)),
            limiters: Limiters::default(),
            breakers: Arc::default(),
        };
        let target = parts.role(Role::Target, &config.target, target_key, &commons)?;
        let optimizer = parts.role(Role::Optimizer, &config.optimizer, optimizer_key, &commons)?;
        let Commons { redactor, dials, breakers, .. } = commons;
        Ok(Self { target, optimizer, redactor, dials, breakers })
    }
}

impl StackParts<'_> {
    fn role(
        &self,
        role: Role,
        config: &RoleConfig,
        key: Option<ApiKey>,
        commons: &Commons,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let Commons { redactor, dials, .. } = commons;
        match config.backend {
            Backend::OpenaiChat => {
                let settings = self.http_settings(role.name(), config, key)?;
                let prefix_cache = settings.dialect.prefix_cache;
                let endpoint = HttpEndpoint::new(settings, Arc::clone(redactor), Arc::clone(dials))
                    .map_err(|source| SetupError::Http { role: role.name(), source })?;
                let model = self.patient(role, config, Arc::new(endpoint), commons)?;
                let model = model.warming_up(config.warm_up.unwrap_or(prefix_cache));
                self.layered(model, role, redactor)
            }
            Backend::Local => {
                let model = Shared(self.local(role, "local")?.chat);
                self.layered(Metered::new(model, Arc::clone(&self.budget)), role, redactor)
            }
            Backend::EditSearch => {
                if role == Role::Target {
                    return Err(SetupError::EditSearchTarget);
                }
                let local = self.local(role, "edit_search")?;
                let model = EditSearch::new(local.likelihood, local.chat.label());
                self.layered(Metered::new(model, Arc::clone(&self.budget)), role, redactor)
            }
            Backend::ClaudeChat
            | Backend::QwenChat
            | Backend::MinimaxChat
            | Backend::CopilotChat
            | Backend::CodexExec
            | Backend::ClaudeCodeExec
            | Backend::CursorExec
            | Backend::CopilotExec => {
                Err(SetupError::NotInThisVersion { role: role.name(), backend: config.backend.word() })
            }
        }
    }

    /// An endpoint with everything around its attempts.
    fn patient(
        &self,
        role: Role,
        config: &RoleConfig,
        endpoint: Arc<dyn Endpoint>,
        commons: &Commons,
    ) -> Result<Patient, SetupError> {
        let tariff = self.budget.tariff(&config.model);
        let tariff = tariff.map_err(|source| SetupError::NoPrice { role: role.name(), source })?;
        let limiter = commons.limiters.of(&endpoint.account(), config.max_concurrency);
        let breaker = commons.breakers.of(endpoint.host());
        let quota = Quota::new(config.max_concurrency, config.requests_per_minute, config.tokens_per_minute);
        let (dials, redactor) = (Arc::clone(&commons.dials), Arc::clone(&commons.redactor));
        let budget = Arc::clone(&self.budget);
        Ok(Patient::new(endpoint, RetryPolicy::default(), dials, budget, redactor)
            .at_prices(tariff)
            .sharing(limiter, breaker)
            .within(quota))
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
        role: &'static str,
        config: &RoleConfig,
        key: Option<ApiKey>,
    ) -> Result<HttpSettings, SetupError> {
        if config.base_url.is_empty() {
            let remedy = "give the server's address up to and including /v1";
            return Err(SetupError::Missing { role, key: "base_url", remedy });
        }
        if config.model.is_empty() {
            let remedy = "give the model's name as the server knows it";
            return Err(SetupError::Missing { role, key: "model", remedy });
        }
        let models = self.config;
        let table = Dialects::built_in().map_err(SetupError::Dialects)?;
        let address = config.base_url.as_str();
        let dialect = table.for_address(address).filter(|row| row.api == Api::Chat);
        let dialect = dialect.cloned().unwrap_or_else(|| Dialect::plain("openai_compatible"));
        let login = key.map_or(Login::None, Login::Key);
        Ok(HttpSettings {
            stream: config.stream,
            effort: models.reasoning.reasoning_effort,
            rewrite_effort: models.reasoning.rewrite_reasoning_effort,
            connect_timeout: seconds(models.connect_timeout_s),
            ..HttpSettings::new(dialect, address, config.model.as_str(), login)
        })
    }

    fn key(&self, role: Role, config: &RoleConfig) -> Result<Option<ApiKey>, SetupError> {
        let role = role.name();
        match (config.api_key_env.as_str(), config.api_key_file.as_str()) {
            _ if config.backend != Backend::OpenaiChat => Ok(None),
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

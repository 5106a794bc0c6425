//! Builds the models of a run from its configuration: keys, addresses, and the order of the layers around each model
//! (recording outside, then the budget, then the model). Must not start the local worker: that is handed in.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use secrecy::ExposeSecret;

use super::dials::seconds;
use super::edit_search::EditSearch;
use super::secret::{KeyError, KeySource};
use super::{
    Api, ApiKey, AuthStyle, Budget, CallStore, ChatModel, Dialect, Dials, HttpEndpoint, HttpSettings,
    HttpSetupError, Likelihood, LiveSink, Login, Metered, ModelError, Patient, Recorded, Redactor, Replay,
    RetryPolicy, TokenField,
};
use crate::config::{Azure, AzureLogin, Backend, Misrouted, ModelConfig, RoleConfig, Route, Server};
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
    pub env: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// The environment asks a judge.
    pub judged: bool,
}

/// The models of a run.
#[derive(Clone)]
pub struct ModelStack {
    pub target: Arc<dyn ChatModel>,
    pub optimizer: Arc<dyn ChatModel>,
    /// Where the environment asks one.
    pub judge: Option<Arc<dyn ChatModel>>,
    /// Knows the run's keys; to be applied to any other text that leaves the process.
    pub redactor: Arc<Redactor>,
    /// Limits of their calls, which may change while they work.
    pub dials: Arc<Dials>,
}

/// Why the models cannot be built: always something to change in the configuration or its surroundings.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Key(#[from] KeyError),
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
            && [&config.target, &config.optimizer, &config.judge]
                .iter()
                .any(|role| matches!(role.backend, Backend::Local | Backend::EditSearch))
    }

    /// # Errors
    /// See [`SetupError`]; nothing has been called yet.
    pub async fn build(parts: &StackParts<'_>) -> Result<Self, SetupError> {
        let config = parts.config;
        if !config.replay_from.is_empty() {
            let store = CallStore::new(parts.base_dir.join(&config.replay_from));
            let open = |role| Replay::open(store.clone(), role).map_err(SetupError::Replay);
            return Ok(Self {
                target: Arc::new(open(Role::Target)?),
                optimizer: Arc::new(open(Role::Optimizer)?),
                judge: if parts.judged { Some(Arc::new(open(Role::Judge)?)) } else { None },
                redactor: Arc::new(Redactor::new([])),
                dials: Arc::new(Dials::of(config)),
            });
        }
        let target_key = parts.key(Role::Target).await?;
        let optimizer_key = parts.key(Role::Optimizer).await?;
        let judge_key = if parts.judged { parts.key(Role::Judge).await? } else { None };
        let keys = [&target_key, &optimizer_key, &judge_key]
            .into_iter()
            .flatten()
            .map(|key| key.secret.expose_secret().to_owned());
        let redactor = Arc::new(Redactor::new(keys));
        let dials = Arc::new(Dials::of(config));
        let build = |role, key| parts.role(role, key, &redactor, &dials);
        Ok(Self {
            target: build(Role::Target, target_key)?,
            optimizer: build(Role::Optimizer, optimizer_key)?,
            judge: if parts.judged { Some(build(Role::Judge, judge_key)?) } else { None },
            redactor,
            dials,
        })
    }
}

impl StackParts<'_> {
    fn role(
        &self,
        role: Role,
        key: Option<ApiKey>,
        redactor: &Arc<Redactor>,
        dials: &Arc<Dials>,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let config = self.config.role(role);
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

    async fn key(&self, role: Role) -> Result<Option<ApiKey>, SetupError> {
        let table = format!("model.{}", role.name());
        let route =
            self.config.route(role).map_err(|wrong| SetupError::Misrouted { role: role.name(), wrong })?;
        let takes_key = match route {
            Route::Server(_) | Route::Program(_) | Route::Azure(Azure { auth: AzureLogin::Key, .. }) => true,
            Route::Azure(_) | Route::Local | Route::EditSearch | Route::Handoff => false,
        };
        match KeySource::of(&table, self.config.role(role), self.base_dir)?.filter(|_| takes_key) {
            Some(source) => Ok(Some(source.read(&table, self.env, &key_variables(self.config)).await?)),
            None => Ok(None),
        }
    }
}

/// Every environment variable that holds the key of some role.
pub fn key_variables(config: &ModelConfig) -> Vec<String> {
    let names = Role::ALL.map(|role| config.role(role).api_key_env.clone());
    names.into_iter().filter(|name| !name.is_empty()).collect()
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

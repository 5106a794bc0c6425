//! Builds the models of a run from its configuration: keys, addresses, and the order of the layers around each model
//! (recording outside, then the budget, then the model). Must not start the local worker: that is handed in.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use secrecy::ExposeSecret;

use super::edit_search::EditSearch;
use super::handoff::Handoff;
use super::secret::{KeyError, KeySource};
use super::server::Servers;
use super::{
    ApiKey, Budget, CallStore, ChatModel, DialectError, Dialects, Dials, HttpEndpoint, HttpSettings,
    HttpSetupError, Lessons, Likelihood, LiveSink, Metered, ModelError, Notice, Patient, Recorded, Redactor,
    Replay, RetryPolicy,
};
use crate::config::{Azure, AzureLogin, Backend, Misrouted, ModelConfig, Route};
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
    /// Who is needed; the target always is.
    pub roles: &'a [Role],
    /// Hears what people should know and nothing fails for.
    pub notice: Notice,
}

/// The models of a run; of the roles that were asked for.
#[derive(Clone)]
pub struct ModelStack {
    pub target: Arc<dyn ChatModel>,
    pub optimizer: Option<Arc<dyn ChatModel>>,
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
    #[error("model.dialects: {0}")]
    Dialects(DialectError),
    #[error("model.replay_from: {0}")]
    Replay(ModelError),
    #[error(transparent)]
    Store(ModelError),
}

impl ModelStack {
    /// Whether the local worker must run: as a model, or as the scorer of the edit search.
    pub fn needs_local(config: &ModelConfig, roles: &[Role]) -> bool {
        let is_local =
            |role: &Role| matches!(config.role(*role).backend, Backend::Local | Backend::EditSearch);
        config.replay_from.is_empty() && roles.iter().any(is_local)
    }

    /// # Errors
    /// See [`SetupError`]; nothing has been called yet.
    pub async fn build(parts: &StackParts<'_>) -> Result<Self, SetupError> {
        let config = parts.config;
        if !config.replay_from.is_empty() {
            let store = CallStore::new(parts.base_dir.join(&config.replay_from));
            let open = |role| Replay::open(store.clone(), role).map_err(SetupError::Replay);
            let replay = |role| -> Result<Option<Arc<dyn ChatModel>>, SetupError> {
                Ok(if parts.roles.contains(&role) { Some(Arc::new(open(role)?)) } else { None })
            };
            return Ok(Self {
                target: Arc::new(open(Role::Target)?),
                optimizer: replay(Role::Optimizer)?,
                judge: replay(Role::Judge)?,
                redactor: Arc::new(Redactor::new([])),
                dials: Arc::new(Dials::of(config)),
            });
        }
        let target_key = parts.key(Role::Target).await?;
        let mut others = Vec::new();
        for role in [Role::Optimizer, Role::Judge] {
            others.push(if parts.roles.contains(&role) { parts.key(role).await? } else { None });
        }
        let keys = others.iter().chain([&target_key]).flatten();
        let keys: Vec<String> = keys.map(|key| key.secret.expose_secret().to_owned()).collect();
        let redactor = Arc::new(Redactor::new(keys));
        let dials = Arc::new(Dials::of(config));
        let table = match config.dialects.as_str() {
            "" => Dialects::built_in(),
            file => Dialects::load(&parts.base_dir.join(file)),
        };
        let table = table.map_err(SetupError::Dialects)?;
        let lessons = Lessons::new(Arc::clone(&parts.notice));
        let servers = Servers { config, table, lessons, env: parts.env };
        let build = |role, key| parts.role(role, key, &servers, &redactor, &dials);
        let mut keys = others.into_iter();
        let mut other = |role| {
            let key = keys.next().flatten();
            parts.roles.contains(&role).then(|| build(role, key)).transpose()
        };
        Ok(Self {
            target: build(Role::Target, target_key)?,
            optimizer: other(Role::Optimizer)?,
            judge: other(Role::Judge)?,
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
        servers: &Servers<'_>,
        redactor: &Arc<Redactor>,
        dials: &Arc<Dials>,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let config = self.config.role(role);
        let route =
            self.config.route(role).map_err(|wrong| SetupError::Misrouted { role: role.name(), wrong })?;
        match route {
            Route::Server(server) => {
                self.over_http(role, servers.settings(role, server, key)?, redactor, dials)
            }
            Route::Azure(azure) => self.over_http(role, servers.azure(role, azure, key)?, redactor, dials),
            Route::Local => {
                let model = Shared(self.local(role, "local")?.chat);
                self.layered(Metered::new(model, Arc::clone(&self.budget)), role, redactor)
            }
            Route::EditSearch => {
                let local = self.local(role, "edit_search")?;
                let model = EditSearch::new(local.likelihood, local.chat.label());
                self.layered(Metered::new(model, Arc::clone(&self.budget)), role, redactor)
            }
            Route::Handoff => {
                // Beside the recorded calls, in the folder of the run.
                let folder = self.calls_dir.with_file_name("handoff");
                let (redactor_, notice) = (Arc::clone(redactor), Arc::clone(&self.notice));
                let model =
                    Handoff::new(folder, &config.model, redactor_, notice).map_err(SetupError::Store)?;
                self.layered(Metered::new(model, Arc::clone(&self.budget)), role, redactor)
            }
            Route::Program(_) => {
                Err(SetupError::NotInThisVersion { role: role.name(), backend: config.backend.word() })
            }
        }
    }

    fn over_http(
        &self,
        role: Role,
        settings: HttpSettings,
        redactor: &Arc<Redactor>,
        dials: &Arc<Dials>,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let endpoint = HttpEndpoint::new(settings, Arc::clone(redactor), Arc::clone(dials))
            .map_err(|source| SetupError::Http { role: role.name(), source })?;
        let (dials, budget) = (Arc::clone(dials), Arc::clone(&self.budget));
        let policy = RetryPolicy::default();
        self.layered(
            Patient::new(Arc::new(endpoint), policy, dials, budget, Arc::clone(redactor)),
            role,
            redactor,
        )
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

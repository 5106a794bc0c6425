//! Builds the models of a run from its configuration: keys, and the order of the layers around each model (recording
//! outside, then the budget, then the model). Must not start the local worker: that is handed in.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use secrecy::ExposeSecret;

use super::edit_search::EditSearch;
use super::exec::{ExecEndpoint, ExecError, ExecSettings};
use super::handoff::Handoff;
use super::program::program_settings;
use super::secret::{KeyError, KeySource};
use super::server::Servers;
use super::{
    ApiKey, Breakers, Budget, CallStore, ChatModel, DialectError, Dialects, Dials, Endpoint, HttpEndpoint,
    HttpSettings, HttpSetupError, Lessons, Likelihood, Limiters, LiveSink, Login, Metered, ModelError,
    NoPrice, Notice, Patient, Quota, Recorded, Redactor, Replay, RetryPolicy,
};
use crate::config::{Azure, AzureLogin, Backend, Misrouted, ModelConfig, Program, Route};
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
    /// Who is needed; the target always is.
    pub roles: &'a [Role],
    /// Folder of the config file: relative paths in it start here.
    pub base_dir: &'a Path,
    /// The run's `calls` folder.
    pub calls_dir: &'a Path,
    pub budget: Arc<Budget>,
    /// Needed when [`ModelStack::needs_local`] says so.
    pub local: Option<LocalBackend>,
    /// Reads an environment variable (a parameter so that tests need no process-wide state).
    pub env: &'a (dyn Fn(&str) -> Option<String> + Sync),
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
    /// Where their calls hold when a host is down.
    pub breakers: Arc<Breakers>,
}

/// What the roles of a run share.
struct Commons<'a> {
    servers: Servers<'a>,
    redactor: Arc<Redactor>,
    dials: Arc<Dials>,
    limiters: Limiters,
    breakers: Arc<Breakers>,
}

/// Who would answer a role.
pub enum Outline {
    Server { base_url: String, dialect: String, login: String },
    Program { settings: Box<ExecSettings>, login: String },
    Worker { what: &'static str },
    Handoff,
}

/// Why the models cannot be built: always something to change in the configuration or its surroundings.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("{}", lines(role, wrong))]
    Misrouted { role: &'static str, wrong: Vec<Misrouted> },
    #[error("model.{role}: {why}")]
    Http { role: &'static str, why: HttpSetupError },
    #[error("model.{role}: {why}")]
    Program { role: &'static str, why: ExecError },
    #[error("model.{role}.backend = \"{backend}\" needs the local worker, which was not started")]
    NoWorker { role: &'static str, backend: &'static str },
    #[error("model.dialects: {0}")]
    Dialects(DialectError),
    #[error("model.{role}.model: {why}")]
    NoPrice { role: &'static str, why: NoPrice },
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
        if !parts.config.replay_from.is_empty() {
            return parts.replay();
        }
        let keys = parts.keys().await?;
        let secrets = keys.iter().flatten().map(|key| key.secret.expose_secret().to_owned());
        let commons = parts.commons(Redactor::new(secrets))?;
        let [target_key, optimizer_key, judge_key] = keys;
        let other = |role: Role, key| {
            parts.roles.contains(&role).then(|| parts.recorded(role, key, &commons)).transpose()
        };
        Ok(Self {
            target: parts.recorded(Role::Target, target_key, &commons)?,
            optimizer: other(Role::Optimizer, optimizer_key)?,
            judge: other(Role::Judge, judge_key)?,
            redactor: commons.redactor,
            dials: commons.dials,
            breakers: commons.breakers,
        })
    }
}

impl<'a> StackParts<'a> {
    fn replay(&self) -> Result<ModelStack, SetupError> {
        let store = CallStore::new(self.base_dir.join(&self.config.replay_from));
        let open = |role| -> Result<Arc<dyn ChatModel>, SetupError> {
            Ok(Arc::new(Replay::open(store.clone(), role).map_err(SetupError::Replay)?))
        };
        let other = |role: Role| self.roles.contains(&role).then(|| open(role)).transpose();
        Ok(ModelStack {
            target: open(Role::Target)?,
            optimizer: other(Role::Optimizer)?,
            judge: other(Role::Judge)?,
            redactor: Arc::new(Redactor::new([])),
            dials: Arc::new(Dials::of(self.config)),
            breakers: Arc::default(),
        })
    }

    /// Keys of target, optimizer and judge, as far as they are needed.
    async fn keys(&self) -> Result<[Option<ApiKey>; 3], SetupError> {
        let mut keys = [None, None, None];
        for (key, role) in keys.iter_mut().zip([Role::Target, Role::Optimizer, Role::Judge]) {
            if role == Role::Target || self.roles.contains(&role) {
                *key = self.key(role).await?;
            }
        }
        Ok(keys)
    }

    async fn key(&self, role: Role) -> Result<Option<ApiKey>, SetupError> {
        let table = format!("model.{}", role.name());
        let takes_key = match self.route(role)? {
            Route::Server(_) | Route::Program(_) | Route::Azure(Azure { auth: AzureLogin::Key, .. }) => true,
            Route::Azure(_) | Route::Local | Route::EditSearch | Route::Handoff => false,
        };
        match KeySource::of(&table, self.config.role(role), self.base_dir)?.filter(|_| takes_key) {
            Some(source) => Ok(Some(source.read(&table, self.env, &key_variables(self.config)).await?)),
            None => Ok(None),
        }
    }

    /// What answers a role and how it logs in, without calling it. Its key is read.
    ///
    /// # Errors
    /// As [`ModelStack::build`].
    pub async fn outline(&self, role: Role) -> Result<Outline, SetupError> {
        let key = self.key(role).await?;
        let login = key.as_ref().map_or_else(|| "none".to_owned(), |key| format!("key from {}", key.origin));
        let commons = self.commons(Redactor::new([]))?;
        let server = |settings: HttpSettings| {
            let login = match &settings.login {
                Login::Token(source) => format!("token of {}", source.origin()),
                Login::Key(_) | Login::None => login.clone(),
            };
            Outline::Server { base_url: settings.base_url, dialect: settings.dialect.name, login }
        };
        Ok(match self.route(role)? {
            Route::Server(route) => server(commons.servers.settings(role, route, key)?),
            Route::Azure(route) => server(commons.servers.azure(role, route, key)?),
            Route::Program(program) => {
                let settings = self.program(role, program, key)?;
                Outline::Program { settings: Box::new(settings), login }
            }
            Route::Local => Outline::Worker { what: "the worker planish-torch" },
            Route::EditSearch => {
                Outline::Worker { what: "the built-in edit search, with the worker's likelihoods" }
            }
            Route::Handoff => Outline::Handoff,
        })
    }

    /// The model of a role alone, whose calls are not recorded.
    ///
    /// # Errors
    /// As [`ModelStack::build`].
    pub async fn bare(&self, role: Role) -> Result<Arc<dyn ChatModel>, SetupError> {
        let key = self.key(role).await?;
        let secret = key.as_ref().map(|key| key.secret.expose_secret().to_owned());
        self.paid(role, key, &self.commons(Redactor::new(secret))?)
    }

    fn program(&self, role: Role, program: Program, key: Option<ApiKey>) -> Result<ExecSettings, SetupError> {
        program_settings(self.config, role, program, key, self.base_dir, self.env)
            .map_err(|why| SetupError::Program { role: role.name(), why })
    }

    fn route(&self, role: Role) -> Result<Route, SetupError> {
        self.config.route(role).map_err(|wrong| SetupError::Misrouted { role: role.name(), wrong })
    }

    fn commons(&self, redactor: Redactor) -> Result<Commons<'a>, SetupError> {
        let config = self.config;
        let table = match config.dialects.as_str() {
            "" => Dialects::built_in(),
            file => Dialects::load(&self.base_dir.join(file)),
        };
        let table = table.map_err(SetupError::Dialects)?;
        let lessons = Lessons::new(Arc::clone(&self.notice));
        Ok(Commons {
            servers: Servers { config, table, lessons, env: self.env },
            redactor: Arc::new(redactor),
            dials: Arc::new(Dials::of(config)),
            limiters: Limiters::default(),
            breakers: Arc::default(),
        })
    }

    fn recorded(
        &self,
        role: Role,
        key: Option<ApiKey>,
        commons: &Commons<'_>,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let model = Shared(self.paid(role, key, commons)?);
        let redactor = Arc::clone(&commons.redactor);
        let recorded = Recorded::new(model, role, CallStore::new(self.calls_dir), redactor);
        Ok(Arc::new(recorded.map_err(SetupError::Store)?))
    }

    /// The model of a role with everything but the recording around it.
    fn paid(
        &self,
        role: Role,
        key: Option<ApiKey>,
        commons: &Commons<'_>,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let metered = |model: Arc<dyn ChatModel>| -> Arc<dyn ChatModel> {
            Arc::new(Metered::new(Shared(model), Arc::clone(&self.budget)))
        };
        match self.route(role)? {
            Route::Server(server) => {
                self.over_http(role, commons.servers.settings(role, server, key)?, commons)
            }
            Route::Azure(azure) => self.over_http(role, commons.servers.azure(role, azure, key)?, commons),
            Route::Program(program) => {
                let delivery = if program.as_chat { Delivery::Prompt } else { Delivery::Files };
                let settings = self.program(role, program, key)?;
                let endpoint = ExecEndpoint::new(settings, delivery, Arc::clone(&commons.dials));
                self.patient(role, Arc::new(endpoint), false, commons)
            }
            Route::Local => Ok(metered(self.local(role, "local")?.chat)),
            Route::EditSearch => {
                let local = self.local(role, "edit_search")?;
                Ok(metered(Arc::new(EditSearch::new(local.likelihood, local.chat.label()))))
            }
            Route::Handoff => {
                // Beside the recorded calls, in the folder of the run.
                let folder = self.calls_dir.with_file_name("handoff");
                let (model, redactor) = (&self.config.role(role).model, Arc::clone(&commons.redactor));
                let (notice, budget) = (Arc::clone(&self.notice), Arc::clone(&self.budget));
                let handoff = Handoff::new(folder, model, redactor, notice, budget);
                Ok(Arc::new(handoff.map_err(SetupError::Store)?))
            }
        }
    }

    fn over_http(
        &self,
        role: Role,
        settings: HttpSettings,
        commons: &Commons<'_>,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let caches_prompts = settings.dialect.prefix_cache;
        let (redactor, dials) = (Arc::clone(&commons.redactor), Arc::clone(&commons.dials));
        let endpoint = HttpEndpoint::new(settings, redactor, dials)
            .map_err(|why| SetupError::Http { role: role.name(), why })?;
        self.patient(role, Arc::new(endpoint), caches_prompts, commons)
    }

    /// An endpoint with everything around its attempts.
    fn patient(
        &self,
        role: Role,
        endpoint: Arc<dyn Endpoint>,
        caches_prompts: bool,
        commons: &Commons<'_>,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let config = self.config.role(role);
        let tariff = self.budget.tariff(self.route(role)?.model());
        let tariff = tariff.map_err(|why| SetupError::NoPrice { role: role.name(), why })?;
        let limiter = commons.limiters.of(&endpoint.account(), config.max_concurrency);
        let breaker = commons.breakers.of(endpoint.host());
        let quota = Quota::new(config.max_concurrency, config.requests_per_minute, config.tokens_per_minute);
        let (dials, redactor) = (Arc::clone(&commons.dials), Arc::clone(&commons.redactor));
        let budget = Arc::clone(&self.budget);
        let patient = Patient::new(endpoint, RetryPolicy::default(), dials, budget, redactor)
            .at_prices(tariff)
            .sharing(limiter, breaker)
            .within(quota)
            .warming_up(config.warm_up.unwrap_or(caches_prompts));
        Ok(Arc::new(patient))
    }

    fn local(&self, role: Role, backend: &'static str) -> Result<LocalBackend, SetupError> {
        self.local.clone().ok_or(SetupError::NoWorker { role: role.name(), backend })
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

/// A model that others may hold as well.
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

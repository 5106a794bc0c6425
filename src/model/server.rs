//! From the route of a role to the settings of its server: the row of the dialect table, the address, the login. Must not
//! call anything.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::azure::{AzureCli, Cached, ManagedIdentity, TEST_ENDPOINT};
use super::dialect::{Api, Dialect, Paths};
use super::dials::seconds;
use super::stack::SetupError;
use super::wire::ThinkingMode;
use super::{ApiKey, Dialects, HttpSettings, Lessons, Login};
use crate::config::{
    ApiChoice, Azure, AzureLogin, AzureVersion, DialectChoice, Misrouted, ModelConfig, Server,
    ThinkingMode as Told, needs_responses_api,
};
use crate::domain::Role;

/// What the settings of all servers of a run share.
pub struct Servers<'a> {
    pub config: &'a ModelConfig,
    pub table: Dialects,
    pub lessons: Lessons,
    pub env: &'a (dyn Fn(&str) -> Option<String> + Sync),
}

impl Servers<'_> {
    /// # Errors
    /// A dialect that no row has, or no address.
    pub fn settings(
        &self,
        role: Role,
        server: Server,
        key: Option<ApiKey>,
    ) -> Result<HttpSettings, SetupError> {
        let dialect = self.dialect(role, &server)?;
        let base_url = match server.base_url.as_str() {
            "" if dialect.base_url.is_empty() => {
                let problem = format!("not set, and the dialect {} has no address of its own", dialect.name);
                let remedy = "give the server's address, like http://localhost:8000/v1";
                return Err(misrouted(role, "base_url", problem, remedy));
            }
            "" => dialect.base_url.clone(),
            address => address.to_owned(),
        };
        let login = key.map_or(Login::None, Login::Key);
        self.complete(role, HttpSettings::new(dialect, base_url, server.model, login))
    }

    fn dialect(&self, role: Role, server: &Server) -> Result<Dialect, SetupError> {
        let row = match &server.dialect {
            DialectChoice::Named(name) => return self.row(role, name),
            DialectChoice::OfHost { otherwise } => match self.table.for_address(&server.base_url) {
                Some(row) => row.clone(),
                None => self.row(role, otherwise)?,
            },
        };
        let responses = match server.api {
            ApiChoice::Chat => false,
            ApiChoice::Responses => true,
            // Other servers have such models under chat completions.
            ApiChoice::Unset => row.name == "openai" && needs_responses_api(&server.model),
        };
        if responses && row.api == Api::Chat { self.row(role, "openai_responses") } else { Ok(row) }
    }

    fn row(&self, role: Role, name: &str) -> Result<Dialect, SetupError> {
        self.table.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.table.rows().iter().map(|row| row.name.as_str()).collect();
            let problem = format!("no dialect is called {name:?}");
            let remedy = format!("add it to model.dialects or use one of {}", known.join(", "));
            misrouted(role, "dialect", problem, remedy)
        })
    }

    /// # Errors
    /// A login that cannot be prepared.
    pub fn azure(&self, role: Role, azure: Azure, key: Option<ApiKey>) -> Result<HttpSettings, SetupError> {
        let dialect = match (&azure.version, azure.responses) {
            (AzureVersion::Dated(_), false) => self.row(role, "azure")?,
            (AzureVersion::V1, false) => self.row(role, "azure_v1")?,
            (AzureVersion::Dated(_), true) => self.row(role, "azure_responses")?,
            (AzureVersion::V1, true) => {
                Dialect { paths: Paths::AzureV1, ..self.row(role, "azure_responses")? }
            }
        };
        let login = match azure.auth {
            AzureLogin::Key => key.map_or(Login::None, Login::Key),
            AzureLogin::Cli { scope } => Login::Token(Arc::new(Cached::new(AzureCli::new(&scope)))),
            AzureLogin::ManagedIdentity { scope, client_id } => {
                let endpoint = (self.env)(TEST_ENDPOINT);
                let identity = ManagedIdentity::new(&scope, &client_id, endpoint.as_deref());
                let why = |why| misrouted(role, "azure_openai_auth_mode", why, "use another way to log in");
                Login::Token(Arc::new(Cached::new(identity.map_err(why)?)))
            }
        };
        let mut settings = HttpSettings::new(dialect, azure.endpoint, azure.deployment, login);
        if let AzureVersion::Dated(version) = azure.version {
            settings.api_version = version;
        }
        self.complete(role, settings)
    }

    fn complete(&self, role: Role, settings: HttpSettings) -> Result<HttpSettings, SetupError> {
        let own = self.config.role(role);
        Ok(HttpSettings {
            stream: own.stream,
            effort: self.config.effort(role),
            rewrite_effort: self.config.reasoning.rewrite_reasoning_effort,
            thinking: match self.config.thinking(role) {
                Told::Unset | Told::ServerDefault => ThinkingMode::ServerDefault,
                Told::Enabled => ThinkingMode::Enabled,
                Told::Disabled => ThinkingMode::Disabled,
            },
            thinking_budget: own.thinking_budget,
            extra_body: json(&own.extra_body),
            connect_timeout: seconds(self.config.connect_timeout_s),
            lessons: self.lessons.clone(),
            ..settings
        })
    }
}

fn misrouted(role: Role, field: &'static str, problem: String, remedy: impl Into<String>) -> SetupError {
    SetupError::Misrouted {
        role: role.name(),
        wrong: vec![Misrouted { field, problem, remedy: remedy.into() }],
    }
}

/// Loading lets nothing else through than what JSON can say.
fn json(table: &toml::Table) -> Map<String, Value> {
    match serde_json::to_value(table) {
        Ok(Value::Object(map)) => map,
        Ok(_) | Err(_) => Map::new(),
    }
}

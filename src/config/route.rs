//! What answers a role's calls, worked out of everything that bears on it: the one reading that validation, assembly and
//! the doctor share. Pure; must not know the dialect table, the disk or the environment.

use super::backends::{
    ApiChoice, AzureAuth, AzureOpenai, Backend, ClaudeVia, Effort, MinimaxRegion, ThinkingMode,
};
use super::roles::{check_place, needs_responses_api, own_model};
use super::{Config, ModelConfig, RoleConfig, ScorerKind};
use crate::domain::Role;

/// Who answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    Server(Server),
    Azure(Azure),
    Program(Program),
    /// The worker planish-torch.
    Local,
    EditSearch,
    /// Prompts to files, answers from files.
    Handoff,
}

impl Route {
    /// Name of the model that is asked; "" where there is none to name.
    pub fn model(&self) -> &str {
        match self {
            Route::Server(server) => &server.model,
            Route::Azure(azure) => &azure.deployment,
            Route::Program(program) => &program.model,
            Route::Local | Route::EditSearch | Route::Handoff => "",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    pub dialect: DialectChoice,
    /// Without a slash at its end; empty: that of the dialect.
    pub base_url: String,
    pub model: String,
    pub api: ApiChoice,
}

/// How to find the row of the dialect table.
#[derive(Clone, Debug, PartialEq)]
pub enum DialectChoice {
    Named(String),
    /// That of the host; for a host that no row names, this one.
    OfHost {
        otherwise: &'static str,
    },
}

/// An Azure OpenAI resource. The model is the name of a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Azure {
    /// `https://NAME.openai.azure.com`, without a slash at its end.
    pub endpoint: String,
    pub deployment: String,
    pub version: AzureVersion,
    pub responses: bool,
    pub auth: AzureLogin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AzureVersion {
    /// Named in every request.
    Dated(String),
    /// The API under `/openai/v1`.
    V1,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AzureLogin {
    /// With the role's key.
    Key,
    /// By the Azure command line program.
    Cli {
        scope: String,
    },
    ManagedIdentity {
        scope: String,
        client_id: String,
    },
}

/// A program on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub agent: Agent,
    /// It answers questions as a chat model would, without tools or workspace.
    pub as_chat: bool,
    pub model: String,
    /// A server of its own choice; empty: the program's.
    pub base_url: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Codex,
    ClaudeCode,
    Copilot,
    Cursor,
    Pi,
    Opencode,
    Gemini,
}

/// What of a role's settings is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misrouted {
    /// Key below `model.<role>`.
    pub field: &'static str,
    pub problem: String,
    pub remedy: String,
}

impl Misrouted {
    fn new(field: &'static str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { field, problem: problem.into(), remedy: remedy.into() }
    }
}

const ADDRESS: &str = "give the server's address, like https://server.example/v1";
const CLASSIC_SCOPE: &str = "https://cognitiveservices.azure.com/.default";

impl Config {
    /// The roles that are asked anything.
    pub fn roles(&self) -> Vec<Role> {
        let judged = self.env.scorer == ScorerKind::Judge;
        Role::ALL.into_iter().filter(|role| *role != Role::Judge || judged).collect()
    }
}

impl ModelConfig {
    pub fn role(&self, role: Role) -> &RoleConfig {
        match role {
            Role::Target => &self.target,
            Role::Optimizer => &self.optimizer,
            Role::Judge => &self.judge,
        }
    }

    /// How long the model of a role is told to think.
    pub fn effort(&self, role: Role) -> Effort {
        match self.role(role).reasoning_effort {
            Effort::NotSent => self.reasoning.reasoning_effort,
            own => own,
        }
    }

    /// What the server of a role is told about thinking: the role's own word, else what its backend's settings say.
    pub fn thinking(&self, role: Role) -> ThinkingMode {
        let own = self.role(role);
        let flag = |flag: bool| if flag { ThinkingMode::Enabled } else { ThinkingMode::Disabled };
        match own.backend {
            _ if own.thinking != ThinkingMode::Unset => own.thinking,
            Backend::QwenChat => {
                let modes = [&own.qwen, &self.qwen].map(|qwen| match qwen.qwen_chat_thinking_mode {
                    ThinkingMode::Unset => qwen.qwen_chat_enable_thinking.map(flag),
                    mode => Some(mode),
                });
                modes.into_iter().flatten().next().unwrap_or(ThinkingMode::ServerDefault)
            }
            Backend::MinimaxChat => {
                let asked = own.minimax.minimax_enable_thinking.or(self.minimax.minimax_enable_thinking);
                flag(asked.unwrap_or(false))
            }
            _ => ThinkingMode::ServerDefault,
        }
    }

    /// Sampling temperature of a role.
    pub fn temperature(&self, role: Role) -> Option<f64> {
        let own = self.role(role);
        own.temperature.or_else(|| match own.backend {
            Backend::QwenChat => own.qwen.qwen_chat_temperature.or(self.qwen.qwen_chat_temperature),
            Backend::MinimaxChat => {
                let set = own.minimax.minimax_temperature.or(self.minimax.minimax_temperature);
                Some(set.unwrap_or(0.7))
            }
            _ => None,
        })
    }

    /// The most tokens that one reply to a role can have, whatever is asked for.
    pub fn token_ceiling(&self, role: Role) -> Option<u32> {
        let own = self.role(role);
        match own.backend {
            Backend::QwenChat => own.qwen.qwen_chat_max_tokens.or(self.qwen.qwen_chat_max_tokens),
            Backend::MinimaxChat => own.minimax.minimax_max_tokens.or(self.minimax.minimax_max_tokens),
            _ => None,
        }
    }

    /// # Errors
    /// Everything that keeps the role from having an answer.
    pub fn route(&self, role: Role) -> Result<Route, Vec<Misrouted>> {
        Router { shared: self, own: self.role(role), role }.route()
    }
}

struct Router<'a> {
    shared: &'a ModelConfig,
    own: &'a RoleConfig,
    role: Role,
}

impl Router<'_> {
    fn route(&self) -> Result<Route, Vec<Misrouted>> {
        if let Err(misplaced) = check_place(self.role, self.own.backend) {
            return Err(vec![Misrouted::new("backend", misplaced.problem, misplaced.remedy)]);
        }
        match self.own.backend {
            Backend::OpenaiChat => match self.azure_endpoint() {
                Some(endpoint) if self.own.base_url.is_empty() && self.own.dialect.is_empty() => {
                    self.azure(endpoint)
                }
                // The address of a role comes before an endpoint for all roles, but not beside one of its own.
                Some(_) if !self.own.azure.azure_openai_endpoint.is_empty() => Err(vec![Misrouted::new(
                    if self.own.base_url.is_empty() { "dialect" } else { "base_url" },
                    "set together with azure_openai_endpoint of this role",
                    "keep one of the two; an empty text takes back what another file sets",
                )]),
                Some(_) | None => self.server(&[], "openai_compatible"),
            },
            Backend::AzureOpenai => self.azure_only(),
            Backend::OpenaiCompatible => self.server(&[], "openai_compatible"),
            Backend::ClaudeChat if self.shared.claude_code.claude_chat_via == ClaudeVia::Cli => {
                Ok(self.program(Agent::ClaudeCode, true))
            }
            Backend::ClaudeChat => self.server(&[""], "anthropic"),
            Backend::QwenChat => {
                let urls = [&self.own.qwen, &self.shared.qwen].map(|qwen| qwen.qwen_chat_base_url.as_str());
                self.server(&[urls[0], urls[1], "http://localhost:8000/v1"], "vllm")
            }
            Backend::MinimaxChat => {
                let urls = [&self.own.minimax, &self.shared.minimax].map(|own| own.minimax_base_url.as_str());
                self.server(&[urls[0], urls[1], self.minimax_home()], "minimax")
            }
            Backend::Local => Ok(Route::Local),
            Backend::EditSearch => Ok(Route::EditSearch),
            Backend::Handoff => Ok(Route::Handoff),
            Backend::CodexExec => Ok(self.program(Agent::Codex, self.role != Role::Target)),
            Backend::CopilotChat => Ok(self.program(Agent::Copilot, true)),
            Backend::ClaudeCodeExec => Ok(self.program(Agent::ClaudeCode, false)),
            Backend::CopilotExec => Ok(self.program(Agent::Copilot, false)),
            Backend::CursorExec => Ok(self.program(Agent::Cursor, false)),
            Backend::PiExec => Ok(self.program(Agent::Pi, false)),
            Backend::OpencodeExec => Ok(self.program(Agent::Opencode, false)),
            Backend::GeminiExec => Ok(self.program(Agent::Gemini, false)),
        }
    }

    /// `defaults`: addresses for an empty `base_url`, the first that is set; an empty last one stands for the dialect's.
    fn server(&self, defaults: &[&str], otherwise: &'static str) -> Result<Route, Vec<Misrouted>> {
        let (own, word) = (self.own, self.own.backend.word());
        let mut wrong = Vec::new();
        let base_url = match own.base_url.as_str() {
            "" => defaults.iter().find(|url| !url.is_empty()).copied().unwrap_or_default(),
            url => url,
        };
        if base_url.is_empty() && own.dialect.is_empty() && defaults.is_empty() {
            let remedy = match own.backend {
                Backend::OpenaiChat => {
                    format!("{ADDRESS}, a dialect, or the azure_openai_endpoint of a resource")
                }
                _ => format!("{ADDRESS}, or a dialect that has one"),
            };
            wrong.push(Misrouted::new(
                "base_url",
                format!("not set, but the backend {word} needs it"),
                remedy,
            ));
        } else if !base_url.is_empty() {
            wrong.extend(check_url("base_url", base_url));
        }
        let model = self.model(&mut wrong);
        if !own.dialect.is_empty() && own.api != ApiChoice::Unset {
            let problem = "set together with dialect, which says it already";
            wrong.push(Misrouted::new("api", problem, "keep one of the two"));
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let dialect = match own.dialect.as_str() {
            "" => DialectChoice::OfHost { otherwise },
            name => DialectChoice::Named(name.to_owned()),
        };
        let base_url = base_url.trim_end_matches('/').to_owned();
        Ok(Route::Server(Server { dialect, base_url, model, api: own.api }))
    }

    fn model(&self, wrong: &mut Vec<Misrouted>) -> String {
        match (self.own.model.as_str(), own_model(self.own.backend)) {
            ("", Some(model)) => model.to_owned(),
            ("", None) => {
                let problem = format!("not set, but the backend {} needs it", self.own.backend.word());
                let remedy = "give the model's name as the server knows it";
                wrong.push(Misrouted::new("model", problem, remedy));
                String::new()
            }
            (model, _) => model.to_owned(),
        }
    }

    fn azure_only(&self) -> Result<Route, Vec<Misrouted>> {
        let no = |field, problem: &str, remedy: &str| Err(vec![Misrouted::new(field, problem, remedy)]);
        match self.azure_endpoint() {
            None => no(
                "azure_openai_endpoint",
                "not set, but the backend azure_openai needs it",
                "give the resource's address, like https://NAME.openai.azure.com",
            ),
            Some(_) if !self.own.base_url.is_empty() => no(
                "base_url",
                "set together with azure_openai_endpoint",
                "keep the endpoint, or set backend = \"openai_compatible\"",
            ),
            Some(_) if !self.own.dialect.is_empty() => {
                no("dialect", "the backend azure_openai has its own", "leave it out")
            }
            Some(endpoint) => self.azure(endpoint),
        }
    }

    fn azure(&self, endpoint: &str) -> Result<Route, Vec<Misrouted>> {
        let own = self.own;
        let mut wrong: Vec<Misrouted> = check_url("azure_openai_endpoint", endpoint).into_iter().collect();
        let has_key =
            !(own.api_key_env.is_empty() && own.api_key_file.is_empty() && own.api_key_command.is_empty());
        let deployment = self.model(&mut wrong);
        let scope = match self.azure_text(|azure| &azure.azure_openai_ad_scope) {
            "" => CLASSIC_SCOPE.to_owned(),
            scope => scope.to_owned(),
        };
        let chosen = match own.azure.azure_openai_auth_mode {
            AzureAuth::Unset => self.shared.azure.azure_openai_auth_mode,
            mode => mode,
        };
        let auth = match (chosen, has_key) {
            (AzureAuth::OpenaiCompatible, _) => {
                if !wrong.is_empty() {
                    return Err(wrong);
                }
                let dialect = DialectChoice::OfHost { otherwise: "openai_compatible" };
                let base_url = endpoint.to_owned();
                return Ok(Route::Server(Server { dialect, base_url, model: deployment, api: own.api }));
            }
            (AzureAuth::ApiKey | AzureAuth::Unset, true) => AzureLogin::Key,
            (AzureAuth::ApiKey, false) => {
                let problem = "not set, but azure_openai_auth_mode is api_key";
                let remedy = "name the variable that holds the key, or another way to log in";
                wrong.push(Misrouted::new("api_key_env", problem, remedy));
                AzureLogin::Key
            }
            (AzureAuth::AzureCli, _) | (AzureAuth::Unset, false) => AzureLogin::Cli { scope },
            (AzureAuth::ManagedIdentity, _) => {
                let client_id = self.azure_text(|azure| &azure.azure_openai_managed_identity_client_id);
                AzureLogin::ManagedIdentity { scope, client_id: client_id.to_owned() }
            }
        };
        let responses = match own.api {
            ApiChoice::Unset => needs_responses_api(&deployment),
            ApiChoice::Chat => false,
            ApiChoice::Responses => true,
        };
        let (endpoint, on_v1) = match endpoint.strip_suffix("/openai/v1") {
            Some(resource) => (resource, true),
            None => (endpoint, false),
        };
        let version = match self.azure_text(|azure| &azure.azure_openai_api_version) {
            "v1" => AzureVersion::V1,
            _ if on_v1 => AzureVersion::V1,
            "" if responses => AzureVersion::Dated("2025-04-01-preview".into()),
            "" => AzureVersion::Dated("2024-12-01-preview".into()),
            dated => AzureVersion::Dated(dated.to_owned()),
        };
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(Route::Azure(Azure { endpoint: endpoint.to_owned(), deployment, version, responses, auth }))
    }

    fn azure_endpoint(&self) -> Option<&str> {
        let endpoint = self.azure_text(|azure| &azure.azure_openai_endpoint).trim_end_matches('/');
        (!endpoint.is_empty()).then_some(endpoint)
    }

    /// The role's own text, else the one for all roles.
    fn azure_text(&self, field: fn(&AzureOpenai) -> &String) -> &str {
        match field(&self.own.azure).as_str() {
            "" => field(&self.shared.azure),
            own => own,
        }
    }

    fn minimax_home(&self) -> &'static str {
        let region = match self.own.minimax.minimax_region {
            MinimaxRegion::Unset => self.shared.minimax.minimax_region,
            own => own,
        };
        match region {
            MinimaxRegion::Unset | MinimaxRegion::GlobalEn => "https://api.minimax.io/v1",
            MinimaxRegion::CnZh => "https://api.minimaxi.com/v1",
        }
    }

    fn program(&self, agent: Agent, as_chat: bool) -> Route {
        let (model, base_url) = (self.own.model.clone(), self.own.base_url.clone());
        Route::Program(Program { agent, as_chat, model, base_url })
    }
}

fn check_url(field: &'static str, url: &str) -> Option<Misrouted> {
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        Some(Misrouted::new(field, "no http:// or https:// address", ADDRESS))
    } else if url.split('/').nth(2).is_some_and(|host| host.contains('@')) {
        let remedy = "take it out and name it in the role's api_key_env";
        Some(Misrouted::new(field, "holds a user name or password", remedy))
    } else {
        None
    }
}

//! The part of the doctor that looks at a configuration: for each role its key, its server or program, and a tiny call.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Check, Verdict};
use crate::cli::run_setup;
use crate::config::{BudgetConfig, Config};
use crate::domain::{
    Asks, ChatRequest, Delivery, Message, Prompt, Role, Sampling, Speaker, Usage, Workspace,
};
use crate::model::{Budget, ChatModel, LiveSink, Outline, StackParts, exec};

const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The Responses API takes no smaller limit.
const PING_TOKENS: u32 = 16;

/// Looks at every role of a configuration. `ping`: makes one tiny call per role.
pub async fn checks(file: &Path, overrides: &[String], ping: bool) -> Vec<Check> {
    let mut config = match Config::load(file, overrides) {
        Ok(loaded) => loaded.config,
        Err(errors) => {
            let remedy = "correct it; `planish schema` lists every key";
            return vec![Check::bad("configuration", Verdict::Fail, errors.to_string(), remedy)];
        }
    };
    let mut checks = vec![Check::ok("configuration", format!("{} loads", file.display()))];
    if !config.model.replay_from.is_empty() {
        let detail = format!("all roles replay {}", config.model.replay_from);
        checks.push(Check::ok("models", detail));
        return checks;
    }
    // Trouble is to be seen, not waited out.
    config.model.max_retries = 0;
    config.model.total_timeout_s = config.model.total_timeout_s.min(60.0);
    let scratch = match tempfile::tempdir() {
        Ok(scratch) => scratch,
        Err(error) => {
            let remedy = "free some space, or set TMPDIR";
            checks.push(Check::bad("temporary folder", Verdict::Fail, error.to_string(), remedy));
            return checks;
        }
    };
    let prices = match run_setup::prices(&config) {
        Ok(prices) => prices,
        Err(error) => {
            checks.push(Check::bad("prices", Verdict::Fail, format!("{error:#}"), "correct budget.prices"));
            return checks;
        }
    };
    let budget = Budget::new(BudgetConfig::default(), Usage::default(), 0.0);
    let parts = StackParts {
        config: &config.model,
        roles: &Role::ALL,
        base_dir: Path::new("."),
        calls_dir: &scratch.path().join("calls"),
        budget: Arc::new(budget.at_prices(prices)),
        local: None,
        env: &|name| std::env::var(name).ok(),
        notice: Arc::new(|_| ()),
    };
    for role in config.roles() {
        checks.extend(look_at(&parts, role, ping).await);
    }
    checks
}

async fn look_at(parts: &StackParts<'_>, role: Role, ping: bool) -> Vec<Check> {
    let name = role.name();
    let mut checks = Vec::new();
    let bad = |detail: String, remedy: &str| Check::bad(name, Verdict::Fail, detail, remedy);
    let outline = match parts.outline(role).await {
        Ok(outline) => outline,
        Err(error) => return vec![bad(error.to_string(), "correct the configuration or what it names")],
    };
    match &outline {
        Outline::Server { base_url, dialect, login } => {
            checks.push(Check::ok(name, format!("{dialect} at {base_url}, login: {login}")));
            if let Err(why) = reach(base_url).await {
                checks.push(bad(format!("{base_url}: {why}"), "check base_url, the network and the server"));
                return checks;
            }
        }
        Outline::Program { settings, login } => match exec::version(settings).await {
            Ok(version) => {
                let exec::Version([major, minor, patch]) = version;
                let detail = format!("{} {major}.{minor}.{patch}, login: {login}", settings.program);
                checks.push(Check::ok(name, detail));
            }
            Err(error) => return vec![bad(error.to_string(), settings.agent.cli().remedy())],
        },
        Outline::Worker { what } => {
            return vec![Check::ok(name, format!("{what}: see worker and model file above"))];
        }
        Outline::Handoff => return vec![Check::ok(name, "a person or program answers through files")],
    }
    if !ping {
        return checks;
    }
    checks.push(match parts.bare(role).await {
        Ok(model) => call(name, role, model.as_ref()).await,
        Err(error) => bad(error.to_string(), "correct the configuration or what it names"),
    });
    checks
}

/// Whether anything listens; behind a proxy only a call can tell.
async fn reach(base_url: &str) -> Result<(), String> {
    let proxied = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    if proxied.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        return Ok(());
    }
    let url = reqwest::Url::parse(base_url).map_err(|error| error.to_string())?;
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(443));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match timeout(CONNECT_TIME, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("cannot connect: {error}")),
        Err(_) => Err(format!("no connection within {} s", CONNECT_TIME.as_secs())),
    }
}

async fn call(name: &'static str, role: Role, model: &dyn ChatModel) -> Check {
    let text = "Reply with the word ok inside <answer></answer>.";
    let request = ChatRequest {
        path: format!("doctor/{name}"),
        role,
        stage: "doctor".into(),
        prompt: Prompt::Chat(vec![Message::new(Speaker::User, text)]),
        sampling: Sampling {
            max_tokens: PING_TOKENS,
            temperature: None,
            top_p: None,
            top_k: None,
            seed: None,
            stop: Vec::new(),
        },
        asks: Asks::default(),
        workspace: (model.delivery() == Delivery::Files).then(|| Box::new(Workspace::default())),
        brief: None,
    };
    let quiet: LiveSink = Arc::new(|_| ());
    let started = Instant::now();
    match model.chat(&request, &quiet).await {
        Ok(reply) => {
            let (usage, seconds) = (reply.usage, started.elapsed().as_secs_f64());
            let cost = match usage.nanodollars {
                0 => "no price known".to_owned(),
                _ => format!("${:.6}", usage.dollars()),
            };
            let (sent, got) = (usage.prompt_tokens, usage.completion_tokens);
            let label = model.label();
            Check::ok(name, format!("{label} answers in {seconds:.2} s, {sent} + {got} tokens, {cost}"))
        }
        Err(error) => {
            let remedy = "see the message; `--no-ping` leaves this call out";
            Check::bad(name, Verdict::Fail, error.to_string(), remedy)
        }
    }
}

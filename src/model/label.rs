//! The name of a model behind a server: everything outside a request that its replies depend on, and no secret. Part of
//! call fingerprints, so what is not set adds nothing, and older recordings answer.

use super::dialect::{Api, Dialect};
use super::dialects::Dialects;
use super::http::HttpSettings;
use super::wire::ThinkingMode;
use crate::config::Effort;
use crate::domain::fingerprint;

/// What a server without a row of its own speaks.
const PLAIN: &str = "openai_compatible";

pub(super) fn label(settings: &HttpSettings, address: &str) -> String {
    let dialect = &settings.dialect;
    let api = match dialect.api {
        Api::Chat => "openai_chat",
        Api::Responses => "openai_responses",
        Api::Messages => "anthropic_messages",
    };
    let mut label = format!("{api} {address} {}", settings.model);
    let mut add = |text: String| {
        label.push_str(", ");
        label.push_str(&text);
    };
    match known(dialect, address) {
        Known::ByAddress => {}
        Known::ByName => add(format!("dialect {}", dialect.name)),
        Known::Not => add(format!("dialect {} ({})", dialect.name, digest(&comparable(dialect)))),
    }
    for (name, effort) in [("effort", settings.effort), ("rewrite effort", settings.rewrite_effort)] {
        if effort != Effort::NotSent {
            add(format!("{name} {}", effort.word()));
        }
    }
    if settings.thinking != ThinkingMode::ServerDefault {
        add(format!("thinking {}", settings.thinking.word()));
    }
    if let Some(budget) = settings.thinking_budget {
        add(format!("thinking budget {budget}"));
    }
    if !settings.api_version.is_empty() {
        add(format!("api version {}", settings.api_version));
    }
    if !settings.extra_body.is_empty() {
        let json = serde_json::to_string(&settings.extra_body).unwrap_or_default();
        add(format!("extra body {json}"));
    }
    if !settings.extra_headers.is_empty() {
        add(format!("extra headers {}", digest(&format!("{:?}", settings.extra_headers))));
    }
    label
}

enum Known {
    /// The built-in row that the address stands for, or the plain one.
    ByAddress,
    /// Another built-in row.
    ByName,
    Not,
}

fn known(dialect: &Dialect, address: &str) -> Known {
    let Ok(table) = Dialects::built_in() else { return Known::Not };
    let same = |row: &Dialect| row.name == dialect.name && comparable(row) == comparable(dialect);
    if !table.get(&dialect.name).is_some_and(same) {
        return Known::Not;
    }
    match table.for_address(address).map_or(PLAIN, |row| row.name.as_str()) == dialect.name {
        true => Known::ByAddress,
        false => Known::ByName,
    }
}

/// A row without what says where it is served and who may use it.
fn comparable(dialect: &Dialect) -> String {
    let (base_url, key_env) = (String::new(), String::new());
    let row = Dialect { base_url, key_env, hosts: Vec::new(), ..dialect.clone() };
    serde_json::to_string(&row).unwrap_or_default()
}

fn digest(text: &str) -> String {
    fingerprint([text]).chars().take(8).collect()
}

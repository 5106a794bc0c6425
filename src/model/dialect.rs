//! The dialect table: how each kind of server wants to be spoken to, as data. Must not build requests.

use serde::{Deserialize, Serialize};

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialect {
    pub name: String,
    pub api: Api,
    /// Where it is served if no `base_url` says otherwise; "": it has no home.
    #[serde(default)]
    pub base_url: String,
    /// Hosts that speak it, for a `base_url` without a dialect; a leading dot means any host below.
    #[serde(default)]
    pub hosts: Vec<String>,
    pub auth: AuthStyle,
    /// Usual environment variable of its key; "": none.
    #[serde(default)]
    pub key_env: String,
    pub token_field: TokenField,
}

/// Which wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    Chat,
    Responses,
    Messages,
}

/// How a key travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthStyle {
    /// `Authorization: Bearer KEY`
    Bearer,
    /// `api-key: KEY`
    ApiKey,
    /// `x-api-key: KEY`
    XApiKey,
}

/// Name of the field with the most tokens of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenField {
    MaxTokens,
    MaxCompletionTokens,
    MaxOutputTokens,
}

impl TokenField {
    pub fn name(self) -> &'static str {
        match self {
            TokenField::MaxTokens => "max_tokens",
            TokenField::MaxCompletionTokens => "max_completion_tokens",
            TokenField::MaxOutputTokens => "max_output_tokens",
        }
    }
}

//! One row of the dialect table: how a kind of server wants to be spoken to, as data. The meaning of every key is its
//! doc comment here, which is also what people are shown. Must not build requests.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A choice of words, each with its meaning.
macro_rules! terms {
    ($(#[$meta:meta])* $name:ident { $( #[doc = $doc:literal] $variant:ident = $word:literal, )+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $( #[doc = $doc] #[serde(rename = $word)] $variant, )+ }

        impl $name {
            /// Every word and what it means.
            pub const TERMS: &'static [(&'static str, &'static str)] = &[$(($word, $doc)),+];

            pub fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }
    };
}

/// A key of the table as people are shown it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DialectKey {
    pub name: &'static str,
    pub lines: &'static [&'static str],
    /// The words it takes, if it takes words.
    pub terms: &'static [(&'static str, &'static str)],
}

/// A row, the same with every key optional (as files have it), and the list of keys.
macro_rules! row {
    ($( $(#[doc = $doc:literal])+ $key:ident: $type:ty $([$terms:path])? = $default:expr; )+) => {
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct Dialect {
            pub name: String,
            $( $(#[doc = $doc])+ pub $key: $type, )+
        }

        /// A row of a file: what it does not say is as in the row it is `like`.
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct DialectPatch {
            pub(super) name: String,
            #[serde(default)]
            pub(super) like: Option<String>,
            $( #[serde(default)] $key: Option<$type>, )+
        }

        impl Dialect {
            pub const KEYS: &'static [DialectKey] = &[
                DialectKey { name: "name", lines: &[" Letters, digits and `_`."], terms: &[] },
                DialectKey {
                    name: "like",
                    lines: &[" Name of a row above: what this row does not say is as there."],
                    terms: &[],
                },
                $( DialectKey {
                    name: stringify!($key),
                    lines: &[$($doc),+],
                    terms: row!(@terms $($terms)?),
                }, )+
            ];

            /// The plainest server: nothing but what nearly every one has.
            pub fn plain(name: impl Into<String>) -> Self {
                Self { name: name.into(), $( $key: $default, )+ }
            }

            pub(super) fn patched(mut self, patch: DialectPatch) -> Self {
                self.name = patch.name;
                $( if let Some(value) = patch.$key { self.$key = value; } )+
                self
            }
        }
    };
    (@terms $terms:path) => { $terms };
    (@terms) => { &[] };
}

row! {
    /// Which wire format.
    api: Api [Api::TERMS] = Api::Chat;
    /// Where it is served if no `base_url` says otherwise; "": it has no home.
    base_url: String = String::new();
    /// Hosts that speak it, for a `base_url` without a dialect; a leading dot means any host below, a path after the
    /// host (`host/path`) only addresses below that path.
    hosts: Vec<String> = Vec::new();
    /// How addresses are made from `base_url`.
    paths: Paths [Paths::TERMS] = Paths::Plain;
    /// `api-version` in addresses of the `azure_dated` form.
    api_version: String = String::new();
    /// How a key travels. Tokens always go as `Authorization: Bearer`.
    auth: AuthStyle [AuthStyle::TERMS] = AuthStyle::Bearer;
    /// Usual environment variable of its key; "": none.
    key_env: String = String::new();
    /// Further headers of every request.
    headers: Map<String, Value> = Map::new();
    /// Further fields of every request body.
    extra_body: Map<String, Value> = Map::new();
    /// Chat only: name of the field with the most tokens of a reply.
    token_field: TokenField [TokenField::TERMS] = TokenField::MaxTokens;
    /// How system messages travel.
    system_role: SystemRole [SystemRole::TERMS] = SystemRole::System;
    /// How thinking is switched on and off, and where an effort goes.
    thinking: ThinkingStyle [ThinkingStyle::TERMS] = ThinkingStyle::None;
    /// Efforts it knows; empty: it takes none.
    efforts: Vec<String> = words(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]);
    /// Field with the most tokens of thinking, for styles without one of their own; "": no such limit.
    thinking_budget_field: String = String::new();
    /// Chat only: fields of a reply that hold thinking, the first one is where it is sent back.
    reasoning_fields: Vec<String> = words(&["reasoning_content", "reasoning"]);
    /// Whether thinking may come as `<think>…</think>` at the head of the text, to be split off.
    inline_think: bool = false;
    /// When the thinking of earlier replies is sent back.
    replay_reasoning: ReplayReasoning [ReplayReasoning::TERMS] = ReplayReasoning::Never;
    /// Whether a prompt that begins like an earlier one costs less.
    prefix_cache: bool = false;
    /// What it has. A parameter it lacks is not sent, which is told once; a request that cannot do without is refused.
    supports: Vec<Feature> [Feature::TERMS] = vec![
        Feature::Tools, Feature::ForcedTool, Feature::Images, Feature::JsonSchema, Feature::JsonObject,
        Feature::Logprobs, Feature::Seed, Feature::TopK, Feature::Stop, Feature::StreamUsage, Feature::Completions,
        Feature::EffortWithTools,
    ];
}

impl Dialect {
    pub fn has(&self, feature: Feature) -> bool {
        self.supports.contains(&feature)
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

terms! {
    /// Which wire format.
    Api {
        /// OpenAI chat completions, and text completions beside them.
        Chat = "chat",
        /// OpenAI Responses.
        Responses = "responses",
        /// Anthropic Messages.
        Messages = "messages",
    }
}

terms! {
    /// How addresses are made.
    Paths {
        /// `base_url/chat/completions`, and so on.
        Plain = "plain",
        /// `base_url/openai/deployments/MODEL/chat/completions?api-version=…`, `base_url/openai/responses?api-version=…`
        AzureDated = "azure_dated",
        /// `base_url/openai/v1/…`; `base_url` may hold `/openai/v1` already.
        AzureV1 = "azure_v1",
    }
}

terms! {
    /// How a key travels.
    AuthStyle {
        /// `Authorization: Bearer KEY`
        Bearer = "bearer",
        /// `api-key: KEY`
        ApiKey = "api_key",
        /// `x-api-key: KEY`
        XApiKey = "x_api_key",
    }
}

terms! {
    /// Name of the field with the most tokens of a reply.
    TokenField {
        /// Thinking counts or not, as the server likes.
        MaxTokens = "max_tokens",
        /// Thinking counts.
        MaxCompletionTokens = "max_completion_tokens",
    }
}

impl TokenField {
    pub fn name(self) -> &'static str {
        self.word()
    }

    pub fn other(self) -> Self {
        match self {
            TokenField::MaxTokens => TokenField::MaxCompletionTokens,
            TokenField::MaxCompletionTokens => TokenField::MaxTokens,
        }
    }
}

terms! {
    /// How system messages travel.
    SystemRole {
        /// As messages of the role `system` (or in the field the API has for them).
        System = "system",
        /// The role is `developer` where an effort is sent, `system` elsewhere.
        Developer = "developer",
        /// At the head of the first message of the user: templates that refuse the role.
        FirstUser = "first_user",
    }
}

terms! {
    /// How thinking is controlled.
    ThinkingStyle {
        /// No switch is known. An effort goes as `reasoning_effort`.
        None = "none",
        /// `reasoning_effort`, in Responses `reasoning.effort`; off is the effort `none`.
        Effort = "effort",
        /// `chat_template_kwargs.enable_thinking`
        QwenKwargs = "qwen_kwargs",
        /// `enable_thinking` at the top.
        QwenTop = "qwen_top",
        /// `thinking.type`: `enabled` or `disabled`.
        Deepseek = "deepseek",
        /// `reasoning`: `effort`, `max_tokens` or `enabled`.
        Openrouter = "openrouter",
        /// `thinking.type`: `adaptive` or `disabled`.
        Minimax = "minimax",
        /// `thinking.type`: `adaptive`, `disabled`, or `enabled` with `budget_tokens`; effort in `output_config`.
        Anthropic = "anthropic",
        /// `reasoning_effort`, off is `none`; a limit in `extra_body.google.thinking_config`.
        Gemini = "gemini",
    }
}

terms! {
    /// When thinking is sent back.
    ReplayReasoning {
        /// Never.
        Never = "never",
        /// With replies that called tools.
        ToolTurns = "tool_turns",
        /// Always.
        Always = "always",
    }
}

terms! {
    /// What a server has.
    Feature {
        /// Tool calls.
        Tools = "tools",
        /// `tool_choice` may name a tool; without it that tool alone is offered, and required.
        ForcedTool = "forced_tool",
        /// Images in messages.
        Images = "images",
        /// Replies by a JSON schema.
        JsonSchema = "json_schema",
        /// Replies that are some JSON object.
        JsonObject = "json_object",
        /// Log-probabilities of tokens.
        Logprobs = "logprobs",
        /// `seed`
        Seed = "seed",
        /// `top_k`
        TopK = "top_k",
        /// Texts that end a reply.
        Stop = "stop",
        /// Usage at the end of streams, if asked for.
        StreamUsage = "stream_usage",
        /// Texts without a chat template (`completions`).
        Completions = "completions",
        /// An effort beside tools; without it no effort is sent with tools.
        EffortWithTools = "effort_with_tools",
    }
}

impl Feature {
    /// What people are told that is not sent without it.
    pub(super) fn lacked(self) -> &'static str {
        match self {
            Feature::Seed => "`seed`",
            Feature::TopK => "`top_k`",
            Feature::Logprobs => "`logprobs`",
            Feature::Stop => "`stop`",
            Feature::Tools
            | Feature::ForcedTool
            | Feature::Images
            | Feature::JsonSchema
            | Feature::JsonObject
            | Feature::StreamUsage
            | Feature::Completions
            | Feature::EffortWithTools => self.word(),
        }
    }
}

//! Where an effort and the switch for thinking go in each style. Must not decide whether to think.

use serde_json::{Map, Value, json};

use super::Call;
use crate::config::Effort;
use crate::model::dialect::{Api, Dialect, Feature, ThinkingStyle};

/// What the server is told about thinking. Nothing said is not the same as off: many models then think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkingMode {
    #[default]
    ServerDefault,
    Enabled,
    Disabled,
}

impl ThinkingMode {
    pub fn word(self) -> &'static str {
        match self {
            ThinkingMode::ServerDefault => "server_default",
            ThinkingMode::Enabled => "enabled",
            ThinkingMode::Disabled => "disabled",
        }
    }
}

/// Settings that a dialect has no words for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThinkingError {
    #[error("dialect {dialect} knows no reasoning_effort \"{effort}\"; it takes {known}")]
    Effort { dialect: String, effort: &'static str, known: String },
    #[error(
        "dialect {dialect} has no switch for thinking; use thinking = \"server_default\", or say it in extra_body"
    )]
    NoSwitch { dialect: String },
    #[error("dialect {dialect} switches thinking on by an effort; set reasoning_effort")]
    NeedsEffort { dialect: String },
    #[error("thinking = \"disabled\" and reasoning_effort = \"{effort}\" contradict each other; drop one")]
    Contradiction { effort: &'static str },
    #[error(
        "dialect {dialect} has no limit for thinking; leave thinking_budget out, or say it in extra_body"
    )]
    NoBudget { dialect: String },
    #[error(
        "dialect {dialect} takes one of thinking_budget, an effort and thinking = \"disabled\"; drop the others"
    )]
    EffortAndBudget { dialect: String },
    #[error("thinking_budget needs thinking = \"enabled\" for dialect {dialect}")]
    BudgetUnasked { dialect: String },
}

/// # Errors
/// The dialect cannot say it.
pub(in crate::model) fn check(
    dialect: &Dialect,
    effort: Effort,
    mode: ThinkingMode,
    budget: Option<u32>,
) -> Result<(), ThinkingError> {
    let name = || dialect.name.clone();
    let sent = effort != Effort::NotSent;
    if sent && !dialect.efforts.iter().any(|known| known == effort.word()) {
        let known = match dialect.efforts.as_slice() {
            [] => "none at all: leave it empty".to_owned(),
            known => known.join(", "),
        };
        return Err(ThinkingError::Effort { dialect: name(), effort: effort.word(), known });
    }
    if mode == ThinkingMode::Disabled && sent && effort != Effort::None {
        return Err(ThinkingError::Contradiction { effort: effort.word() });
    }
    match (dialect.thinking, mode) {
        (ThinkingStyle::None, ThinkingMode::Enabled | ThinkingMode::Disabled) => {
            return Err(ThinkingError::NoSwitch { dialect: name() });
        }
        (ThinkingStyle::Effort | ThinkingStyle::Gemini, ThinkingMode::Enabled)
            if !sent && budget.is_none() =>
        {
            return Err(ThinkingError::NeedsEffort { dialect: name() });
        }
        (
            ThinkingStyle::None
            | ThinkingStyle::Effort
            | ThinkingStyle::QwenKwargs
            | ThinkingStyle::QwenTop
            | ThinkingStyle::Deepseek
            | ThinkingStyle::Openrouter
            | ThinkingStyle::Minimax
            | ThinkingStyle::Anthropic
            | ThinkingStyle::Gemini,
            _,
        ) => {}
    }
    match (dialect.thinking, budget) {
        (_, None) => Ok(()),
        (ThinkingStyle::Openrouter | ThinkingStyle::Gemini, Some(_))
            if sent || mode == ThinkingMode::Disabled =>
        {
            Err(ThinkingError::EffortAndBudget { dialect: name() })
        }
        (ThinkingStyle::Anthropic, Some(_)) if mode != ThinkingMode::Enabled => {
            Err(ThinkingError::BudgetUnasked { dialect: name() })
        }
        (ThinkingStyle::Openrouter | ThinkingStyle::Gemini | ThinkingStyle::Anthropic, Some(_)) => Ok(()),
        (_, Some(_)) if dialect.thinking_budget_field.is_empty() => {
            Err(ThinkingError::NoBudget { dialect: name() })
        }
        (_, Some(_)) => Ok(()),
    }
}

/// Puts effort, switch and limit of thinking where the dialect wants them.
pub(super) fn apply(call: &Call<'_>, body: &mut Map<String, Value>, left_out: &mut Vec<&'static str>) {
    let dialect = call.dialect;
    let tools = !call.tools().0.is_empty();
    let effort = match call.effort {
        Effort::NotSent => None,
        _ if tools && !dialect.has(Feature::EffortWithTools) => {
            left_out.push("`reasoning_effort` beside tools");
            None
        }
        effort => Some(effort.word()),
    };
    let on = match call.thinking {
        ThinkingMode::ServerDefault => None,
        ThinkingMode::Enabled => Some(true),
        ThinkingMode::Disabled => Some(false),
    };
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    match dialect.thinking {
        ThinkingStyle::Anthropic => {
            if let Some(effort) = effort {
                set("output_config", json!({"effort": effort}));
            }
            match (on, call.thinking_budget) {
                (None, _) => None,
                (Some(true), Some(budget)) => {
                    set("thinking", json!({"type": "enabled", "budget_tokens": budget}))
                }
                (Some(true), None) => set("thinking", json!({"type": "adaptive"})),
                (Some(false), _) => set("thinking", json!({"type": "disabled"})),
            };
            return;
        }
        ThinkingStyle::Openrouter => {
            let reasoning = match (effort, call.thinking_budget, on) {
                (Some(effort), _, _) => json!({"effort": effort}),
                (None, _, Some(false)) => json!({"effort": "none"}),
                (None, Some(budget), _) => json!({"max_tokens": budget}),
                (None, None, Some(true)) => json!({"enabled": true}),
                (None, None, None) => return,
            };
            set("reasoning", reasoning);
            return;
        }
        ThinkingStyle::Effort => {
            let effort = effort.or((on == Some(false)).then_some("none"));
            match (effort, dialect.api) {
                (None, _) => None,
                (Some(effort), Api::Responses) => set("reasoning", json!({"effort": effort})),
                (Some(effort), Api::Chat | Api::Messages) => set("reasoning_effort", effort.into()),
            };
        }
        ThinkingStyle::Gemini => {
            let effort = effort.or((on == Some(false)).then_some("none"));
            if let Some(budget) = call.thinking_budget {
                let config = json!({"thinking_config": {"thinking_budget": budget}});
                set("extra_body", json!({"google": config}));
            }
            if let Some(effort) = effort {
                set("reasoning_effort", effort.into());
            }
        }
        style @ (ThinkingStyle::None
        | ThinkingStyle::QwenKwargs
        | ThinkingStyle::QwenTop
        | ThinkingStyle::Deepseek
        | ThinkingStyle::Minimax) => {
            match (style, dialect.api, effort) {
                (_, _, None) => None,
                (_, Api::Responses, Some(effort)) => set("reasoning", json!({"effort": effort})),
                (_, Api::Messages, Some(effort)) => set("output_config", json!({"effort": effort})),
                (_, Api::Chat, Some(effort)) => set("reasoning_effort", effort.into()),
            };
            if let Some(on) = on {
                match style {
                    ThinkingStyle::QwenKwargs => set("chat_template_kwargs", json!({"enable_thinking": on})),
                    ThinkingStyle::QwenTop => set("enable_thinking", on.into()),
                    ThinkingStyle::Minimax => {
                        set("thinking", json!({"type": if on { "adaptive" } else { "disabled" }}))
                    }
                    _ => set("thinking", json!({"type": if on { "enabled" } else { "disabled" }})),
                };
            }
        }
    }
    if let Some(budget) = call.thinking_budget.filter(|_| !dialect.thinking_budget_field.is_empty()) {
        body.insert(dialect.thinking_budget_field.clone(), budget.into());
    }
}

//! The edit budget of one step as the optimizer decides it. Owns how its reply is read; must not apply the budget.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::reply::{ReplyFault, object, text, texts};
use crate::domain::LrDecision;

const KEY: &str = "learning_rate";

/// Reads the optimizer's word on how many of `available` proposals to apply; more than there are is cut.
pub fn lr_decision(reply: &str, available: usize) -> Result<LrDecision, ReplyFault> {
    let fields = object(reply)?;
    let wanted = fields.get(KEY).ok_or(ReplyFault::Missing { key: KEY })?;
    let raw_learning_rate = budget_of(wanted).ok_or(ReplyFault::NoNumber { key: KEY })?;
    Ok(LrDecision {
        learning_rate: raw_learning_rate.min(available),
        raw_learning_rate,
        available_update_items: available,
        clamped: raw_learning_rate > available,
        fallback: false,
        reasoning: text(&fields, "reasoning"),
        confidence: text(&fields, "confidence"),
        risk_notes: texts(&fields, "risk_notes"),
        raw_response: reply.to_owned(),
        error: None,
    })
}

/// The decision without a usable reply: nothing is applied.
pub fn lr_fallback(available: usize, raw: &str, error: Option<String>) -> LrDecision {
    LrDecision {
        available_update_items: available,
        fallback: true,
        raw_response: raw.to_owned(),
        error,
        ..LrDecision::default()
    }
}

/// A budget as models write it: a number (cut to an integer), else the first integer in the text; what is negative is
/// 0. Booleans and null are none.
pub fn budget_of(value: &Value) -> Option<usize> {
    static INTEGER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"-?\d+").ok());
    let text = match value {
        Value::Null | Value::Bool(_) => return None,
        Value::Number(number) => return number.as_f64().map(|number| number as usize),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    let number = INTEGER.as_ref()?.find(&text)?.as_str();
    Some(if number.starts_with('-') { 0 } else { number.parse().unwrap_or(usize::MAX) })
}

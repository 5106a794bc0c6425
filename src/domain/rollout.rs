//! One attempt of the target at one item, with its score.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FinishReason, SharedText, Turn, Usage};

/// `hard` is 0/1 correctness (or a fraction of parts), `soft` partial credit, both in [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    pub hard: f64,
    pub soft: f64,
    /// Why, short: `kind: detail`; the part before the first `:` groups failures.
    pub reason: String,
}

impl Score {
    /// A failure in the analyst's sense: hard missing, 0 or below 1e-9.
    pub fn failed(&self) -> bool {
        self.hard.is_nan() || self.hard < 1e-9
    }

    /// The score of a result row of other programs: `hard` as a number, a truth value or a number written as text, `soft`
    /// likewise and equal to `hard` where it is absent. `None` for a row without a score: it was not answered.
    pub fn of_row(row: &Value) -> Option<Self> {
        let hard = number(row.get("hard")?)?;
        let soft = match row.get("soft") {
            None | Some(Value::Null) => hard,
            Some(soft) => number(soft)?,
        };
        let reason = row.get("fail_reason").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { hard, soft, reason })
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A finished rollout. Texts are untrusted and capped (the complete reply stays in `calls/`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollout {
    pub item: String,
    pub task_type: String,
    /// The task as the user template rendered it.
    pub task: String,
    /// Reference answer(s), for people and for analysts of training items.
    pub gold: String,
    pub system_prompt: SharedText,
    pub user_prompt: String,
    pub reply: String,
    pub answer: String,
    /// What happened turn by turn, where that is more than one prompt and its reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    pub score: Score,
    pub finish: FinishReason,
    pub usage: Usage,
    /// Wall time of the call in milliseconds.
    pub ms: u64,
    /// Where a model judged the answer: what that took, which is not in `usage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<Judging>,
}

/// The calls that judged an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judging {
    /// Label of the judge.
    pub by: String,
    pub usage: Usage,
    pub ms: u64,
}

impl Rollout {
    /// Usage of the judge.
    pub fn judging_usage(&self) -> Usage {
        self.judging.as_ref().map_or(Usage::default(), |judging| judging.usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_without_a_number_has_no_score() {
        let soft = |row| Score::of_row(&row).map(|score| (score.hard, score.soft));
        assert_eq!(soft(json!({"hard": 1, "soft": null})), Some((1.0, 1.0)));
        assert_eq!(soft(json!({"hard": " 0.5 ", "soft": false})), Some((0.5, 0.0)));
        for row in [
            json!({}),
            json!({"hard": null}),
            json!({"hard": "NaN"}),
            json!({"hard": 1, "soft": []}),
            json!(7),
        ] {
            assert_eq!(soft(row.clone()), None, "{row}");
        }
    }
}

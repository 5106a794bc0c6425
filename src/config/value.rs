//! One value against one registry row: type, range, allowed words. Rules that span keys live in `rules`.

use toml::Value;

use super::aliases::canonical_word;
use super::keys::{Key, Kind, list};
use super::nearest::nearest;

/// What is wrong with a value, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Complaint {
    pub problem: String,
    pub remedy: String,
}

impl Complaint {
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }
}

/// The value as the settings take it (a whole number for a `Number` key becomes a float).
pub fn check(key: &Key, value: Value) -> Result<Value, Complaint> {
    match (key.kind, value) {
        (Kind::Flag, value @ Value::Boolean(_)) => Ok(value),
        (Kind::Text | Kind::Path(_), value @ Value::String(_)) => Ok(value),
        (Kind::TextList | Kind::Folders, Value::Array(items)) if items.iter().all(Value::is_str) => {
            Ok(Value::Array(items))
        }
        (Kind::Table, Value::Table(table)) if table.values().all(is_json) => Ok(Value::Table(table)),
        (Kind::Count { min, max }, Value::Integer(number)) => match u64::try_from(number) {
            Ok(count) if (min..=max).contains(&count) => Ok(Value::Integer(number)),
            _ => Err(out_of_range(key.kind, number)),
        },
        (Kind::Number { .. }, Value::Integer(number)) => check_number(key.kind, number as f64),
        (Kind::Number { .. }, Value::Float(number)) => check_number(key.kind, number),
        (Kind::Choice(allowed), Value::String(word)) => check_choice(key, allowed, &word),
        (kind, value) => Err(wrong_type(kind, &value)),
    }
}

/// As [`check`], for a whole number of more digits than TOML's integers hold.
pub fn beyond_integers(key: &Key, digits: &str) -> Result<Value, Complaint> {
    match (key.kind, digits.parse::<f64>()) {
        (kind @ Kind::Number { .. }, Ok(number)) => check_number(kind, number),
        (kind @ Kind::Count { .. }, _) if digits.starts_with('-') => Err(out_of_range(kind, digits)),
        (kind @ Kind::Count { .. }, _) => Err(Complaint::new(
            format!("{digits} is out of range"),
            format!("give a smaller {} ({})", kind.name(), kind.limits()),
        )),
        (kind, _) => Err(wrong_type(kind, &Value::Integer(0))),
    }
}

fn check_number(kind: Kind, number: f64) -> Result<Value, Complaint> {
    let fits = match kind {
        Kind::Number { min, max, above_min } => {
            number.is_finite() && number <= max && if above_min { number > min } else { number >= min }
        }
        _ => false,
    };
    if fits { Ok(Value::Float(number)) } else { Err(out_of_range(kind, number)) }
}

fn check_choice(key: &Key, allowed: &'static [&'static str], word: &str) -> Result<Value, Complaint> {
    if let Some(word) = canonical_word(key.path, allowed, word) {
        return Ok(Value::String(word.to_owned()));
    }
    let problem = match nearest(word, allowed.iter().copied()) {
        Some(near) => format!("unknown value {word:?}, did you mean {near:?}?"),
        None => format!("unknown value {word:?}"),
    };
    Err(Complaint::new(problem, format!("allowed: {}", list(allowed))))
}

fn out_of_range(kind: Kind, number: impl std::fmt::Display) -> Complaint {
    Complaint::new(
        format!("{number} is out of range"),
        format!("give a {} {}", kind.name(), in_words(&kind.limits())),
    )
}

fn in_words(limits: &str) -> String {
    if limits.contains(" to ") { format!("from {limits}") } else { format!("that is {limits}") }
}

/// The value itself is left out: text in a wrong place may be a secret.
fn wrong_type(kind: Kind, value: &Value) -> Complaint {
    let problem = format!("expected a {}, found {}", noun(kind), value.type_str());
    let remedy = match kind {
        Kind::Flag => "write true or false without quotes".to_owned(),
        Kind::Count { .. } | Kind::Number { .. } => {
            format!("write a number without quotes, {}", kind.limits())
        }
        Kind::Text | Kind::Path(_) => "write it in quotes".to_owned(),
        Kind::TextList | Kind::Folders => "write a list like [\"one\", \"two\"]".to_owned(),
        Kind::Table => "write a table like { name = 1 }, with no dates in it".to_owned(),
        Kind::Choice(allowed) => format!("allowed, in quotes: {}", list(allowed)),
    };
    Complaint::new(problem, remedy)
}

/// JSON can say it too.
fn is_json(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Integer(_) | Value::Boolean(_) => true,
        Value::Float(number) => number.is_finite(),
        Value::Datetime(_) => false,
        Value::Array(items) => items.iter().all(is_json),
        Value::Table(table) => table.values().all(is_json),
    }
}

fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Flag => "boolean",
        Kind::Count { .. } => "whole number",
        Kind::Number { .. } => "number",
        Kind::Text | Kind::Choice(_) => "text",
        Kind::Path(_) => "path",
        Kind::TextList => "list of texts",
        Kind::Folders => "list of paths",
        Kind::Table => "table",
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::find;
    use super::*;

    fn told(path: &str, toml: &str) -> String {
        let value = toml::from_str::<toml::Table>(&format!("v = {toml}")).unwrap()["v"].clone();
        match check(find(path).unwrap(), value) {
            Ok(value) => format!("ok {value}"),
            Err(complaint) => format!("{}; {}", complaint.problem, complaint.remedy),
        }
    }

    #[test]
    fn each_kind_takes_its_own_and_says_what_it_wants() {
        for (path, toml, expected) in [
            ("train.batch_size", "8", "ok 8"),
            ("train.batch_size", "-3", "-3 is out of range; give a whole number that is at least 1"),
            ("train.batch_size", "0", "0 is out of range; give a whole number that is at least 1"),
            (
                "train.batch_size",
                "8.5",
                "expected a whole number, found float; write a number without quotes, at least 1",
            ),
            (
                "train.batch_size",
                "\"8\"",
                "expected a whole number, found string; write a number without quotes, at least 1",
            ),
            ("gradient.merge_batch_size", "1", "1 is out of range; give a whole number that is at least 2"),
            (
                "train.num_epochs",
                "4294967296",
                "4294967296 is out of range; give a whole number from 1 to 4294967295",
            ),
            ("evaluation.gate_mixed_weight", "1", "ok 1.0"),
            ("evaluation.gate_mixed_weight", "1.5", "1.5 is out of range; give a number from 0 to 1"),
            ("evaluation.gate_mixed_weight", "nan", "NaN is out of range; give a number from 0 to 1"),
            ("model.target.top_p", "0.0", "0 is out of range; give a number that is above 0, at most 1"),
            ("env.numeric_tolerance", "inf", "inf is out of range; give a number that is at least 0"),
            ("evaluation.use_gate", "true", "ok true"),
            (
                "evaluation.use_gate",
                "0",
                "expected a boolean, found integer; write true or false without quotes",
            ),
            ("env.answer_tag", "5", "expected a text, found integer; write it in quotes"),
            ("model.target.stop", "[\"a\"]", "ok [\"a\"]"),
            (
                "model.target.stop",
                "[1]",
                "expected a list of texts, found array; write a list like [\"one\", \"two\"]",
            ),
            ("model.target.extra_body", "{ a = [1, { b = 2.5 }] }", "ok { a = [1, { b = 2.5 }] }"),
            (
                "model.target.extra_body",
                "{ a = 2026-01-01 }",
                "expected a table, found table; write a table like { name = 1 }, with no dates in it",
            ),
            ("review.mode", "\"manual\"", "ok \"manual\""),
            (
                "review.mode",
                "\"manuel\"",
                "unknown value \"manuel\", did you mean \"manual\"?; allowed: auto, manual",
            ),
            ("review.mode", "\"x\"", "unknown value \"x\"; allowed: auto, manual"),
            ("review.mode", "true", "expected a text, found boolean; allowed, in quotes: auto, manual"),
        ] {
            assert_eq!(told(path, toml), expected, "{path} = {toml}");
        }
    }
}

//! YAML values as values of planish's keys, read as leniently as SkillOpt reads them. Must not know layers.

use toml::Value;

use super::node::Node;
use super::number::cast_value;
use crate::config::aliases::canonical_word;
use crate::config::keys::{Expect, Key, Kind};
use crate::config::value::{self, Complaint};

/// The value for a key; `None`: it is not given.
pub fn convert(key: &Key, node: &Node) -> Result<Option<Value>, Complaint> {
    let value = match (key.kind, node) {
        (_, Node::Null) => return Ok(None),
        (Kind::Flag, node) => flag(node),
        (Kind::Count { .. }, node) if !node.is_blank() => count(node),
        (Kind::Number { .. }, node) if !node.is_blank() => number(node),
        (Kind::Count { .. } | Kind::Number { .. }, _) => return Ok(None),
        (Kind::TextList | Kind::Folders, node) => list(node),
        (Kind::Table, _) => None,
        (Kind::Choice(allowed), Node::Bool(flag)) => word(key, allowed, *flag),
        (Kind::Text | Kind::Path(_) | Kind::Choice(_), node) => text(node).map(Value::String),
    };
    match value {
        Some(value) => value::check(key, value).map(Some),
        None => {
            let problem = format!("a {} is no {}", node.kind(), key.kind.name());
            let limits = key.kind.limits();
            let limits = if limits.is_empty() { limits } else { format!(", {limits}") };
            Err(Complaint::new(problem, format!("give a {}{limits}", key.kind.name())))
        }
    }
}

/// As SkillOpt's flags read it: 1, yes and true are true.
fn flag(node: &Node) -> Option<Value> {
    let flag = match node {
        Node::Bool(flag) => *flag,
        Node::Int(0) => false,
        Node::Int(1) => true,
        Node::Text(text) => match text.trim().to_lowercase().as_str() {
            "true" | "1" | "yes" => true,
            "false" | "0" | "no" => false,
            _ => return None,
        },
        _ => return None,
    };
    Some(Value::Boolean(flag))
}

fn count(node: &Node) -> Option<Value> {
    match node {
        Node::Int(number) => Some(Value::Integer(*number)),
        Node::Float(number) if number.fract() == 0.0 && number.abs() < 9.0e15 => {
            Some(Value::Integer(*number as i64))
        }
        Node::Text(text) => match cast_value(text) {
            Node::Text(_) => None,
            number => count(&number),
        },
        _ => None,
    }
}

fn number(node: &Node) -> Option<Value> {
    match node {
        Node::Int(number) => Some(Value::Integer(*number)),
        Node::Float(number) => Some(Value::Float(*number)),
        Node::Text(text) => match cast_value(text) {
            Node::Text(_) => None,
            cast => number(&cast),
        },
        _ => None,
    }
}

/// A list, or its items with commas between them.
fn list(node: &Node) -> Option<Value> {
    let items = match node {
        Node::List(items) => items.iter().map(text).collect::<Option<Vec<_>>>()?,
        Node::Text(all) => {
            all.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
        }
        _ => return None,
    };
    Some(Value::Array(items.into_iter().map(Value::String).collect()))
}

/// YAML reads the bare words `on`, `yes`, `off` and `no` as flags, whatever they were meant to be.
fn word(key: &Key, allowed: &'static [&'static str], flag: bool) -> Option<Value> {
    let words = if flag { ["true", "on", "yes"] } else { ["false", "off", "no"] };
    let known = words.into_iter().find_map(|word| canonical_word(key.path, allowed, word));
    Some(Value::String(known.unwrap_or(words[0]).to_owned()))
}

fn text(node: &Node) -> Option<String> {
    match node {
        Node::Text(text) => Some(text.clone()),
        Node::Bool(flag) => Some(flag.to_string()),
        Node::Int(number) => Some(number.to_string()),
        Node::Float(number) => Some(number.to_string()),
        Node::Null | Node::List(_) | Node::Map(_) => None,
    }
}

/// A path that is read, not written.
pub fn is_read(kind: Kind) -> bool {
    matches!(kind, Kind::Folders) || matches!(kind, Kind::Path(expect) if expect != Expect::Output)
}

/// An address with a user name or password in it.
pub fn holds_credentials(value: &Value) -> bool {
    let host =
        |text: &str| text.split_once("://").and_then(|(_, rest)| rest.split('/').next().map(str::to_owned));
    match value {
        Value::String(text) => host(text).is_some_and(|host| host.contains('@')),
        Value::Array(items) => items.iter().any(holds_credentials),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::find;

    #[test]
    fn values_are_read_leniently_and_checked_strictly() {
        let text = |text: &str| Node::Text(text.into());
        for (path, node, expected) in [
            ("train.seed", text("1_000"), "1000"),
            ("train.seed", Node::Float(7.0), "7"),
            ("train.seed", text(""), "not given"),
            ("train.seed", Node::Float(7.5), "a number is no whole number"),
            ("train.seed", Node::Int(-1), "-1 is out of range"),
            ("train.batch_size", Node::List(vec![]), "a list is no whole number"),
            ("model.minimax_temperature", text("0.7"), "0.7"),
            ("gradient.failure_only", text("Yes"), "true"),
            ("gradient.failure_only", Node::Int(2), "a whole number is no true or false"),
            ("optimizer.lr_control_mode", Node::Bool(false), "\"none\""),
            ("optimizer.lr_scheduler", Node::Bool(true), "unknown value \"true\""),
            ("optimizer.lr_scheduler", Node::Null, "not given"),
            ("model.codex_exec_use_sdk", Node::Bool(true), "\"true\""),
            ("evaluation.leading_words", text("A, B ,"), "[\"A\", \"B\"]"),
            ("env.data_dirs", Node::List(vec![text("d")]), "[\"d\"]"),
            ("env.split_ratio", text("2:1:7"), "\"2:1:7\""),
            ("model.target.model", Node::Float(4.5), "\"4.5\""),
            ("model.target.model", Node::Map(Default::default()), "a mapping is no text"),
        ] {
            let told = match convert(find(path).unwrap(), &node) {
                Ok(Some(value)) => value.to_string(),
                Ok(None) => "not given".into(),
                Err(complaint) => complaint.problem,
            };
            assert!(told.contains(expected), "{path} {node:?}: {told}");
        }
    }

    #[test]
    fn credentials_in_addresses_are_seen() {
        for (text, expected) in
            [("https://me:pw@host/v1", true), ("https://host/v1?mail=a@b", false), ("me@host", false)]
        {
            assert_eq!(holds_credentials(&Value::String(text.into())), expected, "{text}");
        }
    }
}

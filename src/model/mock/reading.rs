//! From the text of a script to its rules, so that what is wrong is told with its place. Must not know what rules mean.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::answer::Answer;
use super::script::{Rule, Script, ScriptError};

/// A script from JSON, or from what TOML says.
pub(super) fn script(value: Value) -> Result<Script, ScriptError> {
    let Value::Object(mut fields) = value else {
        return Err(ScriptError::BadKey { why: "a script is a table".into() });
    };
    let rules = fields.remove("rules").unwrap_or_else(|| Value::Array(Vec::new()));
    let mut script: Script = table(fields).map_err(|why| ScriptError::BadKey { why })?;
    let Value::Array(rules) = rules else {
        return Err(ScriptError::BadKey { why: "rules: expected a list of tables".into() });
    };
    for (index, value) in rules.into_iter().enumerate() {
        let name = value["name"].as_str().unwrap_or_default().to_owned();
        let bad = |why| ScriptError::BadRule { rule: index + 1, name: name.clone(), why };
        script.rules.push(rule(value).map_err(bad)?);
    }
    Ok(script)
}

fn rule(value: Value) -> Result<Rule, String> {
    let Value::Object(mut fields) = value else { return Err("a rule is a table".into()) };
    let answers = match fields.insert("answers".into(), Value::Array(Vec::new())) {
        Some(Value::Array(answers)) => answers,
        Some(_) => return Err("answers: expected a list".into()),
        None => return Err("key `answers` is missing".into()),
    };
    let mut rule: Rule = table(fields)?;
    for (index, answer) in answers.into_iter().enumerate() {
        rule.answers.push(Answer::read(answer).map_err(|why| format!("answer {}: {why}", index + 1))?);
    }
    Ok(rule)
}

/// Reads a table; what is wrong begins with the key.
pub(super) fn table<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, String> {
    let whole = serde_json::from_value(Value::Object(fields.clone()));
    whole.map_err(|error: serde_json::Error| {
        // The reader says what is wrong with a value but not whose value it is: each key is tried alone.
        let alone = fields.into_iter().find_map(|(key, value)| {
            let table = Map::from_iter([(key.clone(), value)]);
            let error = serde_json::from_value::<T>(Value::Object(table)).err()?.to_string();
            let about_key = error.starts_with("unknown field") || error.starts_with("missing field `");
            (!about_key).then(|| format!("{key}: {}", words(&error)))
        });
        alone.unwrap_or_else(|| words(&error.to_string()))
    })
}

/// The reader's message in the words of scripts.
pub(super) fn words(error: &str) -> String {
    let mut text = error.to_owned();
    for (from, to) in [
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown word"),
        (", there are no fields", ""),
        (", expected one of ", "; known: "),
        ("invalid type: ", "found "),
        ("invalid value: ", "found "),
        ("a sequence", "a list"),
        ("sequence", "a list"),
        ("a map", "a table"),
        ("map", "a table"),
        ("string \"", "the text \""),
        ("a string", "a text"),
        ("a boolean", "true or false"),
        ("boolean `", "`"),
        ("integer `", "the number "),
        ("floating point `", "the number "),
        ("null", "nothing"),
        ("usize", "a whole number"),
        ("u64", "a whole number"),
        ("u16", "a whole number up to 65535"),
        ("i64", "a whole number"),
        ("f64", "a number"),
    ] {
        text = text.replacen(from, to, 1);
    }
    match text.strip_prefix("missing field ") {
        Some(key) => format!("key {key} is missing"),
        None => text,
    }
}

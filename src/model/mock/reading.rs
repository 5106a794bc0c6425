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
    variant(fields, None)
}

/// The same for a table whose key `tag` says what kind it is.
pub(super) fn variant<T: DeserializeOwned>(
    fields: Map<String, Value>,
    tag: Option<&str>,
) -> Result<T, String> {
    let error_of = |fields: Map<String, Value>| {
        serde_json::from_value::<T>(Value::Object(fields)).err().map(|error| error.to_string())
    };
    let whole = match serde_json::from_value(Value::Object(fields.clone())) {
        Ok(read) => return Ok(read),
        Err(error) => error.to_string(),
    };
    // The reader says what is wrong with a value but not whose value it is: each key is tried alone. What is wrong without
    // the key as well is not the value's fault.
    let tagged: Map<String, Value> =
        tag.and_then(|tag| Some((tag.to_owned(), fields.get(tag)?.clone()))).into_iter().collect();
    let without = error_of(tagged.clone());
    let alone = fields.into_iter().find_map(|(key, value)| {
        let mut table = tagged.clone();
        table.insert(key.clone(), value);
        let error = error_of(table).filter(|error| Some(error) != without.as_ref())?;
        let of_key = error.starts_with(&format!("unknown field `{key}`"));
        (!of_key).then(|| format!("{key}: {}", words(&error)))
    });
    Err(alone.unwrap_or_else(|| words(&whole)))
}

/// The reader's message in the words of scripts.
pub(super) fn words(error: &str) -> String {
    let mut text = error.to_owned();
    for (from, to) in [
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown word"),
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
    if text.starts_with("unknown") {
        text = text.replacen(", expected ", "; known: ", 1);
    }
    match text.strip_prefix("missing field ") {
        Some(key) => format!("key {key} is missing"),
        None => text,
    }
}

//! The flat `config.json` of a foreign run, without its secrets, and the few settings a reader needs. Both vocabularies
//! (optimizer/target, teacher/student) are understood.

use serde_json::{Map, Value};

use super::fields::Fields;
use super::folder::Folder;
use super::history::gate_metric;
use super::patches::object;
use crate::domain::GateMetric;

const FILE: &str = "config.json";
/// What stands in place of a secret.
const REMOVED: &str = "(removed)";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignSettings {
    /// All keys, secrets removed.
    pub flat: Map<String, Value>,
    pub epochs: Option<u32>,
    pub steps_per_epoch: Option<u32>,
    pub train_size: Option<usize>,
    pub batch_size: Option<usize>,
    pub accumulation: Option<usize>,
    pub seed: Option<u64>,
    pub target: String,
    pub optimizer: String,
    pub env: String,
    pub metric: GateMetric,
    pub mixed_weight: f64,
    pub use_gate: bool,
    /// A bonus for leading words is part of the gate score.
    pub density: bool,
    /// Where the run lay on its machine: only to make sense of paths below it.
    pub out_root: String,
}

pub fn read(folder: &mut Folder) -> ForeignSettings {
    let Some(mut flat) = object(folder, FILE) else {
        if !folder.has(FILE) {
            folder.note(FILE, None, "is absent; sizes and models are not known");
        }
        return ForeignSettings { mixed_weight: 0.5, use_gate: true, ..ForeignSettings::default() };
    };
    for (key, value) in &mut flat {
        remove_secrets(key, value);
    }
    let fields = Fields { map: &flat, file: FILE, line: None, place: "" };
    let small = |count: Option<usize>| count.and_then(|count| u32::try_from(count).ok());
    let mut first =
        |keys: &[&str]| fields.first(keys).and_then(|key| fields.text(folder, key)).unwrap_or_default();
    let target = first(&["target_model", "student_model"]);
    let optimizer = first(&["optimizer_model", "teacher_model"]);
    let (env, out_root) = (first(&["env"]), first(&["out_root"]));
    let metric = match first(&["gate_metric"]).as_str() {
        "" => GateMetric::Hard,
        word => gate_metric(word).unwrap_or_else(|| {
            folder.note(FILE, None, format!("`gate_metric` is {word:?}; read as hard"));
            GateMetric::Hard
        }),
    };
    ForeignSettings {
        epochs: small(fields.count(folder, "num_epochs")),
        steps_per_epoch: small(fields.count(folder, "steps_per_epoch")),
        train_size: fields.count(folder, "train_size"),
        batch_size: fields.count(folder, "batch_size"),
        accumulation: fields.count(folder, "accumulation"),
        seed: fields.count(folder, "seed").map(|seed| seed as u64),
        mixed_weight: fields.number(folder, "gate_mixed_weight").unwrap_or(0.5),
        // Only the boolean false turns it off.
        use_gate: fields.value("use_gate") != Some(&Value::Bool(false)),
        density: fields.value("use_semantic_density") == Some(&Value::Bool(true)),
        target,
        optimizer,
        env,
        metric,
        out_root,
        flat,
    }
}

/// SkillOpt blanks three names only; any other key of a provider stands in its config as it was given.
fn remove_secrets(key: &str, value: &mut Value) {
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| remove_secrets(key, value)),
        Value::String(text) if !text.is_empty() && is_secret(key) => REMOVED.clone_into(text),
        _ => {}
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["api_key", "_token", "_key"].iter().any(|end| key.ends_with(end))
        || ["secret", "password", "credential", "connection_string"].iter().any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn settings(text: &str) -> (ForeignSettings, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), text).unwrap();
        let mut folder = Folder::open(dir.path()).unwrap();
        let settings = read(&mut folder);
        (settings, folder.into_oddities().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn secrets_stay_behind() {
        let (settings, _) = settings(
            r#"{"minimax_api_key": "abcdef", "azure_openai_api_key": "", "github_token": "t", "nested": {"password": "p"},
                "max_completion_tokens": 5, "optimizer_model": "m"}"#,
        );
        let told = Value::Object(settings.flat).to_string();
        assert_eq!(
            told,
            r#"{"minimax_api_key":"(removed)","azure_openai_api_key":"","github_token":"(removed)","nested":{"password":"(removed)"},"max_completion_tokens":5,"optimizer_model":"m"}"#
        );
    }

    #[test]
    fn both_vocabularies_and_odd_values() {
        let (settings, told) = settings(
            r#"{"teacher_model": "t", "student_model": "s", "num_epochs": "3", "use_gate": "false", "gate_metric": " SOFT ",
                "batch_size": [4]}"#,
        );
        assert_eq!((settings.optimizer.as_str(), settings.target.as_str()), ("t", "s"));
        assert_eq!((settings.epochs, settings.use_gate, settings.metric), (Some(3), true, GateMetric::Soft));
        assert_eq!(told, ["config.json: `batch_size` is a list, not a number; left out"]);
        let (off, _) = self::settings(r#"{"use_gate": false}"#);
        assert!(!off.use_gate);
    }
}

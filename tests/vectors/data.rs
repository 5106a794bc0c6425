//! Answers the vectors of data and batches: the generator, split counts, file forms, epoch plans; and SearchQA's answers
//! and scores.

use std::path::Path;

use planish::config::{AnswerRule, Config, EnvConfig, SplitMode};
use planish::domain::{Evaluator, Split};
use planish::env::batches::{epoch_plan, eval_size, train_batch};
use planish::env::mersenne::Random;
use planish::env::{
    Extraction, Rule, Scorer, Task, leading_passages, normalize, parse_ratio, read_rows, split_counts,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Case;

pub fn python_random(case: &Case) -> Option<Value> {
    let seed = case.input["seed"].as_i64()?.unsigned_abs();
    match case.function() {
        "Random(seed).shuffle(range(n))" => Some(json!(shuffled(seed, case.number("n")))),
        "Random(42).getrandbits(k) sequence" => {
            let mut random = Random::new(seed);
            let widths = case.input["bits"].as_array()?.iter().filter_map(Value::as_u64);
            Some(widths.map(|bits| random.getrandbits(bits as u32)).collect())
        }
        "sha256 of comma joined permutation" => {
            let order = shuffled(seed, case.number("n"));
            let joined = order.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            let digest = Sha256::digest(joined.as_bytes());
            let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            let last = &order[order.len() - 5..];
            Some(json!({"first10": order[..10], "last5": last, "sha256": digest}))
        }
        _ => None,
    }
}

pub fn split_counts_and_ratios(case: &Case) -> Option<Value> {
    match case.function() {
        "parse_split_ratio" => Some(match parse_ratio(case.input.as_str()?) {
            Ok(ratio) => json!({"ok": ratio}),
            Err(_) => json!({"error": "ValueError"}),
        }),
        "compute_split_counts" => {
            let ratio: [u32; 3] = serde_json::from_value(case.input["ratio"].clone()).ok()?;
            Some(json!(split_counts(case.number("total"), ratio)))
        }
        _ => None,
    }
}

pub fn batches(case: &Case) -> Option<Value> {
    let input = &case.input;
    match case.function() {
        "plan_train_epoch" => {
            let plan = epoch_plan(
                case.number("n_train"),
                case.number("steps_per_epoch"),
                case.number("accumulation"),
                case.number("batch_size"),
                input["seed"].as_u64()?,
                case.number("epoch") as u32,
            );
            let row = |batch: &planish::env::batches::Batch| json!({"seed": batch.seed, "batch_size": batch.items.len(), "items": batch.items});
            Some(plan.iter().map(row).collect())
        }
        "build_train_batch" => {
            let items =
                train_batch(case.number("n_train"), case.number("batch_size"), input["seed"].as_u64()?);
            Some(json!({"batch_size": items.len(), "items": items}))
        }
        "build_eval_batch" => {
            let Ok(split) = case.text("split").parse::<Split>() else {
                return Some(json!({"error": "unknown split"}));
            };
            let ids = &divided(["n_train", "n_val", "n_test"].map(|key| case.number(key)), 0)[split as usize];
            Some(json!(ids[..eval_size(case.number("env_num"), ids.len())]))
        }
        "limit" => {
            let n: [usize; 3] = serde_json::from_value(input["n"].clone()).ok()?;
            Some(json!(divided(n, case.number("limit")).map(|ids| ids.len())))
        }
        // Data sets have no base seeds; what draws them is the generator alone.
        "make_base_seeds" => {
            let slices = case.number("steps_per_epoch") * case.number("accumulation");
            Some((1..=slices as u64).map(|k| input["seed"].as_u64().unwrap_or_default() + k).collect())
        }
        "shuffle_epoch_seeds" => {
            let mut seeds: Vec<u64> = serde_json::from_value(input["base"].clone()).ok()?;
            Random::new(input["seed"].as_u64()? + 1000 * input["epoch"].as_u64()?).shuffle(&mut seeds);
            Some(json!(seeds))
        }
        "materialize_ratio_split" => {
            let folder = tempfile::tempdir().unwrap();
            write_rows(&folder.path().join("rows.json"), (0..case.number("n")).map(|id| json!(id)));
            let mut config = Config::default();
            config.env.data_path = folder.path().join("rows.json").display().to_string();
            config.env.split_ratio = case.text("ratio").to_owned();
            config.env.split_seed = input["seed"].as_u64()?;
            let number = |id: String| id.parse::<u64>().unwrap();
            let [train, val, test] = ids(&config).map(|ids| ids.into_iter().map(number).collect::<Vec<_>>());
            Some(json!({"train": train, "val": val, "test": test}))
        }
        "load_json_or_jsonl" => Some(match read_rows(case.input.as_str()?, Path::new("rows.json")) {
            Ok(rows) => json!({"ok": rows}),
            Err(_) => json!({"error": "JSONDecodeError"}),
        }),
        _ => None,
    }
}

pub fn searchqa(case: &Case) -> Option<Value> {
    let input = &case.input;
    match case.function() {
        "normalize_answer" => Some(json!(normalize(input.as_str()?))),
        "extract_answer" => Some(json!(answer(input.as_str()?))),
        "scores" => Some(scores(case.text("prediction"), &input["gold"])),
        "evaluate" => {
            let answer = answer(case.text("text"));
            let mut row = scores(&answer, &input["gold"]);
            row["predicted_answer"] = json!(answer);
            row["gold_answers"] = input["gold"].clone();
            Some(row)
        }
        "truncate_context" => Some(json!(leading_passages(case.text("context"), case.number("max_chars")))),
        _ => None,
    }
}

fn shuffled(seed: u64, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    Random::new(seed).shuffle(&mut order);
    order
}

/// Items as every template and scorer of the defaults can use them.
fn write_rows(path: &Path, ids: impl Iterator<Item = Value>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let rows: Vec<Value> = ids.map(|id| json!({"id": id, "question": "q", "answers": ["a"]})).collect();
    std::fs::write(path, json!(rows).to_string()).unwrap();
}

/// The ids of three split folders with `n` items each, as they are loaded with `limit`.
fn divided(n: [usize; 3], limit: usize) -> [Vec<String>; 3] {
    let folder = tempfile::tempdir().unwrap();
    for (split, n) in Split::ALL.into_iter().zip(n) {
        let ids = (0..n).map(|place| json!(format!("{}{place}", split.name())));
        write_rows(&folder.path().join(split.name()).join("items.json"), ids);
    }
    let mut config = Config::default();
    config.env.split_mode = SplitMode::SplitDir;
    config.env.split_dir = folder.path().display().to_string();
    config.env.limit = limit;
    ids(&config)
}

fn ids(config: &Config) -> [Vec<String>; 3] {
    let data = Task::open(config, None).unwrap_or_else(|error| panic!("{error}")).data;
    let evaluator = Evaluator::for_evaluation_stage();
    let opened = |held: &[planish::domain::HeldOut<planish::domain::Item>]| -> Vec<String> {
        held.iter().map(|item| item.open(&evaluator).id.clone()).collect()
    };
    [data.train.iter().map(|item| item.id.clone()).collect(), opened(&data.val), opened(&data.test)]
}

fn answer(reply: &str) -> String {
    let config = EnvConfig { answer_rule: AnswerRule::TagOrLastLine, ..EnvConfig::default() };
    Extraction::new(&config).unwrap().extract(reply).unwrap_or_default().to_owned()
}

/// Exact match is hard, F1 is soft; items without a usable reference answer are refused when data is loaded.
fn scores(prediction: &str, gold: &Value) -> Value {
    let scorer = Scorer { kind: Rule::F1, numeric_tolerance: 0.0 };
    match scorer.references(gold) {
        Ok(references) => {
            let score = scorer.score(prediction, &references);
            json!({"em": score.hard, "f1": score.soft})
        }
        Err(problem) => json!({"refused": problem}),
    }
}

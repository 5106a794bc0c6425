//! A foreign rollout folder: one result per row of `results.jsonl`, with what `predictions/<item>/` adds. A row without
//! a score is a missing result, never a 0.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::fields::{Fields, cut, kind, number};
use super::folder::Folder;
use super::python_json;
use crate::domain::{FinishReason, Rollout, Score, Turn, Usage};
use crate::event::ItemResult;
use crate::store::encode_item_id;

/// Failures of calls that SkillOpt stored as rows of score 0 begin so.
const CALL_FAILED: &str = "error:";

/// The rows of one rollout folder, one per item, in file order.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignRollouts {
    pub results: Vec<ItemResult>,
    /// Means as SkillOpt takes them: a row without a score counts as 0.
    pub counted_hard: f64,
    pub counted_soft: f64,
}

/// Reads `folder/results.jsonl`; `None` when there is no such file or no row in it.
pub fn read(folder: &mut Folder, place: &str) -> Option<ForeignRollouts> {
    let file = format!("{place}/results.jsonl");
    let text = folder.text(&file)?;
    let mut rows: Vec<(ItemResult, f64, f64)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let Some(map) = row(folder, &file, index + 1, line) else { continue };
        let fields = Fields { map: &map, file: &file, line: Some(index + 1), place: "" };
        let Some(read) = result(folder, place, &fields) else { continue };
        match places.get(read.0.item()) {
            Some(earlier) => {
                fields.note(folder, "the item has an earlier row; the later one stands");
                rows[*earlier] = read;
            }
            None => {
                places.insert(read.0.item().to_owned(), rows.len());
                rows.push(read);
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mean =
        |value: fn(&(ItemResult, f64, f64)) -> f64| rows.iter().map(value).sum::<f64>() / rows.len() as f64;
    let (counted_hard, counted_soft) = (mean(|row| row.1), mean(|row| row.2));
    let results = rows.into_iter().map(|(result, ..)| result).collect();
    Some(ForeignRollouts { results, counted_hard, counted_soft })
}

/// One line as an object. A crash may leave half a row, and the next one is then written right behind it.
fn row(folder: &mut Folder, file: &str, line: usize, text: &str) -> Option<Map<String, Value>> {
    const BEGIN: &str = "{\"id\":";
    let parsed = |text: &str| match python_json::value(text) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    };
    if let Some(map) = parsed(text) {
        return Some(map);
    }
    let behind = text.match_indices(BEGIN).skip_while(|(at, _)| *at == 0).last();
    let rescued = behind.and_then(|(at, _)| parsed(&text[at..]));
    let what = match rescued {
        Some(_) => "a torn row, with a whole one behind it: only that one is taken",
        None => "a torn row; left out",
    };
    folder.note(file, Some(line), what);
    rescued
}

/// The result of a row and its scores as SkillOpt counts them.
fn result(folder: &mut Folder, place: &str, fields: &Fields<'_>) -> Option<(ItemResult, f64, f64)> {
    let Some(item) = fields.text(folder, "id") else {
        fields.note(folder, "a row without an id; left out");
        return None;
    };
    let score = |key: &str| fields.value(key).and_then(number);
    let (hard, soft) = (score("hard"), score("soft"));
    let counted = |score: Option<f64>| score.filter(|score| score.is_finite()).unwrap_or(0.0);
    let reason = fields.text(folder, "fail_reason").unwrap_or_default();
    let missing = |error: String| {
        let result = ItemResult::Missing { item: item.clone(), error: cut(error) };
        Some((result, counted(hard), counted(soft)))
    };
    let Some(hard) = hard else {
        let told = fields.text(folder, "error").unwrap_or(reason);
        return missing(if told.is_empty() { "the row has no score".into() } else { told });
    };
    if !(0.0..=1.0).contains(&hard) {
        fields.note(folder, &format!("`hard` is {hard}, outside of 0 to 1; the item counts as missing"));
        return missing(format!("the recorded score is {hard}"));
    }
    if hard == 0.0 && reason.trim_start().to_ascii_lowercase().starts_with(CALL_FAILED) {
        fields.note(folder, "a call that failed, recorded as 0; the item counts as missing");
        return missing(reason);
    }
    let partial = match soft {
        Some(soft) if (0.0..=1.0).contains(&soft) => soft,
        _ => {
            fields.note(folder, "`soft` is no score; `hard` stands for it");
            hard
        }
    };
    let rollout = rollout(folder, place, fields, &item, Score { hard, soft: partial, reason: cut(reason) });
    Some((ItemResult::Scored(Arc::new(rollout)), hard, counted(soft)))
}

fn rollout(folder: &mut Folder, place: &str, fields: &Fields<'_>, item: &str, score: Score) -> Rollout {
    let mut first = |keys: &[&str]| {
        let text = fields.first(keys).and_then(|key| fields.text(folder, key));
        cut(text.unwrap_or_default())
    };
    let task_type = first(&["task_type", "instruction_type"]);
    let task = first(&["question", "task_description", "instruction", "gamefile"]);
    let answer = first(&["predicted_answer", "predicted_text", "predicted_label", "answer"]);
    let response = first(&["response"]);
    let gold = gold(fields);
    let texts = predictions(folder, place, item);
    let mut text = |name: &str| texts.as_ref().and_then(|texts| folder.text(&format!("{texts}/{name}")));
    let system_prompt = text("target_system_prompt.txt");
    let user_prompt = text("target_user_prompt.txt");
    let turns = texts.map(|texts| conversation(folder, &texts)).unwrap_or_default();
    let said = turns.iter().rev().find_map(|turn| match turn {
        Turn::Message { content, .. } => Some(content.clone()),
        Turn::ToolCall { .. } | Turn::Step { .. } | Turn::Verification { .. } => None,
    });
    let reply = if response.is_empty() { said.unwrap_or_default() } else { response };
    Rollout {
        item: item.to_owned(),
        task_type,
        task,
        gold,
        system_prompt: cut(system_prompt.unwrap_or_default()).into(),
        user_prompt: cut(user_prompt.unwrap_or_default()),
        reply,
        answer,
        turns,
        score,
        finish: FinishReason::Other,
        usage: Usage::default(),
        ms: 0,
        judging: None,
    }
}

/// The reference of an item: environments spell it differently.
fn gold(fields: &Fields<'_>) -> String {
    const KEYS: [&str; 6] =
        ["gold_answers", "gold_answer", "ground_truth", "correct_text", "correct_label", "answers"];
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    cut(match KEYS.iter().find_map(|key| fields.value(key)) {
        None => String::new(),
        Some(Value::Array(answers)) => answers.iter().map(text).collect::<Vec<_>>().join(" | "),
        Some(value) => text(value),
    })
}

/// The item's folder of texts. SkillOpt uses ids as they are, planish encodes them.
fn predictions(folder: &mut Folder, place: &str, item: &str) -> Option<String> {
    let raw = format!("{place}/predictions/{item}");
    let encoded = format!("{place}/predictions/{}", encode_item_id(item));
    [raw, encoded].into_iter().find(|name| {
        ["conversation.json", "target_user_prompt.txt", "target_system_prompt.txt"]
            .iter()
            .any(|file| folder.has(&format!("{name}/{file}")))
    })
}

/// `conversation.json`, turn by turn.
fn conversation(folder: &mut Folder, texts: &str) -> Vec<Turn> {
    let file = format!("{texts}/conversation.json");
    match folder.json(&file) {
        Some(Value::Array(turns)) => turns.iter().map(|row| Turn::of_row(row, cut)).collect(),
        Some(other) => {
            folder.note(&file, None, format!("is {}, not a list; left out", kind(&other)));
            Vec::new()
        }
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read_rows(rows: &str) -> (Option<ForeignRollouts>, Vec<String>, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("r")).unwrap();
        fs::write(dir.path().join("r/results.jsonl"), rows).unwrap();
        let mut folder = Folder::open(dir.path()).unwrap();
        let read = read(&mut folder, "r");
        let told = folder.into_oddities().iter().map(ToString::to_string).collect();
        (read, told, dir)
    }

    fn score(result: &ItemResult) -> Option<(f64, f64)> {
        result.rollout().map(|rollout| (rollout.score.hard, rollout.score.soft))
    }

    #[test]
    fn scores_in_all_spellings_and_never_an_invented_zero() {
        let (read, told, _dir) = read_rows(concat!(
            "{\"id\": \"a\", \"hard\": 1, \"soft\": null}\n",
            "{\"id\": 2, \"hard\": \"0.5\", \"soft\": 0.75}\n",
            "{\"id\": \"c\", \"hard\": NaN, \"soft\": 0.5}\n",
            "{\"id\": \"d\", \"hard\": 0, \"soft\": 0.0, \"fail_reason\": \"error: 503\"}\n",
            "{\"id\": \"e\", \"soft\": 1}\n",
            "{\"id\": \"f\", \"hard\": 0, \"soft\": 0.0, \"fail_reason\": \"EM=0\"}\n",
            "{\"id\": \"g\", \"hard\": 7}\n",
            "{\"id\": \"h\", \"hard\": [1]}\n",
            "{\"hard\": 1}\n[1]\n",
        ));
        let read = read.unwrap();
        let scores: Vec<_> = read.results.iter().map(|row| (row.item(), score(row))).collect();
        let expected = [
            ("a", Some((1.0, 1.0))),
            ("2", Some((0.5, 0.75))),
            ("c", None),
            ("d", None),
            ("e", None),
            ("f", Some((0.0, 0.0))),
            ("g", None),
            ("h", None),
        ];
        assert_eq!(scores, expected);
        assert_eq!(read.counted_hard, (1.0 + 0.5 + 7.0) / 8.0);
        assert!(
            told.iter().any(|note| note.starts_with("r/results.jsonl:4: a call that failed")),
            "{told:?}"
        );
        assert!(told.iter().any(|note| note.starts_with("r/results.jsonl:10: a torn row")), "{told:?}");
    }

    #[test]
    fn torn_and_repeated_rows() {
        let whole = "{\"id\": \"b\", \"hard\": 1, \"soft\": 1}";
        let (read, told, _dir) = read_rows(&format!(
            "{{\"id\": \"a\", \"response\": \"cut of{whole}\n{{\"id\": \"b\", \"hard\": 0, \"soft\": 0}}\n{{\"id\": \"c\", \"ha"
        ));
        let read = read.unwrap();
        assert_eq!(read.results.len(), 1);
        assert_eq!(score(&read.results[0]), Some((0.0, 0.0)));
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains(":1: a torn row, with a whole one behind it"), "{told:?}");
        assert!(told[1].contains(":2: the item has an earlier row"), "{told:?}");
        assert!(told[2].contains(":3: a torn row; left out"), "{told:?}");
        let (none, told, _dir) = read_rows("\n\n");
        assert!(none.is_none() && told.is_empty());
    }

    #[test]
    fn ids_are_no_paths() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("out/secret/target_user_prompt.txt", "outside");
        put(
            "in/r/results.jsonl",
            "{\"id\": \"../../../out/secret\", \"hard\": 1}\n{\"id\": \"a/b\", \"hard\": 1}\n",
        );
        put("in/r/predictions/a/b/target_user_prompt.txt", "inside");
        put(
            "in/r/predictions/a/b/conversation.json",
            "[{\"type\": \"message\", \"content\": \"hello\"}, {\"role\": \"system\", \"content\": \"verdict\"}]",
        );
        let mut folder = Folder::open(&dir.path().join("in")).unwrap();
        let read = read(&mut folder, "r").unwrap();
        let texts: Vec<_> = read
            .results
            .iter()
            .map(|row| row.rollout().map(|rollout| (rollout.user_prompt.as_str(), rollout.reply.as_str())))
            .collect();
        assert_eq!(texts, [Some(("", "")), Some(("inside", "hello"))]);
    }
}

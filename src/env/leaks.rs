//! Text of held-out items in a document that is to be handed out. Tells where and of which item, never what; must not
//! be asked while a run optimises.

use std::collections::HashSet;

use serde_json::Value;

use crate::config::Config;
use crate::domain::Split;

use super::error::DataError;
use super::rows::PlacedItem;
use super::split::Splits;

/// So many words in a row, or a whole shorter text of at least [`SHORTEST`] characters, are no coincidence.
const WORDS: usize = 8;
const SHORTEST: usize = 16;

/// What a document has of a held-out item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    pub split: Split,
    pub item: String,
    /// Line of the document, from 1.
    pub line: usize,
}

/// Texts of the held-out splits of one data set, to look for in documents.
pub struct HeldOutTexts {
    splits: Splits,
}

impl HeldOutTexts {
    /// The data that `config` names.
    ///
    /// # Errors
    /// Data that cannot be read.
    pub fn load(config: &Config) -> Result<Self, DataError> {
        Ok(Self { splits: Splits::load(&config.env, config.train.seed)? })
    }

    /// Held-out items whose text stands in `document`. What the training split shows too is no secret.
    pub fn found_in(&self, document: &str) -> Vec<Leak> {
        let (words, lines) = words_with_lines(document);
        let [train, val, test] = &self.splits.parts;
        let mut leaks = Vec::new();
        let runs: HashSet<&[String]> = (1..=WORDS).flat_map(|n| words.windows(n)).collect();
        let mut shown: Option<HashSet<Vec<String>>> = None;
        for (split, part) in [(Split::Val, val), (Split::Test, test)] {
            for placed in part {
                let parts = telling_parts(placed);
                let mut hits = parts.iter().filter(|part| runs.contains(part.as_slice()));
                let hit = hits.find(|part| {
                    let shown = shown.get_or_insert_with(|| train.iter().flat_map(telling_parts).collect());
                    !shown.contains(*part)
                });
                let place = hit.and_then(|hit| words.windows(hit.len()).position(|window| window == hit));
                if let Some(place) = place {
                    let line = lines.get(place).copied().unwrap_or(1);
                    leaks.push(Leak { split, item: placed.item.id.clone(), line });
                }
            }
        }
        leaks
    }
}

/// Runs of words that tell an item's texts.
fn telling_parts(placed: &PlacedItem) -> Vec<Vec<String>> {
    let mut parts = Vec::new();
    let mut open: Vec<&Value> =
        placed.item.fields.iter().filter(|(name, _)| *name != "id").map(|(_, value)| value).collect();
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                let (words, _) = words_with_lines(text);
                if words.iter().map(|word| word.chars().count() + 1).sum::<usize>() > SHORTEST {
                    parts.extend(words.windows(words.len().clamp(1, WORDS)).map(<[String]>::to_vec));
                }
            }
            Value::Array(values) => open.extend(values),
            Value::Object(fields) => open.extend(fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    parts
}

/// Words without case and punctuation, each with its line.
fn words_with_lines(text: &str) -> (Vec<String>, Vec<usize>) {
    let words = text.lines().enumerate().flat_map(|(place, line)| {
        let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(move |word| (word.to_lowercase(), place + 1))
    });
    words.unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_out(rows: [&str; 3]) -> (tempfile::TempDir, HeldOutTexts) {
        let dir = tempfile::tempdir().unwrap();
        for (split, rows) in Split::ALL.into_iter().zip(rows) {
            let folder = dir.path().join(split.name());
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("items.json"), rows).unwrap();
        }
        let mut config = Config::default();
        config.env.split_mode = crate::config::SplitMode::SplitDir;
        config.env.split_dir = dir.path().display().to_string();
        let texts = HeldOutTexts::load(&config).unwrap();
        (dir, texts)
    }

    #[test]
    fn held_out_text_is_found_in_other_letters_and_lines_and_shared_text_is_not() {
        let (_dir, texts) = held_out([
            r#"[{"id": "a", "question": "What is the capital of a country that everyone knows?", "answers": ["Bern"]}]"#,
            r#"[{"id": "b", "question": "What is the capital of a country that borders five seas at once?", "answers": ["an-answer-of-17-x"]}]"#,
            r#"[{"id": "c", "question": "Short?", "context": {"text": ["The quick brown fox jumps over the lazy dog of Rome"]}}]"#,
        ]);
        let found = |text: &str| texts.found_in(text);
        assert_eq!(found("What is the capital of a country that"), [], "shown by the training split");
        assert_eq!(found("Short? Bern."), [], "too short to tell");
        let b = Leak { split: Split::Val, item: "b".into(), line: 3 };
        assert_eq!(found("x\ny\nof A COUNTRY, that borders\nfive seas at once"), std::slice::from_ref(&b));
        assert_eq!(found("x\ny\nthe answer: an answer, of 17 X."), [b], "a whole answer");
        let c = Leak { split: Split::Test, item: "c".into(), line: 1 };
        assert_eq!(found("brown fox jumps over the lazy dog of"), [c]);
        assert_eq!(found("brown fox jumps over the lazy dog"), []);
        assert_eq!(found(""), []);
    }
}

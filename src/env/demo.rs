//! The demo tasks city, domain and upper: short copying tasks that a very small model can learn from examples in the
//! skill. Owns their word lists and templates; must not know models.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::domain::Item;

use super::error::{DataError, Place, Row};
use super::mersenne::Random;
use super::rows::PlacedItem;

/// Items in train, val and test.
const SIZES: [usize; 3] = [40, 60, 100];

const NAMES: &str = include_str!("../../assets/demo/names.txt");
const CITIES: &str = include_str!("../../assets/demo/cities.txt");
const OBJECTS: &str = include_str!("../../assets/demo/objects.txt");
const COMPANIES: &str = include_str!("../../assets/demo/companies.txt");

/// Name, city and object are filled in; the sentences differ in where the city stands.
const SENTENCES: [&str; 4] = [
    "Yesterday NAME flew to CITY with a new OBJECT.",
    "NAME bought the OBJECT at a market in CITY.",
    "In CITY, the old OBJECT was found by NAME.",
    "The OBJECT that NAME sent from CITY is here.",
];

const ENDINGS: [&str; 4] = ["com", "org", "net", "io"];

/// Generates a family: `city`, `domain` or `upper`. Equal seeds give equal items; no name, city, object or domain occurs
/// in two items, so none is shared between splits.
pub(super) fn generate(family: &str, seed: u64) -> Result<[Vec<PlacedItem>; 3], DataError> {
    let make: fn(&mut Random) -> Vec<(String, String)> = match family {
        "city" => city,
        "domain" => domain,
        "upper" => upper,
        other => {
            return Err(DataError::setting(
                "env.data_path",
                format!(
                    "there is no demo task {other:?}; use \"demo:city\", \"demo:domain\" or \"demo:upper\""
                ),
            ));
        }
    };
    let file = PathBuf::from(format!("demo:{family}"));
    let mut tasks = make(&mut Random::new(seed)).into_iter().enumerate().map(|(i, (question, answer))| {
        let id = format!("{family}-{:03}", i + 1);
        let fields: Map<String, Value> = [
            ("id", json!(id)),
            ("question", json!(question)),
            ("answers", json!([answer])),
            ("task_type", json!(family)),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        PlacedItem {
            item: Item { id, fields },
            place: Place { file: file.clone(), row: Row::Element(i + 1) },
        }
    });
    Ok(SIZES.map(|size| tasks.by_ref().take(size).collect()))
}

/// Task and reference answer, `SIZES` in sum.
fn city(random: &mut Random) -> Vec<(String, String)> {
    let (names, cities, objects) = (draw(random, NAMES), draw(random, CITIES), draw(random, OBJECTS));
    let mut tasks = Vec::new();
    for (i, ((name, city), object)) in names.into_iter().zip(cities).zip(objects).enumerate() {
        let sentence = SENTENCES[i % SENTENCES.len()];
        let text = sentence.replace("NAME", name).replace("CITY", city).replace("OBJECT", object);
        tasks.push((format!("Text: {text}"), city.to_owned()));
    }
    tasks
}

fn domain(random: &mut Random) -> Vec<(String, String)> {
    let (names, companies) = (draw(random, NAMES), draw(random, COMPANIES));
    let mut tasks = Vec::new();
    for (i, (name, company)) in names.into_iter().zip(companies).enumerate() {
        let domain = format!("{company}.{}", ENDINGS[i % ENDINGS.len()]);
        tasks.push((format!("Email: {}@{domain}", name.to_lowercase()), domain));
    }
    tasks
}

fn upper(random: &mut Random) -> Vec<(String, String)> {
    let words = draw(random, OBJECTS);
    words.into_iter().map(|word| (format!("Word: {word}"), word.to_uppercase())).collect()
}

/// As many different words of a list as there are items.
fn draw(random: &mut Random, list: &'static str) -> Vec<&'static str> {
    let words: Vec<&str> = list.lines().collect();
    random.sample(&words, SIZES.iter().sum())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn texts(family: &str, seed: u64) -> [Vec<(String, String)>; 3] {
        generate(family, seed).unwrap().map(|part| {
            part.into_iter()
                .map(|placed| {
                    let field = |name: &str| placed.item.fields[name].clone();
                    (field("question").as_str().unwrap().into(), field("answers")[0].as_str().unwrap().into())
                })
                .collect()
        })
    }

    /// The words of a task that its family takes from lists.
    fn values(family: &str, task: &str) -> HashSet<String> {
        let lower = NAMES.to_lowercase();
        let listed: HashSet<&str> = match family {
            "city" => [NAMES, CITIES, OBJECTS].iter().flat_map(|list| list.lines()).collect(),
            "domain" => [lower.as_str(), COMPANIES].iter().flat_map(|list| list.lines()).collect(),
            _ => OBJECTS.lines().collect(),
        };
        let words = task.split(|c: char| !c.is_alphanumeric());
        words.filter(|word| listed.contains(word)).map(str::to_owned).collect()
    }

    #[test]
    fn lists_are_long_clean_and_without_repeats() {
        for list in [NAMES, CITIES, OBJECTS, COMPANIES] {
            let words: HashSet<&str> = list.lines().collect();
            assert!(words.len() >= 300 && words.len() == list.lines().count());
            assert!(words.iter().all(|word| word.len() > 1 && word.chars().all(|c| c.is_ascii_alphabetic())));
        }
    }

    #[test]
    fn no_value_occurs_in_two_splits_or_twice_in_one() {
        for family in ["city", "domain", "upper"] {
            for seed in [0, 1, 42, 7_000_000_000] {
                let parts = texts(family, seed);
                assert_eq!(parts.each_ref().map(Vec::len), SIZES);
                let mut seen = HashSet::new();
                for (task, answer) in parts.iter().flatten() {
                    let values = values(family, task);
                    let wanted = match family {
                        "city" => 3,
                        "domain" => 2,
                        _ => 1,
                    };
                    assert_eq!(values.len(), wanted, "{task}");
                    assert!(values.iter().all(|value| seen.insert(value.clone())), "{task} repeats a value");
                    assert!(task.to_lowercase().contains(&answer.to_lowercase()));
                }
            }
        }
    }

    /// Computed with CPython's `random.sample` from the lists: a changed list or draw is another data set, and makes
    /// every recorded demo run one of other tasks.
    #[test]
    fn seed_42_gives_these_tasks() {
        for (family, first, last) in [
            (
                "city",
                "Text: Yesterday Sean flew to Kabul with a new anchor.",
                "Text: The spoon that Ruth sent from Amman is here.",
            ),
            ("domain", "Email: sean@woodland.com", "Email: ruth@marlin.io"),
            ("upper", "Word: chair", "Word: lamp"),
        ] {
            let [train, _, test] = texts(family, 42);
            assert_eq!((train[0].0.as_str(), test[99].0.as_str()), (first, last));
        }
    }

    #[test]
    fn equal_seeds_give_equal_tasks_and_other_seeds_others() {
        assert_eq!(texts("city", 42), texts("city", 42));
        assert_ne!(texts("city", 42), texts("city", 43));
    }

    #[test]
    fn tasks_have_their_family_form() {
        for (family, start) in [("city", "Text: "), ("domain", "Email: "), ("upper", "Word: ")] {
            let [train, ..] = texts(family, 42);
            assert!(train.iter().all(|(task, answer)| task.starts_with(start) && !answer.contains(' ')));
        }
        let [train, ..] = texts("domain", 42);
        assert!(train.iter().all(|(task, answer)| task.ends_with(&format!("@{answer}"))));
    }

    #[test]
    fn an_unknown_family_names_the_known_ones() {
        let message = generate("cities", 1).unwrap_err().to_string();
        assert!(message.starts_with("env.data_path: there is no demo task \"cities\"; use \"demo:city\""));
    }
}

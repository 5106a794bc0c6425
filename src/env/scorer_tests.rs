use serde_json::json;

use super::*;

fn score(kind: Rule, answer: &str, golds: serde_json::Value) -> Score {
    let scorer = Scorer { kind, numeric_tolerance: 0.01 };
    let references = scorer.references(&golds).unwrap();
    scorer.score(answer, &references)
}

fn hard(kind: Rule, answer: &str, gold: &str) -> bool {
    score(kind, answer, json!(gold)).hard == 1.0
}

#[test]
fn exact_groups_its_misses() {
    assert_eq!(score(Rule::Exact, "Bern", json!("Bern")).reason, "right: \"Bern\"");
    let miss = |answer: &str| score(Rule::Exact, answer, json!("Bern")).reason;
    assert_eq!(miss("bern."), "right content in the wrong form: got \"bern.\", wanted \"Bern\"");
    assert_eq!(miss("It is Bern."), "more than the answer: got \"It is Bern.\", wanted \"Bern\"");
    assert_eq!(miss("Hugo"), "wrong answer: got \"Hugo\", wanted \"Bern\"");
}

#[test]
fn the_best_of_several_references_counts() {
    let best = score(Rule::F1, "new york city", json!(["Boston", "New York", "York"]));
    assert_eq!((best.hard, best.soft), (0.0, 0.8));
    assert_eq!(best.reason, "partly right: got \"new york city\", wanted \"New York\" (F1 0.80)");
    assert_eq!(score(Rule::Exact, "b", json!(["a", "b"])).hard, 1.0);
}

#[test]
fn normalized_exact_has_no_partial_credit() {
    assert!(hard(Rule::NormalizedExact, "The  Cat!", "cat"));
    assert_eq!(score(Rule::NormalizedExact, "cat dog", json!("cat")).soft, 0.0);
}

#[test]
fn contains_looks_at_whole_words_in_order() {
    assert!(hard(Rule::Contains, "It is New York, I think.", "new york"));
    assert!(!hard(Rule::Contains, "concatenate", "cat"));
    let partial = score(Rule::Contains, "york is new", json!("New York City"));
    assert_eq!((partial.hard, partial.soft), (0.0, 2.0 / 3.0));
    assert!(partial.reason.starts_with("not contained: "));
}

#[test]
fn regex_searches_the_answer() {
    assert!(hard(Rule::Regex, "about 12 apples", r"\d+ apples?"));
    assert!(!hard(Rule::Regex, "about 12 apples", r"^\d+ apples?$"));
    assert!(score(Rule::Regex, "x", json!("y")).reason.starts_with("no match: "));
}

#[test]
fn numeric_compares_the_last_number_within_the_tolerance() {
    for (answer, gold, equal) in [
        ("3 + 4 = 7", "7", true),
        ("$1,234.50", "1234.5", true),
        ("1,2", "2", true),
        ("-3", "-3", true),
        ("\u{2212}3", "-3", true),
        ("10-12", "12", true),
        ("-3", "3", false),
        ("7.009", "7", true),
        ("7.02", "7", false),
        ("1.5e3", "1500", true),
        (".5", "0.5", true),
        ("version 2e", "2", true),
        ("12,345,678", "12345678", true),
        ("1,23,456", "23456", true),
    ] {
        assert_eq!(hard(Rule::Numeric, answer, gold), equal, "{answer} against {gold}");
    }
    assert!(score(Rule::Numeric, "seven", json!(7)).reason.starts_with("not a number: "));
}

#[test]
fn choice_compares_letters() {
    assert!(hard(Rule::Choice, "The answer is (c).", "C"));
    assert!(!hard(Rule::Choice, "B", "C"));
    assert!(score(Rule::Choice, "no idea", json!("C")).reason.starts_with("no choice: "));
}

#[test]
fn unusable_references_are_named() {
    let refuse = |kind, value: serde_json::Value| {
        Scorer { kind, numeric_tolerance: 0.0 }.references(&value).unwrap_err()
    };
    assert_eq!(refuse(Rule::Exact, json!([])), "the list of answers is empty");
    assert_eq!(refuse(Rule::Exact, json!(" ")), "an answer is empty");
    assert_eq!(refuse(Rule::Exact, json!(null)), "null is not a text, a number or a list of them");
    assert!(refuse(Rule::Exact, json!({"a": 1})).contains("is not a text"));
    assert_eq!(refuse(Rule::Numeric, json!("seven")), "\"seven\" has no number");
    assert!(refuse(Rule::Regex, json!("(")).contains("unclosed group"));
    assert!(refuse(Rule::Choice, json!("Paris")).contains("not a choice letter"));
    assert!(refuse(Rule::Contains, json!("the!")).contains("no words"));
}

#[test]
fn numbers_and_truth_values_are_references_too() {
    assert_eq!(score(Rule::Exact, "12", json!(12)).hard, 1.0);
    assert_eq!(score(Rule::Exact, "true", json!([false, true])).hard, 1.0);
}

#[test]
fn reasons_are_short_and_inert() {
    let reason = score(Rule::Exact, &"\u{1b}[31m\u{202e}".repeat(500), json!("Bern")).reason;
    assert!(!reason.contains(['\u{1b}', '\u{202e}']), "{reason}");
    assert!(reason.chars().count() < 1200);
}

//! Scorers: an answer against reference answers gives hard, soft and a reason. Owns what "right" means and the
//! version of that meaning; must not see prompts or skills.

use std::collections::HashMap;

use regex::Regex;
use serde_json::Value;

use crate::config::ScorerKind;
use crate::domain::Score;

use super::choice::choice_label;

/// Raised whenever any scorer may give another score for the same answer; part of evaluation fingerprints.
pub(super) const SCORER_VERSION: &str = "1";

/// The reference answers of one item, at least one, checked to be usable by the scorer.
#[derive(Clone, Debug, PartialEq)]
pub struct References(Vec<String>);

/// A scorer that needs no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Exact,
    NormalizedExact,
    F1,
    Contains,
    Regex,
    Numeric,
    Choice,
}

impl Rule {
    /// `None`: only a judge can tell.
    pub fn of(kind: ScorerKind) -> Option<Self> {
        Some(match kind {
            ScorerKind::Exact => Self::Exact,
            ScorerKind::NormalizedExact => Self::NormalizedExact,
            ScorerKind::F1 => Self::F1,
            ScorerKind::Contains => Self::Contains,
            ScorerKind::Regex => Self::Regex,
            ScorerKind::Numeric => Self::Numeric,
            ScorerKind::Choice => Self::Choice,
            ScorerKind::Judge => return None,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Scorer {
    pub kind: Rule,
    /// Largest absolute difference that `numeric` counts as equal.
    pub numeric_tolerance: f64,
}

/// Outcome against one reference answer.
struct Comparison {
    hard: bool,
    soft: f64,
    /// Group and detail of a miss.
    miss: (&'static str, String),
}

impl References {
    /// Reads the reference answer of an item: a text, a number, a truth value, or a list of them, any of which counts.
    /// The error says what is wrong with the value.
    pub fn read(value: &Value) -> Result<Self, String> {
        let one = |value: &Value| match value {
            Value::String(text) => Ok(text.trim().to_owned()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(truth) => Ok(truth.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(format!("{value} is not a text, a number or a list of them"))
            }
        };
        let golds = match value {
            Value::Array(list) if list.is_empty() => return Err("the list of answers is empty".to_owned()),
            Value::Array(list) => list.iter().map(one).collect::<Result<Vec<_>, _>>()?,
            single => vec![one(single)?],
        };
        match golds.iter().any(String::is_empty) {
            true => Err("an answer is empty".to_owned()),
            false => Ok(Self(golds)),
        }
    }

    /// How people and analysts see them.
    pub(super) fn display(&self) -> String {
        self.0.join(" | ")
    }
}

impl Scorer {
    /// Reference answers ([`References::read`]) that this scorer can compare with.
    pub fn references(&self, value: &Value) -> Result<References, String> {
        let references = References::read(value)?;
        for gold in &references.0 {
            self.check(gold)?;
        }
        Ok(references)
    }

    fn check(&self, gold: &str) -> Result<(), String> {
        match self.kind {
            Rule::Regex => Regex::new(gold).map(|_| ()).map_err(|error| error.to_string()),
            Rule::Numeric if last_number(gold).is_none() => Err(format!("{gold:?} has no number")),
            Rule::Choice if choice_label(gold).is_none() => {
                Err(format!("{gold:?} is not a choice letter such as \"B\""))
            }
            Rule::Contains if words(gold).is_empty() => {
                Err(format!("{gold:?} has no words besides articles and punctuation"))
            }
            Rule::Exact
            | Rule::NormalizedExact
            | Rule::F1
            | Rule::Contains
            | Rule::Numeric
            | Rule::Choice => Ok(()),
        }
    }

    /// The best score over all reference answers. `hard` is 0 or 1.
    ///
    /// | scorer | hard = 1 when | soft |
    /// |---|---|---|
    /// | `exact` | equal text | hard |
    /// | `normalized_exact` | equal after SQuAD normalisation | hard |
    /// | `f1` | as `normalized_exact` | token F1 of the normalised texts |
    /// | `contains` | the reference's normalised words occur in the answer, together and in order | share of them that occurs |
    /// | `regex` | the reference pattern matches somewhere (anchor it with `^` and `$`) | hard |
    /// | `numeric` | the last number is within the tolerance; units are not compared | hard |
    /// | `choice` | the same choice letter | hard |
    pub fn score(&self, answer: &str, references: &References) -> Score {
        let mut best: Option<Comparison> = None;
        for gold in &references.0 {
            let comparison = self.compare(answer, gold);
            let better = best.as_ref().is_none_or(|best| {
                (comparison.hard, comparison.soft).partial_cmp(&(best.hard, best.soft))
                    == Some(std::cmp::Ordering::Greater)
            });
            if better {
                best = Some(comparison);
            }
        }
        match best {
            Some(Comparison { hard: true, .. }) => {
                Score { hard: 1.0, soft: 1.0, reason: format!("right: {}", quoted(answer)) }
            }
            Some(Comparison { soft, miss: (group, detail), .. }) => {
                Score { hard: 0.0, soft, reason: format!("{group}: {detail}") }
            }
            None => no_answer("the item has no reference answer"),
        }
    }

    fn compare(&self, answer: &str, gold: &str) -> Comparison {
        let verdict = |hard: bool| Comparison {
            hard,
            soft: f64::from(u8::from(hard)),
            miss: ("wrong answer", format!("got {}, wanted {}", quoted(answer), quoted(gold))),
        };
        match self.kind {
            Rule::Exact => {
                let mut comparison = verdict(answer == gold);
                if normalize(answer) == normalize(gold) {
                    comparison.miss.0 = "right content in the wrong form";
                } else if holds(&words(answer), &words(gold)) {
                    comparison.miss.0 = "more than the answer";
                }
                comparison
            }
            Rule::NormalizedExact => verdict(normalize(answer) == normalize(gold)),
            Rule::F1 => {
                let soft = token_f1(answer, gold);
                let mut comparison = Comparison { soft, ..verdict(normalize(answer) == normalize(gold)) };
                if soft > 0.0 {
                    comparison.miss.0 = "partly right";
                    comparison.miss.1.push_str(&format!(" (F1 {soft:.2})"));
                }
                comparison
            }
            Rule::Contains => {
                let (answer_words, gold_words) = (words(answer), words(gold));
                let common = overlap(&answer_words, &gold_words) as f64;
                let mut comparison = verdict(holds(&answer_words, &gold_words));
                if !comparison.hard && !gold_words.is_empty() {
                    comparison.soft = common / gold_words.len() as f64;
                    comparison.miss.0 = "not contained";
                }
                comparison
            }
            Rule::Regex => match Regex::new(gold) {
                Ok(pattern) => {
                    let mut comparison = verdict(pattern.is_match(answer));
                    comparison.miss =
                        ("no match", format!("{} does not match {}", quoted(answer), quoted(gold)));
                    comparison
                }
                // Checked when the item was read.
                Err(_) => verdict(false),
            },
            Rule::Numeric => match (last_number(answer), last_number(gold)) {
                (Some(got), Some(wanted)) => verdict((got - wanted).abs() <= self.numeric_tolerance),
                (None, _) | (_, None) => Comparison {
                    miss: ("not a number", format!("got {}, wanted {}", quoted(answer), quoted(gold))),
                    ..verdict(false)
                },
            },
            Rule::Choice => match (choice_label(answer), choice_label(gold)) {
                (Some(got), Some(wanted)) => verdict(got == wanted),
                (None, _) | (_, None) => Comparison {
                    miss: (
                        "no choice",
                        format!("{} names no single choice, wanted {}", quoted(answer), gold),
                    ),
                    ..verdict(false)
                },
            },
        }
    }
}

/// The score of a reply without an answer.
pub(super) fn no_answer(why: &str) -> Score {
    Score { hard: 0.0, soft: 0.0, reason: format!("no answer: {why}") }
}

/// Untrusted text as one short, inert line: control and format characters are escaped.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut chars = text.chars();
    let shown: String = chars.by_ref().take(SHOWN).collect();
    if chars.next().is_some() { format!("{shown:?}…") } else { format!("{shown:?}") }
}

/// SQuAD's normalisation: lower case, ASCII punctuation dropped, then the words a, an, the dropped, then single
/// spaces (Rajpurkar et al. 2016, evaluation script).
pub fn normalize(text: &str) -> String {
    words(text).join(" ")
}

fn words(text: &str) -> Vec<String> {
    let bare: String = text.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    bare.split_whitespace().filter(|word| !matches!(*word, "a" | "an" | "the")).map(str::to_owned).collect()
}

/// Size of the multiset intersection.
fn overlap(left: &[String], right: &[String]) -> usize {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in left {
        *counts.entry(word).or_default() += 1;
    }
    right
        .iter()
        .filter(|word| match counts.get_mut(word.as_str()) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            Some(_) | None => false,
        })
        .count()
}

fn holds(text: &[String], part: &[String]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}

/// Harmonic mean of token precision and recall after normalisation; two texts without words agree (SQuAD).
fn token_f1(answer: &str, gold: &str) -> f64 {
    let (answer, gold) = (words(answer), words(gold));
    if answer.is_empty() || gold.is_empty() {
        return if answer == gold { 1.0 } else { 0.0 };
    }
    let common = overlap(&answer, &gold) as f64;
    if common == 0.0 {
        return 0.0;
    }
    let (precision, recall) = (common / answer.len() as f64, common / gold.len() as f64);
    2.0 * precision * recall / (precision + recall)
}

/// The last decimal number in `text`, with thousands separators (`1,234.5`), exponent and ASCII or Unicode minus. A
/// minus counts as a sign only where no word or number ends (`10-12` holds 10 and 12).
fn last_number(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut last = None;
    let mut at = 0;
    while at < bytes.len() {
        if !(digit(at) || bytes[at] == b'.' && digit(at + 1)) {
            at += 1;
            continue;
        }
        let start = at;
        let mut digits = String::new();
        while digit(at) || bytes.get(at) == Some(&b',') && is_group(bytes, start, at) {
            if bytes[at] != b',' {
                digits.push(char::from(bytes[at]));
            }
            at += 1;
        }
        if bytes.get(at) == Some(&b'.') && digit(at + 1) {
            digits.push('.');
            at += 1;
            while digit(at) {
                digits.push(char::from(bytes[at]));
                at += 1;
            }
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            if digit(at + 1 + sign) {
                let exponent = at;
                at += 1 + sign;
                while digit(at) {
                    at += 1;
                }
                digits.push_str(&text[exponent..at]);
            }
        }
        let before = &text[..start];
        let negative = before
            .strip_suffix(['-', '\u{2212}'])
            .is_some_and(|rest| !rest.ends_with(|c: char| c.is_alphanumeric() || c == ')'));
        if let Ok(value) = digits.parse::<f64>() {
            last = Some(if negative { -value } else { value });
        }
    }
    last
}

/// Whether the comma at `comma` separates thousands of the number that began at `start`: one to three digits or whole
/// groups before it, exactly three digits after it.
fn is_group(bytes: &[u8], start: usize, comma: usize) -> bool {
    let digits_before = bytes[start..comma].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let first_group = digits_before == comma - start;
    let after = bytes[comma + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    after == 3 && (first_group && (1..=3).contains(&digits_before) || digits_before == 3)
}

#[cfg(test)]
#[path = "scorer_tests.rs"]
mod tests;

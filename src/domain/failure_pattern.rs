//! What went wrong in a step, by kind. Owns which failures and which analysts' descriptions belong together; must not
//! decide who is told.

use super::{FailureNote, one_line};

/// Longest name or description of a pattern, in characters.
const QUOTE: usize = 400;

/// A failed training rollout.
#[derive(Clone, Copy, Debug)]
pub struct FailedItem<'a> {
    pub id: &'a str,
    /// The score's reason; the part before the first `:` groups failures.
    pub reason: &'a str,
}

/// What the analyst of one failure minibatch noted, with the items it saw.
#[derive(Clone, Copy, Debug)]
pub struct MinibatchNotes<'a> {
    pub items: &'a [String],
    pub notes: &'a [FailureNote],
}

/// Failures grouped by reason, in order of first appearance, as (pattern, count, item ids). An analyst's description
/// joins the group of the same name; kinds that only analysts named follow as their own patterns, with the items of
/// their minibatches. So no description stands beside another kind's count.
pub fn failure_patterns(
    failures: &[FailedItem],
    analysts: &[MinibatchNotes],
) -> Vec<(String, usize, Vec<String>)> {
    let mut patterns: Vec<Pattern> = Vec::new();
    for failure in failures {
        let name = one_line(failure.reason.split(':').next().unwrap_or_default(), QUOTE);
        let pattern = named(&mut patterns, if name.is_empty() { "unknown" } else { &name });
        pattern.count += 1;
        pattern.items.push(failure.id.to_owned());
    }
    let measured = patterns.len();
    for analyst in analysts {
        for note in analyst.notes {
            let pattern = named(&mut patterns, &one_line(&note.failure_type, QUOTE));
            pattern.describe(one_line(&note.description, QUOTE));
            if !pattern.measured(measured) {
                pattern.count += note.count.unwrap_or(analyst.items.len());
                for item in analyst.items {
                    if !pattern.items.contains(item) {
                        pattern.items.push(item.clone());
                    }
                }
            }
        }
    }
    patterns.into_iter().map(Pattern::into_row).collect()
}

struct Pattern {
    index: usize,
    name: String,
    descriptions: Vec<String>,
    count: usize,
    items: Vec<String>,
}

fn named<'a>(patterns: &'a mut Vec<Pattern>, name: &str) -> &'a mut Pattern {
    let known = patterns.iter().position(|pattern| pattern.name.to_lowercase() == name.to_lowercase());
    let index = known.unwrap_or(patterns.len());
    if known.is_none() {
        let (descriptions, items) = (Vec::new(), Vec::new());
        patterns.push(Pattern { index, name: name.to_owned(), descriptions, count: 0, items });
    }
    &mut patterns[index]
}

impl Pattern {
    /// Counted from scores, not from analysts.
    fn measured(&self, measured: usize) -> bool {
        self.index < measured
    }

    fn describe(&mut self, description: String) {
        if !description.is_empty() && !self.descriptions.contains(&description) {
            self.descriptions.push(description);
        }
    }

    fn into_row(self) -> (String, usize, Vec<String>) {
        let text = match self.descriptions.as_slice() {
            [] => self.name,
            descriptions => format!("{}: {}", self.name, descriptions.join("; ")),
        };
        (text, self.count, self.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: &str, count: Option<usize>, description: &str) -> FailureNote {
        FailureNote { failure_type: kind.into(), count, description: description.into() }
    }

    #[test]
    fn a_description_joins_its_own_kind_only() {
        let failures = [
            FailedItem { id: "1", reason: "Timeout: after 3 s" },
            FailedItem { id: "2", reason: "wrong answer: Rome" },
            FailedItem { id: "3", reason: "timeout: after 5 s" },
            FailedItem { id: "4", reason: "" },
        ];
        let (first, second) = (["1".to_owned(), "2".into()], ["3".to_owned(), "4".into()]);
        let notes =
            [note("guesses", Some(1), "names a city anyway"), note("Wrong Answer", Some(9), "copies")];
        let more = [note("guesses", None, "names a city anyway"), note("wrong answer", None, "too long")];
        let analysts = [
            MinibatchNotes { items: &first, notes: &notes },
            MinibatchNotes { items: &second, notes: &more },
        ];
        let patterns = failure_patterns(&failures, &analysts);
        let rows: Vec<(&str, usize, String)> =
            patterns.iter().map(|(name, count, ids)| (name.as_str(), *count, ids.join(" "))).collect();
        assert_eq!(
            rows,
            [
                ("Timeout", 2, "1 3".to_owned()),
                ("wrong answer: copies; too long", 1, "2".to_owned()),
                ("unknown", 1, "4".to_owned()),
                ("guesses: names a city anyway", 3, "1 2 3 4".to_owned()),
            ]
        );
    }

    #[test]
    fn a_huge_description_is_short_and_on_one_line() {
        let notes = [note("kind\nof", Some(1), &"long\n".repeat(10_000))];
        let patterns = failure_patterns(&[], &[MinibatchNotes { items: &[], notes: &notes }]);
        let pattern = &patterns[0].0;
        assert!(
            pattern.starts_with("kind of: long long ") && pattern.chars().count() < 2 * QUOTE,
            "{pattern}"
        );
        assert!(!pattern.contains('\n'));
    }
}

//! Reads the letter of a multiple-choice answer out of free text. Owns that reading only.

use std::sync::LazyLock;

use regex::Regex;

/// Compiles a constant pattern; `None` cannot happen for the patterns below (a test compiles them all).
fn compiled(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// The whole text is one letter with brackets, stars or a closing mark around it: `B`, `(b)`, `**B.**`.
static ALONE: LazyLock<Option<Regex>> =
    LazyLock::new(|| compiled(r"^[\s(\[{*_`'\x22$]*([A-Za-z])[\s)\]}*_`'\x22$.:,]*$"));

/// The text begins with a marked letter: `B) Paris`, `(B) Paris`, `**B**: Paris`, `B. Paris`.
static LEADING: LazyLock<Option<Regex>> =
    LazyLock::new(|| compiled(r"^[\s*_`]*(?:[(\[]([A-Za-z])[)\]]|([A-Za-z])[*_`]*[).:\]])(?:[*_`:\s]|$)"));

/// The text says so in words: `the answer is (B)`, `Option: C`, `The answer is A because …`.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i:\b(?:answer|option|choice)\b)(?i:\s+is)?[\s:=]*[*_`]*",
        r"(?:[(\[]([A-Za-z])[)\]]|([A-Z])(?:[)\]*_`.,;:!]|\s*$|\s+(?i:as|because|since)\b))",
    ))
});

/// A capital letter that stands alone.
static CAPITAL: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r"\b([A-Z])\b"));

/// The one choice that `text` names, as a capital letter; `None` when it names none or several.
pub(super) fn choice_label(text: &str) -> Option<char> {
    let letter = |found: regex::Captures<'_>| {
        let group = found.get(1).or_else(|| found.get(2))?;
        group.as_str().chars().next().map(|letter| letter.to_ascii_uppercase())
    };
    for rule in [&ALONE, &LEADING] {
        if let Some(found) = rule.as_ref().and_then(|rule| rule.captures(text)) {
            return letter(found);
        }
    }
    if let Some(found) = NAMED.as_ref().and_then(|rule| rule.captures_iter(text).last()) {
        return letter(found);
    }
    // "A" and "I" are words of English prose, so alone in a sentence they name nothing.
    let mut capitals: Vec<char> = CAPITAL
        .as_ref()
        .map(|rule| rule.captures_iter(text).filter_map(letter).filter(|c| !matches!(c, 'A' | 'I')).collect())
        .unwrap_or_default();
    capitals.dedup();
    match capitals.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_compile() {
        assert!([&ALONE, &LEADING, &NAMED, &CAPITAL].iter().all(|rule| rule.is_some()));
    }

    #[test]
    fn common_forms_name_their_letter() {
        for text in [
            "B",
            "b",
            " (B) ",
            "[b]",
            "B.",
            "**B**",
            "`B`",
            "B)",
            "$B$",
            "B) Paris",
            "B. Paris",
            "(B) Paris",
            "**B**: Paris",
            "B: Paris",
            "The answer is B",
            "The answer is (B).",
            "answer: B",
            "Answer: **B**",
            "Option B.",
            "So the correct choice is B, as A fails",
            "I think it must be B",
            "The answer is (b) here",
            "The answer is B because A fails",
            "First I took option A. But the answer is B.",
        ] {
            assert_eq!(choice_label(text), Some('B'), "{text:?}");
        }
    }

    #[test]
    fn prose_and_several_letters_name_none() {
        for text in
            ["", "A dog", "I do not know", "either B or C", "Paris", "42", "because", "answer a question"]
        {
            assert_eq!(choice_label(text), None, "{text:?}");
        }
    }
}

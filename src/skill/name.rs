//! Names of skills. A [`SkillName`] keeps every rule of the format, so it is also a safe name for a folder.

use icu_normalizer::ComposingNormalizerBorrowed;

/// Most characters of a name.
pub const LONGEST_NAME: usize = 64;

/// Lowercase letters, digits and single hyphens inside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {remedy}")]
pub struct NameError {
    pub problem: String,
    pub remedy: String,
}

impl SkillName {
    /// # Errors
    /// The first rule that `name` breaks.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let fault = |problem: String, remedy: String| Err(NameError { problem, remedy });
        let shorter = || "give a name of 1 to 64 lowercase letters, digits and hyphens".to_owned();
        let length = name.chars().count();
        if length == 0 {
            return fault("the name is empty".into(), shorter());
        }
        if length > LONGEST_NAME {
            return fault(
                format!("the name has {length} characters, at most {LONGEST_NAME} are allowed"),
                shorter(),
            );
        }
        let normal = ComposingNormalizerBorrowed::new_nfkc().normalize(name);
        let instead = || match Self::suggested(name) {
            Some(other) => format!("write {:?}", other.as_str()),
            None => shorter(),
        };
        if normal != name {
            return fault(format!("the name {name:?} is not in Unicode normal form NFKC"), instead());
        }
        if let Some(wrong) = name.chars().find(|c| *c != '-' && !plain(*c)) {
            let what = if wrong.is_uppercase() { "the capital letter" } else { "the character" };
            return fault(format!("the name {name:?} has {what} {wrong:?}"), instead());
        }
        if name.starts_with('-') || name.ends_with('-') {
            return fault(format!("the name {name:?} begins or ends with a hyphen"), instead());
        }
        if name.contains("--") {
            return fault(format!("the name {name:?} has two hyphens in a row"), instead());
        }
        Ok(Self(name.to_owned()))
    }

    /// A name made from other words; `None` where nothing of them can stand in a name.
    pub fn suggested(words: &str) -> Option<Self> {
        let normal = ComposingNormalizerBorrowed::new_nfkc().normalize(words);
        let mut name = String::new();
        let mut length = 0;
        for c in normal.chars().flat_map(char::to_lowercase) {
            if length == LONGEST_NAME {
                break;
            }
            if plain(c) {
                name.push(c);
                length += 1;
            } else if !name.is_empty() && !name.ends_with('-') {
                name.push('-');
                length += 1;
            }
        }
        let name = name.trim_end_matches('-');
        // Lowering a letter may leave the normal form.
        Self::parse_plain(name)
    }

    fn parse_plain(name: &str) -> Option<Self> {
        let normal = ComposingNormalizerBorrowed::new_nfkc().normalize(name);
        let fits = !name.is_empty() && normal == name && name.chars().all(|c| c == '-' || plain(c));
        fits.then(|| Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Only letters and digits that every client takes.
    pub fn is_ascii(&self) -> bool {
        self.0.is_ascii()
    }
}

impl std::fmt::Display for SkillName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

/// A letter that is no capital, or a digit.
fn plain(c: char) -> bool {
    c.is_alphanumeric() && c.to_lowercase().eq([c])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_format_are_taken() {
        for name in ["a", "pdf-processing", "7", "a1-b2", "grün", "поиск", &"x".repeat(64)] {
            assert_eq!(SkillName::parse(name).map(|name| name.to_string()), Ok(name.to_owned()));
        }
    }

    #[test]
    fn every_rule_has_its_message_and_a_better_name() {
        for (name, problem, remedy) in [
            ("", "is empty", "1 to 64"),
            (&*"x".repeat(65), "65 characters", "1 to 64"),
            ("Pdf", "capital letter 'P'", "write \"pdf\""),
            ("a_b", "character '_'", "write \"a-b\""),
            ("a/../b", "character '/'", "write \"a-b\""),
            ("..", "character '.'", "1 to 64"),
            ("-a", "begins or ends", "write \"a\""),
            ("a-", "begins or ends", "write \"a\""),
            ("a--b", "two hyphens", "write \"a-b\""),
            ("ﬁne", "NFKC", "write \"fine\""),
            ("a\u{301}b", "NFKC", "write \"áb\""),
            ("a b", "character ' '", "write \"a-b\""),
            ("a\nb", "character '\\n'", "write \"a-b\""),
        ] {
            let told = SkillName::parse(name).unwrap_err();
            assert!(told.problem.contains(problem) && told.remedy.contains(remedy), "{name:?}: {told}");
        }
    }

    #[test]
    fn any_words_become_a_name_or_none() {
        let name = |words: &str| SkillName::suggested(words).map(|name| name.to_string());
        assert_eq!(name("demo_City-20260309 1"), Some("demo-city-20260309-1".into()));
        assert_eq!(name("---"), None);
        assert_eq!(name(&"abc ".repeat(40)).unwrap().chars().count(), 63, "cut, and no hyphen at the end");
    }

    proptest::proptest! {
        #[test]
        fn what_is_suggested_parses(words in "\\PC{0,90}") {
            if let Some(name) = SkillName::suggested(&words) {
                proptest::prop_assert_eq!(SkillName::parse(name.as_str()), Ok(name.clone()));
            }
        }
    }
}

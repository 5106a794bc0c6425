//! The library of sentences that the edit search may add or drop. Must not know the skill.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::domain::Trajectory;
use crate::model::ModelError;

const RULES: &str = include_str!("../../../assets/rules.toml");

/// For which reference answers a sentence is worth trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    Always,
    /// The answer stands in the task.
    Copied,
    OneWord,
    SeveralWords,
    Upper,
    Lower,
    Number,
}

impl When {
    fn holds(self, trajectory: &Trajectory) -> bool {
        let gold = trajectory.gold.trim();
        let letters = gold.chars().any(char::is_alphabetic);
        match self {
            Self::Always => true,
            Self::Copied => trajectory.task.contains(gold),
            Self::OneWord => gold.split_whitespace().count() == 1,
            Self::SeveralWords => gold.split_whitespace().count() > 1,
            Self::Upper => letters && !gold.chars().any(char::is_lowercase),
            Self::Lower => letters && !gold.chars().any(char::is_uppercase),
            Self::Number => gold.parse::<f64>().is_ok(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub when: When,
    pub text: String,
}

#[derive(Deserialize)]
struct Library {
    rule: Vec<Rule>,
}

/// All sentences, in file order.
pub fn library() -> Result<&'static [Rule], ModelError> {
    static LIBRARY: OnceLock<Result<Vec<Rule>, String>> = OnceLock::new();
    let parsed = LIBRARY.get_or_init(|| {
        toml::from_str::<Library>(RULES).map(|library| library.rule).map_err(|error| error.to_string())
    });
    match parsed {
        Ok(rules) => Ok(rules),
        Err(error) => Err(ModelError::Worker { message: format!("assets/rules.toml: {error}") }),
    }
}

/// The sentences whose condition holds for every trajectory; the more special ones first.
pub fn fitting<'a>(rules: &'a [Rule], trajectories: &[Trajectory]) -> Vec<&'a Rule> {
    let holds = |rule: &&Rule| trajectories.iter().all(|trajectory| rule.when.holds(trajectory));
    let mut fitting: Vec<&Rule> = rules.iter().filter(holds).collect();
    fitting.sort_by_key(|rule| rule.when == When::Always);
    fitting
}

#[cfg(test)]
mod tests {
    use super::super::tests::trajectory;
    use super::*;

    #[test]
    fn the_library_parses_and_repeats_nothing() {
        let rules = library().unwrap();
        assert!(rules.len() >= 20, "{}", rules.len());
        let texts: std::collections::HashSet<&str> = rules.iter().map(|rule| rule.text.as_str()).collect();
        assert_eq!(texts.len(), rules.len());
        assert!(rules.iter().all(|rule| rule.text.len() < 80 && !rule.text.contains('\n')));
    }

    #[test]
    fn conditions_follow_the_reference_answers() {
        let whens = |batch: &[Trajectory]| {
            let mut whens: Vec<When> = Vec::new();
            for rule in fitting(library().unwrap(), batch) {
                if !whens.contains(&rule.when) {
                    whens.push(rule.when);
                }
            }
            whens
        };
        let city = [trajectory("a", "Text: in Rome.", "Rome"), trajectory("b", "Text: in Bern.", "Bern")];
        assert_eq!(whens(&city), [When::Copied, When::OneWord, When::Always]);
        assert_eq!(whens(&[trajectory("a", "Word: sun", "SUN")]), [When::OneWord, When::Upper, When::Always]);
        assert_eq!(whens(&[trajectory("a", "1 + 1", "2")]), [When::OneWord, When::Number, When::Always]);
        let mixed = [trajectory("a", "x", "SUN"), trajectory("b", "y", "two words")];
        assert_eq!(whens(&mixed), [When::Always]);
    }
}

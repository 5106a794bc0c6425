//! Finds the answer in a model's reply. Owns the extraction rules; must not judge the answer.

use regex::Regex;

use crate::config::{AnswerRule, EnvConfig};

use super::DataError;

/// A compiled answer rule.
#[derive(Clone, Debug)]
pub enum Extraction {
    Tag { name: String, opening: Regex, closing: Regex, or_last_line: bool },
    Pattern(Regex),
    LastLine,
    Whole,
}

impl Extraction {
    /// Errors name the key whose value cannot be used.
    pub fn new(config: &EnvConfig) -> Result<Self, DataError> {
        Ok(match config.answer_rule {
            AnswerRule::Tag | AnswerRule::TagOrLastLine => {
                let name = config.answer_tag.trim();
                if name.is_empty() || name.contains(['<', '>', '/']) {
                    return Err(DataError::setting(
                        "env.answer_tag",
                        format!(
                            "{:?} is not a tag name; give the word alone, such as \"answer\"",
                            config.answer_tag
                        ),
                    ));
                }
                let tag = |start: &str| {
                    Regex::new(&format!("(?i){start}{}>", regex::escape(name)))
                        .map_err(|error| DataError::setting("env.answer_tag", error.to_string()))
                };
                Self::Tag {
                    name: name.to_owned(),
                    opening: tag("<")?,
                    closing: tag("</")?,
                    or_last_line: config.answer_rule == AnswerRule::TagOrLastLine,
                }
            }
            AnswerRule::Regex => {
                if config.answer_pattern.is_empty() {
                    return Err(DataError::setting(
                        "env.answer_pattern",
                        "is empty, but env.answer_rule = \"regex\" needs a pattern".to_owned(),
                    ));
                }
                let pattern = Regex::new(&config.answer_pattern)
                    .map_err(|error| DataError::setting("env.answer_pattern", error.to_string()))?;
                Self::Pattern(pattern)
            }
            AnswerRule::LastLine => Self::LastLine,
            AnswerRule::Whole => Self::Whole,
        })
    }

    /// The answer without surrounding whitespace, or in words what the reply lacks.
    pub fn extract<'r>(&self, reply: &'r str) -> Result<&'r str, String> {
        if reply.trim().is_empty() {
            return Err("the reply is empty".to_owned());
        }
        let found = match self {
            Self::Tag { name, opening, closing, or_last_line } => in_last_tag(reply, opening, closing)
                .or_else(|| or_last_line.then(|| last_line(reply)))
                .ok_or_else(|| format!("the reply has no <{name}> tag"))?,
            Self::Pattern(pattern) => pattern
                .captures_iter(reply)
                .last()
                .and_then(|captures| captures.get(1).or_else(|| captures.get(0)))
                .map(|found| found.as_str())
                .ok_or("nothing in the reply matches answer_pattern")?,
            Self::LastLine => last_line(reply),
            Self::Whole => reply,
        };
        match found.trim() {
            "" => Err("the answer is empty".to_owned()),
            answer => Ok(answer),
        }
    }
}

fn last_line(reply: &str) -> &str {
    reply.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("")
}

/// The content of the last complete tag pair. Pairs are taken from the left, each from an opening tag to the next
/// closing one, so an opening tag inside a pair is content.
fn in_last_tag<'r>(reply: &'r str, opening: &Regex, closing: &Regex) -> Option<&'r str> {
    let mut found = None;
    let mut at = 0;
    while let Some(open) = opening.find_at(reply, at)
        && let Some(close) = closing.find_at(reply, open.end())
    {
        found = Some(&reply[open.end()..close.start()]);
        at = close.end();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(rule: AnswerRule, tag: &str, pattern: &str) -> Result<Extraction, DataError> {
        Extraction::new(&EnvConfig {
            answer_rule: rule,
            answer_tag: tag.into(),
            answer_pattern: pattern.into(),
            ..EnvConfig::default()
        })
    }

    fn extract(with: AnswerRule, pattern: &str, reply: &str) -> Result<String, String> {
        rule(with, "answer", pattern).unwrap().extract(reply).map(str::to_owned)
    }

    #[test]
    fn a_missing_tag_is_no_answer_and_says_so() {
        assert_eq!(extract(AnswerRule::Tag, "", "Paris"), Err("the reply has no <answer> tag".into()));
        for with in [AnswerRule::Tag, AnswerRule::TagOrLastLine] {
            assert_eq!(extract(with, "", "x\n<answer> </answer>"), Err("the answer is empty".into()));
        }
    }

    #[test]
    fn regex_takes_the_first_group_of_the_last_match() {
        assert_eq!(extract(AnswerRule::Regex, r"#### (\d+)", "#### 1\n#### 27"), Ok("27".into()));
        assert_eq!(extract(AnswerRule::Regex, r"\d+", "1 or 2"), Ok("2".into()));
        assert!(extract(AnswerRule::Regex, r"\d+", "none").is_err());
    }

    #[test]
    fn a_group_that_took_no_part_gives_the_whole_match() {
        assert_eq!(extract(AnswerRule::Regex, r"no|(\d+)", "no"), Ok("no".into()));
    }

    #[test]
    fn whole_is_the_trimmed_reply() {
        assert_eq!(extract(AnswerRule::Whole, "", " a\nb \n"), Ok("a\nb".into()));
        assert_eq!(extract(AnswerRule::Whole, "", " \n"), Err("the reply is empty".into()));
    }

    #[test]
    fn unusable_settings_name_their_key() {
        for (with, tag, pattern, key) in [
            (AnswerRule::Tag, "", "", "env.answer_tag"),
            (AnswerRule::Tag, "<a>", "", "env.answer_tag"),
            (AnswerRule::Regex, "answer", "", "env.answer_pattern"),
            (AnswerRule::Regex, "answer", "(", "env.answer_pattern"),
        ] {
            let message = rule(with, tag, pattern).unwrap_err().to_string();
            assert!(message.starts_with(key), "{message}");
        }
    }
}

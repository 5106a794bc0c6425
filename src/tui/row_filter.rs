//! What rows of the Rollouts pane are asked for, as words: text of the item, task type or reason, a status, `group:NAME`,
//! `-word` for its opposite, quotes around what is meant as it stands. Knows rows only by their facts.

/// How an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Running,
    Passed,
    Failed,
    Missing,
}

impl Status {
    pub const ALL: [Status; 4] = [Status::Running, Status::Passed, Status::Failed, Status::Missing];

    pub fn word(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Passed => "pass",
            Status::Failed => "fail",
            Status::Missing => "missing",
        }
    }
}

/// What a filter looks at.
pub struct Facts<'a> {
    pub item: &'a str,
    pub task_type: &'a str,
    pub reason: &'a str,
    pub group: &'a str,
    pub status: Status,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    #[error("filter: a quote is not closed")]
    OpenQuote,
    #[error("filter: `-` stands before no word")]
    NothingDenied,
    #[error("filter: no group is called {name:?}; there are {}", known.join(", "))]
    UnknownGroup { name: String, known: Vec<&'static str> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    /// In lower case.
    Text(String),
    Status(Status),
    Group(&'static str),
}

impl Test {
    fn holds(&self, facts: &Facts<'_>) -> bool {
        match self {
            Test::Text(word) => [facts.item, facts.task_type, facts.reason]
                .iter()
                .any(|text| text.len() >= word.len() && text.to_lowercase().contains(word)),
            Test::Status(status) => facts.status == *status,
            Test::Group(name) => facts.group == *name,
        }
    }
}

/// All of its words must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowFilter {
    text: String,
    tests: Vec<(bool, Test)>,
}

impl RowFilter {
    pub fn parse(text: &str, groups: &[&'static str]) -> Result<Self, FilterError> {
        let mut tests = Vec::new();
        for (denied, word, quoted) in words(text)? {
            let test = match word.to_lowercase() {
                lower if quoted => Test::Text(lower),
                lower => match (Status::ALL.iter().find(|status| status.word() == lower), lower) {
                    (Some(status), _) => Test::Status(*status),
                    (None, lower) => match lower.strip_prefix("group:") {
                        Some(name) => Test::Group(group(name, groups)?),
                        None => Test::Text(lower),
                    },
                },
            };
            tests.push((!denied, test));
        }
        Ok(Self { text: text.trim().to_owned(), tests })
    }

    pub fn passes(&self, facts: &Facts<'_>) -> bool {
        self.tests.iter().all(|(wanted, test)| test.holds(facts) == *wanted)
    }

    /// As it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }
}

fn group(name: &str, groups: &[&'static str]) -> Result<&'static str, FilterError> {
    let known = groups.iter().find(|known| **known == name).copied();
    known.ok_or_else(|| FilterError::UnknownGroup { name: name.to_owned(), known: groups.to_vec() })
}

/// The words of `text`: (denied, word, quoted).
fn words(text: &str) -> Result<Vec<(bool, String, bool)>, FilterError> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (denied, word) = match rest.strip_prefix('-') {
            Some(word) => (true, word),
            None => (false, rest),
        };
        let after = if let Some(quoted) = word.strip_prefix('"') {
            let (inside, after) = quoted.split_once('"').ok_or(FilterError::OpenQuote)?;
            out.push((denied, inside.to_owned(), true));
            after
        } else {
            let (inside, after) = word.split_at(word.find(char::is_whitespace).unwrap_or(word.len()));
            if inside.is_empty() {
                return Err(FilterError::NothingDenied);
            }
            out.push((denied, inside.to_owned(), false));
            after
        };
        rest = after.trim_start();
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [&str; 2] = ["train", "select"];

    fn facts(item: &'static str, status: Status) -> Facts<'static> {
        Facts { item, task_type: "Tables", reason: "mismatch: Expected 7", group: "train", status }
    }

    fn passes(filter: &str, item: &'static str, status: Status) -> bool {
        RowFilter::parse(filter, &GROUPS).unwrap().passes(&facts(item, status))
    }

    #[test]
    fn every_word_must_hold() {
        assert!(passes("", "a", Status::Passed));
        assert!(passes("tables EXPECTED a7", "A7", Status::Failed));
        assert!(!passes("tables a8", "A7", Status::Failed));
        assert!(passes("fail group:train -zz", "A7", Status::Failed));
        assert!(!passes("-fail", "A7", Status::Failed));
        assert!(!passes("group:select", "A7", Status::Failed));
        assert!(passes("missing", "x", Status::Missing) && !passes("missing", "missing-1", Status::Passed));
    }

    #[test]
    fn quotes_mean_what_they_hold() {
        assert!(passes("\"missing\"", "missing-1", Status::Passed));
        assert!(passes("\"mismatch: exp\"", "x", Status::Passed));
        assert!(passes("-\"-x\"", "y-1", Status::Passed) && !passes("\"-x\"", "y-1", Status::Passed));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_reason() {
        let error = |text| RowFilter::parse(text, &GROUPS).unwrap_err();
        assert_eq!(error("a \"b"), FilterError::OpenQuote);
        assert_eq!(error("a - b"), FilterError::NothingDenied);
        assert!(error("group:tests").to_string().contains("there are train, select"));
    }
}

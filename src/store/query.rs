//! Which runs are meant: words and comparisons, joined by `and`, `or`, `not` and parentheses. A text is read once and
//! then asked about many runs.

use super::RunSummary;
use crate::config::nearest;

/// What a filter is made of, for help and messages.
pub const QUERY_HELP: &str = "words, FIELD:TEXT, FIELD<NUMBER, and, or, not, ( ); fields: name status env target optimizer host best base \
     delta test step steps seed calls tokens age idle";

/// A filter over runs. The default one lets all pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query(Option<Node>);

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("no field `{0}`, did you mean `{1}`?")]
    Near(String, &'static str),
    #[error("no field `{0}`; fields are {list}", list = names())]
    Field(String),
    #[error("no status `{0}`; statuses are {list}", list = statuses())]
    Status(String),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Several(Vec<QueryError>),
    #[error("`{field}` is compared with a {wanted}, `{found}` is none")]
    Value { field: &'static str, wanted: &'static str, found: String },
    #[error("`{0}` is a text: use `:` or `!=`")]
    Order(&'static str),
    #[error("`{0}` has nothing to look for behind it")]
    Dangling(String),
    #[error("a `{0}` is missing")]
    Missing(&'static str),
    #[error("`)` without `(`")]
    Unopened,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    /// In lower case; in the name or another field of text.
    Word(String),
    Text {
        field: Text,
        negated: bool,
        whole: bool,
        text: String,
    },
    Number {
        field: Number,
        order: Order,
        value: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Text {
    Name,
    Status,
    Env,
    Target,
    Optimizer,
    Host,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Best,
    Base,
    Delta,
    Test,
    Step,
    Steps,
    Seed,
    Calls,
    Tokens,
    /// Milliseconds since it began, and since its last event.
    Age,
    Idle,
}

const TEXTS: [(&str, Text); 6] = [
    ("name", Text::Name),
    ("status", Text::Status),
    ("env", Text::Env),
    ("target", Text::Target),
    ("optimizer", Text::Optimizer),
    ("host", Text::Host),
];

const NUMBERS: [(&str, Number); 11] = [
    ("best", Number::Best),
    ("base", Number::Base),
    ("delta", Number::Delta),
    ("test", Number::Test),
    ("step", Number::Step),
    ("steps", Number::Steps),
    ("seed", Number::Seed),
    ("calls", Number::Calls),
    ("tokens", Number::Tokens),
    ("age", Number::Age),
    ("idle", Number::Idle),
];

fn fields() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name).chain(NUMBERS.iter().map(|(name, _)| *name))
}

fn names() -> String {
    fields().collect::<Vec<_>>().join(", ")
}

impl Query {
    /// # Errors
    /// What is wrong: every term that cannot be understood, or how the terms are joined.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let mut parser = Parser { tokens: tokens(text), at: 0, bad: Vec::new() };
        if parser.tokens.is_empty() {
            return Ok(Self(None));
        }
        let node = parser.any()?;
        if parser.peek().is_some() {
            return Err(QueryError::Unopened);
        }
        match (parser.bad.pop(), parser.bad.is_empty()) {
            (None, _) => Ok(Self(Some(node))),
            (Some(only), true) => Err(only),
            (Some(last), false) => {
                parser.bad.push(last);
                Err(QueryError::Several(parser.bad))
            }
        }
    }

    /// `now`: Unix milliseconds.
    pub fn admits(&self, run: &RunSummary, now: u64) -> bool {
        self.0.as_ref().is_none_or(|node| node.admits(run, now))
    }
}

impl Node {
    fn admits(&self, run: &RunSummary, now: u64) -> bool {
        match self {
            Node::All(nodes) => nodes.iter().all(|node| node.admits(run, now)),
            Node::Any(nodes) => nodes.iter().any(|node| node.admits(run, now)),
            Node::Not(node) => !node.admits(run, now),
            Node::Word(word) => [Text::Name, Text::Status, Text::Env, Text::Target]
                .into_iter()
                .any(|field| field.of(run).any(|text| text.to_lowercase().contains(word))),
            Node::Text { field, negated, whole, text } => {
                let found = field.of(run).any(|of_run| {
                    let of_run = of_run.to_lowercase();
                    if *whole { of_run == *text } else { of_run.contains(text) }
                });
                found != *negated
            }
            Node::Number { field, order, value } => field.of(run, now).is_some_and(|of_run| match order {
                Order::Less => of_run < *value,
                Order::LessOrEqual => of_run <= *value,
                Order::Equal => of_run == *value,
                Order::NotEqual => of_run != *value,
                Order::Greater => of_run > *value,
                Order::GreaterOrEqual => of_run >= *value,
            }),
        }
    }
}

impl Text {
    /// The text of a run, with other words for it.
    fn of(self, run: &RunSummary) -> impl Iterator<Item = &str> {
        let (text, also): (&str, &[&str]) = match self {
            Text::Name => (&run.name, &[]),
            Text::Status => (run.status.word(), run.status.also()),
            Text::Env => (&run.env, &[]),
            Text::Target => (&run.target, &[]),
            Text::Optimizer => (&run.optimizer, &[]),
            Text::Host => (&run.host, &[]),
        };
        std::iter::once(text).chain(also.iter().copied())
    }
}

impl Number {
    fn of(self, run: &RunSummary, now: u64) -> Option<f64> {
        let since = |at: u64| (at > 0).then(|| now.saturating_sub(at) as f64);
        let usage = run.total_usage();
        match self {
            Number::Best => run.best_score,
            Number::Base => run.baseline_score,
            Number::Delta => run.delta(),
            Number::Test => run.test_delta,
            Number::Step => Some(f64::from(run.steps_done)),
            Number::Steps => Some(f64::from(run.total_steps)),
            Number::Seed => run.seed.map(|seed| seed as f64),
            Number::Calls => Some(usage.calls as f64),
            Number::Tokens => Some((usage.prompt_tokens + usage.completion_tokens) as f64),
            Number::Age => since(run.started_at),
            Number::Idle => since(run.progress_at),
        }
    }

    fn read(self, name: &'static str, text: &str) -> Result<f64, QueryError> {
        let timed = matches!(self, Number::Age | Number::Idle);
        let units: &[(&str, f64)] = if timed {
            &[("s", 1e3), ("m", 6e4), ("h", 3.6e6), ("d", 8.64e7), ("w", 6.048e8)]
        } else {
            &[("k", 1e3), ("M", 1e6), ("%", 0.01)]
        };
        let wanted = if timed { "time like 30m, 2h or 1d" } else { "number" };
        let unit = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
        let (digits, factor) = match unit {
            Some(split) => split,
            None if timed => ("", 1.0),
            None => (text, 1.0),
        };
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number * factor),
            _ => Err(QueryError::Value { field: name, wanted, found: text.to_owned() }),
        }
    }
}

/// Words, quoted texts kept whole, parentheses apart.
fn tokens(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut token = String::new();
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '(' | ')' if !quoted => {
                out.extend([std::mem::take(&mut token), c.to_string()]);
            }
            c if c.is_whitespace() && !quoted => out.push(std::mem::take(&mut token)),
            c => token.push(c),
        }
    }
    out.push(token);
    out.retain(|token| !token.is_empty());
    out
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
    /// What is wrong with single terms.
    bad: Vec<QueryError>,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn take(&mut self, word: &str) -> bool {
        let taken = self.peek().is_some_and(|token| token.eq_ignore_ascii_case(word));
        self.at += usize::from(taken);
        taken
    }

    fn any(&mut self) -> Result<Node, QueryError> {
        let mut nodes = vec![self.all()?];
        while self.take("or") {
            nodes.push(self.all()?);
        }
        Ok(one_or(nodes, Node::Any))
    }

    /// `and` may be left out.
    fn all(&mut self) -> Result<Node, QueryError> {
        let mut nodes = vec![self.one()?];
        while self.take("and")
            || self.peek().is_some_and(|token| token != ")" && !token.eq_ignore_ascii_case("or"))
        {
            nodes.push(self.one()?);
        }
        Ok(one_or(nodes, Node::All))
    }

    fn one(&mut self) -> Result<Node, QueryError> {
        if self.take("not") {
            return Ok(Node::Not(Box::new(self.one()?)));
        }
        if self.take("(") {
            let node = self.any()?;
            return if self.take(")") { Ok(node) } else { Err(QueryError::Missing(")")) };
        }
        let Some(token) = self.tokens.get(self.at).cloned() else {
            let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
            return Err(QueryError::Dangling(before.cloned().unwrap_or_default()));
        };
        if ["and", "or"].iter().any(|word| token.eq_ignore_ascii_case(word)) {
            return Err(QueryError::Dangling(token));
        }
        if token == ")" {
            return Err(QueryError::Unopened);
        }
        self.at += 1;
        Ok(comparison(&token).unwrap_or_else(|error| {
            self.bad.push(error);
            Node::Word(token)
        }))
    }
}

fn one_or(mut nodes: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
    match (nodes.len(), nodes.pop()) {
        (1, Some(node)) => node,
        (_, last) => {
            nodes.extend(last);
            many(nodes)
        }
    }
}

/// `best>0.5`, `env:qa`, or a word.
fn comparison(token: &str) -> Result<Node, QueryError> {
    let Some(at) = token.find([':', '<', '>', '=', '!']) else {
        return Ok(Node::Word(token.to_lowercase()));
    };
    let (name, rest) = token.split_at(at);
    const SIGNS: [(&str, Order); 7] = [
        ("<=", Order::LessOrEqual),
        (">=", Order::GreaterOrEqual),
        ("!=", Order::NotEqual),
        ("<", Order::Less),
        (">", Order::Greater),
        ("=", Order::Equal),
        (":", Order::Equal),
    ];
    let sign = SIGNS.iter().find_map(|(sign, order)| Some((rest.strip_prefix(sign)?, *order)));
    let Some((value, order)) = sign else { return Ok(Node::Word(token.to_lowercase())) };
    if value.is_empty() {
        return Err(QueryError::Dangling(token.to_owned()));
    }
    let lower = name.to_lowercase();
    if let Some((field, of)) = TEXTS.into_iter().find(|(field, _)| *field == lower) {
        let negated = match order {
            Order::Equal => false,
            Order::NotEqual => true,
            _ => return Err(QueryError::Order(field)),
        };
        // `done` is no part of any other word for a status; `new` would be.
        let equal = rest.starts_with('=');
        let whole = equal || of == Text::Status && is_condition(value);
        let part = |word: &str| word.contains(&value.to_lowercase());
        if of == Text::Status && !is_condition(value) && (equal || !words().any(part)) {
            return Err(QueryError::Status(value.to_owned()));
        }
        return Ok(Node::Text { field: of, negated, whole, text: value.to_lowercase() });
    }
    if let Some((field, of)) = NUMBERS.into_iter().find(|(field, _)| *field == lower) {
        return Ok(Node::Number { field: of, order, value: of.read(field, value)? });
    }
    match nearest(&lower, fields()) {
        Some(near) => Err(QueryError::Near(name.to_owned(), near)),
        None => Err(QueryError::Field(name.to_owned())),
    }
}

/// Every word for a status.
fn words() -> impl Iterator<Item = &'static str> {
    let conditions = super::Condition::ALL.into_iter();
    conditions.flat_map(|one| std::iter::once(one.word()).chain(one.also().iter().copied()))
}

fn is_condition(word: &str) -> bool {
    words().any(|known| known.eq_ignore_ascii_case(word))
}

fn statuses() -> String {
    super::Condition::ALL.map(super::Condition::said).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Usage;
    use crate::store::{Condition, RunDir};

    fn run() -> RunSummary {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "city-7b").unwrap();
        let usage = Usage { calls: 1_500, prompt_tokens: 2_000_000, ..Usage::default() };
        RunSummary {
            status: Condition::Completed,
            env: "qa".into(),
            target: "Qwen2.5 7B".into(),
            best_score: Some(0.62),
            baseline_score: Some(0.5),
            steps_done: 3,
            seed: Some(42),
            usage: [("rollout".to_owned(), usage)].into(),
            started_at: 1_000,
            updated_at: 3_000_000,
            progress_at: 60_000,
            ..RunSummary::unread(&run, 0)
        }
    }

    #[test]
    fn words_and_comparisons_choose() {
        let hour = 3_600_000;
        for (text, admitted) in [
            ("", true),
            ("city", true),
            ("CITY qwen", true),
            ("city llama", false),
            ("llama or city", true),
            ("not llama", true),
            ("not (llama or city)", false),
            ("status:done", true),
            ("status:completed", true),
            ("status!=completed", false),
            ("status:run", false),
            ("env:qa best>0.5", true),
            ("env=q", false),
            ("best>0.62", false),
            ("best>=62%", true),
            ("delta>0.2 or seed:42", true),
            ("test>0", false),
            ("not test>0", true),
            ("age<2h", true),
            ("age<59m", false),
            ("idle>=1d", false),
            ("idle>50m", true),
            ("tokens>1.5M and calls=1.5k", true),
            ("target:\"qwen2.5 7b\"", true),
            ("(city) and (step>=3 (seed=1 or seed=42))", true),
        ] {
            let query = Query::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(query.admits(&run(), 1_000 + hour), admitted, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for (text, words) in [
            ("stauts:done", "no field `stauts`, did you mean `status`?"),
            ("moonphase:full", "no field `moonphase`; fields are name, status"),
            ("status:fialed", "no status `fialed`; statuses are new, running, stalled, review"),
            ("status=run", "no status `run`; statuses are"),
            (
                "stauts:done bets>1 or age<2",
                "did you mean `status`?; no field `bets`, did you mean `best`?; `age` is",
            ),
            ("best>high", "`best` is compared with a number, `high` is none"),
            ("age<2", "`age` is compared with a time like 30m, 2h or 1d, `2` is none"),
            ("name<a", "`name` is a text: use `:` or `!=`"),
            ("best>", "`best>` has nothing to look for behind it"),
            ("city and", "`and` has nothing to look for behind it"),
            ("or city", "`or` has nothing to look for behind it"),
            ("not", "`not` has nothing to look for behind it"),
            ("(city", "a `)` is missing"),
            ("city)", "`)` without `(`"),
            ("best>NaN", "`NaN` is none"),
        ] {
            let told = Query::parse(text).unwrap_err().to_string();
            assert!(told.contains(words), "{text}: {told}");
        }
    }
}

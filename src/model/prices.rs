//! What tokens cost: a table in TOML, the user's rows before the built-in ones. Must not know what a run has spent.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::domain::Usage;

const BUILT_IN: &str = include_str!("../../assets/prices.toml");

/// Prices of one model, in millionths of a millionth of a US dollar per token: the digits of US dollars per million
/// tokens, times a million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tariff {
    input: u64,
    output: u64,
    /// Of prompt tokens that the provider's cache served.
    cached: u64,
    /// Of prompt tokens that it keeps from now on.
    cache_write: u64,
}

impl Tariff {
    /// Of what runs on this machine.
    pub const FREE: Self = Self { input: 0, output: 0, cached: 0, cache_write: 0 };

    /// Billionths of a US dollar, rounded up.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let special = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
        let parts = [
            (usage.prompt_tokens.saturating_sub(special), self.input),
            (usage.cached_tokens, self.cached),
            (usage.cache_write_tokens, self.cache_write),
            (usage.completion_tokens, self.output),
        ];
        let cost: u128 = parts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(*price)).sum();
        u64::try_from(cost.div_ceil(1000)).unwrap_or(u64::MAX)
    }

    /// The most that so many tokens can cost: the whole prompt at its dearest price.
    pub fn bound(&self, most: &Usage) -> u64 {
        let dearest = self.input.max(self.cached).max(self.cache_write);
        Self { input: dearest, ..*self }.cost(most)
    }

    /// With its price, unless the provider told one.
    pub fn priced(&self, usage: Usage) -> Usage {
        match usage.nanodollars {
            0 => Usage { nanodollars: self.cost(&usage), ..usage },
            _ => usage,
        }
    }
}

/// The rows that apply, those of the user first.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices {
    tables: Vec<Table>,
}

#[derive(Clone, Debug, PartialEq)]
struct Table {
    updated: String,
    rows: Vec<(String, Tariff)>,
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum PriceError {
    #[error("budget.prices: cannot read {}: {why}", file.display())]
    Unreadable { file: PathBuf, why: String },
    #[error(
        "budget.prices: {}: {why}; a row is `[[model]]` with `name`, `input` and `output` in US dollars per million \
         tokens, and `cached` and `cache_write` where they differ from input",
        file.display()
    )]
    Malformed { file: PathBuf, why: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    updated: String,
    #[serde(default)]
    model: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// A model's name; with `*` at its end, what names begin with.
    name: String,
    input: f64,
    output: f64,
    cached: Option<f64>,
    cache_write: Option<f64>,
}

impl Prices {
    /// The built-in table, and before it the user's.
    ///
    /// # Errors
    /// A file that cannot be read, or a row that is none.
    pub fn load(user: Option<&Path>) -> Result<Self, PriceError> {
        let built_in = Path::new("assets/prices.toml");
        let mut tables = Vec::new();
        if let Some(file) = user {
            let unreadable = |error: std::io::Error| PriceError::Unreadable {
                file: file.to_owned(),
                why: error.to_string(),
            };
            tables.push(Table::read(&std::fs::read_to_string(file).map_err(unreadable)?, file)?);
        }
        tables.push(Table::read(BUILT_IN, built_in)?);
        Ok(Self { tables })
    }

    /// The built-in table alone.
    pub fn built_in() -> Self {
        // A test reads it; without rows no model would have a price, which is said where one is needed.
        Self::load(None).unwrap_or(Self { tables: Vec::new() })
    }

    /// The prices of a model; `None`: no row is for it.
    pub fn tariff(&self, model: &str) -> Option<Tariff> {
        self.tables.iter().find_map(|table| table.tariff(model))
    }

    /// Day of the built-in table.
    pub fn updated(&self) -> &str {
        self.tables.last().map_or("", |table| &table.updated)
    }
}

impl Table {
    fn read(text: &str, path: &Path) -> Result<Self, PriceError> {
        let malformed = |why: String| PriceError::Malformed { file: path.to_owned(), why };
        let file: File = toml::from_str(text).map_err(|error| malformed(error.to_string()))?;
        let rows = file.model.into_iter().map(|row| {
            let Row { name, input, output, cached, cache_write } = row;
            let price = |dollars: f64| match dollars {
                0.0..=1e6 => Ok((dollars * 1e6).round() as u64),
                _ => Err(malformed(format!("model {name:?}: {dollars} is no price"))),
            };
            let tariff = Tariff {
                input: price(input)?,
                output: price(output)?,
                cached: price(cached.unwrap_or(input))?,
                cache_write: price(cache_write.unwrap_or(input))?,
            };
            Ok((name, tariff))
        });
        Ok(Self { updated: file.updated, rows: rows.collect::<Result<_, _>>()? })
    }

    /// The exact name, else the longest beginning.
    fn tariff(&self, model: &str) -> Option<Tariff> {
        let fit = |(name, tariff): &(String, Tariff)| match name.strip_suffix('*') {
            None => (name == model).then_some((usize::MAX, *tariff)),
            Some(beginning) => model.starts_with(beginning).then_some((beginning.len(), *tariff)),
        };
        self.rows.iter().filter_map(fit).max_by_key(|(length, _)| *length).map(|(_, tariff)| tariff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<Prices, PriceError> {
        Table::read(text, Path::new("mine.toml")).map(|table| Prices { tables: vec![table] })
    }

    #[test]
    fn every_kind_of_token_has_its_price_and_fractions_round_up() {
        let prices = table(
            "[[model]]\nname = \"m\"\ninput = 3\noutput = 15.0\ncached = 0.3\ncache_write = 3.75\n\
             [[model]]\nname = \"cheap\"\ninput = 0.0375\noutput = 0.15\n",
        )
        .unwrap();
        let tariff = prices.tariff("m").unwrap();
        let usage = Usage {
            calls: 1,
            prompt_tokens: 1000,
            completion_tokens: 10,
            cached_tokens: 400,
            cache_write_tokens: 100,
            ..Usage::default()
        };
        // 500 x 3 + 400 x 0.3 + 100 x 3.75 + 10 x 15 = 2145 millionths of a dollar
        assert_eq!(tariff.cost(&usage), 2_145_000);
        assert_eq!(tariff.priced(usage).nanodollars, 2_145_000);
        assert_eq!(tariff.priced(Usage { nanodollars: 7, ..usage }).nanodollars, 7, "the provider's word");
        let most = Usage { prompt_tokens: 1000, completion_tokens: 10, ..Usage::default() };
        assert_eq!(tariff.bound(&most), 3_900_000, "all of it could be written to the cache");
        let one = Usage { prompt_tokens: 1, ..Usage::default() };
        assert_eq!(prices.tariff("cheap").unwrap().cost(&one), 38);
    }

    #[test]
    fn the_exact_name_wins_then_the_longest_beginning_and_the_user_before_all() {
        let row =
            |name: &str, input: u32| format!("[[model]]\nname = {name:?}\ninput = {input}\noutput = 0\n");
        let text = [row("gpt-4o*", 1), row("gpt-4o-mini*", 2), row("gpt-4o", 3)].concat();
        let mut prices = table(&text).unwrap();
        let input = |prices: &Prices, name: &str| prices.tariff(name).map(|tariff| tariff.input / 1_000_000);
        assert_eq!(input(&prices, "gpt-4o"), Some(3));
        assert_eq!(input(&prices, "gpt-4o-2024-11-20"), Some(1));
        assert_eq!(input(&prices, "gpt-4o-mini-2024-07-18"), Some(2));
        assert_eq!(input(&prices, "my-gpt-4o"), None);
        prices.tables.insert(0, table(&row("gpt-4*", 9)).unwrap().tables.remove(0));
        assert_eq!(input(&prices, "gpt-4o"), Some(9));
    }

    #[test]
    fn the_built_in_table_reads_and_its_rows_are_plausible() {
        let prices = Prices::load(None).unwrap();
        assert_eq!(prices.updated().len(), 10);
        assert!(prices.tables[0].rows.len() >= 10);
        for (name, tariff) in &prices.tables[0].rows {
            assert!(tariff.cached <= tariff.input && tariff.input <= tariff.output, "{name}: {tariff:?}");
            assert!(tariff.input > 0 && tariff.cache_write >= tariff.input, "{name}: {tariff:?}");
        }
    }

    #[test]
    fn what_is_no_price_table_is_refused_with_file_and_remedy() {
        for (text, want) in [
            ("[[model]]\nname = \"m\"\ninput = -1\noutput = 1\n", "-1 is no price"),
            ("[[model]]\nname = \"m\"\ninput = nan\noutput = 1\n", "NaN is no price"),
            ("[[model]]\nname = \"m\"\ninput = 1\n", "missing field `output`"),
            ("[[model]]\nname = \"m\"\ninput = 1\noutput = 1\nprompt = 2\n", "unknown field `prompt`"),
        ] {
            let told = table(text).unwrap_err().to_string();
            assert!(told.contains(want) && told.contains("mine.toml") && told.contains("a row is"), "{told}");
        }
        let missing = Prices::load(Some(Path::new("/nowhere/prices.toml"))).unwrap_err().to_string();
        assert!(missing.contains("budget.prices: cannot read /nowhere/prices.toml"), "{missing}");
    }
}

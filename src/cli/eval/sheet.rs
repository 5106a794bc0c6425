//! What an evaluation found, by split and over all: which items, which means, how two skills compare. Pure; owns no
//! formula and no format.

use std::collections::BTreeMap;

use crate::domain::{Score, Split};
use crate::engine::ScoredItem;
use crate::gate::{PairedGain, RepeatSummary, item_means, paired_gain, repeat_summary};

/// Name of the part that holds every split.
pub const TOTAL: &str = "all";

/// A skill's results.
pub struct Sheet<'a> {
    pub items: &'a [ScoredItem],
    /// One per split, then one over all when there are several.
    pub parts: Vec<Part<'a>>,
}

/// The items of one split, or all.
pub struct Part<'a> {
    pub name: &'static str,
    pub items: Vec<&'a ScoredItem>,
    pub summary: RepeatSummary,
    /// Items that were answered, by their task type.
    pub types: BTreeMap<&'a str, RepeatSummary>,
}

/// Two skills on the items of a part that both answered.
pub struct Comparison<'a> {
    pub name: &'static str,
    pub gain: PairedGain,
    pub gained: Vec<&'a str>,
    pub lost: Vec<&'a str>,
}

impl<'a> Sheet<'a> {
    pub fn new(items: &'a [ScoredItem], splits: &[Split], repeats: usize) -> Self {
        let of = |split: Split| items.iter().filter(move |item| item.split == split).collect();
        let mut parts: Vec<Part> =
            splits.iter().map(|split| Part::new(split.name(), of(*split), repeats)).collect();
        if parts.len() > 1 {
            parts.push(Part::new(TOTAL, items.iter().collect(), repeats));
        }
        Self { items, parts }
    }

    /// The last part holds everything.
    pub fn whole(&self) -> Option<&Part<'a>> {
        self.parts.last()
    }

    /// How `other` did against this one, part by part. Both scored the same items in the same order.
    pub fn compare(&self, other: &Sheet<'a>) -> Vec<Comparison<'a>> {
        self.parts.iter().zip(&other.parts).map(|(first, second)| compare(first, second)).collect()
    }
}

impl<'a> Part<'a> {
    fn new(name: &'static str, items: Vec<&'a ScoredItem>, repeats: usize) -> Self {
        let summary_of = |items: &[&ScoredItem]| {
            let scores: Vec<Vec<&Score>> = items.iter().map(|item| item.scores()).collect();
            repeat_summary(&scores, repeats)
        };
        let mut by_type: BTreeMap<&str, Vec<&ScoredItem>> = BTreeMap::new();
        for item in &items {
            if let Some(task_type) = item.task_type() {
                by_type.entry(task_type).or_default().push(item);
            }
        }
        let types = by_type.into_iter().map(|(name, items)| (name, summary_of(&items))).collect();
        Self { name, summary: summary_of(&items), types, items }
    }

    /// Measurements without an answer: item, repeat, error.
    pub fn missing(&self) -> impl Iterator<Item = (&'a ScoredItem, usize, &'a str)> {
        self.items.iter().flat_map(|item| item.missing().map(move |(repeat, error)| (*item, repeat, error)))
    }
}

fn compare<'a>(first: &Part<'a>, second: &Part<'a>) -> Comparison<'a> {
    let rows: Vec<(&str, (f64, f64))> = first
        .items
        .iter()
        .zip(&second.items)
        .filter_map(|(first, second)| {
            let (before, after) = (item_means(&first.scores())?, item_means(&second.scores())?);
            Some((first.item.as_str(), (before.0, after.0)))
        })
        .collect();
    let pairs: Vec<(f64, f64)> = rows.iter().map(|(_, pair)| *pair).collect();
    let ids = |better: fn(f64, f64) -> bool| {
        rows.iter().filter(|(_, pair)| better(pair.0, pair.1)).map(|(id, _)| *id).collect()
    };
    Comparison {
        name: first.name,
        gain: paired_gain(&pairs),
        gained: ids(|before, after| after > before),
        lost: ids(|before, after| after < before),
    }
}

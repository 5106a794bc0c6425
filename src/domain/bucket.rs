//! Results by task type. Owns the sums; must not round or format them.

use std::collections::BTreeMap;

use super::{ExactSum, Score};

/// The type of an item that has none.
const OTHER: &str = "other";

/// Exact sums over the scored items of one kind.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    pub total: usize,
    hard: ExactSum,
    soft: ExactSum,
}

impl Bucket {
    fn add(&mut self, score: &Score) {
        self.total += 1;
        self.hard.add(score.hard);
        self.soft.add(score.soft);
    }

    /// Sum of the hard scores.
    pub fn hard(&self) -> f64 {
        self.hard.value()
    }

    /// Sum of the soft scores.
    pub fn soft(&self) -> f64 {
        self.soft.value()
    }

    /// Mean hard score; `None` without items.
    pub fn mean_hard(&self) -> Option<f64> {
        (self.total > 0).then(|| self.hard.mean(self.total))
    }

    /// Mean soft score; `None` without items.
    pub fn mean_soft(&self) -> Option<f64> {
        (self.total > 0).then(|| self.soft.mean(self.total))
    }
}

/// One bucket per task type, by name, and one over all.
#[derive(Clone, Debug, Default)]
pub struct TypeBuckets {
    pub types: BTreeMap<String, Bucket>,
    pub overall: Bucket,
}

impl TypeBuckets {
    /// Buckets that are there even when no item falls into them.
    pub fn expecting<'a>(types: impl IntoIterator<Item = &'a str>) -> Self {
        let types = types.into_iter().map(|name| (name.to_owned(), Bucket::default()));
        Self { types: types.collect(), overall: Bucket::default() }
    }

    pub fn add(&mut self, task_type: &str, score: &Score) {
        let name = if task_type.trim().is_empty() { OTHER } else { task_type };
        match self.types.get_mut(name) {
            Some(bucket) => bucket.add(score),
            None => self.types.entry(name.to_owned()).or_default().add(score),
        }
        self.overall.add(score);
    }
}

impl<'a> FromIterator<(&'a str, &'a Score)> for TypeBuckets {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a Score)>>(rows: T) -> Self {
        let mut buckets = Self::default();
        rows.into_iter().for_each(|(task_type, score)| buckets.add(task_type, score));
        buckets
    }
}

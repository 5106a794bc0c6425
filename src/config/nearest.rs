//! "Did you mean": the known word nearest to a mistyped one.

/// The candidate with the smallest edit distance to `word`, if it is near enough to be a slip (a third of the
/// word; of short words two edits from five letters on, else one). Ties go to the earlier candidate.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = word.chars().count();
    let limit = (letters / 3).max(if letters < 5 { 1 } else { 2 });
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance: insertions, deletions, substitutions, swaps of neighbours. Ignores case.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i; right.len() + 1];
        for j in 1..=right.len() {
            let changed = usize::from(left[i - 1] != right[j - 1]);
            row[j] = (previous[j] + 1).min(row[j - 1] + 1).min(previous[j - 1] + changed);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut previous, row);
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("batch", "batch", 0),
            ("Batch", "batch", 0),
            ("bacth", "batch", 1),
            ("kitten", "sitting", 3),
            ("abc", "", 3),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
            assert_eq!(distance(right, left), expected, "{right} {left}");
        }
    }

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let known = ["batch_size", "accumulation", "seed", "f1"];
        assert_eq!(nearest("bach_size", known), Some("batch_size"));
        assert_eq!(nearest("sede", known), Some("seed"));
        assert_eq!(nearest("moonphase", known), None);
        assert_eq!(nearest("fo", ["f1"]), Some("f1"));
        assert_eq!(nearest("bar", ["max", "name"]), None, "two of three letters differ");
        assert_eq!(nearest("xy", known), None, "two edits turn any two letters into any others");
    }
}

//! Semantic density: how large a part of a skill's words are words that bind. Owns counting them and what they add to
//! a gate score; must not decide.

use crate::optim::outside_regions;

/// The words that count when a configuration names none.
pub const LEADING_WORDS: [&str; 5] = ["always", "must", "never", "only", "verify"];

/// Share of `leading_words` (in any case) among all words of `skill`, in [0, 1]. A word is a run of ASCII letters and
/// digits; protected regions do not count. 0 for a skill without words.
pub fn density(skill: &str, leading_words: &[impl AsRef<str>]) -> f64 {
    let leading: Vec<String> = leading_words.iter().map(|word| word.as_ref().to_lowercase()).collect();
    let (mut words, mut found) = (0u32, 0u32);
    for piece in outside_regions(skill) {
        let runs = piece.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        for word in runs {
            words += 1;
            found += u32::from(leading.contains(&word.to_ascii_lowercase()));
        }
    }
    if words == 0 { 0.0 } else { f64::from(found) / f64::from(words) }
}

/// The compared number with its bonus for density: `score + weight * density`.
pub fn with_density(score: f64, density: f64, weight: f64) -> f64 {
    score + weight * density
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_parts_words_and_its_own_do_not_count() {
        let skill = "must<!-- APPENDIX_START -->never<!-- APPENDIX_END -->go";
        assert_eq!(density(skill, &LEADING_WORDS), 0.5);
        assert_eq!(density(skill, &["Go"]), 0.5);
    }

    #[test]
    fn no_words_and_no_leading_words_give_nothing() {
        assert_eq!(density("\u{65e5}\u{672c} -", &LEADING_WORDS), 0.0);
        assert_eq!(density("must", &[] as &[&str]), 0.0);
    }
}

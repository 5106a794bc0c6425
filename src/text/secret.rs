//! What keys and tokens look like. Owns the shapes; must not know where a text goes.

use std::sync::LazyLock;

use regex::Regex;

/// Shapes of keys and tokens. `keep` is what stays visible, so that a reader still sees what was there.
const SHAPES: &str = concat!(
    r#"(?P<keep>(?i:\bbearer\s+|\bapi[-_]?key["']?\s*[:=]\s*["']?|://[^/\s:@]+:))"#,
    r"[A-Za-z0-9._~+/=-]{12,}",
    r"|\bsk-[A-Za-z0-9_-]{12,}",
    r"|\b(?:gh[pousr]_|github_pat_|hf_|glpat-|xox[abprs]-)[A-Za-z0-9_-]{16,}",
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}",
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
);

static SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SHAPES).ok());

/// `text` with `mark` in place of everything that looks like a key or token.
pub fn mask_secrets(text: &str, mark: &str) -> String {
    match &*SHAPE {
        Some(shape) => shape.replace_all(text, format!("${{keep}}{mark}")).into_owned(),
        None => text.to_owned(),
    }
}

/// Lines, counted from 1, on which something looks like a key or token; each once, in order.
pub fn secret_lines(text: &str) -> Vec<usize> {
    let Some(shape) = &*SHAPE else { return Vec::new() };
    let line = |at: usize| text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1;
    let mut lines: Vec<usize> = shape.find_iter(text).map(|found| line(found.start())).collect();
    lines.dedup();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_secrets_are_told_and_ordinary_words_are_none() {
        let text =
            "a\nkey sk-proj-abcdefgh12345678 and sk-proj-abcdefgh87654321\n\nghp_abcdefghijklmnop1234\n";
        assert_eq!(secret_lines(text), [2, 4]);
        assert!(
            secret_lines("task-force-of-many-words and a bearer of news\nhttps://example.com/a").is_empty()
        );
        assert_eq!(mask_secrets("Bearer abcdefgh12345678", "[x]"), "Bearer [x]");
    }
}

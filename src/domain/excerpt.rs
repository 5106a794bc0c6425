//! The start of a text that may be huge. Owns lengths in characters; must not know what the text is.

/// The start of a text, on one line.
pub fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > limit.saturating_mul(4) {
            break;
        }
    }
    shortened(&line, limit)
}

/// The start of a text, as it is.
pub fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(one_line(" a\n\tb\u{2028}c ", 9), "a b c");
        assert_eq!(one_line(&"word ".repeat(100_000), 7), "word wo…");
    }
}

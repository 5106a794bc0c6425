//! The one width function, and cutting to a width. Input is sanitised text without line breaks.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns that `text` takes, grapheme by grapheme as the screen buffer counts them.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(UnicodeWidthStr::width).sum() }
}

/// `text` in at most `columns`; a cut shows as `…`.
pub fn truncate(text: &str, columns: usize) -> String {
    if text.len() <= columns || width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used > room {
            break;
        }
        out.push_str(grapheme);
    }
    out.push('…');
    out
}

/// `text` in exactly `columns`: cut, or padded with spaces on the right.
pub fn fit(text: &str, columns: usize) -> String {
    let mut out = truncate(text, columns);
    let missing = columns.saturating_sub(width(&out));
    out.extend(std::iter::repeat_n(' ', missing));
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn widths_follow_graphemes() {
        assert_eq!(width("abc"), 3);
        assert_eq!(width("日本"), 4);
        assert_eq!(width("e\u{301}"), 1);
    }

    #[test]
    fn truncation_marks_the_cut_and_never_splits_wide_characters() {
        assert_eq!(truncate("abcdef", 6), "abcdef");
        assert_eq!(truncate("abcdef", 4), "abc…");
        assert_eq!(truncate("日本語", 4), "日…");
        assert_eq!(truncate("abc", 0), "");
        assert_eq!(fit("日本語", 4), "日… ");
    }

    proptest! {
        #[test]
        fn fit_is_exact(text in "\\PC{0,30}", columns in 0usize..40) {
            let text = crate::text::sanitize_line(&text).into_owned();
            prop_assert_eq!(width(&fit(&text, columns)), columns);
        }
    }
}

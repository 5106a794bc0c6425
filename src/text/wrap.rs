//! Breaking sanitised text into lines of a given width.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::width;

/// Lines of at most `columns` columns: breaks at spaces where it can, inside a word where it must. A line's own
/// indentation is kept on its first piece. Linear in the input; `columns` 0 counts as 1.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrap_ranges(text, columns).into_iter().map(|range| text[range].to_owned()).collect()
}

/// Where in `text` the lines of [`wrap`] are: ascending and apart, without the spaces and line breaks between them.
pub fn wrap_ranges(text: &str, columns: usize) -> Vec<Range<usize>> {
    let columns = columns.max(1);
    let mut out = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        if width(line) <= columns {
            out.push(start..start + line.trim_end().len());
        } else {
            wrap_line(line, start, columns, &mut out);
        }
        start += line.len() + 1;
    }
    out
}

fn wrap_line(line: &str, offset: usize, columns: usize, out: &mut Vec<Range<usize>>) {
    let trimmed = |from: usize, to: usize| offset + from..offset + from + line[from..to].trim_end().len();
    let (mut from, mut used) = (0, 0);
    let mut at = 0;
    for word in line.split_inclusive(' ') {
        let needed = width(word.trim_end_matches(' '));
        if used + needed > columns && !line[from..at].trim().is_empty() {
            out.push(trimmed(from, at));
            (from, used) = (at, 0);
        }
        for grapheme in word.graphemes(true) {
            let step = grapheme.width();
            // Spaces at the edge belong to the break.
            if used + step > columns && grapheme != " " {
                out.push(trimmed(from, at));
                (from, used) = (at, 0);
            }
            used = (used + step).min(columns);
            at += grapheme.len();
        }
    }
    if !line[from..].trim().is_empty() {
        out.push(trimmed(from, line.len()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn breaks_at_spaces_and_inside_long_words() {
        assert_eq!(wrap("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(wrap("  - item one two", 10), ["  - item", "one two"]);
    }

    #[test]
    fn wide_characters_never_hang_over() {
        assert_eq!(wrap("日本語文", 5), ["日本", "語文"]);
    }

    proptest! {
        #[test]
        fn keeps_every_visible_character(text in "[a-z日 ]{0,80}", columns in 2usize..20) {
            let lines = wrap(&text, columns);
            prop_assert!(lines.iter().all(|line| width(line) <= columns));
            let squeeze = |s: &str| s.replace([' ', '\n'], "");
            prop_assert_eq!(squeeze(&lines.concat()), squeeze(&text));
        }
    }
}

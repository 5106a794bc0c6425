//! Breaking sanitised text into lines of a given width.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::width;

/// Lines of at most `columns` columns: breaks at spaces where it can, inside a word where it must. A line's own
/// indentation is kept on its first piece. Linear in the input; `columns` 0 counts as 1.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut out = Vec::new();
    for line in text.split('\n') {
        if width(line) <= columns {
            out.push(line.trim_end().to_owned());
        } else {
            wrap_line(line, columns, &mut out);
        }
    }
    out
}

fn wrap_line(line: &str, columns: usize, out: &mut Vec<String>) {
    let mut current = String::new();
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let visible = word.trim_end_matches(' ');
        let needed = width(visible);
        if used + needed > columns && !current.trim().is_empty() {
            out.push(current.trim_end().to_owned());
            (current, used) = (String::new(), 0);
        }
        for grapheme in word.graphemes(true) {
            let step = grapheme.width();
            if used + step > columns {
                // Spaces at the edge belong to the break.
                if grapheme == " " {
                    continue;
                }
                out.push(current.trim_end().to_owned());
                (current, used) = (String::new(), 0);
            }
            current.push_str(grapheme);
            used += step;
        }
    }
    if !current.trim().is_empty() {
        out.push(current.trim_end().to_owned());
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

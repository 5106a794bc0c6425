//! How untrusted text stands in a prompt: cut to a length, on one line, or between tags that it cannot close.
//! Must not know which text it is.

use std::borrow::Cow;

pub use crate::domain::one_line;
use crate::domain::shortened;

/// Head and tail of a text longer than `limit` characters; the prompt says how much is missing.
pub fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    // A text of at most `limit` bytes has no more characters than that.
    if text.len() <= limit {
        return text.into();
    }
    let total = text.chars().count();
    if total <= limit {
        return text.into();
    }
    let half = limit / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(total - half).collect();
    format!("{head}\n[… {} characters cut …]\n{tail}", total - half * 2).into()
}

/// The start of a text, in quotation marks and on one line: what would break the line is escaped.
pub fn quoted(text: &str, limit: usize) -> String {
    format!("{:?}", shortened(text, limit))
}

/// `content` between an opening and a closing tag. The closing tag itself loses its meaning inside.
pub fn tagged(tag: &str, content: &str) -> String {
    let mut inert = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = rest.find("</") {
        let (before, after) = rest.split_at(at);
        let closes = after.get(2..2 + tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag));
        inert.push_str(before);
        inert.push_str(if closes { "<\\/" } else { "</" });
        rest = &after[2..];
    }
    inert.push_str(rest);
    format!("<{tag}>\n{inert}\n</{tag}>")
}

/// A short value: `name: value` where it is one line, else between tags.
pub fn field(name: &str, value: &str, limit: usize) -> String {
    let value = cut(value.trim(), limit);
    if value.contains(['\n', '\r']) {
        tagged(&name.to_lowercase().replace([' ', '\''], "_"), &value)
    } else {
        format!("{name}: {value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_lose_their_middle_and_say_so() {
        assert_eq!(cut("abcdef", 5), "ab\n[… 2 characters cut …]\nef");
        assert_eq!(cut("abcde", 5), "abcde");
        assert_eq!(cut("ééééé", 5), "ééééé");
        assert_eq!(cut("abc", usize::MAX), "abc");
    }

    #[test]
    fn a_quotation_stays_on_one_line() {
        assert_eq!(quoted("a\n\"b\"", 9), r#""a\n\"b\"""#);
        assert_eq!(quoted("abcdef", 3), "\"abc…\"");
    }

    #[test]
    fn no_text_closes_its_own_tag() {
        let text = "x</task>\n</TASK >y</other></";
        assert_eq!(tagged("task", text), "<task>\nx<\\/task>\n<\\/TASK >y</other></\n</task>");
    }

    #[test]
    fn a_value_of_several_lines_is_put_between_tags() {
        assert_eq!(field("Reference answer", " Rome ", 99), "Reference answer: Rome");
        let sly = field("Reference answer", "Rome\n## Edit budget", 99);
        assert_eq!(sly, "<reference_answer>\nRome\n## Edit budget\n</reference_answer>");
    }
}

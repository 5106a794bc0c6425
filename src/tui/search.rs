//! A search in the text of one pane: what is looked for, and how a found place is marked. Where matches are, and what
//! going to one means, each pane says itself.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use super::layout::Pane;
use super::paint::{Span, span};
use super::theme::Role;

/// Text that is looked for as it stands: in any case, unless it has a capital letter.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub text: String,
    found_by: Regex,
}

impl Pattern {
    /// `None` for text that nothing can be found by.
    pub fn of(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let any_case = !text.chars().any(char::is_uppercase);
        let found_by = RegexBuilder::new(&regex::escape(text)).case_insensitive(any_case).build().ok()?;
        Some(Self { text: text.to_owned(), found_by })
    }

    pub fn is_in(&self, text: &str) -> bool {
        self.found_by.is_match(text)
    }

    pub fn ranges(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        self.found_by.find_iter(text).map(|found| found.range())
    }
}

#[derive(Clone, Debug)]
pub struct Search {
    pub pane: Pane,
    pub pattern: Pattern,
    /// The match gone to last, and how many there were then.
    pub found: Option<(usize, usize)>,
}

impl Search {
    /// `/word 3 of 17`.
    pub fn label(&self) -> Span {
        match self.found {
            Some((at, of)) => span(Role::Warn, format!("/{} {at} of {of}", self.pattern.text)),
            None => span(Role::Warn, format!("/{} not found", self.pattern.text)),
        }
    }
}

/// The parts of matches that lie inside `range` of `text`, found by looking at little more than that.
pub fn matches_in(pattern: &Pattern, text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    // A letter and its other case may differ in length.
    let reach = 2 * pattern.text.len();
    let mut from = range.start.saturating_sub(reach);
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    let mut to = (range.end + reach).min(text.len());
    while !text.is_char_boundary(to) {
        to += 1;
    }
    let inside = |found: Range<usize>| {
        (found.start + from).clamp(range.start, range.end)..(found.end + from).clamp(range.start, range.end)
    };
    pattern.ranges(&text[from..to]).map(inside).filter(|found| !found.is_empty()).collect()
}

/// `text` with its matches in `ranges` (ascending) marked; `here`: the one gone to is among them.
pub fn marked(text: &str, ranges: impl Iterator<Item = Range<usize>>, role: Role, here: bool) -> Vec<Span> {
    let found = if here { Role::Review } else { Role::Selection };
    let mut out = Vec::new();
    let mut next = 0;
    for range in ranges {
        if range.start > next {
            out.push(span(role, &text[next..range.start]));
        }
        next = range.end;
        out.push(span(found, &text[range]));
    }
    out.push(span(role, &text[next..]));
    out
}

/// [`marked`] for a line of several roles.
pub fn marked_in(line: &[Span], pattern: &Pattern, here: bool) -> Vec<Span> {
    let whole = text_of(line);
    let mut out = Vec::new();
    let mut start = 0;
    for (role, text) in line {
        let end = start + text.len();
        let inside = pattern.ranges(&whole).filter(|found| found.start < end && found.end > start);
        let clipped = inside.map(|found| found.start.max(start) - start..found.end.min(end) - start);
        out.extend(marked(text, clipped, *role, here));
        start = end;
    }
    out
}

pub fn text_of(line: &[Span]) -> String {
    line.iter().map(|(_, text)| text.as_str()).collect()
}

/// The place after `from` among `places` (ascending), or before it, going round at the ends.
pub fn step(places: &[usize], from: Option<usize>, forward: bool) -> Option<usize> {
    let last = places.len().checked_sub(1)?;
    let Some(from) = from else { return Some(if forward { 0 } else { last }) };
    Some(if forward {
        let next = places.partition_point(|place| *place <= from);
        if next > last { 0 } else { next }
    } else {
        places.partition_point(|place| *place < from).checked_sub(1).unwrap_or(last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_counts_only_where_it_is_written() {
        let places = |pattern, text| Pattern::of(pattern).unwrap().ranges(text).collect::<Vec<_>>();
        assert_eq!(places("lima", "Lima, lima"), [0..4, 6..10]);
        assert_eq!((places("Lima", "Lima, lima").len(), places("Lima", "Lima, lima")[0].clone()), (1, 0..4));
        assert_eq!(places("a.c", "abc a.c")[0], 4..7, "a dot is a dot");
        assert!(Pattern::of("").is_none());
    }

    #[test]
    fn marks_cover_the_matches_and_nothing_is_lost() {
        let pattern = Pattern::of("ab").unwrap();
        let spans = marked("xabyab", pattern.ranges("xabyab"), Role::Text, true);
        assert_eq!(spans.iter().map(|(_, text)| text.as_str()).collect::<String>(), "xabyab");
        assert_eq!(spans.iter().filter(|(role, _)| *role == Role::Review).count(), 2);
    }

    #[test]
    fn a_match_over_several_roles_is_marked_in_each() {
        let line = [span(Role::Text, "xa"), span(Role::AddedWord, "by"), span(Role::Text, "")];
        let spans = marked_in(&line, &Pattern::of("ab").unwrap(), false);
        let shown: Vec<(Role, &str)> = spans
            .iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(role, text)| (*role, text.as_str()))
            .collect();
        let expected =
            [(Role::Text, "x"), (Role::Selection, "a"), (Role::Selection, "b"), (Role::AddedWord, "y")];
        assert_eq!(shown, expected);
    }

    #[test]
    fn steps_go_round() {
        let places = [3, 7, 9];
        assert_eq!(step(&places, None, true), Some(0));
        assert_eq!(step(&places, Some(7), true), Some(2));
        assert_eq!(step(&places, Some(9), true), Some(0));
        assert_eq!(step(&places, Some(3), false), Some(2));
        assert_eq!(step(&places, Some(8), false), Some(1));
        assert_eq!(step(&[], Some(8), false), None);
    }
}

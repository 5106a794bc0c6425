//! Protected regions of a skill document: text between a start and an end marker that edits must leave alone.
//! Owns finding, removing and rebuilding them; must not know what they say.

use std::ops::Range;

/// The marker pairs (start, end), literal text of SkillOpt's documents.
pub const MARKERS: [(&str, &str); 2] = [
    ("<!-- SLOW_UPDATE_START -->", "<!-- SLOW_UPDATE_END -->"),
    ("<!-- APPENDIX_START -->", "<!-- APPENDIX_END -->"),
];

/// Which region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    SlowUpdate,
    Appendix,
}

impl Region {
    fn markers(self) -> (&'static str, &'static str) {
        match self {
            Self::SlowUpdate => MARKERS[0],
            Self::Appendix => MARKERS[1],
        }
    }

    /// Byte ranges of the complete regions of this kind, markers included. A start marker without a later end marker is
    /// none, and neither is an end marker before the start.
    fn ranges(self, skill: &str) -> Vec<Range<usize>> {
        let (start_marker, end_marker) = self.markers();
        let (mut ranges, mut from) = (Vec::new(), 0);
        while let Some(start) = find_from(skill, start_marker, from) {
            let Some(end) = find_from(skill, end_marker, start + start_marker.len()) else { break };
            from = end + end_marker.len();
            ranges.push(start..from);
        }
        ranges
    }

    /// What the first region holds, trimmed; `None` without one.
    pub fn text(self, skill: &str) -> Option<&str> {
        let (start_marker, end_marker) = self.markers();
        let range = self.ranges(skill).into_iter().next()?;
        skill[range].strip_prefix(start_marker)?.strip_suffix(end_marker).map(str::trim)
    }

    /// The document without regions of this kind and without markers of theirs that have no partner. Runs of blank
    /// lines that this leaves are one blank line; the end is trimmed. Other regions stay as they are.
    pub fn removed_from(self, skill: &str) -> String {
        let mut rest = String::with_capacity(skill.len());
        let mut at = 0;
        for range in self.ranges(skill) {
            rest.push_str(&skill[at..range.start]);
            at = range.end;
        }
        rest.push_str(&skill[at..]);
        let (start_marker, end_marker) = self.markers();
        let rest = without_texts(&rest, &[start_marker, end_marker]);
        let mut tidy = String::with_capacity(rest.len());
        let mut at = 0;
        for range in spans(&rest) {
            tidy.push_str(&collapsed(&rest[at..range.start]));
            tidy.push_str(&rest[range.clone()]);
            at = range.end;
        }
        tidy.push_str(&collapsed(&rest[at..]));
        tidy.truncate(tidy.trim_end().len());
        tidy
    }

    /// `skill` with a region that holds `lines`, unless it has one. A start marker without a partner is dropped: it would
    /// take the text up to the new region's end into that region.
    pub fn ensured_in(self, skill: &str, lines: &str) -> String {
        match self.text(skill) {
            Some(_) => skill.to_owned(),
            None if skill.contains(self.markers().0) => self.added_to(&self.removed_from(skill), lines),
            None => self.added_to(skill, lines),
        }
    }

    /// `skill` with one fresh region of this kind at its end that holds `lines`; other markers in them are dropped.
    pub fn added_to(self, skill: &str, lines: &str) -> String {
        let (start_marker, end_marker) = self.markers();
        let lines = strip_markers(lines);
        let lines = lines.trim();
        let gap = if lines.is_empty() { "" } else { "\n" };
        format!("{}\n\n{start_marker}\n{lines}{gap}{end_marker}\n", skill.trim_end())
    }
}

/// Byte ranges of all complete regions, by position.
pub fn protected(skill: &str) -> Vec<Range<usize>> {
    let mut regions = Region::SlowUpdate.ranges(skill);
    regions.extend(Region::Appendix.ranges(skill));
    regions.sort_by_key(|region| region.start);
    regions
}

/// Byte ranges that no edit may touch: regions, joined where they overlap.
pub fn spans(skill: &str) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for region in protected(skill) {
        match spans.last_mut() {
            Some(last) if region.start < last.end => last.end = last.end.max(region.end),
            _ => spans.push(region),
        }
    }
    spans
}

/// Position of the earliest start marker, complete region or not: appended text goes before it.
pub fn first_start(skill: &str) -> Option<usize> {
    MARKERS.iter().filter_map(|(start, _)| skill.find(start)).min()
}

/// The regions' texts, to be compared before and after an edit.
pub fn contents(skill: &str) -> Vec<&str> {
    protected(skill).into_iter().map(|region| &skill[region]).collect()
}

/// The pieces of `skill` between its regions, without markers that have no partner.
pub fn outside(skill: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for region in protected(skill) {
        pieces.extend(skill.get(at..region.start));
        at = at.max(region.end);
    }
    pieces.push(&skill[at..]);
    for marker in MARKERS.iter().flat_map(|pair| [pair.0, pair.1]) {
        pieces = pieces.into_iter().flat_map(|piece| piece.split(marker)).collect();
    }
    pieces
}

/// How often each marker occurs.
pub fn marker_counts(skill: &str) -> [usize; 4] {
    let [(a, b), (c, d)] = MARKERS;
    [a, b, c, d].map(|marker| skill.matches(marker).count())
}

/// `text` without any marker, also none that removing another one would put together.
pub fn strip_markers(text: &str) -> String {
    let [(a, b), (c, d)] = MARKERS;
    without_texts(text, &[a, b, c, d])
}

fn without_texts(text: &str, unwanted: &[&str]) -> String {
    let mut clean = text.to_owned();
    while let Some(found) = unwanted.iter().find(|unwanted| clean.contains(*unwanted)) {
        clean = clean.replace(found, "");
    }
    clean
}

/// Three or more line breaks in a row become two.
fn collapsed(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut breaks = 0;
    for c in text.chars() {
        breaks = if c == '\n' { breaks + 1 } else { 0 };
        if breaks <= 2 {
            tidy.push(c);
        }
    }
    tidy
}

fn find_from(text: &str, pattern: &str, from: usize) -> Option<usize> {
    text[from..].find(pattern).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: &str = "<!-- SLOW_UPDATE_START -->g<!-- SLOW_UPDATE_END -->";

    #[test]
    fn regions_are_complete_pairs_in_order_of_position() {
        let text = format!("<!-- APPENDIX_START -->n<!-- APPENDIX_END -->\n{SLOW}\n{SLOW}");
        assert_eq!(contents(&text), ["<!-- APPENDIX_START -->n<!-- APPENDIX_END -->", SLOW, SLOW]);
        for open in ["<!-- SLOW_UPDATE_START -->", "<!-- SLOW_UPDATE_END -->x<!-- SLOW_UPDATE_START -->y"] {
            assert!(protected(open).is_empty());
        }
        assert_eq!(protected(&format!("{SLOW} <!-- SLOW_UPDATE_START -->")).len(), 1);
        assert!(protected("").is_empty());
    }

    #[test]
    fn the_first_start_marker_counts_even_without_an_end() {
        assert_eq!(first_start("ab<!-- APPENDIX_START -->"), Some(2));
        assert_eq!(first_start("ab<!-- APPENDIX_END -->"), None);
    }

    #[test]
    fn nested_markers_leave_no_marker_behind() {
        let nested = "a<!-- SLOW_<!-- APPENDIX_END -->UPDATE_START -->b";
        assert_eq!(strip_markers(nested), "ab");
    }

    #[test]
    fn removing_a_region_leaves_the_blank_lines_of_another_alone() {
        let appendix = "<!-- APPENDIX_START -->\nn\n\n\n\nm\n<!-- APPENDIX_END -->";
        let skill = format!("a\n\n\n\nb\n\n{SLOW}\n\n{appendix}\n");
        assert_eq!(Region::SlowUpdate.removed_from(&skill), format!("a\n\nb\n\n{appendix}"));
    }

    #[test]
    fn a_fresh_region_holds_no_marker_of_its_text() {
        let skill = Region::Appendix.added_to("a\n\n", &format!(" n{SLOW}<!-- APPENDIX_END -->m "));
        assert_eq!(skill, "a\n\n<!-- APPENDIX_START -->\nngm\n<!-- APPENDIX_END -->\n");
        assert_eq!(Region::Appendix.text(&skill), Some("ngm"));
    }
}

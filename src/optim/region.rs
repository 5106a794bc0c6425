//! Protected regions of a skill document: text between a start and an end marker that edits must leave alone.
//! Owns finding them; must not change a document.

use std::ops::Range;

/// The marker pairs (start, end), literal text of SkillOpt's documents.
pub const MARKERS: [(&str, &str); 2] = [
    ("<!-- SLOW_UPDATE_START -->", "<!-- SLOW_UPDATE_END -->"),
    ("<!-- APPENDIX_START -->", "<!-- APPENDIX_END -->"),
];

/// Byte ranges of all complete regions, start marker to end marker inclusive, by position. A start marker without a later end marker protects nothing, and neither does
/// an end marker before the start.
pub fn protected(skill: &str) -> Vec<Range<usize>> {
    let mut regions = Vec::new();
    for (start_marker, end_marker) in MARKERS {
        let mut from = 0;
        while let Some(start) = find_from(skill, start_marker, from) {
            let Some(end) = find_from(skill, end_marker, start + start_marker.len()) else { break };
            from = end + end_marker.len();
            regions.push(start..from);
        }
    }
    regions.sort_by_key(|region| region.start);
    regions
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

/// `text` without any marker, also none that removing another one would put together.
pub fn strip_markers(text: &str) -> String {
    let mut clean = text.to_owned();
    while let Some(marker) = MARKERS.iter().flat_map(|pair| [pair.0, pair.1]).find(|m| clean.contains(m)) {
        clean = clean.replace(marker, "");
    }
    clean
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
    fn what_lies_outside_has_no_marker_and_overlapping_regions_count_once() {
        assert_eq!(outside(&format!("a{SLOW}b<!-- APPENDIX_END -->c")), ["a", "b", "c"]);
        let crossed = "a<!-- SLOW_UPDATE_START -->x<!-- APPENDIX_START -->y<!-- SLOW_UPDATE_END -->z<!-- APPENDIX_END -->b";
        assert_eq!(outside(crossed), ["a", "b"]);
        assert_eq!(outside("plain"), ["plain"]);
    }

    #[test]
    fn nested_markers_leave_no_marker_behind() {
        let nested = "a<!-- SLOW_<!-- APPENDIX_END -->UPDATE_START -->b";
        assert_eq!(strip_markers(nested), "ab");
    }
}

//! Notes on execution lapses, kept in a protected region at the end of the skill: the rule exists, it was not followed.
//! Owns the region's text and when two notes are the same; must not decide when notes are taken in.

use std::collections::HashSet;

use serde_json::Value;

use crate::text::extract_json_array;

use super::region::{Region, strip_markers};
use super::reply::{ReplyFault, object};

const HEADING: &str = "## Execution Notes Appendix";

pub fn has_appendix(skill: &str) -> bool {
    Region::Appendix.text(skill).is_some()
}

/// `skill` with an appendix without notes at its end; unchanged when it has one.
pub fn with_empty_appendix(skill: &str) -> String {
    Region::Appendix.ensured_in(skill, HEADING)
}

/// The notes, one per line of the region, without bullets and heading.
pub fn appendix_notes(skill: &str) -> Vec<String> {
    let lines = Region::Appendix.text(skill).unwrap_or_default().lines().map(str::trim);
    let notes = lines.filter(|line| !is_heading(line)).map(without_bullet);
    notes.filter(|note| !note.is_empty()).map(str::to_owned).collect()
}

fn is_heading(line: &str) -> bool {
    line.starts_with('#') && line.trim_start_matches('#').trim() == HEADING.trim_start_matches('#').trim()
}

fn without_bullet(line: &str) -> &str {
    line.strip_prefix(['-', '*']).unwrap_or(line).trim()
}

/// `skill` with an appendix of exactly `notes` at its end.
pub fn with_appendix(skill: &str, notes: &[String]) -> String {
    let bullets = notes.iter().map(|note| format!("- {note}"));
    let lines: Vec<String> = std::iter::once(HEADING.to_owned()).chain(bullets).collect();
    Region::Appendix.added_to(&without_appendix(skill), &lines.join("\n"))
}

pub fn without_appendix(skill: &str) -> String {
    Region::Appendix.removed_from(skill)
}

/// Existing and new notes together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteUnion {
    pub all: Vec<String>,
    /// How many of the new notes were not there before.
    pub added: usize,
}

/// Joins notes, each on one line and without region markers. Two notes are the same when they differ only in letter
/// case, white space and closing punctuation; the first one stays.
pub fn union_notes(existing: &[String], new: &[String]) -> NoteUnion {
    let mut seen = HashSet::new();
    let mut union = NoteUnion { all: Vec::new(), added: 0 };
    for (fresh, note) in existing.iter().map(|note| (false, note)).chain(new.iter().map(|note| (true, note)))
    {
        let note = squeezed(&strip_markers(note));
        let canonical = canonical_note(&note);
        if !canonical.is_empty() && seen.insert(canonical) {
            union.all.push(note);
            union.added += usize::from(fresh);
        }
    }
    union
}

/// What two equal notes have in common.
pub fn canonical_note(note: &str) -> String {
    // Upper case first: it folds letters that have several lower-case forms (ß, ſ, ς).
    let folded = squeezed(note).to_uppercase().to_lowercase();
    folded.trim_end_matches([' ', '.', ';', ':', ',', '_', '-']).to_owned()
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `appendix_notes` of a reply: a list, one text, or objects with `note` or `content`; anything else is none.
pub fn notes_of(value: Option<&Value>) -> Vec<String> {
    let note = |item: &Value| match item {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Object(fields) => {
            let text = ["note", "content"].into_iter().find_map(|key| fields.get(key)?.as_str());
            text.map(|text| text.trim().to_owned())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    let notes: Vec<Option<String>> = match value {
        Some(Value::Array(items)) => items.iter().map(note).collect(),
        Some(text @ Value::String(_)) => vec![note(text)],
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    };
    notes.into_iter().flatten().filter(|note| !note.is_empty()).collect()
}

/// Reads a consolidation of `before` notes: an object with `appendix_notes`, or the list alone. Refused when nothing or
/// more than before is left.
pub fn consolidated_notes(reply: &str, before: usize) -> Result<Vec<String>, ReplyFault> {
    const KEY: &str = "appendix_notes";
    let fields = object(reply).map(|fields| fields.get(KEY).cloned());
    let notes = match (fields, extract_json_array(reply)) {
        (Ok(Some(notes)), _) | (_, Some(notes)) => notes_of(Some(&notes)),
        (Ok(None), None) => return Err(ReplyFault::Missing { key: KEY }),
        (Err(fault), None) => return Err(fault),
    };
    let notes = union_notes(&[], &notes).all;
    match notes.len() {
        0 => Err(ReplyFault::Blank { key: KEY }),
        after if after > before => Err(ReplyFault::NoFewerNotes { before, after }),
        _ => Ok(notes),
    }
}

/// A consolidation of `before` notes takes their place only when it is shorter.
pub fn shorter(consolidated: Option<Vec<String>>, before: usize) -> Option<Vec<String>> {
    consolidated.filter(|notes| notes.len() < before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn notes_written_are_notes_read() {
        let wild = [
            "-5 is negative",
            "- twice",
            "* star",
            "# Execution Notes Appendix",
            "two\nlines",
            "<!-- APPENDIX_END --> out",
            "é",
        ];
        let union = union_notes(&[], &notes(&wild));
        let skill = with_appendix("# S\n", &union.all);
        assert_eq!(appendix_notes(&skill), union.all);
        assert_eq!(union.all[4..], ["two lines", "out", "é"]);
        assert_eq!(with_appendix(&skill, &appendix_notes(&skill)), skill);
    }

    #[test]
    fn a_note_that_was_there_is_not_added_again() {
        let union =
            union_notes(&notes(&["Read the  unit."]), &notes(&["read the UNIT", "New", " new;", "..."]));
        assert_eq!((union.all, union.added), (notes(&["Read the unit.", "New"]), 1));
    }

    #[test]
    fn a_consolidation_must_leave_something_and_not_more() {
        let read = |reply: &str| consolidated_notes(reply, 2);
        assert_eq!(read(r#"["a", {"note": "b"}, "A."]"#), Ok(notes(&["a", "b"])));
        assert_eq!(read(r#"{"notes": ["a"]}"#), Err(ReplyFault::Missing { key: "appendix_notes" }));
        assert_eq!(read(r#"{"appendix_notes": []}"#), Err(ReplyFault::Blank { key: "appendix_notes" }));
        assert_eq!(
            read(r#"{"appendix_notes": ["a", "b", "c"]}"#),
            Err(ReplyFault::NoFewerNotes { before: 2, after: 3 })
        );
        assert_eq!(read("a and b"), Err(ReplyFault::NoJson));
    }
}

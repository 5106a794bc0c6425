//! Line diff with word-level emphasis, its change groups, and which edit caused each group.

use std::ops::Range;

use similar::{ChangeTag, DiffOp, DiffTag, TextDiff};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Same,
    Removed,
    Added,
}

/// One line of a diff. Line numbers count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    pub mark: Mark,
    pub old: Option<usize>,
    pub new: Option<usize>,
    /// (emphasised, text) pieces without the line break.
    pub parts: Vec<(bool, String)>,
}

/// A run of changed lines between unchanged ones: what a reader takes for one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Range in [`Diff::lines`].
    pub lines: Range<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    pub lines: Vec<DiffLine>,
    pub groups: Vec<Group>,
}

impl Diff {
    pub fn added(&self) -> usize {
        self.lines.iter().filter(|line| line.mark == Mark::Added).count()
    }

    pub fn removed(&self) -> usize {
        self.lines.iter().filter(|line| line.mark == Mark::Removed).count()
    }
}

/// Compares by line; replaced lines are refined by word.
pub fn diff(old: &str, new: &str) -> Diff {
    let compared = TextDiff::from_lines(old, new);
    let mut out = Diff::default();
    for op in compared.ops() {
        let start = out.lines.len();
        for change in compared.iter_inline_changes(op) {
            let parts = change
                .values()
                .iter()
                .map(|(emphasised, text)| (*emphasised, text.trim_end_matches(['\n', '\r']).to_owned()))
                .filter(|(_, text)| !text.is_empty())
                .collect();
            out.lines.push(DiffLine {
                mark: match change.tag() {
                    ChangeTag::Equal => Mark::Same,
                    ChangeTag::Delete => Mark::Removed,
                    ChangeTag::Insert => Mark::Added,
                },
                old: change.old_index().map(|index| index + 1),
                new: change.new_index().map(|index| index + 1),
                parts,
            });
        }
        if op.tag() != DiffTag::Equal {
            match out.groups.last_mut() {
                Some(group) if group.lines.end == start => group.lines.end = out.lines.len(),
                _ => out.groups.push(Group { lines: start..out.lines.len() }),
            }
        }
    }
    out
}

/// Who last touched a line while edits were applied one after the other.
#[derive(Clone, Default)]
struct Origin {
    /// Line number in the first stage, from 1.
    old: Option<usize>,
    edits: Vec<usize>,
}

/// For each change group of `diff(stages.first, stages.last)`, the edits that caused it: edit `i` turned `stages[i]`
/// into `stages[i + 1]`. Sorted, without repeats.
pub fn causes(diff: &Diff, stages: &[&str]) -> Vec<Vec<usize>> {
    let first_lines = stages.first().map_or(0, |text| TextDiff::from_lines(*text, *text).old_len());
    let mut lines: Vec<Origin> =
        (1..=first_lines).map(|number| Origin { old: Some(number), edits: Vec::new() }).collect();
    let mut removed: Vec<Vec<usize>> = vec![Vec::new(); first_lines + 1];
    for (edit, pair) in stages.windows(2).enumerate() {
        lines = follow(&lines, &mut removed, edit, &TextDiff::from_lines(pair[0], pair[1]));
    }
    let of_line = |line: &DiffLine| match (line.mark, line.old, line.new) {
        (Mark::Removed, Some(old), _) => removed.get(old).cloned().unwrap_or_default(),
        (Mark::Added, _, Some(new)) => lines.get(new - 1).map(|line| line.edits.clone()).unwrap_or_default(),
        _ => Vec::new(),
    };
    diff.groups
        .iter()
        .map(|group| {
            let mut edits: Vec<usize> = diff.lines[group.lines.clone()].iter().flat_map(of_line).collect();
            edits.sort_unstable();
            edits.dedup();
            edits
        })
        .collect()
}

fn follow(
    lines: &[Origin],
    removed: &mut [Vec<usize>],
    edit: usize,
    step: &TextDiff<'_, '_, str>,
) -> Vec<Origin> {
    let mut next = Vec::with_capacity(step.new_len());
    for op in step.ops() {
        if let DiffOp::Equal { old_index, len, .. } = *op {
            next.extend_from_slice(&lines[old_index..old_index + len]);
            continue;
        }
        // A line put in by an earlier edit and changed by this one is the work of both.
        let mut by = vec![edit];
        for line in &lines[op.old_range()] {
            match line.old {
                Some(number) => removed[number].push(edit),
                None => by.extend(&line.edits),
            }
        }
        next.extend(op.new_range().map(|_| Origin { old: None, edits: by.clone() }));
    }
    next
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OLD: &str = "# Skill\n\nAnswer the city.\n- be short\n- be kind\n";

    #[test]
    fn replaced_words_are_emphasised() {
        let diff = diff("Answer the city now.\n", "Answer the country now.\n");
        assert_eq!(diff.lines.len(), 2);
        let emphasised = |line: &DiffLine| -> Vec<String> {
            line.parts.iter().filter(|part| part.0).map(|part| part.1.clone()).collect()
        };
        assert_eq!(emphasised(&diff.lines[0]), ["city"]);
        assert_eq!(emphasised(&diff.lines[1]), ["country"]);
    }

    #[test]
    fn groups_and_line_numbers() {
        let diff = diff(OLD, "# Skill\n\nAnswer the country.\n- be short\n- be kind\n- cite\n");
        assert_eq!(diff.groups.len(), 2);
        assert_eq!((diff.added(), diff.removed()), (2, 1));
        let last = diff.lines.last().unwrap();
        assert_eq!((last.mark, last.old, last.new), (Mark::Added, None, Some(6)));
        assert_eq!(diff.groups[1].lines, diff.lines.len() - 1..diff.lines.len());
    }

    #[test]
    fn groups_know_their_edits() {
        let one = OLD.replace("city", "country");
        let two = format!("{one}- cite\n");
        let three = two.replace("- cite", "- cite sources");
        let diff = diff(OLD, &three);
        assert_eq!(causes(&diff, &[OLD, &one, &two, &three]), [vec![0], vec![1, 2]]);
    }

    #[test]
    fn a_deleted_line_belongs_to_the_deleting_edit() {
        let one = format!("{OLD}- more\n");
        let two = one.replace("- be kind\n", "");
        let diff = diff(OLD, &two);
        let causes = causes(&diff, &[OLD, &one, &two]);
        assert!(causes.iter().flatten().any(|edit| *edit == 1), "{causes:?}");
        assert!(causes.iter().all(|edits| !edits.is_empty()));
    }

    #[test]
    fn equal_and_empty_texts_have_no_groups() {
        assert!(diff(OLD, OLD).groups.is_empty());
        assert_eq!(diff("", ""), Diff::default());
        assert_eq!(diff("", "a\n").groups.len(), 1);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_back(old in "([abc ]{0,3}\n){0,8}", new in "([abc ]{0,3}\n){0,8}") {
            let diff = diff(&old, &new);
            let read = |skip: Mark| -> String {
                diff.lines
                    .iter()
                    .filter(|line| line.mark != skip)
                    .map(|line| line.parts.iter().map(|part| part.1.as_str()).collect::<String>() + "\n")
                    .collect()
            };
            prop_assert_eq!(read(Mark::Added), old);
            prop_assert_eq!(read(Mark::Removed), new);
        }

        #[test]
        fn every_group_has_a_cause(stages in prop::collection::vec("([ab]{0,2}\n){0,6}", 2..5)) {
            let texts: Vec<&str> = stages.iter().map(String::as_str).collect();
            let diff = diff(texts[0], texts[texts.len() - 1]);
            let causes = causes(&diff, &texts);
            prop_assert_eq!(causes.len(), diff.groups.len());
            prop_assert!(causes.iter().flatten().all(|edit| *edit < texts.len() - 1));
        }
    }
}

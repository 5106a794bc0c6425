//! Line diff with word-level emphasis, its change groups, and which edit caused each group.

use std::ops::Range;

use similar::{Algorithm, ChangeTag, DiffOp, DiffableStr, TextDiff, capture_diff_slices};

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

/// Changed lines next to each other: what a reader takes for one change. Groups may touch once they are told apart by
/// their causes.
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

    /// The change group that a line belongs to.
    pub fn group_at(&self, line: usize) -> Option<usize> {
        let after = self.groups.partition_point(|group| group.lines.start <= line);
        after.checked_sub(1).filter(|group| self.groups[*group].lines.contains(&line))
    }

    pub fn removed(&self) -> usize {
        self.lines.iter().filter(|line| line.mark == Mark::Removed).count()
    }
}

/// Compares by line; replaced lines are refined by word.
pub fn diff(old: &str, new: &str) -> Diff {
    let compared = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for op in compared.ops() {
        inline(&compared, op, (0, 0), &mut lines);
    }
    grouped(lines)
}

/// [`diff`], but lines that differ in white space alone are the same; they read as in `new`.
pub fn diff_ignoring_whitespace(old: &str, new: &str) -> Diff {
    let (old, new) = (lines(old), lines(new));
    let squeezed = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let mut out = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &squeezed(&old), &squeezed(&new)) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            out.extend((0..len).map(|offset| DiffLine {
                mark: Mark::Same,
                old: Some(old_index + offset + 1),
                new: Some(new_index + offset + 1),
                parts: parts_of([(false, new[new_index + offset])]),
            }));
            continue;
        }
        let part = TextDiff::from_slices(&old[op.old_range()], &new[op.new_range()]);
        for inner in part.ops() {
            inline(&part, inner, (op.old_range().start, op.new_range().start), &mut out);
        }
    }
    grouped(out)
}

/// The lines of one operation, numbered from `before` lines on.
fn inline(compared: &TextDiff<'_, '_, str>, op: &DiffOp, before: (usize, usize), lines: &mut Vec<DiffLine>) {
    lines.extend(compared.iter_inline_changes(op).map(|change| DiffLine {
        mark: match change.tag() {
            ChangeTag::Equal => Mark::Same,
            ChangeTag::Delete => Mark::Removed,
            ChangeTag::Insert => Mark::Added,
        },
        old: change.old_index().map(|index| before.0 + index + 1),
        new: change.new_index().map(|index| before.1 + index + 1),
        parts: parts_of(change.values().iter().map(|(emphasised, text)| (*emphasised, &**text))),
    }));
}

fn parts_of<'a>(values: impl IntoIterator<Item = (bool, &'a str)>) -> Vec<(bool, String)> {
    values
        .into_iter()
        .map(|(emphasised, text)| (emphasised, text.trim_end_matches(['\n', '\r']).to_owned()))
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

fn grouped(lines: Vec<DiffLine>) -> Diff {
    let mut groups: Vec<Group> = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        match groups.last_mut() {
            _ if line.mark == Mark::Same => {}
            Some(group) if group.lines.end == place => group.lines.end = place + 1,
            _ => groups.push(Group { lines: place..place + 1 }),
        }
    }
    Diff { lines, groups }
}

/// The lines of `text` as [`diff`] counts them, each with its line break.
pub fn lines(text: &str) -> Vec<&str> {
    text.tokenize_lines()
}

/// How much of two lines is the same, by word: from 0 to 1 for equal lines.
pub fn similarity(old: &str, new: &str) -> f64 {
    f64::from(TextDiff::from_words(old, new).ratio())
}

/// Who last touched a line while edits were applied one after the other.
#[derive(Clone, Default)]
struct Origin {
    /// Line number in the first stage, from 1.
    old: Option<usize>,
    edits: Vec<usize>,
}

/// Splits the change groups of `diff(stages.first, stages.last)` by the edits that caused them and names those of each:
/// edit `i` turned `stages[i]` into `stages[i + 1]`. Sorted, without repeats. Within a group that is split, the removed
/// and the added lines of one cause come together; both keep their order.
pub fn split_by_cause(diff: Diff, stages: &[&str]) -> (Diff, Vec<Vec<usize>>) {
    let of_line = line_causes(&diff, stages);
    let mut out = Diff { lines: Vec::with_capacity(diff.lines.len()), groups: Vec::new() };
    let mut causes = Vec::new();
    let mut next = 0;
    for group in &diff.groups {
        out.lines.extend_from_slice(&diff.lines[next..group.lines.start]);
        next = group.lines.end;
        let units = units(&of_line[group.lines.clone()]);
        let unit_of = |place: usize| {
            let first = of_line[place].first();
            first
                .and_then(|edit| units.iter().find(|unit| unit.contains(edit)))
                .map_or(&[][..], Vec::as_slice)
        };
        let with_mark = |mark: Mark| {
            let places = group.lines.clone().filter(|place| diff.lines[*place].mark == mark);
            runs(places.map(|place| (place, unit_of(place))))
        };
        for (cause, places) in together(with_mark(Mark::Removed), with_mark(Mark::Added)) {
            let start = out.lines.len();
            out.lines.extend(places.into_iter().map(|place| diff.lines[place].clone()));
            out.groups.push(Group { lines: start..out.lines.len() });
            causes.push(cause);
        }
    }
    out.lines.extend_from_slice(&diff.lines[next..]);
    (out, causes)
}

/// Edits that worked on the same lines cannot be told apart: sets of edits that share no line, each sorted.
fn units(of_line: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut units: Vec<Vec<usize>> = Vec::new();
    for cause in of_line.iter().filter(|cause| !cause.is_empty()) {
        let (touched, apart): (Vec<_>, Vec<_>) =
            units.into_iter().partition(|unit| unit.iter().any(|edit| cause.contains(edit)));
        let mut unit: Vec<usize> = touched.into_iter().flatten().chain(cause.iter().copied()).collect();
        unit.sort_unstable();
        unit.dedup();
        units = apart;
        units.push(unit);
    }
    units
}

/// Lines in a row with one cause: the edits, and the places of the lines.
type Run = (Vec<usize>, Vec<usize>);

/// A line without a cause (a comparison of the ends may pair other lines than the edits did) goes with its neighbour.
fn runs<'a>(lines: impl Iterator<Item = (usize, &'a [usize])>) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for (place, cause) in lines {
        match out.last_mut() {
            Some((last, places)) if cause.is_empty() || last == cause => places.push(place),
            Some((last, places)) if last.is_empty() => {
                *last = cause.to_vec();
                places.push(place);
            }
            _ => out.push((cause.to_vec(), vec![place])),
        }
    }
    out
}

/// Merges runs of removed and of added lines, so that those with the same cause become one.
fn together(removed: Vec<Run>, added: Vec<Run>) -> Vec<Run> {
    // A run whose lines nobody claims says nothing about where it belongs.
    if removed.iter().chain(&added).any(|run| run.0.is_empty()) {
        let mut cause: Vec<usize> = removed.iter().chain(&added).flat_map(|run| run.0.clone()).collect();
        cause.sort_unstable();
        cause.dedup();
        let places = removed.into_iter().chain(added).flat_map(|run| run.1).collect();
        return vec![(cause, places)];
    }
    let mut out: Vec<Run> = Vec::new();
    let mut added = added.into_iter().peekable();
    for (cause, mut places) in removed {
        if added.clone().any(|run| run.0 == cause) {
            while let Some(run) = added.next_if(|run| run.0 != cause) {
                out.push(run);
            }
            places.extend(added.next().into_iter().flat_map(|run| run.1));
        }
        out.push((cause, places));
    }
    out.extend(added);
    out
}

/// The edits that removed or added each line of `diff`; none for unchanged lines.
fn line_causes(diff: &Diff, stages: &[&str]) -> Vec<Vec<usize>> {
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
    let sorted = |mut edits: Vec<usize>| {
        edits.sort_unstable();
        edits.dedup();
        edits
    };
    diff.lines.iter().map(|line| sorted(of_line(line))).collect()
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
    fn white_space_can_be_left_out_of_the_comparison() {
        let (old, new) = ("# Skill\n- be  short\n- be kind\n", "# Skill\n  - be short\n- be polite\n\n");
        assert_eq!(diff(old, new).groups.len(), 1);
        let diff = diff_ignoring_whitespace(old, new);
        let marks: Vec<Mark> = diff.lines.iter().map(|line| line.mark).collect();
        assert_eq!(marks, [Mark::Same, Mark::Same, Mark::Removed, Mark::Added, Mark::Added]);
        assert_eq!((diff.lines[1].old, diff.lines[1].new), (Some(2), Some(2)));
        assert_eq!(diff.lines[1].parts, [(false, "  - be short".to_owned())]);
        assert_eq!((diff.lines[2].old, diff.lines[3].new, diff.lines[4].new), (Some(3), Some(3), Some(4)));
        assert!(diff.lines[3].parts.contains(&(true, "polite".to_owned())), "{:?}", diff.lines[3].parts);
        assert_eq!(diff.groups, [Group { lines: 2..5 }]);
        assert!(diff_ignoring_whitespace("a b\n", " a\tb").groups.is_empty());
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
        let (split, causes) = split_by_cause(diff(OLD, &three), &[OLD, &one, &two, &three]);
        assert_eq!(causes, [vec![0], vec![1, 2]]);
        assert_eq!(split, diff(OLD, &three), "what needs no split stays as it is");
    }

    /// `-7` and so on: how a diff reads.
    fn reads(diff: &Diff, group: &Group) -> Vec<String> {
        let sign = |line: &DiffLine| match line.mark {
            Mark::Same => ' ',
            Mark::Removed => '-',
            Mark::Added => '+',
        };
        let words = |line: &DiffLine| line.parts.iter().map(|part| part.1.as_str()).collect::<String>();
        diff.lines[group.lines.clone()].iter().map(|line| format!("{}{}", sign(line), words(line))).collect()
    }

    #[test]
    fn edits_that_touch_are_told_apart() {
        let one = OLD.replace("the city.", "the country.");
        let two = one.replace("- be short\n", "");
        let three = format!("{}- cite\n", two.replace("- be kind\n", "- be polite\n"));
        let stages = [OLD, &one, &two, &three];
        let whole = diff(OLD, &three);
        assert_eq!(whole.groups.len(), 1);
        let (split, causes) = split_by_cause(whole, &stages);
        assert_eq!(causes, [[0], [1], [2]]);
        let read: Vec<Vec<String>> = split.groups.iter().map(|group| reads(&split, group)).collect();
        assert_eq!(read[0], ["-Answer the city.", "+Answer the country."]);
        assert_eq!(read[1], ["-- be short"]);
        assert_eq!(read[2], ["-- be kind", "+- be polite", "+- cite"]);
    }

    #[test]
    fn a_deleted_line_belongs_to_the_deleting_edit() {
        let one = format!("{OLD}- more\n");
        let two = one.replace("- be kind\n", "");
        let (_, causes) = split_by_cause(diff(OLD, &two), &[OLD, &one, &two]);
        assert!(causes.iter().flatten().any(|edit| *edit == 1), "{causes:?}");
        assert!(causes.iter().all(|edits| !edits.is_empty()));
    }

    #[test]
    fn equal_and_empty_texts_have_no_groups() {
        assert!(diff(OLD, OLD).groups.is_empty());
        assert_eq!(diff("", ""), Diff::default());
        assert_eq!(diff("", "a\n").groups.len(), 1);
    }

    #[test]
    fn edits_of_one_line_stay_together() {
        let one = OLD.replace("the city.", "the country.");
        let two = one.replace("country.", "country now.");
        let three = two.replace("- be short\n", "");
        let (split, causes) = split_by_cause(diff(OLD, &three), &[OLD, &one, &two, &three]);
        assert_eq!(causes, [vec![0, 1], vec![2]]);
        assert_eq!(reads(&split, &split.groups[0]), ["-Answer the city.", "+Answer the country now."]);
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
        fn a_split_keeps_every_line_in_order(stages in prop::collection::vec("([ab]{0,2}\n){0,6}", 2..5)) {
            let texts: Vec<&str> = stages.iter().map(String::as_str).collect();
            let whole = diff(texts[0], texts[texts.len() - 1]);
            let (split, causes) = split_by_cause(whole.clone(), &texts);
            prop_assert_eq!(causes.len(), split.groups.len());
            prop_assert!(causes.iter().flatten().all(|edit| *edit < texts.len() - 1));
            for skip in [Mark::Added, Mark::Removed] {
                let side = |diff: &Diff| -> Vec<DiffLine> {
                    diff.lines.iter().filter(|line| line.mark != skip).cloned().collect()
                };
                prop_assert_eq!(side(&split), side(&whole));
            }
            let mut grouped: Vec<usize> = split.groups.iter().flat_map(|group| group.lines.clone()).collect();
            grouped.dedup();
            let changed = (0..split.lines.len()).filter(|place| split.lines[*place].mark != Mark::Same);
            prop_assert_eq!(grouped, changed.collect::<Vec<_>>());
        }
    }
}

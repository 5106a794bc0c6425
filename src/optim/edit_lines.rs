//! The lines that an edit takes away and puts in, so that some of them can be taken and others left. A choice of lines
//! is nothing but the amended text that it makes, and is read back from that text; must not decide anything.

use super::rewrite::{document, with_regions_of};
use crate::domain::{Decision, Edit, EditOp};
use crate::text::{Diff, Mark, diff, lines};

/// Most states looked at when a choice is read from a text; beyond that the text counts as written by hand.
const STATES: usize = 1 << 20;
const BREAKS: [char; 2] = ['\n', '\r'];

/// What an edit does, by line.
#[derive(Clone, Debug)]
pub struct EditLines {
    diff: Diff,
    /// The exact text of each line of the diff, with its line break.
    exact: Vec<String>,
}

/// What a decision takes of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Undecided,
    /// By line of the diff: the change is made. Unchanged lines count as taken.
    Lines(Vec<bool>),
    /// The amended text is no selection of the edit's lines.
    ByHand,
}

impl EditLines {
    /// `current`: the skill under review. `None` for an edit without lines to choose from.
    pub fn of(edit: &Edit, current: &str) -> Option<Self> {
        let (target, content) = (edit.target.trim_matches(BREAKS), edit.content.trim());
        let rewritten;
        let (old, new) = match edit.op {
            EditOp::Replace => (target, content),
            EditOp::Delete => (target, ""),
            EditOp::Append
            | EditOp::InsertAfter
            | EditOp::AddRule
            | EditOp::RemoveRule
            | EditOp::MergeRules
            | EditOp::Reorganize
            | EditOp::Compress
            | EditOp::Clarify => ("", content),
            EditOp::Rewrite if content.is_empty() => return None,
            EditOp::Rewrite => {
                rewritten = with_regions_of(&document(&edit.content), current).0;
                (current, rewritten.as_str())
            }
            EditOp::Unknown => return None,
        };
        if edit.op == EditOp::Replace && target.is_empty() {
            return None;
        }
        let (old, new) = (ended(old), ended(new));
        let diff = diff(&old, &new);
        let (old, new) = (lines(&old), lines(&new));
        let exact = diff.lines.iter().map(|line| {
            let (side, number) = match line.mark {
                Mark::Removed => (&old, line.old),
                Mark::Same | Mark::Added => (&new, line.new),
            };
            number.and_then(|number| side.get(number - 1)).map_or(String::new(), |text| (*text).to_owned())
        });
        let exact = exact.collect();
        (!diff.groups.is_empty()).then_some(Self { diff, exact })
    }

    pub fn diff(&self) -> &Diff {
        &self.diff
    }

    /// The places of the lines that can be chosen.
    pub fn changed(&self) -> impl Iterator<Item = usize> {
        self.diff.groups.iter().flat_map(|group| group.lines.clone())
    }

    /// Every line taken.
    pub fn all(&self) -> Vec<bool> {
        vec![true; self.exact.len()]
    }

    /// No change taken.
    pub fn none(&self) -> Vec<bool> {
        self.diff.lines.iter().map(|line| line.mark == Mark::Same).collect()
    }

    /// The decision that takes these lines and leaves the others.
    pub fn decision(&self, taken: &[bool]) -> Decision {
        if taken == self.all() {
            Decision::Accept
        } else if taken == self.none() {
            Decision::Reject { reason: String::new() }
        } else {
            Decision::Amend { content: self.text(taken), reason: String::new() }
        }
    }

    /// What a decision takes.
    pub fn choice(&self, decision: &Decision) -> Choice {
        match decision {
            Decision::Undecided => Choice::Undecided,
            Decision::Accept => Choice::Lines(self.all()),
            Decision::Reject { .. } => Choice::Lines(self.none()),
            Decision::Amend { content, .. } => self.read(content).map_or(Choice::ByHand, Choice::Lines),
        }
    }

    /// What stands in place of the old text when these lines are taken.
    fn text(&self, taken: &[bool]) -> String {
        let mut out = String::new();
        for ((line, exact), taken) in self.diff.lines.iter().zip(&self.exact).zip(taken) {
            let there = match line.mark {
                Mark::Same => true,
                Mark::Added => *taken,
                Mark::Removed => !*taken,
            };
            if there {
                out.push_str(exact);
            }
        }
        out
    }

    /// The lines that make `text`. Where several choices make it, the one that takes more.
    fn read(&self, text: &str) -> Option<Vec<bool>> {
        let wanted: Vec<&str> = lines(text).into_iter().map(bare).collect();
        // How many lines of the text can be used up before each line of the diff.
        let mut reached: Vec<Vec<usize>> = vec![vec![0]];
        let mut states = 0;
        for (line, exact) in self.diff.lines.iter().zip(&self.exact) {
            let before = reached.last()?;
            let mut next = Vec::with_capacity(before.len());
            for used in before {
                if line.mark != Mark::Same {
                    next.push(*used);
                }
                if wanted.get(*used) == Some(&bare(exact)) {
                    next.push(used + 1);
                }
            }
            next.sort_unstable();
            next.dedup();
            states += next.len();
            if next.is_empty() || states > STATES {
                return None;
            }
            reached.push(next);
        }
        let mut used = wanted.len();
        reached.last()?.binary_search(&used).ok()?;
        let mut taken = self.all();
        for place in (0..self.exact.len()).rev() {
            let before = |used: usize| reached[place].binary_search(&used).is_ok();
            let with = used > 0 && wanted[used - 1] == bare(&self.exact[place]) && before(used - 1);
            let there = match self.diff.lines[place].mark {
                Mark::Same => true,
                Mark::Added => with,
                Mark::Removed => !before(used),
            };
            taken[place] = match self.diff.lines[place].mark {
                Mark::Removed => !there,
                Mark::Same | Mark::Added => there,
            };
            used -= usize::from(there);
        }
        Some(taken)
    }
}

/// With a line break at its end, so that a last line equals the same line further up.
fn ended(text: &str) -> String {
    match text {
        "" => String::new(),
        text if text.ends_with('\n') => text.to_owned(),
        text => format!("{text}\n"),
    }
}

fn bare(line: &str) -> &str {
    line.trim_end_matches(BREAKS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::SourceType;
    use crate::optim::{MissingAnchor, apply_edits, full_rewrite};

    fn edit(op: EditOp, target: &str, content: &str) -> Edit {
        Edit {
            priority: None,
            op,
            target: target.into(),
            content: content.into(),
            support_count: 1,
            source_type: SourceType::Failure,
            merge_level: None,
            rationale: String::new(),
            motivated_by: Vec::new(),
        }
    }

    /// The skill after the part of `edit` that these places leave out.
    fn without(skill: &str, edit: &Edit, left: &[usize]) -> String {
        let lines = EditLines::of(edit, skill).unwrap();
        let mut taken = lines.all();
        left.iter().for_each(|place| taken[*place] = false);
        match lines.decision(&taken) {
            Decision::Accept => apply_edits(skill, std::slice::from_ref(edit), MissingAnchor::Skip).skill,
            Decision::Amend { content, .. } => {
                apply_edits(skill, &[edit.amended(&content)], MissingAnchor::Skip).skill
            }
            Decision::Reject { .. } | Decision::Undecided => skill.to_owned(),
        }
    }

    const SKILL: &str = "# T\n- one\n- two\n- three\n- four\n";

    #[test]
    fn part_of_a_replacement_keeps_the_rest_of_the_target() {
        let edit = edit(EditOp::Replace, "- one\n- two\n- three", "- uno\n- two\n- tres\n- extra");
        let marks: Vec<Mark> =
            EditLines::of(&edit, SKILL).unwrap().diff.lines.iter().map(|l| l.mark).collect();
        use Mark::{Added, Removed, Same};
        assert_eq!(marks, [Removed, Added, Same, Removed, Added, Added]);
        assert_eq!(without(SKILL, &edit, &[3, 4]), "# T\n- uno\n- two\n- three\n- extra\n- four\n");
        assert_eq!(without(SKILL, &edit, &[0, 1, 5]), "# T\n- one\n- two\n- tres\n- four\n");
    }

    #[test]
    fn part_of_a_deletion_and_of_an_insertion() {
        let cut = edit(EditOp::Delete, "- two\n- three\n", "");
        assert_eq!(without(SKILL, &cut, &[1]), "# T\n- one\n- three\n- four\n");
        assert_eq!(without(SKILL, &cut, &[0, 1]), SKILL);
        assert_eq!(without(SKILL, &cut, &[]), "# T\n- one\n- four\n");
        let more = edit(EditOp::Append, "", "- five\n- six\n- seven");
        assert_eq!(without(SKILL, &more, &[1]), "# T\n- one\n- two\n- three\n- four\n\n- five\n- seven\n");
    }

    #[test]
    fn a_whole_document_is_chosen_by_line_against_the_current_one() {
        let region = "<!-- APPENDIX_START -->\n- note\n<!-- APPENDIX_END -->\n";
        let skill = format!("{SKILL}\n{region}");
        let candidate = edit(EditOp::Rewrite, "shorter", "# T\n- uno\n- two\n- four");
        let lines = EditLines::of(&candidate, &skill).unwrap();
        let mut taken = lines.all();
        let kept =
            lines.diff.lines.iter().position(|line| line.parts.iter().any(|part| part.1.contains("three")));
        taken[kept.unwrap()] = false;
        let Decision::Amend { content, .. } = lines.decision(&taken) else {
            panic!("a part is an amendment")
        };
        let made = full_rewrite(&[candidate.amended(&content)]).unwrap();
        let made = with_regions_of(&made.new_skill, &skill);
        assert_eq!(made, (format!("# T\n- uno\n- two\n- three\n- four\n\n{region}"), false));
    }

    #[test]
    fn text_written_by_hand_is_told_apart() {
        let edit = edit(EditOp::Append, "", "- five\n- six");
        let lines = EditLines::of(&edit, SKILL).unwrap();
        let amend = |content: &str| Decision::Amend { content: content.into(), reason: String::new() };
        assert_eq!(lines.choice(&amend("- six")), Choice::Lines(vec![false, true]));
        assert_eq!(lines.choice(&amend("- five\r\n- six\r\n")), Choice::Lines(vec![true, true]));
        assert_eq!(lines.choice(&amend("- sieben")), Choice::ByHand);
        assert_eq!(lines.choice(&amend("- six\n- five")), Choice::ByHand);
        assert_eq!(lines.choice(&Decision::Undecided), Choice::Undecided);
    }

    #[test]
    fn edits_without_lines_and_huge_ones_are_no_trouble() {
        assert!(EditLines::of(&edit(EditOp::Unknown, "", "x"), "").is_none());
        assert!(EditLines::of(&edit(EditOp::Append, "", " \n"), "").is_none());
        assert!(EditLines::of(&edit(EditOp::Replace, "\n\n", "x"), "").is_none());
        let long = edit(EditOp::Append, "", &"a\n".repeat(6_000));
        let lines = EditLines::of(&long, "").unwrap();
        let half = Decision::Amend { content: "a\n".repeat(3_000), reason: String::new() };
        assert_eq!(lines.choice(&half), Choice::ByHand);
    }

    proptest! {
        #[test]
        fn a_choice_is_read_back_from_the_text_it_makes(
            old in "([ab ]{0,2}\n){0,7}",
            new in "([ab ]{0,2}\r?\n){0,7}",
            op in 0usize..4,
            coins in prop::collection::vec(any::<bool>(), 20),
        ) {
            let op = [EditOp::Append, EditOp::Replace, EditOp::Delete, EditOp::Rewrite][op];
            let edit = edit(op, &old, &new);
            let Some(lines) = EditLines::of(&edit, &old) else { return Ok(()) };
            let mut taken = lines.all();
            for (place, coin) in lines.changed().collect::<Vec<_>>().into_iter().zip(coins) {
                taken[place] = coin;
            }
            let decision = lines.decision(&taken);
            let Choice::Lines(read) = lines.choice(&decision) else { panic!("no choice in {decision:?}") };
            // Lines that differ in their line breaks alone look the same to a reader.
            let seen = |taken: &[bool]| lines.text(taken).replace('\r', "");
            prop_assert_eq!(seen(&read), seen(&taken));
        }
    }
}

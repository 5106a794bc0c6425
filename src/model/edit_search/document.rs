//! A skill document as the edit search sees it: an introduction, worked examples, protected regions.
//! Must not measure or choose anything.

use crate::domain::{Edit, EditOp, Trajectory};

/// Nothing from the first of these on is touched; appended text goes before it.
const PROTECTED_STARTS: [&str; 2] = ["<!-- SLOW_UPDATE_START -->", "<!-- APPENDIX_START -->"];

/// A worked example in the form the target sees tasks: the task, a line end, the reference answer.
pub fn example_block(task: &str, gold: &str) -> String {
    format!("{}\n{}", task.trim(), gold.trim())
}

/// The prompt that the target would continue with the answer.
pub fn document_prompt(skill: &str, task: &str) -> String {
    format!("{skill}\n{task}\n")
}

/// What an example looks like in this task family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// First word of every task (`Text:`).
    first_word: String,
    /// Lines of a task and its answer.
    lines: usize,
}

impl Shape {
    /// `None` when the tasks have no form in common: then examples are known by their exact text alone.
    pub fn of(trajectories: &[Trajectory]) -> Option<Self> {
        let shape = |trajectory: &Trajectory| {
            let block = example_block(&trajectory.task, &trajectory.gold);
            let first_word = block.split_whitespace().next()?.to_owned();
            Some(Self { first_word, lines: block.lines().count() })
        };
        let first = shape(trajectories.first()?)?;
        trajectories.iter().all(|trajectory| shape(trajectory).as_ref() == Some(&first)).then_some(first)
    }

    fn fits(&self, block: &str) -> bool {
        block.split_whitespace().next() == Some(self.first_word.as_str())
            && block.lines().count() == self.lines
    }
}

/// The part of the skill before its protected regions.
pub fn body(skill: &str) -> &str {
    let end = PROTECTED_STARTS.iter().filter_map(|marker| skill.find(marker)).min();
    &skill[..end.unwrap_or(skill.len())]
}

/// Blocks of text between blank lines, trimmed.
pub fn blocks(skill: &str) -> impl Iterator<Item = &str> {
    body(skill).split("\n\n").map(str::trim).filter(|block| !block.is_empty())
}

/// The worked examples in the skill, in order.
pub fn examples<'a>(skill: &'a str, trajectories: &[Trajectory]) -> Vec<&'a str> {
    let shape = Shape::of(trajectories);
    let known: Vec<String> =
        trajectories.iter().map(|trajectory| example_block(&trajectory.task, &trajectory.gold)).collect();
    blocks(skill)
        .filter(|block| {
            shape.as_ref().is_some_and(|shape| shape.fits(block)) || known.iter().any(|known| known == block)
        })
        .collect()
}

/// The last line of the introduction: where sentences go.
pub fn introduction<'a>(skill: &'a str, examples: &[&str]) -> Option<&'a str> {
    let first = blocks(skill).next().filter(|block| !examples.contains(block))?;
    first.lines().last().map(str::trim).filter(|line| !line.is_empty())
}

pub fn append(content: &str) -> Edit {
    edit(EditOp::Append, String::new(), content.to_owned())
}

pub fn replace(target: &str, content: &str) -> Edit {
    edit(EditOp::Replace, target.to_owned(), content.to_owned())
}

/// Deletes a block with the blank line before it, so that the document stays clean. `None` when the first place where
/// the text occurs is not the block itself.
pub fn delete_block(skill: &str, block: &str) -> Option<Edit> {
    let before = format!("\n\n{block}");
    let target = if body(skill).contains(&before) { before } else { format!("{block}\n\n") };
    let start = skill.find(&target)?;
    let rest = &skill[start + target.len()..];
    let whole = target.ends_with('\n') || rest.trim_end_matches(' ').is_empty() || rest.starts_with('\n');
    whole.then(|| edit(EditOp::Delete, target, String::new()))
}

/// Deletes a line of its own.
pub fn delete_line(skill: &str, line: &str) -> Option<Edit> {
    let lines = format!("\n{}", body(skill));
    let after = format!("\n{line}\n");
    let first = lines.starts_with(&after);
    let target = if first { format!("{line}\n") } else { format!("\n{line}") };
    (lines.contains(&after) && skill.find(&target).is_some())
        .then(|| edit(EditOp::Delete, target, String::new()))
}

fn edit(op: EditOp, target: String, content: String) -> Edit {
    Edit {
        op,
        target,
        content,
        support_count: 1,
        source_type: crate::domain::SourceType::Failure,
        merge_level: None,
        priority: None,
        rationale: String::new(),
        motivated_by: Vec::new(),
    }
}

/// The skill with one of the edits above applied, as the update stage will apply it.
pub fn apply(skill: &str, edit: &Edit) -> String {
    match edit.op {
        EditOp::Append => {
            let body = body(skill);
            let rest = &skill[body.len()..];
            let gap = if rest.is_empty() { "\n" } else { "\n\n" };
            format!("{}\n\n{}{gap}{rest}", body.trim_end(), edit.content)
        }
        EditOp::Replace | EditOp::Delete => skill.replacen(&edit.target, &edit.content, 1),
        _ => skill.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::trajectory;
    use super::*;

    const SKILL: &str =
        "Name the city.\nOne word.\n\nText: Bo is in Rome.\nRome\n\nText: Al is in Roma.\nRoma\n";

    fn batch() -> Vec<Trajectory> {
        vec![trajectory("a", "Text: Ed is in Bern.", "Bern"), trajectory("b", "Text: Di is in Lyon.", "Lyon")]
    }

    #[test]
    fn finds_introduction_and_examples() {
        let found = examples(SKILL, &batch());
        assert_eq!(found, ["Text: Bo is in Rome.\nRome", "Text: Al is in Roma.\nRoma"]);
        assert_eq!(introduction(SKILL, &found), Some("One word."));
        assert_eq!(introduction("Text: Bo is in Rome.\nRome\n", &["Text: Bo is in Rome.\nRome"]), None);
        let odd = [trajectory("a", "Text: x", "1"), trajectory("b", "Word: y\nz", "2")];
        assert_eq!(examples("Intro.\n\nText: x\n1\n\nText: q\n3", &odd), ["Text: x\n1"]);
    }

    #[test]
    fn appending_and_deleting_an_example_gives_the_document_back() {
        let block = example_block("Text: Ed is in Bern.\n", " Bern");
        let longer = apply(SKILL, &append(&block));
        assert_eq!(longer, format!("{SKILL}\nText: Ed is in Bern.\nBern\n"));
        assert_eq!(apply(&longer, &delete_block(&longer, &block).unwrap()), SKILL);
    }

    #[test]
    fn a_block_is_deleted_only_where_it_stands_alone() {
        let first = "Text: Bo is in Rome.\nRome";
        let shorter = apply(SKILL, &delete_block(SKILL, first).unwrap());
        assert_eq!(shorter, "Name the city.\nOne word.\n\nText: Al is in Roma.\nRoma\n");
        // The first occurrence is the head of another block.
        let tricky = "A.\n\nText: x\nParisian\n\nText: x\nParis\n";
        assert_eq!(delete_block(tricky, "Text: x\nParis"), None);
        let leading = "Text: x\n1\n\nText: y\n2\n";
        assert_eq!(apply(leading, &delete_block(leading, "Text: x\n1").unwrap()), "Text: y\n2\n");
    }

    #[test]
    fn a_sentence_is_deleted_as_a_whole_line() {
        let delete = delete_line(SKILL, "One word.").unwrap();
        assert!(apply(SKILL, &delete).starts_with("Name the city.\n\nText: Bo"));
        let delete = delete_line(SKILL, "Name the city.").unwrap();
        assert!(apply(SKILL, &delete).starts_with("One word.\n\nText: Bo"));
        assert_eq!(delete_line(SKILL, "One"), None);
    }

    #[test]
    fn protected_regions_stay_last_and_untouched() {
        let skill = "Intro.\n\n<!-- APPENDIX_START -->\nText: x\n1\n<!-- APPENDIX_END -->\n";
        assert_eq!(blocks(skill).collect::<Vec<_>>(), ["Intro."]);
        let longer = apply(skill, &append("Text: y\n2"));
        assert!(longer.starts_with("Intro.\n\nText: y\n2\n\n<!-- APPENDIX_START -->\n"), "{longer}");
        assert_eq!(delete_line(skill, "Text: x"), None);
    }
}

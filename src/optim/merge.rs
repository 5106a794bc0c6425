//! The hierarchical merge of patches as a state machine that the engine drives. Owns which patches are merged
//! together and what happens to a failed merge; must not call a model.

use crate::domain::{Edit, Patch};

/// One merge call: at least two patches, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeTask {
    /// Counts from 1.
    pub level: u32,
    /// Position among the chunks of its level; stable, for effect paths.
    pub chunk: usize,
    pub patches: Vec<Patch>,
}

/// Merges the patches of one source level by level: chunks of `max(2, batch)` in order, a chunk of one passes through,
/// until one patch is left.
///
/// Drive it with `while !plan.next_level().is_empty()`: run the tasks in any order, then [`MergePlan::complete`].
#[derive(Clone, Debug, PartialEq)]
pub struct MergePlan {
    batch: usize,
    level: u32,
    patches: Vec<Patch>,
}

impl MergePlan {
    pub fn new(patches: Vec<Patch>, batch: usize) -> Self {
        Self { batch: batch.max(2), level: 1, patches }
    }

    /// The calls of the current level; empty when nothing is left to merge.
    pub fn next_level(&self) -> Vec<MergeTask> {
        if self.patches.len() < 2 {
            return Vec::new();
        }
        let chunks = self.patches.chunks(self.batch).enumerate();
        chunks
            .filter(|(_, patches)| patches.len() > 1)
            .map(|(chunk, patches)| MergeTask { level: self.level, chunk, patches: patches.to_vec() })
            .collect()
    }

    /// Takes the results of [`MergePlan::next_level`]'s tasks, in their order, and goes to the next level. `None`: that
    /// merge failed and its patches are concatenated, so that no edit is lost.
    pub fn complete(&mut self, merged: impl IntoIterator<Item = Option<Patch>>) {
        let mut merged = merged.into_iter();
        let next = self.patches.chunks(self.batch).map(|chunk| match chunk {
            [single] => single.clone(),
            several => merged.next().flatten().unwrap_or_else(|| concatenated(several, self.level)),
        });
        self.patches = next.collect();
        self.level += 1;
    }

    /// The merged patch; of what is left when stopped early, the concatenation.
    pub fn finish(self) -> Patch {
        match self.patches.as_slice() {
            [] => Patch { reasoning: "no patches".into(), edits: Vec::new() },
            [single] => single.clone(),
            several => concatenated(several, self.level),
        }
    }
}

fn concatenated(patches: &[Patch], level: u32) -> Patch {
    let with_level = |edit: &Edit| Edit { merge_level: edit.merge_level.or(Some(level)), ..edit.clone() };
    Patch {
        reasoning: "fallback concatenation".into(),
        edits: patches.iter().flat_map(|patch| &patch.edits).map(with_level).collect(),
    }
}

/// How the merged failure patch and the merged success patch become one.
#[derive(Clone, Debug, PartialEq)]
pub enum FinalMerge {
    /// At most one of them has edits: no call.
    Done(Patch),
    /// One call with [failure, success].
    Ask([Patch; 2]),
}

pub fn final_merge(failure: Patch, success: Patch) -> FinalMerge {
    match (failure.edits.is_empty(), success.edits.is_empty()) {
        (true, true) => {
            let reasoning = "no updates from either group".into();
            FinalMerge::Done(Patch { reasoning, edits: Vec::new() })
        }
        (false, true) => FinalMerge::Done(failure),
        (true, false) => FinalMerge::Done(success),
        (false, false) => FinalMerge::Ask([failure, success]),
    }
}

/// All edits, failures first: what is left when the final merge failed.
pub fn final_fallback([failure, success]: [Patch; 2]) -> Patch {
    let edits = failure.edits.into_iter().chain(success.edits).collect();
    Patch { reasoning: "fallback: failure first, then success".into(), edits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(name: &str) -> Patch {
        let edit = serde_json::json!({"op": "append", "content": name});
        Patch { reasoning: String::new(), edits: vec![serde_json::from_value(edit).unwrap()] }
    }

    fn contents(patch: &Patch) -> Vec<&str> {
        patch.edits.iter().map(|edit| edit.content.as_str()).collect()
    }

    #[test]
    fn a_failed_or_missing_result_keeps_the_edits_of_its_chunk() {
        let mut plan = MergePlan::new(["a", "b", "c", "d", "e"].map(patch).to_vec(), 2);
        assert_eq!(plan.next_level().iter().map(|task| task.chunk).collect::<Vec<_>>(), [0, 1]);
        plan.complete([None, Some(patch("cd"))]);
        assert_eq!(contents(&plan.clone().finish()), ["a", "b", "cd", "e"]);
        assert_eq!(plan.next_level()[0].level, 2);
        plan.complete([]);
        assert_eq!(plan.next_level()[0].patches.len(), 2);
        plan.complete([Some(patch("all"))]);
        assert!(plan.next_level().is_empty());
        assert_eq!(contents(&plan.finish()), ["all"]);
    }

    #[test]
    fn an_edit_that_was_merged_before_keeps_its_level() {
        let mut old = patch("a");
        old.edits[0].merge_level = Some(9);
        let mut plan = MergePlan::new(vec![old, patch("b")], 8);
        plan.complete([None]);
        let levels: Vec<_> = plan.finish().edits.iter().map(|edit| edit.merge_level).collect();
        assert_eq!(levels, [Some(9), Some(1)]);
    }
}

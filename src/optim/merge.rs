//! The hierarchical merge of patches as a state machine that the engine drives. Owns which patches are merged
//! together, how a merge reply is read and what happens to a failed merge; must not call a model.

use serde_json::Value;

use super::proposal::proposal;
use super::reply::{ReplyFault, list, object, source, text, whole_number};
use crate::domain::{Edit, Patch, SourceType, UpdateMode};

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

/// Reads a merge reply. `level` is stamped on every proposal (`None` for the final merge). One equal to one of `merged`
/// inherits what the reply leaves out; any other is motivated by the items of all of them. A single malformed proposal
/// refuses the reply, and so does an empty list: the unmerged proposals are worth more than a gap.
pub fn merge_reply(
    reply: &str,
    mode: UpdateMode,
    level: Option<u32>,
    origin: Option<SourceType>,
    merged: &[Patch],
) -> Result<Patch, ReplyFault> {
    let reply = object(reply)?;
    let items = list(&reply, mode.items_key())?;
    let parents: Vec<&Edit> = merged.iter().flat_map(|patch| &patch.edits).collect();
    if items.is_empty() && !parents.is_empty() {
        return Err(ReplyFault::EmptyMerge);
    }
    let mut edits = Vec::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        let bad = |reason| ReplyFault::BadItem { noun: mode.noun(), number: position + 1, reason };
        let mut edit = proposal(item, mode).map_err(bad)?;
        inherit(&mut edit, item, &parents);
        if let Some(origin) = origin {
            edit.source_type = origin;
        }
        if level.is_some() {
            edit.merge_level = level;
        }
        edits.push(edit);
    }
    Ok(Patch { reasoning: text(&reply, "reasoning"), edits })
}

fn inherit(edit: &mut Edit, item: &Value, parents: &[&Edit]) {
    let same = |parent: &&&Edit| {
        parent.op == edit.op && parent.target == edit.target && parent.content.trim() == edit.content.trim()
    };
    let twin = parents.iter().find(same).copied();
    let known = |id: &String| parents.iter().any(|parent| parent.motivated_by.contains(id));
    edit.motivated_by.retain(known);
    if edit.motivated_by.is_empty() {
        let origins = twin.map_or_else(|| parents.to_vec(), |twin| vec![twin]);
        for id in origins.into_iter().flat_map(|parent| &parent.motivated_by) {
            if !edit.motivated_by.contains(id) {
                edit.motivated_by.push(id.clone());
            }
        }
    }
    let Some(twin) = twin else { return };
    if edit.rationale.is_empty() {
        edit.rationale.clone_from(&twin.rationale);
    }
    edit.priority = edit.priority.or(twin.priority);
    edit.merge_level = twin.merge_level;
    if item.get("support_count").and_then(whole_number).is_none() {
        edit.support_count = twin.support_count;
    }
    if item.get("source_type").and_then(source).is_none() {
        edit.source_type = twin.source_type;
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
    use crate::domain::EditOp;
    use serde_json::json;

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

    fn parents() -> Vec<Patch> {
        let edit = |content: &str, support_count, source_type, items: &[&str]| Edit {
            priority: None,
            op: EditOp::Append,
            target: String::new(),
            content: content.into(),
            support_count,
            source_type,
            merge_level: None,
            rationale: format!("for {content}"),
            motivated_by: items.iter().map(|item| (*item).to_owned()).collect(),
        };
        let patch = |edit| Patch { reasoning: String::new(), edits: vec![edit] };
        vec![
            patch(edit("a", 3, SourceType::Failure, &["t1", "t2"])),
            patch(edit("b", 2, SourceType::Success, &["t2", "t3"])),
        ]
    }

    fn merge(reply: Value, level: Option<u32>, source: Option<SourceType>) -> Result<Patch, ReplyFault> {
        merge_reply(&reply.to_string(), UpdateMode::Patch, level, source, &parents())
    }

    #[test]
    fn an_unchanged_edit_keeps_where_it_comes_from() {
        let merged = merge(json!({"edits": [{"op": "append", "content": " b\n"}]}), None, None).unwrap();
        let edit = &merged.edits[0];
        assert_eq!((edit.support_count, edit.source_type, edit.merge_level), (2, SourceType::Success, None));
        assert_eq!((edit.motivated_by.join(" "), edit.rationale.as_str()), ("t2 t3".into(), "for b"));
    }

    #[test]
    fn a_new_edit_is_motivated_by_all_that_were_merged() {
        let reply =
            json!({"edits": [{"op": "append", "content": "ab", "support_count": 5, "merge_level": 7}]});
        let merged = merge(reply, Some(1), Some(SourceType::Failure)).unwrap();
        let edit = &merged.edits[0];
        assert_eq!((edit.support_count, edit.merge_level), (5, Some(1)));
        assert_eq!(edit.motivated_by, ["t1", "t2", "t3"]);
        let reply = json!({"edits": [{"op": "append", "content": "ab", "motivated_by": ["t3", "made up"]}]});
        assert_eq!(merge(reply, None, None).unwrap().edits[0].motivated_by, ["t3"]);
    }

    #[test]
    fn the_final_merge_leaves_an_edits_level_as_it_is() {
        let mut merged = parents();
        merged[0].edits[0].merge_level = Some(2);
        let reply = json!({"edits": [{"op": "append", "content": "a"}, {"op": "append", "content": "b"},
            {"op": "append", "content": "new", "merge_level": 7}]});
        let merged = merge_reply(&reply.to_string(), UpdateMode::Patch, None, None, &merged).unwrap();
        let levels: Vec<_> = merged.edits.iter().map(|edit| edit.merge_level).collect();
        assert_eq!(levels, [Some(2), None, None]);
    }

    #[test]
    fn a_merge_reply_that_loses_or_breaks_edits_is_refused() {
        assert_eq!(merge(json!({"edits": []}), Some(1), None), Err(ReplyFault::EmptyMerge));
        let broken = merge(json!({"edits": [{"op": "append", "content": "a"}, "b"]}), Some(1), None);
        let reason = "a text instead of an object".to_owned();
        assert_eq!(broken, Err(ReplyFault::BadItem { noun: "edit", number: 2, reason }));
        assert_eq!(merge(json!({"reasoning": "x"}), None, None), Err(ReplyFault::Missing { key: "edits" }));
        assert_eq!(merge_reply("{\"edits\": []}", UpdateMode::Patch, None, None, &[]), Ok(Patch::default()));
    }
}

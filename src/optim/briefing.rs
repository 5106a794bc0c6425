//! The user message of an optimizer call: the material of a [`Brief`] under headings. Owns layout and sizes; what a
//! model is to copy exactly (the skill, proposals) is never cut.

use serde_json::Value;

use super::material::{cut, one_line, quoted, tagged};
use super::memory::memory_text;
use super::meta_reflect::meta_reflect_mode;
use super::pairs::pair_counts;
use super::trajectory::{Limits, trace_text, trajectory_text};
use crate::domain::{
    Brief, ComparisonPair, PairCategory, PairSide, Patch, SourceType, StepMemory, Trajectory, UpdateMode,
};

/// Writes user messages. `max_trajectory_chars` bounds what is shown of one conversation, and with it the rest.
pub struct Briefing {
    max_trajectory_chars: usize,
    limits: Limits,
}

impl Briefing {
    pub fn new(max_trajectory_chars: usize) -> Self {
        Self { max_trajectory_chars, limits: Limits::new(max_trajectory_chars) }
    }

    pub fn text(&self, brief: &Brief) -> String {
        let parts = match brief {
            Brief::Analyze { mode, skill, budget, trajectories, memory, meta_skill, .. } => {
                let mut parts = vec![skill_part(skill), wanted(*mode, *budget)];
                parts.extend(memory_part(memory));
                parts.extend(meta_skill_part(meta_skill));
                parts.extend(self.trajectories(trajectories));
                parts
            }
            Brief::Merge { mode, source, level, skill, patches, meta_skill } => {
                let mut parts: Vec<String> = meta_skill_part(meta_skill).into_iter().collect();
                parts.push(skill_part(skill));
                parts.extend(patches_parts(*mode, *source, *level, patches));
                parts
            }
            Brief::Rank { mode, skill, patch, budget, meta_skill } => {
                let mut parts: Vec<String> = meta_skill_part(meta_skill).into_iter().collect();
                parts.extend([skill_part(skill), proposals(*mode, patch), wanted(*mode, *budget)]);
                parts
            }
            Brief::LearningRate {
                mode,
                skill,
                patch,
                rollout_n,
                rollout_hard,
                rollout_soft,
                memory,
                meta_skill,
            } => {
                let batch = format!(
                    "## The batch of this step\n\n{rollout_n} attempts, mean score hard {rollout_hard:.6}, soft \
                     {rollout_soft:.6}."
                );
                let mut parts = vec![skill_part(skill), batch, proposals(*mode, patch)];
                parts.extend(memory_part(memory));
                parts.extend(meta_skill_part(meta_skill));
                parts
            }
            Brief::Rewrite { skill, suggestions, memory } => {
                let mode = UpdateMode::RewriteFromSuggestions;
                let mut parts = vec![skill_part(skill)];
                parts.push(format!("## Accepted suggestions\n\n{}", payload(suggestions, mode)));
                parts.extend(memory_part(memory));
                parts
            }
            Brief::SlowUpdate { prev_skill, skill, previous_guidance, pairs } => {
                let guidance = given("## Present guidance", "guidance", previous_guidance, "(there is none)");
                self.comparison(prev_skill, skill, guidance, pairs)
            }
            Brief::MetaSkill { prev_skill, skill, previous, pairs } => {
                let memory = given("## Previous memory", "memory", previous, "(there is none)");
                self.comparison(prev_skill, skill, memory, pairs)
            }
            Brief::MetaReflect { mode, skill, budget, previous_summary, history } => vec![
                given(
                    "## Summary of the epoch before",
                    "summary",
                    previous_summary,
                    "(this is the first epoch)",
                ),
                skill_part(skill),
                wanted(meta_reflect_mode(*mode), *budget),
                given("## The steps of this epoch", "history", history, "(there were none)"),
            ],
            Brief::Probe { skill, trajectories, memory, meta_skill } => {
                let mut parts = vec![skill_part(skill)];
                parts.extend(memory_part(memory));
                parts.extend(meta_skill_part(meta_skill));
                parts.extend(self.trajectories(trajectories));
                if Self::shows_trace(trajectories) {
                    parts.extend(trajectories.iter().map(trace));
                }
                parts
            }
            Brief::Consolidate { notes } => {
                let lines: Vec<String> =
                    notes.iter().map(|note| format!("- {}", one_line(note, usize::MAX))).collect();
                vec![given(
                    &format!("## Notes ({})", notes.len()),
                    "notes",
                    &lines.join("\n"),
                    "(there are none)",
                )]
            }
        };
        parts.join("\n\n")
    }

    /// A single attempt with a trace can be sent back into it.
    pub fn shows_trace(trajectories: &[Trajectory]) -> bool {
        matches!(trajectories, [only] if !only.turns.is_empty())
    }

    fn trajectories(&self, trajectories: &[Trajectory]) -> Vec<String> {
        let shown = trajectories.iter().enumerate();
        let shown = shown.map(|(i, shown)| trajectory_text(i + 1, shown, self.max_trajectory_chars));
        std::iter::once(format!("## Trajectories ({})", trajectories.len())).chain(shown).collect()
    }

    fn comparison(
        &self,
        prev_skill: &str,
        skill: &str,
        present: String,
        pairs: &[ComparisonPair],
    ) -> Vec<String> {
        let before = cut(prev_skill.trim_end(), self.limits.of(6_000));
        let mut parts = vec![
            given("## Skill document before the epoch", "previous_skill", &before, "(it was empty)"),
            skill_part(skill),
            present,
        ];
        let counts = pair_counts(pairs).map(|(category, count)| format!("{} {count}", category.name()));
        parts.push(format!(
            "## The same training tasks before and after ({})\n\n{}.",
            pairs.len(),
            counts.join(", ")
        ));
        for (category, heading) in [
            (PairCategory::Regressed, "Worse: succeeded before, fail now"),
            (PairCategory::PersistentFail, "Fail as before"),
            (PairCategory::Improved, "Better: failed before, succeed now"),
            (PairCategory::StableSuccess, "Succeed as before"),
        ] {
            let mut pairs = pairs.iter().filter(|pair| pair.category == category).peekable();
            if pairs.peek().is_some() {
                parts.push(format!("### {heading}"));
                parts.extend(pairs.map(|pair| self.pair(pair)));
            }
        }
        parts
    }

    fn pair(&self, pair: &ComparisonPair) -> String {
        let side = |name: &str, side: &PairSide| {
            let outcome = if side.hard == 1 { "PASS" } else { "FAIL" };
            let answer = quoted(&side.predicted_answer, self.limits.of(200));
            let reason = match side.fail_reason.trim() {
                "" => String::new(),
                reason => format!(", reason {}", quoted(reason, self.limits.of(200))),
            };
            format!("{name}: {outcome}, soft {:.2}, answer {answer}{reason}", side.soft)
        };
        let mut parts = vec![
            format!("#### Task (id={})", one_line(&pair.id, self.limits.of(1_000))),
            tagged("task", &cut(pair.task.trim(), self.limits.of(300))),
            format!("{}\n{}", side("Before", &pair.prev), side("Now", &pair.curr)),
        ];
        // What works both times needs no explanation.
        if pair.category != PairCategory::StableSuccess {
            for (tag, text) in [("before", &pair.prev_trajectory), ("now", &pair.curr_trajectory)] {
                if !text.trim().is_empty() {
                    parts.push(tagged(tag, &cut(text.trim(), self.limits.of(3_000))));
                }
            }
        }
        parts.join("\n\n")
    }
}

fn trace(shown: &Trajectory) -> String {
    format!("## Steps of its trace\n\n{}", tagged("trace", &trace_text(&shown.turns)))
}

fn given(heading: &str, tag: &str, content: &str, without: &str) -> String {
    let content = match content.trim() {
        "" => without.to_owned(),
        content => tagged(tag, content),
    };
    format!("{heading}\n\n{content}")
}

fn skill_part(skill: &str) -> String {
    let skill = if skill.trim().is_empty() { "(the document is empty)" } else { skill.trim_end() };
    format!("## Current skill document\n\n{}", tagged("skill", skill))
}

fn wanted(mode: UpdateMode, budget: usize) -> String {
    let noun = mode.noun();
    match (mode, budget) {
        (UpdateMode::FullRewriteMinibatch, _) => {
            "## What is wanted\n\nOne document to replace the current one.".into()
        }
        (_, 1) => format!("## Budget\n\nAt most 1 {noun}."),
        (_, budget) => format!("## Budget\n\nAt most {budget} {noun}s."),
    }
}

fn memory_part(memory: &[StepMemory]) -> Option<String> {
    let memory = memory_text(memory);
    (!memory.is_empty()).then(|| {
        format!(
            "## Earlier steps of this epoch\n\nDo not repeat a change that was rejected or refused, and answer a \
             reviewer's reason.\n\n{}",
            tagged("steps", &memory)
        )
    })
}

fn meta_skill_part(meta_skill: &str) -> Option<String> {
    (!meta_skill.trim().is_empty()).then(|| {
        format!(
            "## Memory of the epoch before\n\nAdvice from earlier revisions. The evidence below and above comes first; \
             follow the advice only where the evidence is ambiguous.\n\n{}",
            tagged("memory", meta_skill.trim())
        )
    })
}

fn patches_parts(mode: UpdateMode, source: Option<SourceType>, level: u32, patches: &[Patch]) -> Vec<String> {
    let mut parts = vec![match source {
        Some(_) => format!("## Patches to merge ({}, merge level {level})", patches.len()),
        None => "## Patches to merge".to_owned(),
    }];
    for (i, patch) in patches.iter().enumerate() {
        let label = match (source, i) {
            (Some(_), _) => format!("### Patch {}", i + 1),
            (None, 0) => "### From failures (high priority)".to_owned(),
            (None, _) => "### From successes (lower priority)".to_owned(),
        };
        parts.push(format!("{label}\n\n{}", payload(patch, mode)));
    }
    parts
}

/// `\/`, which an inert closing tag becomes, is `/` to a JSON reader: nothing is lost for who copies.
fn payload(patch: &Patch, mode: UpdateMode) -> String {
    tagged("patch", &pretty(&patch.as_payload(mode)))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// One proposal a line, numbered from 0.
fn proposals(mode: UpdateMode, patch: &Patch) -> String {
    let rows = patch.edits.iter().enumerate();
    let rows: Vec<String> = rows.map(|(i, edit)| format!("{i}: {}", edit.as_item(mode))).collect();
    let heading = format!("## Proposed {}s ({}, numbered from 0)", mode.noun(), rows.len());
    let rows =
        if rows.is_empty() { "(there are none)".into() } else { tagged("proposals", &rows.join("\n")) };
    format!("{heading}\n\n{rows}")
}

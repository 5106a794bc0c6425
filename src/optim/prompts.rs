//! Builds the optimizer's prompts from briefs: a fixed system prompt per stage (`assets/prompts/`) and a user message
//! with the material. Owns their layout and size limits; sees training material only, by the type of [`Brief`].

use super::memory::memory_text;
use crate::domain::{Brief, Message, Patch, Prompt, SourceType, Speaker, StepMemory, Trajectory};

const ANALYST_FAILURE: &str = include_str!("../../assets/prompts/analyst_failure.md");
const ANALYST_SUCCESS: &str = include_str!("../../assets/prompts/analyst_success.md");
const MERGE_FAILURE: &str = include_str!("../../assets/prompts/merge_failure.md");
const MERGE_SUCCESS: &str = include_str!("../../assets/prompts/merge_success.md");
const MERGE_FINAL: &str = include_str!("../../assets/prompts/merge_final.md");
const RANKING: &str = include_str!("../../assets/prompts/ranking.md");
/// Operations, exact targets and protected regions; closes every prompt that asks for edits.
const EDIT_RULES: &str = include_str!("../../assets/prompts/edit_rules.md");

/// Longest text of one field, in characters; what is cut goes from the middle, and the prompt says how much.
const PROMPT_LIMIT: usize = 3_000;
const TASK_LIMIT: usize = 4_000;
const REPLY_LIMIT: usize = 12_000;
const LINE_LIMIT: usize = 1_000;

/// The system and user message of an analyst, merge or ranking call.
pub fn optimizer_prompt(brief: &Brief) -> Prompt {
    let (system, user) = match brief {
        Brief::Analyze { source, skill, budget, trajectories, memory } => {
            let system = match source {
                SourceType::Failure => ANALYST_FAILURE,
                SourceType::Success => ANALYST_SUCCESS,
            };
            (with_rules(system), analysis(skill, *budget, trajectories, memory))
        }
        Brief::Merge { source, level, skill, patches } => {
            let system = match source {
                Some(SourceType::Failure) => MERGE_FAILURE,
                Some(SourceType::Success) => MERGE_SUCCESS,
                None => MERGE_FINAL,
            };
            (with_rules(system), merge(*source, *level, skill, patches))
        }
        Brief::Rank { skill, patch, budget } => {
            (RANKING.trim_end().to_owned(), ranking(skill, patch, *budget))
        }
    };
    Prompt::Chat(vec![Message::new(Speaker::System, system), Message::new(Speaker::User, user)])
}

fn with_rules(system: &str) -> String {
    format!("{}\n\n{}", system.trim_end(), EDIT_RULES.trim_end())
}

fn analysis(skill: &str, budget: usize, trajectories: &[Trajectory], memory: &[StepMemory]) -> String {
    let mut parts = vec![skill_part(skill), budget_part(budget)];
    let memory = memory_text(memory);
    if !memory.is_empty() {
        parts.push(format!(
            "## Earlier steps of this epoch\n\nDo not repeat an edit that was rejected or refused, and answer a \
             reviewer's reason.\n\n{memory}"
        ));
    }
    parts.push(format!("## Trajectories ({})", trajectories.len()));
    parts.extend(trajectories.iter().enumerate().map(|(i, shown)| trajectory(i + 1, shown)));
    parts.join("\n\n")
}

fn trajectory(number: usize, shown: &Trajectory) -> String {
    let mut text = format!("### Trajectory {number} (id={})\n", cut(&shown.item, LINE_LIMIT));
    let mut line = |name: &str, value: &str| {
        if !value.trim().is_empty() {
            text.push_str(&format!("\n{name}: {}", cut(value.trim(), LINE_LIMIT)));
        }
    };
    line("Task type", &shown.task_type);
    line("Score", &format!("hard {}, soft {}", shown.hard, shown.soft));
    line("Scorer's reason", &shown.reason);
    line("Reference answer", &shown.gold);
    line("Extracted answer", &shown.answer);
    let blocks = [
        ("task", &shown.task, TASK_LIMIT),
        ("system_prompt", &shown.system_prompt, PROMPT_LIMIT),
        // The user prompt usually is the task; then it would say nothing new.
        ("user_prompt", &shown.user_prompt, if shown.user_prompt == shown.task { 0 } else { PROMPT_LIMIT }),
        ("reply", &shown.reply, REPLY_LIMIT),
    ];
    for (tag, content, limit) in blocks {
        if limit > 0 && !content.trim().is_empty() {
            text.push_str(&format!("\n\n{}", tagged(tag, &cut(content.trim(), limit))));
        }
    }
    text
}

fn merge(source: Option<SourceType>, level: u32, skill: &str, patches: &[Patch]) -> String {
    let heading = match source {
        Some(_) => format!("## Patches to merge ({}, merge level {level})", patches.len()),
        None => "## Patches to merge".to_owned(),
    };
    let mut parts = vec![skill_part(skill), heading];
    for (i, patch) in patches.iter().enumerate() {
        let label = match (source, i) {
            (Some(_), _) => format!("### Patch {}", i + 1),
            (None, 0) => "### From failures (high priority)".to_owned(),
            (None, _) => "### From successes (lower priority)".to_owned(),
        };
        parts.push(format!("{label}\n\n{}", json(patch)));
    }
    parts.join("\n\n")
}

fn ranking(skill: &str, patch: &Patch, budget: usize) -> String {
    let rows = patch.edits.iter().enumerate();
    let rows: Vec<String> =
        rows.map(|(i, edit)| format!("{i}: {}", serde_json::to_string(edit).unwrap_or_default())).collect();
    let heading = format!("## Proposed edits ({}, numbered from 0)", rows.len());
    [skill_part(skill), format!("{heading}\n\n{}", rows.join("\n")), budget_part(budget)].join("\n\n")
}

fn skill_part(skill: &str) -> String {
    let skill = if skill.trim().is_empty() { "(the document is empty)" } else { skill.trim_end() };
    format!("## Current skill document\n\n{}", tagged("skill", skill))
}

fn budget_part(budget: usize) -> String {
    let noun = if budget == 1 { "edit" } else { "edits" };
    format!("## Edit budget\n\nAt most {budget} {noun}.")
}

fn json(patch: &Patch) -> String {
    serde_json::to_string_pretty(patch).unwrap_or_default()
}

fn tagged(tag: &str, content: &str) -> String {
    format!("<{tag}>\n{content}\n</{tag}>")
}

/// Head and tail of a text longer than `limit` characters.
fn cut(text: &str, limit: usize) -> String {
    let total = text.chars().count();
    if total <= limit {
        return text.to_owned();
    }
    let head: String = text.chars().take(limit / 2).collect();
    let tail: String = text.chars().skip(total - limit / 2).collect();
    format!("{head}\n[… {} characters cut …]\n{tail}", total - limit / 2 * 2)
}

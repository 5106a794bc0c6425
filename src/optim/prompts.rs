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
        Brief::Analyze { source, skill, budget, trajectories, memory, .. } => {
            let system = match source {
                SourceType::Failure => ANALYST_FAILURE,
                SourceType::Success => ANALYST_SUCCESS,
            };
            (with_rules(system), analysis(skill, *budget, trajectories, memory))
        }
        Brief::Merge { source, level, skill, patches, .. } => {
            let system = match source {
                Some(SourceType::Failure) => MERGE_FAILURE,
                Some(SourceType::Success) => MERGE_SUCCESS,
                None => MERGE_FINAL,
            };
            (with_rules(system), merge(*source, *level, skill, patches))
        }
        Brief::Rank { skill, patch, budget, .. } => {
            (RANKING.trim_end().to_owned(), ranking(skill, patch, *budget))
        }
        Brief::LearningRate { .. }
        | Brief::Rewrite { .. }
        | Brief::SlowUpdate { .. }
        | Brief::MetaSkill { .. }
        | Brief::MetaReflect { .. }
        | Brief::Probe { .. }
        | Brief::Consolidate { .. } => (String::new(), String::new()),
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

#[cfg(test)]
mod tests {
    use super::super::memory::reviewer_refusal;
    use super::super::ranked_edits;
    use super::super::region::MARKERS;
    use super::super::{analyst_reply, merge_reply};
    use super::*;
    use crate::domain::Edit;

    fn messages(brief: &Brief) -> (String, String) {
        let Prompt::Chat(messages) = optimizer_prompt(brief) else { panic!("not a chat") };
        let [system, user] = messages.as_slice() else { panic!("{messages:?}") };
        assert_eq!((system.role, user.role), (Speaker::System, Speaker::User));
        (system.content.clone(), user.content.clone())
    }

    fn shown(item: &str, reply: &str) -> Trajectory {
        Trajectory {
            reference: String::new(),
            turns: Vec::new(),
            item: item.into(),
            task_type: "city".into(),
            task: format!("Text: {item} is in Rome."),
            gold: "Rome".into(),
            system_prompt: String::new(),
            user_prompt: format!("Text: {item} is in Rome."),
            reply: reply.into(),
            answer: "Paris".into(),
            hard: 0.0,
            soft: 0.25,
            reason: "wrong answer: Paris".into(),
        }
    }

    fn analyze(trajectories: Vec<Trajectory>, memory: Vec<StepMemory>) -> Brief {
        let (source, skill) = (SourceType::Failure, "# Skill\n\n- a\n".into());
        Brief::Analyze {
            appendix: false,
            meta_skill: String::new(),
            mode: Default::default(),
            source,
            skill,
            budget: 3,
            trajectories,
            memory,
        }
    }

    fn edit(content: &str) -> Edit {
        serde_json::from_value(serde_json::json!({"op": "append", "content": content})).unwrap()
    }

    fn every_brief() -> Vec<Brief> {
        let patch = Patch { reasoning: "r".into(), edits: vec![edit("x"), edit("y")] };
        let (skill, level, patches) = (String::new(), 1, vec![patch.clone(), patch.clone()]);
        let merge = |source| Brief::Merge {
            meta_skill: String::new(),
            mode: Default::default(),
            source,
            level,
            skill: skill.clone(),
            patches: patches.clone(),
        };
        let success = Brief::Analyze {
            appendix: false,
            meta_skill: String::new(),
            mode: Default::default(),
            source: SourceType::Success,
            skill: skill.clone(),
            budget: 1,
            trajectories: Vec::new(),
            memory: Vec::new(),
        };
        vec![
            analyze(vec![shown("Bo", "Paris")], Vec::new()),
            success,
            merge(Some(SourceType::Failure)),
            merge(Some(SourceType::Success)),
            merge(None),
            Brief::Rank {
                meta_skill: String::new(),
                mode: Default::default(),
                skill: skill.clone(),
                patch,
                budget: 1,
            },
        ]
    }

    #[test]
    fn every_system_prompt_names_the_markers_and_a_contract_that_its_reader_understands() {
        let mut systems = std::collections::HashSet::new();
        for brief in every_brief() {
            let (system, _) = messages(&brief);
            for (start, end) in MARKERS {
                assert!(system.contains(start) && system.contains(end), "{system}");
            }
            // The contract's example, made JSON.
            let from = system.find("    {\"").unwrap();
            let to = from + system[from..].find("\n\n").unwrap_or(system.len() - from);
            let example = system[from..to]
                .replace("[edit, …]", r#"[{"op": "append", "content": "c"}]"#)
                .replace("number of trajectories you read", "1");
            let result = match &brief {
                Brief::Analyze { mode, source, budget, .. } => {
                    analyst_reply(&example, *mode, *source, *budget, &[]).map(|reply| reply.patch)
                }
                Brief::Merge { mode, source, patches, .. } => {
                    merge_reply(&example, *mode, None, *source, patches)
                }
                Brief::Rank { patch, .. } => {
                    ranked_edits(patch, 1, &example).map(|selection| selection.patch)
                }
                _ => continue,
            };
            assert_eq!(result.map(|patch| patch.edits.len()), Ok(1), "{example}");
            systems.insert(system);
        }
        assert_eq!(systems.len(), 6);
    }

    #[test]
    fn an_analyst_sees_skill_budget_and_trajectories_in_order() {
        let (_, user) = messages(&analyze(vec![shown("Bo", "Paris?"), shown("Al", "")], Vec::new()));
        let wanted = "## Current skill document\n\n<skill>\n# Skill\n\n- a\n</skill>\n\n## Edit budget\n\nAt most 3 \
             edits.\n\n## Trajectories (2)\n\n### Trajectory 1 (id=Bo)\n\nTask type: city\nScore: hard 0, soft 0.25\n\
             Scorer's reason: wrong answer: Paris\nReference answer: Rome\nExtracted answer: Paris\n\n<task>\n\
             Text: Bo is in Rome.\n</task>\n\n<reply>\nParis?\n</reply>\n\n### Trajectory 2 (id=Al)";
        assert!(user.starts_with(wanted), "{user}");
        assert!(!user.contains("Earlier steps") && !user.contains("<user_prompt>"));
    }

    #[test]
    fn the_next_reflection_contains_the_reviewers_reason() {
        let memory = StepMemory {
            step: 1,
            action: "reject".into(),
            n_total: 4,
            n_fail: 2,
            failure_patterns: vec![("wrong answer".into(), 2, vec!["Bo".into(), "Al".into()])],
            scores: Some((0.5, 0.25)),
            failed_attempts: vec![reviewer_refusal(&edit("- shout"), "nobody likes shouting")],
        };
        let (_, user) = messages(&analyze(vec![shown("Bo", "Paris")], vec![memory]));
        let position = |text: &str| user.find(text).unwrap_or_else(|| panic!("{text} is not in {user}"));
        assert!(position("rejected by reviewer because nobody likes shouting") < position("## Trajectories"));
        assert!(
            position("\"wrong answer\" (×2, tasks: Bo, Al)") > position("## Earlier steps of this epoch")
        );
    }

    #[test]
    fn empty_material_is_said_to_be_empty() {
        for brief in every_brief().iter().skip(1) {
            let (_, user) = messages(brief);
            assert!(user.contains("<skill>\n(the document is empty)\n</skill>"), "{user}");
        }
        let (_, user) = messages(&every_brief()[1]);
        assert!(user.ends_with("At most 1 edit.\n\n## Trajectories (0)"), "{user}");
    }

    #[test]
    fn huge_material_is_cut_in_the_middle_and_says_so() {
        let mut huge = shown("Bo", &format!("HEAD{}TAIL", "é".repeat(1_000_000)));
        huge.reason = "r".repeat(1_000_000);
        huge.system_prompt = "s".repeat(1_000_000);
        let (_, user) = messages(&analyze(vec![huge], Vec::new()));
        assert!(user.chars().count() < REPLY_LIMIT + TASK_LIMIT + 2 * PROMPT_LIMIT + 6 * LINE_LIMIT);
        assert!(user.contains("<reply>\nHEADé") && user.contains("éTAIL\n</reply>"));
        assert!(user.contains("[… 988008 characters cut …]"), "1,000,008 less 12,000");
        assert_eq!(cut("abcdef", 5), "ab\n[… 2 characters cut …]\nef");
        assert_eq!(cut("abcde", 5), "abcde");
    }

    #[test]
    fn edits_to_rank_are_one_line_each_with_their_number() {
        let patch = Patch { reasoning: String::new(), edits: vec![edit("a\nb"), edit("c")] };
        let (_, user) = messages(&Brief::Rank {
            meta_skill: String::new(),
            mode: Default::default(),
            skill: "s".into(),
            patch,
            budget: 1,
        });
        assert!(user.contains("\n0: {\"op\":\"append\",\"target\":\"\",\"content\":\"a\\nb\""), "{user}");
        assert!(user.contains("\n1: {\"op\":\"append\",\"target\":\"\",\"content\":\"c\""), "{user}");
        assert!(user.ends_with("At most 1 edit."));
    }

    #[test]
    fn the_final_merge_says_which_patch_has_priority() {
        let (_, user) = messages(&every_brief()[4]);
        let failure = user.find("### From failures (high priority)").unwrap();
        assert!(failure < user.find("### From successes (lower priority)").unwrap());
        let (_, user) = messages(&every_brief()[2]);
        assert!(user.contains("## Patches to merge (2, merge level 1)\n\n### Patch 1"), "{user}");
    }
}

//! The optimizer's prompts: a system prompt per stage and update mode from the texts of `assets/prompts/`, which a run
//! may replace, and a user message with the material. Owns which texts make up which prompt; sees training material
//! only, by the type of [`Brief`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::briefing::Briefing;
use super::material::cut;
use super::meta_reflect::meta_reflect_mode;
use crate::domain::{Brief, Message, Prompt, SourceType, Speaker, UpdateMode};

const BUILT_IN: [(&str, &str); 34] = [
    ("analyst_failure", include_str!("../../assets/prompts/analyst_failure.md")),
    ("analyst_failure_full_rewrite", include_str!("../../assets/prompts/analyst_failure_full_rewrite.md")),
    ("analyst_failure_rewrite", include_str!("../../assets/prompts/analyst_failure_rewrite.md")),
    ("analyst_success", include_str!("../../assets/prompts/analyst_success.md")),
    ("analyst_success_full_rewrite", include_str!("../../assets/prompts/analyst_success_full_rewrite.md")),
    ("analyst_success_rewrite", include_str!("../../assets/prompts/analyst_success_rewrite.md")),
    ("answer_rules", include_str!("../../assets/prompts/answer_rules.md")),
    ("appendix_consolidate", include_str!("../../assets/prompts/appendix_consolidate.md")),
    ("appendix_failure", include_str!("../../assets/prompts/appendix_failure.md")),
    ("appendix_success", include_str!("../../assets/prompts/appendix_success.md")),
    ("candidate_rules", include_str!("../../assets/prompts/candidate_rules.md")),
    ("deep_probe", include_str!("../../assets/prompts/deep_probe.md")),
    ("deep_probe_no_reference", include_str!("../../assets/prompts/deep_probe_no_reference.md")),
    ("deep_probe_trace", include_str!("../../assets/prompts/deep_probe_trace.md")),
    ("edit_rules", include_str!("../../assets/prompts/edit_rules.md")),
    ("lr_autonomous", include_str!("../../assets/prompts/lr_autonomous.md")),
    ("merge_failure", include_str!("../../assets/prompts/merge_failure.md")),
    ("merge_failure_full_rewrite", include_str!("../../assets/prompts/merge_failure_full_rewrite.md")),
    ("merge_failure_rewrite", include_str!("../../assets/prompts/merge_failure_rewrite.md")),
    ("merge_final", include_str!("../../assets/prompts/merge_final.md")),
    ("merge_final_full_rewrite", include_str!("../../assets/prompts/merge_final_full_rewrite.md")),
    ("merge_final_rewrite", include_str!("../../assets/prompts/merge_final_rewrite.md")),
    ("merge_success", include_str!("../../assets/prompts/merge_success.md")),
    ("merge_success_full_rewrite", include_str!("../../assets/prompts/merge_success_full_rewrite.md")),
    ("merge_success_rewrite", include_str!("../../assets/prompts/merge_success_rewrite.md")),
    ("meta_reflect", include_str!("../../assets/prompts/meta_reflect.md")),
    ("meta_reflect_rewrite", include_str!("../../assets/prompts/meta_reflect_rewrite.md")),
    ("meta_skill", include_str!("../../assets/prompts/meta_skill.md")),
    ("ranking", include_str!("../../assets/prompts/ranking.md")),
    ("ranking_rewrite", include_str!("../../assets/prompts/ranking_rewrite.md")),
    ("repair", include_str!("../../assets/prompts/repair.md")),
    ("rewrite_skill", include_str!("../../assets/prompts/rewrite_skill.md")),
    ("slow_update", include_str!("../../assets/prompts/slow_update.md")),
    ("suggestion_rules", include_str!("../../assets/prompts/suggestion_rules.md")),
];

const NAMES: [&str; BUILT_IN.len()] = {
    let mut names = [""; BUILT_IN.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = BUILT_IN[i].0;
        i += 1;
    }
    names
};

/// Longest unusable reply that a repair shows again, in characters.
const REPAIRED_REPLY: usize = 16_000;

/// An override of a prompt that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no prompt {name:?}; the prompts are {}", NAMES.join(", "))]
pub struct UnknownPrompt {
    pub name: String,
}

/// The texts of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompts {
    overrides: BTreeMap<String, String>,
    max_trajectory_chars: usize,
}

impl Prompts {
    /// What an override may be called: the files of `assets/prompts/` without their endings.
    pub const NAMES: &[&str] = &NAMES;

    /// `overrides` replace built-in texts by name. The rules that follow a stage's text (operations, protected regions,
    /// form of the answer) are texts of their own, so that a new wording of the task cannot lose them.
    /// `max_trajectory_chars` bounds what a prompt shows of one conversation; 0 cuts nothing.
    pub fn new(
        overrides: BTreeMap<String, String>,
        max_trajectory_chars: usize,
    ) -> Result<Self, UnknownPrompt> {
        match overrides.keys().find(|name| !NAMES.contains(&name.as_str())) {
            Some(name) => Err(UnknownPrompt { name: name.clone() }),
            None => Ok(Self { overrides, max_trajectory_chars }),
        }
    }

    /// System and user message of a call.
    pub fn render(&self, brief: &Brief) -> Prompt {
        let texts = parts(brief).into_iter().map(|name| self.text(&name).trim());
        let system = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        let user = Briefing::new(self.max_trajectory_chars).text(brief);
        Prompt::Chat(vec![Message::new(Speaker::System, system), Message::new(Speaker::User, user)])
    }

    /// The conversation that asks again after an unusable reply.
    pub fn repair(&self, prompt: &Prompt, reply: &str, fault: &str) -> Prompt {
        let mut messages = match prompt {
            Prompt::Chat(messages) => messages.clone(),
            Prompt::Text(text) => vec![Message::new(Speaker::User, text.clone())],
        };
        let reply = if reply.trim().is_empty() { "(empty)".into() } else { cut(reply, REPAIRED_REPLY) };
        messages.push(Message::new(Speaker::Assistant, reply));
        let request = format!("{}\n\nWhat is wrong: {fault}", self.text("repair").trim());
        messages.push(Message::new(Speaker::User, request));
        Prompt::Chat(messages)
    }

    fn text(&self, name: &str) -> &str {
        let built_in = || BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        self.overrides.get(name).map(String::as_str).or_else(built_in).unwrap_or_default()
    }
}

/// Names of the texts that make up a system prompt, in order.
fn parts(brief: &Brief) -> Vec<Cow<'static, str>> {
    let stage = |stage: &str, mode| Cow::from(format!("{stage}{}", suffix(mode)));
    let mut names: Vec<Cow<'static, str>> = match brief {
        Brief::Analyze { mode, source, appendix, .. } => {
            let source = source.name();
            let mut names = vec![stage(&format!("analyst_{source}"), *mode), rules(*mode).into()];
            // A candidate is a whole document: there is no change to weigh against a note.
            if *appendix && *mode != UpdateMode::FullRewriteMinibatch {
                names.insert(1, format!("appendix_{source}").into());
            }
            names
        }
        Brief::Merge { mode, source, .. } => {
            let source = source.map_or("final", SourceType::name);
            vec![stage(&format!("merge_{source}"), *mode), rules(*mode).into()]
        }
        Brief::Rank { mode: UpdateMode::RewriteFromSuggestions, .. } => vec!["ranking_rewrite".into()],
        Brief::Rank { mode: UpdateMode::Patch | UpdateMode::FullRewriteMinibatch, .. } => {
            vec!["ranking".into()]
        }
        Brief::LearningRate { .. } => vec!["lr_autonomous".into()],
        Brief::Rewrite { .. } => vec!["rewrite_skill".into()],
        Brief::SlowUpdate { .. } => vec!["slow_update".into()],
        Brief::MetaSkill { .. } => vec!["meta_skill".into()],
        Brief::MetaReflect { mode, .. } => {
            let mode = meta_reflect_mode(*mode);
            vec![stage("meta_reflect", mode), rules(mode).into()]
        }
        Brief::Probe { trajectories, .. } => {
            let referenced = trajectories.iter().any(|shown| !shown.reference.is_empty());
            let mut names: Vec<Cow<'static, str>> =
                vec![if referenced { "deep_probe" } else { "deep_probe_no_reference" }.into()];
            if Briefing::shows_trace(trajectories) {
                names.push("deep_probe_trace".into());
            }
            names
        }
        Brief::Consolidate { .. } => vec!["appendix_consolidate".into()],
    };
    names.push("answer_rules".into());
    names
}

fn suffix(mode: UpdateMode) -> &'static str {
    match mode {
        UpdateMode::Patch => "",
        UpdateMode::RewriteFromSuggestions => "_rewrite",
        UpdateMode::FullRewriteMinibatch => "_full_rewrite",
    }
}

fn rules(mode: UpdateMode) -> &'static str {
    match mode {
        UpdateMode::Patch => "edit_rules",
        UpdateMode::RewriteFromSuggestions => "suggestion_rules",
        UpdateMode::FullRewriteMinibatch => "candidate_rules",
    }
}

#[cfg(test)]
#[path = "prompts_tests.rs"]
mod tests;

#![allow(unused)]
use super::reply::ReplyFault;
use crate::domain::*;
use std::collections::BTreeMap;
pub struct PairInput<'a> {
    pub item: &'a Item,
    pub prev: Option<&'a Rollout>,
    pub curr: Option<&'a Rollout>,
}
pub fn comparison_pairs(_: &[PairInput<'_>]) -> Vec<ComparisonPair> {
    vec![]
}
pub fn kept_pairs(p: &[ComparisonPair], _: PairPolicy) -> Vec<ComparisonPair> {
    p.to_vec()
}
pub fn meta_skill_reply(_: &str) -> Result<(String, String), ReplyFault> {
    Err(ReplyFault::NoJson)
}
pub enum Selected<'a> {
    Skipped,
    None,
    Edits(&'a [Edit]),
}
pub struct HistoryStep<'a> {
    pub step: u32,
    pub action: &'a str,
    pub selection_hard: Option<f64>,
    pub current_score: Option<f64>,
    pub best_score: Option<f64>,
    pub selected: Selected<'a>,
    pub n_total: usize,
    pub n_fail: usize,
    pub patterns: &'a [(String, usize, Vec<String>)],
}
pub fn epoch_history(_: &[HistoryStep<'_>], _: UpdateMode) -> String {
    String::new()
}
pub fn meta_reflect_reply(_: &str, _: UpdateMode, _: usize) -> Result<(String, Patch), ReplyFault> {
    Err(ReplyFault::NoJson)
}
pub fn representatives(_: &[bool], _: &[&str], _: usize, _: usize, _: u64) -> Vec<usize> {
    vec![]
}
pub fn probe_reply(_: &str, _: &[String], _: Option<u64>) -> Result<DeepProbe, ReplyFault> {
    Err(ReplyFault::NoJson)
}
pub struct Prompts;
impl Prompts {
    pub fn new(_: BTreeMap<String, String>, _: usize) -> Result<Self, String> {
        Ok(Self)
    }
    pub fn render(&self, brief: &Brief) -> Prompt {
        super::prompts::optimizer_prompt(brief)
    }
    pub fn repair(&self, prompt: &Prompt, reply: &str, fault: &str) -> Prompt {
        let Prompt::Chat(mut m) = prompt.clone() else { return prompt.clone() };
        m.push(Message::new(Speaker::Assistant, reply));
        m.push(Message::new(Speaker::User, fault));
        Prompt::Chat(m)
    }
}

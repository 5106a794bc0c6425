#![allow(unused)]
use super::reply::ReplyFault;
use crate::domain::*;
use std::collections::BTreeMap;
pub fn lr_decision(_: &str, _: usize) -> Result<LrDecision, ReplyFault> {
    Err(ReplyFault::NoJson)
}
pub fn lr_fallback(_: usize, _: &str, _: Option<String>) -> LrDecision {
    LrDecision::default()
}
pub fn rewrite_reply(_: &str) -> Result<Rewrite, ReplyFault> {
    Err(ReplyFault::NoJson)
}
pub fn first_rewrite(_: &[Edit]) -> Option<Rewrite> {
    None
}
pub fn with_regions_of(n: &str, _: &str) -> (String, bool) {
    (n.into(), false)
}
pub fn slow_update_reply(_: &str) -> Result<(String, String), ReplyFault> {
    Err(ReplyFault::NoJson)
}
pub fn with_empty_slow_update(s: &str) -> String {
    s.into()
}
pub fn slow_update_text(s: &str) -> String {
    String::new()
}
pub fn with_slow_update(s: &str, c: &str) -> String {
    format!("{s}{c}")
}
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
pub fn with_empty_appendix(s: &str) -> String {
    s.into()
}
pub fn appendix_notes(_: &str) -> Vec<String> {
    vec![]
}
pub fn with_appendix(s: &str, _: &[String]) -> String {
    s.into()
}
pub struct NoteUnion {
    pub all: Vec<String>,
    pub added: usize,
}
pub fn union_notes(_: &[String], n: &[String]) -> NoteUnion {
    NoteUnion { all: n.to_vec(), added: n.len() }
}
pub fn consolidated_notes(_: &str, _: usize) -> Result<Vec<String>, ReplyFault> {
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

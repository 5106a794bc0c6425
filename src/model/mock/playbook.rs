//! A compiled script with its counters: decides what one request gets. Must not know dialects or sockets.

use std::collections::HashMap;

use regex::Regex;

use super::answer::{Answer, Json, filled};
use super::conversation::Conversation;
use super::fault::{Fault, Pace};
use super::script::{Pick, Rule, Script, ScriptError};
use super::turn::Turn;
use crate::domain::fingerprint;

#[derive(Debug)]
pub(super) struct Playbook {
    script: Script,
    rules: Vec<Compiled>,
    seen: HashMap<String, u32>,
    answered: String,
}

/// The patterns of one rule and how often it answered.
#[derive(Debug)]
struct Compiled {
    system: Option<Regex>,
    asked: Option<Regex>,
    matches: Option<Regex>,
    tool_result: Option<Regex>,
    model: Option<Regex>,
    count: usize,
}

/// What the server shall do with one request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Reply { turn: Turn, pace: Pace },
    Fault(Fault),
}

impl Playbook {
    pub(super) fn new(script: Script) -> Result<Self, ScriptError> {
        let mut rules = Vec::new();
        for (index, rule) in script.rules.iter().enumerate() {
            let bad = |why: String| ScriptError::BadRule { rule: index + 1, name: rule.name.clone(), why };
            if rule.answers.is_empty() {
                return Err(bad("no answers".into()));
            }
            rules.push(Compiled::new(rule).map_err(bad)?);
        }
        if script.chaos.as_ref().is_some_and(|chaos| !(0.0..=1.0).contains(&chaos.rate)) {
            return Err(ScriptError::BadKey { why: "chaos: rate must lie between 0 and 1".into() });
        }
        Ok(Self { script, rules, seen: HashMap::new(), answered: String::new() })
    }

    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    /// Name of the rule that the last request was answered by; "" where none did or it has no name.
    pub(super) fn answered(&self) -> &str {
        &self.answered
    }

    /// Decides on one request; `body` is all of it.
    pub(super) fn act(&mut self, said: &Conversation, body: &str) -> Act {
        self.answered.clear();
        let slow = match self.chaos(body) {
            Some(Fault::Drip(drip)) => Pace { drip: Some(drip), comments: None },
            Some(Fault::Comments(comments)) => Pace { drip: None, comments: Some(comments) },
            Some(fault) => return Act::Fault(fault),
            None => Pace::default(),
        };
        match self.scripted(said) {
            Act::Reply { turn, pace } => {
                let (drip, comments) = (slow.drip.or(pace.drip), slow.comments.or(pace.comments));
                Act::Reply { turn, pace: Pace { drip, comments } }
            }
            fault @ Act::Fault(_) => fault,
        }
    }

    fn scripted(&mut self, said: &Conversation) -> Act {
        for (rule, compiled) in self.script.rules.iter().zip(&mut self.rules) {
            if !compiled.fits(rule, said) {
                continue;
            }
            let n = rule.answers.len();
            let index = match rule.pick {
                Pick::Prompt => (draw(&[&said.system, &said.last]) * n as f64) as usize,
                Pick::RoundRobin => compiled.count % n,
                Pick::Sequence => compiled.count,
                Pick::Turn => said.replies,
            };
            compiled.count += 1;
            self.answered.clone_from(&rule.name);
            return compiled.act(&rule.answers[index.min(n - 1)], said);
        }
        Act::Fault(Fault::Status {
            status: 404,
            code: Some("no_rule".into()),
            message: Some("no rule of the mock script matches".into()),
            headers: HashMap::new(),
        })
    }

    fn chaos(&mut self, body: &str) -> Option<Fault> {
        let chaos = self.script.chaos.as_ref().filter(|chaos| !chaos.faults.is_empty())?;
        let times = self.seen.entry(fingerprint([body])).or_default();
        *times += 1;
        let draw = |salt: &str| draw(&[&chaos.seed.to_string(), body, &times.to_string(), salt]);
        if draw("hit") >= chaos.rate {
            return None;
        }
        let index = (draw("which") * chaos.faults.len() as f64) as usize;
        chaos.faults.get(index).cloned()
    }
}

impl Compiled {
    fn new(rule: &Rule) -> Result<Self, String> {
        let compile = |key: &str, pattern: &Option<String>| {
            let compiled = pattern.as_deref().map(Regex::new).transpose();
            compiled.map_err(|error| format!("{key} is no regular expression: {error}"))
        };
        Ok(Self {
            system: compile("system", &rule.system)?,
            asked: compile("asked", &rule.asked)?,
            matches: compile("matches", &rule.matches)?,
            tool_result: compile("tool_result", &rule.tool_result)?,
            model: compile("model", &rule.model)?,
            count: 0,
        })
    }

    fn fits(&self, rule: &Rule, said: &Conversation) -> bool {
        let fits = |pattern: &Option<Regex>, text: Option<&str>| {
            pattern.as_ref().is_none_or(|pattern| text.is_some_and(|text| pattern.is_match(text)))
        };
        rule.dialect.is_none_or(|dialect| dialect == said.dialect)
            && rule.after_reply.is_none_or(|wanted| wanted == (said.replies > 0))
            && rule.after_tool.is_none_or(|wanted| wanted == said.tool_result.is_some())
            && fits(&self.model, Some(&said.model))
            && fits(&self.system, Some(&said.system))
            && fits(&self.asked, Some(&said.asked))
            && fits(&self.matches, Some(&said.last))
            && fits(&self.tool_result, said.tool_result.as_deref())
    }

    fn act(&self, answer: &Answer, said: &Conversation) -> Act {
        let reply = |turn| Act::Reply { turn, pace: Pace::default() };
        let groups = match (&self.matches, &self.asked) {
            (Some(pattern), _) => pattern.captures(&said.last),
            (None, Some(pattern)) => pattern.captures(&said.asked),
            (None, None) => None,
        };
        match answer {
            Answer::Text(text) => reply(Turn::of_text(text.clone())),
            Answer::Fault(fault) => Act::Fault(fault.clone()),
            Answer::Detailed(detailed) => {
                Act::Reply { turn: detailed.turn(groups.as_ref(), said.replies + 1), pace: detailed.pace() }
            }
            Answer::Json(Json { json }) => reply(Turn::of_text(filled(json, groups.as_ref()).to_string())),
        }
    }
}

/// A number in [0, 1) that depends on nothing but the texts.
fn draw(texts: &[&str]) -> f64 {
    let digest = fingerprint(texts.iter().copied());
    u32::from_str_radix(&digest[..8], 16).map_or(0.0, |bits| f64::from(bits) / 4_294_967_296.0)
}

#[cfg(test)]
#[path = "playbook_tests.rs"]
mod tests;

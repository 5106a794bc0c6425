//! A training rollout as text for the optimizer: what happened turn by turn, and everything known about it. Owns the
//! order of the parts and their lengths; must not judge.

use super::material::{cut, field, one_line, tagged};
use crate::domain::{Trajectory, Turn};

/// Longest texts, in characters, at the conversation's limit [`Limits::CONVERSATION`]; others scale with it.
pub struct Limits {
    conversation: usize,
}

impl Limits {
    const CONVERSATION: usize = 12_000;

    /// `conversation` = 0 cuts nothing.
    pub fn new(conversation: usize) -> Self {
        Self { conversation }
    }

    /// The limit that is `usual` for conversations of [`Limits::CONVERSATION`] characters.
    pub fn of(&self, usual: usize) -> usize {
        match self.conversation {
            0 => usize::MAX,
            limit => usual.saturating_mul(limit).div_ceil(Self::CONVERSATION),
        }
    }

    pub fn conversation(&self) -> usize {
        self.of(Self::CONVERSATION)
    }
}

/// The turns, uncut.
pub fn conversation_text(turns: &[Turn]) -> String {
    conversation(turns, &Limits::new(0))
}

fn conversation(turns: &[Turn], limits: &Limits) -> String {
    let lines: Vec<String> = turns.iter().map(|turn| turn_text(turn, limits)).collect();
    lines.join("\n")
}

fn turn_text(turn: &Turn, limits: &Limits) -> String {
    match turn {
        Turn::ToolCall { cmd, obs, exit } => {
            let exit =
                exit.filter(|code| *code != 0).map_or_else(String::new, |code| format!(" (exit {code})"));
            format!("[action] {}\n[obs]    {}{exit}", cut(cmd, limits.of(500)), cut(obs, limits.of(800)))
        }
        Turn::Step { step, reasoning, action, feedback } => {
            let step = step.map_or_else(|| "?".to_owned(), |step| step.to_string());
            let mut text = String::new();
            if !reasoning.is_empty() {
                text = format!("[step {step} think] {}\n", cut(reasoning, limits.of(300)));
            }
            let (action, feedback) = (cut(action, limits.of(200)), cut(feedback, limits.of(500)));
            format!("{text}[step {step} action] {action}\n[step {step} obs]    {feedback}")
        }
        Turn::Verification { content } => format!("[verification] {}", cut(content, limits.of(2_000))),
        Turn::Message { role, content } => format!("[{role}] {}", cut(content, limits.of(500))),
    }
}

/// One line per turn, numbered from 0: what a probe can point at.
pub fn trace_text(turns: &[Turn]) -> String {
    let limits = Limits::new(Limits::CONVERSATION);
    let lines = turns.iter().enumerate();
    let lines: Vec<String> =
        lines.map(|(i, turn)| format!("{i}: {}", one_line(&turn_text(turn, &limits), 200))).collect();
    lines.join("\n")
}

/// Everything about one rollout. `limit_chars` bounds the conversation (0: nothing is cut), the other parts in
/// proportion: SkillOpt's first release had 12,000 and 4,000 for the reference, 3,000 for prompts.
pub fn trajectory_text(number: usize, shown: &Trajectory, limit_chars: usize) -> String {
    let limits = Limits::new(limit_chars);
    let line = limits.of(1_000);
    let mut parts = vec![format!("### Trajectory {number} (id={})", one_line(&shown.item, line))];
    let mut block = |tag: &str, content: &str, limit: usize| {
        if !content.trim().is_empty() {
            parts.push(tagged(tag, &cut(content.trim(), limit)));
        }
    };
    block("task", &shown.task, limits.of(4_000));
    let facts = facts(shown, line);
    block("reference", &shown.reference, limits.of(4_000));
    block("system_prompt", &shown.system_prompt, limits.of(3_000));
    // The user prompt usually is the task; then it would say nothing new.
    if shown.user_prompt != shown.task {
        block("user_prompt", &shown.user_prompt, limits.of(3_000));
    }
    if shown.turns.is_empty() {
        block("reply", &shown.reply, limits.conversation());
    } else {
        block("conversation", &conversation(&shown.turns, &limits), limits.conversation());
    }
    parts.insert(if shown.task.trim().is_empty() { 1 } else { 2 }, facts);
    parts.join("\n\n")
}

fn facts(shown: &Trajectory, limit: usize) -> String {
    let mut facts = Vec::new();
    for (name, value) in [
        ("Task type", shown.task_type.as_str()),
        ("Score", &format!("hard {}, soft {}", shown.hard, shown.soft)),
        ("Scorer's reason", &shown.reason),
        ("Reference answer", &shown.gold),
        ("Extracted answer", &shown.answer),
    ] {
        if !value.trim().is_empty() {
            facts.push(field(name, value, limit));
        }
    }
    if !shown.turns.is_empty() {
        facts.push(format!("Turns: {}", shown.turns.len()));
    }
    facts.join("\n")
}

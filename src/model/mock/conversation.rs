//! What a request says, as far as rules look at it, whatever dialect it came in. Must not read bodies.

use super::dialect::Dialect;

/// One message, or one part of a request that stands for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) by: Speaker,
    pub(super) text: String,
}

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    /// A reply of the model, be it text, thinking or tool calls.
    Model,
    /// The result of a tool call.
    Tool,
}

impl Said {
    pub(super) fn new(by: Speaker, text: impl Into<String>) -> Self {
        Self { by, text: text.into() }
    }
}

/// What rules look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) dialect: Dialect,
    pub(super) model: String,
    /// The first system message.
    pub(super) system: String,
    /// What the user says before the first reply.
    pub(super) asked: String,
    /// The last message, or the text prompt.
    pub(super) last: String,
    /// How many replies of the model it holds.
    pub(super) replies: usize,
    /// The last result of a tool, if it holds one.
    pub(super) tool_result: Option<String>,
}

impl Conversation {
    pub(super) fn of(dialect: Dialect, model: &str, said: &[Said]) -> Self {
        let text = |found: Option<&Said>| found.map(|said| said.text.clone()).unwrap_or_default();
        let opening: Vec<&str> = said
            .iter()
            .take_while(|said| said.by != Speaker::Model)
            .filter(|said| said.by == Speaker::User)
            .map(|said| said.text.as_str())
            .collect();
        // Some dialects split one reply into several items.
        let replies = said
            .iter()
            .enumerate()
            .filter(|(at, one)| one.by == Speaker::Model && (*at == 0 || said[at - 1].by != Speaker::Model))
            .count();
        Self {
            dialect,
            model: model.to_owned(),
            system: text(said.iter().find(|said| said.by == Speaker::System)),
            asked: opening.join("\n"),
            last: text(said.last()),
            replies,
            tool_result: said.iter().rfind(|said| said.by == Speaker::Tool).map(|said| said.text.clone()),
        }
    }
}

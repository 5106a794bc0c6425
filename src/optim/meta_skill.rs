//! The optimizer's memory from one epoch to the next. Owns how the reply is read; it never changes the skill.

use super::reply::{ReplyFault, object, required_text, text};

/// Reasoning and memory, both trimmed. An empty memory is an answer: there is nothing to remember.
pub fn meta_skill_reply(reply: &str) -> Result<(String, String), ReplyFault> {
    let reply = object(reply)?;
    let memory = required_text(&reply, "meta_skill_content")?;
    Ok((text(&reply, "reasoning").trim().to_owned(), memory))
}

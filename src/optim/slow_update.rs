//! The slow update: guidance for the target in a protected region at the end of the skill. Owns that region's text and
//! how the reply is read; must not decide whether a guidance is taken.

use super::region::Region;
use super::reply::{ReplyFault, object, required_text, text};

/// Reasoning and guidance, both trimmed. An empty guidance is an answer: there is nothing to say.
pub fn slow_update_reply(reply: &str) -> Result<(String, String), ReplyFault> {
    let reply = object(reply)?;
    let guidance = required_text(&reply, "slow_update_content")?;
    Ok((text(&reply, "reasoning").trim().to_owned(), guidance))
}

pub fn has_slow_update(skill: &str) -> bool {
    Region::SlowUpdate.text(skill).is_some()
}

/// `skill` with an empty region at its end; unchanged when it has a region.
pub fn with_empty_slow_update(skill: &str) -> String {
    Region::SlowUpdate.ensured_in(skill, "")
}

/// The guidance; "" without one.
pub fn slow_update_text(skill: &str) -> String {
    Region::SlowUpdate.text(skill).unwrap_or_default().to_owned()
}

/// `skill` with `guidance` in the place of all it had.
pub fn with_slow_update(skill: &str, guidance: &str) -> String {
    Region::SlowUpdate.added_to(&without_slow_update(skill), guidance)
}

pub fn without_slow_update(skill: &str) -> String {
    Region::SlowUpdate.removed_from(skill)
}

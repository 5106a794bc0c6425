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

#[cfg(test)]
mod tests {
    use super::super::appendix::{appendix_notes, union_notes, with_appendix};
    use super::super::region;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_guidance_is_an_answer_and_a_missing_one_a_fault() {
        let read = |reply: &str| slow_update_reply(reply);
        assert_eq!(
            read(r#"{"reasoning": " r", "slow_update_content": " "}"#),
            Ok(("r".into(), String::new()))
        );
        assert_eq!(read(r#"{"reasoning": "r"}"#), Err(ReplyFault::Missing { key: "slow_update_content" }));
    }

    fn text() -> impl Strategy<Value = String> {
        let pieces = [
            "<!-- SLOW_UPDATE_START -->",
            "<!-- SLOW_UPDATE_END -->",
            "<!-- APPENDIX_END -->",
            "<!-- SLOW_",
            "- a",
            "é",
            "\n",
            "\n\n\n\n",
            "\r\n",
            " ",
        ];
        prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..10).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        /// Guidance and notes come and go by turns; each leaves the other's region as it is, and is read as written.
        #[test]
        fn guidance_and_notes_do_not_disturb_each_other(
            body in "[a-c\n]{0,12}",
            turns in prop::collection::vec((any::<bool>(), text()), 1..6),
        ) {
            let (mut skill, mut guidance, mut notes) = (body, String::new(), Vec::new());
            for (slow, text) in turns {
                if slow {
                    skill = with_slow_update(&skill, &text);
                    guidance = region::strip_markers(&text).trim().to_owned();
                } else {
                    notes = union_notes(&appendix_notes(&skill), &[text]).all;
                    skill = with_appendix(&skill, &notes);
                }
                prop_assert_eq!(&slow_update_text(&skill), &guidance);
                prop_assert_eq!(&appendix_notes(&skill), &notes);
                prop_assert!(region::contents(&skill).len() <= 2);
                prop_assert_eq!(with_empty_slow_update(&skill).matches("SLOW_UPDATE_START").count(), 1);
            }
        }
    }
}

//! Fields of request bodies that no configuration may set by hand: they decide what a call is, and the budget counts on
//! what it was told of that. Must not know which API has which of them.

/// What says the same where it may be said, to follow "instead"; `None`: the field may be set by hand.
pub fn instead_of(field: &str) -> Option<&'static str> {
    match field {
        "model" => Some("set model.ROLE.model"),
        "messages" | "input" | "prompt" | "system" => {
            Some("write it into the skill, or into env.system_template and env.user_template")
        }
        "stream" => Some("set model.ROLE.stream"),
        "max_tokens" | "max_completion_tokens" | "max_output_tokens" | "n_predict" => {
            Some("set model.ROLE.max_tokens")
        }
        "n" | "best_of" => Some("leave it out, one reply is asked for and read"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_reservation_counts_on_is_not_set_by_hand_and_the_rest_is() {
        for field in ["model", "messages", "input", "prompt", "stream", "n", "max_tokens"] {
            assert!(instead_of(field).is_some(), "{field}");
        }
        for field in ["max_completion_tokens", "max_output_tokens", "n_predict", "best_of", "system"] {
            assert!(instead_of(field).is_some(), "{field}");
        }
        for field in ["provider", "chat_template_kwargs", "min_p", "service_tier"] {
            assert!(instead_of(field).is_none(), "{field}");
        }
    }
}

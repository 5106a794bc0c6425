//! Thinking that comes inside the text, between `<think>` and `</think>`. Must not be used where a server keeps the two
//! apart itself.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Thinking and reply of a complete text. A template may have opened the thinking itself, then only its end is seen.
pub(super) fn split(text: &str) -> (String, String) {
    let head = text.trim_start();
    let opened = head.strip_prefix(OPEN);
    match (opened, opened.unwrap_or(text).split_once(CLOSE)) {
        (_, Some((thinking, rest))) => (thinking.trim().to_owned(), rest.trim_start().to_owned()),
        // The reply ended before it began.
        (Some(thinking), None) => (thinking.trim().to_owned(), String::new()),
        (None, None) => (String::new(), text.to_owned()),
    }
}

/// Keeps thinking out of what is shown while a text arrives.
#[derive(Debug, Default)]
pub(super) struct LiveFilter {
    state: State,
    held: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// So far it could be the beginning of `<think>`.
    #[default]
    Unknown,
    Thinking,
    /// Space between thinking and reply.
    Between,
    Reply,
}

impl LiveFilter {
    /// What of a piece is to be shown.
    pub(super) fn push(&mut self, piece: &str) -> String {
        if self.state == State::Reply {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        if self.state == State::Unknown {
            let head = self.held.trim_start();
            if let Some(rest) = head.strip_prefix(OPEN) {
                self.held = rest.to_owned();
                self.state = State::Thinking;
            } else if !OPEN.starts_with(head) {
                self.state = State::Reply;
                return std::mem::take(&mut self.held);
            }
        }
        if self.state == State::Thinking {
            match self.held.split_once(CLOSE) {
                Some((_, rest)) => {
                    self.held = rest.to_owned();
                    self.state = State::Between;
                }
                None => self.keep_tail(),
            }
        }
        if self.state == State::Between {
            self.held = self.held.trim_start().to_owned();
            if !self.held.is_empty() {
                self.state = State::Reply;
                return std::mem::take(&mut self.held);
            }
        }
        String::new()
    }

    /// Of thinking only as much is kept as may be the beginning of its end.
    fn keep_tail(&mut self) {
        let mut from = self.held.len().saturating_sub(CLOSE.len());
        while !self.held.is_char_boundary(from) {
            from += 1;
        }
        self.held.drain(..from);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn splits_thinking_from_the_reply() {
        for (text, thinking, reply) in [
            ("<think>\nhm\n</think>\n\n42", "hm", "42"),
            ("\n <think>hm</think>42", "hm", "42"),
            ("hm</think>42", "hm", "42"),
            ("<think>cut", "cut", ""),
            ("  plain ", "", "  plain "),
            ("say <think> loudly", "", "say <think> loudly"),
            ("", "", ""),
        ] {
            assert_eq!(split(text), (thinking.to_owned(), reply.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn live_text_adds_up_to_the_reply(
            thinking in "[a-é< /think]{0,30}", reply in "[a-é<>]{0,20}", cuts in prop::collection::vec(0_usize..60, 0..6),
        ) {
            for text in [format!("<think>{thinking}</think>\n\n{reply}"), format!("x{}", reply.replace('<', ""))] {
                let mut cuts: Vec<usize> = cuts.iter().copied().filter(|cut| text.is_char_boundary(*cut)).collect();
                cuts.push(text.len());
                cuts.sort_unstable();
                let (mut filter, mut shown, mut from) = (LiveFilter::default(), String::new(), 0);
                for cut in cuts {
                    shown.push_str(&filter.push(&text[from..cut]));
                    from = cut;
                }
                prop_assert_eq!(shown, split(&text).1);
            }
        }
    }
}

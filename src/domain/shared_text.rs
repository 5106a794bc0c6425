//! A text that many records repeat (the skill in every rollout's prompt), held once.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Immutable text; clones share it, and so do equal texts that one thread makes soon after one another.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SharedText(Arc<str>);

/// Texts a thread remembers: the current and the candidate skill, in a few templates each.
const REMEMBERED: usize = 8;

thread_local! {
    /// Newest first.
    static RECENT: RefCell<Vec<SharedText>> = const { RefCell::new(Vec::new()) };
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        RECENT.with_borrow_mut(|recent| {
            match recent.iter().position(|known| &*known.0 == text) {
                Some(place) => recent[..=place].rotate_right(1),
                None => {
                    recent.truncate(REMEMBERED - 1);
                    recent.insert(0, Self(text.into()));
                }
            }
            recent[0].clone()
        })
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl Default for SharedText {
    fn default() -> Self {
        "".into()
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// By hand: a text that is known already is not copied out of the input first.
impl<'de> Deserialize<'de> for SharedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = SharedText;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SharedText, E> {
                Ok(text.into())
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_in_memory() {
        let first = SharedText::from("answer with one word");
        let second: SharedText = serde_json::from_str("\"answer with one word\"").unwrap();
        assert!(Arc::ptr_eq(&first.0, &second.0));
        assert_eq!(serde_json::to_string(&second).unwrap(), "\"answer with one word\"");
        for n in 0..REMEMBERED {
            assert_eq!(&*SharedText::from(format!("text {n}")), format!("text {n}"));
        }
        let again = SharedText::from("answer with one word");
        assert!(!Arc::ptr_eq(&first.0, &again.0), "only so many are remembered");
        assert_eq!(first, again);
    }
}

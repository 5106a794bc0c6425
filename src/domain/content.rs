//! What messages are made of: texts, thinking, images, tool calls and their results.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Text(String),
    Thinking(Thinking),
    Image(Image),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
}

/// What a model thought before it spoke. Untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// "" where the provider shows none of it.
    pub text: String,
    /// The provider's own form (signature, encrypted content, details), to be sent back as it is.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub opaque: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// For example `image/png`.
    pub media_type: String,
    /// Base64.
    pub data: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's name of this call.
    pub id: String,
    pub name: String,
    /// JSON text as the model wrote it; may be invalid.
    pub arguments: String,
    /// What the provider wants back with the call (Gemini's thought signature).
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub opaque: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call it answers.
    pub call: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// The parts of a message. Plain text is written as a plain string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content(Vec<Part>);

impl Content {
    pub fn new(parts: Vec<Part>) -> Self {
        Self(parts)
    }

    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// The text of a message that is nothing else.
    pub fn as_text(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            [_, ..] => None,
        }
    }

    /// All texts, without thinking, calls and results.
    pub fn text(&self) -> String {
        let texts = self.0.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Thinking(_) | Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        });
        texts.collect()
    }

    pub fn images(&self) -> usize {
        self.0.iter().filter(|part| matches!(part, Part::Image(_))).count()
    }

    pub(super) fn text_bytes(&self) -> usize {
        let bytes = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Thinking(thinking) => thinking.text.len(),
            Part::Image(_) => 0,
            Part::ToolCall(call) => call.name.len() + call.arguments.len(),
            Part::ToolResult(result) => result.text.len(),
        };
        self.0.iter().map(bytes).sum()
    }
}

impl<T: Into<String>> From<T> for Content {
    fn from(text: T) -> Self {
        let text = text.into();
        Self(if text.is_empty() { Vec::new() } else { vec![Part::Text(text)] })
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_text() {
            Some(text) => serializer.serialize_str(text),
            None => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Parts(Vec<Part>),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Text(text) => text.into(),
            Written::Parts(parts) => Self(parts),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_a_plain_string_and_everything_reads_back() {
        let call = Part::ToolCall(ToolCall {
            id: "c1".into(),
            name: "bash".into(),
            arguments: "{}".into(),
            opaque: Value::Null,
        });
        for (content, want) in [
            (Content::from("hi"), r#""hi""#),
            (Content::new(vec![call]), r#"[{"tool_call":{"id":"c1","name":"bash","arguments":"{}"}}]"#),
        ] {
            let json = serde_json::to_string(&content).unwrap();
            assert_eq!(json, want);
            assert_eq!(serde_json::from_str::<Content>(&json).unwrap(), content);
        }
    }
}

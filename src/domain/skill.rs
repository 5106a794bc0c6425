//! The skill document: one Markdown text that conditions a frozen model.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A skill document with its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    pub text: String,
    pub hash: String,
}

impl Skill {
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let hash = skill_hash(&text);
        Self { text, hash }
    }
}

/// First 16 hex digits of SHA-256 of the UTF-8 text (SkillOpt's skill hash).
pub fn skill_hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..8])
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

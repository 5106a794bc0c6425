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

/// What came with a skill that was read from a folder, besides its body. None of it is optimised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFolder {
    /// What stands between the `---` lines of its document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_matter: Option<String>,
    /// The other files, by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CarriedFile>,
}

/// A file of a skill folder, as it was when the run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedFile {
    pub path: String,
    pub bytes: u64,
    /// 64 hex digits.
    pub sha256: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
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

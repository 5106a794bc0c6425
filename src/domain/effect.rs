//! Identity of a memoised effect: where in the run it happens and everything that determines its result.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Stable path (`e02/s005/rollout/ITEM#0`) and fingerprint of one effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EffectKey {
    pub path: String,
    /// SHA-256 (64 hex digits) of everything that determines the result.
    pub fingerprint: String,
}

/// SHA-256 over length-prefixed parts, so that no two part lists collide by concatenation.
pub fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    super::skill::hex(&hasher.finalize())
}

/// First 16 hex digits of a fingerprint over one text; for names of files and sockets.
pub fn short_hash(text: &str) -> String {
    fingerprint([text])[..16].to_owned()
}

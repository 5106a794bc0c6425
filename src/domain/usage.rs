//! What calls used: tokens and money.

use serde::{Deserialize, Serialize};

/// Tokens and money of one or more calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub calls: u64,
    /// All tokens that were sent, those from a cache included.
    pub prompt_tokens: u64,
    /// All tokens that were generated, those of thinking included.
    pub completion_tokens: u64,
    /// Of the prompt: read from the provider's cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Of the completion: thinking.
    #[serde(default)]
    pub reasoning_tokens: u64,
    /// Of the prompt: written to the provider's cache at a price of its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Billionths of a US dollar, as reported or by the price table; 0 where neither knows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nanodollars: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens + self.completion_tokens
    }

    /// US dollars.
    pub fn dollars(&self) -> f64 {
        self.nanodollars as f64 / 1e9
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.cached_tokens += other.cached_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.nanodollars += other.nanodollars;
    }
}

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
    /// A call of which nothing is known but that it was made.
    pub const ONE_CALL: Self = Self {
        calls: 1,
        prompt_tokens: 0,
        completion_tokens: 0,
        cached_tokens: 0,
        reasoning_tokens: 0,
        cache_write_tokens: 0,
        nanodollars: 0,
    };

    pub fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// US dollars.
    pub fn dollars(&self) -> f64 {
        self.nanodollars as f64 / 1e9
    }
}

/// Numbers come from servers: a sum that is too large stays the largest.
impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.nanodollars = self.nanodollars.saturating_add(other.nanodollars);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_numbers_never_wrap_around_a_cap() {
        let absurd = Usage {
            prompt_tokens: u64::MAX,
            completion_tokens: 1,
            nanodollars: u64::MAX,
            ..Usage::default()
        };
        let mut sum =
            Usage { calls: 1, prompt_tokens: 2, completion_tokens: 3, nanodollars: 4, ..Usage::default() };
        sum += absurd;
        assert_eq!((sum.tokens(), sum.nanodollars), (u64::MAX, u64::MAX));
    }
}

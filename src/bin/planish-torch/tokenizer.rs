//! Byte-level BPE tokenizer built from a GGUF file's metadata, ChatML, and the way back from tokens to bytes.
//! Text never turns into control tokens: only the chat template inserts them.

use std::collections::HashMap;

use planish::domain::{Message, Prompt};
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;

use crate::gguf::{Gguf, GgufError, Value};

#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    #[error(transparent)]
    Gguf(#[from] GgufError),
    #[error("tokenizer {0} is not supported (model gpt2 with pre-tokenizer smollm is)")]
    Unsupported(String),
    #[error("the model has no token {0}, which the ChatML template needs; send the prompt as text")]
    NoChat(&'static str),
    #[error("this model takes text only; a message holds images, thinking, or tool calls")]
    NotText,
    #[error("tokenizer: {0}")]
    Library(String),
}

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// Bytes of each token; control tokens have none.
    pieces: Vec<Vec<u8>>,
    ends: Vec<u32>,
    bos: Option<u32>,
    document_start: Option<u32>,
    chat_start: Option<u32>,
    chat_end: Option<u32>,
}

impl Tokenizer {
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, TokenizerError> {
        let model = gguf.text("tokenizer.ggml.model")?;
        let pre = gguf.text("tokenizer.ggml.pre")?;
        if (model, pre) != ("gpt2", "smollm") {
            return Err(TokenizerError::Unsupported(format!("{model}/{pre}")));
        }
        let tokens = texts(gguf, "tokenizer.ggml.tokens")?;
        let control = control_flags(gguf, tokens.len())?;
        let merges = texts(gguf, "tokenizer.ggml.merges")?
            .iter()
            .map(|merge| {
                merge
                    .split_once(' ')
                    .map(|(left, right)| (left.to_string(), right.to_string()))
                    .ok_or_else(|| TokenizerError::Library(format!("merge without a space: {merge:?}")))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let vocab: HashMap<String, u32> =
            tokens.iter().enumerate().map(|(id, token)| ((*token).to_string(), id as u32)).collect();
        let id_of = |token: &str| vocab.get(token).copied();
        let (chat_start, chat_end) = (id_of("<|im_start|>"), id_of("<|im_end|>"));
        let mut ends: Vec<u32> = [gguf.size("tokenizer.ggml.eos_token_id").ok().map(|id| id as u32)]
            .into_iter()
            .chain([chat_end, id_of("<|endoftext|>")])
            .flatten()
            .collect();
        ends.sort_unstable();
        ends.dedup();
        let bos = match gguf.get("tokenizer.ggml.add_bos_token") {
            Some(Value::Bool(true)) => Some(gguf.size("tokenizer.ggml.bos_token_id")? as u32),
            _ => None,
        };
        let bytes_of = byte_alphabet();
        let pieces = tokens
            .iter()
            .zip(&control)
            .map(|(token, control)| match control {
                true => Vec::new(),
                false => token.chars().filter_map(|c| bytes_of.get(&c).copied()).collect(),
            })
            .collect();
        let library = |error: tokenizers::Error| TokenizerError::Library(error.to_string());
        let document_start = id_of("<|endoftext|>");
        let vocab: Vec<(String, u32)> = vocab.into_iter().collect();
        let bpe = BPE::builder()
            .vocab_and_merges(vocab.into_iter().collect::<tokenizers::models::bpe::Vocab>(), merges)
            .build()
            .map_err(library)?;
        let mut inner = tokenizers::Tokenizer::new(bpe);
        inner.with_pre_tokenizer(Some(Sequence::new(vec![
            PreTokenizerWrapper::Digits(Digits::new(true)),
            PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, true, true)),
        ])));
        Ok(Self { inner, pieces, ends, bos, document_start, chat_start, chat_end })
    }

    pub fn vocab(&self) -> usize {
        self.pieces.len()
    }

    /// The token ends a reply.
    pub fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// Bytes the token stands for; a token may end inside a UTF-8 character.
    pub fn bytes(&self, token: u32) -> &[u8] {
        self.pieces.get(token as usize).map_or(&[], Vec::as_slice)
    }

    /// Tokens of plain text; control tokens written out in it stay text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoding =
            self.inner.encode_fast(text, false).map_err(|e| TokenizerError::Library(e.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Tokens of a whole prompt, at least one: a chat ends with the opened assistant turn, and an empty text is the
    /// start of a new document.
    pub fn encode_prompt(&self, prompt: &Prompt) -> Result<Vec<u32>, TokenizerError> {
        let mut ids: Vec<u32> = self.bos.into_iter().collect();
        match prompt {
            Prompt::Text(text) if text.is_empty() && ids.is_empty() => ids.extend(self.document_start),
            Prompt::Text(text) => ids.extend(self.encode(text)?),
            Prompt::Chat(messages) => {
                let start = self.chat_start.ok_or(TokenizerError::NoChat("<|im_start|>"))?;
                let end = self.chat_end.ok_or(TokenizerError::NoChat("<|im_end|>"))?;
                for Message { role, content } in messages {
                    let content = content.as_text().ok_or(TokenizerError::NotText)?;
                    ids.push(start);
                    ids.extend(self.encode(&format!("{}\n{content}", role.name()))?);
                    ids.push(end);
                    ids.extend(self.encode("\n")?);
                }
                ids.push(start);
                ids.extend(self.encode("assistant\n")?);
            }
        }
        Ok(ids)
    }
}

fn texts<'a>(gguf: &'a Gguf, key: &str) -> Result<Vec<&'a str>, TokenizerError> {
    let wrong = || GgufError::Key { key: key.into(), wanted: "an array of strings" }.into();
    gguf.array(key)?
        .iter()
        .map(|value| match value {
            Value::Text(text) => Ok(text.as_str()),
            _ => Err(wrong()),
        })
        .collect()
}

/// Token type 3 marks control tokens.
fn control_flags(gguf: &Gguf, vocab: usize) -> Result<Vec<bool>, TokenizerError> {
    let flags: Vec<bool> = gguf
        .array("tokenizer.ggml.token_type")?
        .iter()
        .map(|value| matches!(value, Value::Signed(3) | Value::Unsigned(3)))
        .collect();
    match flags.len() == vocab {
        true => Ok(flags),
        false => Err(TokenizerError::Library(format!("{} token types for {vocab} tokens", flags.len()))),
    }
}

/// The printable stand-in of every byte in byte-level BPE: printable Latin-1 bytes stand for themselves, the
/// other bytes, in order, for the characters from U+0100 on.
fn byte_alphabet() -> HashMap<char, u8> {
    let mut map = HashMap::new();
    let mut next = 0x100u32;
    for byte in 0..=255u8 {
        let own = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        let code = if own { u32::from(byte) } else { next };
        if !own {
            next += 1;
        }
        if let Some(c) = char::from_u32(code) {
            map.insert(c, byte);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_is_a_bijection_with_the_known_landmarks() {
        let map = byte_alphabet();
        assert_eq!(map.len(), 256);
        assert_eq!(map[&'Ġ'], b' ');
        assert_eq!(map[&'Ċ'], b'\n');
        assert_eq!(map[&'a'], b'a');
        assert_eq!(map[&'Ã'], 0xC3);
    }
}

//! Lines between a client and `planish-torch`: one JSON object per line on stdin and stdout, one final line per
//! request id. Both sides use these types; nothing here does IO, and nothing here names a tensor library.

use serde::{Deserialize, Serialize};

use crate::domain::{Prompt, Sampling};

/// Protocol number; a client and a worker with different numbers do not talk.
pub const WORKER_PROTOCOL: u32 = 1;

/// Client to worker. Ids are chosen by the client and unique among the requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestLine {
    pub id: u64,
    #[serde(flatten)]
    pub body: Request,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// First line of a conversation; answered by `hello`.
    Hello { proto: u32 },
    /// Loads a model, replacing the present one; answered by `loaded`.
    Load(Load),
    /// Answered by `delta` lines (when `stream`) and one `generated`.
    Generate(Generate),
    /// Answered by one `scored`.
    Score(Score),
    /// Ends request `target` before its next decode step; its final line is `cancelled`. Answered by `cancel`.
    Cancel { target: u64 },
    /// Answered by `stats`.
    Stats {},
    /// Answered by `bye`; then the worker ends.
    Shutdown {},
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// CUDA when libtorch has it, else CPU.
    #[default]
    Auto,
    Cpu,
    Cuda,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// GGUF file, as the worker's machine sees it.
    pub model_file: String,
    /// Threads of one decode step; 0: all cores.
    #[serde(default)]
    pub threads: usize,
    /// Most sequences decoded at once, at least 1.
    pub max_batch: usize,
    #[serde(default)]
    pub device: Device,
}

/// Continues each prompt independently of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generate {
    pub prompts: Vec<Prompt>,
    /// Absent values: temperature 1, top_p 1, no top_k, seed 0. Prompt `i` draws from the stream (seed, i).
    pub sampling: Sampling,
    /// Report the prompt's token ids and the log-probability of every generated token.
    #[serde(default)]
    pub want_logprobs: bool,
    /// With `want_logprobs`: also the N most likely tokens at every generated position.
    #[serde(default)]
    pub top_logprobs: usize,
    /// Send `delta` lines.
    #[serde(default)]
    pub stream: bool,
}

/// Log-probabilities of given continuations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    pub pairs: Vec<ScorePair>,
}

/// Prompt and continuation are tokenised apart, so the continuation's tokens do not depend on the prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScorePair {
    pub prompt: Prompt,
    pub continuation: String,
}

/// Worker to client. `id` is absent only in an answer to a line whose id could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    #[serde(flatten)]
    pub body: Reply,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Hello {
        proto: u32,
        version: String,
        pid: u32,
    },
    Loaded(Loaded),
    /// More text of sequence `index`; not final.
    Delta {
        index: usize,
        text: String,
    },
    Generated {
        sequences: Vec<Sequence>,
        timings: Timings,
    },
    Scored {
        scores: Vec<TokenScores>,
        timings: Timings,
    },
    /// Answer to `cancel`; `found` is false when the target had already ended.
    Cancel {
        found: bool,
    },
    /// Final line of a cancelled request.
    Cancelled {},
    Stats(Stats),
    Bye {},
    /// Final line of a request that has no other answer.
    Error {
        kind: ErrorKind,
        message: String,
    },
}

impl Reply {
    /// Ends its request.
    pub fn is_final(&self) -> bool {
        !matches!(self, Reply::Delta { .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request can never be answered: malformed, prompt too long, no model loaded.
    BadRequest,
    /// The model file cannot be used.
    Model,
    /// The worker failed; the same request may succeed.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// File name without folders.
    pub model: String,
    /// Of the whole file, lower-case hex.
    pub sha256: String,
    /// What computes: `cpu-f32` or `cuda-f32`.
    pub engine: String,
    pub parameters: u64,
    /// Longest sequence (prompt and generated) in tokens.
    pub context: usize,
    pub vocab: usize,
    pub ms: u64,
}

/// Why a sequence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// End token or stop text.
    Stop,
    /// `max_tokens` or the context is used up.
    Length,
}

/// One generated sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// Without end token and stop text; invalid UTF-8 replaced.
    pub text: String,
    /// All sampled tokens, with the end token or the tokens of the stop text.
    pub tokens: Vec<u32>,
    /// Natural log of the model's own distribution (temperature 1, nothing cut off), one per token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<f32>>,
    /// Per token, most likely first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_logprobs: Option<Vec<Vec<(u32, f32)>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_ids: Option<Vec<u32>>,
    pub finish: Finish,
    pub prompt_tokens: usize,
    /// Prompt tokens whose keys and values came from the prefix cache.
    pub cached_tokens: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenScores {
    pub tokens: Vec<u32>,
    /// One per token, natural log.
    pub logprobs: Vec<f32>,
}

/// Milliseconds from the arrival of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    /// Until its first sequence got a place in the batch.
    pub queued_ms: u64,
    pub total_ms: u64,
}

/// Totals since the model was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    pub steps: u64,
    pub prefill_tokens: u64,
    pub cached_tokens: u64,
    pub generated_tokens: u64,
    /// Wall time inside steps.
    pub busy_ms: u64,
    /// Sequences in the batch now, and waiting for a place.
    pub active: usize,
    pub waiting: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_documented_shape() {
        let line = r#"{"id":4,"generate":{"prompts":[{"text":"a"},{"chat":[{"role":"user","content":"hi"}]}],"sampling":{"max_tokens":8,"temperature":0.0,"top_p":null,"top_k":null,"seed":7,"stop":["\n"]}}}"#;
        let parsed: RequestLine = serde_json::from_str(line).unwrap();
        assert_eq!(parsed.id, 4);
        let Request::Generate(generate) = &parsed.body else { panic!("{parsed:?}") };
        assert_eq!(generate.prompts.len(), 2);
        assert!(!generate.want_logprobs && !generate.stream);
        let stats: RequestLine = serde_json::from_str(r#"{"id":5,"stats":{}}"#).unwrap();
        assert_eq!(stats.body, Request::Stats {});
        let delta = ReplyLine { id: Some(4), body: Reply::Delta { index: 1, text: "x".into() } };
        assert_eq!(serde_json::to_string(&delta).unwrap(), r#"{"id":4,"delta":{"index":1,"text":"x"}}"#);
        assert_eq!(
            serde_json::from_str::<ReplyLine>(&serde_json::to_string(&delta).unwrap()).unwrap(),
            delta
        );
    }

    #[test]
    fn sixty_four_bit_seeds_and_ids_survive() {
        let sampling = Sampling {
            max_tokens: 1,
            temperature: None,
            top_p: None,
            top_k: None,
            seed: Some(u64::MAX),
            stop: Vec::new(),
        };
        let body = Request::Generate(Generate {
            prompts: vec![Prompt::Text("x".into())],
            sampling,
            want_logprobs: true,
            top_logprobs: 3,
            stream: true,
        });
        let line = RequestLine { id: u64::MAX, body };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<RequestLine>(&text).unwrap(), line);
    }

    #[test]
    fn only_deltas_leave_a_request_open() {
        assert!(!Reply::Delta { index: 0, text: String::new() }.is_final());
        assert!(Reply::Cancelled {}.is_final());
        assert!(Reply::Error { kind: ErrorKind::Failed, message: String::new() }.is_final());
    }
}

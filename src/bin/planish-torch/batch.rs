//! Continuous batching: sequences join and leave between steps, prefill and decode rows share a step. Owns the queue
//! and the running sequences; speaks `Reply`s, not lines.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use planish::domain::{Prompt, Sampling};
use planish::model::worker_protocol::{
    ErrorKind, Finish, Generate, Reply, Score, Sequence, Stats, Timings, TokenScores,
};

use crate::completion::Completion;
use crate::engine::{Engine, EngineError, Row};
use crate::sampler::{Policy, Random, log_normaliser, most_likely};
use crate::slots::{Place, Slots};
use crate::tokenizer::Tokenizer;

/// Prompt rows per step: enough for full speed, short enough that running sequences keep moving.
const PREFILL_ROWS: usize = 256;

/// What a running sequence is for.
enum Goal {
    Generate {
        completion: Box<Completion>,
        policy: Policy,
        random: Random,
        max_tokens: usize,
    },
    /// Tokens from `prompt` on are given.
    Score,
}

struct Running {
    request: u64,
    index: usize,
    /// Prompt, then what was generated or given.
    tokens: Vec<u32>,
    prompt: usize,
    cached: usize,
    slot: usize,
    goal: Goal,
    logprobs: Vec<f32>,
    top: Vec<Vec<(u32, f32)>>,
}

impl Running {
    /// Rows this sequence needs before its next logits can be read.
    fn end(&self) -> usize {
        match self.goal {
            Goal::Generate { .. } => self.tokens.len(),
            // The last token's own row predicts nothing that was asked for.
            Goal::Score => self.tokens.len() - 1,
        }
    }
}

/// A request with sequences still open.
struct Open {
    results: Results,
    left: usize,
    want_logprobs: bool,
    top_logprobs: usize,
    stream: bool,
    arrived: Instant,
    started: Option<Instant>,
}

enum Results {
    Generated(Vec<Option<Sequence>>),
    Scored(Vec<Option<TokenScores>>),
}

pub struct Batch {
    engine: Box<dyn Engine>,
    tokenizer: Tokenizer,
    slots: Slots,
    waiting: VecDeque<Running>,
    running: Vec<Running>,
    open: HashMap<u64, Open>,
    stats: Stats,
}

/// Takes replies with the id of their request.
pub type Sink<'a> = dyn FnMut(u64, Reply) + 'a;

impl Batch {
    pub fn new(engine: Box<dyn Engine>, tokenizer: Tokenizer, max_batch: usize) -> Self {
        Self {
            engine,
            tokenizer,
            slots: Slots::new(max_batch),
            waiting: VecDeque::new(),
            running: Vec::new(),
            open: HashMap::new(),
            stats: Stats::default(),
        }
    }

    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    pub fn is_open(&self, request: u64) -> bool {
        self.open.contains_key(&request)
    }

    pub fn stats(&self) -> Stats {
        Stats { active: self.running.len(), waiting: self.waiting.len(), ..self.stats }
    }

    /// Queues all sequences of a request. Errors name what is wrong with it.
    pub fn generate(&mut self, id: u64, request: Generate) -> Result<(), String> {
        if request.prompts.is_empty() {
            return Err("prompts is empty".into());
        }
        let Sampling { max_tokens, seed, ref stop, .. } = request.sampling;
        if max_tokens == 0 {
            return Err("max_tokens is 0".into());
        }
        let policy = Policy::new(&request.sampling)?;
        let mut queued = Vec::new();
        for (index, prompt) in request.prompts.iter().enumerate() {
            let tokens = self.encode(prompt)?;
            let goal = Goal::Generate {
                completion: Box::new(Completion::new(stop)),
                policy: policy.clone(),
                random: Random::new(seed.unwrap_or(0), index as u64),
                max_tokens: max_tokens as usize,
            };
            queued.push(sequence(id, index, tokens.len(), tokens, goal));
        }
        let results = Results::Generated(queued.iter().map(|_| None).collect());
        let open = Open {
            results,
            left: queued.len(),
            want_logprobs: request.want_logprobs,
            top_logprobs: if request.want_logprobs { request.top_logprobs } else { 0 },
            stream: request.stream,
            arrived: Instant::now(),
            started: None,
        };
        self.open.insert(id, open);
        self.waiting.extend(queued);
        Ok(())
    }

    /// As `generate`. Empty continuations score nothing and need no step.
    pub fn score(&mut self, id: u64, request: &Score, sink: &mut Sink) -> Result<(), String> {
        if request.pairs.is_empty() {
            return Err("pairs is empty".into());
        }
        let mut queued = Vec::new();
        let mut results = Vec::new();
        for (index, pair) in request.pairs.iter().enumerate() {
            let mut tokens = self.encode(&pair.prompt)?;
            let prompt = tokens.len();
            tokens.extend(self.tokenizer.encode(&pair.continuation).map_err(|e| e.to_string())?);
            if tokens.len() > self.engine.shape().context {
                return Err(self.too_long(tokens.len()));
            }
            let empty = tokens.len() == prompt;
            results.push(empty.then(|| TokenScores { tokens: Vec::new(), logprobs: Vec::new() }));
            if !empty {
                queued.push(sequence(id, index, prompt, tokens, Goal::Score));
            }
        }
        let open = Open {
            results: Results::Scored(results),
            left: queued.len(),
            want_logprobs: true,
            top_logprobs: 0,
            stream: false,
            arrived: Instant::now(),
            started: None,
        };
        self.open.insert(id, open);
        self.waiting.extend(queued);
        self.close_if_done(id, sink);
        Ok(())
    }

    /// Drops a request's sequences; false when it is not open.
    pub fn cancel(&mut self, request: u64, sink: &mut Sink) -> bool {
        if self.open.remove(&request).is_none() {
            return false;
        }
        self.waiting.retain(|sequence| sequence.request != request);
        let (gone, kept) = self.running.drain(..).partition(|sequence| sequence.request == request);
        self.running = kept;
        let gone: Vec<Running> = gone;
        gone.iter().for_each(|sequence| self.release(sequence.slot));
        sink(request, Reply::Cancelled {});
        true
    }

    /// Ends every open request with an error and forgets all cached keys and values.
    pub fn fail_all(&mut self, message: &str, sink: &mut Sink) {
        let mut open: Vec<u64> = self.open.drain().map(|(id, _)| id).collect();
        open.sort_unstable();
        for id in open {
            sink(id, Reply::Error { kind: ErrorKind::Failed, message: message.into() });
        }
        self.waiting.clear();
        self.running.clear();
        let count = self.slots.count();
        self.slots = Slots::new(count);
        (0..count).for_each(|slot| self.engine.clear(slot));
    }

    /// Admits what has a place, runs one forward pass, and hands out what it yields.
    pub fn step(&mut self, sink: &mut Sink) -> Result<(), EngineError> {
        let began = Instant::now();
        self.admit()?;
        let (rows, readers) = self.rows();
        let wanted: Vec<usize> = readers.iter().map(|reader| reader.row).collect();
        let logits = self.engine.forward(&rows, &wanted)?;
        for row in &rows {
            self.slots.extend(row.slot, &[row.token]);
        }
        let vocab = self.engine.shape().vocab;
        let mut ends = vec![None; self.running.len()];
        for (reader, logits) in readers.iter().zip(logits.chunks_exact(vocab)) {
            ends[reader.running] = self.read(reader, logits, sink);
        }
        let (mut done, mut kept) = (Vec::new(), Vec::new());
        for (sequence, end) in self.running.drain(..).zip(ends) {
            match end {
                Some(end) => done.push((sequence, end)),
                None => kept.push(sequence),
            }
        }
        self.running = kept;
        for (sequence, end) in done {
            self.release(sequence.slot);
            self.finish(sequence, end, sink);
        }
        self.stats.steps += 1;
        self.stats.busy_ms += began.elapsed().as_millis() as u64;
        Ok(())
    }

    fn encode(&self, prompt: &Prompt) -> Result<Vec<u32>, String> {
        let tokens = self.tokenizer.encode_prompt(prompt).map_err(|error| error.to_string())?;
        if tokens.is_empty() {
            return Err("a prompt has no tokens".into());
        }
        match tokens.len() < self.engine.shape().context {
            true => Ok(tokens),
            false => Err(self.too_long(tokens.len())),
        }
    }

    fn too_long(&self, tokens: usize) -> String {
        format!("{tokens} tokens do not fit the model's context of {}", self.engine.shape().context)
    }

    fn admit(&mut self) -> Result<(), EngineError> {
        let mut later = VecDeque::new();
        while let Some(mut sequence) = self.waiting.pop_front() {
            // The row before the first wanted logits must be computed anew: its logits are not kept.
            match self.slots.place(&sequence.tokens, sequence.prompt - 1) {
                Place::Now { slot, source, cached } => {
                    self.engine.copy_prefix(source, slot, cached)?;
                    self.slots.take(slot, source, &sequence.tokens, cached);
                    (sequence.slot, sequence.cached) = (slot, cached);
                    self.stats.cached_tokens += cached as u64;
                    if let Some(open) = self.open.get_mut(&sequence.request) {
                        open.started.get_or_insert_with(Instant::now);
                    }
                    self.running.push(sequence);
                }
                Place::Later => later.push_back(sequence),
                Place::Full => {
                    later.push_back(sequence);
                    break;
                }
            }
        }
        later.append(&mut self.waiting);
        self.waiting = later;
        Ok(())
    }

    /// This step's rows: every sequence that only decodes, then prompts in order up to the budget.
    fn rows(&mut self) -> (Vec<Row>, Vec<Reader>) {
        let mut budget = PREFILL_ROWS;
        let mut rows = Vec::new();
        let mut readers = Vec::new();
        for (running, sequence) in self.running.iter().enumerate() {
            let from = self.slots.computed(sequence.slot);
            let open = sequence.end() - from;
            let take = if open == 1 { 1 } else { open.min(budget) };
            if open > 1 {
                budget -= take;
                self.stats.prefill_tokens += take as u64;
            }
            for position in from..from + take {
                let read = match sequence.goal {
                    Goal::Generate { .. } => position + 1 == sequence.tokens.len(),
                    Goal::Score => position + 1 >= sequence.prompt,
                };
                if read {
                    readers.push(Reader { running, row: rows.len(), position });
                }
                rows.push(Row { slot: sequence.slot, position, token: sequence.tokens[position] });
            }
        }
        (rows, readers)
    }

    /// Uses the logits after one row; returns how the sequence ended, if it did.
    fn read(&mut self, reader: &Reader, logits: &[f32], sink: &mut Sink) -> Option<End> {
        let sequence = &mut self.running[reader.running];
        let open = self.open.get(&sequence.request)?;
        let normaliser = if open.want_logprobs { log_normaliser(logits) } else { 0.0 };
        let token = match &mut sequence.goal {
            Goal::Score => {
                let token = sequence.tokens[reader.position + 1];
                sequence.logprobs.push(logits[token as usize] - normaliser);
                return (reader.position + 2 == sequence.tokens.len()).then_some(End::Scored);
            }
            Goal::Generate { policy, random, .. } => match policy.pick(logits, random) {
                Some(token) => token,
                None => return Some(End::NotFinite),
            },
        };
        sequence.tokens.push(token);
        self.stats.generated_tokens += 1;
        if open.want_logprobs {
            sequence.logprobs.push(logits[token as usize] - normaliser);
            if open.top_logprobs > 0 {
                sequence.top.push(most_likely(logits, normaliser, open.top_logprobs));
            }
        }
        let Goal::Generate { completion, max_tokens, .. } = &mut sequence.goal else { return None };
        let stopped = self.tokenizer.is_end(token) || completion.push(self.tokenizer.bytes(token));
        let generated = sequence.tokens.len() - sequence.prompt;
        let full = generated == *max_tokens || sequence.tokens.len() == self.engine.shape().context;
        if open.stream {
            let text = if stopped || full { completion.rest() } else { completion.delta() };
            if let Some(text) = text {
                sink(sequence.request, Reply::Delta { index: sequence.index, text });
            }
        }
        match (stopped, full) {
            (true, _) => Some(End::Generated(Finish::Stop)),
            (false, true) => Some(End::Generated(Finish::Length)),
            (false, false) => None,
        }
    }

    fn finish(&mut self, sequence: Running, end: End, sink: &mut Sink) {
        let Some(open) = self.open.get_mut(&sequence.request) else { return };
        let generated = sequence.tokens[sequence.prompt..].to_vec();
        match (end, &mut open.results, sequence.goal) {
            (End::Scored, Results::Scored(scores), _) => {
                scores[sequence.index] = Some(TokenScores { tokens: generated, logprobs: sequence.logprobs });
            }
            (End::Generated(finish), Results::Generated(results), Goal::Generate { completion, .. }) => {
                let want = open.want_logprobs;
                results[sequence.index] = Some(Sequence {
                    text: completion.text(),
                    tokens: generated,
                    logprobs: want.then_some(sequence.logprobs),
                    top_logprobs: (open.top_logprobs > 0).then_some(sequence.top),
                    prompt_ids: want.then(|| sequence.tokens[..sequence.prompt].to_vec()),
                    finish,
                    prompt_tokens: sequence.prompt,
                    cached_tokens: sequence.cached,
                });
            }
            _ => {
                let request = sequence.request;
                self.cancel(request, &mut |_, _| ());
                let message = "the model's logits are not finite (damaged model file?)".into();
                sink(request, Reply::Error { kind: ErrorKind::Model, message });
                return;
            }
        }
        open.left -= 1;
        self.close_if_done(sequence.request, sink);
    }

    fn close_if_done(&mut self, id: u64, sink: &mut Sink) {
        if self.open.get(&id).is_none_or(|open| open.left > 0) {
            return;
        }
        let Some(open) = self.open.remove(&id) else { return };
        let started = open.started.unwrap_or(open.arrived);
        let timings = Timings {
            queued_ms: started.duration_since(open.arrived).as_millis() as u64,
            total_ms: open.arrived.elapsed().as_millis() as u64,
        };
        let reply = match open.results {
            Results::Generated(sequences) => {
                Reply::Generated { sequences: sequences.into_iter().flatten().collect(), timings }
            }
            Results::Scored(scores) => {
                Reply::Scored { scores: scores.into_iter().flatten().collect(), timings }
            }
        };
        sink(id, reply);
    }

    fn release(&mut self, slot: usize) {
        if let Some(given_up) = self.slots.release(slot) {
            self.engine.clear(given_up);
        }
    }
}

/// A row whose logits are read, and by which running sequence.
struct Reader {
    running: usize,
    row: usize,
    position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Generated(Finish),
    Scored,
    NotFinite,
}

fn sequence(request: u64, index: usize, prompt: usize, tokens: Vec<u32>, goal: Goal) -> Running {
    Running {
        request,
        index,
        tokens,
        prompt,
        cached: 0,
        slot: 0,
        goal,
        logprobs: Vec::new(),
        top: Vec::new(),
    }
}

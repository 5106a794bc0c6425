//! The client of the libtorch worker `planish-torch`: starts it, loads the model, routes replies, restarts it when it
//! dies and asks again what was in flight. Never names a tensor library; knows the worker only by its lines.

mod process;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::worker_protocol::{
    ErrorKind, Finish, Generate, Loaded, Reply, ReplyLine, Request, Score, ScorePair,
};
use process::{FIRST_CALL_ID, Worker, line_text, parse};

use super::{ChatModel, Likelihood, LiveSink, ModelError, call_item};
use crate::config::ModelConfig;
use crate::domain::{ChatReply, ChatRequest, FinishReason, Prompt, Usage, fingerprint};
use crate::event::{Live, LogLevel};

/// File name of the worker binary.
const WORKER: &str = "planish-torch";
const DEMO_MODEL: &str = "models/SmolLM2-135M-Instruct.Q4_1.gguf";
/// Restarts in a row without a finished request before calls fail.
const MAX_RESTARTS: u32 = 3;
/// Attempts of one request that the worker answers with a failure of its own.
const MAX_ATTEMPTS: u32 = 3;

/// Takes news of the worker for the run's log (starts, deaths).
pub type LogSink = Arc<dyn Fn(LogLevel, String) + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalSettings {
    /// Program and arguments; may run the worker elsewhere (`ssh gpu1 planish-torch`).
    pub command: Vec<String>,
    /// GGUF file, as the worker's machine sees it.
    pub model_file: String,
    /// Threads of the worker; 0: all cores.
    pub threads: usize,
    /// Most sequences decoded at once.
    pub max_batch: usize,
}

impl LocalSettings {
    /// Fills in what the config leaves open: the worker's place, and the demo model under `$PLANISH_HOME`.
    ///
    /// # Errors
    /// The worker binary or the demo model is missing; the text says how to get it.
    pub fn resolve(config: &ModelConfig) -> Result<Self, ModelError> {
        let command = match config.worker_command.as_slice() {
            [] => vec![find_worker()?.to_string_lossy().into_owned()],
            given => given.to_vec(),
        };
        let model_file = match config.model_file.as_str() {
            "" => demo_model()?.to_string_lossy().into_owned(),
            given => given.to_string(),
        };
        Ok(Self {
            command,
            model_file,
            threads: config.worker_threads,
            max_batch: config.worker_batch.max(1),
        })
    }
}

/// The worker beside the running program, else on PATH.
fn find_worker() -> Result<PathBuf, ModelError> {
    let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_path_buf));
    let path = std::env::var_os("PATH").unwrap_or_default();
    beside
        .into_iter()
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(WORKER))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            worker_error(format!(
                "the worker binary {WORKER} is neither beside planish nor on PATH; build it with `make setup` and \
                 `make worker`, or name it in [model] worker_command"
            ))
        })
}

fn demo_model() -> Result<PathBuf, ModelError> {
    let folder = |name| std::env::var_os(name).filter(|folder| !folder.is_empty());
    let file = planish_home(folder("PLANISH_HOME"), folder("HOME"))?.join(DEMO_MODEL);
    match file.is_file() {
        true => Ok(file),
        false => Err(worker_error(format!(
            "the demo model {} is missing; fetch it with `make setup`, or name a GGUF file in [model] model_file",
            file.display()
        ))),
    }
}

fn planish_home(named: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, ModelError> {
    match (named, home) {
        (Some(named), _) => Ok(PathBuf::from(named)),
        (None, Some(home)) => Ok(Path::new(&home).join(".cache/planish")),
        (None, None) => Err(worker_error(
            "neither PLANISH_HOME nor HOME is set, so the demo model cannot be found; set one of them, or name a \
             GGUF file in [model] model_file"
                .into(),
        )),
    }
}

fn worker_error(message: String) -> ModelError {
    ModelError::Worker { message }
}

/// A model in a worker process of its own. Dropping the last handle ends the process.
pub struct LocalModel {
    label: String,
    calls: mpsc::UnboundedSender<Message>,
    next_id: AtomicU64,
    pid: Arc<AtomicU32>,
}

impl LocalModel {
    /// Starts the worker and loads the model. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`ModelError::Worker`] when the worker cannot be started, ends, or cannot load the model.
    pub async fn start(settings: LocalSettings, log: LogSink) -> Result<Arc<Self>, ModelError> {
        let (worker, loaded) = Worker::launch(&settings).await.map_err(worker_error)?;
        let label = format!("local:{}#{}:{}", loaded.model, short_digest(&loaded.sha256), loaded.engine);
        log(
            LogLevel::Info,
            format!(
                "{WORKER} (process {}) loaded {} with {} parameters in {} ms ({})",
                worker.pid, loaded.model, loaded.parameters, loaded.ms, loaded.engine
            ),
        );
        let (calls, inbox) = mpsc::unbounded_channel();
        let pid = Arc::new(AtomicU32::new(worker.pid));
        let supervisor = Supervisor {
            settings,
            log,
            loaded,
            inbox,
            pending: BTreeMap::new(),
            restarts: 0,
            pid: Arc::clone(&pid),
        };
        tokio::spawn(supervisor.run(worker));
        Ok(Arc::new(Self { label, calls, next_id: AtomicU64::new(FIRST_CALL_ID), pid }))
    }

    /// Process id of the worker now, as the worker's own machine counts.
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Sends one request and waits for its final line. Dropping the future cancels it in the worker.
    ///
    /// # Errors
    /// [`ModelError::Refused`] for a request the worker will never answer, [`ModelError::NoReply`] when it keeps
    /// failing, [`ModelError::Worker`] when the worker is gone for good.
    pub async fn call(&self, request: Request, watch: Option<Watch>) -> Result<Reply, ModelError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, reply) = oneshot::channel();
        let pending = Pending { request, watch, answer, attempt: 1 };
        let gone = || worker_error("the worker's supervisor has ended".into());
        self.calls.send(Message::Call(id, Box::new(pending))).map_err(|_| gone())?;
        let guard = CancelOnDrop { id, calls: &self.calls };
        let reply = reply.await.map_err(|_| gone())?;
        // Answered: there is nothing left to cancel.
        std::mem::forget(guard);
        reply
    }
}

/// Where a call's deltas and retries are shown.
#[derive(Clone)]
pub struct Watch {
    pub path: String,
    pub live: LiveSink,
}

struct CancelOnDrop<'a> {
    id: u64,
    calls: &'a mpsc::UnboundedSender<Message>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        // A supervisor that has ended has nothing to cancel.
        let _ = self.calls.send(Message::Cancel(self.id));
    }
}

impl ChatModel for LocalModel {
    fn label(&self) -> &str {
        &self.label
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        async move {
            let path = || request.path.clone();
            live(Live::CallStarted { path: path(), item: call_item(&request.path).into(), attempt: 1 });
            let began = Instant::now();
            let result = self.generate(request, live, began).await;
            live(Live::CallFinished {
                path: path(),
                ok: result.is_ok(),
                tokens: result.as_ref().map_or(0, |reply| reply.usage.completion_tokens),
                ms: began.elapsed().as_millis() as u64,
            });
            result
        }
        .boxed()
    }
}

impl LocalModel {
    async fn generate(
        &self,
        request: &ChatRequest,
        live: &LiveSink,
        began: Instant,
    ) -> Result<ChatReply, ModelError> {
        let mut sampling = request.sampling.clone();
        sampling.seed.get_or_insert_with(|| path_seed(&request.path));
        let generate = Generate {
            prompts: vec![request.prompt.clone()],
            sampling,
            want_logprobs: false,
            top_logprobs: 0,
            stream: true,
        };
        let watch = Watch { path: request.path.clone(), live: Arc::clone(live) };
        let reply = self.call(Request::Generate(generate), Some(watch)).await?;
        let Reply::Generated { sequences, .. } = reply else { return Err(unexpected(&reply)) };
        let Some(sequence) = sequences.into_iter().next() else {
            return Err(worker_error("a generate request was answered without a sequence".into()));
        };
        let finish = match sequence.finish {
            Finish::Stop => FinishReason::Stop,
            Finish::Length => FinishReason::Length,
        };
        let usage = Usage {
            calls: 1,
            prompt_tokens: sequence.prompt_tokens as u64,
            completion_tokens: sequence.tokens.len() as u64,
            // Those of the cache depend on what else ran at that moment, and usage must be the same in every run of a seed.
            ..Usage::default()
        };
        Ok(ChatReply::of_text(sequence.text, finish, usage, began.elapsed().as_millis() as u64))
    }
}

impl Likelihood for LocalModel {
    fn score<'a>(
        &'a self,
        pairs: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Vec<(f64, usize)>, ModelError>> {
        async move {
            if pairs.is_empty() {
                return Ok(Vec::new());
            }
            let pairs: Vec<ScorePair> = pairs
                .iter()
                .map(|(prompt, continuation)| ScorePair {
                    prompt: Prompt::Text(prompt.clone()),
                    continuation: continuation.clone(),
                })
                .collect();
            let asked = pairs.len();
            let reply = self.call(Request::Score(Score { pairs }), None).await?;
            let Reply::Scored { scores, .. } = reply else { return Err(unexpected(&reply)) };
            if scores.len() != asked {
                return Err(worker_error(format!("{asked} pairs were answered by {} scores", scores.len())));
            }
            let sum = |logprobs: &[f32]| logprobs.iter().map(|logprob| f64::from(*logprob)).sum();
            Ok(scores.iter().map(|score| (sum(&score.logprobs), score.logprobs.len())).collect())
        }
        .boxed()
    }
}

/// Repeats of a prompt at different paths are different draws even when no seed is sent.
fn path_seed(path: &str) -> u64 {
    let digits = fingerprint([path]);
    digits
        .bytes()
        .take(16)
        .fold(0, |seed, digit| seed << 4 | u64::from((digit as char).to_digit(16).unwrap_or(0)))
}

fn short_digest(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}

fn unexpected(reply: &Reply) -> ModelError {
    let kind = serde_json::to_value(reply).ok();
    let kind = kind.as_ref().and_then(|value| value.as_object()?.keys().next().cloned());
    worker_error(format!("unexpected answer {}", kind.unwrap_or_default()))
}

/// A call that waits for its final line.
struct Pending {
    request: Request,
    watch: Option<Watch>,
    answer: oneshot::Sender<Result<Reply, ModelError>>,
    attempt: u32,
}

impl Pending {
    fn retrying(&mut self, error: &str) {
        self.attempt += 1;
        if let Some(Watch { path, live }) = &self.watch {
            live(Live::CallRetrying { path: path.clone(), error: error.into(), wait_ms: 0 });
        }
    }
}

enum Message {
    Call(u64, Box<Pending>),
    Cancel(u64),
}

/// Owns the worker process and every call in flight.
struct Supervisor {
    settings: LocalSettings,
    log: LogSink,
    loaded: Loaded,
    inbox: mpsc::UnboundedReceiver<Message>,
    /// In the order of their ids, which is the order of asking again after a restart.
    pending: BTreeMap<u64, Pending>,
    restarts: u32,
    pid: Arc<AtomicU32>,
}

impl Supervisor {
    async fn run(mut self, mut worker: Worker) {
        loop {
            match self.serve(&mut worker).await {
                Ok(()) => return,
                Err(fault) => {
                    let mut reason = worker.last_words(&fault).await;
                    loop {
                        match self.restart(&reason).await {
                            Restart::Up(next) => {
                                worker = *next;
                                break;
                            }
                            Restart::Failed(next) => reason = next,
                            Restart::GivenUp(message) => return self.refuse_all(&message).await,
                        }
                    }
                }
            }
        }
    }

    /// `Ok` when nobody holds the model any more, an error when the worker can't be spoken to.
    async fn serve(&mut self, worker: &mut Worker) -> Result<(), String> {
        for (id, pending) in &self.pending {
            worker.send(*id, &pending.request).await?;
        }
        loop {
            tokio::select! {
                message = self.inbox.recv() => match message {
                    None => return Ok(()),
                    Some(Message::Call(id, pending)) => {
                        let sent = worker.send(id, &pending.request).await;
                        self.pending.insert(id, *pending);
                        sent?;
                    }
                    Some(Message::Cancel(target)) => {
                        if self.pending.remove(&target).is_some() {
                            // The cancel's own answer has the same id as the target's: both are ignored.
                            worker.send_cancel(target).await?;
                        }
                    }
                },
                line = worker.lines.next_line() => self.route(worker, &line_text(line)?).await?,
            }
        }
    }

    async fn route(&mut self, worker: &mut Worker, line: &str) -> Result<(), String> {
        let ReplyLine { id, body } = parse(line)?;
        let Some(pending) = id.and_then(|id| self.pending.get_mut(&id)) else {
            if let (None, Reply::Error { message, .. }) = (id, &body) {
                (self.log)(LogLevel::Error, format!("{WORKER}: {message}"));
            }
            return Ok(());
        };
        let answer = match body {
            Reply::Delta { text, .. } => {
                if let Some(Watch { path, live }) = &pending.watch {
                    live(Live::CallDelta { path: path.clone(), text });
                }
                return Ok(());
            }
            Reply::Error { kind: ErrorKind::Failed, message } if pending.attempt < MAX_ATTEMPTS => {
                pending.retrying(&message);
                let id = id.unwrap_or_default();
                return worker.send(id, &pending.request).await;
            }
            Reply::Error { kind: ErrorKind::Failed, message } => {
                Err(ModelError::NoReply { host: WORKER.into(), attempts: pending.attempt, message })
            }
            Reply::Error { kind: ErrorKind::BadRequest, message } => {
                Err(ModelError::Refused { host: WORKER.into(), status: 400, message })
            }
            Reply::Error { kind: ErrorKind::Model, message } => Err(worker_error(message)),
            Reply::Cancelled {} => Err(ModelError::Cancelled),
            reply => Ok(reply),
        };
        self.restarts = 0;
        if let Some(pending) = id.and_then(|id| self.pending.remove(&id)) {
            // The asker may have gone; its cancel is on the way then.
            let _ = pending.answer.send(answer);
        }
        Ok(())
    }

    async fn restart(&mut self, reason: &str) -> Restart {
        if self.restarts == MAX_RESTARTS {
            return Restart::GivenUp(format!(
                "{reason}; given up after {MAX_RESTARTS} restarts in a row without a finished request"
            ));
        }
        self.restarts += 1;
        (self.log)(
            LogLevel::Warn,
            format!(
                "{reason}; restarting it ({} of {MAX_RESTARTS}), {} calls are asked again",
                self.restarts,
                self.pending.len()
            ),
        );
        self.pending.values_mut().for_each(|pending| pending.retrying(reason));
        match Worker::launch(&self.settings).await {
            Err(message) => Restart::Failed(message),
            Ok((_, loaded)) if loaded.sha256 != self.loaded.sha256 => Restart::GivenUp(format!(
                "the model file {} has changed while the run used it (sha256 {} was {})",
                self.settings.model_file,
                short_digest(&loaded.sha256),
                short_digest(&self.loaded.sha256)
            )),
            Ok((worker, _)) => {
                self.pid.store(worker.pid, Ordering::Relaxed);
                (self.log)(LogLevel::Info, format!("{WORKER} runs again (process {})", worker.pid));
                Restart::Up(Box::new(worker))
            }
        }
    }

    /// Answers everything with the same error until nobody asks any more.
    async fn refuse_all(mut self, message: &str) {
        (self.log)(LogLevel::Error, message.to_string());
        let refuse = |pending: Pending| {
            // The asker may have gone.
            let _ = pending.answer.send(Err(worker_error(message.to_string())));
        };
        std::mem::take(&mut self.pending).into_values().for_each(refuse);
        while let Some(next) = self.inbox.recv().await {
            if let Message::Call(_, pending) = next {
                refuse(*pending);
            }
        }
    }
}

enum Restart {
    Up(Box<Worker>),
    Failed(String),
    GivenUp(String),
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;

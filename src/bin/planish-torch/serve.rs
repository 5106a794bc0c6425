//! The conversation on stdin and stdout: parses lines, drives the batch, writes replies. One thread reads, this one
//! computes and writes, so `cancel` takes effect between two steps.

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Instant;

use planish::model::worker_protocol::{
    Device, ErrorKind, Load, Loaded, Reply, ReplyLine, Request, RequestLine, WORKER_PROTOCOL,
};
use sha2::{Digest, Sha256};

use crate::batch::Batch;
use crate::cpu::CpuEngine;
use crate::engine::{Engine, EngineError};
use crate::gguf::{Gguf, GgufError};
use crate::tokenizer::{Tokenizer, TokenizerError};
use crate::torch::TorchEngine;
use crate::weights::{Weights, WeightsError};

/// What a request line may hold, for error texts.
const REQUESTS: &str = "an id and one of hello, load, generate, score, cancel, stats, shutdown";

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Gguf(#[from] GgufError),
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Serves until `shutdown`, end of stdin, or a broken stdout.
pub fn serve() -> std::io::Result<()> {
    let (sender, lines) = channel();
    // Not joined: it ends with stdin, and after `shutdown` the process ends under it.
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        for line in std::io::stdin().lock().split(b'\n') {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    })?;
    Server { lines, out: std::io::stdout().lock(), batch: None, failed: None }.run()
}

struct Server<W> {
    lines: Receiver<Vec<u8>>,
    out: W,
    batch: Option<Batch>,
    /// The first failed write; the client is gone.
    failed: Option<std::io::Error>,
}

impl<W: Write> Server<W> {
    fn run(mut self) -> std::io::Result<()> {
        loop {
            let idle = self.batch.as_ref().is_none_or(Batch::is_idle);
            let next = match idle {
                true => self.lines.recv().map_err(|_| TryRecvError::Disconnected),
                false => self.lines.try_recv(),
            };
            match next {
                Ok(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Ok(line) => {
                    if !self.handle(&line) {
                        return Ok(());
                    }
                }
                // Nobody is left to read the answers.
                Err(TryRecvError::Disconnected) => return Ok(()),
                Err(TryRecvError::Empty) => self.step(),
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
        }
    }

    /// Answers one line; false: end.
    fn handle(&mut self, line: &[u8]) -> bool {
        let RequestLine { id, body } = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => {
                let id =
                    serde_json::from_slice::<serde_json::Value>(line).ok().and_then(|v| v["id"].as_u64());
                self.write(
                    id,
                    error_reply(ErrorKind::BadRequest, format!("not a request line ({REQUESTS}): {error}")),
                );
                return true;
            }
        };
        if self.batch.as_ref().is_some_and(|batch| batch.is_open(id)) {
            // No id: a final line with this one would end the request that owns it.
            let message = format!("id {id} is in use by a running request");
            self.write(None, error_reply(ErrorKind::BadRequest, message));
            return true;
        }
        match body {
            Request::Hello { proto } if proto != WORKER_PROTOCOL => {
                let message = format!(
                    "the client speaks worker protocol {proto}, this worker {WORKER_PROTOCOL}; build both from one version"
                );
                self.write(Some(id), error_reply(ErrorKind::BadRequest, message));
            }
            Request::Hello { .. } => {
                let version = env!("CARGO_PKG_VERSION").to_string();
                self.write(
                    Some(id),
                    Reply::Hello { proto: WORKER_PROTOCOL, version, pid: std::process::id() },
                );
            }
            Request::Load(load) => self.load(id, &load),
            Request::Stats {} => {
                let stats = self.batch.as_ref().map(Batch::stats).unwrap_or_default();
                self.write(Some(id), Reply::Stats(stats));
            }
            Request::Shutdown {} => {
                self.write(Some(id), Reply::Bye {});
                return false;
            }
            Request::Cancel { target } => {
                let found = self.with_batch(|batch, sink| batch.cancel(target, sink)).unwrap_or(false);
                self.write(Some(id), Reply::Cancel { found });
            }
            Request::Generate(generate) => {
                self.queue(id, |batch, _| batch.generate(id, generate));
            }
            Request::Score(score) => self.queue(id, |batch, sink| batch.score(id, &score, sink)),
        }
        true
    }

    fn queue(
        &mut self,
        id: u64,
        put: impl FnOnce(&mut Batch, &mut dyn FnMut(u64, Reply)) -> Result<(), String>,
    ) {
        let answer =
            self.with_batch(put).unwrap_or_else(|| Err("no model is loaded; send load first".into()));
        if let Err(message) = answer {
            self.write(Some(id), error_reply(ErrorKind::BadRequest, message));
        }
    }

    fn load(&mut self, id: u64, load: &Load) {
        if self.batch.as_ref().is_some_and(|batch| !batch.is_idle()) {
            let message = "requests are running; load when they have ended".into();
            self.write(Some(id), error_reply(ErrorKind::BadRequest, message));
            return;
        }
        // The old model's memory goes first: two do not fit everywhere.
        self.batch = None;
        let loaded = catch_unwind(AssertUnwindSafe(|| open_model(load)));
        let reply = match loaded {
            Ok(Ok((batch, loaded))) => {
                self.batch = Some(batch);
                Reply::Loaded(loaded)
            }
            Ok(Err(error)) => error_reply(ErrorKind::Model, format!("{}: {error}", load.model_file)),
            Err(panic) => error_reply(ErrorKind::Failed, panic_text(&*panic)),
        };
        self.write(Some(id), reply);
    }

    fn step(&mut self) {
        let outcome = self.with_batch(|batch, sink| catch_unwind(AssertUnwindSafe(|| batch.step(sink))));
        let message = match outcome {
            None | Some(Ok(Ok(()))) => return,
            Some(Ok(Err(error))) => error.to_string(),
            Some(Err(panic)) => panic_text(&*panic),
        };
        self.with_batch(|batch, sink| batch.fail_all(&message, sink));
    }

    fn with_batch<T>(&mut self, act: impl FnOnce(&mut Batch, &mut dyn FnMut(u64, Reply)) -> T) -> Option<T> {
        let mut batch = self.batch.take()?;
        let value = act(&mut batch, &mut |id, reply| self.write(Some(id), reply));
        self.batch = Some(batch);
        Some(value)
    }

    fn write(&mut self, id: Option<u64>, body: Reply) {
        let result =
            serde_json::to_vec(&ReplyLine { id, body }).map_err(std::io::Error::from).and_then(|mut line| {
                line.push(b'\n');
                self.out.write_all(&line)?;
                self.out.flush()
            });
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

fn error_reply(kind: ErrorKind, message: String) -> Reply {
    Reply::Error { kind, message }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string()));
    format!("internal error: {}", text.unwrap_or_else(|| "panic".into()))
}

fn open_model(load: &Load) -> Result<(Batch, Loaded), LoadError> {
    let began = Instant::now();
    let path = Path::new(&load.model_file);
    let gguf = Gguf::open(path)?;
    let tokenizer = Tokenizer::from_gguf(&gguf)?;
    let weights = Weights::load(&gguf, tokenizer.vocab())?;
    let parameters = weights.parameters();
    let digest = Sha256::digest(gguf.bytes());
    let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let slots = load.max_batch.max(1);
    let engine: Box<dyn Engine> = match load.device {
        Device::Cuda if !tch::Cuda::is_available() => return Err(EngineError::NoCuda.into()),
        Device::Cuda => Box::new(TorchEngine::new(weights, slots, tch::Device::Cuda(0))?),
        Device::Auto if tch::Cuda::is_available() => {
            Box::new(TorchEngine::new(weights, slots, tch::Device::Cuda(0))?)
        }
        Device::Auto | Device::Cpu => Box::new(CpuEngine::new(weights, slots, load.threads)?),
    };
    let loaded = Loaded {
        model: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        sha256,
        engine: engine.name().into(),
        parameters,
        context: engine.shape().context,
        vocab: engine.shape().vocab,
        ms: began.elapsed().as_millis() as u64,
    };
    Ok((Batch::new(engine, tokenizer, slots), loaded))
}

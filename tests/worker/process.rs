//! A worker process spoken to line by line, as any client would.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use planish::domain::{Prompt, Sampling};
use planish::model::worker_protocol::{
    Device, Generate, Load, Loaded, Reply, ReplyLine, Request, RequestLine, Sequence, WORKER_PROTOCOL,
};

pub const BINARY: &str = env!("CARGO_BIN_EXE_planish-torch");

/// The pinned demo model; these tests mean nothing without it.
pub fn model_file() -> String {
    let home = std::env::var_os("PLANISH_HOME")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/planish"));
    let file = home.join("models/SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(file.is_file(), "{} is missing: run `make setup` first", file.display());
    file.to_string_lossy().into_owned()
}

pub fn greedy(max_tokens: u32) -> Sampling {
    Sampling { max_tokens, temperature: Some(0.0), top_p: None, top_k: None, seed: None, stop: Vec::new() }
}

pub fn generate(prompts: Vec<Prompt>, sampling: Sampling) -> Generate {
    Generate { prompts, sampling, want_logprobs: true, top_logprobs: 0, stream: false }
}

pub fn text(prompt: &str) -> Prompt {
    Prompt::Text(prompt.into())
}

pub struct Worker {
    child: Child,
    pub stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
}

impl Worker {
    pub fn start() -> Self {
        let mut child = Command::new(BINARY).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut worker = Self { child, stdin, stdout, next_id: 1 };
        let hello = worker.ask(Request::Hello { proto: WORKER_PROTOCOL });
        assert!(matches!(hello, Reply::Hello { proto: WORKER_PROTOCOL, .. }), "{hello:?}");
        worker
    }

    pub fn loaded(max_batch: usize) -> Self {
        let mut worker = Self::start();
        let reply = worker.load(model_file(), max_batch);
        let Reply::Loaded(Loaded { engine, vocab, parameters, .. }) = reply else { panic!("{reply:?}") };
        assert_eq!((engine.as_str(), vocab, parameters), ("cpu-f32", 49152, 134_515_008));
        worker
    }

    pub fn load(&mut self, model_file: String, max_batch: usize) -> Reply {
        self.ask(Request::Load(Load { model_file, threads: 2, max_batch, device: Device::Cpu }))
    }

    pub fn write_raw(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).and_then(|()| stdin.write_all(b"\n")).unwrap();
    }

    pub fn send(&mut self, body: Request) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.write_raw(&serde_json::to_vec(&RequestLine { id, body }).unwrap());
        id
    }

    /// The next line; `None` when the worker has ended.
    pub fn read(&mut self) -> Option<ReplyLine> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line).unwrap() {
            0 => None,
            _ => Some(serde_json::from_str(&line).unwrap()),
        }
    }

    pub fn next(&mut self) -> (u64, Reply) {
        let line = self.read().unwrap();
        (line.id.unwrap(), line.body)
    }

    pub fn ask(&mut self, body: Request) -> Reply {
        let id = self.send(body);
        let (answered, reply) = self.next();
        assert_eq!(answered, id, "{reply:?}");
        reply
    }

    pub fn generate(&mut self, request: Generate) -> Vec<Sequence> {
        match self.ask(Request::Generate(request)) {
            Reply::Generated { sequences, .. } => sequences,
            other => panic!("{other:?}"),
        }
    }

    pub fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

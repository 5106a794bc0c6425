//! Every finished call on disk, content-addressed, so that no resumed run repeats one and any run can be replayed
//! without its models. Must not decide what a call means, nor write anything unredacted.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde::{Deserialize, Serialize};

use super::redact::Redactor;
use super::{ChatModel, LiveSink, ModelError};
use crate::domain::{Asks, ChatReply, ChatRequest, Delivery, EffectKey, Prompt, Role, Sampling, Workspace};

/// A folder given to `replay_from` may come from anywhere: a record never unpacks to more than this.
const MAX_RECORD_BYTES: u64 = 256 << 20;

/// One recorded call: `<first 2 digits>/<fingerprint>.json.zst`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    pub key: EffectKey,
    /// Label of the model that answered.
    pub label: String,
    pub role: Role,
    pub stage: String,
    pub request: RecordedRequest,
    pub reply: ChatReply,
}

/// What went over the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedRequest {
    pub prompt: Prompt,
    pub sampling: Sampling,
    #[serde(default)]
    pub asks: Asks,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Box<Workspace>>,
}

/// The labels of the models that answered in a run, newest last, so that a replay needs no model to name them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Labels {
    #[serde(default)]
    target: Vec<String>,
    #[serde(default)]
    optimizer: Vec<String>,
    #[serde(default)]
    judge: Vec<String>,
}

impl Labels {
    const FILE: &str = "labels.json";

    fn of(&mut self, role: Role) -> &mut Vec<String> {
        match role {
            Role::Target => &mut self.target,
            Role::Optimizer => &mut self.optimizer,
            Role::Judge => &mut self.judge,
        }
    }

    fn read(dir: &Path) -> Result<Self, String> {
        let file = dir.join(Self::FILE);
        match std::fs::read(&file) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", file.display()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(format!("{}: {error}", file.display())),
        }
    }
}

/// The `calls` folder of a run.
#[derive(Clone, Debug)]
pub struct CallStore {
    dir: PathBuf,
}

impl CallStore {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    fn file(&self, fingerprint: &str) -> PathBuf {
        let folder = fingerprint.get(..2).unwrap_or("xx");
        self.dir.join(folder).join(format!("{fingerprint}.json.zst"))
    }

    /// The record of a call; a missing, torn or foreign file is no record.
    pub fn get(&self, key: &EffectKey) -> Option<CallRecord> {
        let packed = std::fs::File::open(self.file(&key.fingerprint)).ok()?;
        let mut json = Vec::new();
        StreamingDecoder::new(packed).ok()?.take(MAX_RECORD_BYTES).read_to_end(&mut json).ok()?;
        let record: CallRecord = serde_json::from_slice(&json).ok()?;
        (record.key.fingerprint == key.fingerprint).then_some(record)
    }

    /// Writes a record, redacted. Not synced: after a power cut a torn file counts as absent and the call is made again.
    ///
    /// # Errors
    /// Any failure to write, with the file.
    pub fn put(&self, record: &CallRecord, redactor: &Redactor) -> Result<(), ModelError> {
        let mut value = serde_json::to_value(record).map_err(|error| store_error(&self.dir, &error))?;
        redactor.redact_json(&mut value);
        let json = value.to_string();
        let packed = compress_to_vec(json.as_bytes(), CompressionLevel::Fastest);
        write_atomic(&self.file(&record.key.fingerprint), &packed)
    }

    fn add_label(&self, role: Role, label: &str) -> Result<(), ModelError> {
        let mut labels = Labels::read(&self.dir).map_err(|message| ModelError::Store { message })?;
        if labels.of(role).last().is_some_and(|last| last == label) {
            return Ok(());
        }
        labels.of(role).retain(|known| known != label);
        labels.of(role).push(label.to_owned());
        let json = serde_json::to_vec_pretty(&labels).map_err(|error| store_error(&self.dir, &error))?;
        write_atomic(&self.dir.join(Labels::FILE), &json)
    }
}

fn store_error(path: &Path, error: &dyn std::fmt::Display) -> ModelError {
    ModelError::Store { message: format!("{}: {error}", path.display()) }
}

fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), ModelError> {
    let write = || {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut temporary = match tempfile::NamedTempFile::new_in(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::fs::create_dir_all(folder)?;
                tempfile::NamedTempFile::new_in(folder)?
            }
            temporary => temporary?,
        };
        temporary.write_all(bytes)?;
        temporary.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error: std::io::Error| store_error(path, &error))
}

/// A model whose finished calls are taken from disk, and whose new ones are put there.
pub struct Recorded<M> {
    inner: M,
    store: CallStore,
    redactor: Arc<Redactor>,
}

impl<M: ChatModel> Recorded<M> {
    /// # Errors
    /// The folder cannot be written.
    pub fn new(inner: M, role: Role, store: CallStore, redactor: Arc<Redactor>) -> Result<Self, ModelError> {
        store.add_label(role, inner.label())?;
        Ok(Self { inner, store, redactor })
    }
}

impl<M: ChatModel> ChatModel for Recorded<M> {
    fn label(&self) -> &str {
        self.inner.label()
    }

    fn delivery(&self) -> Delivery {
        self.inner.delivery()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let key = request.key(self.inner.label());
            if let Some(record) = find(&self.store, vec![key.clone()]).await? {
                return Ok(record.reply);
            }
            let mut reply = self.inner.chat(request, live).await?;
            // What the run sees now must be what a resumed run reads from disk.
            reply = redacted(&reply, &self.redactor)?;
            let record = CallRecord {
                key,
                label: self.inner.label().to_owned(),
                role: request.role,
                stage: request.stage.clone(),
                request: RecordedRequest {
                    prompt: request.prompt.clone(),
                    sampling: request.sampling.clone(),
                    asks: request.asks.clone(),
                    workspace: request.workspace.clone(),
                },
                reply,
            };
            let (store, redactor) = (self.store.clone(), Arc::clone(&self.redactor));
            blocking(move || store.put(&record, &redactor).map(|()| record.reply)).await?
        })
    }
}

/// Recorded calls and nothing else.
pub struct Replay {
    store: CallStore,
    /// Newest first.
    labels: Vec<String>,
}

impl Replay {
    /// # Errors
    /// The folder holds no recording for the role.
    pub fn open(store: CallStore, role: Role) -> Result<Self, ModelError> {
        let mut labels = Labels::read(&store.dir).map_err(|message| ModelError::Store { message })?;
        let mut labels = std::mem::take(labels.of(role));
        labels.reverse();
        if labels.is_empty() {
            let why = format!("no recorded calls of the {} (expected {})", role.name(), Labels::FILE);
            return Err(store_error(&store.dir, &why));
        }
        Ok(Self { store, labels })
    }
}

impl ChatModel for Replay {
    /// The label of the recorded model, so that fingerprints are those of the recorded run.
    fn label(&self) -> &str {
        self.labels.first().map_or("", String::as_str)
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let keys: Vec<EffectKey> = self.labels.iter().map(|label| request.key(label)).collect();
            let fingerprint = keys.first().map(|key| key.fingerprint.clone()).unwrap_or_default();
            match find(&self.store, keys).await? {
                Some(record) => Ok(record.reply),
                None => Err(ModelError::NotRecorded { path: request.path.clone(), fingerprint }),
            }
        })
    }
}

fn redacted(reply: &ChatReply, redactor: &Redactor) -> Result<ChatReply, ModelError> {
    let store = |error: serde_json::Error| ModelError::Store { message: error.to_string() };
    let mut value = serde_json::to_value(reply).map_err(store)?;
    redactor.redact_json(&mut value);
    serde_json::from_value(value).map_err(store)
}

async fn find(store: &CallStore, keys: Vec<EffectKey>) -> Result<Option<CallRecord>, ModelError> {
    let store = store.clone();
    blocking(move || keys.iter().find_map(|key| store.get(key))).await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ModelError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ModelError::Cancelled)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;

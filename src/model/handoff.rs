//! A person or another program as a model: each prompt becomes a file, and the reply is what appears in the file beside it.
//! Owns the form of those files. A call is paid for when its answer is read; must not retry, and waits as long as the
//! budget of wall time lasts.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;

use super::budget::Budget;
use super::lessons::Notice;
use super::redact::Redactor;
use super::{ChatModel, LiveSink, ModelError, call_item};
use crate::domain::{ChatReply, ChatRequest, FinishReason, Message, Part, Prompt, Rung, Usage};
use crate::event::Live;

/// Besides the system's own word, for file systems that say none.
const LOOK: Duration = Duration::from_millis(500);
const MAX_ANSWER_BYTES: u64 = 8 << 20;
const PROMPT: &str = ".prompt.md";
const ANSWER: &str = ".answer.md";

/// Files of one role's calls. Named by fingerprint, so that a resumed run finds what was answered meanwhile.
pub struct Handoff {
    folder: PathBuf,
    label: String,
    redactor: Arc<Redactor>,
    notice: Notice,
    budget: Arc<Budget>,
    waiting: AtomicUsize,
    changed: watch::Receiver<()>,
    /// Stops watching when dropped.
    _watcher: Option<RecommendedWatcher>,
}

impl Handoff {
    /// # Errors
    /// The folder cannot be made.
    pub fn new(
        folder: PathBuf,
        model: &str,
        redactor: Arc<Redactor>,
        notice: Notice,
        budget: Arc<Budget>,
    ) -> Result<Self, ModelError> {
        std::fs::create_dir_all(&folder).map_err(|error| store_error(&folder, &error))?;
        let (tell, changed) = watch::channel(());
        // Without it (a sandbox, too many watches) the looks have to do.
        let watcher = notify::recommended_watcher(move |_| {
            // Nobody waits after the last receiver has gone.
            let _ = tell.send(());
        });
        let watcher = watcher.ok().and_then(|mut watcher| {
            watcher.watch(&folder, RecursiveMode::NonRecursive).ok().map(|()| watcher)
        });
        let label = if model.is_empty() { "handoff".to_owned() } else { format!("handoff {model}") };
        Ok(Self {
            folder,
            label,
            redactor,
            notice,
            budget,
            waiting: AtomicUsize::new(0),
            changed,
            _watcher: watcher,
        })
    }

    async fn answer(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        // Nobody shall work for a run that may not take the answer. While people think nothing is held: others' calls
        // would wait for it, and a prompt that nobody answered has used nothing.
        self.budget.allows(request, Usage::ONE_CALL)?;
        let started = Instant::now();
        let fingerprint = request.key(&self.label).fingerprint;
        let prompt = self.folder.join(format!("{fingerprint}{PROMPT}"));
        let answer = self.folder.join(format!("{fingerprint}{ANSWER}"));
        let mut changed = self.changed.clone();
        let text = match read(&answer).await? {
            Some(text) => text,
            None => {
                let text = self.redactor.redact(&written(request, &fingerprint));
                write_atomic(&prompt, &text).map_err(|error| store_error(&prompt, &error))?;
                let _counted = self.wait_begins();
                loop {
                    tokio::select! {
                        told = changed.changed() => if told.is_err() { tokio::time::sleep(LOOK).await },
                        () = tokio::time::sleep(LOOK) => {}
                    }
                    if let Some(text) = read(&answer).await? {
                        break text;
                    }
                }
            }
        };
        self.budget.reserve(request, Usage::ONE_CALL).await?.answered(Usage::ONE_CALL);
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let rung = request.asks.output.as_ref().map(|_| Rung::Text);
        Ok(ChatReply { rung, ..ChatReply::of_text(text.trim(), FinishReason::Stop, Usage::ONE_CALL, ms) })
    }

    fn wait_begins(&self) -> Waiting<'_> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            (self.notice)(format!(
                "waiting for answers in {}: each NAME{PROMPT} wants a NAME{ANSWER}",
                self.folder.display()
            ));
        }
        Waiting(&self.waiting)
    }
}

/// One call that waits, until dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ChatModel for Handoff {
    fn label(&self) -> &str {
        &self.label
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let (path, item) = (request.path.clone(), call_item(&request.path).to_owned());
            live(Live::CallStarted { path, item, attempt: 1 });
            let result = tokio::select! {
                biased;
                result = self.answer(request) => result,
                stop = self.budget.out_of_time() => Err(stop),
            };
            let ms = result.as_ref().map_or(0, |reply| reply.ms);
            live(Live::CallFinished { path: request.path.clone(), ok: result.is_ok(), tokens: 0, ms });
            result
        })
    }
}

/// Prompts in a folder that nobody has answered yet.
pub fn unanswered(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let waits = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let answer = folder.join(format!("{}{ANSWER}", name.strip_suffix(PROMPT)?));
        let is_there = std::fs::metadata(answer).is_ok_and(|meta| meta.len() > 0);
        (!is_there).then_some(())
    };
    entries.flatten().filter_map(waits).count()
}

/// `None`: nothing there yet, or nothing in it.
async fn read(file: &Path) -> Result<Option<String>, ModelError> {
    let meta = match tokio::fs::metadata(file).await {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(store_error(file, &error)),
    };
    if meta.len() > MAX_ANSWER_BYTES {
        return Err(store_error(file, &format!("larger than {} MiB", MAX_ANSWER_BYTES >> 20)));
    }
    let bytes = tokio::fs::read(file).await.map_err(|error| store_error(file, &error))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((!text.trim().is_empty()).then_some(text))
}

fn store_error(path: &Path, error: &dyn std::fmt::Display) -> ModelError {
    ModelError::Store { message: format!("{}: {error}", path.display()) }
}

fn write_atomic(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A prompt as people read it.
fn written(request: &ChatRequest, fingerprint: &str) -> String {
    let mut out = String::new();
    // JSON strings are YAML strings.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let _ = write!(
        out,
        "---\npath: {}\nrole: {}\nstage: {}\nanswer: {fingerprint}{ANSWER}\n---\n",
        quoted(&request.path),
        request.role.name(),
        quoted(&request.stage)
    );
    match &request.prompt {
        Prompt::Text(text) => {
            let _ = write!(out, "\n# continue this text\n\n{text}\n");
        }
        Prompt::Chat(messages) => messages.iter().for_each(|message| write_message(&mut out, message)),
    }
    if let Some(output) = &request.asks.output {
        let _ =
            write!(out, "\n# form of the answer\n\nOne JSON object of this schema:\n\n{}\n", output.schema);
    }
    out
}

fn write_message(out: &mut String, message: &Message) {
    let _ = write!(out, "\n# {}\n", message.role.name());
    for part in message.content.parts() {
        let _ = match part {
            Part::Text(text) => write!(out, "\n{text}\n"),
            Part::Thinking(_) => Ok(()),
            Part::Image(image) => write!(out, "\n[an image, {}]\n", image.media_type),
            Part::ToolCall(call) => write!(out, "\n[call of {}: {}]\n", call.name, call.arguments),
            Part::ToolResult(result) => write!(out, "\n[result]\n{}\n", result.text),
        };
    }
}

#[cfg(test)]
#[path = "handoff_tests.rs"]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::domain::{Asks, FinishReason, Usage};

/// Answers with the number of the call.
struct Counting(AtomicUsize);

impl ChatModel for Counting {
    fn label(&self) -> &str {
        "counting"
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let n = self.0.fetch_add(1, Ordering::Relaxed);
            if request.path == "bad" {
                return Err(ModelError::Cancelled);
            }
            let usage = Usage { calls: 1, prompt_tokens: 3, completion_tokens: 4, ..Usage::default() };
            Ok(ChatReply::of_text(format!("reply {n} with supersecret"), FinishReason::Stop, usage, 5))
        })
    }
}

fn request(path: &str) -> ChatRequest {
    ChatRequest {
        path: path.into(),
        role: Role::Target,
        stage: "rollout".into(),
        prompt: Prompt::Text("my supersecret task".into()),
        sampling: Sampling {
            max_tokens: 8,
            temperature: Some(0.0),
            top_p: None,
            top_k: None,
            seed: Some(1),
            stop: vec!["\n".into()],
        },
        asks: Asks::default(),
        workspace: None,
        brief: None,
    }
}

fn live() -> LiveSink {
    Arc::new(|_| {})
}

fn recorded(dir: &Path) -> Recorded<Counting> {
    let redactor = Arc::new(Redactor::new(["supersecret".to_owned()]));
    Recorded::new(Counting(AtomicUsize::new(0)), Role::Target, CallStore::new(dir), redactor).unwrap()
}

#[tokio::test]
async fn a_finished_call_is_never_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let first = recorded(dir.path()).chat(&request("a"), &live()).await.unwrap();
    let resumed = recorded(dir.path());
    assert_eq!(resumed.chat(&request("a"), &live()).await.unwrap(), first);
    assert_eq!(resumed.inner.0.load(Ordering::Relaxed), 0);
    resumed.chat(&request("b"), &live()).await.unwrap();
    assert_eq!(resumed.inner.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn failures_are_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let model = recorded(dir.path());
    for _ in 0..2 {
        assert_eq!(model.chat(&request("bad"), &live()).await, Err(ModelError::Cancelled));
    }
    assert_eq!(model.inner.0.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_torn_file_counts_as_absent_and_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let model = recorded(dir.path());
    model.chat(&request("a"), &live()).await.unwrap();
    let key = request("a").key("counting");
    let file = model.store.file(&key.fingerprint);
    let whole = std::fs::read(&file).unwrap();
    for length in [0, 3, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        let reply = model.chat(&request("a"), &live()).await.unwrap();
        assert!(!reply.text.starts_with("reply 0"), "{length}");
        assert_eq!(model.store.get(&key).unwrap().reply, reply);
    }
}

#[tokio::test]
async fn secrets_reach_neither_the_file_nor_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let model = recorded(dir.path());
    let reply = model.chat(&request("a"), &live()).await.unwrap();
    assert_eq!(reply.text, "reply 0 with [redacted]");
    let record = model.store.get(&request("a").key("counting")).unwrap();
    assert_eq!(record.request.prompt, Prompt::Text("my [redacted] task".into()));
    assert_eq!((record.label.as_str(), record.stage.as_str()), ("counting", "rollout"));
    assert_eq!(record.reply, reply);
}

#[tokio::test]
async fn replay_answers_from_disk_and_never_calls() {
    let dir = tempfile::tempdir().unwrap();
    let reply = recorded(dir.path()).chat(&request("a"), &live()).await.unwrap();
    let replay = Replay::open(CallStore::new(dir.path()), Role::Target).unwrap();
    assert_eq!(replay.label(), "counting");
    assert_eq!(replay.chat(&request("a"), &live()).await.unwrap(), reply);
    match replay.chat(&request("b"), &live()).await {
        Err(ModelError::NotRecorded { path, fingerprint }) => {
            assert_eq!((path.as_str(), fingerprint.len()), ("b", 64));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn replay_knows_older_labels_and_refuses_an_empty_folder() {
    let dir = tempfile::tempdir().unwrap();
    let store = CallStore::new(dir.path());
    recorded(dir.path()).chat(&request("a"), &live()).await.unwrap();
    store.add_label(Role::Target, "newer").unwrap();
    let replay = Replay::open(store.clone(), Role::Target).unwrap();
    assert_eq!(replay.label(), "newer");
    assert!(replay.chat(&request("a"), &live()).await.is_ok());
    let Err(ModelError::Store { message }) = Replay::open(store, Role::Optimizer) else { panic!("opened") };
    assert!(message.contains("no recorded calls of the optimizer"), "{message}");
}

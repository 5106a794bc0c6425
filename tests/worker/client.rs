//! The real worker through [`LocalModel`]: crash, restart, retry, likelihood.

use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use planish::domain::{Asks, ChatRequest, FinishReason, Role};
use planish::event::Live;
use planish::model::local::{LocalModel, LocalSettings, LogSink};
use planish::model::{ChatModel, Likelihood, LiveSink, ModelError};

use crate::process::{BINARY, greedy, model_file, text};

fn settings() -> LocalSettings {
    LocalSettings { command: vec![BINARY.into()], model_file: model_file(), threads: 2, max_batch: 8 }
}

fn request(path: &str, prompt: &str, max_tokens: u32) -> ChatRequest {
    ChatRequest {
        path: path.into(),
        role: Role::Target,
        stage: "rollout".into(),
        prompt: text(prompt),
        sampling: greedy(max_tokens),
        asks: Asks::default(),
        workspace: None,
        brief: None,
    }
}

#[tokio::test]
async fn a_killed_worker_is_reported_restarted_and_asked_again() {
    let logs: Arc<Mutex<Vec<String>>> = Arc::default();
    let store = Arc::clone(&logs);
    let log: LogSink = Arc::new(move |_, text| store.lock().unwrap().push(text));
    let model = LocalModel::start(settings(), log).await.unwrap();
    assert!(
        model.label().starts_with("local:SmolLM2-135M-Instruct.Q4_1.gguf#b179c9523d0e:cpu-f32"),
        "{}",
        model.label()
    );
    let silent: LiveSink = Arc::new(|_| {});
    let calls: Vec<ChatRequest> =
        (0..4).map(|i| request(&format!("call/{i}"), &format!("{i}, {},", i + 1), 20)).collect();
    let undisturbed = join_all(calls.iter().map(|call| model.chat(call, &silent))).await;

    let first_pid = model.pid();
    let killed = Mutex::new(false);
    let retried: Arc<Mutex<Vec<String>>> = Arc::default();
    let retries = Arc::clone(&retried);
    // Kill -9 in the middle: at the first delta.
    let live: LiveSink = Arc::new(move |news| match news {
        Live::CallDelta { .. } => {
            let mut killed = killed.lock().unwrap();
            if !std::mem::replace(&mut *killed, true) {
                let pid = rustix::process::Pid::from_raw(first_pid as i32).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            }
        }
        Live::CallRetrying { path, error, .. } => {
            assert!(error.contains("signal: 9"), "{error}");
            retries.lock().unwrap().push(path);
        }
        Live::CallStarted { .. } | Live::CallFinished { .. } => {}
        other @ (Live::Throughput { .. } | Live::Machine(_)) => panic!("{other:?}"),
    });
    let disturbed = join_all(calls.iter().map(|call| model.chat(call, &live))).await;
    for (undisturbed, disturbed) in undisturbed.iter().zip(&disturbed) {
        let (undisturbed, disturbed) = (undisturbed.as_ref().unwrap(), disturbed.as_ref().unwrap());
        assert_eq!((&undisturbed.text, undisturbed.usage), (&disturbed.text, disturbed.usage));
    }
    assert_ne!(model.pid(), first_pid);
    assert!(!retried.lock().unwrap().is_empty());
    let logs = logs.lock().unwrap().join("\n");
    assert!(logs.contains("restarting it (1 of 3)") && logs.contains("runs again"), "{logs}");
}

#[tokio::test]
async fn likelihood_prefers_the_right_answer_and_an_empty_reply_is_a_reply() {
    let model = LocalModel::start(settings(), Arc::new(|_, _| {})).await.unwrap();
    let prompt = "The capital of France is".to_string();
    let pairs = [(prompt.clone(), " Paris".to_string()), (prompt, " cheese".to_string())];
    let scores = model.score(&pairs).await.unwrap();
    assert!(scores[0].0 > scores[1].0 && scores.iter().all(|score| score.1 >= 1), "{scores:?}");
    assert_eq!(scores, model.score(&pairs).await.unwrap());

    let silent: LiveSink = Arc::new(|_| {});
    let mut call = request("call", "1, 2, 3,", 4);
    call.sampling.stop = vec![" ".into()];
    let reply = model.chat(&call, &silent).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish), ("", FinishReason::Stop));
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_is_explained() {
    let settings = LocalSettings { model_file: "no/such.gguf".into(), ..settings() };
    let error = LocalModel::start(settings, Arc::new(|_, _| {})).await.err().unwrap();
    assert!(matches!(&error, ModelError::Worker { message } if message.contains("no/such.gguf")), "{error}");
}

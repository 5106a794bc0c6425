//! The client against stand-in workers written as shell scripts; the real worker is tested in `tests/worker`.

use std::sync::Mutex;

use super::*;
use crate::domain::{Asks, Role, Sampling};

/// Answers hello and load, then runs `on_generate` for every generate line. `$n` counts the starts, `$dir` is scratch.
fn script(dir: &Path, on_generate: &str) -> LocalSettings {
    let script = format!(
        r#"dir={dir}
n=$(cat "$dir/starts" 2>/dev/null || echo 0); n=$((n + 1)); echo $n >"$dir/starts"
while read -r line; do
  echo "$line" >>"$dir/lines"
  case $line in
    *'"hello"'*) echo '{{"id":1,"hello":{{"proto":1,"version":"0","pid":'$$'}}}}' ;;
    *'"load"'*) echo '{{"id":2,"loaded":{{"model":"m.gguf","sha256":"'${{sha:-aabbccddeeff00112233}}'","engine":"cpu-f32","parameters":1,"context":64,"vocab":8,"ms":1}}}}' ;;
    *'"generate"'*) id=${{line#*:}}; id=${{id%%,*}}; {on_generate} ;;
  esac
done"#,
        dir = dir.display()
    );
    LocalSettings {
        command: vec!["sh".into(), "-c".into(), script],
        model_file: "m.gguf".into(),
        threads: 1,
        max_batch: 1,
    }
}

const ANSWER: &str = r#"echo '{"id":'$id',"delta":{"index":0,"text":"he"}}'; echo '{"id":'$id',"generated":{"sequences":[{"text":"hey","tokens":[1,2],"finish":"stop","prompt_tokens":5,"cached_tokens":3}],"timings":{"queued_ms":0,"total_ms":1}}}'"#;

fn request() -> ChatRequest {
    ChatRequest {
        path: "e01/s001/rollout/a#0".into(),
        role: Role::Target,
        stage: "rollout".into(),
        prompt: Prompt::Text("say".into()),
        sampling: Sampling {
            max_tokens: 4,
            temperature: None,
            top_p: None,
            top_k: None,
            seed: None,
            stop: Vec::new(),
        },
        asks: Asks::default(),
        workspace: None,
        brief: None,
    }
}

type Seen<T> = Arc<Mutex<Vec<T>>>;

fn sinks() -> (LogSink, Seen<String>, LiveSink, Seen<Live>) {
    let logs: Seen<String> = Arc::default();
    let lives: Seen<Live> = Arc::default();
    let (log_store, live_store) = (Arc::clone(&logs), Arc::clone(&lives));
    let log: LogSink = Arc::new(move |_, text| log_store.lock().unwrap().push(text));
    let live: LiveSink = Arc::new(move |news| live_store.lock().unwrap().push(news));
    (log, logs, live, lives)
}

#[tokio::test]
async fn a_reply_is_mapped_and_its_deltas_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _, live, lives) = sinks();
    let model = LocalModel::start(script(dir.path(), ANSWER), log).await.unwrap();
    assert_eq!(model.label(), "local:m.gguf#aabbccddeeff:cpu-f32");
    let reply = model.chat(&request(), &live).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish), ("hey", FinishReason::Stop));
    assert_eq!((reply.usage.prompt_tokens, reply.usage.completion_tokens), (5, 2));
    let delta = Live::CallDelta { path: request().path, text: "he".into() };
    let lives = lives.lock().unwrap();
    let started = Live::CallStarted { path: request().path, item: "a".into(), attempt: 1 };
    assert_eq!(lives[..2], [started, delta]);
    assert!(matches!(lives[2..], [Live::CallFinished { ok: true, tokens: 2, .. }]), "{lives:?}");
    let sent = std::fs::read_to_string(dir.path().join("lines")).unwrap();
    assert!(sent.contains(&format!("\"seed\":{}", path_seed(&request().path))), "{sent}");
}

#[tokio::test]
async fn a_worker_that_dies_is_restarted_and_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let (log, logs, live, lives) = sinks();
    let on_generate = format!("if [ $n = 1 ]; then echo out of memory >&2; exit 9; fi; {ANSWER}");
    let model = LocalModel::start(script(dir.path(), &on_generate), log).await.unwrap();
    let before = model.pid();
    let reply = model.chat(&request(), &live).await.unwrap();
    assert_eq!(reply.text, "hey");
    assert_ne!(model.pid(), before);
    let logs = logs.lock().unwrap().join("\n");
    assert!(logs.contains("exit status: 9") && logs.contains("out of memory"), "{logs}");
    assert!(matches!(&lives.lock().unwrap()[1], Live::CallRetrying { path, .. } if *path == request().path));
}

#[tokio::test]
async fn three_restarts_without_a_finished_request_are_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _, live, _) = sinks();
    let model = LocalModel::start(script(dir.path(), "exit 9"), log).await.unwrap();
    for _ in 0..2 {
        let error = model.chat(&request(), &live).await.unwrap_err();
        assert!(
            matches!(&error, ModelError::Worker { message } if message.contains("3 restarts")),
            "{error}"
        );
        assert!(error.ends_run());
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("starts")).unwrap().trim(), "4");
}

#[tokio::test]
async fn finished_requests_reset_the_count_of_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _, live, _) = sinks();
    // Each start answers one request and dies at its second.
    let on_generate = format!("if [ -n \"$done\" ]; then exit 9; fi; done=1; {ANSWER}");
    let model = LocalModel::start(script(dir.path(), &on_generate), log).await.unwrap();
    for _ in 0..6 {
        assert_eq!(model.chat(&request(), &live).await.unwrap().text, "hey");
    }
}

#[tokio::test]
async fn another_model_file_after_a_restart_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _, live, _) = sinks();
    let mut settings = script(dir.path(), "exit 9");
    settings.command[2] =
        settings.command[2].replace("while read", "[ $n = 1 ] || sha=00000000000000000000\nwhile read");
    let model = LocalModel::start(settings, log).await.unwrap();
    let error = model.chat(&request(), &live).await.unwrap_err().to_string();
    assert!(error.contains("has changed"), "{error}");
}

#[tokio::test]
async fn a_failed_request_is_repeated_and_a_bad_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _, live, _) = sinks();
    let fail = r#"echo '{"id":'$id',"error":{"kind":"failed","message":"boom"}}'"#;
    let model = LocalModel::start(script(dir.path(), fail), log.clone()).await.unwrap();
    let error = model.chat(&request(), &live).await.unwrap_err();
    assert_eq!(error, ModelError::NoReply { host: WORKER.into(), attempts: 3, message: "boom".into() });
    let bad = r#"echo '{"id":'$id',"error":{"kind":"bad_request","message":"too long"}}'"#;
    let model = LocalModel::start(script(dir.path(), bad), log).await.unwrap();
    let error = model.chat(&request(), &live).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 400, .. }) && !error.ends_run());
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_in_the_worker() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _, live, _) = sinks();
    // The first generate gets a delta and no end; a later one is answered.
    let on_generate = format!(
        "if [ -z \"$first\" ]; then first=1; echo '{{\"id\":'$id',\"delta\":{{\"index\":0,\"text\":\"x\"}}}}'; else {ANSWER}; fi"
    );
    let model = LocalModel::start(script(dir.path(), &on_generate), log).await.unwrap();
    let (started, first_delta) = oneshot::channel();
    let started = Mutex::new(Some(started));
    let signal: LiveSink = Arc::new(move |_| {
        if let Some(started) = started.lock().unwrap().take() {
            started.send(()).unwrap();
        }
    });
    let call = request();
    tokio::select! {
        _ = model.chat(&call, &signal) => panic!("it was never answered"),
        _ = first_delta => {}
    }
    model.chat(&request(), &live).await.unwrap();
    let sent = std::fs::read_to_string(dir.path().join("lines")).unwrap();
    assert!(sent.contains(r#""cancel":{"target":3}"#), "{sent}");
}

#[tokio::test]
async fn a_worker_that_cannot_start_is_explained() {
    let (log, ..) = sinks();
    let settings = |command: &[&str]| LocalSettings {
        command: command.iter().map(|part| part.to_string()).collect(),
        model_file: "m".into(),
        threads: 1,
        max_batch: 1,
    };
    let missing =
        LocalModel::start(settings(&["no-such-worker"]), log.clone()).await.err().unwrap().to_string();
    assert!(missing.contains("no-such-worker") && missing.contains("make worker"), "{missing}");
    let dead = LocalModel::start(settings(&["sh", "-c", "echo libtorch.so not found >&2; exit 127"]), log);
    let dead = dead.await.err().unwrap().to_string();
    assert!(dead.contains("libtorch.so not found") && dead.contains("127"), "{dead}");
}

#[test]
fn the_demo_model_lies_under_a_named_home() {
    assert_eq!(planish_home(Some("/a".into()), Some("/b".into())).unwrap(), Path::new("/a"));
    assert_eq!(planish_home(None, Some("/b".into())).unwrap(), Path::new("/b/.cache/planish"));
    let told = planish_home(None, None).unwrap_err().to_string();
    assert!(told.contains("set one of them") && told.contains("model_file"), "{told}");
}

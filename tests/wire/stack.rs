//! The layers around a model, built from configuration: keys, recording, replay, budget.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use planish::config::{Backend, BudgetConfig, ModelConfig, RoleConfig};
use planish::domain::{ChatReply, ChatRequest, FinishReason, Prompt, Role, Usage};
use planish::model::mock::{MockServer, Script};
use planish::model::{
    Budget, ChatModel, Likelihood, LiveSink, LocalBackend, ModelError, ModelStack, SetupError, StackParts,
};

use crate::support::{KEY, chat, deaf, request, sequence, serve};

fn role(server: &MockServer) -> RoleConfig {
    RoleConfig { model: "mock-model".into(), base_url: server.base_url(), ..RoleConfig::default() }
}

fn config(server: &MockServer) -> ModelConfig {
    ModelConfig { target: role(server), optimizer: role(server), ..ModelConfig::default() }
}

fn budget(max_calls: u64, max_tokens: u64) -> Arc<Budget> {
    let limits = BudgetConfig { max_calls, max_tokens, ..BudgetConfig::default() };
    Arc::new(Budget::new(limits, Usage::default(), 0.0))
}

/// Builds with an environment that holds `TEST_KEY` only.
async fn build(config: &ModelConfig, dir: &Path, budget: Arc<Budget>) -> Result<ModelStack, SetupError> {
    build_with(config, dir, budget, None).await
}

async fn build_with(
    config: &ModelConfig,
    dir: &Path,
    budget: Arc<Budget>,
    local: Option<LocalBackend>,
) -> Result<ModelStack, SetupError> {
    let env = |name: &str| (name == "TEST_KEY").then(|| KEY.to_owned());
    let calls_dir = dir.join("calls");
    ModelStack::build(&StackParts {
        config,
        base_dir: dir,
        calls_dir: &calls_dir,
        budget,
        local,
        env: &env,
        roles: &Role::ALL[..2],
        notice: Arc::new(|_| ()),
    })
    .await
}

async fn refusal(config: &ModelConfig, dir: &Path) -> String {
    match build(config, dir, budget(0, 0)).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("built"),
    }
}

fn optimizer_call(content: &str) -> ChatRequest {
    ChatRequest { role: Role::Optimizer, stage: "analyst".into(), ..chat(content) }
}

#[tokio::test]
async fn a_run_resumed_or_replayed_repeats_no_call() {
    let dir = tempfile::tempdir().unwrap();
    let server = sequence(["first".into(), "second".into(), "never".into()]).await;
    let config = config(&server);
    let stack = build(&config, dir.path(), budget(0, 0)).await.unwrap();
    let first = stack.target.chat(&chat("x"), &deaf()).await.unwrap();
    let second = stack.optimizer.as_ref().unwrap().chat(&optimizer_call("y"), &deaf()).await.unwrap();

    let resumed = build(&config, dir.path(), budget(0, 0)).await.unwrap();
    assert_eq!(resumed.target.chat(&chat("x"), &deaf()).await.unwrap(), first);

    let mut offline = config.clone();
    offline.replay_from = "calls".into();
    offline.target.api_key_env = "NOT_SET".into();
    let replay = build(&offline, dir.path(), budget(0, 0)).await.unwrap();
    assert_eq!(replay.target.label(), stack.target.label());
    assert_eq!(replay.target.chat(&chat("x"), &deaf()).await.unwrap(), first);
    assert_eq!(replay.optimizer.as_ref().unwrap().chat(&optimizer_call("y"), &deaf()).await.unwrap(), second);
    let error = replay.target.chat(&chat("z"), &deaf()).await.unwrap_err();
    assert!(matches!(error, ModelError::NotRecorded { .. }), "{error:?}");
    assert!(error.ends_run());
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn the_budget_is_shared_and_recorded_calls_cost_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = sequence(["fine".into()]).await;
    let budget = budget(2, 0);
    let stack = build(&config(&server), dir.path(), Arc::clone(&budget)).await.unwrap();
    stack.target.chat(&chat("a"), &deaf()).await.unwrap();
    stack.optimizer.as_ref().unwrap().chat(&optimizer_call("b"), &deaf()).await.unwrap();
    stack.target.chat(&chat("a"), &deaf()).await.unwrap();
    let error = stack.target.chat(&chat("c"), &deaf()).await.unwrap_err();
    assert!(error.to_string().contains("2 calls used, budget.max_calls = 2"), "{error}");
    assert_eq!((server.count(), budget.used().0.calls), (2, 2));
}

#[tokio::test]
async fn tokens_are_charged_even_when_the_server_reports_none() {
    for no_usage in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let server = serve(Script { no_usage, ..Script::sequence(["four".into()]) }).await;
        let budget = budget(0, 100);
        let stack = build(&config(&server), dir.path(), Arc::clone(&budget)).await.unwrap();
        stack.target.chat(&request(Prompt::Text("eightchr".into())), &deaf()).await.unwrap();
        assert_eq!(budget.used().0.tokens(), 3);
        let error = stack
            .target
            .chat(&request(Prompt::Text("so long that it does not fit".into())), &deaf())
            .await
            .unwrap_err();
        assert!(error.to_string().contains("3 tokens used, budget.max_tokens = 100"), "{error}");
    }
}

#[tokio::test]
async fn keys_come_from_a_variable_or_a_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("key.txt"), "key-from-a-file\n").unwrap();
    std::fs::set_permissions(dir.path().join("key.txt"), Permissions::from_mode(0o600)).unwrap();
    let server = sequence(["fine".into()]).await;
    let mut config = config(&server);
    config.target.api_key_env = "TEST_KEY".into();
    config.optimizer.api_key_file = "key.txt".into();
    let stack = build(&config, dir.path(), budget(0, 0)).await.unwrap();
    stack.target.chat(&chat("a"), &deaf()).await.unwrap();
    stack.optimizer.as_ref().unwrap().chat(&optimizer_call("b"), &deaf()).await.unwrap();
    let seen = server.requests();
    assert_eq!(seen[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(seen[1].headers["authorization"], "Bearer key-from-a-file");
    assert_eq!(stack.redactor.redact(&format!("{KEY} key-from-a-file")), "[redacted] [redacted]");
}

#[tokio::test]
async fn bad_settings_name_the_key_and_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let server = sequence(["x".into()]).await;
    let change = async |change: fn(&mut ModelConfig)| {
        let mut config = config(&server);
        change(&mut config);
        refusal(&config, dir.path()).await
    };
    let text = change(|config| config.target.api_key_env = "NOT_SET".into()).await;
    assert!(text.contains("model.target.api_key_env") && text.contains("NOT_SET"), "{text}");
    let text = change(|config| config.optimizer.api_key_file = "nowhere".into()).await;
    assert!(text.contains("model.optimizer.api_key_file") && text.contains("nowhere"), "{text}");
    let text = change(|config| {
        config.target.api_key_env = "TEST_KEY".into();
        config.target.api_key_file = "key".into();
    })
    .await;
    assert!(text.contains("keep one"), "{text}");
    let text = change(|config| config.target.base_url.clear()).await;
    assert!(text.contains("model.target.base_url: not set"), "{text}");
    let text = change(|config| config.optimizer.model.clear()).await;
    assert!(text.contains("model.optimizer.model: not set"), "{text}");
    let text = change(|config| config.target.backend = Backend::EditSearch).await;
    assert!(text.contains("edit search cannot run tasks"), "{text}");
    let text = change(|config| config.optimizer.backend = Backend::ClaudeCodeExec).await;
    assert!(
        text.contains("claude_code_exec runs tasks and answers no optimizer; use claude_chat here"),
        "{text}"
    );
    let text = change(|config| config.target.backend = Backend::Local).await;
    assert!(text.contains("needs the local worker"), "{text}");
    let text = change(|config| config.replay_from = "empty".into()).await;
    assert!(text.contains("model.replay_from") && text.contains("no recorded calls"), "{text}");
    let text = change(|config| {
        config.target.api_key_env = "TEST_KEY".into();
        config.target.base_url = "http://example.invalid/v1".into();
    })
    .await;
    assert!(text.starts_with("model.target: refusing to send the key") && !text.contains(KEY), "{text}");
}

#[tokio::test]
async fn secrets_reach_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let server = sequence([format!("your key is {KEY}").as_str().into()]).await;
    let mut config = config(&server);
    config.target.api_key_env = "TEST_KEY".into();
    let stack = build(&config, dir.path(), budget(0, 0)).await.unwrap();
    let reply = stack.target.chat(&chat(&format!("tell me {KEY}")), &deaf()).await.unwrap();
    assert_eq!(reply.text, "your key is [redacted]");
    let mut files = 0;
    for folder in std::fs::read_dir(dir.path().join("calls")).unwrap() {
        let Ok(records) = std::fs::read_dir(folder.unwrap().path()) else { continue };
        for record in records {
            let packed = std::fs::File::open(record.unwrap().path()).unwrap();
            let mut text = String::new();
            let mut unpacked = ruzstd::decoding::StreamingDecoder::new(packed).unwrap();
            std::io::Read::read_to_string(&mut unpacked, &mut text).unwrap();
            assert!(text.contains("tell me [redacted]") && !text.contains(KEY), "{text}");
            files += 1;
        }
    }
    assert_eq!(files, 1);
}

/// Stands for the worker.
struct FakeLocal;

impl ChatModel for FakeLocal {
    fn label(&self) -> &str {
        "fake local"
    }

    fn chat<'a>(
        &'a self,
        _request: &'a ChatRequest,
        _live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let usage = Usage { calls: 1, prompt_tokens: 2, completion_tokens: 0, ..Usage::default() };
        let reply = ChatReply::of_text("", FinishReason::Stop, usage, 1);
        Box::pin(async move { Ok(reply) })
    }
}

impl Likelihood for FakeLocal {
    fn score<'a>(
        &'a self,
        pairs: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Vec<(f64, usize)>, ModelError>> {
        Box::pin(async move { Ok(vec![(-1.0, 1); pairs.len()]) })
    }
}

#[tokio::test]
async fn local_target_and_edit_search_share_the_worker() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = ModelConfig::default();
    assert!(!ModelStack::needs_local(&config, &Role::ALL));
    config.target.backend = Backend::Local;
    config.optimizer.backend = Backend::EditSearch;
    assert!(ModelStack::needs_local(&config, &Role::ALL));
    let worker = Arc::new(FakeLocal);
    let local = LocalBackend { chat: worker.clone(), likelihood: worker };
    let budget = budget(0, 0);
    let stack = build_with(&config, dir.path(), Arc::clone(&budget), Some(local)).await.unwrap();
    assert_eq!(stack.target.label(), "fake local");
    assert!(stack.optimizer.as_ref().unwrap().label().starts_with("built-in edit search"));
    assert!(stack.optimizer.as_ref().unwrap().label().ends_with("scored by fake local"));
    for _ in 0..2 {
        assert_eq!(stack.target.chat(&chat("x"), &deaf()).await.unwrap().text, "");
    }
    let used = budget.used().0;
    assert_eq!((used.calls, used.tokens()), (1, 2));
    config.replay_from = "calls".into();
    assert!(!ModelStack::needs_local(&config, &Role::ALL));
}

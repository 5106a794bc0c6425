//! An agent as a role's model: what its job's end comes to, how often it is tried, what is paid.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use planish::config::BudgetConfig;
use planish::domain::{
    Asks, ChatReply, ChatRequest, Content, Delivery, Image, Message, OutputSchema, Part, Prompt, Role, Rung,
    Sampling, Speaker, Tool, Usage, Workspace,
};
use planish::event::Live;
use planish::model::exec::ExecEndpoint;
use planish::model::{
    Budget, ChatModel, Dials, Limits, LiveSink, ModelError, Patient, Redactor, RetryPolicy,
};

use crate::runner::settings;

fn request(workspace: Option<&str>) -> ChatRequest {
    let messages =
        vec![Message::new(Speaker::System, "Be brief."), Message::new(Speaker::User, "What is 40+2?")];
    ChatRequest {
        path: "e01/s001/rollout/item-1#0".into(),
        role: Role::Target,
        stage: "rollout".into(),
        prompt: Prompt::Chat(messages),
        sampling: Sampling {
            max_tokens: 64,
            temperature: None,
            top_p: None,
            top_k: None,
            seed: None,
            stop: Vec::new(),
        },
        asks: Asks::default(),
        workspace: workspace.map(|skill| Box::new(Workspace { skill: skill.into(), ..Workspace::default() })),
        brief: None,
    }
}

struct Outcome {
    result: Result<ChatReply, ModelError>,
    attempts: usize,
    heard: String,
    spent: Usage,
}

/// One call of a model that behaves so; three retries at most.
async fn call(behaviour: &str, request: &ChatRequest, limit: Duration) -> Outcome {
    let (settings, _scratch) = settings(behaviour);
    let limits = Limits {
        max_retries: 3,
        read_timeout: Duration::MAX,
        total_timeout: limit,
        call_timeout: Duration::from_secs(600),
        breaker_failures: 0,
    };
    let delivery = if request.workspace.is_some() { Delivery::Files } else { Delivery::Prompt };
    let dials = Arc::new(Dials::new(limits));
    let endpoint = Arc::new(ExecEndpoint::new(settings, delivery, dials.clone()));
    let budget = Arc::new(Budget::new(BudgetConfig::default(), Usage::default(), 0.0));
    let retry = RetryPolicy { base: Duration::from_millis(1), ..RetryPolicy::default() };
    let redactor = Arc::new(Redactor::new(["core dumped".to_owned()]));
    let model = Patient::new(endpoint, retry, dials, budget.clone(), redactor);
    assert_eq!(model.delivery(), delivery);
    let heard = Arc::new(Mutex::new((0, String::new())));
    let sink: LiveSink = {
        let heard = heard.clone();
        Arc::new(move |news| match news {
            Live::CallStarted { .. } => heard.lock().unwrap().0 += 1,
            Live::CallDelta { text, .. } => heard.lock().unwrap().1.push_str(&text),
            _ => {}
        })
    };
    let result = model.chat(request, &sink).await;
    let (attempts, heard) = heard.lock().unwrap().clone();
    Outcome { result, attempts, heard, spent: budget.used().0 }
}

const LONG: Duration = Duration::from_secs(120);

#[tokio::test]
async fn a_target_gets_its_skill_as_a_file_and_its_turns_are_kept() {
    let outcome = call("answer", &request(Some("Add up.")), LONG).await;
    let reply = outcome.result.unwrap();
    assert_eq!(reply.turns.len(), 3);
    assert!(reply.text.contains("SKILL.md") && !reply.text.contains("Add up."), "{}", reply.text);
    assert!(outcome.heard.starts_with("\n$ cat task.md\n"), "{}", outcome.heard);
    // One job, whose program made a call of its model after each tool and one before.
    assert_eq!((outcome.attempts, outcome.spent.calls, outcome.spent.prompt_tokens), (1, 3, 10));
}

#[tokio::test]
async fn an_optimizer_is_asked_the_plain_question() {
    let mut question = request(None);
    question.asks.output =
        Some(OutputSchema { name: "reply".into(), schema: serde_json::json!({"type": "object"}) });
    let reply = call("idle", &question, LONG).await.result.unwrap();
    assert_eq!((reply.text.as_str(), reply.rung), ("<answer>42</answer>", Some(Rung::JsonSchema)));
}

#[tokio::test]
async fn every_end_is_a_reply_or_the_right_error() {
    // Behaviour, attempts, words of the error.
    for (behaviour, attempts, want) in [
        ("wordless", 4, "it ended without an answer"),
        ("silent", 4, "without a result"),
        ("crash", 4, "exit code 3: [redacted] at last"),
        ("login", 1, "authentication failed at codex: unexpected status 401"),
        ("busy", 1, "cut after 21 tool calls"),
        ("flood", 1, "cut at the limit of its bytes of output"),
    ] {
        let outcome = call(behaviour, &request(Some("Add up.")), LONG).await;
        let error = outcome.result.unwrap_err().to_string();
        assert!(error.contains(want), "{behaviour}: {error}");
        assert_eq!(outcome.attempts, attempts, "{behaviour}");
    }
}

#[tokio::test]
async fn a_job_ends_before_its_attempt_runs_out_of_time() {
    let outcome = call("hang", &request(Some("Add up.")), Duration::from_millis(5_000)).await;
    let error = outcome.result.unwrap_err().to_string();
    assert!(error.contains("cut at the limit of its wall clock after"), "{error}");
}

type Change<'a> = &'a dyn Fn(&mut ChatRequest);

#[tokio::test]
async fn what_an_agent_cannot_take_is_refused_before_it_starts() {
    let tool = Tool { name: "f".into(), description: String::new(), parameters: serde_json::json!({}) };
    let image = Part::Image(Image { media_type: "image/png".into(), data: String::new() });
    let changes: [(Change<'_>, &str); 4] = [
        (&|request| request.asks.tools.push(tool.clone()), "tools of the request"),
        (&|request| request.asks.logprobs = true, "log-probabilities"),
        (&|request| request.prompt = Prompt::Text("go on".into()), "text to be continued"),
        (
            &|request| {
                let content = Content::new(vec![image.clone()]);
                request.prompt = Prompt::Chat(vec![Message { role: Speaker::User, content }]);
            },
            "images",
        ),
    ];
    for (change, want) in changes {
        let mut request = request(None);
        change(&mut request);
        let outcome = call("idle", &request, LONG).await;
        let error = outcome.result.unwrap_err().to_string();
        assert!(error.starts_with("the call cannot be put to codex: ") && error.contains(want), "{error}");
    }
}

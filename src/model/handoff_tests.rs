use std::sync::Mutex;

use super::*;
use crate::config::BudgetConfig;
use crate::domain::{Asks, Role, Sampling, Speaker};

fn request(item: &str) -> ChatRequest {
    let messages = vec![
        Message::new(Speaker::System, "The skill, with secret-0001."),
        Message::new(Speaker::User, "How many?"),
    ];
    ChatRequest {
        path: format!("e01/s001/rollout/{item}#0"),
        role: Role::Target,
        stage: "rollout".into(),
        prompt: Prompt::Chat(messages),
        sampling: Sampling {
            max_tokens: 9,
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

fn handoff(folder: &Path) -> (Handoff, Arc<Mutex<Vec<String>>>) {
    paid_by(folder, Budget::new(BudgetConfig::default(), Usage::default(), 0.0))
}

fn paid_by(folder: &Path, budget: Budget) -> (Handoff, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    let redactor = Arc::new(Redactor::new(["secret-0001".to_owned()]));
    let notice: Notice = Arc::new(move |text| told.lock().unwrap().push(text));
    (Handoff::new(folder.join("handoff"), "ann", redactor, notice, Arc::new(budget)).unwrap(), heard)
}

/// Puts an answer where the prompt asks for it, as people do: first an empty file.
async fn answer(folder: &Path, with: &str) {
    let prompt = loop {
        let found = std::fs::read_dir(folder.join("handoff")).unwrap().flatten().map(|entry| entry.path());
        let mut prompts = found.filter(|path| path.to_string_lossy().ends_with(PROMPT));
        match prompts.next() {
            Some(prompt) => break prompt,
            None => tokio::task::yield_now().await,
        }
    };
    let text = std::fs::read_to_string(&prompt).unwrap();
    let name = text.lines().find_map(|line| line.strip_prefix("answer: ")).unwrap();
    assert_eq!(unanswered(&folder.join("handoff")), 1);
    let file = folder.join("handoff").join(name);
    std::fs::write(&file, "").unwrap();
    assert_eq!(unanswered(&folder.join("handoff")), 1, "an empty file is no answer");
    std::fs::write(&file, with).unwrap();
}

#[tokio::test]
async fn a_prompt_is_a_file_and_so_is_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (model, heard) = handoff(folder.path());
    let live: LiveSink = Arc::new(|_| ());
    let request = request("a");
    let (reply, ()) = tokio::join!(model.chat(&request, &live), answer(folder.path(), "Seven.\n"));
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.usage.calls, reply.usage.tokens()), ("Seven.", 1, 0));
    assert_eq!(unanswered(&folder.path().join("handoff")), 0);
    let said = heard.lock().unwrap().join("\n");
    assert!(said.starts_with("waiting for answers in ") && said.contains(".answer.md"), "{said}");
    // A resumed run finds it.
    let (resumed, heard) = handoff(folder.path());
    assert_eq!(resumed.chat(&request, &live).await.unwrap().text, "Seven.");
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn people_see_where_a_prompt_belongs_and_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let (model, _) = handoff(folder.path());
    let text = model.redactor.redact(&written(&request("a: b"), "f00"));
    assert_eq!(
        text,
        "---\npath: \"e01/s001/rollout/a: b#0\"\nrole: target\nstage: \"rollout\"\nanswer: f00.answer.md\n---\n\
         \n# system\n\nThe skill, with [redacted].\n\n# user\n\nHow many?\n"
    );
}

#[tokio::test]
async fn what_cannot_be_an_answer_ends_the_run_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (model, _) = handoff(folder.path());
    let request = request("a");
    let name = format!("{}{ANSWER}", request.key(model.label()).fingerprint);
    std::fs::create_dir(folder.path().join("handoff").join(&name)).unwrap();
    let live: LiveSink = Arc::new(|_| ());
    let error = model.chat(&request, &live).await.unwrap_err();
    assert!(error.ends_run() && error.to_string().contains(&name), "{error}");
}

/// Polls a call until its prompt lies there, then drops it.
async fn given_up(model: &Handoff, request: &ChatRequest) {
    let live: LiveSink = Arc::new(|_| ());
    let mut call = model.chat(request, &live);
    while unanswered(&model.folder) == 0 {
        assert!(futures_util::poll!(&mut call).is_pending());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_prompt_that_waits_holds_and_costs_nothing_until_it_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let limits = BudgetConfig { max_calls: 1, max_tokens: 1, ..BudgetConfig::default() };
    let budget = Budget::new(limits, Usage::default(), 0.0);
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    budget.tell_unanswered(Box::new(move |_, used| sink.lock().unwrap().push(used)));
    let (model, _) = paid_by(folder.path(), budget);
    let live: LiveSink = Arc::new(|_| ());
    let request_a = request("a");
    given_up(&model, &request_a).await;
    assert_eq!(model.budget.used(), (Usage::default(), Usage::default()));
    assert!(told.lock().unwrap().is_empty(), "nothing was sent");
    let (reply, ()) = tokio::join!(model.chat(&request_a, &live), answer(folder.path(), "Seven."));
    assert_eq!(reply.unwrap().text, "Seven.");
    assert_eq!(model.budget.used(), (Usage::ONE_CALL, Usage::default()));
    // Nobody is asked for what the run may not take.
    let over = model.chat(&request("b"), &live).await.unwrap_err();
    assert!(
        matches!(&over, ModelError::Budget { limit } if limit.contains("budget.max_calls = 1")),
        "{over}"
    );
    assert_eq!(unanswered(&model.folder), 0);
}

#[tokio::test(start_paused = true)]
async fn the_cap_on_wall_time_ends_the_wait_also_one_that_was_moved() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = |max_seconds| BudgetConfig { max_seconds, ..BudgetConfig::default() };
    let (model, _) = paid_by(folder.path(), Budget::new(seconds(3600), Usage::default(), 0.0));
    let live: LiveSink = Arc::new(|_| ());
    let request = request("a");
    let begun = tokio::time::Instant::now();
    let shorten = async {
        tokio::time::advance(Duration::from_secs(5)).await;
        model.budget.set_limits(seconds(60));
    };
    let (stop, ()) = tokio::join!(model.chat(&request, &live), shorten);
    assert!(matches!(stop, Err(ModelError::Budget { limit }) if limit.contains("budget.max_seconds = 60")));
    assert!((60..62).contains(&begun.elapsed().as_secs()));
    assert_eq!(model.budget.used(), (Usage::default(), Usage::default()));
    assert_eq!(unanswered(&model.folder), 1, "a resumed run finds its answer");
}

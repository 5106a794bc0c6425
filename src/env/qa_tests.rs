use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::config::{AnswerRule, ScorerKind};
use crate::domain::{ChatReply, FinishReason, Sampling, Usage};
use crate::model::{ChatModel, LiveSink};

use super::*;

/// Answers every call with the same text and keeps the last request.
struct Fixed {
    reply: Result<String, ModelError>,
    seen: Mutex<Option<ChatRequest>>,
}

impl ChatModel for Fixed {
    fn label(&self) -> &str {
        "fixed"
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        *self.seen.lock().unwrap() = Some(request.clone());
        let usage = Usage { calls: 1, prompt_tokens: 7, completion_tokens: 2, ..Usage::default() };
        let reply = self.reply.clone().map(|text| ChatReply::of_text(text, FinishReason::Stop, usage, 12));
        Box::pin(async { reply })
    }
}

const SKILL: &str = "Name the <city>.\n";

fn item() -> Item {
    let fields =
        json!({"id": "a/1", "question": "Where is Hugo & Zoe?", "answers": ["Bern", "Berne"], "n": {"k": 3}});
    Item { id: "a/1".into(), fields: fields.as_object().unwrap().clone() }
}

fn document() -> EnvConfig {
    EnvConfig { prompt_style: PromptStyle::Document, ..EnvConfig::default() }
}

async fn rollout(
    config: &EnvConfig,
    reply: Result<String, ModelError>,
) -> (Result<Rollout, ModelError>, ChatRequest) {
    let environment = QaEnv::new(config).unwrap();
    let model = Fixed { reply, seen: Mutex::new(None) };
    let live: LiveSink = Arc::new(|_| ());
    let sampling = Sampling {
        max_tokens: 12,
        temperature: Some(0.0),
        top_p: None,
        top_k: None,
        seed: Some(5),
        stop: vec!["\n".into()],
    };
    let context = RolloutContext {
        target: &model,
        path: "e01/s001/rollout/x#0",
        stage: "rollout",
        sampling,
        readout: None,
        live: &live,
        judge: None,
    };
    let result = environment.rollout(&item(), SKILL, context).await;
    let seen = model.seen.lock().unwrap().clone().unwrap();
    (result, seen)
}

#[tokio::test]
async fn document_style_is_system_line_user_line() {
    let (result, request) = rollout(&document(), Ok("Bern".into())).await;
    assert_eq!(request.prompt, Prompt::Text("Name the <city>.\n\nWhere is Hugo & Zoe?\n".into()));
    assert_eq!((request.path.as_str(), request.stage.as_str()), ("e01/s001/rollout/x#0", "rollout"));
    assert_eq!((request.role, request.sampling.seed, request.brief), (Role::Target, Some(5), None));
    let rollout = result.unwrap();
    assert_eq!((rollout.item.as_str(), rollout.task_type.as_str()), ("a/1", "qa"));
    assert_eq!(
        (rollout.task.as_str(), rollout.user_prompt.as_str()),
        ("Where is Hugo & Zoe?", "Where is Hugo & Zoe?")
    );
    assert_eq!((rollout.gold.as_str(), &*rollout.system_prompt), ("Bern | Berne", SKILL));
    assert_eq!((rollout.score.hard, rollout.usage.completion_tokens, rollout.ms), (1.0, 2, 12));
}

#[tokio::test]
async fn chat_style_sends_system_and_user() {
    let (_, request) = rollout(&EnvConfig::default(), Ok("Bern".into())).await;
    let messages =
        vec![Message::new(Speaker::System, SKILL), Message::new(Speaker::User, "Where is Hugo & Zoe?")];
    assert_eq!(request.prompt, Prompt::Chat(messages));
    let unsystematic = EnvConfig { system_template: String::new(), ..EnvConfig::default() };
    let (_, request) = rollout(&unsystematic, Ok("Bern".into())).await;
    assert_eq!(request.prompt, Prompt::Chat(vec![Message::new(Speaker::User, "Where is Hugo & Zoe?")]));
}

#[tokio::test]
async fn templates_reach_nested_fields_and_the_skill_wins_its_name() {
    let config = EnvConfig { user_template: "{{ n.k }}: {{ skill | trim }}".into(), ..document() };
    let (_, request) = rollout(&config, Ok("Bern".into())).await;
    assert_eq!(request.prompt, Prompt::Text("Name the <city>.\n\n3: Name the <city>.\n".into()));
}

#[test]
fn a_long_context_is_cut_between_passages() {
    let mut item = item();
    item.fields.insert("context".into(), "[DOC] one[DOC] two[DOC] three".into());
    let config = EnvConfig { user_template: "{{ context | passages(14) }}".into(), ..document() };
    assert_eq!(QaEnv::new(&config).unwrap().render(&item, "").unwrap().user, " one[DOC] two");
}

#[tokio::test]
async fn a_reply_without_answer_scores_zero_with_the_reason() {
    let tagged = EnvConfig { answer_rule: AnswerRule::Tag, ..document() };
    let (result, _) = rollout(&tagged, Ok("Bern".into())).await;
    let rollout_of = result.unwrap();
    assert_eq!((rollout_of.answer.as_str(), rollout_of.score.hard), ("", 0.0));
    assert_eq!(rollout_of.score.reason, "no answer: the reply has no <answer> tag");
    let (result, _) = rollout(&document(), Ok(String::new())).await;
    assert_eq!(result.unwrap().score.reason, "no answer: the reply is empty");
}

#[tokio::test]
async fn an_unanswered_call_is_an_error_and_never_a_score() {
    let fault = ModelError::NoReply { host: "h".into(), attempts: 5, message: "timeout".into() };
    let (result, _) = rollout(&document(), Err(fault.clone())).await;
    assert_eq!(result, Err(fault));
}

#[tokio::test]
async fn a_huge_reply_is_scored_whole_and_kept_in_part() {
    let reply = format!("{}\nBern", "é".repeat(600_000));
    let (result, _) = rollout(&document(), Ok(reply)).await;
    let rollout = result.unwrap();
    assert_eq!(rollout.score.hard, 1.0);
    assert!(rollout.reply.len() < KEPT + 200);
    assert!(rollout.reply.starts_with('é') && rollout.reply.ends_with("é\nBern"));
    assert!(rollout.reply.contains("bytes left out here"));
}

#[test]
fn kept_text_counts_what_it_leaves_out() {
    let text = "x".repeat(KEPT + 10);
    assert_eq!(kept(&text[10..]), text[10..]);
    assert!(kept(&text).contains("[… 10 bytes left out here;"));
}

#[test]
fn the_version_follows_everything_that_can_change_a_score() {
    let version = |change: &dyn Fn(&mut EnvConfig)| {
        let mut config = document();
        change(&mut config);
        QaEnv::new(&config).unwrap().version().to_owned()
    };
    let base = version(&|_| ());
    assert_eq!(base, version(&|config| config.workers = 3));
    let changes: [&dyn Fn(&mut EnvConfig); 7] = [
        &|config| config.system_template.push('.'),
        &|config| config.user_template.push('.'),
        &|config| config.prompt_style = PromptStyle::Chat,
        &|config| config.answer_rule = AnswerRule::Whole,
        &|config| config.scorer = ScorerKind::F1,
        &|config| config.numeric_tolerance = 0.5,
        &|config| config.answer_field = "gold".into(),
    ];
    for change in changes {
        assert_ne!(base, version(change));
    }
}

#[test]
fn templates_are_compiled_at_construction() {
    let refusal = |config: EnvConfig| QaEnv::new(&config).unwrap_err().to_string();
    let message = refusal(EnvConfig { user_template: "a\n{{ b".into(), ..document() });
    assert!(
        message.starts_with("env.user_template: syntax error: ") && message.contains("line 2"),
        "{message}"
    );
    let message = refusal(EnvConfig { answer_field: String::new(), ..document() });
    assert!(message.starts_with("env.answer_field: is empty"), "{message}");
}

#[test]
fn an_undefined_variable_names_template_variable_and_fields() {
    let check = |template: &str| {
        let config = EnvConfig { user_template: template.into(), ..document() };
        QaEnv::new(&config).unwrap().check(&item())
    };
    assert_eq!(check("{{ n.k }}{% if hint is defined %}{{ hint }}{% endif %}"), Ok(()));
    assert_eq!(
        check("{{ question }} {{ n.absent }} {{ hint }}").unwrap_err(),
        "env.user_template asks for `hint`, `n.absent`, but the item has `id`, `question`, `answers`, `n`"
    );
}

#[test]
fn what_only_rendering_can_find_is_found_by_the_check() {
    let config = EnvConfig { system_template: "{{ skill | nosuch }}".into(), ..document() };
    let message = QaEnv::new(&config).unwrap().check(&item()).unwrap_err();
    assert!(message.starts_with("env.system_template: unknown filter"), "{message}");
}

#[test]
fn the_task_type_is_the_items_or_qa() {
    let environment = QaEnv::new(&document()).unwrap();
    let with = |value: Value| {
        let mut item = item();
        item.fields.insert("task_type".into(), value);
        environment.task_type(&item)
    };
    assert_eq!(with(json!("city")), "city");
    assert_eq!(with(json!(3)), "3");
    assert_eq!(with(json!(null)), "qa");
    assert_eq!(environment.task_type(&item()), "qa");
}

/// A model with replies in turn that keeps what it was asked; the skill comes to it as told.
struct Scripted {
    delivery: Delivery,
    replies: Mutex<Vec<Result<String, ModelError>>>,
    seen: Mutex<Vec<ChatRequest>>,
}

impl Scripted {
    fn new(delivery: Delivery, replies: &[&str]) -> Self {
        let replies = replies.iter().rev().map(|reply| Ok((*reply).to_owned())).collect();
        Self { delivery, replies: Mutex::new(replies), seen: Mutex::default() }
    }

    fn seen(&self) -> Vec<ChatRequest> {
        self.seen.lock().unwrap().clone()
    }
}

impl ChatModel for Scripted {
    fn label(&self) -> &str {
        "scripted"
    }

    fn delivery(&self) -> Delivery {
        self.delivery
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        self.seen.lock().unwrap().push(request.clone());
        let reply = self.replies.lock().unwrap().pop().unwrap();
        let usage = Usage { calls: 1, prompt_tokens: 10, completion_tokens: 2, ..Usage::default() };
        Box::pin(async move { reply.map(|text| ChatReply::of_text(text, FinishReason::Stop, usage, 3)) })
    }
}

async fn run(config: &EnvConfig, target: &Scripted, judge: Option<&Scripted>) -> Result<Rollout, ModelError> {
    let live: LiveSink = Arc::new(|_| ());
    let sampling = || Sampling {
        max_tokens: 12,
        temperature: None,
        top_p: None,
        top_k: None,
        seed: None,
        stop: Vec::new(),
    };
    let context = RolloutContext {
        target,
        path: "e01/s001/rollout/x#0",
        stage: "rollout",
        sampling: sampling(),
        readout: None,
        live: &live,
        judge: judge.map(|model| super::super::judge::Judge { model, sampling: sampling() }),
    };
    QaEnv::new(config).unwrap().rollout(&item(), SKILL, context).await
}

fn judged() -> EnvConfig {
    EnvConfig { scorer: ScorerKind::Judge, ..EnvConfig::default() }
}

#[tokio::test]
async fn a_judge_sees_task_reference_and_answer_and_never_the_skill() {
    let judge = Scripted::new(
        Delivery::Prompt,
        &[r#"{"reason": "the\ncapital", "verdict": "correct", "score": 0.9}"#],
    );
    let target = Scripted::new(Delivery::Prompt, &["I think:\nBern"]);
    let rollout = run(&judged(), &target, Some(&judge)).await.unwrap();
    assert_eq!((rollout.score.hard, rollout.score.soft), (1.0, 0.9));
    assert_eq!(rollout.score.reason, "right: \"Bern\" (judge: the capital)");
    let judging = rollout.judging.unwrap();
    assert_eq!((judging.by.as_str(), judging.usage.calls, judging.ms), ("scripted", 1, 3));
    assert_eq!(rollout.usage.calls, 1, "the judge's calls are counted apart");
    let seen = judge.seen();
    assert_eq!((seen[0].path.as_str(), seen[0].stage.as_str()), ("e01/s001/rollout/x#0/judge", "judge"));
    assert_eq!(seen[0].role, Role::Judge);
    assert_eq!(seen[0].asks.output.as_ref().unwrap().schema["required"][1], "verdict");
    let Prompt::Chat(messages) = &seen[0].prompt else { panic!() };
    let text = messages[1].content.text();
    for shown in ["Where is Hugo & Zoe?", "Bern | Berne", "<answer>\nBern\n</answer>"] {
        assert!(text.contains(shown), "{text}");
    }
    assert!(!format!("{messages:?}").contains("Name the <city>"), "the skill is not judged");
}

#[tokio::test]
async fn a_verdict_that_cannot_be_read_gets_one_repair_round_and_then_there_is_no_score() {
    let good = r#"{"reason": "no", "verdict": "incorrect", "score": 0.25}"#;
    let judge = Scripted::new(Delivery::Prompt, &["It is right.", good]);
    let rollout = run(&judged(), &Scripted::new(Delivery::Prompt, &["Rome"]), Some(&judge)).await.unwrap();
    assert_eq!((rollout.score.hard, rollout.score.soft), (0.0, 0.25));
    assert_eq!(rollout.judging.unwrap().usage.calls, 2);
    let seen = judge.seen();
    assert_eq!(seen[1].path, "e01/s001/rollout/x#0/judge/repair");
    let Prompt::Chat(messages) = &seen[1].prompt else { panic!() };
    assert_eq!(messages[2].content.text(), "It is right.");
    assert!(
        messages[3].content.text().starts_with("That cannot be used: the judge's reply holds no JSON object")
    );

    let judge = Scripted::new(Delivery::Prompt, &["yes", "yes!"]);
    let error = run(&judged(), &Scripted::new(Delivery::Prompt, &["Rome"]), Some(&judge)).await.unwrap_err();
    assert!(matches!(&error, ModelError::Unjudged { .. }) && !error.ends_run(), "missing, never 0: {error}");

    // A reply without an answer needs no judge.
    let config = EnvConfig { answer_rule: AnswerRule::Tag, ..judged() };
    let judge = Scripted::new(Delivery::Prompt, &[]);
    let rollout = run(&config, &Scripted::new(Delivery::Prompt, &["Bern"]), Some(&judge)).await.unwrap();
    assert!(
        rollout.judging.is_none() && rollout.score.reason.starts_with("no answer"),
        "{:?}",
        rollout.score
    );
}

#[test]
fn a_judge_s_template_is_part_of_the_version_and_checked_with_the_data() {
    let own = EnvConfig { judge_template: "{{ question }} {{ answer }} {{ moon }}".into(), ..judged() };
    let versions = [&judged(), &own, &EnvConfig::default()].map(|config| QaEnv::new(config).unwrap().version);
    assert!(versions[0] != versions[1] && versions[1] != versions[2] && versions[0] != versions[2]);
    let told = QaEnv::new(&own).unwrap().check(&item()).unwrap_err();
    assert!(told.starts_with("env.judge_template: undefined value"), "{told}");
    assert_eq!(QaEnv::new(&judged()).unwrap().check(&item()), Ok(()));
    let other = EnvConfig { judge_template: "x".into(), ..EnvConfig::default() };
    assert_eq!(QaEnv::new(&other).unwrap().version, versions[2], "what is not used changes nothing");
}

#[tokio::test]
async fn a_model_that_gets_files_finds_the_skill_there_and_the_task_in_its_prompt() {
    let config = EnvConfig {
        system_template: "Be brief.\n{{ skill }}".into(),
        user_template: "{{ question }}".into(),
        ..EnvConfig::default()
    };
    let agent = Scripted::new(Delivery::Files, &["Bern"]);
    let rollout = run(&config, &agent, None).await.unwrap();
    let request = agent.seen().remove(0);
    assert_eq!(request.workspace.unwrap().skill, SKILL);
    let Prompt::Chat(messages) = &request.prompt else { panic!() };
    let texts: Vec<String> = messages.iter().map(|message| message.content.text()).collect();
    assert_eq!(texts, ["Be brief.\n", "Where is Hugo & Zoe?"]);
    assert_eq!(rollout.score.hard, 1.0);
    let alone = Scripted::new(Delivery::Files, &["Bern"]);
    run(&EnvConfig::default(), &alone, None).await.unwrap();
    let Prompt::Chat(messages) = &alone.seen()[0].prompt else { panic!() };
    assert_eq!(messages.len(), 1, "nothing is left of the system template");
    assert_eq!(
        run(&EnvConfig::default(), &Scripted::new(Delivery::Prompt, &["x"]), None).await.unwrap().turns,
        []
    );
}

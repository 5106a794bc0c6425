//! Every dialect through the real client against the mock server: tools in two turns, images, thinking that goes back,
//! output schemas, refused parameters.

use std::sync::{Arc, Mutex};

use planish::domain::{FinishReason, OutputSchema, Part, Prompt, Rung, ToolChoice};
use planish::model::mock::{Answer, Detailed, Fault, MockServer, Pick, Rule, Script};
use planish::model::{
    Api, ChatModel, Dialect, DialectError, Dialects, Feature, HttpEndpoint, HttpSetupError, Lessons, Login,
    ModelError, ReplayReasoning, ThinkingMode, TokenSource,
};
use serde_json::{Value, json};

use crate::golden_dialects::{PNG, first, second, settings, table, tool};
use crate::support::{Settings, chat, deaf, listen, model, redactor, request, sequence, serve};

fn call(name: &str, arguments: Value) -> Detailed {
    Detailed { tool: Some(name.into()), arguments, ..Detailed::default() }
}

/// The settings without thinking, which forced tools get along with everywhere.
fn plain(dialect: &Dialect, server: &MockServer) -> Settings {
    let mut settings = settings(dialect, &server.origin(), true);
    settings.http.thinking = ThinkingMode::ServerDefault;
    settings.http.thinking_budget = None;
    settings
}

fn named(name: &str) -> Dialect {
    table().get(name).unwrap().clone()
}

/// An agent that thinks, calls a tool and answers with what it heard.
fn agent() -> Script {
    let thinking = Detailed {
        thinking: "I had better look.".into(),
        text: "Let me see.".into(),
        ..call("bash", json!({"command": "echo 42"}))
    };
    let answer = Detailed { text: "It is $1.".into(), expand: true, ..Detailed::default() };
    let turns = [(false, thinking), (true, answer)].map(|(after_tool, answer)| Rule {
        after_tool: Some(after_tool),
        matches: after_tool.then(|| "^Well, (\\d+)".to_owned()),
        answers: vec![answer.into()],
        ..Rule::default()
    });
    Script { rules: turns.into(), chunk: 5, ..Script::default() }
}

#[tokio::test]
async fn tools_images_and_thinking_in_two_turns() {
    for dialect in table().rows() {
        for stream in [true, false] {
            let server = serve(agent()).await;
            let model = model(settings(dialect, &server.origin(), stream));
            let (sink, heard) = listen();
            let asked = first(dialect);
            let reply = model.chat(&asked, &sink).await.unwrap();
            let name = &dialect.name;
            assert_eq!(
                (reply.text.as_str(), reply.finish),
                ("Let me see.", FinishReason::ToolCalls),
                "{name}"
            );
            let calls = reply.parts.iter().filter_map(|part| match part {
                Part::ToolCall(call) => Some((call.name.as_str(), call.arguments.as_str())),
                _ => None,
            });
            assert_eq!(calls.collect::<Vec<_>>(), [("bash", "{\"command\":\"echo 42\"}")], "{name}");
            assert!(
                !format!("{:?}", heard.lock().unwrap()).contains("better"),
                "{name} shows thinking as text"
            );

            let mut next = second(asked, &reply);
            let Prompt::Chat(messages) = &mut next.prompt else { panic!("no chat") };
            messages.last_mut().unwrap().content = "Well, 42?".into();
            let answer = model.chat(&next, &deaf()).await.unwrap();
            assert_eq!((answer.text.as_str(), answer.finish), ("It is 42.", FinishReason::Stop), "{name}");
            assert!(answer.usage.prompt_tokens > 0 && answer.usage.completion_tokens > 0, "{name}");

            let seen = server.requests();
            let sent = seen[1].body.to_string();
            assert_eq!(sent.contains(PNG), dialect.has(Feature::Images), "{name}");
            let thought = reply.parts.iter().any(|part| matches!(part, Part::Thinking(_)));
            let goes_back = thought && dialect.replay_reasoning != ReplayReasoning::Never;
            assert_eq!(sent.contains("I had better look."), goes_back, "{name}: {sent}");
            let signed = matches!(dialect.api, Api::Responses | Api::Messages) || name == "openrouter";
            // Sealed reasoning is the same in base64.
            let seals = ["mock-signature", "bW9jay1zaWduYXR1cmU="];
            let sealed = seals.iter().any(|seal| sent.contains(seal));
            assert_eq!(sealed, signed || name == "gemini", "{name}: {sent}");
        }
    }
}

fn verdict() -> OutputSchema {
    let schema = json!({
        "type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
        "additionalProperties": false,
    });
    OutputSchema { name: "verdict".into(), schema }
}

/// A server that calls the forced tool, and otherwise writes JSON.
fn judge(refuse_params: &[&str]) -> Script {
    let forced = Rule {
        matches: Some("tool".into()),
        answers: vec![call("verdict", json!({"ok": true})).into()],
        ..Rule::default()
    };
    let written = Rule { answers: vec!["{\"ok\":true}".into()], ..Rule::default() };
    let refuse_params = refuse_params.iter().map(|name| (*name).to_owned()).collect();
    Script { rules: vec![forced, written], refuse_params, ..Script::default() }
}

#[tokio::test]
async fn output_schemas_start_at_the_best_rung_of_every_dialect() {
    for dialect in table().rows() {
        let server = serve(judge(&[])).await;
        let mut asked = chat("judge it");
        asked.asks.output = Some(verdict());
        let reply = model(plain(dialect, &server)).chat(&asked, &deaf()).await.unwrap();
        let best = match dialect.has(Feature::JsonSchema) {
            true => Rung::JsonSchema,
            false if dialect.has(Feature::JsonObject) => Rung::JsonObject,
            false => Rung::ForcedTool,
        };
        assert_eq!((reply.rung, reply.text.as_str()), (Some(best), "{\"ok\":true}"), "{}", dialect.name);
        let body = server.requests()[0].body.to_string();
        assert!(
            body.contains("additionalProperties"),
            "{}: the model does not know the schema",
            dialect.name
        );
    }
}

#[tokio::test]
async fn a_refused_rung_leads_to_the_next_one_and_is_remembered() {
    let format = |dialect: &Dialect| match dialect.api {
        Api::Chat => "response_format",
        Api::Responses => "text",
        Api::Messages => "output_config",
    };
    for dialect in ["openai", "anthropic", "vllm"].map(named) {
        let server = serve(judge(&[format(&dialect)])).await;
        let mut settings = plain(&dialect, &server);
        settings.http.effort = planish::config::Effort::NotSent;
        settings.http.lessons = Lessons::default();
        let model = model(settings);
        let mut asked = chat("judge it with the tool");
        asked.asks.output = Some(verdict());
        for _ in 0..2 {
            let reply = model.chat(&asked, &deaf()).await.unwrap();
            assert_eq!((reply.rung, reply.text.as_str()), (Some(Rung::ForcedTool), "{\"ok\":true}"));
            assert_eq!((reply.finish, reply.parts.len()), (FinishReason::Stop, 0), "{}", dialect.name);
        }
        let refused = if dialect.api == Api::Messages { 1 } else { 2 };
        assert_eq!(server.count(), refused + 2, "{}", dialect.name);
        let server = serve(judge(&[format(&dialect), "tools"])).await;
        let reply = crate::support::model(plain(&dialect, &server)).chat(&asked, &deaf()).await;
        // The mock calls the tool nobody offered; what matters is how it was asked.
        let seen = server.requests();
        let last = seen.last().unwrap().body.to_string();
        assert!(last.contains("JSON Schema") && !last.contains("tool_choice"), "{reply:?} {last}");
    }
}

#[tokio::test]
async fn one_refusal_of_a_parameter_teaches_all_calls_and_is_told_once() {
    for dialect in table().rows().iter().filter(|dialect| dialect.has(Feature::Stop)) {
        let refuse_params = vec!["temperature".to_owned(), "top_p".to_owned()];
        let server = serve(Script { refuse_params, ..Script::sequence(["fine".into()]) }).await;
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&told);
        let mut settings = plain(dialect, &server);
        settings.http.lessons = Lessons::new(Arc::new(move |text| sink.lock().unwrap().push(text)));
        let mut asked = first(dialect);
        asked.sampling.stop.clear();
        let (one, other) = (model(settings.clone()), model(settings));
        assert_eq!(one.chat(&asked, &deaf()).await.unwrap().text, "fine");
        assert_eq!(server.count(), 3, "{}", dialect.name);
        assert_eq!(other.chat(&asked, &deaf()).await.unwrap().text, "fine");
        assert_eq!(server.count(), 4, "{}", dialect.name);
        let told = told.lock().unwrap();
        let refusals: Vec<&String> = told.iter().filter(|text| text.contains("refuses")).collect();
        assert_eq!(refusals.len(), 2, "{told:?}");
        assert!(refusals[0].starts_with("127.0.0.1 refuses `temperature` for m"), "{told:?}");
        let lacks_seed = !dialect.has(Feature::Seed);
        assert_eq!(told.iter().any(|text| text.contains("has no `seed`")), lacks_seed, "{told:?}");
    }
}

#[tokio::test]
async fn the_token_field_is_swapped_and_stop_is_never_dropped() {
    for (name, refused, sent) in [
        ("openai_compatible", "max_tokens", "max_completion_tokens"),
        ("openai", "max_completion_tokens", "max_tokens"),
    ] {
        let refuse_params = vec![refused.to_owned()];
        let server = serve(Script { refuse_params, ..Script::sequence(["fine".into()]) }).await;
        model(plain(&named(name), &server)).chat(&chat("x"), &deaf()).await.unwrap();
        assert_eq!(server.requests()[1].body[sent], 64);
    }
    for (name, field) in [("openai_compatible", "stop"), ("anthropic", "stop_sequences")] {
        let refuse_params = vec![field.to_owned()];
        let server = serve(Script { refuse_params, ..Script::sequence(["fine".into()]) }).await;
        let mut asked = chat("x");
        asked.sampling.stop = vec!["END".into()];
        let error = model(plain(&named(name), &server)).chat(&asked, &deaf()).await.unwrap_err();
        assert!(
            matches!(&error, ModelError::Refused { message, .. } if message.contains("template")),
            "{error}"
        );
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn what_a_dialect_cannot_say_is_refused_before_anything_is_sent() {
    let server = sequence(["x".into()]).await;
    let mut stop = chat("x");
    stop.sampling.stop = vec!["END".into()];
    let mut toolless = named("openai");
    toolless.supports = Vec::new();
    let mut tools = chat("x");
    tools.asks.tools = vec![tool()];
    for (dialect, asked, words) in [
        (named("anthropic"), request(Prompt::Text("x".into())), "chat prompts"),
        (named("openai_responses"), stop, "stop texts"),
        (toolless, tools, "has no tools"),
        (named("deepseek"), first(&named("openai")), "no images"),
    ] {
        let error = model(plain(&dialect, &server)).chat(&asked, &deaf()).await.unwrap_err().to_string();
        assert!(error.starts_with("the call cannot be put to 127.0.0.1") && error.contains(words), "{error}");
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_named_tool_is_required_alone_where_names_are_not_understood() {
    for (name, choice, offered) in [
        ("llama_cpp", json!("required"), 1),
        ("openai", json!({"type": "function", "function": {"name": "bash"}}), 2),
        ("anthropic", json!({"type": "tool", "name": "bash"}), 2),
        ("openai_responses", json!({"type": "function", "name": "bash"}), 2),
    ] {
        let server = serve(agent()).await;
        let mut asked = chat("x");
        let other = planish::domain::Tool { name: "other".into(), ..tool() };
        asked.asks.tools = vec![other, tool()];
        asked.asks.tool_choice = ToolChoice::Named("bash".into());
        model(plain(&named(name), &server)).chat(&asked, &deaf()).await.unwrap();
        let body = &server.requests()[0].body;
        assert_eq!(
            (&body["tool_choice"], body["tools"].as_array().unwrap().len()),
            (&choice, offered),
            "{name}"
        );
    }
}

#[tokio::test]
async fn faults_have_the_same_meaning_in_every_api() {
    for dialect in ["openai", "openai_responses", "azure", "anthropic", "openrouter", "gemini"].map(named) {
        for stream in [true, false] {
            for (fault, retried, words) in [
                (Fault::Html { status: 200 }, true, "web page"),
                (Fault::ErrorInStream { code: 502.into() }, true, ""),
                (Fault::Empty, true, "empty reply"),
                (Fault::SpendLimit, false, ""),
                (Fault::ContentFilter, false, ""),
                (Fault::ContextLength, false, ""),
            ] {
                let server = sequence([Answer::Fault(fault.clone()), "survived".into()]).await;
                let mut settings = plain(&dialect, &server);
                settings.http.stream = stream;
                let (sink, heard) = listen();
                let result = model(settings).chat(&chat("x"), &sink).await;
                let about = format!("{} {fault:?} {result:?} {heard:?}", dialect.name);
                assert_eq!(result.is_ok(), retried, "{about}");
                assert_eq!(server.count(), 1 + u64::from(retried), "{about}");
                assert!(about.contains(words), "{about}");
            }
        }
    }
}

#[tokio::test]
async fn refusals_of_the_model_are_no_replies() {
    for dialect in ["openai", "openai_responses", "anthropic"].map(named) {
        let filtered =
            Detailed { text: "I".into(), finish: Some("content_filter".into()), ..Detailed::default() };
        let server = sequence([filtered.into()]).await;
        let error = model(plain(&dialect, &server)).chat(&chat("x"), &deaf()).await.unwrap_err();
        assert!(matches!(error, ModelError::Refused { .. }), "{error:?}");
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn thinking_is_three_valued_on_the_wire() {
    let cases = [
        ("vllm", "chat_template_kwargs", json!({"enable_thinking": true}), json!({"enable_thinking": false})),
        ("qwen", "enable_thinking", json!(true), json!(false)),
        ("deepseek", "thinking", json!({"type": "enabled"}), json!({"type": "disabled"})),
        ("openrouter", "reasoning", json!({"enabled": true}), json!({"effort": "none"})),
        ("minimax", "thinking", json!({"type": "adaptive"}), json!({"type": "disabled"})),
        ("anthropic", "thinking", json!({"type": "adaptive"}), json!({"type": "disabled"})),
    ];
    for (name, field, on, off) in cases {
        let modes = [
            (ThinkingMode::ServerDefault, Value::Null),
            (ThinkingMode::Enabled, on),
            (ThinkingMode::Disabled, off),
        ];
        for (mode, want) in modes {
            let server = sequence(["fine".into()]).await;
            let mut settings = plain(&named(name), &server);
            settings.http.effort = planish::config::Effort::NotSent;
            settings.http.thinking = mode;
            model(settings).chat(&chat("x"), &deaf()).await.unwrap();
            assert_eq!(server.requests()[0].body[field], want, "{name}");
        }
    }
}

#[tokio::test]
async fn settings_without_words_in_a_dialect_are_errors_with_a_remedy() {
    use planish::config::Effort::{High, Minimal, NotSent};
    let server = sequence(["x".into()]).await;
    for (name, effort, thinking, budget, words) in [
        ("anthropic", Minimal, ThinkingMode::ServerDefault, None, "low, medium"),
        ("qwen", High, ThinkingMode::ServerDefault, None, "leave it empty"),
        ("openai_compatible", NotSent, ThinkingMode::Disabled, None, "extra_body"),
        ("openai", NotSent, ThinkingMode::Enabled, None, "set reasoning_effort"),
        ("openai", High, ThinkingMode::Disabled, None, "contradict"),
        ("openai", High, ThinkingMode::Enabled, Some(9), "thinking_budget"),
        ("openrouter", High, ThinkingMode::Enabled, Some(9), "drop"),
        ("anthropic", NotSent, ThinkingMode::ServerDefault, Some(9), "enabled"),
    ] {
        let mut settings = plain(&named(name), &server);
        settings.http.effort = effort;
        settings.http.thinking = thinking;
        settings.http.thinking_budget = budget;
        let error = setup_error(settings);
        assert!(matches!(error, HttpSetupError::Thinking(_)), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

fn setup_error(settings: Settings) -> HttpSetupError {
    let dials = Arc::new(planish::model::Dials::new(settings.limits));
    match HttpEndpoint::new(settings.http, redactor(), dials) {
        Err(error) => error,
        Ok(_) => panic!("built"),
    }
}

struct Cloud;

impl TokenSource for Cloud {
    fn origin(&self) -> &str {
        "a cloud"
    }

    fn token(&self) -> futures_util::future::BoxFuture<'_, Result<secrecy::SecretString, String>> {
        Box::pin(async { Ok("token".into()) })
    }
}

#[tokio::test]
async fn tokens_leave_for_azure_only_and_keys_never_as_further_headers() {
    let server = sequence(["x".into()]).await;
    for base_url in [server.origin().as_str(), "https://api.openai.com/v1", "http://res.openai.azure.com"] {
        let mut settings = plain(&named("azure"), &server);
        settings.http.base_url = base_url.into();
        settings.http.login = Login::Token(Arc::new(Cloud));
        let error = setup_error(settings);
        assert!(matches!(error, HttpSetupError::TokenOutsideAzure { .. }), "{error:?}");
        assert!(error.to_string().contains("a cloud"), "{error}");
    }
    let mut settings = plain(&named("openai"), &server);
    settings.http.extra_headers = vec![("Authorization".into(), "Bearer x".into())];
    assert!(matches!(setup_error(settings), HttpSetupError::BadHeader { .. }));
    let mut settings = plain(&named("azure"), &server);
    settings.http.dialect.api_version.clear();
    assert!(setup_error(settings).to_string().contains("api_version"));
}

#[tokio::test]
async fn additions_win_and_everything_that_changes_replies_is_in_the_label() {
    let server = sequence(["x".into()]).await;
    let build = |change: &dyn Fn(&mut Settings)| {
        let mut settings = plain(&named("vllm"), &server);
        settings.http.effort = planish::config::Effort::NotSent;
        change(&mut settings);
        model(settings)
    };
    let plain_label = build(&|_| {}).label().to_owned();
    assert_eq!(plain_label, format!("openai_chat {}/v1 m, dialect vllm", server.origin()));
    let first = build(&|settings| settings.http.dialect = named("openai_compatible")).label().to_owned();
    assert_eq!(first, format!("openai_chat {}/v1 m", server.origin()));
    let body = json!({"min_p": 0.5, "chat_template_kwargs": {"x": 1}, "top_p": 0.25});
    let body = body.as_object().unwrap();
    let changes: [&dyn Fn(&mut Settings); 7] = [
        &|settings| settings.http.thinking = ThinkingMode::Disabled,
        &|settings| settings.http.thinking_budget = Some(5),
        &|settings| settings.http.extra_body = body.clone(),
        &|settings| settings.http.extra_headers = vec![("x-a".into(), "b".into())],
        &|settings| settings.http.dialect.inline_think = false,
        &|settings| settings.http.dialect = named("sglang"),
        &|settings| settings.http.effort = planish::config::Effort::Low,
    ];
    let mut labels: Vec<String> = changes.iter().map(|change| build(change).label().to_owned()).collect();
    labels.push(plain_label);
    labels.sort();
    labels.dedup();
    assert_eq!(labels.len(), 8, "{labels:#?}");
    let elsewhere = build(&|settings| settings.http.dialect.key_env = "OTHER".into());
    assert!(labels.contains(&elsewhere.label().to_owned()));

    build(&|settings| {
        settings.http.extra_body = body.clone();
        settings.http.thinking = ThinkingMode::Enabled;
    })
    .chat(&chat("x"), &deaf())
    .await
    .unwrap();
    let sent = &server.requests()[0].body;
    assert_eq!(sent["chat_template_kwargs"], json!({"enable_thinking": true, "x": 1}));
    assert_eq!((&sent["min_p"], &sent["top_p"]), (&json!(0.5), &json!(0.25)));
}

#[tokio::test]
async fn turns_of_an_agent_keep_their_order_under_a_pick_by_turn() {
    let answers = vec![Answer::from(call("bash", json!({}))), "done".into()];
    let rules = vec![Rule { answers, pick: Pick::Turn, ..Rule::default() }];
    let server = serve(Script { rules, ..Script::default() }).await;
    let dialect = named("anthropic");
    let model = model(plain(&dialect, &server));
    let asked = first(&dialect);
    let reply = model.chat(&asked, &deaf()).await.unwrap();
    assert_eq!(model.chat(&second(asked, &reply), &deaf()).await.unwrap().text, "done");
}

fn load(text: &str) -> Result<Dialects, DialectError> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.toml");
    std::fs::write(&file, text).unwrap();
    Dialects::load(&file)
}

#[test]
fn a_file_adds_and_replaces_rows() {
    let mine = "[[dialect]]\nname = \"mine\"\nlike = \"vllm\"\nhosts = [\".example.com\", \"a.example.com/deep\"]\n\
        token_field = \"max_completion_tokens\"\n\n[[dialect]]\nname = \"openai\"\nlike = \"mine\"\nhosts = []\n";
    let table = load(mine).unwrap();
    let row = table.get("mine").unwrap();
    assert_eq!((row.thinking, row.token_field.name()), (named("vllm").thinking, "max_completion_tokens"));
    assert_eq!(table.get("openai").unwrap().thinking, row.thinking);
    assert_eq!(table.rows().len(), self::table().rows().len() + 1);
    for (address, want) in [
        ("https://b.example.com/v1", Some("mine")),
        ("https://example.com/v1", None),
        ("https://notexample.com/v1", None),
        ("https://a.example.com/deeper", Some("mine")),
        ("https://API.OPENAI.com/v1", None),
        ("https://api.anthropic.com/v1", Some("anthropic")),
        ("https://res.openai.azure.com", Some("azure")),
        ("https://res.openai.azure.com/openai/v1", Some("azure_v1")),
        ("http://localhost:8000/v1", None),
        ("nonsense", None),
    ] {
        assert_eq!(table.for_address(address).map(|row| row.name.as_str()), want, "{address}");
    }
    assert_eq!(self::table().for_host("API.openai.com").unwrap().name, "openai");
}

#[test]
fn mistakes_in_a_file_name_the_line_or_row_and_the_remedy() {
    let row = |more: &str| format!("\n[[dialect]]\nname = \"mine\"\n{more}\n");
    for (text, words) in [
        (row("colour = 1"), vec!["line 4", "unknown key \"colour\"", "planish schema dialects"]),
        (row("api = \"smoke\""), vec!["line 4", "api", "smoke"]),
        (row("inline_think = \"yes\""), vec!["line 4", "inline_think", "boolean"]),
        (row("supports = [\"magic\"]"), vec!["line 4", "supports", "magic"]),
        (row("like = \"nobody\""), vec!["dialect \"mine\"", "nobody", "comes before"]),
        (row("base_url = \"ftp://x\""), vec!["dialect \"mine\"", "base_url"]),
        (row("api = \"messages\"\nthinking = \"qwen_top\""), vec!["thinking = \"qwen_top\"", "messages"]),
        (
            row("extra_body = { min_p = 1, max_tokens = 7 }"),
            vec!["dialect \"mine\"", "`max_tokens`", "take it out"],
        ),
        (row("headers = { Authorization = \"x\" }"), vec!["headers.Authorization", "api_key_env"]),
        (format!("{}{}", row(""), row("")), vec!["two rows", "keep one"]),
        ("\n[[dialect]]\nname = \"a b\"\n".into(), vec!["a b", "letters"]),
        ("x = ".into(), vec!["line 1"]),
        ("[[dialect]]\napi = \"chat\"\n".into(), vec!["missing field `name`"]),
    ] {
        let error = load(&text).unwrap_err().to_string();
        assert!(error.contains("mine.toml"), "{error}");
        for word in words {
            assert!(error.contains(word), "{word} is missing in: {error}");
        }
    }
    let error = Dialects::load(std::path::Path::new("/nowhere/mine.toml")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/mine.toml") && error.contains("model.dialects"), "{error}");
}

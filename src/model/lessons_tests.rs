use serde_json::json;

use super::*;

fn sent() -> Map<String, Value> {
    let body = json!({
        "model": "m", "messages": [], "max_tokens": 9, "temperature": 0.0, "top_p": 1.0, "seed": 7,
        "stop": ["x"], "stream_options": {"include_usage": true}, "reasoning": {"effort": "low"},
        "chat_template_kwargs": {"enable_thinking": false}, "mine": 1,
    });
    body.as_object().cloned().unwrap_or_default()
}

fn refusal(body: &Map<String, Value>) -> Refusal<'_> {
    Refusal {
        host: "h",
        model: "m",
        body,
        rung: None,
        token_field: TokenField::MaxTokens,
        by_hand: &["mine"],
        thinking_asked: true,
    }
}

fn error(message: &str) -> ErrorBody {
    ErrorBody { message: message.into(), ..ErrorBody::default() }
}

#[test]
fn one_refusal_teaches_in_every_wording() {
    for (message, path) in [
        ("Unsupported parameter: 'seed' is not supported with this model.", "seed"),
        ("Unrecognized request argument supplied: seed", "seed"),
        ("seed: Extra inputs are not permitted", "seed"),
        ("unknown field `seed`, expected one of `model`, `messages`", "seed"),
        ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
        ("this model does not support `temperature`", "temperature"),
        ("`temperature` and `top_p` cannot both be specified for this model", "temperature"),
        ("temperature is deprecated for this model", "temperature"),
        ("Unknown name \"seed\": Cannot find field.", "seed"),
        ("Unsupported parameter: 'reasoning.effort' is not supported", "reasoning.effort"),
    ] {
        let lessons = Lessons::default();
        let mut body = sent();
        let mut asked = refusal(&body);
        asked.thinking_asked = false;
        let taught = lessons.learn(&asked, &error(message));
        let want = format!("h refuses `{path}` for m; it is not sent any more");
        assert_eq!(taught, Taught::Learned(want), "{message}");
        let mut expected = sent();
        expected.shift_remove(path.split('.').next().unwrap());
        lessons.of("h", "m").apply(&mut body);
        assert_eq!(body, expected);
        assert_eq!(lessons.of("h", "another"), Lesson::default());
    }
    let named =
        ErrorBody { param: Some("top_p".into()), codes: vec!["unsupported_value".into()], ..error("no") };
    let taught = Lessons::default().learn(&refusal(&sent()), &named);
    assert!(matches!(&taught, Taught::Learned(text) if text.contains("`top_p`")), "{taught:?}");
    let nested =
        ErrorBody { param: Some("stream_options.include_usage".into()), ..error("unknown parameter") };
    let lessons = Lessons::default();
    assert!(matches!(lessons.learn(&refusal(&sent()), &nested), Taught::Learned(_)));
    let mut body = sent();
    lessons.of("h", "m").apply(&mut body);
    assert!(!body.contains_key("stream_options"));
}

#[test]
fn what_is_no_refusal_of_a_parameter_teaches_nothing() {
    for message in [
        "max_tokens is too large: 100000. This model supports at most 4096 completion tokens",
        "Invalid value for 'seed': it must be an integer",
        "Unknown model m",
        "this model does not support images in messages",
        "Unsupported parameter: 'never_sent'",
    ] {
        assert_eq!(
            Lessons::default().learn(&refusal(&sent()), &error(message)),
            Taught::Nothing,
            "{message}"
        );
    }
}

#[test]
fn the_token_field_is_swapped_once() {
    let lessons = Lessons::default();
    let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let mut body = sent();
    // Calls that were under way together all sent the old field.
    for _ in 0..2 {
        assert!(matches!(lessons.learn(&refusal(&body), &error(message)), Taught::Learned(_)));
    }
    lessons.of("h", "m").apply(&mut body);
    assert!(!body.contains_key("max_tokens"));
    assert_eq!(body["max_completion_tokens"], 9);
    let taught = lessons.learn(&refusal(&body), &error("unknown field `max_completion_tokens`"));
    assert!(matches!(taught, Taught::Needed(_)), "{taught:?}");
}

#[test]
fn what_replies_depend_on_is_never_dropped() {
    for (message, remedy) in [
        ("Unsupported parameter: 'stop'", "template"),
        ("mine: Extra inputs are not permitted", "extra_body"),
        ("unknown field `chat_template_kwargs`", "server_default"),
    ] {
        let lessons = Lessons::default();
        let taught = lessons.learn(&refusal(&sent()), &error(message));
        assert!(matches!(&taught, Taught::Needed(text) if text.contains(remedy)), "{message}: {taught:?}");
        assert_eq!(lessons.of("h", "m"), Lesson::default());
    }
}

#[test]
fn a_refused_rung_is_remembered_and_everything_is_told_once() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let lessons = Lessons::new(Arc::new(move |text| sink.lock().unwrap().push(text)));
    let body = sent();
    let step = |rung, message: &str| {
        let refusal = Refusal { rung: Some(rung), ..refusal(&body) };
        assert!(matches!(lessons.learn(&refusal, &error(message)), Taught::Learned(_)));
        lessons.of("h", "m").highest_rung
    };
    let message =
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model";
    assert_eq!(step(Rung::JsonSchema, message), Rung::JsonObject);
    assert_eq!(step(Rung::JsonSchema, message), Rung::JsonObject);
    assert_eq!(step(Rung::JsonObject, "unknown field response_format"), Rung::ForcedTool);
    assert_eq!(step(Rung::ForcedTool, "tool_choice forces tool use"), Rung::Text);
    assert_eq!(told.lock().unwrap().len(), 3, "{told:?}");
    let refusal = Refusal { rung: Some(Rung::Text), ..refusal(&body) };
    assert_eq!(lessons.learn(&refusal, &error("response_format")), Taught::Nothing);
}

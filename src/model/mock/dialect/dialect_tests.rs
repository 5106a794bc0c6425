use super::super::conversation::{Conversation, Speaker};
use super::super::turn::{Call, Cause, Finish};
use super::*;

const USAGE: FixedUsage = FixedUsage {
    prompt_tokens: 20,
    completion_tokens: 9,
    cached_tokens: 4,
    cache_write_tokens: 1,
    reasoning_tokens: 3,
};

fn frame(dialect: Dialect, vendor: Vendor) -> Frame {
    let wants = Wants { stream_usage: true, encrypted_reasoning: true, ..Wants::default() };
    let (model, id) = ("m".to_owned(), "1".to_owned());
    Frame { dialect, vendor, transport: Transport::Events, model, id, usage: Some(USAGE), chunk: 100, wants }
}

fn spoken(text: &str) -> Turn {
    Turn::of_text(text)
}

/// Thinking, text and a tool call.
fn acting() -> Turn {
    let arguments = json!({"command": "echo 42"});
    let call = Call { id: "1_1".into(), name: "bash".into(), arguments };
    let (thinking, calls) = ("hm".to_owned(), vec![call]);
    Turn { thinking, calls, finish: Finish::ToolCalls, ..spoken("so") }
}

/// Names and data of the events of a stream.
fn stream(frame: &Frame, turn: &Turn) -> Vec<(Option<&'static str>, Value)> {
    let data =
        |event: &Event| serde_json::from_str(&event.data).unwrap_or_else(|_| event.data.as_str().into());
    events(frame, turn).iter().map(|event| (event.name, data(event))).collect()
}

fn data_of(frame: &Frame, turn: &Turn) -> Vec<Value> {
    stream(frame, turn).into_iter().map(|(_, data)| data).collect()
}

#[test]
fn chat_whole() {
    let body = whole(&frame(Dialect::Chat, Vendor::Plain), &acting());
    let golden = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": CREATED, "model": "m",
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant", "content": "so", "refusal": null, "reasoning_content": "hm",
                "tool_calls": [{
                    "id": "call_1_1", "type": "function",
                    "function": {"name": "bash", "arguments": "{\"command\":\"echo 42\"}"},
                }],
            },
            "logprobs": null, "finish_reason": "tool_calls",
        }],
        "usage": {
            "prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
    });
    assert_eq!(body, golden);
    let silent = Turn { text: String::new(), ..acting() };
    let body = whole(&frame(Dialect::Chat, Vendor::Plain), &silent);
    assert_eq!(body["choices"][0]["message"]["content"], Value::Null);
}

#[test]
fn chat_streamed() {
    let chunks = data_of(&Frame { chunk: 12, ..frame(Dialect::Chat, Vendor::Plain) }, &acting());
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    let call = json!({"index": 0, "id": "call_1_1", "type": "function", "function": {"name": "bash", "arguments": ""}});
    let more = |piece: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]});
    assert_eq!(*deltas[0], json!({"role": "assistant", "content": ""}));
    assert_eq!(*deltas[1], json!({"reasoning_content": "hm"}));
    assert_eq!(*deltas[2], json!({"content": "so"}));
    assert_eq!(*deltas[3], json!({"tool_calls": [call]}));
    assert_eq!(*deltas[4], more("{\"command\":\""));
    assert_eq!(*deltas[5], more("echo 42\"}"));
    assert_eq!((deltas[6], &chunks[6]["choices"][0]["finish_reason"]), (&json!({}), &json!("tool_calls")));
    assert_eq!((&chunks[7]["choices"], &chunks[7]["usage"]["total_tokens"]), (&json!([]), &json!(29)));
    assert_eq!(chunks[8], "[DONE]");
    assert_eq!(chunks.len(), 9);
    assert!(
        chunks[..8]
            .iter()
            .all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["id"] == "chatcmpl-1")
    );
    // Nobody asked for usage.
    let unasked = Frame { wants: Wants::default(), ..frame(Dialect::Chat, Vendor::Plain) };
    assert!(data_of(&unasked, &acting()).iter().all(|chunk| chunk.get("usage").is_none()));
}

#[test]
fn chat_as_vendors_speak_it() {
    let message = |vendor| whole(&frame(Dialect::Chat, vendor), &acting())["choices"][0]["message"].clone();
    let open_router = message(Vendor::OpenRouter);
    assert_eq!(open_router["reasoning"], "hm");
    assert_eq!(open_router["reasoning_details"][0]["type"], "reasoning.text");
    assert_eq!(open_router["reasoning_details"][0]["text"], "hm");
    let google = message(Vendor::Google);
    let signed = &google["tool_calls"][0]["extra_content"]["google"]["thought_signature"];
    assert_eq!(*signed, chat::SIGNATURE);
}

#[test]
fn logprobs_come_when_asked_for() {
    let asked = |dialect, body: &Value| {
        let wants = wants(dialect, body);
        whole(&Frame { chunk: 2, wants, ..frame(dialect, Vendor::Plain) }, &spoken("abc"))
    };
    let token = |token: &str| {
        let top = json!({"token": token, "logprob": -0.25, "bytes": token.as_bytes()});
        json!({"token": token, "logprob": -0.25, "bytes": token.as_bytes(), "top_logprobs": [top]})
    };
    let chat = asked(Dialect::Chat, &json!({"logprobs": true}));
    assert_eq!(chat["choices"][0]["logprobs"]["content"], json!([token("ab"), token("c")]));
    let text = asked(Dialect::Text, &json!({"logprobs": 1}));
    let golden = json!({"text_offset": [0, 2], "token_logprobs": [-0.25, -0.25], "top_logprobs": null, "tokens": ["ab", "c"]});
    assert_eq!(text["choices"][0]["logprobs"], golden);
    let responses = asked(Dialect::Responses, &json!({"include": ["message.output_text.logprobs"]}));
    assert_eq!(responses["output"][0]["content"][0]["logprobs"], json!([token("ab"), token("c")]));
    let gemini = asked(Dialect::Gemini, &json!({"generationConfig": {"responseLogprobs": true}}));
    let chosen = &gemini["candidates"][0]["logprobsResult"]["chosenCandidates"];
    assert_eq!(
        *chosen,
        json!([{"token": "ab", "logProbability": -0.25}, {"token": "c", "logProbability": -0.25}])
    );
    assert_eq!(asked(Dialect::Chat, &json!({}))["choices"][0]["logprobs"], Value::Null);
}

#[test]
fn text_completions() {
    let frame = Frame { chunk: 2, ..frame(Dialect::Text, Vendor::Plain) };
    let body = whole(&frame, &spoken("abc"));
    assert_eq!((&body["object"], &body["id"]), (&json!("text_completion"), &json!("cmpl-1")));
    assert_eq!(
        body["choices"],
        json!([{"index": 0, "text": "abc", "logprobs": null, "finish_reason": "stop"}])
    );
    let chunks = data_of(&frame, &spoken("abc"));
    let texts: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["text"]).collect();
    assert_eq!(texts[..3], [&json!("ab"), &json!("c"), &json!("")]);
    assert_eq!((&chunks[3]["choices"], &chunks[3]["usage"]["prompt_tokens"]), (&json!([]), &json!(20)));
    assert_eq!(chunks[4], "[DONE]");
}

#[test]
fn responses_whole() {
    let body = whole(&frame(Dialect::Responses, Vendor::Plain), &acting());
    let output = json!([
        {
            "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": chat::SIGNATURE,
        },
        {
            "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "so", "annotations": [], "logprobs": []}],
        },
        {
            "type": "function_call", "id": "fc_1_1", "call_id": "call_1_1", "name": "bash",
            "arguments": "{\"command\":\"echo 42\"}", "status": "completed",
        },
    ]);
    assert_eq!(body["output"], output);
    assert_eq!((&body["object"], &body["status"]), (&json!("response"), &json!("completed")));
    let usage = json!({
        "input_tokens": 20, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 29,
    });
    assert_eq!(body["usage"], usage);
    let cut = Turn { finish: Finish::Length, ..spoken("a") };
    let body = whole(&frame(Dialect::Responses, Vendor::Plain), &cut);
    assert_eq!(body["status"], "incomplete");
    assert_eq!(body["incomplete_details"], json!({"reason": "max_output_tokens"}));
}

#[test]
fn responses_streamed() {
    let frame = Frame { chunk: 12, ..frame(Dialect::Responses, Vendor::Plain) };
    let events = stream(&frame, &acting());
    let names: Vec<&str> = events.iter().filter_map(|(name, _)| *name).collect();
    let golden = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names, golden);
    for (number, (name, data)) in events.iter().enumerate() {
        assert_eq!((data["type"].as_str(), &data["sequence_number"]), (*name, &json!(number)));
    }
    let (_, added) = &events[14];
    let begun = json!({
        "type": "function_call", "id": "fc_1_1", "call_id": "call_1_1", "name": "bash", "arguments": "",
        "status": "in_progress",
    });
    assert_eq!((&added["item"], &added["output_index"]), (&begun, &json!(2)));
    let (_, text) = &events[10];
    assert_eq!(
        (&text["delta"], &text["item_id"], &text["content_index"]),
        (&json!("so"), &json!("msg_1"), &json!(0))
    );
    assert_eq!(events[0].1["response"]["status"], "in_progress");
    assert_eq!(events[0].1["response"]["usage"], Value::Null);
    assert_eq!(events[19].1["response"], whole(&frame, &acting()));
    let cut = Turn { finish: Finish::ContentFilter, ..spoken("a") };
    assert_eq!(stream(&frame, &cut).pop().unwrap().0, Some("response.incomplete"));
}

#[test]
fn responses_tools_that_take_text_get_text() {
    let body = json!({"tools": [{"type": "custom", "name": "bash"}, {"type": "function", "name": "other"}]});
    let frame = Frame { wants: wants(Dialect::Responses, &body), ..frame(Dialect::Responses, Vendor::Plain) };
    let mut turn = acting();
    turn.calls[0].arguments = "*** Begin".into();
    let item = &whole(&frame, &turn)["output"][2];
    assert_eq!((&item["type"], &item["input"]), (&json!("custom_tool_call"), &json!("*** Begin")));
    let names: Vec<&str> = stream(&frame, &turn).into_iter().filter_map(|(name, _)| name).collect();
    assert!(names.contains(&"response.custom_tool_call_input.delta"), "{names:?}");
    // Nobody asked for it.
    assert_eq!(whole(&frame, &turn)["output"][0]["encrypted_content"], Value::Null);
}

#[test]
fn messages_whole() {
    let body = whole(&frame(Dialect::Messages, Vendor::Plain), &acting());
    let golden = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": chat::SIGNATURE},
            {"type": "text", "text": "so"},
            {"type": "tool_use", "id": "toolu_1_1", "name": "bash", "input": {"command": "echo 42"}},
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {
            "input_tokens": 15, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 4, "output_tokens": 9,
        },
    });
    assert_eq!(body, golden);
}

#[test]
fn messages_streamed() {
    let frame = Frame { chunk: 12, ..frame(Dialect::Messages, Vendor::Plain) };
    let events = stream(&frame, &acting());
    assert!(events.iter().all(|(name, data)| data["type"].as_str() == *name));
    let short: Vec<Value> = events
        .iter()
        .map(|(name, data)| match name.unwrap() {
            "content_block_start" => json!([data["index"], data["content_block"]]),
            "content_block_delta" => json!([data["index"], data["delta"]]),
            other => other.into(),
        })
        .collect();
    let golden = json!([
        "message_start",
        [0, {"type": "thinking", "thinking": "", "signature": ""}],
        "ping",
        [0, {"type": "thinking_delta", "thinking": "hm"}],
        [0, {"type": "signature_delta", "signature": chat::SIGNATURE}],
        "content_block_stop",
        [1, {"type": "text", "text": ""}],
        [1, {"type": "text_delta", "text": "so"}],
        "content_block_stop",
        [2, {"type": "tool_use", "id": "toolu_1_1", "name": "bash", "input": {}}],
        [2, {"type": "input_json_delta", "partial_json": "{\"command\":\""}],
        [2, {"type": "input_json_delta", "partial_json": "echo 42\"}"}],
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]);
    assert_eq!(Value::from(short), golden);
    let start = &events[0].1["message"];
    assert_eq!((&start["content"], &start["stop_reason"]), (&json!([]), &Value::Null));
    assert_eq!((&start["usage"]["input_tokens"], &start["usage"]["output_tokens"]), (&json!(15), &json!(1)));
    let delta = &events[13].1;
    assert_eq!(delta["delta"], json!({"stop_reason": "tool_use", "stop_sequence": null}));
    assert_eq!(delta["usage"]["output_tokens"], 9);
}

#[test]
fn gemini_whole_and_streamed() {
    let frame = frame(Dialect::Gemini, Vendor::Google);
    let thought = json!({"text": "hm", "thought": true});
    let function = json!({"id": "1_1", "name": "bash", "args": {"command": "echo 42"}});
    let call = json!({"functionCall": function, "thoughtSignature": chat::SIGNATURE});
    let golden = json!({
        "candidates": [{
            "content": {"role": "model", "parts": [thought, {"text": "so"}, call]},
            "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": 20, "cachedContentTokenCount": 4, "candidatesTokenCount": 6,
            "thoughtsTokenCount": 3, "totalTokenCount": 29,
        },
        "modelVersion": "m", "responseId": "1",
    });
    assert_eq!(whole(&frame, &acting()), golden);
    let chunks = data_of(&frame, &acting());
    let parts: Vec<&Value> =
        chunks.iter().map(|chunk| &chunk["candidates"][0]["content"]["parts"][0]).collect();
    assert_eq!(parts, [&thought, &json!({"text": "so"}), &call, &json!({"text": ""})]);
    let ends: Vec<bool> = chunks.iter().map(|chunk| chunk.get("usageMetadata").is_some()).collect();
    assert_eq!(ends, [false, false, false, true]);
    assert_eq!(chunks[3]["candidates"][0]["finishReason"], "STOP");
    let cut = Turn { finish: Finish::Length, ..spoken("a") };
    assert_eq!(whole(&frame, &cut)["candidates"][0]["finishReason"], "MAX_TOKENS");
}

#[test]
fn every_stream_has_one_end_and_it_comes_last() {
    for dialect in ALL {
        let frame = Frame { chunk: 1, ..frame(dialect, Vendor::Plain) };
        for turn in [spoken("abc"), spoken(""), acting()] {
            let places: Vec<Place> = events(&frame, &turn).iter().map(|event| event.place).collect();
            let (last, before) = places.split_last().unwrap();
            assert_eq!(*last, Place::Last, "{dialect:?}");
            assert!(!before.contains(&Place::Last), "{dialect:?}");
            assert_eq!(before.contains(&Place::Said), turn.len() > 0, "{dialect:?}");
        }
    }
}

const ALL: [Dialect; 5] =
    [Dialect::Chat, Dialect::Text, Dialect::Responses, Dialect::Messages, Dialect::Gemini];

fn conversation(dialect: Dialect, body: &Value) -> Conversation {
    Conversation::of(dialect, "m", &read(dialect, body))
}

/// A second round, as each dialect tells it.
fn second_rounds() -> [(Dialect, Value); 4] {
    let call = json!({"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}});
    [
        (
            Dialect::Chat,
            json!({"messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "6*7?"}, {"type": "image_url", "image_url": {}}]},
                {"role": "assistant", "content": null, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "42\n"},
            ]}),
        ),
        (
            Dialect::Responses,
            json!({"instructions": "be brief", "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "6*7?"}]},
                {"type": "reasoning", "summary": [], "encrypted_content": "x"},
                {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "42\n"},
            ]}),
        ),
        (
            Dialect::Messages,
            json!({"system": [{"type": "text", "text": "be brief"}], "messages": [
                {"role": "user", "content": "6*7?"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "bash", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "42\n"}]},
                ]},
            ]}),
        ),
        (
            Dialect::Gemini,
            json!({"systemInstruction": {"parts": [{"text": "be brief"}]}, "contents": [
                {"role": "user", "parts": [{"text": "6*7?"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "bash", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"output": "42\n"}}}]},
            ]}),
        ),
    ]
}

#[test]
fn the_same_conversation_is_read_from_every_dialect() {
    for (dialect, body) in second_rounds() {
        let want = Conversation {
            dialect,
            model: "m".into(),
            system: "be brief".into(),
            asked: "6*7?".into(),
            last: "42\n".into(),
            replies: 1,
            tool_result: Some("42\n".into()),
        };
        assert_eq!(conversation(dialect, &body), want);
    }
    let text = conversation(Dialect::Text, &json!({"prompt": "copy"}));
    assert_eq!((text.asked.as_str(), text.last.as_str(), text.replies), ("copy", "copy", 0));
    let plain = conversation(Dialect::Responses, &json!({"input": "6*7?"}));
    assert_eq!((plain.asked.as_str(), plain.system.as_str()), ("6*7?", ""));
}

#[test]
fn bodies_of_any_shape_are_read() {
    for dialect in ALL {
        for body in [
            json!(null),
            json!([]),
            json!({"messages": 1, "input": 1, "contents": "x", "prompt": []}),
            json!({"messages": [null, 1], "input": [null], "contents": [{"parts": [7]}], "system": 3}),
        ] {
            conversation(dialect, &body);
            wants(dialect, &body);
        }
    }
}

#[test]
fn errors_have_the_shape_of_their_dialect() {
    let told = |dialect, vendor, status, cause| {
        refusal(dialect, vendor, "1", &Refusal { status, cause, message: "no".into() })
    };
    let unknown = || Cause::UnknownParameter { name: "seed".into() };
    assert_eq!(
        told(Dialect::Chat, Vendor::Plain, 400, unknown()),
        json!({"error": {
            "message": "no", "type": "invalid_request_error", "param": "seed", "code": "unsupported_parameter",
        }})
    );
    assert_eq!(told(Dialect::Responses, Vendor::Plain, 401, Cause::Key)["error"]["code"], "invalid_api_key");
    let azure = told(Dialect::Chat, Vendor::Azure, 400, Cause::ContentFilter);
    assert_eq!(azure["error"]["code"], "content_filter");
    assert!(azure["error"]["innererror"]["content_filter_result"].is_object());
    let scripted = || Cause::Status { code: Some("upstream".into()) };
    assert_eq!(
        told(Dialect::Chat, Vendor::OpenRouter, 502, scripted()),
        json!({"error": {
            "code": 502, "message": "no", "metadata": {"provider_name": "Mock", "raw": "upstream"},
        }})
    );
    let wait = std::time::Duration::from_millis(1500);
    let google = told(Dialect::Gemini, Vendor::Google, 429, Cause::RateLimit { wait });
    assert_eq!(google["error"]["status"], "RESOURCE_EXHAUSTED");
    assert_eq!(google["error"]["details"][0]["retryDelay"], "1.5s");
    // Google's copy of chat completions wraps the same error in a list.
    let copied = told(Dialect::Chat, Vendor::Google, 429, Cause::RateLimit { wait });
    assert_eq!(copied, json!([google]));
    assert_eq!(
        told(Dialect::Messages, Vendor::Plain, 529, Cause::Status { code: None }),
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}, "request_id": "1"})
    );
    let spent = told(Dialect::Messages, Vendor::Plain, 429, Cause::SpendLimit);
    assert_eq!(spent["error"]["details"]["error_code"], "enforced_spend_limit_reached");
    let in_stream = |dialect| {
        let told = Refusal { status: 502, cause: scripted(), message: "no".into() };
        let event = refusal_event(&frame(dialect, Vendor::Plain), &told, 3);
        (event.name, serde_json::from_str::<Value>(&event.data).unwrap())
    };
    let (name, data) = in_stream(Dialect::Responses);
    assert_eq!((name, &data["sequence_number"]), (Some("response.failed"), &json!(3)));
    assert_eq!(data["response"]["error"], json!({"code": "upstream", "message": "no"}));
    let (name, data) = in_stream(Dialect::Messages);
    assert_eq!((name, &data["error"]["type"]), (Some("error"), &json!("api_error")));
    let (name, data) = in_stream(Dialect::Chat);
    assert_eq!((name, &data["error"]["code"]), (None, &json!("upstream")));
}

#[test]
fn speakers_are_told_apart() {
    let body = json!({"messages": [
        {"role": "developer", "content": "d"}, {"role": "user", "content": "u"}, {"role": "user", "content": "v"},
        {"role": "assistant", "content": "a"}, {"role": "user", "content": "w"},
    ]});
    let by: Vec<Speaker> = read(Dialect::Chat, &body).iter().map(|said| said.by).collect();
    assert_eq!(by[..2], [Speaker::System, Speaker::User]);
    let said = conversation(Dialect::Chat, &body);
    assert_eq!((said.asked.as_str(), said.last.as_str(), said.replies), ("u\nv", "w", 1));
}

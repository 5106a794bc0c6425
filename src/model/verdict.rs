//! What an answer is worth: a reply, or a fault where nothing was answered. An empty answer is never a reply: scored, it
//! would hide what went wrong. Must not know the wire.

use super::attempt::Fault;
use super::wire::Answer;
use crate::domain::{ChatReply, FinishReason, OutputSchema, Part, Rung, Thinking, Usage};

pub(super) fn reply(
    answer: Answer,
    rung: Option<Rung>,
    output: Option<&OutputSchema>,
    ms: u64,
) -> Result<ChatReply, Fault> {
    let used = answer.usage;
    refused(&answer).map_or(Ok(()), |fault| Err(Fault { used: used.map(Box::new), ..fault }))?;
    let finish = answer.finish.unwrap_or(FinishReason::Other);
    let usage = used.unwrap_or(Usage { calls: 1, ..Usage::default() });
    let (parts, finish) = match (rung, output) {
        (Some(Rung::ForcedTool), Some(output)) => arguments_as_text(answer.parts, &output.name, finish),
        _ => (answer.parts, finish),
    };
    let text: String = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Thinking(_) | Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        })
        .collect();
    let plain = matches!(parts.as_slice(), [] | [Part::Text(_)]);
    Ok(ChatReply {
        parts: if plain { Vec::new() } else { parts },
        logprobs: answer.logprobs,
        rung,
        ..ChatReply::of_text(text, finish, usage, ms)
    })
}

fn refused(answer: &Answer) -> Option<Fault> {
    if let Some(why) = &answer.refusal {
        return Some(Fault::refused(200, format!("the model refused to answer: {why}")));
    }
    let finish = answer.finish.unwrap_or(FinishReason::Other);
    if finish == FinishReason::ContentFilter {
        return Some(Fault::refused(200, "the content filter withheld the reply"));
    }
    let said = |part: &Part| match part {
        Part::Text(text) => !text.trim().is_empty(),
        Part::ToolCall(_) => true,
        Part::Thinking(_) | Part::Image(_) | Part::ToolResult(_) => false,
    };
    if answer.parts.iter().any(said) {
        return None;
    }
    Some(match finish {
        FinishReason::Length => {
            Fault::temporary("empty reply: max_tokens was used up before any text; raise it")
        }
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::ContentFilter | FinishReason::Other => {
            Fault::temporary("empty reply")
        }
    })
}

/// The arguments of the forced call are the reply. A model that spoke instead is taken at its word.
fn arguments_as_text(parts: Vec<Part>, name: &str, finish: FinishReason) -> (Vec<Part>, FinishReason) {
    let forced = parts.iter().find_map(|part| match part {
        Part::ToolCall(call) if call.name == name => Some(call.arguments.clone()),
        _ => None,
    });
    let Some(arguments) = forced else { return (parts, finish) };
    // The provider's marks belong to the call, which is none any more.
    let thoughts = parts.into_iter().filter_map(|part| match part {
        Part::Thinking(thinking) if !thinking.text.is_empty() => {
            Some(Part::Thinking(Thinking { opaque: serde_json::Value::Null, ..thinking }))
        }
        _ => None,
    });
    let finish = if finish == FinishReason::ToolCalls { FinishReason::Stop } else { finish };
    (thoughts.chain([Part::Text(arguments)]).collect(), finish)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::ToolCall;
    use crate::model::FaultKind;

    fn call(name: &str) -> Part {
        let (id, name) = ("c".to_owned(), name.to_owned());
        Part::ToolCall(ToolCall { id, name, arguments: "{\"ok\":true}".into(), opaque: Value::Null })
    }

    fn thought() -> Part {
        Part::Thinking(Thinking { text: "hm".into(), opaque: json!({"signature": "s"}) })
    }

    #[test]
    fn nothing_said_is_a_fault_that_tells_what_it_cost() {
        let usage = Usage { calls: 1, completion_tokens: 5, ..Usage::default() };
        for (answer, want) in [
            (Answer::default(), Fault::temporary("empty reply")),
            (
                Answer { parts: vec![thought(), Part::Text(" \n".into())], ..Answer::default() },
                Fault::temporary("empty reply"),
            ),
            (
                Answer {
                    refusal: Some("no".into()),
                    parts: vec![Part::Text("I".into())],
                    ..Answer::default()
                },
                Fault::refused(200, "the model refused to answer: no"),
            ),
            (
                Answer { finish: Some(FinishReason::ContentFilter), ..Answer::default() },
                Fault::refused(200, "the content filter withheld the reply"),
            ),
        ] {
            let answer = Answer { usage: Some(usage), ..answer };
            let fault = reply(answer, None, None, 1).unwrap_err();
            assert_eq!(fault, Fault { used: Some(Box::new(usage)), ..want });
        }
        let cut = Answer { finish: Some(FinishReason::Length), ..Answer::default() };
        let fault = reply(cut, None, None, 1).unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Temporary { .. }) && fault.message.contains("max_tokens"));
    }

    #[test]
    fn a_call_alone_is_a_reply_and_text_alone_has_no_parts() {
        let answer = Answer { parts: vec![call("f")], ..Answer::default() };
        let reply_of_call = reply(answer, None, None, 1).unwrap();
        assert_eq!((reply_of_call.text.as_str(), reply_of_call.parts.len()), ("", 1));
        let answer = Answer { parts: vec![Part::Text("hi".into())], ..Answer::default() };
        assert_eq!(reply(answer, None, None, 1).unwrap().parts, []);
    }

    #[test]
    fn arguments_of_a_forced_call_are_the_text() {
        let output = OutputSchema { name: "verdict".into(), schema: json!({}) };
        let finish = Some(FinishReason::ToolCalls);
        let answer = Answer { parts: vec![thought(), call("verdict")], finish, ..Answer::default() };
        let forced = reply(answer, Some(Rung::ForcedTool), Some(&output), 1).unwrap();
        assert_eq!((forced.text.as_str(), forced.finish), ("{\"ok\":true}", FinishReason::Stop));
        assert_eq!(forced.rung, Some(Rung::ForcedTool));
        assert!(!forced.parts.iter().any(|part| matches!(part, Part::ToolCall(_))));
        let answer = Answer { parts: vec![Part::Text("{}".into())], ..Answer::default() };
        assert_eq!(reply(answer, Some(Rung::ForcedTool), Some(&output), 1).unwrap().text, "{}");
    }
}

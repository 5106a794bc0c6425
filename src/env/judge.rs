//! The scorer that asks a model: its prompt, its verdict, one repair round. An answer without a readable verdict has no
//! score; must not see the skill.

use minijinja::Environment as Templates;
use serde_json::{Map, Value, json};

use super::scorer::{References, quoted};
use crate::domain::{
    Asks, ChatReply, ChatRequest, Judging, Message, OutputSchema, Prompt, Role, Sampling, Score, Speaker,
    Usage,
};
use crate::model::{ChatModel, LiveSink, ModelError};
use crate::text::{extract_json, sanitize_line, truncate};

pub const TEMPLATE: &str = include_str!("../../assets/judge.md");
const SYSTEM: &str = include_str!("../../assets/judge_system.md");
/// Raised whenever equal settings may lead to another verdict.
pub const JUDGE_VERSION: &str = "1";
const STAGE: &str = "judge";

/// The model that judges, and how it samples.
pub struct Judge<'a> {
    pub model: &'a dyn ChatModel,
    pub sampling: Sampling,
}

/// What is to be judged.
pub struct Case<'a> {
    /// Path of the rollout.
    pub path: &'a str,
    pub fields: &'a Map<String, Value>,
    /// The task as the target saw it, for items without a field `question`.
    pub task: &'a str,
    pub references: &'a References,
    pub answer: &'a str,
}

struct Verdict {
    correct: bool,
    score: f64,
    reason: String,
}

/// Asks for the verdict on an answer.
///
/// # Errors
/// No reply, or none that can be read.
pub async fn judge(
    judge: &Judge<'_>,
    templates: &Templates<'_>,
    template: &str,
    case: &Case<'_>,
    live: &LiveSink,
) -> Result<(Score, Judging), ModelError> {
    let user = render(templates, template, case).map_err(|message| ModelError::Prompt { message })?;
    let mut messages = vec![Message::new(Speaker::System, SYSTEM.trim()), Message::new(Speaker::User, user)];
    let (mut usage, mut ms) = (Usage::default(), 0);
    let mut path = format!("{}/judge", case.path);
    let mut ask = async |path: &str, messages: Vec<Message>| -> Result<ChatReply, ModelError> {
        let request = ChatRequest {
            path: path.to_owned(),
            role: Role::Judge,
            stage: STAGE.to_owned(),
            prompt: Prompt::Chat(messages),
            sampling: judge.sampling.clone(),
            asks: Asks { output: Some(schema()), ..Asks::default() },
            workspace: None,
            brief: None,
        };
        let reply = judge.model.chat(&request, live).await?;
        usage += reply.usage;
        ms += reply.ms;
        Ok(reply)
    };
    let first = ask(&path, messages.clone()).await?;
    let verdict = match read(&first.text) {
        Ok(verdict) => verdict,
        Err(fault) => {
            messages.push(Message::new(Speaker::Assistant, first.text.as_str()));
            let again = format!("That cannot be used: {fault}. Reply with the JSON object alone.");
            messages.push(Message::new(Speaker::User, again));
            path.push_str("/repair");
            let second = ask(&path, messages).await?;
            read(&second.text).map_err(|again| ModelError::Unjudged {
                message: format!("{fault}; after a repair round: {again}"),
            })?
        }
    };
    let Verdict { correct, score, reason } = verdict;
    let group = if correct { "right" } else { "wrong answer" };
    let score = Score {
        hard: f64::from(u8::from(correct)),
        soft: score,
        reason: format!("{group}: {} (judge: {})", quoted(case.answer), shown(&reason)),
    };
    Ok((score, Judging { by: judge.model.label().to_owned(), usage, ms }))
}

/// What the judge is asked, which fails for an item that the template cannot use.
pub fn render(templates: &Templates<'_>, template: &str, case: &Case<'_>) -> Result<String, String> {
    let mut fields = case.fields.clone();
    let question = || Value::String(case.task.to_owned());
    fields.entry("question").or_insert_with(question);
    fields.insert("reference".into(), Value::String(case.references.display()));
    fields.insert("answer".into(), Value::String(case.answer.to_owned()));
    let rendered = templates
        .get_template(template)
        .and_then(|found| found.render(minijinja::Value::from(minijinja::value::Serde(&fields))));
    rendered.map_err(|error| match error.detail() {
        Some(detail) => format!("{template}: {}: {detail}", error.kind()),
        None => format!("{template}: {}", error.kind()),
    })
}

/// Untrusted text as one inert line.
fn shown(reason: &str) -> String {
    const COLUMNS: usize = 300;
    let line: Vec<&str> = reason.split_whitespace().collect();
    truncate(&sanitize_line(&line.join(" ")), COLUMNS)
}

fn schema() -> OutputSchema {
    // The reason comes first, so that the verdict follows from it.
    let schema = json!({
        "type": "object",
        "properties": {
            "reason": {"type": "string"},
            "verdict": {"type": "string", "enum": ["correct", "incorrect"]},
            "score": {"type": "number"},
        },
        "required": ["reason", "verdict", "score"],
        "additionalProperties": false,
    });
    OutputSchema { name: "verdict".into(), schema }
}

/// The error says what is wrong with the reply.
fn read(reply: &str) -> Result<Verdict, String> {
    let Some(Value::Object(object)) = extract_json(reply) else {
        return Err("the judge's reply holds no JSON object".into());
    };
    let correct = match object.get("verdict").and_then(Value::as_str).map(|word| word.trim().to_lowercase()) {
        Some(word) if word == "correct" => true,
        Some(word) if word == "incorrect" => false,
        Some(_) | None => return Err("the judge's `verdict` is neither correct nor incorrect".into()),
    };
    let score = object.get("score").and_then(Value::as_f64).filter(|score| (0.0..=1.0).contains(score));
    let score = score.ok_or("the judge's `score` is no number from 0 to 1")?;
    if (correct && score == 0.0) || (!correct && score == 1.0) {
        return Err("the judge's `verdict` and `score` contradict each other".into());
    }
    let reason = object.get("reason").and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    Ok(Verdict { correct, score, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read_and_others_are_refused_with_a_reason() {
        let good =
            read("Well:\n```json\n{\"reason\": \"same\", \"verdict\": \"Correct\", \"score\": 1}\n```")
                .unwrap();
        assert_eq!((good.correct, good.score, good.reason.as_str()), (true, 1.0, "same"));
        let partly = read(r#"{"verdict": "incorrect", "score": 0.4}"#).unwrap();
        assert_eq!((partly.correct, partly.score), (false, 0.4));
        for (reply, expected) in [
            ("correct", "no JSON object"),
            (r#"{"verdict": "maybe", "score": 1}"#, "neither correct nor incorrect"),
            (r#"{"verdict": "correct"}"#, "no number from 0 to 1"),
            (r#"{"verdict": "correct", "score": 7}"#, "no number from 0 to 1"),
            (r#"{"verdict": "correct", "score": 0}"#, "contradict"),
            (r#"{"verdict": "incorrect", "score": 1.0}"#, "contradict"),
        ] {
            assert!(read(reply).err().unwrap().contains(expected), "{reply}");
        }
    }
}

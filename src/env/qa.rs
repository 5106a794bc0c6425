//! The question-answer environment: templates make the prompt, one call answers, a rule finds the answer, a scorer
//! or a judge says what it is worth. Owns that one exchange; must not know splits, the optimiser or how calls are made.

use futures_util::future::BoxFuture;
use minijinja::{AutoEscape, Environment as Templates, ErrorKind, UndefinedBehavior};
use serde_json::Value;

use crate::config::{EnvConfig, PromptStyle, ScorerKind};
use crate::domain::{
    Asks, ChatRequest, Delivery, Item, Message, Prompt, Role, Rollout, Speaker, Workspace, fingerprint,
};
use crate::model::ModelError;

use super::answer::Extraction;
use super::error::DataError;
use super::judge::{Case, JUDGE_VERSION, judge};
use super::passages::leading_passages;
use super::scorer::{References, Rule, SCORER_VERSION, Scorer, no_answer};
use super::{Environment, RolloutContext};

/// Raised when prompts, extraction or the rollout's form change for equal settings.
const QA_VERSION: &str = "1";

const SYSTEM: &str = "env.system_template";
const USER: &str = "env.user_template";
const JUDGE: &str = "env.judge_template";

/// Longest text kept in a rollout, bytes; the complete reply stays in `calls/`.
const KEPT: usize = 32 * 1024;

/// Questions with reference answers, one call each.
#[derive(Debug)]
pub struct QaEnv {
    templates: Templates<'static>,
    style: PromptStyle,
    extraction: Extraction,
    scoring: Scoring,
    answer_field: String,
    type_field: String,
    version: String,
}

/// Who says what an answer is worth.
#[derive(Debug)]
enum Scoring {
    Rule(Scorer),
    Judge,
}

struct Rendered {
    system: String,
    user: String,
}

impl QaEnv {
    /// Compiles templates and the answer rule; errors name the key.
    pub fn new(config: &EnvConfig) -> Result<Self, DataError> {
        let mut templates = Templates::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_auto_escape_callback(|_| AutoEscape::None);
        templates.add_filter("passages", |context: String, limit: usize| leading_passages(&context, limit));
        let judge = match config.judge_template.as_str() {
            "" => super::judge::TEMPLATE,
            own => own,
        };
        let sources = [
            (SYSTEM, config.system_template.as_str()),
            (USER, config.user_template.as_str()),
            (JUDGE, judge),
        ];
        for (key, source) in sources {
            templates.add_template_owned(key, source.to_owned()).map_err(|error| {
                let line =
                    error.line().map_or(String::new(), |line| format!(" (line {line} of the template)"));
                DataError::setting(key, format!("{}{line}", described(&error)))
            })?;
        }
        if config.answer_field.is_empty() {
            return Err(DataError::setting(
                "env.answer_field",
                "is empty; name the field with the reference answer",
            ));
        }
        Ok(Self {
            templates,
            style: config.prompt_style,
            extraction: Extraction::new(config)?,
            scoring: match Rule::of(config.scorer) {
                Some(kind) => Scoring::Rule(Scorer { kind, numeric_tolerance: config.numeric_tolerance }),
                None => Scoring::Judge,
            },
            answer_field: config.answer_field.clone(),
            type_field: config.type_field.clone(),
            version: version(config),
        })
    }

    /// Whether every rollout of `item` can be rendered and scored; else what to repair.
    pub fn check(&self, item: &Item) -> Result<(), String> {
        let references = self.references(item)?;
        let Rendered { user, .. } = self.render(item, "")?;
        match self.scoring {
            Scoring::Rule(_) => Ok(()),
            Scoring::Judge => {
                let case =
                    Case { path: "", fields: &item.fields, task: &user, references: &references, answer: "" };
                super::judge::render(&self.templates, JUDGE, &case).map(|_| ())
            }
        }
    }

    fn references(&self, item: &Item) -> Result<References, String> {
        let field = &self.answer_field;
        let value = item
            .fields
            .get(field)
            .ok_or_else(|| format!("has no field `{field}` (env.answer_field); it has {}", names(item)))?;
        let references = match &self.scoring {
            Scoring::Rule(scorer) => scorer.references(value),
            Scoring::Judge => References::read(value),
        };
        references.map_err(|problem| format!("`{field}`: {problem}"))
    }

    fn render(&self, item: &Item, skill: &str) -> Result<Rendered, String> {
        let mut fields = item.fields.clone();
        // The name `skill` is always the document, whatever the item calls its fields.
        fields.insert("skill".to_owned(), Value::String(skill.to_owned()));
        let context = minijinja::Value::from(minijinja::value::Serde(&fields));
        let render = |key: &str| {
            let template =
                self.templates.get_template(key).map_err(|error| format!("{key}: {}", described(&error)))?;
            template.render(&context).map_err(|error| {
                if error.kind() != ErrorKind::UndefinedError {
                    return format!("{key}: {}", described(&error));
                }
                let mut missing: Vec<String> = template
                    .undeclared_variables(true)
                    .into_iter()
                    .filter(|path| !defined(&fields, path))
                    .map(|path| format!("`{path}`"))
                    .collect();
                missing.sort();
                format!("{key} asks for {}, but the item has {}", missing.join(", "), names(item))
            })
        };
        Ok(Rendered { system: render(SYSTEM)?, user: render(USER)? })
    }

    fn prompt(&self, rendered: &Rendered) -> Prompt {
        let Rendered { system, user } = rendered;
        match self.style {
            PromptStyle::Document => Prompt::Text(format!("{system}\n{user}\n")),
            PromptStyle::Chat => {
                let mut messages = Vec::with_capacity(2);
                // Some servers refuse an empty system message; it says nothing anyway.
                if !system.trim().is_empty() {
                    messages.push(Message::new(Speaker::System, system));
                }
                messages.push(Message::new(Speaker::User, user));
                Prompt::Chat(messages)
            }
        }
    }

    fn task_type(&self, item: &Item) -> String {
        match item.fields.get(&self.type_field) {
            Some(Value::String(name)) if !name.trim().is_empty() => name.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_))
            | None => "qa".to_owned(),
        }
    }

    async fn answer(
        &self,
        item: &Item,
        skill: &str,
        context: RolloutContext<'_>,
    ) -> Result<Rollout, ModelError> {
        let unusable =
            |message: String| ModelError::Prompt { message: format!("item {:?}: {message}", item.id) };
        let references = self.references(item).map_err(unusable)?;
        // A model that finds the skill as a file is given the task alone.
        let (in_prompt, workspace) = match context.target.delivery() {
            Delivery::Prompt => (skill, None),
            Delivery::Files => {
                ("", Some(Box::new(Workspace { skill: skill.to_owned(), ..Workspace::default() })))
            }
        };
        let mut rendered = self.render(item, in_prompt).map_err(unusable)?;
        if let Some(readout) = context.readout {
            rendered.user = format!("{}\n\n## Training readout\n\n{readout}", rendered.user.trim_end());
        }
        let request = ChatRequest {
            path: context.path.to_owned(),
            role: Role::Target,
            stage: context.stage.to_owned(),
            prompt: self.prompt(&rendered),
            sampling: context.sampling,
            asks: Asks::default(),
            workspace,
            brief: None,
        };
        let reply = context.target.chat(&request, context.live).await?;
        let (answer, score, judging) = match (self.extraction.extract(&reply.text), &self.scoring) {
            (Err(why), _) => ("", no_answer(&why), None),
            (Ok(answer), Scoring::Rule(scorer)) => (answer, scorer.score(answer, &references), None),
            (Ok(answer), Scoring::Judge) => {
                let case = Case {
                    path: context.path,
                    fields: &item.fields,
                    task: &rendered.user,
                    references: &references,
                    answer,
                };
                let by = context.judge.as_ref().ok_or_else(|| unusable("no judge was given".into()))?;
                let asked = judge(by, &self.templates, JUDGE, &case, context.live).await?;
                (answer, asked.0, Some(asked.1))
            }
        };
        Ok(Rollout {
            item: item.id.clone(),
            task_type: self.task_type(item),
            task: kept(&rendered.user),
            gold: references.display(),
            system_prompt: kept(&rendered.system).into(),
            user_prompt: kept(&rendered.user),
            answer: kept(answer),
            reply: kept(&reply.text),
            turns: reply.turns,
            score,
            finish: reply.finish,
            usage: reply.usage,
            ms: reply.ms,
            judging,
        })
    }
}

impl Environment for QaEnv {
    fn version(&self) -> &str {
        &self.version
    }

    fn needs_judge(&self) -> bool {
        matches!(self.scoring, Scoring::Judge)
    }

    fn reference(&self, item: &Item) -> String {
        item.fields.get("reference_text").and_then(Value::as_str).unwrap_or_default().trim().to_owned()
    }

    fn rollout<'a>(
        &'a self,
        item: &'a Item,
        skill: &'a str,
        context: RolloutContext<'a>,
    ) -> BoxFuture<'a, Result<Rollout, ModelError>> {
        Box::pin(self.answer(item, skill, context))
    }
}

/// Everything that makes equal replies to equal items score differently, or equal items prompt differently.
fn version(config: &EnvConfig) -> String {
    let rules = serde_json::json!([
        config.prompt_style,
        config.answer_rule,
        config.answer_tag,
        config.answer_pattern,
        config.scorer,
        config.answer_field,
        config.type_field,
        config.numeric_tolerance,
    ])
    .to_string();
    let mut parts = vec![
        QA_VERSION,
        SCORER_VERSION,
        config.system_template.as_str(),
        config.user_template.as_str(),
        rules.as_str(),
    ];
    if config.scorer == ScorerKind::Judge {
        parts.extend([JUDGE_VERSION, config.judge_template.as_str()]);
    }
    let hash = fingerprint(parts);
    format!("qa-{}", &hash[..16])
}

/// minijinja's message without its own note of place.
fn described(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

fn names(item: &Item) -> String {
    let names: Vec<String> = item.fields.keys().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Whether a dotted path leads to a value.
fn defined(fields: &serde_json::Map<String, Value>, path: &str) -> bool {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|name| fields.get(name));
    parts.try_fold(first, |value, name| value.map(|value| value.get(name))).flatten().is_some()
}

/// The text, or its head and tail around a note of how much is left out.
fn kept(text: &str) -> String {
    if text.len() <= KEPT {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(KEPT / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - KEPT / 2)..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[… {left_out} bytes left out here; the call's record has the complete text …]\n{tail}")
}

#[cfg(test)]
#[path = "qa_tests.rs"]
mod tests;

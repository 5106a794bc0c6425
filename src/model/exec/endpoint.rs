//! A coding agent as an [`Endpoint`]: one request is one job, and how the job ended is a reply or a fault. Must not retry.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use super::job::{Job, Work};
use super::run::{ExecError, run, version};
use super::settings::{Agent, ExecSettings};
use super::trace::{Cap, End, FailureClass, News, Trace};
use super::{Cli, Version};
use crate::config::Effort;
use crate::domain::{
    ChatReply, ChatRequest, Delivery, FinishReason, Part, Prompt, Rung, Speaker, ToolChoice,
    Workspace as Files,
};
use crate::event::Live;
use crate::model::LiveSink;
use crate::model::attempt::{Endpoint, Fault, FaultKind};
use crate::model::dials::Dials;

/// What an attempt's own limit leaves for ending the program and reading what it said.
const RESERVE: Duration = Duration::from_secs(4);

/// One agent program with one model.
pub struct ExecEndpoint {
    settings: ExecSettings,
    delivery: Delivery,
    dials: Arc<Dials>,
    label: String,
    host: String,
    version: OnceCell<Version>,
}

impl ExecEndpoint {
    /// `delivery` says whether it works on files (a target) or answers plain questions.
    pub fn new(settings: ExecSettings, delivery: Delivery, dials: Arc<Dials>) -> Self {
        let host = settings.agent.cli().program().to_owned();
        Self { label: label(&settings), settings, delivery, dials, host, version: OnceCell::new() }
    }

    async fn call(&self, request: &ChatRequest, live: &LiveSink) -> Result<ChatReply, Fault> {
        let (job, rung) = job(self.settings.agent.cli(), self.delivery, request)?;
        self.version.get_or_try_init(|| version(&self.settings)).await.map_err(fault)?;
        let started = Instant::now();
        let settings = self.settings_of(request);
        let news = |news| live(delta(request, news));
        let trace = run(&settings, &job, &news).await.map_err(fault)?;
        reply(trace, rung, started.elapsed())
    }

    fn settings_of(&self, request: &ChatRequest) -> ExecSettings {
        let mut settings = self.settings.clone();
        if request.stage == "rewrite" && settings.rewrite_effort != Effort::NotSent {
            settings.effort = settings.rewrite_effort;
        }
        let total = self.dials.get().total_timeout;
        settings.caps.wall = settings.caps.wall.min(total.saturating_sub(settings.caps.grace + RESERVE));
        settings
    }
}

impl Endpoint for ExecEndpoint {
    fn label(&self) -> &str {
        &self.label
    }

    fn host(&self) -> &str {
        &self.host
    }

    fn login(&self) -> String {
        match &self.settings.key {
            Some(key) if !key.variable.is_empty() => format!("the key in {}", key.variable),
            Some(_) => "the key in the configured file".to_owned(),
            None => format!(
                "api_key_env or api_key_file: {} has a home of its own for every job and sees no login of yours",
                self.settings.agent.cli().name()
            ),
        }
    }

    fn delivery(&self) -> Delivery {
        self.delivery
    }

    fn account(&self) -> String {
        let key = self.settings.key.as_ref().map_or("", |key| key.variable.as_str());
        format!("{} {} {key}", self.host, self.settings.base_url)
    }

    fn attempt<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, Fault>> {
        Box::pin(self.call(request, live))
    }
}

/// Everything but the request that determines a reply.
fn label(settings: &ExecSettings) -> String {
    let cli = settings.agent.cli();
    let mut label = format!("{}:{}", cli.program(), settings.model);
    let mut more = |name: &str, value: &str| {
        if !value.is_empty() {
            label.push_str(&format!(" {name}={value}"));
        }
    };
    more("at", &settings.base_url);
    more("effort", settings.effort.word());
    more("rewrite effort", settings.rewrite_effort.word());
    match &settings.agent {
        Agent::Codex(options) => {
            more("sandbox", options.sandbox.word());
            more("approval", options.approval.word());
            more("network", if options.network { "yes" } else { "" });
            more("web search", if options.web_search { "yes" } else { "" });
        }
        Agent::Claude(options) => {
            more("thinking tokens", &options.thinking_tokens.map_or(String::new(), |most| most.to_string()));
        }
        Agent::Copilot(options) => more("all tools", if options.all_tools { "yes" } else { "" }),
        Agent::Cursor { sandbox } => more("sandbox", sandbox.word()),
        Agent::Opencode | Agent::Pi | Agent::Gemini => {}
    }
    label
}

/// The request as a job, and how its schema is put.
fn job(cli: Cli, delivery: Delivery, request: &ChatRequest) -> Result<(Job, Option<Rung>), Fault> {
    let cannot = |what: &str| Err(Fault::refused(0, format!("{} as a model cannot take {what}", cli.name())));
    if !request.asks.tools.is_empty() && request.asks.tool_choice != ToolChoice::None {
        return cannot("tools of the request; it has its own");
    }
    if request.asks.logprobs {
        return cannot("a wish for log-probabilities");
    }
    let (system, mut task) = match &request.prompt {
        Prompt::Text(_) => return cannot("text to be continued; use a chat prompt"),
        Prompt::Chat(messages) => {
            let odd = |part: &Part| !matches!(part, Part::Text(_) | Part::Thinking(_));
            if messages.iter().any(|message| message.content.parts().iter().any(odd)) {
                return cannot("images or tool results in messages");
            }
            let of = |wanted: bool| messages.iter().filter(move |m| (m.role == Speaker::System) == wanted);
            let system: Vec<String> = of(true).map(|message| message.content.text()).collect();
            let spoken: Vec<_> = of(false).collect();
            let task = match spoken.as_slice() {
                [only] => only.content.text(),
                several => {
                    let lines = several.iter().map(|m| format!("[{}]\n{}", m.role.name(), m.content.text()));
                    lines.collect::<Vec<_>>().join("\n\n")
                }
            };
            ((!system.is_empty()).then(|| system.join("\n\n")), task)
        }
    };
    let schema = request.asks.output.as_ref().map(|output| output.schema.clone());
    // A target that works on files is an agent even where its skill came in the prompt.
    let files = request.workspace.as_deref().cloned();
    let files = files.or_else(|| (delivery == Delivery::Files).then(Files::default));
    let told = matches!(cli, Cli::Codex | Cli::Claude) && files.is_none();
    let rung = schema.as_ref().map(|_| if told { Rung::JsonSchema } else { Rung::Text });
    if let (Some(schema), false) = (&schema, told) {
        task.push_str(&format!(
            "\n\nAnswer with one JSON object of this schema and nothing else:\n{schema}\n"
        ));
    }
    let work = match files {
        Some(files) => Work::Agent(files),
        None => {
            let max_tokens = Some(request.sampling.max_tokens);
            Work::Chat { schema: schema.filter(|_| told), max_tokens }
        }
    };
    Ok((Job { system, task, work }, rung))
}

fn delta(request: &ChatRequest, news: News) -> Live {
    let text = match news {
        News::Said(text) => text,
        News::Called(command) => format!("\n$ {command}\n"),
    };
    Live::CallDelta { path: request.path.clone(), text }
}

fn reply(trace: Trace, rung: Option<Rung>, took: Duration) -> Result<ChatReply, Fault> {
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let (kind, message) = match trace.end {
        End::Completed => {
            let mut reply = ChatReply::of_text(trace.final_text, FinishReason::Stop, trace.usage, ms);
            reply.turns = trace.turns;
            reply.rung = rung;
            return Ok(reply);
        }
        End::Empty => (FaultKind::Temporary { wait: None }, "it ended without an answer".to_owned()),
        End::Failed { class, message } => {
            let kind = match class {
                FailureClass::Auth => FaultKind::Authentication,
                FailureClass::RateLimit => FaultKind::Overloaded { wait: None },
                FailureClass::Model => FaultKind::Refused { status: 400 },
                FailureClass::Outage | FailureClass::Sandbox | FailureClass::Unknown => {
                    FaultKind::Temporary { wait: None }
                }
            };
            (kind, message)
        }
        // Another attempt would cost as much and end the same way.
        End::Cut { cap } => {
            let calls = trace.tool_calls;
            let message = match cap {
                Cap::ToolCalls => format!("cut after {calls} tool calls"),
                Cap::WallClock | Cap::OutputBytes => {
                    format!("cut at the limit of its {} after {calls} tool calls", cap.name())
                }
            };
            (FaultKind::Refused { status: 200 }, message)
        }
    };
    // Most programs tell only at their end what they used; where nothing was told, the job counts at its most.
    let told = trace.usage.tokens() > 0 || kind == FaultKind::Authentication;
    Err(Fault { kind, message, used: told.then(|| Box::new(trace.usage)) })
}

fn fault(error: ExecError) -> Fault {
    let message = error.to_string();
    match error {
        ExecError::Missing { .. }
        | ExecError::Start { .. }
        | ExecError::TooOld { .. }
        | ExecError::Settings { .. }
        | ExecError::Instructions { .. } => Fault::new(FaultKind::Unusable, message),
        // A full disk or a busy machine may pass.
        ExecError::NoVersion { .. } | ExecError::Workspace { .. } | ExecError::Output { .. } => {
            Fault::temporary(message)
        }
    }
}

//! The real programs against a scripted server, by hand (`make test-live`): `PLANISH_LIVE_CLIS` is a folder with one npm
//! prefix per program, `PLANISH_LIVE_URL` the server's address without a path.

use std::path::PathBuf;
use std::time::Duration;

use planish::config::{CodexSandbox, Effort};
use planish::domain::Workspace;
use planish::model::exec::{
    Agent, Caps, ClaudeOptions, Cli, CodexOptions, CopilotOptions, End, ExecKey, ExecSettings, Job, Work,
    inherited, run, version,
};

const SECRET: &str = "sk-live-0123456789";

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `make test-live`"))
}

fn settings(agent: Agent, scratch: PathBuf) -> ExecSettings {
    let cli = agent.cli();
    let clis = PathBuf::from(variable("PLANISH_LIVE_CLIS"));
    let url = variable("PLANISH_LIVE_URL");
    let program = clis.join(format!("{}/node_modules/.bin/{}", cli.program(), cli.program()));
    let env = |name: &str| std::env::var(name).ok();
    ExecSettings {
        program: program.to_string_lossy().into_owned(),
        model: match cli {
            Cli::Claude => "claude-mock".into(),
            Cli::Gemini => "gemini-2.5-pro".into(),
            _ => "mock-model".into(),
        },
        base_url: if matches!(cli, Cli::Claude | Cli::Gemini) { url } else { format!("{url}/v1") },
        key: Some(ExecKey { variable: "OPENAI_API_KEY".into(), secret: SECRET.into() }),
        effort: Effort::NotSent,
        rewrite_effort: Effort::NotSent,
        caps: Caps { wall: Duration::from_secs(120), ..Caps::default() },
        scratch,
        inherited: inherited(&env),
        agent,
    }
}

fn agents() -> Vec<Agent> {
    let sandbox = CodexSandbox::DangerFullAccess;
    vec![
        Agent::Codex(CodexOptions { sandbox, ..CodexOptions::default() }),
        Agent::Claude(ClaudeOptions::default()),
        Agent::Copilot(CopilotOptions::default()),
        Agent::Opencode,
        Agent::Pi,
        Agent::Gemini,
    ]
}

#[tokio::test]
#[ignore = "needs the real programs: make test-live"]
async fn real_programs_do_a_job() {
    let scratch = tempfile::tempdir().unwrap();
    let mut faults = Vec::new();
    for agent in agents() {
        let settings = settings(agent, scratch.path().to_owned());
        let name = settings.agent.cli().name();
        let found = version(&settings).await.unwrap();
        let work = Work::Agent(Workspace { skill: "Add up.".into(), ..Workspace::default() });
        let job = Job { system: None, task: "What is 40+2?".into(), work };
        let begun = std::time::Instant::now();
        let trace = run(&settings, &job, &|_| ()).await.unwrap();
        println!(
            "{name} {found}: {:?} in {:.1} s, {} tool calls, {:?}, unknown {:?}",
            trace.end,
            begun.elapsed().as_secs_f32(),
            trace.tool_calls,
            trace.usage,
            trace.unknown_events
        );
        if trace.end != End::Completed || !trace.final_text.contains("<answer>42</answer>") {
            faults.push(format!("{name}: {trace:#?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
#[ignore = "needs the real programs: make test-live"]
async fn real_programs_answer_a_plain_question() {
    let scratch = tempfile::tempdir().unwrap();
    let mut faults = Vec::new();
    for agent in agents() {
        let settings = settings(agent, scratch.path().to_owned());
        let name = settings.agent.cli().name();
        let job = Job {
            system: Some("Be brief.".into()),
            // More than fits into an argument.
            task: format!("What is 40+2?\n{}", "The numbers are as given. ".repeat(8_000)),
            work: Work::Chat { schema: None, max_tokens: None },
        };
        let trace = run(&settings, &job, &|_| ()).await.unwrap();
        println!("{name}: {:?}, {} tool calls, {:?}", trace.end, trace.tool_calls, trace.unknown_events);
        if trace.end != End::Completed || trace.tool_calls > 0 {
            faults.push(format!("{name}: {trace:#?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

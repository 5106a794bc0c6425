use super::*;
use crate::config::{CursorSandbox, Effort};
use crate::domain::Workspace as Files;
use crate::model::exec::process::Caps;
use crate::model::exec::settings::{ClaudeOptions, CodexOptions, CopilotOptions, ExecKey};

const SECRET: &str = "key-0123456789";

fn agents() -> Vec<Agent> {
    vec![
        Agent::Codex(CodexOptions::default()),
        Agent::Claude(ClaudeOptions { thinking_tokens: Some(16_384) }),
        Agent::Copilot(CopilotOptions::default()),
        Agent::Cursor { sandbox: CursorSandbox::Unset },
        Agent::Opencode,
        Agent::Pi,
        Agent::Gemini,
    ]
}

fn settings(agent: Agent, base_url: &str, scratch: &std::path::Path) -> ExecSettings {
    ExecSettings {
        program: agent.cli().program().into(),
        agent,
        model: "vendor/some-model".into(),
        base_url: base_url.into(),
        key: Some(ExecKey { variable: "VENDOR_API_KEY".into(), secret: SECRET.into() }),
        effort: Effort::Low,
        rewrite_effort: Effort::NotSent,
        caps: Caps::default(),
        scratch: scratch.to_owned(),
        inherited: vec![("PATH".into(), "/bin".into()), ("HOME".into(), "/home/somebody".into())],
    }
}

fn jobs() -> [Job; 2] {
    let files = Files { skill: "Add up.".into(), ..Files::default() };
    let schema = Some(serde_json::json!({ "type": "object" }));
    [Work::Agent(files), Work::Chat { schema, max_tokens: Some(4096) }].map(|work| Job {
        system: Some("Be brief.".into()),
        task: "What is 40+2?".into(),
        work,
    })
}

/// All that a program gets, on lines.
fn told(launch: &Launch, workspace: &Workspace) -> String {
    let mut text = format!("{:?}\n", launch.args);
    for (name, value) in &launch.env {
        text.push_str(&format!("{name}={value}\n"));
    }
    for file in [".pi/agent/models.json", ".gemini/settings.json", "schema.json"] {
        if let Ok(content) = std::fs::read_to_string(workspace.home().join(file)) {
            text.push_str(&format!("{file}: {content}\n"));
        }
    }
    let scratch =
        workspace.work().parent().and_then(|job| job.parent()).unwrap().to_string_lossy().into_owned();
    text.replace(&workspace.mark(), "JOB").replace(&scratch, "SCRATCH")
}

#[test]
fn programs_are_called_as_documented() {
    let scratch = tempfile::tempdir().unwrap();
    let mut all = String::new();
    for agent in agents() {
        for base_url in ["", "http://127.0.0.1:9000/v1"] {
            for job in jobs() {
                let settings = settings(agent.clone(), base_url, &scratch.path().canonicalize().unwrap());
                let cli = settings.agent.cli();
                let workspace = Workspace::create(&settings.scratch, skills(cli), &job).unwrap();
                let kind = if matches!(job.work, Work::Chat { .. }) { "chat" } else { "agent" };
                all.push_str(&format!("== {} {kind} {base_url}\n", cli.name()));
                match launch(&settings, &job, &workspace) {
                    Ok(launch) => all.push_str(&told(&launch, &workspace)),
                    Err(error) => all.push_str(&format!("{error}\n")),
                }
            }
        }
    }
    insta::with_settings!({ snapshot_path => "../../../../tests/exec/snapshots" }, {
        insta::assert_snapshot!("launches", all);
    });
}

#[test]
fn the_key_is_in_one_variable_and_nowhere_else() {
    let scratch = tempfile::tempdir().unwrap();
    for agent in agents() {
        for base_url in ["", "http://127.0.0.1:9000/v1"] {
            for job in jobs() {
                let settings = settings(agent.clone(), base_url, scratch.path());
                let workspace = Workspace::create(&settings.scratch, skills(agent.cli()), &job).unwrap();
                let Ok(launch) = launch(&settings, &job, &workspace) else { continue };
                assert_eq!(told(&launch, &workspace).matches(SECRET).count(), 1, "{agent:?}");
                assert!(launch.args.iter().all(|arg| !arg.contains(SECRET)), "{agent:?}");
                let mut names: Vec<_> = launch.env.iter().map(|(name, _)| name).collect();
                names.sort();
                let all = names.len();
                names.dedup();
                assert_eq!(names.len(), all, "{agent:?} gets a variable twice");
                assert!(!launch.env.iter().any(|(_, value)| value.contains("somebody")), "{agent:?}");
            }
        }
    }
}

#[test]
fn wrong_settings_name_the_remedy() {
    let scratch = tempfile::tempdir().unwrap();
    let [job, _] = jobs();
    let refuse = |agent: Agent, model: &str, base_url: &str| {
        let mut settings = settings(agent, base_url, scratch.path());
        settings.model = model.into();
        let workspace = Workspace::create(&settings.scratch, ".agents/skills", &job).unwrap();
        launch(&settings, &job, &workspace).unwrap_err().to_string()
    };
    for (agent, model, base_url, want) in [
        (Agent::Pi, "gpt-5.5", "", "Pi needs the model as PROVIDER/MODEL"),
        (Agent::Opencode, "/x", "", "OpenCode needs the model as PROVIDER/MODEL"),
        (
            Agent::Gemini,
            "",
            "http://127.0.0.1:1",
            "Gemini CLI needs the name of a model of http://127.0.0.1:1",
        ),
        (Agent::Cursor { sandbox: CursorSandbox::Unset }, "m", "http://127.0.0.1:1", "remove base_url"),
    ] {
        let error = refuse(agent, model, base_url);
        assert!(error.contains(want), "{error}");
    }
}

//! The runner against programs that misbehave: each is one script that speaks as Codex does.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use planish::config::Effort;
use planish::domain::{Turn, Workspace};
use planish::model::exec::{
    Agent, Cap, Caps, CodexOptions, End, ExecError, ExecKey, ExecSettings, FailureClass, Job, News, Trace,
    Work, inherited, run, version,
};

const SECRET: &str = "key-0123456789";

fn fake(program: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fake-cli");
    folder.join(program).to_string_lossy().into_owned()
}

/// Settings whose model is what the script does, and the folder that holds its jobs.
pub fn settings(behaviour: &str) -> (ExecSettings, tempfile::TempDir) {
    let scratch = tempfile::tempdir().unwrap();
    let caps = Caps {
        wall: Duration::from_secs(60),
        tool_calls: 20,
        line_bytes: 1 << 20,
        total_bytes: 8 << 20,
        grace: Duration::from_millis(50),
    };
    let env = |name: &str| std::env::var(name).ok();
    let settings = ExecSettings {
        agent: Agent::Codex(CodexOptions::default()),
        program: fake("agent"),
        model: behaviour.into(),
        base_url: String::new(),
        key: Some(ExecKey { variable: "OPENAI_API_KEY".into(), secret: SECRET.into() }),
        effort: Effort::NotSent,
        rewrite_effort: Effort::NotSent,
        caps,
        scratch: scratch.path().to_owned(),
        inherited: inherited(&env),
    };
    (settings, scratch)
}

fn job() -> Job {
    let work = Work::Agent(Workspace { skill: "Add up.".into(), ..Workspace::default() });
    Job { system: None, task: "What is 40+2?".into(), work }
}

async fn trace(settings: &ExecSettings) -> Trace {
    run(settings, &job(), &|_| ()).await.unwrap()
}

/// Runs one behaviour; nothing of the job may be left.
async fn behave(behaviour: &str) -> Trace {
    let (settings, scratch) = settings(behaviour);
    let trace = trace(&settings).await;
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "{behaviour} left its folder");
    trace
}

fn failure(trace: &Trace) -> (FailureClass, &str) {
    match &trace.end {
        End::Failed { class, message } => (*class, message),
        end => panic!("{end:?}"),
    }
}

/// Dead, or waiting only to be collected.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z")))
}

#[tokio::test]
async fn an_agent_reads_its_files_and_answers() {
    let (settings, _scratch) = settings("answer");
    let news = Mutex::new(Vec::new());
    let trace = run(&settings, &job(), &|one| news.lock().unwrap().push(one)).await.unwrap();
    assert_eq!(trace.end, End::Completed);
    let outputs: Vec<_> = trace
        .turns
        .iter()
        .filter_map(|turn| match turn {
            Turn::ToolCall { obs, exit: Some(0), .. } => Some(obs.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(outputs[0], "What is 40+2?");
    assert!(outputs[1].ends_with("---||Add up.|"), "{}", outputs[1]);
    assert!(trace.final_text.contains("`.agents/skills/target-skill/SKILL.md`"), "{}", trace.final_text);
    assert!(trace.final_text.contains("<answer>"), "{}", trace.final_text);
    assert_eq!(trace.usage.prompt_tokens, 10);
    assert_eq!(news.into_inner().unwrap()[0], News::Called("cat task.md".into()));
}

#[tokio::test]
async fn a_plain_chat_has_an_empty_folder_and_the_prompt_alone() {
    let (settings, _scratch) = settings("idle");
    let work = Work::Chat { schema: None, max_tokens: None };
    let job = Job { system: Some("Be brief.".into()), task: "What is 40+2?".into(), work };
    let trace = run(&settings, &job, &|_| ()).await.unwrap();
    assert_eq!((&trace.end, trace.final_text.as_str()), (&End::Completed, "<answer>42</answer>"));
}

#[tokio::test]
async fn an_agent_gets_its_key_and_nothing_else_of_ours() {
    let (settings, _scratch) = settings("environment");
    let text = trace(&settings).await.final_text;
    let variables: Vec<(&str, &str)> = text.split('|').filter_map(|line| line.split_once('=')).collect();
    let value = |name: &str| variables.iter().find(|(one, _)| *one == name).map(|(_, value)| *value);
    assert_eq!(value("CODEX_API_KEY"), Some(SECRET));
    assert_eq!(text.matches(SECRET).count(), 1, "{text}");
    // What cargo sets in every test stands for all else of our environment.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert_eq!(value("CARGO_MANIFEST_DIR"), None);
    let root = settings.scratch.canonicalize().unwrap();
    for name in ["HOME", "CODEX_HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
        assert!(value(name).unwrap().starts_with(root.to_str().unwrap()), "{name} is {:?}", value(name));
    }
    let allowed =
        ["PATH", "PWD", "OLDPWD", "SHLVL", "_", "TERM", "NO_COLOR", "XDG_STATE_HOME", "LANG", "LANGUAGE"];
    for (name, _) in &variables {
        let known = name.starts_with("LC_")
            || name.to_lowercase().ends_with("_proxy")
            || name.starts_with("SSL_CERT_")
            || *name == "NODE_EXTRA_CA_CERTS"
            || allowed.contains(name)
            || ["HOME", "CODEX_HOME", "TMPDIR", "CODEX_API_KEY"].contains(name)
            || name.starts_with("XDG_");
        assert!(known, "{name} got through");
    }
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_by_the_clock() {
    let (mut settings, _scratch) = settings("hang");
    settings.caps.wall = Duration::from_millis(500);
    let trace = trace(&settings).await;
    assert_eq!(trace.end, End::Cut { cap: Cap::WallClock });
    if let Some(Turn::ToolCall { cmd: pid, .. }) = trace.turns.first() {
        assert!(is_gone(pid), "{pid} lives");
    }
}

#[tokio::test]
async fn floods_end_at_the_byte_cap() {
    for behaviour in ["flood", "complain"] {
        assert_eq!(behave(behaviour).await.end, End::Cut { cap: Cap::OutputBytes }, "{behaviour}");
    }
}

#[tokio::test]
async fn an_agent_that_never_stops_calling_is_cut() {
    let trace = behave("busy").await;
    assert_eq!(trace.end, End::Cut { cap: Cap::ToolCalls });
    assert_eq!(trace.tool_calls, 21);
}

#[tokio::test]
async fn nothing_that_an_agent_started_outlives_its_job() {
    let trace = behave("children").await;
    assert_eq!(trace.end, End::Completed);
    let pids: Vec<&str> = trace.final_text.split(' ').collect();
    assert_eq!(pids.len(), 2);
    for pid in pids {
        assert!(is_gone(pid), "{pid} lives");
    }
}

#[tokio::test]
async fn output_that_stays_open_does_not_hold_the_job() {
    let trace = behave("holding").await;
    assert_eq!((&trace.end, trace.final_text.as_str()), (&End::Completed, "done"));
}

#[tokio::test]
async fn a_cancelled_job_leaves_nothing_running() {
    let (settings, scratch) = settings("hang");
    let pid = Mutex::new(String::new());
    let note = |news| {
        if let News::Called(command) = news {
            *pid.lock().unwrap() = command;
        }
    };
    {
        let job = job();
        let mut running = std::pin::pin!(run(&settings, &job, &note));
        while pid.lock().unwrap().is_empty() {
            tokio::select! {
                biased;
                end = &mut running => panic!("it ended: {end:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    let pid = pid.into_inner().unwrap();
    let left = || !is_gone(&pid) || std::fs::read_dir(scratch.path()).unwrap().count() > 0;
    let begun = std::time::Instant::now();
    while left() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{pid} or its folder is left");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn exit_code_0_alone_is_no_answer() {
    let silent = behave("silent").await;
    assert_eq!(failure(&silent), (FailureClass::Unknown, "it ended with exit code 0 without a result"));
    assert_eq!(behave("wordless").await.end, End::Empty);
    let idle = behave("idle").await;
    let (class, message) = failure(&idle);
    assert_eq!(class, FailureClass::Sandbox, "{message}");
}

#[tokio::test]
async fn an_answer_before_a_crash_is_no_answer() {
    let trace = behave("crash").await;
    assert_eq!(failure(&trace).1, "it ended with exit code 3: core dumped at last");
}

#[tokio::test]
async fn a_refused_key_ends_the_job_at_once() {
    let trace = behave("login").await;
    assert_eq!(failure(&trace).0, FailureClass::Auth);
}

#[tokio::test]
async fn garbage_is_counted_and_passed_over() {
    let trace = behave("garbage").await;
    assert_eq!((&trace.end, trace.final_text.as_str()), (&End::Completed, "<answer>42</answer>"));
    let count = |kind: &str| trace.unknown_events.get(kind).copied().unwrap_or_default();
    assert_eq!(
        (count("(not JSON)"), count("item hologram"), count("")),
        (3, 1, 2),
        "{:?}",
        trace.unknown_events
    );
    assert!(count("(line too long)") >= 1);
}

#[tokio::test]
async fn a_version_is_found_or_refused() {
    let (mut settings, _scratch) = settings("answer");
    assert_eq!(version(&settings).await.unwrap().to_string(), "0.171.0");
    settings.program = fake("old");
    let error = version(&settings).await.unwrap_err().to_string();
    assert!(error.ends_with("is version 0.50.1; at least 0.100.0 is needed"), "{error}");
    settings.program = fake("mute");
    let error = version(&settings).await.unwrap_err().to_string();
    assert!(error.ends_with("told no version: no idea"), "{error}");
}

#[tokio::test]
async fn a_missing_program_says_how_to_get_it() {
    let (mut settings, _scratch) = settings("answer");
    settings.program = "no-such-agent".into();
    let error = run(&settings, &job(), &|_| ()).await.unwrap_err();
    assert!(matches!(&error, ExecError::Missing { .. }));
    assert!(error.to_string().contains("npm install -g @openai/codex"), "{error}");
    settings.program = env!("CARGO_MANIFEST_DIR").into();
    let error = run(&settings, &job(), &|_| ()).await.unwrap_err();
    assert!(matches!(error, ExecError::Start { .. }), "{error}");
}

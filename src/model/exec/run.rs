//! One job from its folder to its trace, and the question which version a program is. Must not try again.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::cli::Version;
use super::job::{Job, Work};
use super::lines::Line;
use super::process::{Caps, Finished, Launch, Process, Stop};
use super::settings::ExecSettings;
use super::trace::{Cap, Draft, Ending, News, Trace, read_line};
use super::workspace::Workspace;
use super::{copilot_usage, harness};
use crate::domain::one_line;

/// Slow programs take seconds on a busy machine only to say their version.
const PROBE: Duration = Duration::from_secs(60);

/// Why a job did not even begin, or its output was lost. A job that began and went wrong is a [`Trace`] that says so.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error("cannot find the program {program}; {remedy}, or name its path")]
    Missing { program: String, remedy: &'static str },
    #[error("cannot start {program}: {why}")]
    Start { program: String, why: String },
    #[error("{program} is version {found}; at least {oldest} is needed")]
    TooOld { program: String, found: Version, oldest: Version },
    #[error("{program} --version told no version: {said}")]
    NoVersion { program: String, said: String },
    #[error("{message}")]
    Settings { message: String },
    #[error("cannot prepare {}: {why}", path.display())]
    Workspace { path: PathBuf, why: String },
    #[error(
        "agents working below {} would follow its instructions; remove it, or set TMPDIR to a folder without any above it",
        file.display()
    )]
    Instructions { file: PathBuf },
    #[error("cannot read what {program} says: {why}")]
    Output { program: String, why: String },
}

/// Does one job. Dropped, it ends the program and all it started, and removes the folder.
///
/// # Errors
/// The program did not run; see [`Trace::end`] for how a job ended that did.
pub async fn run(
    settings: &ExecSettings,
    job: &Job,
    on_news: &(dyn Fn(News) + Sync),
) -> Result<Trace, ExecError> {
    let cli = settings.agent.cli();
    let workspace = Arc::new(Workspace::create(&settings.scratch, harness::skills(cli), job)?);
    let launch = harness::launch(settings, job, &workspace)?;
    let mut draft = Draft::default();
    let finished = start(settings, launch, settings.caps, &workspace)?
        .follow(|line| {
            match line {
                Line::Text(line) => read_line(cli, &line, &mut draft),
                Line::TooLong => draft.unknown("(line too long)"),
            }
            draft.take_news().into_iter().for_each(on_news);
            if draft.is_hopeless() {
                ControlFlow::Break(Stop::Enough)
            } else if draft.tool_calls() > settings.caps.tool_calls {
                ControlFlow::Break(Stop::Cap(Cap::ToolCalls))
            } else {
                ControlFlow::Continue(())
            }
        })
        .await;
    let Finished { ending, stderr } = finished
        .map_err(|error| ExecError::Output { program: settings.program.clone(), why: error.to_string() })?;
    copilot_usage::add(cli, &workspace, &mut draft);
    let trace = draft.finish(ending, &one_line(&stderr, 600));
    Ok(match job.work {
        Work::Agent(_) => trace.of_workspace_job(cli),
        Work::Chat { .. } => trace,
    })
}

/// The program's version, if it is one whose output is understood.
///
/// # Errors
/// There is no such program, it says nothing in time, or it is too old.
pub async fn version(settings: &ExecSettings) -> Result<Version, ExecError> {
    let cli = settings.agent.cli();
    let nothing =
        Job { system: None, task: String::new(), work: Work::Chat { schema: None, max_tokens: None } };
    let workspace = Arc::new(Workspace::create(&settings.scratch, harness::skills(cli), &nothing)?);
    let launch = Launch {
        program: settings.program.clone().into(),
        args: vec!["--version".to_owned()],
        env: harness::environment(settings, &workspace),
        folder: workspace.work(),
        stdin: String::new(),
        mark: workspace.mark(),
    };
    let caps = Caps { wall: PROBE.min(settings.caps.wall), total_bytes: 64 << 10, ..settings.caps };
    let mut said = String::new();
    let finished = start(settings, launch, caps, &workspace)?
        .follow(|line| {
            if let Line::Text(line) = line {
                said.push_str(&line);
                said.push(' ');
            }
            ControlFlow::Continue(())
        })
        .await;
    let program = settings.program.clone();
    let Finished { ending, stderr } =
        finished.map_err(|error| ExecError::Output { program: program.clone(), why: error.to_string() })?;
    let oldest = cli.oldest();
    match (ending, Version::find(&said)) {
        (Ending::Exited(Some(0)), Some(found)) if found >= oldest => Ok(found),
        (Ending::Exited(Some(0)), Some(found)) => Err(ExecError::TooOld { program, found, oldest }),
        (Ending::Cut(cap), _) => {
            Err(ExecError::NoVersion { program, said: format!("its {} ran out", cap.name()) })
        }
        (Ending::Exited(_), _) => {
            Err(ExecError::NoVersion { program, said: one_line(&format!("{said}{stderr}"), 300) })
        }
    }
}

fn start(
    settings: &ExecSettings,
    launch: Launch,
    caps: Caps,
    workspace: &Arc<Workspace>,
) -> Result<Process, ExecError> {
    let program = settings.program.clone();
    Process::start(launch, caps, workspace.clone()).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ExecError::Missing { program, remedy: settings.agent.cli().remedy() },
        _ => ExecError::Start { program, why: error.to_string() },
    })
}

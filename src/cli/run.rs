//! `planish run`: prepare the run folder, start a host for it, attach.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::json_lines::{Launch, Level};
use super::locate::Root;
use super::present::{View, present};
use super::review::can_ask;
use super::screen::Screen;
use super::services::Here;
use super::{Failure, assembly, exit, foreground, launch, output};
use crate::client::{ClientOptions, Presence, Target, author_here, open, presence};
use crate::config::{Config, Loaded};
use crate::domain::Origin;
use crate::event::{EndStatus, RunStatus, WatchRole};
use crate::host::HostFile;
use crate::store::{RunDir, RunLock, default_run_name, fold_run, glance_run, project};

#[derive(clap::Args)]
pub struct Args {
    /// Configuration of the run (TOML)
    config: PathBuf,
    /// Set one configuration key over the file's value; may be given many times
    #[arg(short = 'o', long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[command(flatten)]
    root: Root,
    /// Folder name under the root; an existing run of that name is continued
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    start: StartArgs,
}

/// How a started run is shown.
#[derive(clap::Args)]
pub struct StartArgs {
    /// Start the host, print its launch line as JSON and leave
    #[arg(long, conflicts_with_all = ["foreground", "plain", "require_improvement"])]
    detach: bool,
    /// Run in this process instead of a host of its own
    #[arg(long)]
    foreground: bool,
    /// Lines instead of the workbench
    #[arg(long, conflicts_with = "json")]
    plain: bool,
    #[command(flatten)]
    viewing: Viewing,
}

#[derive(clap::Args, Clone, Default)]
pub struct Viewing {
    /// Only JSON lines on stdout: `launch`, events, `decision_needed`, `done`
    #[arg(long)]
    pub json: bool,
    /// Which events `--json` prints
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    pub events: Level,
    /// Exit with code 3 unless the best skill beat the first one on the selection split
    #[arg(long)]
    pub require_improvement: bool,
    #[command(flatten)]
    pub screen: Screen,
    /// Records that were there before this start.
    #[arg(skip)]
    pub told_before: u64,
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let loaded = Config::load(&args.config, &args.overrides)?;
    for warning in &loaded.warnings {
        output::note(&format!("warning: {warning}"));
    }
    let (root, name) = place(&args, &loaded.config);
    let existing = RunDir::open(&root.join(&name)).ok();
    let fresh = existing.is_none();
    let run = match existing {
        Some(run) => prepare_again(run, &loaded)?,
        None => {
            let run = RunDir::create(&root, &name)?;
            assembly::write_config(&run, &loaded.config)
                .and_then(|()| assembly::keep_prompts(&run, &loaded.config))
                .and_then(|()| assembly::keep_origins(&run, &loaded))
                .inspect_err(|_| {
                    let _ = std::fs::remove_dir_all(run.path());
                })?;
            run
        }
    };
    match fresh {
        true => start_new(&run, Ok(()), args.start).await,
        false => start(&run, args.start).await,
    }
}

/// Starts a run whose folder was just made. A start that got nowhere leaves nothing behind.
pub async fn start_new(run: &RunDir, prepared: Result<(), Failure>, args: StartArgs) -> Result<u8, Failure> {
    let outcome = match prepared {
        Ok(()) => start(run, args).await,
        Err(failure) => Err(failure),
    };
    if outcome.is_err() && !begun(run) {
        let _ = std::fs::remove_dir_all(run.path());
    }
    outcome
}

/// Runs root and name: the command line wins, then run.name, then env.out_root, which is both in one.
fn place(args: &Args, config: &Config) -> (PathBuf, String) {
    let root = args.root.path.clone();
    let out_root = Path::new(&config.env.benchmark.out_root);
    match (&args.name, config.run.name.as_str(), out_root.parent(), out_root.file_name()) {
        (Some(name), ..) => (root, name.clone()),
        (None, "", Some(parent), Some(name)) => (parent.to_owned(), name.to_string_lossy().into_owned()),
        (None, "", ..) => (root, default_run_name(&args.config, now_ms())),
        (None, name, ..) => (root, name.to_owned()),
    }
}

/// Whether anything of the run is worth keeping.
fn begun(run: &RunDir) -> bool {
    std::fs::metadata(run.events()).is_ok_and(|file| file.len() > 0)
}

/// Gives an existing run a configuration that may differ from its own where no result depends on it.
pub fn prepare_again(run: RunDir, loaded: &Loaded) -> Result<RunDir, Failure> {
    refuse_import(&run)?;
    assembly::check_unchanged(&run, &loaded.config)?;
    match presence(run.path()).map_err(|error| Failure::usage(error.to_string()))? {
        // Its host holds its configuration; nothing is changed under it.
        Presence::Live(_) | Presence::Elsewhere(_) => assembly::check_equal(&run, &loaded.config)?,
        Presence::Dead => assembly::change_config(&run, &loaded.config)?,
    }
    Ok(run)
}

/// An imported run only tells what was.
pub fn refuse_import(run: &RunDir) -> Result<(), Failure> {
    let origin = glance_run(run)?.info.and_then(|info| info.origin);
    let Some(Origin::Imported(imported)) = origin else { return Ok(()) };
    Err(Failure::usage(format!(
        "{} was imported and cannot go on in place; `planish resume --from {}` continues it as a new run",
        run.name(),
        imported.folder
    )))
}

/// Starts a prepared run (or joins its living host) and shows it as asked.
pub async fn start(run: &RunDir, mut args: StartArgs) -> Result<u8, Failure> {
    wait_for_ending_host(run).await;
    match presence(run.path()).map_err(|error| Failure::usage(error.to_string()))? {
        Presence::Live(host) if args.foreground => {
            return Err(Failure::usage(format!(
                "{} is in use by {host}; watch it with `planish attach {}`, or stop that process first",
                run.path().display(),
                run.name()
            )));
        }
        Presence::Live(host) => {
            output::note(&format!("{} is already running; attaching", run.name()));
            return show(run, &Launch::new(run, &host), args).await;
        }
        Presence::Elsewhere(host) => {
            return Err(Failure::usage(format!(
                "{} is in use by {host}; attach with `planish attach ssh://{}/{}`, or delete {} if that process is gone",
                run.path().display(),
                host.host,
                run.path().display(),
                run.host_json().display()
            )));
        }
        Presence::Dead => {
            if let Ok(Some(killed)) = HostFile::read(run.path()) {
                killed.remove(run.path());
            }
            let state = glance_run(run)?;
            if let RunStatus::Ended { status: EndStatus::Completed, .. } = state.status {
                // Its host may have been killed after the last event and before the last files.
                let _lock = RunLock::acquire(run)?;
                project(run, &fold_run(run)?)?;
                let name = run.name();
                return Err(Failure::usage(format!(
                    "{name} has completed; look at it with `planish attach {name}`, or start another with --name"
                )));
            }
            args.viewing.told_before = state.seq;
        }
    }
    if args.foreground {
        return foreground::foreground(run, &args.viewing).await;
    }
    let launched = launch::launch(run).await?;
    show(run, &launched, args).await
}

/// A host whose run has just ended needs a moment to leave; until then it would be joined for nothing.
async fn wait_for_ending_host(run: &RunDir) {
    const MOMENT: std::time::Duration = std::time::Duration::from_millis(100);
    for _ in 0..30 {
        let alive = matches!(presence(run.path()), Ok(Presence::Live(_)));
        let ending = || {
            let status = glance_run(run).map(|state| state.status);
            matches!(status, Ok(RunStatus::Ended { .. } | RunStatus::Cancelling { .. }))
        };
        if !alive || !ending() {
            return;
        }
        tokio::time::sleep(MOMENT).await;
    }
}

async fn show(run: &RunDir, launched: &Launch, args: StartArgs) -> Result<u8, Failure> {
    if args.detach || args.viewing.json {
        output::json(&launched.line())?;
    }
    if args.detach {
        return Ok(exit::DONE);
    }
    let view = View::choose(args.plain, args.viewing.json);
    let root = run.path().parent().unwrap_or(Path::new("."));
    attach(run.path(), root, view, false, &args.viewing).await
}

/// Attaches to a run folder on this machine. `root`: where the workbench looks for others.
pub async fn attach(
    run_dir: &Path,
    root: &Path,
    view: View,
    read_only: bool,
    viewing: &Viewing,
) -> Result<u8, Failure> {
    let target = Target::Folder(run_dir.to_owned());
    let services = Arc::new(Here::new(root, Some(target.clone())));
    let connection = open(target, options(view, read_only)).await?;
    present(connection, view, Some(run_dir), services, read_only, viewing).await
}

/// How this process introduces itself when it shows a run.
pub fn options(view: View, read_only: bool) -> ClientOptions {
    ClientOptions {
        glance: view == View::Workbench,
        role: match view {
            View::Workbench if !read_only => WatchRole::Steer,
            View::Plain if can_ask(view, read_only) => WatchRole::Steer,
            View::Workbench | View::Plain | View::Json => WatchRole::Watch,
        },
        name: author_here(),
        live: view == View::Workbench,
        after_seq: 0,
    }
}

pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

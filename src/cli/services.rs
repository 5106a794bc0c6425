//! Answers to what the workbench asks: runs under the root, configurations, whether a run could start, and starting it
//! as a child process of its own. Reads and starts; holds no rule about runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::estimate::Projection;
use super::run::now_ms;
use super::run_setup;
use super::settled::Began;
use crate::client::{Catalog, ClientOptions, Connection, Listing, Target, author_here, open};
use crate::config::{Config, ConfigError, keys};
use crate::domain::Retuned;
use crate::env::Task;
use crate::event::WatchRole;
use crate::optim::{Experience, History, Sizes, estimate};
use crate::store::{RunDir, default_run_name, glance_run};
use crate::telemetry;
use crate::tui::{Ask, Checked, ConfigFile, Draft, Opening, Services, Told};

/// Longest look at the root before what was found so far is told.
const LOOK_TIME: Duration = Duration::from_millis(400);
/// Most configurations offered, and how deep below `configs/` they are looked for.
const CONFIGS: usize = 2_000;
const DEPTH: usize = 3;
/// In bytes; what is larger is no configuration.
const LARGEST_CONFIG: u64 = 1 << 20;

/// The runs under a root on this machine, and the run that the workbench began with.
pub struct Here {
    root: PathBuf,
    first: Option<Target>,
    catalog: Arc<Mutex<Catalog>>,
}

impl Here {
    pub fn new(root: &Path, first: Option<Target>) -> Self {
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        Self { root, first, catalog: Arc::default() }
    }
}

impl Services for Here {
    fn answer(&self, ask: Ask) -> BoxFuture<'static, Told> {
        let (root, catalog) = (self.root.clone(), Arc::clone(&self.catalog));
        match ask {
            Ask::Runs => blocking(
                move || Told::Runs(look(&catalog, &root, Some(LOOK_TIME))),
                |why| Told::Runs(Err(why)),
            ),
            Ask::Series { run } => {
                let asked = run.clone();
                let answer = move || {
                    let series = RunDir::open(&run).and_then(|dir| telemetry::of_run(&dir));
                    Told::Series { run, series: series.map_err(|error| error.to_string()) }
                };
                blocking(answer, |why| Told::Series { run: asked, series: Err(why) })
            }
            Ask::Configs => {
                let here = std::env::current_dir().unwrap_or_default();
                blocking(move || Told::Configs(Ok(configs(&here, &root))), |why| Told::Configs(Err(why)))
            }
            Ask::Check(draft) => {
                let asked = draft.clone();
                let answer = move || {
                    let result = check(&draft, &root, &catalog).map(Box::new);
                    Told::Checked { draft, result }
                };
                blocking(answer, |why| Told::Checked { draft: asked, result: Err(vec![why]) })
            }
            Ask::Changes { run } => {
                let asked = run.clone();
                let answer = move || {
                    let result = changes(&run);
                    Told::Changes { run, result }
                };
                blocking(answer, |why| Told::Changes { run: asked, result: Err(why) })
            }
            Ask::Retune { config, wanted } => {
                let asked = wanted.clone();
                let answer = move || {
                    let result = retuned(config, &wanted);
                    Told::Retune { wanted, result }
                };
                blocking(answer, |why| Told::Retune {
                    wanted: asked,
                    result: Err(vec![(String::new(), why)]),
                })
            }
            Ask::Start(draft) => {
                let mut arguments = vec!["run".into(), draft.config.into_os_string()];
                if !draft.name.is_empty() {
                    arguments.push(format!("--name={}", draft.name).into());
                }
                arguments.extend(draft.overrides.into_iter().map(|text| format!("--set={text}").into()));
                detached(arguments, root).map(Told::Started).boxed()
            }
            Ask::Resume { run } => {
                detached(vec!["resume".into(), run.into_os_string()], root).map(Told::Started).boxed()
            }
        }
    }

    fn open(&self, run: Option<PathBuf>, opening: Opening) -> BoxFuture<'static, Result<Connection, String>> {
        let options = ClientOptions {
            role: if opening.read_only { WatchRole::Watch } else { WatchRole::Steer },
            name: author_here(),
            live: true,
            glance: true,
            after_seq: opening.after_seq,
        };
        let target = run.map(Target::Folder).or_else(|| self.first.clone());
        async move {
            let target = target.ok_or("no run is attached")?;
            open(target, options).await.map_err(|error| error.to_string())
        }
        .boxed()
    }
}

/// Work that waits for the disk, on a thread for that.
fn blocking(
    work: impl FnOnce() -> Told + Send + 'static,
    failed: impl FnOnce(String) -> Told + Send + 'static,
) -> BoxFuture<'static, Told> {
    async move {
        match tokio::task::spawn_blocking(work).await {
            Ok(told) => told,
            Err(error) => failed(format!("a look at the disk ended abnormally: {error}")),
        }
    }
    .boxed()
}

fn look(catalog: &Mutex<Catalog>, root: &Path, limit: Option<Duration>) -> Result<Listing, String> {
    let mut catalog = catalog.lock().unwrap_or_else(PoisonError::into_inner);
    catalog.look(root, now_ms(), limit).map_err(|error| error.to_string())
}

/// `configs/` below the folder `here`, what lies in the folder itself and looks like a configuration, then those of
/// runs, the last changed first.
fn configs(here: &Path, root: &Path) -> Vec<ConfigFile> {
    let mut files = Vec::new();
    collect(&here.join("configs"), DEPTH, &mut files);
    files.sort();
    let mut beside = Vec::new();
    collect(here, 1, &mut beside);
    beside.retain(|path| looks_like_config(path));
    beside.sort();
    files.extend(beside);
    let mut of_runs: Vec<_> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("config.toml"))
        .filter_map(|path| Some((std::fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    of_runs.sort_by(|left, right| right.cmp(left));
    files.extend(of_runs.into_iter().map(|(_, path)| path));
    files.truncate(CONFIGS);
    let shown = |path: &Path| path.strip_prefix(here).unwrap_or(path).display().to_string();
    files.into_iter().map(|path| ConfigFile { shown: shown(&path), path }).collect()
}

/// Files whose name begins with `_` are there to be inherited.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_config = path.extension().is_some_and(|extension| extension == "toml")
            && !entry.file_name().to_string_lossy().starts_with('_');
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 1 => collect(&path, depth - 1, files),
            Ok(kind) if !kind.is_dir() && is_config && files.len() < CONFIGS => files.push(path),
            Ok(_) | Err(_) => {}
        }
    }
}

/// It has a section that configurations have. Others' TOML files lie in folders too.
fn looks_like_config(path: &Path) -> bool {
    let small = std::fs::metadata(path).is_ok_and(|file| file.len() <= LARGEST_CONFIG);
    let text = if small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    let section = |name: &String| keys().any(|key| key.path.split('.').next() == Some(name));
    table.iter().any(|(name, value)| value.is_table() && section(name))
}

/// What `planish run` would find out before it starts, as far as that needs no model.
fn check(draft: &Draft, root: &Path, catalog: &Mutex<Catalog>) -> Result<Checked, Vec<String>> {
    let loaded = Config::load(&draft.config, &draft.overrides)
        .map_err(|errors| errors.0.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let config = &loaded.config;
    let task = Task::open(config, None).map_err(|error| vec![error.to_string()])?;
    let name = match (draft.name.as_str(), config.run.name.as_str()) {
        ("", "") => default_run_name(&draft.config, now_ms()),
        ("", name) | (name, _) => name.to_owned(),
    };
    crate::config::check_run_name(&name)
        .map_err(|problem| vec![format!("name: {problem}; use letters, digits, `-`, `_` and `.`")])?;
    if RunDir::open(&root.join(&name)).is_ok() {
        return Err(vec![format!("name: a run {name} exists already; give another name, or resume it")]);
    }
    let data = &task.data;
    let sizes = Sizes { train: data.train.len(), val: data.val.len(), test: data.test.len() };
    let env = serde_json::to_value(config.env.kind).ok();
    let env = env.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default();
    let runs = look(catalog, root, Some(LOOK_TIME)).map(|listing| listing.runs).unwrap_or_default();
    let experience = Experience::of(runs.iter().filter(|run| run.env == env).map(|run| &run.usage));
    let of_env = History::of_totals(runs.iter().filter(|run| run.env == env).map(|run| &run.usage));
    let prices = run_setup::prices(config).map_err(|error| vec![format!("{error:#}")])?;
    // An environment that takes time to build its prompts is not waited for.
    let projection = Projection::of(config, &task, of_env, &prices).now_or_never().and_then(Result::ok);
    Ok(Checked {
        name,
        warnings: loaded.warnings.clone(),
        estimate: estimate(config, sizes),
        experience,
        money: projection.and_then(|projection| projection.dollars()),
        budget: (config.budget.max_calls, config.budget.max_tokens),
    })
}

/// The keys that a resume of the run would change.
fn changes(run: &Path) -> Result<Vec<String>, String> {
    let run = RunDir::open(run).map_err(|error| error.to_string())?;
    let config = Config::load(&run.config_toml(), &[]).map_err(|errors| errors.to_string())?.config;
    let state = glance_run(&run).map_err(|error| error.to_string())?;
    let changed = match Began::of(&state).map_err(|error| format!("{error:#}"))? {
        None => Vec::new(),
        Some(began) => began
            .settled(&config)
            .and_then(|config| began.changes(&config))
            .map_err(|error| format!("{error:#}"))?,
    };
    Ok(changed.iter().map(ToString::to_string).collect())
}

fn retuned(config: Value, wanted: &BTreeMap<String, Value>) -> Result<Vec<Retuned>, Vec<(String, String)>> {
    let config: Config = serde_json::from_value(config)
        .map_err(|error| vec![(String::new(), format!("the run's settings do not read back: {error}"))])?;
    let complaint = |error: &ConfigError| (error.key.clone(), format!("{}; {}", error.problem, error.remedy));
    config.retuned(wanted).map_err(|errors| errors.0.iter().map(complaint).collect())
}

/// Runs `planish … --detach` and gives the folder of the run that it started.
async fn detached(mut arguments: Vec<std::ffi::OsString>, root: PathBuf) -> Result<PathBuf, String> {
    arguments.extend(["--detach".into(), "--root".into(), root.into_os_string()]);
    let program =
        std::env::current_exe().map_err(|error| format!("cannot find the planish program: {error}"))?;
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| format!("cannot start planish: {error}"))?;
    let launched = String::from_utf8_lossy(&output.stdout).lines().find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(line.pointer("/launch/run_dir")?.as_str()?))
    });
    launched.ok_or_else(|| {
        let told = String::from_utf8_lossy(&output.stderr);
        let complaints: Vec<&str> =
            told.lines().map(|line| line.strip_prefix("error: ").unwrap_or(line)).collect();
        match complaints.as_slice() {
            [] => format!("planish ended without a word ({})", output.status),
            lines => lines.join("\n"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Role;

    fn draft(config: &str, name: &str, overrides: &[&str]) -> Draft {
        Draft {
            config: config.into(),
            name: name.into(),
            overrides: overrides.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    fn checked(draft: &Draft, root: &Path) -> Result<Checked, Vec<String>> {
        check(draft, root, &Mutex::default())
    }

    #[test]
    fn a_draft_is_measured_by_its_data_and_its_name() {
        let root = tempfile::tempdir().unwrap();
        let good =
            checked(&draft("configs/demo.toml", "mine", &["train.batch_size=10"]), root.path()).unwrap();
        assert_eq!((good.name.as_str(), good.estimate.batch), ("mine", 10));
        assert_eq!(good.estimate.steps(), 4);
        assert!(good.estimate.calls(Role::Target) > 100);
        RunDir::create(root.path(), "mine").unwrap();
        std::fs::write(root.path().join("mine/config.toml"), "").unwrap();
        for (config, name, overrides, words) in [
            ("configs/demo.toml", "mine", &[][..], "a run mine exists already"),
            ("configs/demo.toml", "../up", &[], "name: "),
            ("configs/demo.toml", "", &["train.batch_size=0"], "0 is out of range"),
            ("configs/demo.toml", "", &["train.bach_size=1"], "did you mean train.batch_size?"),
            ("configs/demo.toml", "", &["env.data_path=none.json"], "none.json"),
            ("configs/none.toml", "", &[], "no such file"),
        ] {
            let told = checked(&draft(config, name, overrides), root.path()).unwrap_err().join("\n");
            assert!(told.contains(words), "{words}: {told}");
        }
    }

    #[test]
    fn configurations_are_those_here_and_those_of_runs() {
        let root = tempfile::tempdir().unwrap();
        RunDir::create(root.path(), "one").unwrap();
        std::fs::write(root.path().join("one/config.toml"), "").unwrap();
        let here = std::env::current_dir().unwrap();
        let shown: Vec<String> = configs(&here, root.path()).into_iter().map(|file| file.shown).collect();
        assert!(!shown.contains(&"Cargo.toml".to_owned()), "{shown:?}");
        assert!(shown.contains(&"configs/demo.toml".to_owned()), "{shown:?}");
        assert!(shown.iter().all(|name| !name.contains("_base")), "files to inherit are no runs");
        assert!(shown.last().unwrap().ends_with("one/config.toml"));
    }

    #[test]
    fn a_configuration_in_the_folder_itself_is_offered() {
        let (here, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, text) in [
            ("slow.toml", "[train]\nbatch_size = 4\n"),
            ("other.toml", "[package]\nname = \"x\"\n"),
            ("broken.toml", "[train"),
            ("_base.toml", "[train]\n"),
        ] {
            std::fs::write(here.path().join(name), text).unwrap();
        }
        let shown: Vec<String> =
            configs(here.path(), root.path()).into_iter().map(|file| file.shown).collect();
        assert_eq!(shown, ["slow.toml"]);
    }

    #[test]
    fn a_retune_complains_by_key() {
        let config = serde_json::to_value(Config::default()).unwrap();
        let wanted = |value: &str| BTreeMap::from([("env.workers".to_owned(), Value::from(value))]);
        assert_eq!(retuned(config.clone(), &wanted("3")).unwrap()[0].new, 3);
        let told = retuned(config, &wanted("0")).unwrap_err();
        assert!(told[0].0 == "env.workers" && told[0].1.contains("out of range"), "{told:?}");
    }

    #[tokio::test]
    async fn runs_are_told_and_what_is_no_run_cannot_be_resumed() {
        let root = tempfile::tempdir().unwrap();
        RunDir::create(root.path(), "one").unwrap();
        std::fs::write(root.path().join("one/config.toml"), "").unwrap();
        let here = Here::new(root.path(), None);
        let Told::Runs(Ok(listing)) = here.answer(Ask::Runs).await else { panic!() };
        assert_eq!((listing.runs.len(), listing.more), (1, false));
        let run = root.path().join("two");
        let Told::Changes { result, .. } = here.answer(Ask::Changes { run }).await else { panic!() };
        assert!(result.unwrap_err().contains("no run at"));
        assert!(here.open(None, Opening::default()).await.is_err_and(|why| why.contains("no run")));
    }
}

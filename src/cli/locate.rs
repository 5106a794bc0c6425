//! Which run a command means: a folder, or a name under the root. Read-only.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use super::run::now_ms;
use crate::client::list_runs;
use crate::config::nearest;
use crate::store::RunDir;

/// Most names offered in place of an unknown one.
const OFFERED: usize = 5;

/// Where runs lie.
#[derive(Args, Clone)]
pub struct Root {
    /// Folder that holds the runs
    #[arg(long = "root", value_name = "DIR", default_value = "runs")]
    pub path: PathBuf,
}

impl Root {
    /// The run of that path or name.
    pub fn find(&self, run: &str) -> Result<RunDir, Failure> {
        if run.is_empty() {
            return Err(Failure::usage("the run's name is empty"));
        }
        RunDir::open(Path::new(run)).or_else(|_| RunDir::open(&self.path.join(run))).map_err(|_| {
            let names = self.names();
            Failure::usage(format!("no run `{run}` {}", self.offer(run, &names)))
        })
    }

    /// The run that is meant when none is named: one at work if there is any, else the last changed.
    pub fn latest(&self) -> Result<RunDir, Failure> {
        let runs = list_runs(&self.path, now_ms())?;
        let latest = runs.iter().find(|run| run.holder.is_some()).or(runs.first());
        match latest {
            Some(run) => Ok(RunDir::open(&run.path)?),
            None => Err(Failure::usage(format!(
                "no runs under {}; start one with `planish run CONFIG` or name another --root",
                self.path.display()
            ))),
        }
    }

    /// No run lies here.
    pub fn is_empty(&self) -> bool {
        self.names().is_empty()
    }

    fn names(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.path) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| RunDir::open(&entry.path()).ok())
            .map(|run| run.name())
            .collect();
        names.sort();
        names
    }

    fn offer(&self, run: &str, names: &[String]) -> String {
        let place = self.path.display();
        let mut near: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| name.contains(run) || run.contains(name))
            .collect();
        if near.is_empty() {
            near.extend(nearest(run, names.iter().map(String::as_str)));
        }
        if !near.is_empty() {
            near.truncate(OFFERED);
            return format!("under {place}; did you mean {}?", near.join(", "));
        }
        match names {
            [] => format!("(there are no runs under {place}); give its path or --root"),
            names => {
                let shown: Vec<&str> = names.iter().take(OFFERED).map(String::as_str).collect();
                let more = if names.len() > OFFERED { ", …" } else { "" };
                format!("under {place}; there are {}{more} (`planish ls` lists all)", shown.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_with(names: &[&str]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("events.jsonl"), "").unwrap();
        }
        let root = Root { path: dir.path().to_owned() };
        (dir, root)
    }

    fn message(failure: Failure) -> String {
        match failure {
            Failure::Message { code: 2, text } => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_is_found_by_name_and_by_path() {
        let (dir, root) = root_with(&["demo-1"]);
        assert_eq!(root.find("demo-1").unwrap().name(), "demo-1");
        let path = dir.path().join("demo-1").display().to_string();
        assert_eq!(Root { path: "elsewhere".into() }.find(&path).unwrap().name(), "demo-1");
    }

    #[test]
    fn an_unknown_name_is_answered_with_near_ones() {
        let (_dir, root) = root_with(&["demo-1", "demo-2", "upper"]);
        assert!(message(root.find("demo").unwrap_err()).ends_with("did you mean demo-1, demo-2?"));
        assert!(message(root.find("uper").unwrap_err()).ends_with("did you mean upper?"));
        assert!(message(root.find("zzzzzzzz").unwrap_err()).contains("there are demo-1, demo-2, upper"));
        let (_dir, empty) = root_with(&[]);
        assert!(message(empty.find("x").unwrap_err()).contains("no runs"));
        assert!(message(empty.latest().unwrap_err()).contains("planish run"));
    }
}

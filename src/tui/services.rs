//! What the workbench asks of the world outside its run: other runs, configurations, files. Questions and answers are
//! plain data; the command line answers them. Decides nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::client::{Connection, Listing};
use crate::domain::Retuned;
use crate::optim::{Estimate, Experience, Spread};
use crate::telemetry::Board;

/// A question; its answer comes as [`super::Msg::Told`].
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// The runs under the root.
    Runs,
    /// The curves of a run.
    Series {
        run: PathBuf,
    },
    /// Configurations that a run can start from.
    Configs,
    /// Whether a run could start like this, and what it would do.
    Check(Draft),
    Start(Draft),
    /// What a resume of this run would change.
    Changes {
        run: PathBuf,
    },
    Resume {
        run: PathBuf,
    },
    /// What these settings, by key, change of a configuration.
    Retune {
        config: Value,
        wanted: BTreeMap<String, Value>,
    },
}

/// The answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Series {
        run: PathBuf,
        series: Result<Arc<Board>, String>,
    },
    Runs(Result<Listing, String>),
    Configs(Result<Vec<ConfigFile>, String>),
    /// Complaints one by one.
    Checked {
        draft: Draft,
        result: Result<Box<Checked>, Vec<String>>,
    },
    /// `Ok`: the folder of the run, which has a host now.
    Started(Result<PathBuf, String>),
    /// `key: old -> new`; `Err`: why it cannot be resumed.
    Changes {
        run: PathBuf,
        result: Result<Vec<String>, String>,
    },
    /// Complaints with the key of each.
    Retune {
        wanted: BTreeMap<String, Value>,
        result: Result<Vec<Retuned>, Vec<(String, String)>>,
    },
}

/// A run to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    pub config: PathBuf,
    /// Empty: made from the configuration and the time.
    pub name: String,
    /// `key=value`.
    pub overrides: Vec<String>,
}

/// A configuration that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    pub path: PathBuf,
    /// As it is shown and searched: relative where it can be.
    pub shown: String,
}

/// A draft that can start.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Folder name it would get.
    pub name: String,
    pub warnings: Vec<String>,
    pub estimate: Estimate,
    /// From earlier runs of the same environment.
    pub experience: Experience,
    /// US dollars that it would take; `None`: no price of a model is known.
    pub money: Option<Spread>,
    /// `budget.max_calls` and `budget.max_tokens`; 0: no limit.
    pub budget: (u64, u64),
}

/// How a run is attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    pub read_only: bool,
    /// Only records after this one.
    pub after_seq: u64,
}

/// Answers what the workbench asks; called on tasks of their own, so it may take its time.
pub trait Services: Send + Sync {
    fn answer(&self, ask: Ask) -> BoxFuture<'static, Told>;

    /// A connection to another run; `None`: to the one the workbench began with.
    fn open(&self, run: Option<PathBuf>, opening: Opening) -> BoxFuture<'static, Result<Connection, String>>;
}

/// For a workbench that shows one run and knows of no other (a replay).
pub struct Alone;

impl Services for Alone {
    fn answer(&self, ask: Ask) -> BoxFuture<'static, Told> {
        const WHY: &str = "only this run is known here; `planish` without a run shows all";
        let told = match ask {
            Ask::Series { run } => Told::Series { run, series: Err(WHY.into()) },
            Ask::Runs => Told::Runs(Err(WHY.into())),
            Ask::Configs => Told::Configs(Err(WHY.into())),
            Ask::Check(draft) => Told::Checked { draft, result: Err(vec![WHY.into()]) },
            Ask::Start(_) | Ask::Resume { .. } => Told::Started(Err(WHY.into())),
            Ask::Changes { run } => Told::Changes { run, result: Err(WHY.into()) },
            Ask::Retune { wanted, .. } => {
                let result = Err(vec![(String::new(), WHY.into())]);
                Told::Retune { wanted, result }
            }
        };
        Box::pin(std::future::ready(told))
    }

    fn open(&self, _: Option<PathBuf>, _: Opening) -> BoxFuture<'static, Result<Connection, String>> {
        Box::pin(std::future::ready(Err("other runs cannot be opened from here".into())))
    }
}

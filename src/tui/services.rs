//! What the workbench asks of the world outside its run: other runs, configurations, files. Questions and answers are
//! plain data; the command line answers them. Decides nothing.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::client::Connection;
use crate::telemetry::Board;

/// A question; its answer comes as [`super::Msg::Told`].
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// The runs under the root, newest first.
    Runs,
    /// The curves of a run.
    Series { run: PathBuf },
}

/// The answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Runs(Result<Vec<RunRow>, String>),
    Series { run: PathBuf, series: Result<Arc<Board>, String> },
}

/// A run as the Runs pane lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    pub name: String,
    pub path: PathBuf,
}

/// Answers what the workbench asks; called on tasks of their own, so it may take its time.
pub trait Services: Send + Sync {
    fn answer(&self, ask: Ask) -> BoxFuture<'static, Told>;

    /// A connection to another run.
    fn open(&self, run: PathBuf, read_only: bool) -> BoxFuture<'static, Result<Connection, String>>;
}

/// For a workbench that shows one run and knows of no other (a replay, a run on another machine).
pub struct Alone;

impl Services for Alone {
    fn answer(&self, ask: Ask) -> BoxFuture<'static, Told> {
        let told = match ask {
            Ask::Runs => Told::Runs(Err("only the attached run is known here".into())),
            Ask::Series { run } => {
                Told::Series { run, series: Err("only the attached run is known here".into()) }
            }
        };
        Box::pin(std::future::ready(told))
    }

    fn open(&self, _: PathBuf, _: bool) -> BoxFuture<'static, Result<Connection, String>> {
        Box::pin(std::future::ready(Err("other runs cannot be opened from here".into())))
    }
}

//! The run directory: its paths, its lock, the journal file, the snapshot cache and the SkillOpt-shaped artifacts
//! projected from a [`RunState`](crate::event::RunState). All disk access of a run's records is here; nothing
//! here decides anything about the run.

mod artifacts;
mod error;
mod file;
pub mod foreign;
mod item_path;
mod journal;
mod lock;
mod query;
mod run_dir;
mod runs;
mod snapshot;

pub use artifacts::{project, write_epoch, write_rollouts, write_run, write_step};
pub use error::StoreError;
pub use file::{atomic_write, sync_folder};
pub use item_path::{decode_item_id, encode_item_id};
pub use journal::{JournalFile, OpenedJournal, read_records};
pub use lock::{Holder, RunLock, host_name};
pub use query::{QUERY_HELP, Query, QueryError};
pub use run_dir::{RunDir, default_run_name, plain_run_name};
pub use runs::{Condition, Hold, RunSummary, undecided};
pub use snapshot::{RunGlance, fold_run, glance_run, glance_snapshot, write_snapshot};

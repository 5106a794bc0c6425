//! The run's one truth: past-tense events, their JSON-lines codec, the fold into [`RunState`], and the lines
//! that cross the socket. Nothing here does IO.

mod batch_path;
mod codec;
mod fold;
mod glance;
mod interventions;
mod kind;
mod measurement;
mod rescore;
mod state;
mod takeover;
mod wire;

pub use codec::{FORMAT_VERSION, Record, Tail, decode_line, encode_line, scan, scan_after};
pub use interventions::{Overruling, OverrulingOutcome, Retune, at_a_boundary};
pub use kind::{BREAKER, BREAKER_OPEN, EndStatus, Event, LogLevel, Ranking, RejectedEdit, RunPlan};
pub use measurement::{EvalPurpose, ItemResult, LastOutcome, TestOutcome};
pub use rescore::Rescore;
pub use state::{
    Analysis, BatchProbe, EvalOwner, EvalState, LogLine, ReviewEdit, ReviewState, RunInfo, RunState,
    RunStatus, SkillVersion, StageState, StepState,
};
pub use wire::{AckResult, Client, ClientLine, Command, HostLine, LONG_RUN, Live, PROTOCOL, WatchRole};

//! Lines between a host and its clients (newline-delimited JSON over a private Unix socket or stdio).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Record, RunState};
use crate::domain::{Author, Decision, MachineSample, Ruling, StepRef};

/// Protocol number; a client and a host with different numbers do not talk.
pub const PROTOCOL: u32 = 1;

/// Records from which on a glance at the run is worth its bytes.
pub const LONG_RUN: u64 = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchRole {
    /// May give commands.
    Steer,
    /// May only look.
    Watch,
}

/// Client to host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientLine {
    Hello {
        proto: u32,
        role: WatchRole,
        name: Author,
        after_seq: u64,
        live: bool,
        /// Wants a glance at a long run before its records.
        #[serde(default)]
        glance: bool,
    },
    Command {
        cmd_id: String,
        expect_rev: Option<u64>,
        body: Command,
    },
}

/// What a client may ask for. Every one is also a `planish ctl` verb.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Stop dispatching at the next boundary.
    Pause,
    Resume,
    /// End the run at the next boundary; the journal stays resumable.
    Cancel,
    /// Decide edit `edit` (from 0) of the open review of step `at`.
    Decide {
        at: StepRef,
        edit: usize,
        decision: Decision,
    },
    /// Close the open review: undecided edits are accepted.
    Submit {
        at: StepRef,
    },
    /// Words for the optimizer about edit `edit` (from 0) of the open review, or about the step.
    Comment {
        at: StepRef,
        edit: Option<usize>,
        text: String,
    },
    /// Overrule the gate's verdict on the last decided step.
    Override {
        at: StepRef,
        ruling: Ruling,
        reason: String,
    },
    /// Give up the call under way at this path; its item counts as missing.
    CancelRollout {
        path: String,
    },
    /// Begin the call under way at this path anew.
    RequeueRollout {
        path: String,
    },
    /// Change settings of the run: key to value as JSON.
    Retune {
        changes: BTreeMap<String, serde_json::Value>,
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckResult {
    Applied,
    /// Already so.
    Noop,
    /// Somebody decided first, after the revision the command was based on.
    Conflict {
        by: Author,
        detail: String,
    },
    Denied {
        reason: String,
    },
}

/// A connected client as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    pub name: Author,
    pub role: WatchRole,
}

/// Host to client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostLine {
    /// First line: `last_seq` is the journal's end at this moment.
    Welcome {
        proto: u32,
        run: String,
        run_dir: String,
        last_seq: u64,
        version: String,
    },
    /// The run as it stands at `last_seq`, without its bulk; its records follow all the same.
    Glance(Box<RunState>),
    Event(Box<Record>),
    Live(Live),
    /// Who is connected, sent on every change.
    Clients(Vec<Client>),
    Ack {
        cmd_id: String,
        result: AckResult,
        rev: u64,
    },
    /// This many log or live lines were dropped because the client read too slowly.
    Dropped {
        lines: u64,
    },
    /// Protocol error; the host closes the connection after it.
    Error {
        message: String,
    },
}

/// High-rate news: sent to clients, never journaled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Live {
    /// A call was dispatched. `group` is the path without the item.
    CallStarted {
        path: String,
        item: String,
        attempt: u32,
    },
    /// More reply text (untrusted) since the last delta of this path.
    CallDelta {
        path: String,
        text: String,
    },
    /// Waiting before a retry.
    CallRetrying {
        path: String,
        error: String,
        wait_ms: u64,
    },
    CallFinished {
        path: String,
        ok: bool,
        tokens: u64,
        ms: u64,
    },
    Throughput {
        tokens_per_s: f64,
        in_flight: usize,
    },
    Machine(MachineSample),
}
